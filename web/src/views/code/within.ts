/** Colours for code inside of ready HTML: the blocks of Markdown, also those within lists and quotes. */
import { colours } from "../../text/highlight/queue";
import { type Line, parts } from "../../text/highlight/spans";

const BLOCKS = 'pre > code[class^="language-"]';

/** What was coloured, or cannot be: its text by then. */
const done = new WeakMap<Element, string>();

/** Colour every block below `root`, when there is time: all at once, as each time the page is drawn costs. */
export async function colourWithin(root: Element): Promise<void> {
  const blocks = [...root.querySelectorAll(BLOCKS)]
    .map((code) => ({ code, text: code.textContent ?? "" }))
    .filter(({ code, text }) => done.get(code) !== text);
  for (const { code, text } of blocks) done.set(code, text);
  const read = await Promise.all(
    blocks.map(({ code, text }) => colours(text, code.className.slice("language-".length))),
  );
  for (const [index, { code, text }] of blocks.entries()) {
    const lines = read[index];
    if (lines && code.textContent === text) code.replaceChildren(...nodes(text, lines));
  }
}

function* nodes(text: string, lines: readonly Line[]): Generator<Node | string> {
  for (const [index, line] of text.split("\n").entries()) {
    if (index) yield "\n";
    for (const part of parts(line, lines[index])) yield part.scope ? span(part.text, part.scope) : part.text;
  }
}

function span(text: string, scope: string): HTMLElement {
  const element = document.createElement("span");
  element.className = `tok-${scope}`;
  element.textContent = text;
  return element;
}
