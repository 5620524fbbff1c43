/**
 * Markdown in slices: runs of blocks that mean the same alone as they do within the whole text.
 *
 * A text is cut only where nothing that may still follow can join what is on both sides. The one thing that reaches
 * across cuts is a link's definition, so a slice tells which definitions it holds and which it may use.
 */
import { Lexer, type MarkedOptions, Parser, Renderer, type Token, Tokenizer, type Tokens } from "marked";
import { AWAY_ATTRIBUTES, isPicture, targetOf } from "./targets";

export type Links = Record<string, { href: string | null; title: string | null | undefined }>;

/**
 * One slice as HTML, or as the code of a fence that stands alone. `raw`: there is HTML in it that the agent wrote,
 * which somebody must clean; all else is written here, of escaped text and known tags.
 */
export type Rendered = { html: string; raw: boolean; code?: undefined } | { html?: undefined; code: Code };

export interface Code {
  lang: string;
  text: string;
}

class SliceTokenizer extends Tokenizer {
  /** A definition ends at a blank line, as CommonMark has it; else no paragraph would ever be known to be one. */
  override def(source: string): Tokens.Def | undefined {
    if (!/^ {0,3}\[/.test(source)) return undefined;
    const blank = source.search(/\n[ \t]*\n/);
    return super.def(blank < 0 ? source : source.slice(0, blank + 1));
  }
}

class SliceRenderer extends Renderer {
  raw = false;

  override html(token: Tokens.HTML | Tokens.Tag): string {
    this.raw = true;
    return super.html(token);
  }

  override code({ text, lang, codeBlockStyle }: Tokens.Code): string {
    const indented = codeBlockStyle === "indented"; // its last line end is not part of it
    return codeHtml({ lang: language(lang), text: indented ? text.replace(/\n$/, "") : text });
  }

  override link({ href, title, tokens }: Tokens.Link): string {
    return linkHtml(href, title, this.parser.parseInline(tokens));
  }

