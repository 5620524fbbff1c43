/**
 * A diff as rows to show: lines with their numbers, and gaps where unchanged lines are left out.
 *
 * Everything here is made of plain values; `side` lays the same rows out in two columns.
 */

/** A part of a line's text, from one character up to another. */
export type Mark = readonly [from: number, to: number];

export interface LineRow {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
  /** Line numbers, null where the line is not, or where a patch does not tell. */
  readonly before: number | null;
  readonly after: number | null;
  /** The words that make the difference, where another line is the one this was or became. */
  marks?: readonly Mark[];
  /** The file ends here without a line end. */
  readonly bare?: true;
}

export interface GapRow {
  readonly kind: "gap";
  /** How many lines are not shown; null when a patch does not tell. */
  readonly count: number | null;
  /** What a patch says of the place, such as the function it is in. */
  readonly heading: string;
  /** The lines, if they are known: to be shown when somebody asks. */
  readonly lines: readonly LineRow[];
}

export type DiffRow = LineRow | GapRow;

export interface FileDiff {
  /** Null when there is no file on that side; undefined when nobody said. */
  readonly before?: string | null;
  readonly after?: string | null;
  readonly rows: readonly DiffRow[];
  readonly added: number;
  readonly removed: number;
  /** No text: nothing of it can be shown. */
  readonly binary?: true;
  /** Named, but without a hunk: how it changes is not known. */
  readonly unknown?: true;
  /** Coarser than it could be: comparing line by line would have taken too long. */
  readonly coarse?: true;
  /** Rows beyond the limit that are left out. */
  readonly cut?: number;
}

/** Rows of one file that are shown at most; a page with more is of no use to anybody. */
export const ROW_LIMIT = 5000;

/** Unchanged lines in a row that are far from any change become gaps, unless they take no more room than a gap. */
export function fold(lines: readonly LineRow[], context = 3, few = 2): DiffRow[] {
  const rows: DiffRow[] = [];
  for (let at = 0; at < lines.length;) {
    if (lines[at]!.kind !== "same") {
      rows.push(lines[at++]!);
      continue;
    }
    let end = at;
    while (end < lines.length && lines[end]!.kind === "same") end += 1;
    const from = at === 0 ? 0 : at + context;
    const to = end === lines.length ? end : end - context;
    const hidden = to - from > few ? lines.slice(from, to) : [];
    while (at < end) {
      if (at === from && hidden.length) {
        rows.push({ kind: "gap", count: hidden.length, heading: "", lines: hidden });
        at = to;
      } else rows.push(lines[at++]!);
    }
  }
  return rows;
}

/** The same with fewer unchanged lines around what changed, where room is scarce; they are in the gaps. */
export function tightened(rows: readonly DiffRow[], context: number): DiffRow[] {
  const all: DiffRow[] = [];
  let run: LineRow[] = [];
  const close = () => {
    all.push(...fold(run, context, 0));
    run = [];
  };
  for (const row of rows) {
    if (row.kind !== "gap") run.push(row);
    else {
      close();
      all.push(row);
    }
  }
  close();
  return all;
}

/** At most so many rows, and how many are left out. */
export function limited(rows: DiffRow[], limit = ROW_LIMIT): { rows: DiffRow[]; cut?: number } {
  return rows.length > limit ? { rows: rows.slice(0, limit), cut: rows.length - limit } : { rows };
}

// -- side by side -----------------------------------------------------------------------------------------------------

export interface SideRow {
  readonly kind: "pair";
  readonly left: LineRow | null;
  readonly right: LineRow | null;
}

/** Old on the left, new on the right; what was taken out stands beside what was put in its place. */
export function side(rows: readonly DiffRow[]): (SideRow | GapRow)[] {
  const sides: (SideRow | GapRow)[] = [];
  for (const run of runs(rows)) {
    if ("row" in run) {
      sides.push(run.row.kind === "gap" ? run.row : { kind: "pair", left: run.row, right: run.row });
      continue;
    }
    const { removed, added } = run;
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      sides.push({ kind: "pair", left: removed[at] ?? null, right: added[at] ?? null });
    }
  }
  return sides;
}

export type Run = { row: DiffRow } | { removed: LineRow[]; added: LineRow[] };

/** Rows one by one, but lines that were taken out together with those that were put in their place. */
export function* runs(rows: readonly DiffRow[]): Generator<Run> {
  let removed: LineRow[] = [];
  let added: LineRow[] = [];
  for (const row of rows) {
    const changes = row.kind === "added" || row.kind === "removed";
    const turns = row.kind === "removed" && added.length > 0;
    if ((!changes || turns) && (removed.length || added.length)) {
      yield { removed, added };
      [removed, added] = [[], []];
    }
    if (row.kind === "removed") removed.push(row);
    else if (row.kind === "added") added.push(row);
    else yield { row };
  }
  if (removed.length || added.length) yield { removed, added };
}
