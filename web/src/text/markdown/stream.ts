/**
 * Markdown that arrives in pieces, as blocks that can be shown at any time.
 *
 * What is closed is parsed once; only the open end is parsed again, so the cost grows with the length of the text and
 * not with its square. Whatever the pieces, the blocks are those of the whole text: that is the rule a change must not
 * break. An end that grows without ever closing (a huge table) is parsed again each time it has grown by a part of
 * itself, and what came since is shown as it is.
 */
import { OpenFence } from "./fence";
import {
  cuts,
  escapeHtml,
  forcedCut,
  isParsable,
  labelsIn,
  type Links,
  type Rendered,
  render,
  TOO_LONG,
} from "./slices";

/** Makes an agent's HTML harmless. There is no default, so that nobody can forget it. */
export type Sanitise = (html: string) => string;

/** The object of a block that did not change stays the same, and so does the key of its place. */
export type Block =
  /** `raw`: some of it was the agent's own HTML, and was cleaned; all else is made of known tags and escaped text. */
  | { readonly key: number; readonly kind: "html"; readonly html: string; readonly raw: boolean }
  | {
      readonly key: number;
      readonly kind: "code";
      readonly lang: string;
      readonly text: string;
      readonly open: boolean;
    };

interface Slice {
  source: string;
  labels: ReadonlySet<string>;
  block: Block;
}

/** An open end beyond this many characters is parsed again only when it has grown by an eighth. */
const PATIENT = 8192;
const GROWTH = 1 / 8;

/** Characters that are read at once: what is cut after each of them stays short enough for the parser. */
const PIECE = 50_000;