  /** A picture from elsewhere becomes a link that one may follow. */
  override image({ href, title, text }: Tokens.Image): string {
    if (!isPicture(href)) return linkHtml(href, title, escapeHtml(text || href));
    return `<img src="${escapeHtml(href)}" alt="${escapeHtml(text)}"${titleHtml(title)}>`;
  }
}

function linkHtml(address: string, title: string | null | undefined, inner: string): string {
  const target = targetOf(address);
  if (!target) return `<a${titleHtml(title)}>${inner}</a>`;
  if ("path" in target) return `<a data-path="${escapeHtml(target.path)}"${titleHtml(title)}>${inner}</a>`;
  // an address may be written with entities; they cannot change how it begins
  const href = target.href.replace(/[<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
  const { target: frame, rel } = AWAY_ATTRIBUTES;
  return `<a href="${href}"${titleHtml(title)} target="${frame}" rel="${rel}">${inner}</a>`;
}

const titleHtml = (title: string | null | undefined): string => (title ? ` title="${escapeHtml(title)}"` : "");

const options = (): MarkedOptions => ({ gfm: true, tokenizer: new SliceTokenizer() });

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

export function codeHtml({ lang, text }: Code): string {
  const named = lang ? ` class="language-${escapeHtml(lang)}"` : "";
  return `<pre><code${named}>${escapeHtml(text)}\n</code></pre>\n`;
}

/** The first word of what stands behind the fence. */
export const language = (info: string | undefined): string => /^[\w#+.-]*/.exec(info ?? "")![0];

// -- cutting ----------------------------------------------------------------------------------------------------------

/** Blocks that end at a blank line, whatever follows. Lists and indented code may go on behind it. */
const endsAtBlank = (token: Token): boolean => /^(?:paragraph|table|blockquote|def)$/.test(token.type);
/** Blocks that end with their own line, whatever follows. */
const ends = (token: Token): boolean => token.type === "heading" || token.type === "hr" || isFence(token);
/** Blocks that begin with their own line, whatever is before. */
const begins = (token: Token): boolean => (token.type === "heading" && /^ {0,3}#/.test(token.raw)) || isFence(token);
const isFence = (token: Token): boolean => token.type === "code" && (token as Tokens.Code).codeBlockStyle === undefined;

/** Where the text may be cut for good, in order. Throws what marked throws. */
export function cuts(text: string): number[] {
  const tokens = new Lexer(options()).blockTokens(text, []);
  const found: number[] = [];
  let place = 0;
  let folds = 0;
  let before: Token | undefined;
  for (const token of tokens) {
    const whole = token.type !== "space" && folds === 0;
    if (whole && before !== undefined && divides(text, place, before, token)) found.push(place);
    place += token.raw.length;
    folds = Math.max(0, folds + opened(token));
    if (token.type !== "space") before = token;
  }
  return place === text.length ? found : [];
}

/**
 * How many folds a block leaves open. What is between `<details>` and its end is Markdown that belongs into it: cut
 * apart, the fold would be empty and its content beside it. One without a summary is more likely to be a word.
 */
function opened({ type, raw }: Token): number {
  const ended = type === "code" ? 0 : (raw.match(/<\/details>/gi)?.length ?? 0);
  return (type === "html" ? (raw.match(/<details\b[^<>]*>(?=\s*<summary\b)/gi)?.length ?? 0) : 0) - ended;
}

function divides(text: string, place: number, before: Token, after: Token): boolean {
  const blank = /\n[ \t]*\n$/.test(text.slice(Math.max(0, place - 200), place));
  if (ends(before) || (blank && endsAtBlank(before))) return true;
  const lineIsWhole = text.indexOf("\n", place) >= 0;
  return lineIsWhole && (blank || begins(after));
}

// -- rendering --------------------------------------------------------------------------------------------------------

/** More levels than anybody writes; the parser's time grows with their square. */
const TOO_DEEP = /^[ \t]*(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+){50}/m;
/** Characters of one slice beyond which it is not parsed. */
export const TOO_LONG = 200_000;

/** Where something that never ends is cut all the same, so that all of it is parsed: at its last blank line, or line. */
export function forcedCut(text: string): number {
  const [blank, line] = [text.lastIndexOf("\n\n", TOO_LONG - 2) + 2, text.lastIndexOf("\n", TOO_LONG - 1) + 1];
  return blank > TOO_LONG / 2 ? blank : line > TOO_LONG / 2 ? line : TOO_LONG;
}

/** Marks of emphasis in one line, for which the same holds. */
const TOO_MARKED = /(?:[*_~][^*_~\n]*){2000}/;

export const isParsable = (source: string): boolean =>
  source.length <= TOO_LONG && !TOO_DEEP.test(source) && !(source.length > 4000 && TOO_MARKED.test(source));

/** The slice with the definitions known elsewhere, and those that it adds. Throws what marked throws. */
export function render(source: string, known: Links): { rendered: Rendered; defined: Links } {
  const lexer = new Lexer(options());
  const links = Object.assign(lexer.tokens.links, known) as Links;
  lexer.blockTokens(source, lexer.tokens);
  for (const { src, tokens } of lexer.inlineQueue) {
    // a raw `<a>` that one block leaves open is no business of the next one
    Object.assign(lexer.state, { inRawBlock: false, inLink: false });
    lexer.inlineTokens(src, tokens);
  }
  const defined = Object.fromEntries(Object.entries(links).filter(([label]) => !Object.hasOwn(known, label)));
  return { rendered: renderTokens(lexer.tokens), defined };
}

function renderTokens(tokens: Token[]): Rendered {
  const [only, ...others] = tokens.filter((token) => token.type !== "space");
  if (only && !others.length && isFence(only)) {
    const { lang, text } = only as Tokens.Code;
    return { code: { lang: language(lang), text } };
  }
  const renderer = new SliceRenderer();
  const html = Parser.parse(tokens, { gfm: true, renderer });
  return { html, raw: renderer.raw };
}

/** A label as definitions are found by. */
const label = (text: string): string => text.trim().replace(/\s+/g, " ").toLowerCase().toUpperCase().toLowerCase();

/** The labels of all definitions that this source might use. */
export function labelsIn(source: string): ReadonlySet<string> {
  if (!source.includes("[")) return NONE;
  return new Set([...source.matchAll(/\[((?:\\[\s\S]|[^[\]\\])+)\]/g)].map((found) => label(found[1]!)));
}

const NONE: ReadonlySet<string> = new Set();
