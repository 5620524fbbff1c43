// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { MarkdownStream, markdown } from "../../src/text/markdown/stream";
import { RUSHED, Sheet } from "../../src/views/text/sheet";

const asIs = (html: string): string => html;
let root: HTMLElement;
let sheet: Sheet;

beforeEach(() => {
  root = document.createElement("div");
  document.body.replaceChildren(root);
  sheet = new Sheet(root);
});
afterEach(() => sheet.close());

const whole = (text: string): string => {
  const place = document.createElement("div");
  const other = new Sheet(place);
  other.show(markdown(text, asIs));
  const made = plain(place);
  other.close();
  return made;
};

/** Without colours, which come when there is time. */
const plain = (place: Element): string =>
  place.innerHTML.replace(/<span class="tok-\w+">([^<]*)<\/span>/g, "$1").replace(/ style="[^"]*"/g, "");

const PARTS = [
  "## Part\n\nWith `code`, **weight** and a [link](https://example.org/).\n\n",
  "- one\n- [x] done\n- [ ] not\n\n  loose\n\n",
  "```js\nlet a = '<b>&amp;'\n\nlet b\n```\n\n",
  "| a | b |\n|---|--:|\n| 1 | `<td>` |\n\n",
  "<div>\n\n| raw | table |\n|---|---|\n| 1 | 2 |\n\n</div>\n\n",
  "```\nodd \u202e text\n```\n\n",
  `\`\`\`\n${"long line ".repeat(200)}\n\`\`\`\n\n`,
  `\`\`\`py\n${"line\n".repeat(300)}\`\`\`\n\n`,
  "[![picture](https://example.org/a.png)](https://example.org/b) and `half\n\n",
];
const TEXT = PARTS.concat(PARTS.toReversed(), PARTS, PARTS).join("") + "```js\nopen to the";

test.each([3, 25, 400, 5000])("in pieces of %i it becomes what it is at once", (size) => {
  const stream = new MarkdownStream(asIs);
  for (let at = 0; at < TEXT.length; at += size) {
    stream.append(TEXT.slice(at, at + size));
    sheet.show(stream.blocks());
  }
  stream.end();
  sheet.show(stream.blocks());
  expect(plain(root)).toBe(whole(TEXT));
});

test("a text that becomes another one is shown as that", () => {
  sheet.show(markdown(TEXT, asIs));
  sheet.show(markdown("Only this, and\n\n```js\nlet it\n```", asIs));
  expect(plain(root)).toBe(whole("Only this, and\n\n```js\nlet it\n```"));
});

test("what stands between a summary and the end of its fold is in the fold, and stays unfolded while it grows", () => {
  const stream = new MarkdownStream(asIs);
  stream.append("Before.\n\n<details>\n<summary>More</summary>\n\nInner **bold**.\n\n```js\nlet a\n```\n\nAnd");
  sheet.show(stream.blocks());
  root.querySelector("details")!.open = true;
  stream.append(" again.\n\n</details>\n\nAfter.\n\nEnd");
  sheet.show(stream.blocks());
  const fold = root.querySelector("details")!;
  expect(fold.open).toBe(true);
  expect([...fold.children].map((one) => one.tagName)).toEqual(["SUMMARY", "P", "PRE", "P"]);
  expect(fold.textContent).toContain("And again.");
  expect(stream.blocks()).toHaveLength(4);
});

test("code that grows keeps its text, and so what somebody selected", () => {
  const stream = new MarkdownStream(asIs);
  stream.append("```js\nlet a");
  sheet.show(stream.blocks());
  const text = root.querySelector("code")!.firstChild;
  stream.append(" = 1\nlet b\n```\n\nafter");
  sheet.show(stream.blocks());
  expect(root.querySelector("code")!.firstChild).toBe(text);
  expect(text!.textContent).toBe("let a = 1\nlet b");
});

test("code is coloured once it is closed, and what an agent writes stays text", async () => {
  sheet.show(markdown('```js\nlet a = "<img src=x onerror=alert(1)>"\n```', asIs));
  await vi.waitFor(() => expect(root.querySelector(".tok-keyword")?.textContent).toBe("let"), { timeout: 30_000 });
  expect(root.querySelector("img")).toBeNull();
  expect(root.querySelector("code")!.textContent).toBe('let a = "<img src=x onerror=alert(1)>"');
});

test("the button of code copies it as it was written, and says so", async () => {
  const writeText = vi.fn(async () => {});
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  sheet.show(markdown("text\n\n```js\nlet a = '<b>'\n```\n\n```\nother\n```", asIs));
  const [first, second] = root.querySelectorAll<HTMLElement>("button.copy");
  expect(first!.getAttribute("aria-label")).toBe("Copy code");
  first!.click();
  await vi.waitFor(() => expect(first!.getAttribute("aria-label")).toBe("Copied"));
  second!.click();
  expect(writeText.mock.calls).toEqual([["let a = '<b>'"], ["other"]]);
  vi.unstubAllGlobals();
});

test("code that is long, or has something odd in it, is shown by what can fold it and make that visible", () => {
  sheet.show(markdown(PARTS.slice(5, 8).join(""), asIs));
  expect(root.querySelector(".code-odd")!.textContent).toBe("U+202E");
  expect([...root.querySelectorAll("button")].map((one) => one.textContent).filter(Boolean)).toEqual([
    expect.stringContaining("show whole line"),
    "Show all 300 lines",
  ]);
});

test("pages before the last ones may be passed over; who stays at the end hears of what rushed by", () => {
  const rushed = vi.fn();
  root.addEventListener(RUSHED, rushed);
  const blocks = markdown("word\n\n".repeat(200), asIs);
  sheet.show(blocks.slice(0, 5));
  sheet.show(blocks.slice(0, 30));
  expect(rushed).not.toHaveBeenCalled();
  sheet.show(blocks);
  expect(rushed).toHaveBeenCalledOnce();
  const far = [...root.children].map((page) => page.classList.contains("md-far"));
  expect(far.lastIndexOf(true)).toBe(far.length - 3);
  expect(far.indexOf(false)).toBe(far.length - 2);
});

test("what is gone is let go of", () => {
  sheet.show(markdown(TEXT, asIs));
  sheet.close();
  expect(root.childElementCount).toBe(0);
});
