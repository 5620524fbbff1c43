/**
 * How the transcript scrolls: it stays at the end while the reader is there, lets go when they scroll up, keeps their
 * place when something above changes its height, and draws the chunks that are near.
 *
 * Only its own box is ever scrolled. The browser's own anchoring is off, as not every browser has it.
 */
import { signal } from "@preact/signals";
import { RUSHED } from "../text/sheet";
import type { Chunk, Layout } from "./layout";

/** Pixels from the end that still count as being there. */
const NEAR = 32;
const LOW = 96;
/** Milliseconds after a reader's last move in which it is them who scrolls. */
const HAND = 400;
const HANDS = ["wheel", "touchmove", "pointerdown", "keydown"] as const;
/** Chunks around the screen that are drawn at once, that are filled in when nothing else is to do, and that stay. */
const AROUND = 2;
const FILLED = 24;
export const MOST = 40;

/** What the reader sees first, and where; its chunk stays when the row itself is not drawn any more. */
interface Anchor {
  place: Element;
  chunk: Element;
  top: number;
  chunkTop: number;
}

export class Scroller {
  /** The reader is at the end, and stays there. */
  readonly stuck = signal(true);
  /** Rows that came since the reader let go. */
  readonly fresh = signal(0);
  /** There is so little room that a button over the text would be in the way. */
  readonly low = signal(false);
  readonly #layout: Layout;
  #box: HTMLElement | null = null;
  #last = { top: 0, height: 0 };
  #hand = -Infinity;
  #seen = 0;
  #anchor: Anchor | null = null;
  #soon: Chunk[] = [];
  #frame = 0;
  #idle: number | ReturnType<typeof setTimeout> | null = null;

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  /** Begin with the box and its body. Gives the way to stop. */
  attach(box: HTMLElement, body: HTMLElement): () => void {
    this.#box = box;
    const scrolled = () => this.#scrolled();
    const pressed = (event: Event) => this.#pressed(event);
    const rushed = () => this.#keepEnd();
    const moved = () => void (this.#hand = performance.now());
    for (const type of HANDS) box.addEventListener(type, moved, { passive: true });
    box.addEventListener("scroll", scrolled, { passive: true });
    box.addEventListener(RUSHED, rushed);
    box.addEventListener("click", pressed, { capture: true });
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => this.#settle());
    observer?.observe(body);
    observer?.observe(box);
    this.#settle();
    this.#planIdle();
    return () => {
      box.removeEventListener("scroll", scrolled);
      box.removeEventListener(RUSHED, rushed);
      box.removeEventListener("click", pressed, { capture: true });
      for (const type of HANDS) box.removeEventListener(type, moved);
      observer?.disconnect();
      this.#stopIdle();
      cancelAnimationFrame(this.#frame);
      this.#frame = 0;
      this.#box = null;
    };
  }

  /** Items came. */
  came(): void {
    if (this.stuck.peek()) this.#seen = this.#layout.count;
    this.fresh.value = Math.max(0, this.#layout.count - this.#seen);
    this.#trim();
    this.#planIdle();
  }

  toEnd(): void {
    this.#stick(true);
    const chunks = this.#layout.chunks.peek();
    draw(chunks.slice(-2 - AROUND));
    this.#settle();
  }

  /** Have an element below the upper edge, as far as the transcript reaches. */
  show(place: HTMLElement, below: number): void {
    const box = this.#box;
    if (!box) return;
    box.scrollTop += place.getBoundingClientRect().top - box.getBoundingClientRect().top - below;
    this.#last = { top: box.scrollTop, height: box.scrollHeight };
    this.#stick(this.#distance() <= NEAR);
    this.#remember();
  }

  // -- the reader scrolls ---------------------------------------------------------------------------------------------

  #scrolled(): void {
    const box = this.#box;
    if (!box) return;
    const { top, height } = this.#last;
    this.#catchUp(box);
    // content that became shorter moves the reader as well, who did not scroll; it may have grown again since
    const pushed = box.scrollHeight !== height && performance.now() - this.#hand > HAND;
    if (pushed) this.#keepEnd();
    this.#last = { top: box.scrollTop, height: box.scrollHeight };
    const up = box.scrollTop < top - 1 && box.scrollHeight >= height;
    if (up && !pushed && this.#distance() > 1) this.#stick(false);
    else if (this.#distance() <= NEAR) this.#stick(true);
    this.#drawNear();
    this.#remember();
  }

  /** What has another height since then is made up for here: the observer comes later, and would not see it any more. */
  #catchUp(box: HTMLElement): void {
    const { top, height } = this.#last;
    if (!this.#anchor || box.scrollHeight === height) return;
    // a browser moves who is at the end of what became shorter; anything else is the reader
    const pushed = box.scrollHeight < height && this.#distance() <= 1;
    box.scrollTop += this.#moved(this.#anchor) + (pushed ? 0 : box.scrollTop - top);
  }

  /** Who unfolds something wants to see that, and not the end: what was pressed stays where it is. */
  #pressed(event: Event): void {
    const place = event.target instanceof Element ? event.target.closest('[aria-expanded="false"]') : null;
    const chunk = place?.closest(".transcript-chunk");
    if (!place || !chunk) return;
    this.#stick(false);
    const [top, chunkTop] = [place.getBoundingClientRect().top, chunk.getBoundingClientRect().top];
    this.#anchor = { place, chunk, top, chunkTop };
  }

  #stick(stuck: boolean): void {
    if (stuck || this.stuck.peek()) this.#seen = this.#layout.count;
    this.stuck.value = stuck;
    this.fresh.value = Math.max(0, this.#layout.count - this.#seen);
  }

  #distance(): number {
    const box = this.#box;
    return box ? box.scrollHeight - box.clientHeight - box.scrollTop : 0;
  }

  // -- the content changes --------------------------------------------------------------------------------------------

  #keepEnd(): void {
    if (this.#box && this.stuck.peek()) this.#box.scrollTop = this.#box.scrollHeight;
  }

  /** Something has another height: be where the reader was. */
  #settle(): void {
    const box = this.#box;
    if (!box) return;
    this.low.value = box.clientHeight > 0 && box.clientHeight < LOW;
    if (this.stuck.peek()) this.#keepEnd();
    else if (this.#anchor) box.scrollTop += this.#moved(this.#anchor);
    this.#last = { top: box.scrollTop, height: box.scrollHeight };
    this.#drawNear();
    this.#remember();
  }

  #moved({ place, chunk, top, chunkTop }: Anchor): number {
    if (place.isConnected) return place.getBoundingClientRect().top - top;
    return chunk.isConnected ? chunk.getBoundingClientRect().top - chunkTop : 0;
  }

  /** What the reader sees first. */
  #remember(): void {
    this.#anchor = null;
    const box = this.#box;
    if (!box || this.stuck.peek()) return;
    const edge = box.getBoundingClientRect().top;
    const chunks = this.#elements();
    const chunk = chunks[firstBelow(chunks, edge)];
    if (!chunk) return;
    const place = [...chunk.children].find((row) => row.getBoundingClientRect().bottom > edge) ?? chunk;
    const [top, chunkTop] = [place.getBoundingClientRect().top, chunk.getBoundingClientRect().top];
    this.#anchor = { place, chunk, top, chunkTop };
  }

