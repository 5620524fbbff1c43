/**
 * Stop, and what became of it. The first press asks the agent to end its turn; the hub ends an agent that does not
 * within ten seconds, and at once after a second press. It is over when the session says that the turn is.
 */
import { computed, signal } from "@preact/signals";
import { cancel } from "./commands";
import { words } from "./hub";
import type { OpenSession } from "./open";

/** Seconds that the hub gives an agent. */
export const DEADLINE = 10;

export interface Stop {
  turnId: string;
  since: number;
  forced: boolean;
  failed: string | null;
}

export class Stopping {
  readonly #open: OpenSession;
  readonly #stop = signal<Stop | null>(null);

  constructor(open: OpenSession) {
    this.#open = open;
  }

  /** The turn that runs; null when none does. */
  readonly turnId = computed(() => {
    void this.#open.head.value;
    const turn = this.#open.session.value?.fields.turn;
    return turn?.open ? turn.turnId : null;
  });

  /** Null when nothing is being stopped. */
  readonly stage = computed(() => {
    const stop = this.#stop.value;
    return stop && stop.turnId === this.turnId.value ? stop : null;
  });

  press(): void {
    const turnId = this.turnId.value;
    if (turnId === null) return;
    const before = this.stage.value;
    if (before?.forced && !before.failed) return;
    const forced = before !== null && !before.failed;
    const stop = { turnId, since: before?.since ?? Date.now(), forced, failed: null };
    this.#stop.value = stop;
    cancel(this.#open.hub, this.#open.id, forced).catch((error: unknown) => {
      if (this.#stop.value === stop) this.#stop.value = { ...stop, failed: words(error) };
    });
  }
}
