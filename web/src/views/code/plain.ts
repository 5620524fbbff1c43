/**
 * Code that has nothing to fold, to cut or to make visible, as plain markup: most code in messages is so, and there may
 * be hundreds of it. Anything else is for `CodeBlock`.
 *
 * It looks and sounds as `CodeBlock` does. While it is open it grows by what was added; colours are for later.
 */
import { escapeHtml } from "../../text/markdown/slices";
import { isOdd } from "../../text/highlight/odd";
import { copyText } from "../../ui/copy";
import { FOLDED } from "./code";
import { LINE_LIMIT } from "./line";

export interface PlainCode {
  readonly lang: string;
  readonly text: string;
  readonly open: boolean;
}

/** As long as a line may be, without an end of line. */
const LONG_LINE = new RegExp(`[^\\n]{${LINE_LIMIT + 1}}`);

/** Whether there is nothing about it that needs more than text. */
export function isPlain({ text }: PlainCode): boolean {
  if (isOdd(text) || (text.length > LINE_LIMIT && LONG_LINE.test(text))) return false;
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines <= FOLDED;
}

const COPY = "Copy code";

/** Markup of known tags and escaped text. */
export function plainHtml({ lang, text, open }: PlainCode): string {
  const [name, label] = [escapeHtml(lang || "text"), escapeHtml(`Code${lang && `, ${lang}`}`)];
  const language = lang && !open ? ` class="language-${escapeHtml(lang)}"` : "";
  return (
    `<figure class="code code-plain"><figcaption class="code-head"><span class="cut">${name}</span>` +
    `<button type="button" class="button quiet icon copy" aria-label="${COPY}" title="${COPY}"></button>` +
    `</figcaption><pre class="code-body" tabindex="0" role="group" aria-label="${label}">` +
    `<code${language}>${escapeHtml(text)}</code></pre></figure>`
  );
}

/** Bring what was made of `before` to `now`, which has the same language. Who selects some of it keeps that. */
export function growPlain(root: Element, before: PlainCode, now: PlainCode): void {
  const code = root.querySelector("code");
  if (!code) return;
  const only = code.firstChild;
  const grew = now.text.startsWith(before.text);
  if (grew && only instanceof Text && code.childNodes.length === 1) only.appendData(now.text.slice(before.text.length));
  else if (now.text !== before.text) code.textContent = now.text;
  if (now.lang && !now.open) code.className = `language-${now.lang}`;
  else code.removeAttribute("class");
}

/** Milliseconds for which a button says what it did. */
const SAYING = 1500;

/** The button was pressed. */
export async function copyPlain(button: Element, text: string): Promise<void> {
  const done = await copyText(text);
  button.classList.toggle("copied", done);
  say(button, done ? "Copied" : "Could not copy");
  setTimeout(() => {
    button.classList.remove("copied");
    say(button, COPY);
  }, SAYING);
}

function say(button: Element, words: string): void {
  button.setAttribute("aria-label", words);
  button.setAttribute("title", words);
}
