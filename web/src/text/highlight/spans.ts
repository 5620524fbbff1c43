/**
 * Coloured code as values: for each line the lengths of its spans, and what they are.
 *
 * The text itself is never in them; who draws a line cuts its own text, so colours can be late or wrong but never
 * change what is read.
 */
/** What the page has a colour for; "" is plain. */
export type Scope =
  "" | "comment" | "keyword" | "string" | "number" | "name" | "type" | "added" | "removed" | "strong" | "em";

export type Span = readonly [length: number, scope: Scope];
export type Line = readonly Span[];

export interface Part {
  readonly text: string;
  readonly scope: Scope;
  readonly marked: boolean;
}

/** A part of the text to be marked, from one character up to another. */
export type Marked = readonly [from: number, to: number];

const PLAIN: Line = [];

/** The text cut wherever its colour begins or ends, or a mark does. */
export function parts(text: string, spans: Line = PLAIN, marks: readonly Marked[] = []): Part[] {
  const found: Part[] = [];
  let at = 0;
  let mark = 0;
  const upTo = (end: number, scope: Scope) => {
    while (at < end) {
      while (mark < marks.length && marks[mark]![1] <= at) mark += 1;
      const [from, to] = marks[mark] ?? [end, end];
      const marked = from <= at;
      const next = Math.min(end, marked ? to : from);
      found.push({ text: text.slice(at, next), scope, marked });
      at = next;
    }
  };
  for (const [length, scope] of spans) upTo(Math.min(text.length, at + length), scope);
  upTo(text.length, "");
  return found;
}

/** Collects spans in the order of the text, line by line. */
export class LineWriter {
  readonly lines: Span[][] = [[]];

  write(text: string, scope: Scope): void {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#span(end - from, scope);
      this.lines.push([]);
      from = end + 1;
    }
    this.#span(text.length - from, scope);
  }

  #span(length: number, scope: Scope): void {
    if (!length) return;
    const line = this.lines.at(-1) as Span[];
    const last = line.at(-1);
    if (last && last[1] === scope) line[line.length - 1] = [last[0] + length, scope];
    else line.push([length, scope]);
  }
}
