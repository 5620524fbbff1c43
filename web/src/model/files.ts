/** What several changes of one file amount to. */
import { MERGED_CHANGES } from "./tables.gen";
import type { FileChange, FileState } from "./wire.gen";

const HUNK = /^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@/;
const ANY_HUNK = new RegExp(HUNK.source, "m");

/** Add one change to what is known of its file. Made and then deleted leaves no trace, so it is forgotten. */
export function mergeChange(files: Map<string, FileState>, change: FileChange): void {
  if (!change.path) return;
  const [added, removed] = lineCounts(change);
  const known = files.get(change.path);
  if (!known) {
    const { path, changeType } = change;
    files.set(path, { path, changeType, linesAdded: added, linesRemoved: removed, changes: 1 });
    return;
  }
  const merged = MERGED_CHANGES[`${known.changeType} ${change.changeType}`];
  if (!merged) {
    files.delete(change.path);
    return;
  }
  known.changeType = merged;
  known.linesAdded += added;
  known.linesRemoved += removed;
  known.changes += 1;
}

/** Lines added and removed: as told, else counted in the diff. */
export function lineCounts(change: FileChange): [added: number, removed: number] {
  let { linesAdded: added, linesRemoved: removed } = change;
  if ((added === undefined || removed === undefined) && change.diff) {
    const [plus, minus] = count(change.diff);
    added ??= plus;
    removed ??= minus;
  }
  return [Math.max(added ?? 0, 0), Math.max(removed ?? 0, 0)];
}

/** Lines by their mark. A hunk says how long it is; only so is a removed `-- x` told from the name of a file. */
function count(diff: string): [plus: number, minus: number] {
  let [plus, minus, before, after] = [0, 0, 0, 0];
  const bare = !ANY_HUNK.test(diff);
  for (const line of diff.split("\n")) {
    const mark = line[0];
    if (bare) {
      if (mark === "+" && !line.startsWith("+++ ")) plus += 1;
      if (mark === "-" && !line.startsWith("--- ")) minus += 1;
    } else if (before > 0 || after > 0) {
      if (mark === "+") plus += 1;
      if (mark === "-") minus += 1;
      if (mark !== "+" && mark !== "\\") before -= 1;
      if (mark !== "-" && mark !== "\\") after -= 1;
    } else {
      const found = HUNK.exec(line);
      if (found) [before, after] = [Number(found[1] || 1), Number(found[2] || 1)];
    }
  }
  return [plus, minus];
}
