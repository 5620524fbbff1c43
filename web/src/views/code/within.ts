/** Colours for code inside of ready HTML: the blocks that stand within lists and quotes of Markdown. */
import { colours } from "../../text/highlight/queue";
import { type Line, parts } from "../../text/highlight/spans";

const BLOCKS = 'pre > code[class^="language-"]';

/** Colour every block below `root`, when there is time. Gives what stops it. */
export function colourWithin(root: Element): () => void {
  const stop = new AbortController();
  for (const code of root.querySelectorAll(BLOCKS)) void colourOne(code, stop.signal);
  return () => stop.abort();
}

async function colourOne(code: Element, signal: AbortSignal): Promise<void> {
  const text = code.textContent ?? "";
  const lines = await colours(text, code.className.slice("language-".length), signal);
  if (lines && !signal.aborted && code.textContent === text) code.replaceChildren(...nodes(text, lines));
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
