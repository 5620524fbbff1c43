/**
 * The difference of two texts, line by line.
 *
 * What is equal at both ends is set aside first, which leaves little of most edits. A search that would take too long
 * is given up: then all of the rest is replaced, and the diff says that it is coarse.
 */
import { diffArrays } from "diff";
import { type FileDiff, fold, type LineRow, limited, ROW_LIMIT } from "./rows";
import { markWords } from "./words";

/** Changes that the search may find before it is given up. */
const EDIT_LIMIT = 1000;
/** Lines beyond which it is not begun. */
const LINE_LIMIT = 50_000;

interface Side {
  lines: string[];
  bare: boolean;
}

/** Null is no file. Texts that both end without a line end are pieces of a file, and that says nothing. */
export function diffTexts(before: string | null, after: string | null, context = 3, limit = ROW_LIMIT): FileDiff {
  const pieces = !endsLine(before) && !endsLine(after);
  const [old, now] = [sideOf(before ?? "", pieces), sideOf(after ?? "", pieces)];
  const { lines, coarse } = compare(old, now);
  return {
    ...(before === null && { before: null }),
    ...(after === null && { after: null }),
    ...limited(fold(markWords(lines), context), limit),
    added: lines.filter((line) => line.kind === "added").length,
    removed: lines.filter((line) => line.kind === "removed").length,
    ...(coarse && { coarse }),
  };
}

const endsLine = (text: string | null): boolean => !text || text.endsWith("\n");

function sideOf(text: string, piece: boolean): Side {
  const lines = text.split("\n");
  const bare = lines.at(-1) !== "" && !piece;
  if (lines.at(-1) === "") lines.pop();
  return { lines, bare };
}

function compare(old: Side, now: Side): { lines: LineRow[]; coarse?: true } {
  const limit = Math.min(old.lines.length, now.lines.length);
  // a last line with and one without a line end are not the same line
  const differ = (at: number, other: number) =>
    old.lines[at] !== now.lines[other] ||
    (at === old.lines.length - 1 && old.bare) !== (other === now.lines.length - 1 && now.bare);
  let head = 0;
  while (head < limit && !differ(head, head)) head += 1;
  let tail = 0;
  while (tail < limit - head && !differ(old.lines.length - 1 - tail, now.lines.length - 1 - tail)) tail += 1;

  const writer = new Writer(old, now);
  writer.same(head);
  const [rest, others] = [
    old.lines.slice(head, old.lines.length - tail),
    now.lines.slice(head, now.lines.length - tail),
  ];
  const found = search(marked(rest, old.bare && !tail), marked(others, now.bare && !tail));
  for (const { added, removed, count } of found ?? [{ removed: true, added: false, count: rest.length }]) {
    if (removed) writer.removed(count);
    else if (added) writer.added(count);
    else writer.same(count);
  }
  if (!found) writer.added(others.length);
  writer.same(tail);
  return found ? { lines: writer.rows } : { lines: writer.rows, coarse: true };
}

/** So that it differs from the same line with a line end. */
const marked = (lines: string[], bare: boolean): string[] =>
  bare && lines.length ? [...lines.slice(0, -1), `${lines.at(-1)}\n`] : lines;

function search(old: string[], now: string[]) {
  if (!old.length || !now.length) {
    return [
      { removed: true, added: false, count: old.length },
      { removed: false, added: true, count: now.length },
    ];
  }
  if (old.length + now.length > LINE_LIMIT || strangers(old, now) + strangers(now, old) > EDIT_LIMIT) return undefined;
  return diffArrays(old, now, { maxEditLength: EDIT_LIMIT });
}

/** Lines that the other side has nowhere: each of them is a change, however the search ends. */
function strangers(lines: string[], others: string[]): number {
  const known = new Set(others);
  return lines.reduce((sum, line) => sum + (known.has(line) ? 0 : 1), 0);
}

class Writer {
  readonly rows: LineRow[] = [];
  #before = 0;
  #after = 0;

  constructor(
    readonly old: Side,
    readonly now: Side,
  ) {}

  same(count: number): void {
    for (let at = 0; at < count; at += 1) this.#push("same", this.#before++, this.#after++);
  }

  removed(count: number): void {
    for (let at = 0; at < count; at += 1) this.#push("removed", this.#before++, null);
  }

  added(count: number): void {
    for (let at = 0; at < count; at += 1) this.#push("added", null, this.#after++);
  }

  #push(kind: LineRow["kind"], before: number | null, after: number | null): void {
    const [side, at] = before === null ? [this.now, after!] : [this.old, before];
    const bare = side.bare && at === side.lines.length - 1;
    const numbers = { before: before === null ? null : before + 1, after: after === null ? null : after + 1 };
    this.rows.push({ kind, text: side.lines[at]!, ...numbers, ...(bare && { bare: true as const }) });
  }
}
