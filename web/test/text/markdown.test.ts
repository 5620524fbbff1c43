import fc from "fast-check";
import { Lexer, Parser } from "marked";
import { describe, expect, test } from "vitest";
import { codeHtml, cuts, render } from "../../src/text/markdown/slices";
import { type Block, MarkdownStream, markdown } from "../../src/text/markdown/stream";

const asIs = (html: string): string => html;
const htmlOf = (blocks: readonly Block[]): string =>
  blocks.map((block) => (block.kind === "code" ? codeHtml(block) : block.html)).join("");

/** The whole text in one parse. */
function whole(text: string): string {
  const { rendered } = render(text.replace(/\r\n?/g, "\n"), {});
  return rendered.code ? codeHtml(rendered.code) : rendered.html!;
}

function streamed(text: string, sizes: number[], look = true): string {
  const stream = new MarkdownStream(asIs);
  for (let at = 0, turn = 0; at < text.length; turn += 1) {
    const size = sizes[turn % sizes.length]!;
    stream.append(text.slice(at, at + size));
    at += size;
    if (look) stream.blocks();
  }
  stream.end();
  return htmlOf(stream.blocks());
}

const TEXTS: Record<string, string> = {
  paragraphs: "One.\n\nTwo\nlines.\n\n\n\nThree.",
  headings: "# A\ntext\n## B\n\nSetext\n===\nmore\n---\nend",
  lists: "- a\n- b\n\n  more of b\n\n      code in b\n- c\n  1. x\n  2. y\n\nafter\n\n* other\n+ list\n",
  loose: "1. a\n\n2. b\n3. c\n\ntext",
  tasks: "- [ ] open\n- [x] done\n\n[ ] none",
  fences: "Text:\n```js\nlet a = 1;\n\nlet b = '```';\n```\nmore\n~~~~ py\n```\nnot closed\n~~~\n~~~~\n\n```\nopen",
  escapes: "~~~\\- x\ncode\n~~~\n",
  marks: "~~~```js\n~~~````\n~~~~\n\n````\n```~\n```\n`````  \nafter",
  nested: "````md\n```js\nx\n```\n````\n- item\n  ```sh\n  ls\n  ```\n  text\n\n> ```\n> quoted\n> ```\nlazy",
  tables: "| a | b |\n|---|:-:|\n| 1 | `2` |\n| 3 |\n\ntext\n| c |\n|---|\n| 5 |\nrow\n\nno | table\n",
  references:
    "See [this] and [that][b] and ![pic][c].\n\n> [this]\n\n[b]: <https://b.example> 'B'\n[this]: /this\n\n[c]: /c\n\n[b]: /late\n",
  definitions: "[a]: /url\n\"title\n\nnot\"\n\n[a] text\n\n[b]: /x 'ok'\n\n[b] [c\nd]\n\n[C D]: /cd",
  html: "<div>\n*not*\n\n*yes*\n</div>\n\n<details><summary>s</summary>\n\nin\n\n</details>\n<!-- a\n\nb --> after\n\n<pre>\n\nx\n\n</pre>\ntext",
  anchors: "<a href='x'>open\n\nhttps://auto.example\n\n</a>",
  quotes: "> a\n> b\nlazy\n\n> c\n> > d\n\n> - e\n> f\n",
  code: "    indented\n\n    more\n\ntext\n    not code\n",
  rules: "a\n\n---\n\n* * *\nb\n***\nc\n\n- - -\n",
  emphasis: "**bold *and* more** _x_ ~~gone~~ `a*b` \\* https://x.example/(y)\n\n*open\n\nhere*",
  ends: "a\r\n\r\nb\rc\r\n",
  empty: "\n\n  \n",
};

describe.each(Object.entries(TEXTS))("%s", (_, text) => {
  test("is the same whatever the pieces", () => {
    const expected = htmlOf(markdown(text, asIs));
    expect(expected).toBe(whole(text));
    for (const sizes of [[1], [2], [3], [7], [1, 5, 2], [25]]) {
      expect(streamed(text, sizes)).toBe(expected);
      expect(streamed(text, sizes, false)).toBe(expected);
    }
  });

  test("is at every moment what was written by then", () => {
    const stream = new MarkdownStream(asIs);
    const lines = text.replace(/\r\n?/g, "\n");
    for (const [index, char] of Array.from(lines).entries()) {
      stream.append(char);
      expect(htmlOf(stream.blocks())).toBe(whole(lines.slice(0, index + 1)));
    }
  });
});

