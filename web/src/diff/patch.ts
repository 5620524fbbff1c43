/**
 * Patches as rows: unified diffs of one or many files, and the `*** Begin Patch` form that agents write.
 *
 * Agents make mistakes in them, so nothing is refused: a line that has no place is left out, and hunks without numbers
 * are shown without numbers. A hunk that says how long it is has that many lines; only so is a removed `-- x` told from
 * the name of a file.
 */
import { type DiffRow, type FileDiff, limited, type LineRow, ROW_LIMIT } from "./rows";
import { markWords } from "./words";

const HUNK = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)$/;
const ENVELOPE = /^\*\*\* (Add|Update|Delete) File: ?(.*)$/;
const HEADER = /^(?:index |old mode |new mode |new file mode |deleted file mode |similarity |dissimilarity )/;
const BINARY = /^(?:Binary files .* differ|GIT binary patch)$/;

export function parsePatch(text: string, limit = ROW_LIMIT): FileDiff[] {
  const reader = new Reader();
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const [index, line] of lines.entries()) reader.take(line, lines[index + 1] ?? "");
  return reader.files.map((draft) => finished(draft, limit));
}

interface Draft {
  before?: string | null;
  after?: string | null;
  binary?: true;
  /** Has lines about how the file is kept, which say what became of it. */
  moded?: true;
  /** Its `+++` line was read: the next `---` line begins another file. */
  named?: true;
  rows: DiffRow[];
}

function finished({ rows, moded, named: _, ...facts }: Draft, limit: number): FileDiff {
  const renamed = facts.before && facts.after && facts.before !== facts.after;
  const unknown = !rows.length && !facts.binary && !moded && !renamed;
  return {
    ...facts,
    ...(unknown && { unknown }),
    ...limited(markWords(rows), limit),
    added: rows.filter((row) => row.kind === "added").length,
    removed: rows.filter((row) => row.kind === "removed").length,
  };
}

class Reader {
  readonly files: Draft[] = [];
  #before: number | null = null;
  #after: number | null = null;
  /** Lines that the hunk still has on either side; null when it did not say. */
  #left: { before: number; after: number } | null = null;
  #inHunk = false;

  take(line: string, next: string): void {
    if (line.startsWith("\\ ")) this.#bare();
    else if (this.#left && (this.#left.before > 0 || this.#left.after > 0)) this.#line(line);
    else if (!this.#header(line, next)) this.#line(line);
  }

  /** Whether the line is about files and hunks. */
  #header(line: string, next: string): boolean {
    if (line.startsWith("diff --git ")) this.#file({});
    else if (line.startsWith("--- ") && next.startsWith("+++ ")) this.#names({ before: named(line) });
    else if (line.startsWith("+++ ") && this.#current.rows.length === 0) this.#names({ after: named(line) });
    else if (line.startsWith("rename from ")) this.#current.before = line.slice("rename from ".length);
    else if (line.startsWith("rename to ")) this.#current.after = line.slice("rename to ".length);
    else if (line.startsWith("*** ")) this.#envelope(line);
    else if (line.startsWith("@@")) this.#hunk(line);
    else if (!this.#inHunk && BINARY.test(line)) this.#current.binary = true;
    else return !this.#inHunk && this.#mode(line);
    return true;
  }

  /** Lines about how a file is kept; a file without a line has nothing else to say that it is new, or no more. */
  #mode(line: string): boolean {
    if (line.startsWith("new file mode ")) this.#current.before = null;
    else if (line.startsWith("deleted file mode ")) this.#current.after = null;
    if (!HEADER.test(line)) return false;
    this.#current.moded = true;
    return true;
  }

  get #current(): Draft {
    if (!this.files.length) this.#file({});
    return this.files.at(-1)!;
  }

  #file(draft: Partial<Draft>): void {
    this.files.push({ rows: [], ...draft });
    this.#inHunk = false;
    this.#left = this.#before = this.#after = null;
  }

  #names(paths: Partial<Draft>): void {
    if ("before" in paths && (this.#current.rows.length || this.#current.named)) this.#file({});
    Object.assign(this.#current, paths, "after" in paths && { named: true });
    this.#inHunk = false;
  }

  #envelope(line: string): void {
    const [, action, path] = ENVELOPE.exec(line) ?? [];
    if (action === "Add") this.#file({ before: null, after: path! });
    else if (action === "Delete") this.#file({ before: path!, after: null });
    else if (action === "Update") this.#file({ before: path!, after: path! });
    else if (line.startsWith("*** Move to: ")) this.#current.after = line.slice("*** Move to: ".length);
  }

  #hunk(line: string): void {
    const found = HUNK.exec(line);
    const { rows } = this.#current;
    const heading = found ? found[5]! : line.slice(2).replace(/@@$/, "").trim();
    const [before, after] = found ? [start(found[1]!, found[2]), start(found[3]!, found[4])] : [null, null];
    const skipped = before === null ? null : before - (this.#before ?? 1);
    if (skipped !== 0 || heading) rows.push({ kind: "gap", count: skipped, heading, lines: [] });
    this.#before = before;
    this.#after = after;
    this.#left = found ? { before: Number(found[2] ?? 1), after: Number(found[4] ?? 1) } : null;
    this.#inHunk = true;
  }

  #line(line: string): void {
    const mark = line[0];
    const text = line.slice(1);
    if (mark === "+") this.#push("added", text);
    else if (mark === "-") this.#push("removed", text);
    else if (mark === " " || line === "") this.#push("same", text); // editors take the blank off an empty line
  }

  #push(kind: LineRow["kind"], text: string): void {
    const before = kind === "added" ? null : this.#before;
    const after = kind === "removed" ? null : this.#after;
    this.#current.rows.push({ kind, text, before, after });
    if (kind !== "added") this.#before = this.#before === null ? null : this.#before + 1;
    if (kind !== "removed") this.#after = this.#after === null ? null : this.#after + 1;
    if (!this.#left) return;
    if (kind !== "added") this.#left.before -= 1;
    if (kind !== "removed") this.#left.after -= 1;
  }

  #bare(): void {
    const last = this.#current.rows.at(-1);
    if (last && last.kind !== "gap") this.#current.rows[this.#current.rows.length - 1] = { ...last, bare: true };
  }
}

/** An empty range is named by the line before it. */
const start = (line: string, count: string | undefined): number => Number(line) + (count === "0" ? 1 : 0);

function named(line: string): string | null {
  const path = line.slice(4).split("\t")[0]!.trim();
  return path === "/dev/null" ? null : path.replace(/^[ab]\//, "");
}
