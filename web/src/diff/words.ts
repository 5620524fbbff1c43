/** Which words of a changed line make the difference. */
import { diffWordsWithSpace } from "diff";
import { type DiffRow, type LineRow, type Mark, runs } from "./rows";

/** Characters of both lines together; longer lines are data, and not read word by word. */
const LINE_LIMIT = 1000;
/** Characters of all lines that are compared; a file beyond that is not read word by word either. */
const TOTAL_LIMIT = 40_000;
/** The part of a line that must have stayed for marks to help. */
const ALIKE = 0.4;

/** Mark the words in lines that were changed into one another. The rows are changed in place. */
export function markWords<Rows extends readonly DiffRow[]>(rows: Rows): Rows {
  let budget = TOTAL_LIMIT;
  for (const run of runs(rows)) {
    if ("row" in run) continue;
    // blocks of unequal length were rewritten, and the nth line is not the nth any more
    if (run.removed.length !== run.added.length) continue;
    for (const [index, before] of run.removed.entries()) {
      const after = run.added[index]!;
      const length = before.text.length + after.text.length;
      if (length > LINE_LIMIT || length > budget) continue;
      budget -= length;
      markPair(before, after);
    }
  }
  return rows;
}

function markPair(before: LineRow, after: LineRow): void {
  const found = wordMarks(before.text, after.text);
  if (!found) return;
  before.marks = found.before;
  after.marks = found.after;
}

/** The marks of both lines; null when they have too little in common. */
export function wordMarks(before: string, after: string): { before: Mark[]; after: Mark[] } | null {
  const marks = { before: [] as Mark[], after: [] as Mark[] };
  let [left, right, same] = [0, 0, 0];
  for (const { value, added, removed } of diffWordsWithSpace(before, after)) {
    const length = value.length;
    if (removed) marks.before.push([left, (left += length)]);
    else if (added) marks.after.push([right, (right += length)]);
    else {
      left += length;
      right += length;
      same += value.trim().length;
    }
  }
  return same >= ALIKE * Math.max(before.trim().length, after.trim().length) ? marks : null;
}
