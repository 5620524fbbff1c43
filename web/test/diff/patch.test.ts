import { describe, expect, test } from "vitest";
import { languageOf } from "../../src/diff/language";
import { parsePatch } from "../../src/diff/patch";
import { tightened } from "../../src/diff/rows";
import type { DiffRow, FileDiff } from "../../src/diff/rows";

const brief = ({ rows }: FileDiff): string[] => rows.map(show);
const show = (row: DiffRow): string =>
  row.kind === "gap"
    ? `… ${row.count ?? "?"} ${row.heading}`.trim()
    : `${{ same: " ", added: "+", removed: "-" }[row.kind]}${row.before ?? ""}:${row.after ?? ""} ${row.text}`;

test("a unified diff", () => {
  const [file, ...others] = parsePatch(
    "--- a/src/a.py\n+++ b/src/a.py\n@@ -3,4 +3,4 @@ def f():\n one\n-two\n+zwei\n three\n\n@@ -20 +20,2 @@\n x\n+y\n",
  );
  expect(others).toEqual([]);
  expect(file).toMatchObject({ before: "src/a.py", after: "src/a.py", added: 2, removed: 1 });
  expect(brief(file!)).toEqual([
    ...["… 2 def f():", " 3:3 one", "-4: two", "+:4 zwei", " 5:5 three", " 6:6", "… 13", " 20:20 x", "+:21 y"].map(
      (row) => (row === " 6:6" ? " 6:6 " : row),
    ),
  ]);
});

test("lines that look like the names of files are lines", () => {
  const [file] = parsePatch("--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old remark\n+++ new remark\n select 1\n");
  expect(file).toMatchObject({ added: 1, removed: 1 });
  expect(brief(file!)).toEqual(["-1: -- old remark", "+:1 ++ new remark", " 2:2 select 1"]);
});

test("several files, new ones, deleted ones, renamed ones", () => {
  const files = parsePatch(
    "diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n" +
      "diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\n\\ No newline at end of file\n" +
      "diff --git a/o b/p\nsimilarity index 90%\nrename from o\nrename to p\n",
  );
  expect(files.map(({ before, after, added, removed }) => [before, after, added, removed])).toEqual([
    [null, "n", 1, 0],
    ["d", null, 0, 1],
    ["o", "p", 0, 0],
  ]);
  expect(files[1]!.rows.at(-1)).toMatchObject({ bare: true });
});

test("several edits of one file, each with its own head, are several diffs", () => {
  const one = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
  expect(parsePatch(one + one)).toHaveLength(2);
});

test("the form that agents write", () => {
  const files = parsePatch(
    "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: src/b.py\n@@ class A:\n def f\n-  1\n+  2\n" +
      "*** Add File: new.txt\n+hello\n*** Delete File: old.txt\n*** End Patch\n",
  );
  expect(files.map(({ before, after }) => [before, after])).toEqual([
    ["src/a.py", "src/b.py"],
    [null, "new.txt"],
    ["old.txt", null],
  ]);
  expect(brief(files[0]!)).toEqual(["… ? class A:", " : def f", "-:   1", "+:   2"]);
});

test("bare lines with marks", () => {
  const [file] = parsePatch("-a\n+b\n c\n");
  expect(brief(file!)).toEqual(["-: a", "+: b", " : c"]);
});

test("words are marked", () => {
  const [file] = parsePatch("@@ -1 +1 @@\n-let a = 1;\n+let b = 1;\n");
  expect(file!.rows[0]).toMatchObject({ marks: [[4, 5]] });
});

describe("nothing is refused", () => {
  test.each([
    "",
    "\n",
    "no patch",
    "@@",
    "@@ -1,99 +1,99 @@\n x",
    "+++ x",
    "--- x",
    "\\ what",
    "*** ",
    "@@ -0,0 +0,0 @@\n+x",
    "Binary files a and b differ",
  ])("%j", (text) => {
    expect(() => parsePatch(text)).not.toThrow();
  });

  test("a long one is cut", () => {
    const [file] = parsePatch(`@@ -0,0 +1,9000 @@\n${"+x\n".repeat(9000)}`);
    expect(file).toMatchObject({ added: 9000, cut: 4000 });
  });
});

test.each([
  ["/src/a.tsx", "typescript"],
  ["Makefile", "makefile"],
  ["docker/Dockerfile", "dockerfile"],
  ["C:\\x\\y.PY", "python"],
  ["a.constructor", ""],
  ["LICENSE", ""],
  ["", ""],
])("%j is %j", (path, language) => expect(languageOf(path)).toBe(language));

test("where room is scarce one unchanged line stands beside a change, and the others can be brought back", () => {
  const [file] = parsePatch("@@ -8,7 +8,7 @@\n a\n b\n c\n-old\n+new\n d\n e\n f\n");
  const rows = tightened(file!.rows, 1);
  expect(rows.map((row) => (row.kind === "gap" ? row.count : row.text))).toEqual([7, 2, "c", "old", "new", "d", 2]);
  expect(rows.flatMap((row) => (row.kind === "gap" ? row.lines.map(({ text }) => text) : []))).toEqual([
    "a",
    "b",
    "e",
    "f",
  ]);
});
