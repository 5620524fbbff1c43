/** A recording that is read from the hub, page by page; what failed goes on where it stopped. */
import { signal } from "@preact/signals";
import type { Clock } from "../link/ports";
import type { SessionEvent } from "../model/wire.gen";
import { type Api, path } from "./api";
import { words } from "./hub";
import { Recording } from "./recording";
import { ReplaySession } from "./replay";

const PAGE = 2000;

interface EventPage {
  events: SessionEvent[];
  /** Where the next page begins. */
  seq: number;
}

export class Reading {
  /** The number of the last event that is here. */
  readonly read = signal(0);
  readonly failed = signal<string | null>(null);
  /** There when all has been read. */
  readonly replay = signal<ReplaySession | null>(null);
  readonly #id: string;
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #recording = new Recording();
  #closed = false;

  constructor(id: string, api: Api, clock: Clock) {
    this.#id = id;
    this.#api = api;
    this.#clock = clock;
  }

  /** Read what is stored; of a session that goes on, no more than up to `last`, where that is known. */
  async go(last = Infinity): Promise<void> {
    this.failed.value = null;
    try {
      while (!this.#closed && (await this.#page()) && this.read.value < last);
    } catch (error) {
      this.failed.value = words(error);
      return;
    }
    if (!this.#closed) this.replay.value = new ReplaySession(this.#recording, this.#clock);
  }

  close(): void {
    this.#closed = true;
    this.replay.value?.close();
  }

  /** The next page; whether there was anything in it. */
  async #page(): Promise<boolean> {
    const after = this.read.value;
    const page = await this.#api.get<EventPage>(`${path("sessions", this.#id, "events")}?after=${after}&limit=${PAGE}`);
    if (this.#closed || page.seq <= after) return false;
    this.#recording.add(page.events);
    this.read.value = page.seq;
    return true;
  }
}
