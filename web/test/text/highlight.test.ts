import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { slices } from "../../src/text/highlight/grammars";
import { isTurning, pieces, visible } from "../../src/text/highlight/odd";
import { colourable, colours } from "../../src/text/highlight/queue";
import { type Line, parts } from "../../src/text/highlight/spans";

/** All slices at once. */
function colour(text: string, language: string): readonly Line[] | null {
  const reading = slices(text, language);
  let step = reading.next();
  while (!step.done) step = reading.next();
  return step.value;
}

/** The scopes of a line with its text. */
const read = (text: string, language: string): [string, string][][] =>
  text
    .split("\n")
    .map((line, index) => parts(line, colour(text, language)?.[index]).map((one) => [one.text, one.scope]));

test("words of a language have their colours, line by line", () => {
  expect(read("const a = 1; // why\n/* two\nlines */", "ts")).toEqual([
    [
      ["const", "keyword"],
      [" a = ", ""],
      ["1", "number"],
      ["; ", ""],
      ["// why", "comment"],
    ],
    [["/* two", "comment"]],
    [["lines */", "comment"]],
  ]);
});

test("code within a string is code, and code within code is read in its own language", () => {
  expect(read("`a ${b} c`", "js")).toEqual([
    [
      ["`a ", "string"],
      ["${b}", ""],
      [" c`", "string"],
    ],
  ]);
  expect(read("<script>let x</script>", "html")[0]).toContainEqual(["let", "keyword"]);
});

test.each([
  ...["js", "jsx", "ts", "tsx", "json", "py", "bash", "sh", "shell", "go", "rs", "c", "cpp", "java", "kt", "swift"],
  ...["rb", "php", "css", "html", "xml", "sql", "yaml", "yml", "toml", "ini", "md", "diff", "dockerfile", "lua"],
])("%s is a language", (language) => {
  expect(colour("x", language)).toEqual([expect.anything()]);
});

test("a language that nobody knows has no colours", async () => {
  expect(colour("x", "klingon")).toBeNull();
  expect(await colours("x", "constructor")).toBeNull();
});

test("the lengths of the spans are those of the lines, whatever the text", () => {
  const text = fc.string({
    unit: fc.constantFrom("a", "\n", '"', "`", "/*", "*/", "<", ">", "${", "}", "'", " ", "é"),
  });
  fc.assert(
    fc.property(text, fc.constantFrom("ts", "python", "html", "markdown", "php"), (code, language) => {
      const lengths = (colour(code, language) ?? []).map((line) => line.reduce((sum, [length]) => sum + length, 0));
      expect(lengths).toEqual(code.split("\n").map((line) => line.length));
    }),
    { numRuns: 300, seed: 3 },
  );
});

test("a long text is read in slices, none of which ends in the midst of something", () => {
  const text = `${"let a = 1;\n".repeat(1500)}/*\n${"let b = 2;\n".repeat(3000)}*/\nlet c\n`;
  const reading = slices(text, "js");
  let count = 0;
  let step = reading.next();
  for (; !step.done; step = reading.next()) count += 1;
  expect(count).toBeGreaterThan(2);
  const lines = step.value ?? [];
  expect(lines).toHaveLength(4504);
  expect(lines[1499]?.[0]).toEqual([3, "keyword"]);
  expect(lines.slice(1500, 4502).every((line) => line.length === 1 && line[0]?.[1] === "comment")).toBe(true);
  expect(lines[4502]?.[0]).toEqual([3, "keyword"]);
});

describe("parts", () => {
  test("are cut where colours and marks begin and end", () => {
    const spans = [
      [5, "keyword"],
      [3, ""],
    ] as const;
    expect(parts("const abc", spans, [[3, 7]])).toEqual([
      { text: "con", scope: "keyword", marked: false },
      { text: "st", scope: "keyword", marked: true },
      { text: " a", scope: "", marked: true },
      { text: "b", scope: "", marked: false },
      { text: "c", scope: "", marked: false },
    ]);
  });

  test("hold the whole text, whatever the spans and marks", () => {
    const span = fc.tuple(fc.nat(9), fc.constantFrom("" as const, "name" as const));
    const mark = fc.tuple(fc.nat(20), fc.nat(20));
    fc.assert(
      fc.property(fc.string(), fc.array(span), fc.array(mark, { maxLength: 3 }), (text, spans, marks) => {
        const found = parts(text, spans, marks);
        expect(found.map((part) => part.text).join("")).toBe(text);
        expect(found.every((part) => part.text)).toBe(true);
      }),
      { numRuns: 500, seed: 5 },
    );
  });
});

