import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type DiffRow, type FileDiff, type LineRow, side } from "../../src/diff/rows";
import { diffTexts } from "../../src/diff/texts";
import { wordMarks } from "../../src/diff/words";

const all = (diff: FileDiff): LineRow[] => diff.rows.flatMap((row) => (row.kind === "gap" ? row.lines : [row]));
const brief = (rows: readonly DiffRow[]): string[] =>
  rows.map((row) =>
    row.kind === "gap" ? `… ${row.count}` : `${{ same: " ", added: "+", removed: "-" }[row.kind]}${row.text}`,
  );
const numbered = (count: number): string => Array.from({ length: count }, (_, line) => `line ${line}\n`).join("");

test("a changed line between unchanged ones", () => {
  const diff = diffTexts(numbered(20), numbered(20).replace("line 10\n", "line ten\n"));
  expect(brief(diff.rows)).toEqual([
    ...["… 7", " line 7", " line 8", " line 9", "-line 10", "+line ten", " line 11", " line 12", " line 13", "… 6"],
  ]);
  expect(diff).toMatchObject({ added: 1, removed: 1 });
  expect(diff.rows[4]).toMatchObject({ before: 11, after: null, marks: [[5, 7]] });
  expect(diff.rows[5]).toMatchObject({ before: null, after: 11, marks: [[5, 8]] });
});

test("a file that was not, and one that is no more", () => {
  expect(diffTexts(null, "a\nb\n")).toMatchObject({ before: null, added: 2, removed: 0 });
  expect(diffTexts("a\n", null)).toMatchObject({ after: null, added: 0, removed: 1 });
  expect(diffTexts("", "")).toEqual({ rows: [], added: 0, removed: 0 });
  expect(diffTexts("a\n", "a\n")).toMatchObject({ added: 0, removed: 0 });
});

test("a line end that is missing is a difference, unless both are pieces of a file", () => {
  expect(brief(diffTexts("a\nb", "a\nb\n").rows)).toEqual([" a", "-b", "+b"]);
  expect(diffTexts("a\nb", "a\nb\n").rows[1]).toMatchObject({ bare: true });
  expect(brief(diffTexts("a\nb", "a\nc").rows)).toEqual([" a", "-b", "+c"]);
  expect(diffTexts("a\nb", "a\nc").rows[2]).not.toHaveProperty("bare");
});

test("moved and repeated lines are paired as few changes as possible", () => {
  expect(
    brief(diffTexts("{\n}\n{\nx\n}\n", "{\n}\n{\ny\n}\n{\nx\n}\n").rows).filter((line) => line[0] !== " "),
  ).toHaveLength(3);
});

const line = fc.constantFrom("a", "b", "c", "", "  a", "long line of words", "long line of other words");
const text = fc
  .array(line, { maxLength: 30 })
  .chain((lines) => fc.constantFrom(lines.join("\n"), `${lines.join("\n")}\n`));

test("the rows hold both texts, with their numbers", () => {
  fc.assert(
    fc.property(text, text, fc.integer({ min: 0, max: 4 }), (before, after, context) => {
      const rows = all(diffTexts(before, after, context));
      const old = rows.filter((row) => row.kind !== "added");
      const now = rows.filter((row) => row.kind !== "removed");
      expect(old.map((row) => row.text)).toEqual(
        before
          .replace(/\n$/, "")
          .split("\n")
          .slice(0, before ? undefined : 0),
      );
      expect(now.map((row) => row.text)).toEqual(
        after
          .replace(/\n$/, "")
          .split("\n")
          .slice(0, after ? undefined : 0),
      );
      expect(old.map((row) => row.before)).toEqual(old.map((_, index) => index + 1));
      expect(now.map((row) => row.after)).toEqual(now.map((_, index) => index + 1));
    }),
    { numRuns: 400, seed: 7 },
  );
});

describe("side by side", () => {
  test("what was taken out stands beside what was put in its place", () => {
    const rows = side(diffTexts("a\nb\nc\nd\n", "a\nx\ny\nz\nd\n").rows);
    expect(rows.map((row) => (row.kind === "pair" ? [row.left?.text, row.right?.text] : null))).toEqual([
      ["a", "a"],
      ["b", "x"],
      ["c", "y"],
      [undefined, "z"],
      ["d", "d"],
    ]);
  });

  test("no row is lost", () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        const { rows } = diffTexts(before, after);
        const sides = side(rows);
        const lines = new Set(
          sides.flatMap((row): (DiffRow | null)[] => (row.kind === "pair" ? [row.left, row.right] : [row])),
        );
        lines.delete(null);
        expect(lines).toEqual(new Set(rows));
      }),
      { numRuns: 200, seed: 7 },
    );
  });
});

describe("words", () => {
  test.each([
    ["const a = 1;", "const b = 1;", [[6, 7]], [[6, 7]]],
    ["foo(bar)", "foo(bar, baz)", [], [[7, 12]]],
    ["  x", "    x", [[0, 2]], [[0, 4]]],
  ])("%j → %j", (before, after, left, right) => {
    expect(wordMarks(before, after)).toEqual({ before: left, after: right });
  });

  test("lines with too little in common have none", () => {
    expect(wordMarks("return nothing at all", "import os, sys")).toBeNull();
  });
});

describe("large files", () => {
  test("one change in many lines is found", () => {
    const many = numbered(50_000);
    const diff = diffTexts(many, many.replace("line 30000\n", "new\nnewer\n"));
    expect(diff).toMatchObject({ added: 2, removed: 1 });
    expect(diff.rows.length).toBeLessThan(20);
  });

  test("a search that would take too long is given up", () => {
    const before = Array.from({ length: 10_000 }, (_, at) => `old ${at}\n`).join("");
    const after = Array.from({ length: 10_000 }, (_, at) => `new ${at}\n`).join("");
    const diff = diffTexts(`same\n${before}same\n`, `same\n${after}same\n`);
    expect(diff).toMatchObject({ added: 10_000, removed: 10_000, coarse: true });
    expect(diff.rows).toHaveLength(5000);
    expect(diff.cut).toBe(15_002);
  });

  test("a file of one endless line is not read word by word", () => {
    const diff = diffTexts(`${"a ".repeat(500_000)}\n`, `${"a ".repeat(500_000)}b\n`);
    expect(diff.rows[0]).not.toHaveProperty("marks");
  });
});
