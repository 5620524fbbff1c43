/**
 * When to draw: at the next frame, but never for more than a small share of the time.
 *
 * What a long message costs to lay out and paint is the browser's, and grows with the message; words come faster than
 * anybody reads. So the dearer the last drawings were, the longer the page waits before the next one, up to a bound
 * at which it still looks alive.
 */
/** The share of the main thread that drawing may take, while it keeps the bound below. */
const SHARE = 1 / 24;
/** Milliseconds between two drawings, at most. */
const SLOWEST = 300;
/** Drawings that are cheaper than this many milliseconds come with every frame. */
const CHEAP = 1;

export interface Frames {
  now(): number;
  /** Before the browser draws next. */
  frame(call: () => void): () => void;
  /** As soon as it has drawn. */
  afterwards(call: () => void): void;
  after(milliseconds: number, call: () => void): () => void;
}

export class Pace {
  readonly #draw: () => void;
  readonly #frames: Frames;
  #cancel: (() => void) | null = null;
  #cost = 0;
  #drawn = -Infinity;

  constructor(draw: () => void, frames: Frames = browserFrames) {
    this.#draw = draw;
    this.#frames = frames;
  }

  /** There is something to draw. */
  plan(): void {
    if (this.#cancel) return;
    const rest = this.#drawn + this.#pause() - this.#frames.now();
    const frame = () => (this.#cancel = this.#frames.frame(() => this.#now()));
    if (rest > 0) this.#cancel = this.#frames.after(rest, frame);
    else frame();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #pause(): number {
    return this.#cost < CHEAP ? 0 : Math.min(SLOWEST, this.#cost / SHARE);
  }

  #now(): void {
    this.#cancel = null;
    const began = this.#frames.now();
    this.#draw();
    this.#frames.afterwards(() => {
      this.#drawn = this.#frames.now();
      const cost = this.#drawn - began;
      // one slow drawing is chance, a second one is not
      this.#cost += (Math.min(cost, 2 * this.#cost + 8 * CHEAP) - this.#cost) / 2;
    });
  }
}

const browserFrames: Frames = {
  now: () => performance.now(),
  frame: (call) => {
    const frame = requestAnimationFrame(call);
    return () => cancelAnimationFrame(frame);
  },
  afterwards: (call) => {
    // a message is taken up after the frame is laid out and painted
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      call();
    };
    port2.postMessage(null);
  },
  after: (milliseconds, call) => {
    const timer = setTimeout(call, milliseconds);
    return () => clearTimeout(timer);
  },
};
