/**
 * Stop, and what became of it. The first press asks the agent to end its turn; the hub ends an agent that does not
 * within ten seconds, and at once after a second press. It is over when the session says that the turn is. What is
 * pressed while the hub is out of reach is asked once it is known that the same turn still runs: never of the next one.
 */
import { computed, signal } from "@preact/signals";
import { CommandFailed } from "../link/link";
import type { Turn } from "../model/wire.gen";
import { path } from "./api";
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
    this.#ask(stop);
  }

  #ask(stop: Stop): void {
    cancel(this.#open.hub, this.#open.id, stop.forced).catch((error: unknown) => {
      if (error instanceof CommandFailed && error.failure.code === "lost") this.#askLater(stop);
      else this.#failed(stop, error);
    });
  }

  #failed(stop: Stop, error: unknown): void {
    if (this.#stop.value === stop) this.#stop.value = { ...stop, failed: words(error) };
  }

  /** When the hub is back, whatever is looked at by then. */
  #askLater(stop: Stop): void {
    const { status, api } = this.#open.hub;
    const again = async () => {
      if (this.#stop.value !== stop) return;
      const now = await api.get<{ turn: Turn | null }>(`${path("sessions", this.#open.id)}?items=false`);
      if (now.turn?.open && now.turn.turnId === stop.turnId && this.#stop.value === stop) this.#ask(stop);
    };
    const end = status.subscribe(({ phase }) => {
      const isOver = this.#stop.peek() !== stop;
      if (phase !== "live" && !isOver) return;
      queueMicrotask(() => end());
      if (isOver) return;
      again().catch((error: unknown) => this.#failed(stop, error));
    });
  }
}
