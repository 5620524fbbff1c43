// @vitest-environment jsdom
import { h, render } from "preact";
import { beforeAll, expect, test, vi } from "vitest";
import { AnsiScreen } from "../../src/text/ansi/screen";
import { Ansi } from "../../src/views/text/ansi";
import { clean, readings } from "../../src/views/text/cleaning";
import { Growing } from "../../src/views/text/growing";
import { goldens } from "../goldens";
import { event, Played, said, settled, shown, turn } from "./transcript.source";

const TEXTS = [
  "# A heading\n\nA paragraph with **bold** and a [link](https://example.com/x).\n\n- [x] done\n- [ ] not\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n\n> quote\n",
  "One [late][ref] link\n\nand more text\n\n[ref]: https://example.org/there\n\n```\nopen fence\nthat never ends",
  "<details><summary>raw</summary>\n\n<b>html</b> <script>alert(1)</script>\n</details>\n\n1. a\n2. b\n\n   c\n",
  ...goldens().flatMap(({ snapshot }) =>
    snapshot.items.flatMap((item) =>
      item.type === "message" && item.role === "assistant"
        ? item.content.flatMap((block) => (block.type === "text" && block.text.length > 80 ? [block.text] : []))
        : [],
    ),
  ),
];

beforeAll(async () => {
  expect(clean("<b>not yet</b>")).toBe("<p>&#60;b&#62;not yet&#60;/b&#62;</p>");
  await vi.waitFor(() => expect(readings.value).toBe(1));
});

/** Without colours, which come when there is time. */
const html = (place: ParentNode): string =>
  place.querySelector(".md")!.innerHTML.replace(/<span class="tok-\w+">([^<]*)<\/span>/g, "$1");

test.each([...new Set(TEXTS)].map((text) => [text]))("streamed in pieces it looks like the whole: %j", async (text) => {
  const whole = shown(new Played([turn("t"), said("assistant", "m", text)]));
  await settled();
  const expected = html(whole);
  for (const size of [1, 7, 25]) {
    const source = new Played([turn("t"), event({ type: "message:start", messageId: "m", role: "assistant" })]);
    const place = shown(source);
    for (let at = 0; at < text.length; at += size) {
      source.tell(
        event({ type: "message:delta", messageId: "m", role: "assistant", delta: text.slice(at, at + size) }),
      );
      if (at % (size * 5) === 0) await Promise.resolve();
    }
    source.tell(said("assistant", "m", text));
    await settled();
    expect(html(place)).toBe(expected);
  }
});

test("a link whose words do not name its site says where it leads", async () => {
  const text = "[here](https://evil.example/x) and [example.com](https://example.com/) and https://example.org";
  const place = shown(new Played([said("assistant", "m", text)]));
  const hosts = [...place.querySelectorAll<HTMLElement>(".md a")].map((link) => link.dataset["host"]);
  expect(hosts).toEqual(["evil.example", undefined, undefined]);
});

test("blocks that did not change are not drawn again", async () => {
  const source = new Played([
    turn("t"),
    event({ type: "message:delta", messageId: "m", role: "assistant", delta: "One\n\nTwo\n\nThr" }),
  ]);
  const place = shown(source);
  const first = place.querySelector(".md-block")!;
  source.tell(event({ type: "message:delta", messageId: "m", role: "assistant", delta: "ee\n\nFour" }));
  await settled();
  expect(place.querySelectorAll(".md-block").length).toBe(4);
  expect(place.querySelector(".md-block")).toBe(first);
});

test("growth is trusted only where it adds up", () => {
  const growing = new Growing();
  expect(growing.take("ab")).toBe("ab");
  growing.tell("c");
  expect(growing.take("abc")).toBe("c");
  growing.tell("x"); // the piece before it was missed
  expect(growing.take("abcdx")).toBe("dx");
  growing.tell(null);
  expect(growing.take("other")).toBeNull();
  expect(growing.take("other")).toBe("");
});

test("colours of a terminal are classes or exact colours, and text stays text", () => {
  const screen = new AnsiScreen();
  screen.write("\u001b[1;31mred\u001b[0m plain <b>\u001b[38;5;208morange\u001b[48;2;1;2;3mback");
  const place = document.createElement("div");
  render(h(Ansi, { lines: screen.lines() }), place);
  const spans = [...place.querySelectorAll("span")];
  expect(spans[0]!.className).toBe("ansi-bold ansi-fg-1");
  expect(spans[0]!.textContent).toBe("red");
  expect(place.textContent).toContain("plain <b>");
  expect(spans.at(-1)!.getAttribute("style")).toContain("rgb(1, 2, 3)");
});

test("ten thousand lines of a terminal come a few hundred a frame, all of them in the end", async () => {
  const screen = new AnsiScreen();
  screen.write(Array.from({ length: 3000 }, (_, line) => `line ${line}\n`).join(""));
  const lines = screen.lines();
  const place = document.createElement("div");
  const count = () => place.querySelectorAll(".ansi-line").length;
  render(h(Ansi, { lines, gradually: true }), place);
  const first = place.querySelector(".ansi-line");
  expect(count()).toBeLessThan(500);
  await vi.waitFor(() => expect(count()).toBe(lines.length), { timeout: 10_000 });
  expect(place.querySelector(".ansi-line")).toBe(first);
  expect(place.textContent).toBe(lines.map((line) => line.spans.map(({ text }) => text).join("") || "\n").join(""));
});
