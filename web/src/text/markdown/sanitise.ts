/**
 * What of an agent's HTML gets into the page: words, tables and pictures that came along; nothing that runs, loads,
 * submits, or looks like the page's own.
 *
 * A link to a path becomes `data-path`, for the page to open the file.
 */
import createDOMPurify, { type Config, type WindowLike } from "dompurify";
import type { Sanitise } from "./stream";
import { AWAY_ATTRIBUTES, isPicture, targetOf } from "./targets";

const CONFIG: Config = {
  ALLOWED_TAGS: [
    ...["a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h1", "h2"],
    ...["h3", "h4", "h5", "h6", "hr", "i", "img", "input", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s"],
    ...["samp", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead"],
    ...["tr", "u", "ul", "var", "#text"],
  ],
  ALLOWED_ATTR: [
    ...["align", "alt", "checked", "class", "colspan", "data-path", "disabled", "height", "href", "open", "rowspan"],
    ...["src", "start", "title", "type", "width"],
  ],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOW_UNKNOWN_PROTOCOLS: false,
};

const LANGUAGE = /^language-[\w#+.-]+$/;

export function sanitiser(window: WindowLike): Sanitise {
  const purify = createDOMPurify(window);
  if (!purify.isSupported) throw new Error("There is no document to clean HTML with");
  purify.addHook("uponSanitizeElement", (node, { tagName }) => {
    if (tagName === "input" && (node as Element).getAttribute("type") !== "checkbox")
      node.parentNode?.removeChild(node);
  });
  purify.addHook("afterSanitizeAttributes", (node) => ATTRIBUTES[node.nodeName]?.(node));
  purify.addHook("afterSanitizeAttributes", (node) => {
    if (!LANGUAGE.test(node.getAttribute("class") ?? "") || node.nodeName !== "CODE") node.removeAttribute("class");
  });
  return (html) => purify.sanitize(declawed(html), CONFIG);
}

const TAG = /<(?:"[^"]*"|'[^']*'|[^"'<>])*[>"']?/g;

/**
 * Styles, handlers and what is about the document are dropped in any case. A browser reports them to the page's policy
 * as soon as it reads them, in a document that is shown to nobody too; so they lose their names before that.
 */
const declawed = (html: string): string =>
  html.replace(TAG, (tag) =>
    tag.replace(/^<(\/?)(style|base|meta|link)/i, "<$1x-$2").replace(/([\s"'/])(style|on\w+)(?=\s*=)/gi, "$1x-$2"),
  );

const ATTRIBUTES: Readonly<Record<string, (node: Element) => void>> = {
  A: link,
  IMG: picture,
  INPUT: (node) => node.setAttribute("disabled", ""),
};

function link(node: Element): void {
  const target = targetOf(node.getAttribute("href") ?? node.getAttribute("data-path") ?? "");
  node.removeAttribute("href");
  node.removeAttribute("data-path");
  if (target && "path" in target) node.setAttribute("data-path", target.path);
  else if (target) {
    for (const [name, value] of Object.entries({ href: target.href, ...AWAY_ATTRIBUTES }))
      node.setAttribute(name, value);
  }
}

function picture(node: Element): void {
  if (!isPicture(node.getAttribute("src") ?? "")) node.removeAttribute("src");
}