  #elements(): HTMLCollection {
    return this.#box!.getElementsByClassName("transcript-chunk");
  }

  // -- what is drawn --------------------------------------------------------------------------------------------------

  /** The places of the first and the last chunk on the screen. */
  #onScreen(): [first: number, last: number] {
    const box = this.#box!;
    const { top, bottom } = box.getBoundingClientRect();
    const chunks = this.#elements();
    const first = firstBelow(chunks, top);
    return [first, Math.max(first, firstBelow(chunks, bottom))];
  }

  #drawNear(): void {
    if (!this.#box?.clientHeight) return; // nothing has a place yet
    const [first, last] = this.#onScreen();
    const chunks = this.#layout.chunks.peek();
    draw(chunks.slice(first, last + 1));
    const [above, below] = [
      chunks.slice(Math.max(0, first - AROUND), first),
      chunks.slice(last + 1, last + AROUND + 1),
    ];
    this.#soon = [...above, ...below.reverse()].filter((chunk) => !chunk.drawn.peek());
    this.#drawSoon();
    this.#trim();
  }

  /** What is near, one a frame: all at once would hold up the scrolling. */
  #drawSoon(): void {
    if (this.#frame || !this.#soon.length) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      const next = this.#soon.pop();
      if (!next || !this.#box) return;
      next.drawn.value = true;
      this.#drawSoon();
    });
  }

  /** Let go of what is farthest away when there is too much. */
  #trim(): void {
    const chunks = this.#layout.chunks.peek();
    const drawn = chunks.flatMap((chunk, at) => (chunk.drawn.peek() ? [at] : []));
    if (drawn.length <= MOST) return;
    const middle = this.#box?.clientHeight && !this.stuck.peek() ? this.#onScreen()[0] : chunks.length - 1;
    drawn.sort((one, other) => Math.abs(other - middle) - Math.abs(one - middle));
    for (const at of drawn.slice(0, drawn.length - MOST)) this.#erase(chunks[at]!, at);
  }

  #erase(chunk: Chunk, at: number): void {
    const element = this.#box && (this.#elements()[at] as HTMLElement | undefined);
    chunk.height = element?.offsetHeight || chunk.height;
    chunk.drawn.value = false;
  }

  #planIdle(): void {
    this.#idle ??=
      "requestIdleCallback" in globalThis
        ? requestIdleCallback(() => this.#fill(), { timeout: 1000 })
        : setTimeout(() => this.#fill(), 100);
  }

  #stopIdle(): void {
    if (this.#idle === null) return;
    if ("cancelIdleCallback" in globalThis) cancelIdleCallback(this.#idle as number);
    else clearTimeout(this.#idle);
    this.#idle = null;
  }

  /** One chunk more, upwards from the lowest that is drawn, until there is enough to find things in. */
  #fill(): void {
    this.#idle = null;
    const chunks = this.#layout.chunks.peek();
    if (!this.#box || chunks.filter((chunk) => chunk.drawn.peek()).length >= FILLED) return;
    const lowest = chunks.findLastIndex((chunk) => chunk.drawn.peek());
    const next = chunks.slice(0, lowest + 1).findLast((chunk) => !chunk.drawn.peek());
    if (!next) return;
    next.drawn.value = true;
    this.#planIdle();
  }
}

const draw = (chunks: readonly Chunk[]): void => {
  for (const chunk of chunks) if (!chunk.drawn.peek()) chunk.drawn.value = true;
};

/** The first element that ends below the edge, by halving: they follow on each other. */
function firstBelow(elements: HTMLCollection, edge: number): number {
  let [low, high] = [0, elements.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (elements[middle]!.getBoundingClientRect().bottom > edge) high = middle;
    else low = middle + 1;
  }
  return Math.max(0, low);
}