const piece = fc.constantFrom(
  ...[
    "a",
    "b c",
    "\n",
    "\n",
    "\n\n",
    "\n\n",
    "  ",
    "    ",
    "\t",
    "- ",
    "* ",
    "1. ",
    "2) ",
    "> ",
    "# ",
    "## ",
    "---",
    "===",
  ],
  ...[
    "```",
    "````",
    "~~~",
    "```js\n",
    "`",
    "*",
    "**",
    "_",
    "|",
    "| a | b |\n|---|---|\n",
    "|---|",
    "[x]",
    "[y][x]",
    "[",
    "]",
  ],
  ...[
    "[x]: /u",
    "[y]: <v> 'w'",
    '"t',
    "'",
    "(",
    ")",
    "<div>",
    "</div>",
    "<!--",
    "-->",
    "<pre>",
    "</pre>",
    "<b>",
    "<a>",
  ],
  ...[
    "\\",
    "&amp;",
    "https://e.example",
    "![i](j)",
    "[k](l)",
    "- [ ] ",
    "- [x] t\n",
    "é😀",
    "\r\n",
    "<?",
    "?>",
    "<![CDATA[",
  ],
);
const soup = fc.array(piece, { minLength: 1, maxLength: 50 }).map((pieces) => pieces.join(""));

test("any text in any pieces is the text in one", () => {
  fc.assert(
    fc.property(soup, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 }), (text, sizes) => {
      expect(streamed(text, sizes)).toBe(whole(text));
    }),
    { numRuns: 500, seed: 7 },
  );
});

test("documents put together from these are too", () => {
  const document = fc
    .array(fc.constantFrom(...Object.values(TEXTS)), { maxLength: 4 })
    .map((texts) => texts.join("\n\n"));
  fc.assert(
    fc.property(document, fc.integer({ min: 1, max: 40 }), (text, size) => {
      expect(streamed(text, [size])).toBe(whole(text));
    }),
    { numRuns: 150, seed: 7 },
  );
});

test("a parse in slices says what marked says of ordinary text", () => {
  for (const name of [
    "paragraphs",
    "headings",
    "lists",
    "loose",
    "tasks",
    "tables",
    "quotes",
    "code",
    "rules",
    "emphasis",
  ]) {
    const plain = Parser.parse(Lexer.lex(TEXTS[name]!));
    expect(htmlOf(markdown(TEXTS[name]!, asIs)).replaceAll(' target="_blank" rel="noopener noreferrer"', "")).toBe(
      plain,
    );
  }
});

// -- what is closed stays ---------------------------------------------------------------------------------------------

