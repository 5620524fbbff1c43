import fc from "fast-check";
import { expect, test } from "vitest";
import { gapText, joinLines, shortenBlock, shortenMiddle, shortenText } from "../../src/text/shorten";

test("a short text stays whole", () => {
  expect(shortenMiddle("rm -rf /", 8)).toEqual({ head: "rm -rf /", tail: "", characters: 0, lines: 0 });
  expect(shortenText("rm -rf /", 8)).toBe("rm -rf /");
  expect(shortenBlock("a\nb", { lines: 2, characters: 3 }).characters).toBe(0);
});

test("a text that is barely too long is not shortened", () => {
  expect(shortenText("x".repeat(30), 10)).toBe("x".repeat(30));
  expect(shortenText("x".repeat(31), 10)).toContain("… 21 characters …");
});

test("a long text keeps both ends, and says how much is left out", () => {
  expect(shortenText(`echo ${"x".repeat(2000)} rm -rf ~`, 20)).toBe("echo xxxxx … 1,994 characters … x rm -rf ~");
  expect(gapText({ characters: 1, lines: 0 })).toBe("… 1 character …");
  expect(gapText({ characters: 10, lines: 3 })).toBe("… 10 characters (3 lines) …");
});

test("the last lines of a long block are kept", () => {
  const text = Array.from({ length: 100 }, (_, line) => `line ${line}`).join("\n");
  const { head, tail, characters, lines } = shortenBlock(text, { lines: 8, characters: 1000 });
  expect(head.split("\n")).toHaveLength(6);
  expect(tail).toBe("line 98\nline 99");
  expect(lines).toBe(93);
  expect(head.length + characters + tail.length).toBe(text.length);
});

test("nothing is lost or shown twice, and no character is split", () => {
  const texts = fc.string({ unit: fc.constantFrom("a", "\n", "👍", "é"), maxLength: 80 });
  fc.assert(
    fc.property(texts, fc.integer({ min: 4, max: 40 }), fc.integer({ min: 4, max: 10 }), (text, characters, lines) => {
      for (const short of [shortenMiddle(text, characters), shortenBlock(text, { lines, characters })]) {
        const left = text.slice(short.head.length, text.length - short.tail.length);
        expect(short.head + left + short.tail).toBe(text);
        expect(left.length).toBe(short.characters);
        expect(() => [short.head, short.tail].map(encodeURIComponent)).not.toThrow();
        expect(short.head.length + short.tail.length).toBeLessThanOrEqual(characters + 20);
      }
    }),
  );
});

test("several lines become one, with a mark for each line end", () => {
  expect(joinLines("echo a\n\trm -rf ~\r\n\n")).toBe("echo a ↵ rm -rf ~");
  expect(joinLines("echo a\u00a0\n")).toBe("echo a\u00a0");
});