/** What a text has that can be cut: a blank line, a heading, a fence. */
const DIVIDED = /\n[ \t]*\n|^ {0,3}(?:#|`{3}|~{3})/m;

export class MarkdownStream {
  readonly #sanitise: Sanitise;
  #slices: Slice[] = [];
  #blocks: Block[] = [];
  #links: Links = {};
  #tailLinks: Links = {};
  #tail = "";
  #fence: OpenFence | null = null;
  #parsed = 0;
  #tailBlock: Block | null = null;
  #unread = "";
  /** Since blocks were last asked for: labels whose definition changed, and how many slices were closed before. */
  readonly #news = { labels: new Set<string>(), slices: 0 };
  #ended = false;

  constructor(sanitise: Sanitise) {
    this.#sanitise = sanitise;
  }

  append(text: string): void {
    this.#unread += text;
  }

  /** Nothing more comes. */
  end(): void {
    this.#ended = true;
  }

  /** All blocks of the text so far. The work is done here: ask once for each time the page is drawn. */
  blocks(): readonly Block[] {
    if (!this.#read() && !this.#lagging()) return this.#blocks;
    const open = this.#fence ? [this.#fenceBlock(this.#fence, !this.#ended)] : this.#tail ? this.#tailBlocks() : [];
    if (!this.#tail) this.#tailLinks = this.#changed({});
    this.#relink();
    this.#blocks = [...this.#slices.map((slice) => slice.block), ...open];
    return this.#blocks;
  }

  #lagging(): boolean {
    if (!this.#ended) return false;
    const last = this.#blocks.at(-1);
    return this.#fence ? last?.kind === "code" && last.open : this.#parsed < this.#tail.length;
  }

  /** A carriage return may be the half of a line end: without its other half it waits. */
  #read(): boolean {
    const held = !this.#ended && this.#unread.endsWith("\r") ? "\r" : "";
    const read = this.#unread.slice(0, this.#unread.length - held.length).replace(/\r\n?/g, "\n");
    this.#unread = held;
    if (!read) return false;
    for (let from = 0; from < read.length; from += PIECE) this.#take(read.slice(from, from + PIECE));
    return true;
  }

  #take(read: string): void {
    if (this.#fence) return this.#feedFence(this.#fence, read);
    const lineBegins = this.#tail.endsWith("\n");
    this.#tail += read;
    if (lineBegins || read.includes("\n")) this.#cut();
    while (this.#tail.length > TOO_LONG) {
      const place = forcedCut(this.#tail);
      this.#commit(this.#tail.slice(0, place));
      this.#setTail(this.#tail.slice(place));
    }
  }

  // -- the open end ---------------------------------------------------------------------------------------------------

  /** Close what can be closed. */
  #cut(): void {
    if (this.#waits() || !DIVIDED.test(this.#tail)) return;
    let from = 0;
    const places = isParsable(this.#tail) ? attempt(() => cuts(this.#tail)) : null;
    for (const place of places ?? []) {
      this.#commit(this.#tail.slice(from, place));
      from = place;
    }
    if (from) this.#setTail(this.#tail.slice(from));
    const fence = OpenFence.begin(this.#tail);
    if (!fence) return;
    const rest = this.#tail.slice(fence.source.length);
    this.#setTail("");
    this.#fence = fence;
    this.#feedFence(fence, rest);
  }

  #feedFence(fence: OpenFence, text: string): void {
    const rest = fence.append(text);
    if (rest === null) return;
    this.#slices.push({ source: fence.source, labels: new Set(), block: this.#fenceBlock(fence, false) });
    this.#fence = null;
    this.#setTail(rest);
    if (rest.includes("\n")) this.#cut();
  }

  #fenceBlock(fence: OpenFence, open: boolean): Block {
    return { key: this.#slices.length, kind: "code", ...fence.code, open };
  }

  #setTail(tail: string): void {
    this.#tail = tail;
    this.#parsed = 0;
    this.#tailBlock = null;
  }

  #waits(): boolean {
    const grown = this.#tail.length - this.#parsed;
    return !this.#ended && this.#parsed > PATIENT && grown < this.#parsed * GROWTH;
  }

  #tailBlocks(): Block[] {
    const key = this.#slices.length;
    if (this.#tailBlock && this.#waits()) {
      const rest = this.#tail.slice(this.#parsed);
      return [this.#tailBlock, { key: key + 1, kind: "html", html: asItCame(rest), raw: false }];
    }
    const { rendered, defined } = this.#render(this.#tail, this.#links);
    this.#parsed = this.#tail.length;
    this.#tailLinks = this.#changed(defined);
    this.#tailBlock = this.#block(key, rendered);
    return [this.#tailBlock];
  }

  // -- what is closed -------------------------------------------------------------------------------------------------

  #commit(source: string): void {
    const { rendered, defined } = this.#render(source, this.#links);
    const block = this.#block(this.#slices.length, rendered);
    this.#slices.push({ source, labels: labelsIn(source), block });
    for (const label of Object.keys(defined)) this.#news.labels.add(label);
    Object.assign(this.#links, defined);
  }

  /** Note which definitions of the open end are not what they were. */
  #changed(now: Links): Links {
    const old = this.#tailLinks;
    for (const label of [...Object.keys(old), ...Object.keys(now)]) {
      const same = old[label]?.href === now[label]?.href && old[label]?.title === now[label]?.title;
      if (!same) this.#news.labels.add(label);
    }
    return now;
  }

  /** Render again what is closed and uses a definition that came or changed since. */
  #relink(): void {
    const { labels, slices } = this.#news;
    const known = { ...this.#tailLinks, ...this.#links };
    for (let index = labels.size ? 0 : slices; index < this.#slices.length; index += 1) {
      const slice = this.#slices[index]!;
      const uses = (label: string) => labels.has(label) || (index >= slices && Object.hasOwn(this.#tailLinks, label));
      if (![...slice.labels].some(uses)) continue;
      slice.block = this.#block(slice.block.key, this.#render(slice.source, known).rendered);
    }
    labels.clear();
    this.#news.slices = this.#slices.length;
  }

  /** Nothing that an agent writes may end the page: what the parser gives up on is shown as it came. */
  #render(source: string, known: Links): { rendered: Rendered; defined: Links } {
    const done = isParsable(source) ? attempt(() => render(source, known)) : null;
    return done ?? { rendered: { html: asItCame(source), raw: false }, defined: {} };
  }

  #block(key: number, rendered: Rendered): Block {
    if (rendered.code) return { key, kind: "code", ...rendered.code, open: false };
    const { html, raw } = rendered;
    return { key, kind: "html", html: raw ? this.#sanitise(html) : html, raw };
  }
}

const asItCame = (text: string): string => `<p class="md-plain">${escapeHtml(text)}</p>`;

function attempt<Value>(work: () => Value): Value | null {
  try {
    return work();
  } catch {
    return null;
  }
}

/** A whole text at once. */
export function markdown(text: string, sanitise: Sanitise): readonly Block[] {
  const stream = new MarkdownStream(sanitise);
  stream.append(text);
  stream.end();
  return stream.blocks();
}
