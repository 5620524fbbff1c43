// @vitest-environment jsdom
import { h, render } from "preact";
import { afterEach, expect, test, vi } from "vitest";
import { colours } from "../../src/text/highlight/queue";
import { Code, CodeBlock } from "../../src/views/code/code";
import { CHUNK, type Chunks, chunked } from "../../src/views/code/lines";
import { colourWithin } from "../../src/views/code/within";

/** Machines can be busy, and the grammars take a moment to load. */
const eventually = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 30_000 });

const root = document.createElement("div");
document.body.append(root);
type Props = Parameters<typeof Code>[0];
const show = (props: Props): void => render(h(Code, props), root);
const find = (selector: string): HTMLElement[] => [...root.querySelectorAll<HTMLElement>(selector)];
const lines = (): string[] => find(".code-line").map((line) => line.textContent ?? "");
const numbered = (count: number): string => Array.from({ length: count }, (_, line) => `line ${line}`).join("\n");
const button = (text: string): HTMLElement | undefined => find("button").find((one) => one.textContent?.includes(text));

afterEach(() => render(null, root));

test("code is there at once, and in colours a moment later", async () => {
  show({ text: "let a = 1\nlet b", language: "js" });
  expect(lines()).toEqual(["let a = 1\n", "let b\n"]);
  expect(find(".tok-keyword")).toHaveLength(0);
  await eventually(() => expect(find(".tok-keyword")).toHaveLength(2));
  expect(lines()).toEqual(["let a = 1\n", "let b\n"]);
});

test("numbers are beside the lines and not in them", () => {
  show({ text: "a\nb\n", lineNumbers: true, startLine: 41 });
  expect(find(".code-line").map((line) => line.dataset["line"])).toEqual(["41", "42"]);
  expect(lines()).toEqual(["a\n", "b\n"]);
});

test("long code is folded until somebody asks", async () => {
  show({ text: numbered(1000), limit: 10 });
  expect(lines()).toHaveLength(10);
  button("Show all 1,000 lines")?.click();
  await eventually(() => expect(lines()).toHaveLength(1000));
  expect(button("Show all")).toBeUndefined();
});

test("a line or two too many are no reason to fold", () => {
  show({ text: numbered(12), limit: 10 });
  expect(lines()).toHaveLength(12);
});

test("a line of a million characters shows its end, and the whole line on request", async () => {
  show({ text: `${"x".repeat(1_000_000)} the end` });
  expect(root.textContent?.length).toBeLessThan(2000);
  expect(root.textContent).toContain(" the end");
  button("show whole line")?.click();
  await eventually(() => expect(root.textContent?.length).toBeGreaterThan(1_000_000));
});

test("a block that is still open is not coloured; its lines stay the same elements as it grows", async () => {
  const block = (text: string, open: boolean) => render(h(CodeBlock, { block: { lang: "js", text, open } }), root);
  block("let a", true);
  const first = find(".code-line")[0];
  block("let a = 1\nlet b", true);
  expect(find(".code-line")[0]).toBe(first);
  // texts are read in turn: whatever was asked for before these has been read after them
  await colours("let other", "js");
  await colours("let another", "js");
  expect(find(".tok-keyword")).toHaveLength(0);
  block("let a = 1\nlet b = 2", false);
  await eventually(() => expect(find(".tok-keyword")).toHaveLength(2));
});

test("lines that stayed keep their colours while others come", async () => {
  show({ text: "let a", language: "js" });
  await eventually(() => expect(find(".tok-keyword")).toHaveLength(1));
  show({ text: "let a\nlet b", language: "js" });
  expect(find(".tok-keyword")).toHaveLength(1);
  await eventually(() => expect(find(".tok-keyword")).toHaveLength(2));
});

test("whatever an agent writes is text", async () => {
  const text = '<script>window.hit = 1</script><img src=x onerror="hit()">\n\u202e\0';
  show({ text, language: "html" });
  await eventually(() => expect(find("[class^=tok-]").length).toBeGreaterThan(0));
  expect(find("script, img")).toHaveLength(0);
  expect(lines()[0]).toBe('<script>window.hit = 1</script><img src=x onerror="hit()">\n');
  expect(find(".code-odd").map((one) => one.textContent)).toEqual(["U+202E", "NUL"]);
});

test("a blank that is not a space is marked and keeps its width", () => {
  show({ text: "a\u00a0b" });
  expect(find(".code-blank").map((one) => [one.textContent, one.title])).toEqual([["\u00a0", "U+00A0"]]);
});

test("line ends of another system are not shown as odd", () => {
  show({ text: "a\r\nb\r\n" });
  expect(lines()).toEqual(["a\n", "b\n"]);
});

test("a text that grows by pieces has the chunks of the whole, and keeps those it had", () => {
  const text = `${numbered(3 * CHUNK)}\n\n${numbered(30)}\n`;
  let chunks: Chunks = chunked("");
  for (let end = 0; end <= text.length; end += 7) {
    const before = chunks;
    chunks = chunked(text.slice(0, end), before);
    if (before.chunks.length > 1) expect(chunks.chunks[0]).toBe(before.chunks[0]);
  }
  chunks = chunked(text, chunks);
  expect(chunks).toEqual(chunked(text));
  expect(chunks.count).toBe(3 * CHUNK + 31);
});

test("code inside of ready HTML is coloured in place", async () => {
  root.innerHTML = '<ul><li><pre><code class="language-js">let a = "&lt;b&gt;"\n</code></pre></li></ul>';
  void colourWithin(root);
  await eventually(() => expect(find(".tok-keyword").map((one) => one.textContent)).toEqual(["let"]));
  expect(root.textContent).toBe('let a = "<b>"\n');
  expect(find("b")).toHaveLength(0);
  root.replaceChildren();
});
