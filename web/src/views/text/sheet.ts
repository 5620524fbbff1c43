/**
 * Blocks of Markdown as elements, brought up to date in place and without components: a long message has more than a
 * thousand blocks, and most come many at a time.
 *
 * What did not change is not touched, so what a piece of text costs does not depend on how long the message is; and the
 * elements are a matter of the blocks alone, however they came. Blocks are on pages, of which a browser passes over
 * those that cannot be seen. HTML comes only from the blocks, which are harmless before they get here.
 */
import { h, render } from "preact";
import { sanitisedHtml } from "../../app/trusted";
import type { Block } from "../../text/markdown/stream";
import { CodeBlock } from "../code/code";
import { copyPlain, growPlain, isPlain, plainHtml } from "../code/plain";
import { colourNoMore, colourWhenSeen } from "../code/seen";
import { finish, finished, follow, tellHosts } from "./links";

/** Blocks of a page. */
const PAGE = 12;
/** Pages at the end that are never passed over: they are what is looked at while a message grows. */
const END = 2;

/**
 * Told when so much came at once that some of it is past before it was seen. Who stays at the end goes there now, before
 * the browser looks which pages it can pass over.
 */
export const RUSHED = "rushed";

export class Sheet {
  readonly #root: HTMLElement;
  #pages: Page[] = [];

  constructor(root: HTMLElement) {
    this.#root = root;
    root.addEventListener("click", this.#pressed);
    root.addEventListener("keydown", this.#keyed);
  }

  show(blocks: readonly Block[]): void {
    const count = Math.ceil(blocks.length / PAGE);
    const known = this.#pages.length;
    for (const page of this.#pages.splice(count)) page.close();
    for (let at = 0; at < count; at += 1) {
      this.#pages[at] ??= new Page(this.#root);
      this.#pages[at]!.show(blocks, at * PAGE, at < count - END);
    }
    if (known && count - END > known) this.#root.dispatchEvent(new Event(RUSHED, { bubbles: true }));
  }

  close(): void {
    this.#root.removeEventListener("click", this.#pressed);
    this.#root.removeEventListener("keydown", this.#keyed);
    for (const page of this.#pages.splice(0)) page.close();
  }

  readonly #keyed = (event: KeyboardEvent): void => {
    if (event.key === "Enter") follow(event);
  };

  readonly #pressed = (event: Event): void => {
    follow(event);
    const button = event.target instanceof Element ? event.target.closest(".code-plain .copy") : null;
    const block = button && this.#pages.map((page) => page.blockWith(button)).find((found) => found);
    if (block?.kind === "code") void copyPlain(button!, block.text);
  };
}

class Page {
  readonly #root: HTMLElement;
  #blocks: readonly Block[] = [];
  #far = false;

  constructor(parent: HTMLElement) {
    this.#root = document.createElement("div");
    this.#root.className = "md-page";
    parent.append(this.#root);
  }

  close(): void {
    colourNoMore(this.#root);
    for (const [at, block] of this.#blocks.entries()) unmount(block, this.#root.children[at]!);
    this.#root.remove();
  }

  blockWith(element: Element): Block | undefined {
    if (!this.#root.contains(element)) return undefined;
    return this.#blocks[[...this.#root.children].findIndex((child) => child.contains(element))];
  }

  /** The blocks of this page, from `from` on among all; and whether a browser may pass over it. */
  show(all: readonly Block[], from: number, far: boolean): void {
    if (far !== this.#far) this.#root.className = (this.#far = far) ? "md-page md-far" : "md-page";
    const size = Math.min(PAGE, all.length - from);
    const before = this.#blocks;
    let at = 0;
    while (at < size && at < before.length && before[at] === all[from + at]) at += 1;
    if (at === size && size === before.length) return;
    this.#blocks = all.slice(from, from + size);
    for (let last = before.length - 1; last >= size; last -= 1) this.#drop(before[last]!, last);
    for (let changed = at; changed < Math.min(size, before.length); changed += 1)
      this.#replace(changed, before[changed]!, this.#blocks[changed]!);
    if (size > before.length) this.#append(before.length);
    if (this.#blocks.slice(at).some(hasCode)) colourWhenSeen(this.#root);
  }

  #drop(block: Block, at: number): void {
    const element = this.#root.children[at]!;
    unmount(block, element);
    element.remove();
  }

  /** All that are new at once. */
  #append(from: number): void {
    const added = this.#blocks.slice(from);
    this.#root.insertAdjacentHTML("beforeend", sanitisedHtml(added.map(markup).join("")));
    for (const [index, block] of added.entries()) complete(block, this.#root.children[from + index]!);
  }

  #replace(at: number, before: Block, now: Block): void {
    const element = this.#root.children[at]!;
    if (kindOf(before) !== kindOf(now) || (before.kind === "code" && now.kind === "code" && before.lang !== now.lang)) {
      unmount(before, element);
      element.insertAdjacentHTML("afterend", sanitisedHtml(markup(now)));
      element.remove();
      complete(now, this.#root.children[at]!);
    } else if (before.kind === "code" && now.kind === "code" && isPlain(now)) growPlain(element, before, now);
    else {
      if (now.kind === "html" && !now.raw) element.innerHTML = sanitisedHtml(finished(now.html));
      complete(now, element);
    }
  }
}

const hasCode = (block: Block): boolean => (block.kind === "code" ? !block.open : block.html.includes("<pre>"));

/** What is made and changed in its own way: markup of ours, of others, code that is plain, and code that is not. */
type Kind = "html" | "raw" | "plain" | "code";

const kindOf = (block: Block): Kind =>
  block.kind === "html" ? (block.raw ? "raw" : "html") : isPlain(block) ? "plain" : "code";

/** The element of a block. What may not stand beside other markup gets into it later. */
const MARKUP: Readonly<Record<Kind, (block: never) => string>> = {
  html: ({ html }: { html: string }) => `<div class="md-block" dir="auto">${finished(html)}</div>`,
  raw: () => '<div class="md-block" dir="auto"></div>',
  plain: (block: Block & { kind: "code" }) => `<div class="md-block md-code">${plainHtml(block)}</div>`,
  code: () => '<div class="md-block md-code"></div>',
};

const markup = (block: Block): string => MARKUP[kindOf(block)](block as never);

/** What a block needs once it is on the page. */
function complete(block: Block, element: Element): void {
  if (block.kind === "code") {
    if (!isPlain(block)) render(h(CodeBlock, { block }), element);
  } else if (block.raw) {
    const unfolded = [...element.querySelectorAll("details")].map(({ open }) => open);
    element.innerHTML = sanitisedHtml(block.html);
    finish(element);
    // what somebody unfolded stays so while more comes
    for (const [at, fold] of element.querySelectorAll("details").entries()) fold.open = unfolded[at] ?? fold.open;
  } else if (block.html.includes("<a href")) tellHosts(element);
}

function unmount(block: Block, element: Element): void {
  if (kindOf(block) === "code") render(null, element);
}