test("closed blocks stay the same objects under the same keys", () => {
  const stream = new MarkdownStream(asIs);
  stream.append("One.\n\nTwo.\n\n```js\nx\n```\n\nThree");
  const first = [...stream.blocks()];
  stream.append(" goes on.\n\nFour.\n\nFive");
  const second = stream.blocks();
  expect(second.slice(0, 3).every((block, index) => block === first[index])).toBe(true);
  expect(second.map((block) => block.key)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(stream.blocks()).toBe(second);
});

test("a definition that comes late changes only the blocks that use it", () => {
  const stream = new MarkdownStream(asIs);
  stream.append("See [Here].\n\nNothing.\n\nEnd.\n\n");
  const before = [...stream.blocks()];
  stream.append("[here]: /there\n\nMore.\n\n");
  const after = stream.blocks();
  expect(htmlOf([after[0]!])).toBe('<p>See <a data-path="/there">Here</a>.</p>\n');
  expect(after[1]).toBe(before[1]);
});

test("every closed block is parsed once, whatever the number of pieces", () => {
  let cleaned = 0;
  const stream = new MarkdownStream((html) => {
    cleaned += html.length;
    return html;
  });
  const paragraph = `${"Words of the <b>sea</b> and of the harbour. ".repeat(6)}\n\n`;
  const text = paragraph.repeat(200);
  for (let at = 0; at < text.length; at += 25) {
    stream.append(text.slice(at, at + 25));
    stream.blocks();
  }
  // each paragraph is shown about eleven times while it is open, at half its length on average
  expect(cleaned).toBeGreaterThan(4 * text.length);
  expect(cleaned).toBeLessThan(12 * text.length);
});

test.each([
  ["table", "| a | b |\n|---|---|\n", "| cell | another <b>one</b> |\n"],
  ["list", "", "- an item of a <b>long</b> list\n"],
  ["paragraph", "", "words <b>without</b> an end "],
])("a %s that never closes is not parsed again for every piece", (_, head, row) => {
  let cleaned = 0;
  const stream = new MarkdownStream((html) => {
    cleaned += html.length;
    return html;
  });
  stream.append(head);
  const text = row.repeat(Math.ceil(30_000 / row.length));
  for (let at = 0; at < text.length; at += 25) {
    stream.append(text.slice(at, at + 25));
    stream.blocks();
  }
  const shown = htmlOf(stream.blocks());
  expect(cleaned).toBeGreaterThan(text.length);
  expect(cleaned).toBeLessThan(250 * text.length); // and not 600 times, which every piece would make
  expect(shown.replace(/<[^>]*>/g, "").length).toBeGreaterThan(0.6 * text.length);
  stream.end();
  expect(htmlOf(stream.blocks())).toBe(whole(head + text));
});

test("an open fence grows without the parser", () => {
  const stream = new MarkdownStream(asIs);
  stream.append("Look:\n```python extra words\n");
  for (let line = 0; line < 5000; line += 1) stream.append(`print(${line})\n`);
  const blocks = stream.blocks();
  expect(blocks).toHaveLength(2);
  expect(blocks[1]).toMatchObject({ kind: "code", lang: "python", open: true });
  stream.append("```\n");
  expect(stream.blocks()[1]).toMatchObject({ open: false, key: 1 });
});

test("what the parser cannot take is shown as it came", () => {
  const deep = "> ".repeat(20_000);
  expect(htmlOf(markdown(`${deep}x`, asIs))).toContain("x");
});

test("nothing can be cut while a line may still change what it belongs to", () => {
  expect(cuts("text\n\nn")).toEqual([6]);
  expect(cuts("text\n# next")).toEqual([]);
  expect(cuts("text\n# next\n")).toEqual([5]);
  expect(cuts("- item\n\nnext")).toEqual([]);
  expect(cuts("- item\n\nnext\n")).toEqual([8]);
  expect(cuts("- item\n\n  more\n")).toEqual([]);
  expect(cuts("text\n```\ncode")).toEqual([5]);
  expect(cuts("<details>\n<summary>s</summary>\n\na\n\n# b\n\n</details>\n\nc\n")).toEqual([52]);
  expect(cuts("<details> is a tag\n\na\n\nb\n")).toEqual([20, 23]);
});

test("a text of any length that comes at once has its lines, its fences and its lists", () => {
  const paragraph = "Words of the sea.\nAnd of the harbour.\n\n";
  const fence = `\`\`\`py\n${"line = 1\n".repeat(40_000)}\`\`\`\n\n`;
  const list = "- one of many\n".repeat(40_000);
  const text = `${paragraph.repeat(8000)}${fence}# Heading\n\n${list}\n# End\n`;
  const blocks = markdown(text, asIs);
  const code = blocks.flatMap((block) => (block.kind === "code" ? [block] : []));
  expect(code.map(({ lang, text }) => [lang, text.split("\n").length])).toEqual([["py", 40_000]]);
  const html = blocks.map((block) => (block.kind === "html" ? block.html : "")).join("");
  const count = (tag: string) => html.split(tag).length - 1;
  expect([count("<p>"), count("<li>"), count("<h1>"), count("md-plain")]).toEqual([8000, 40_000, 2, 0]);
});