describe("the queue", () => {
  test("gives colours later, and the same again at once", async () => {
    const first = await colours("let x = 1", "js");
    expect(first?.[0]?.[0]).toEqual([3, "keyword"]);
    expect(await colours("let x = 1", "js")).toBe(first);
  });

  test("leaves alone what nobody waits for any more, and what is too long or plain", async () => {
    const stop = new AbortController();
    const asked = colours("let never = 1", "js", stop.signal);
    stop.abort();
    expect(await asked).toBeNull();
    expect(colourable("x".repeat(100_001), "js")).toBe(false);
    expect(colourable("x", "text")).toBe(false);
    expect(colourable("x", "")).toBe(false);
  });
});

describe("odd characters", () => {
  test.each([
    ["a\u202eb", "aU+202Eb"],
    ["\u2066x\u2069", "U+2066xU+2069"],
    ["nul\0", "nulNUL"],
    ["\x1b[31m", "ESC[31m"],
    ["zero\u200bwidth\ufeff", "zeroU+200BwidthU+FEFF"],
    ["\u{e0041}", "U+E0041"],
    ["\u2028", "U+2028"],
  ])("%j is shown as %s", (text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  test("ordinary texts and emoji stay as they are", () => {
    for (const text of ["\tif x:\n", "👩‍👩‍👧", "❤️‍🔥 ✔️done", "👩🏽‍🚀", "🏳️‍🌈", "שלום", "é", "日本語"])
      expect(pieces(text)).toEqual([text]);
  });

  // the ranges of `_INVISIBLE` in pilothouse/model/previews.py
  const HIDDEN: readonly (readonly [from: number, to: number])[] = [
    ...([
      [0x00, 0x08],
      [0x0b, 0x1f],
      [0x7f, 0xa0],
      [0xad, 0xad],
      [0x34f, 0x34f],
      [0x61c, 0x61c],
    ] as const),
    ...([
      [0x115f, 0x1160],
      [0x1680, 0x1680],
      [0x17b4, 0x17b5],
      [0x180b, 0x180f],
      [0x2000, 0x200f],
    ] as const),
    ...([
      [0x2028, 0x202f],
      [0x205f, 0x206f],
      [0x2800, 0x2800],
      [0x3000, 0x3000],
      [0x3164, 0x3164],
    ] as const),
    ...([
      [0xfe00, 0xfe0f],
      [0xfeff, 0xfeff],
      [0xffa0, 0xffa0],
      [0xfff0, 0xfffb],
      [0xd800, 0xdfff],
    ] as const),
    ...([
      [0x1d173, 0x1d17a],
      [0xe0000, 0xe0fff],
    ] as const),
    ...([
      [0x334, 0x338],
      [0x488, 0x489],
      [0x20dd, 0x20e0],
      [0x20e2, 0x20e6],
      [0xe000, 0xf8ff],
    ] as const),
  ];

  test("every character that hides, turns or looks like a blank is shown by its name", () => {
    for (const [from, to] of HIDDEN) {
      for (let code = from; code <= to; code += 1) {
        const char = String.fromCodePoint(code);
        const shown = visible(`a${char}b`);
        expect(shown, `U+${code.toString(16)}`).not.toContain(char);
        expect(shown).toMatch(/^a(?:U\+[0-9A-F]{4,5}|[A-Z]{2,3}\d?)b$/);
      }
    }
  });

  test("a combining mark is shown unless it is one of the first three of a letter", () => {
    const marks = (count: number) => "\u0323".repeat(count);
    for (const text of ["e\u0301", "e\u0302\u0301", "ש\u05c1\u05b8\u0592", "กี่", "ड़ीं"])
      expect(pieces(text)).toEqual([text]);
    expect(visible(`a${marks(5)}b`)).toBe(`a${marks(3)}U+0323U+0323b`);
    for (const before of ["", " ", ">", "1", '"']) expect(visible(`${before}\u0301`)).toBe(`${before}U+0301`);
  });

  test("joiners and selectors are shown except inside an emoji", () => {
    expect(visible("rm\u200d -rf")).toBe("rmU+200D -rf");
    expect(visible("👩\u200drm")).toBe("👩U+200Drm");
    expect(visible("👩\ufe0f\ufe0f")).toBe("👩\ufe0fU+FE0F");
    expect(visible("می\u200cخواهم")).toBe("میU+200Cخواهم");
  });

  test("what turns the direction is told from what is merely invisible", () => {
    expect(isTurning("a\u202e")).toBe(true);
    expect(isTurning("a\0\u200b")).toBe(false);
  });
});
