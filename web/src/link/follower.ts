/**
 * A session that is followed: where it is, and what of the events that come is new.
 *
 * Events count from 1 without gaps. One that came before is passed over; one that comes too early means that something
 * was lost on the way, and everything from the cursor on is asked for again.
 */
import type { Failed, SessionEvent } from "../model/wire.gen";

/** Who takes the events. */
export interface Sink {
  /** Each event once, in order. */
  events(events: SessionEvent[]): void;
  /** Forget all: the session comes anew. */
  reset(): void;
  /** There is no such session (any more), or one may not see it. */
  gone(error: Failed): void;
}

/** How often one gap is asked for before it is believed that nothing is there. */
const PATIENCE = 2;

export class Follower {
  cursor: number;
  readonly sink: Sink;
  #caughtUp = false;
  /** What is missing was asked for; until it comes, what lies beyond it is of no use. */
  #asking = false;
  #asked = 0;

  constructor(sink: Sink, after: number) {
    this.sink = sink;
    this.cursor = after;
  }

  get caughtUp(): boolean {
    return this.#caughtUp;
  }

  /** It was asked for anew from the cursor on, over a new lane. */
  begin(): void {
    this.#caughtUp = this.#asking = false;
  }

  /** Hand on what is new. False when something is missing that must be asked for. */
  take(events: readonly SessionEvent[]): boolean {
    const fresh = events.filter((event) => this.#isNext(event.seq));
    const missing = events.some((event) => event.seq > this.cursor);
    if (fresh.length) {
      this.#asking = false;
      this.#asked = 0;
      this.sink.events(fresh);
    }
    if (!missing || this.#asking) return true;
    this.#asking = true;
    return false;
  }

  #isNext(seq: number): boolean {
    if (seq <= this.cursor || (seq > this.cursor + 1 && this.#asked < PATIENCE)) return false;
    this.cursor = seq;
    return true;
  }

  /** All that is stored has come. False when something is missing all the same. */
  settle(): boolean {
    this.#caughtUp = true;
    if (!this.#asking) return true;
    this.#asking = false;
    this.#asked += 1;
    return false;
  }

  reset(): void {
    this.cursor = 0;
    this.begin();
    this.#asked = 0;
    this.sink.reset();
  }
}
