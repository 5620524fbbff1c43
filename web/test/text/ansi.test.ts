import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AnsiScreen, plainText } from "../../src/text/ansi/screen";
import { PLAIN } from "../../src/text/ansi/style";

function screen(...pieces: string[]): AnsiScreen {
  const made = new AnsiScreen();
  for (const piece of pieces) made.write(piece);
  return made;
}

const shown = (made: AnsiScreen) => made.lines().map((line) => line.spans.map(({ text, style }) => [text, style]));
const text = (made: AnsiScreen) => made.lines().map((line) => line.spans.map((span) => span.text).join(""));

describe("colours", () => {
  test.each([
    [
      "\u001b[31mred\u001b[0m plain",
      [
        ["red", { foreground: 1 }],
        [" plain", {}],
      ],
    ],
    ["\u001b[1;32mx", [["x", { bold: true, foreground: 2 }]]],
    [
      "\u001b[1mx\u001b[22my",
      [
        ["x", { bold: true }],
        ["y", {}],
      ],
    ],
    ["\u001b[97;104mx", [["x", { foreground: 15, background: 12 }]]],
    ["\u001b[38;5;208mx", [["x", { foreground: 208 }]]],
    ["\u001b[48;2;1;20;255mx", [["x", { background: "#0114ff" }]]],
    ["\u001b[38:2::1:20:255mx", [["x", { foreground: "#0114ff" }]]],
    ["\u001b[38;5;999mx", [["x", {}]]],
    ["\u001b[38;2;1;2mx", [["x", {}]]],
    ["\u001b[3;4;7;8;9mx", [["x", { italic: true, underline: true, inverse: true, hidden: true, strike: true }]]],
    ["\u001b[mx\u001b[123mx", [["xx", {}]]],
  ])("%j", (output, expected) => {
    const spans = shown(screen(output as string))[0]!.map(([piece, style]) => [
      piece,
      JSON.parse(JSON.stringify(style)),
    ]);
    const joined: unknown[][] = [];
    for (const [piece, style] of spans) {
      const last = joined.at(-1);
      if (last && JSON.stringify(last[1]) === JSON.stringify(style)) last[0] = `${last[0]}${piece}`;
      else joined.push([piece, style]);
    }
    expect(joined).toEqual(expected);
  });
});

describe("writing over", () => {
  test.each([
    ["10%\r20%\r100%", ["100%"]],
    ["long line\rshort\u001b[K", ["short"]],
    ["abc\b\bX", ["aXc"]],
    ["one\ntwo\n\u001b[2A\u001b[Knew\n", ["new", "two"]],
    ["one\ntwo\u001b[1F\u001b[0Jx", ["x"]],
    ["a\u001b[5Cb", ["a     b"]],
    ["abcdef\u001b[3GX", ["abXdef"]],
    ["abcdef\u001b[2D\u001b[1K", ["     f"]],
    ["a\nb\nc\u001b[2J\u001b[Hnew", ["a", "b", "c", "new"]],
    ["a\n\u001b[H\u001b[2J\u001b[3Jnew", ["a", "new"]],
    ["a\n\u001b[2Jone\ntwo\u001b[2J\u001b[Hthree\u001b[2Jfour", ["a", "four"]],
    ["\u001b[2J\u001b[Hnew", ["new"]],
    ["\u001b[100Ax\u001b[100By", ["xy"]],
    ["😀😀\rab", ["ab😀"]],
    ["😀😀\ra", ["a 😀"]],
    ["a\r\nb\r\n", ["a", "b"]],
    ["tab\there", ["tab\there"]],
    ["", []],
    ["\n\n", ["", ""]],
  ])("%j", (output, expected) => expect(text(screen(output))).toEqual(expected));

  test("keeps the colours of what is left", () => {
    const made = screen("\u001b[31mabcdef\u001b[0m\r12\u001b[32m3");
    expect(shown(made)[0]).toEqual([
      ["12", PLAIN],
      ["3", { foreground: 2 }],
      ["def", { foreground: 1 }],
    ]);
  });
});

describe("what is no colour and no move is left out", () => {
  test.each([
    ["\u001b]0;title\u0007text", "text"],
    ["\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u001b\\", "link"],
    ["\u001b]52;c;aGk=\u0007x", "x"],
    ["\u001bPq#0;2;0;0;0\u001b\\x", "x"],
    ["\u001b[6nx\u001b[?25lx\u001b[>cx", "xxx"],
    ["\u001b(Bx\u001b=x\u001bMx", "xxx"],
    ["\u0000a\u0007b\u007fc\u009bd", "abcd"],
    ["\u001b[31;\u0001mx", "31;mx"],
    ["<b>&amp;</b>", "<b>&amp;</b>"],
  ])("%j", (output, expected) => expect(plainText(output)).toBe(expected));
});

test("pieces may end anywhere", () => {
  const part = fc.constantFrom(
    ...[
      "a",
      "bc",
      "é😀",
      "\n",
      "\r",
      "\b",
      "\t",
      "\u001b[31m",
      "\u001b[0m",
      "\u001b[1;38;5;9m",
      "\u001b[K",
      "\u001b[2A",
    ],
    ...[
      "\u001b[3C",
      "\u001b[J",
      "\u001b[2J",
      "\u001b[H",
      "\u001b]0;t\u0007",
      "\u001b]8;;u\u001b\\",
      "\u001b",
      "[",
      "m",
      "\u001b[?25h",
    ],
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 40 }), fc.integer({ min: 1, max: 5 }), (parts, size) => {
      const output = parts.join("");
      const pieces = output.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? [];
      expect(text(screen(...pieces))).toEqual(text(screen(output)));
      expect(shown(screen(...pieces))).toEqual(shown(screen(output)));
    }),
    { numRuns: 400, seed: 7 },
  );
});

test("lines that did not change stay the same objects", () => {
  const made = screen("one\ntwo\n");
  const before = made.lines();
  made.write("three");
  const after = made.lines();
  expect(after[0]).toBe(before[0]);
  expect(after.map((line) => line.key)).toEqual([0, 1, 2]);
  made.write("!");
  expect(made.lines()[2]).not.toBe(after[2]);
  expect(after[2]!.spans[0]!.text).toBe("three");
});

describe("limits", () => {
  test("old lines are dropped and counted", () => {
    const made = new AnsiScreen({ lines: 100 });
    for (let line = 0; line < 1000; line += 1) made.write(`line ${line}\n`);
    const kept = text(made);
    expect(kept.length).toBeLessThanOrEqual(126);
    expect(kept.length + made.dropped).toBe(1000);
    expect(kept.at(-1)).toBe("line 999");
    expect(made.lines().at(-1)!.key).toBe(999);
  });

  test("a line without an end is broken", () => {
    const made = new AnsiScreen({ columns: 10 });
    made.write("x".repeat(25));
    expect(text(made)).toEqual(["x".repeat(10), "x".repeat(10), "x".repeat(5)]);
    made.write("\u001b[999999999Cy");
    expect(text(made).at(-1)).toBe(`${"x".repeat(5)}    y`);
  });

  test("a sequence without an end does not swallow the rest", () => {
    const made = screen("\u001b]0;");
    made.write("x".repeat(5000));
    made.write("end");
    expect(text(made).join("")).toContain("end");
    expect(plainText(`\u001b[${"1;".repeat(5000)}mend`)).toContain("end");
  });

  test("moving makes no lines", () => {
    expect(text(screen("\u001b[100000000B\u001b[500;500Hx")).length).toBe(1);
  });
});
