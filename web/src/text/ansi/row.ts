/** One line of a terminal: spans of text, each in one style, that can be written over. */
import { PLAIN, type Style } from "./style";

export interface Span {
  readonly text: string;
  readonly style: Style;
}

/** A line to show. The object of one that did not change stays the same. */
export interface Line {
  readonly key: number;
  readonly spans: readonly Span[];
}

export class Row {
  readonly #key: number;
  #spans: Span[] = [];
  #shown: Line | null = null;
  length = 0;

  constructor(key: number) {
    this.#key = key;
  }

  get line(): Line {
    return (this.#shown ??= { key: this.#key, spans: [...this.#spans] });
  }

  /** Write from a column on, over what is there. */
  put(column: number, text: string, style: Style): void {
    this.#shown = null;
    if (column >= this.length) {
      if (column > this.length) this.#append(" ".repeat(column - this.length), PLAIN);
      this.#append(text, style);
      return;
    }
    const right = this.#cut(column + text.length, this.length);
    this.#replace([...this.#cut(0, column), { text, style }, ...right]);
  }

  /** Wipe the columns from one up to another; at the end of the line they are gone, elsewhere blank. */
  erase(from: number, to: number): void {
    this.#shown = null;
    if (to >= this.length) this.#replace(this.#cut(0, from));
    else if (from < to) this.put(from, " ".repeat(to - from), PLAIN);
  }

  #append(text: string, style: Style): void {
    const last = this.#spans.at(-1);
    if (last?.style === style) this.#spans[this.#spans.length - 1] = { text: last.text + text, style };
    else if (text) this.#spans.push({ text, style });
    this.length += text.length;
  }

  #replace(spans: Span[]): void {
    this.#spans = [];
    this.length = 0;
    for (const { text, style } of spans) this.#append(text, style);
  }

  /** The spans between two columns. Half a character that a cut leaves becomes a blank. */
  #cut(from: number, to: number): Span[] {
    const kept: Span[] = [];
    let start = 0;
    for (const { text, style } of this.#spans) {
      const piece = text.slice(Math.max(0, from - start), Math.max(0, to - start));
      if (piece) kept.push({ text: piece.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, " "), style });
      start += text.length;
    }
    return kept;
  }
}
