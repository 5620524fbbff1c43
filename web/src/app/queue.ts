/**
 * The prompts that wait for the running turn to end, and the session's policy: what events tell of, but the fold does
 * not keep. They are read anew whenever an event says that they changed, and when the connection is back.
 */
import { computed, effect, signal } from "@preact/signals";
import type { Json } from "../model/wire.gen";
import { path } from "./api";
import type { OpenSession } from "./open";

export interface Queued {
  promptId: string;
  content: Json[];
}

interface Beside {
  queue?: Queued[];
  policy?: Record<string, Json> | null;
}

const TELLING = /^(?:prompt_|policy_set$)/;

export class Queue {
  readonly #open: OpenSession;
  readonly #read = signal<readonly Queued[]>([]);
  readonly policy = signal<Record<string, Json> | null>(null);
  /** Without the one whose turn has begun: the transcript shows that. */
  readonly list = computed(() => {
    void this.#open.head.value;
    const turn = this.#open.session.value?.fields.turn;
    return this.#read.value.filter(({ promptId }) => promptId !== turn?.turnId);
  });
  readonly #stop: () => void;
  #mark = "";
  #seen = 0;
  #reading = false;
  #stale = false;

  constructor(open: OpenSession) {
    this.#open = open;
    this.#stop = effect(() => {
      void open.head.value;
      void open.items.value;
      const phase = open.hub.status.value.phase;
      const mark = `${this.#last()} ${open.session.value?.fields.turn?.turnId ?? ""} ${phase === "live"}`;
      if (!open.session.value || mark === this.#mark) return;
      this.#mark = mark;
      void this.#refresh();
    });
  }

  close(): void {
    this.#stop();
  }

  /** The number of the last event that tells of a change. */
  #last(): number {
    const items = this.#open.session.value?.fields.items ?? [];
    for (let place = items.length - 1; place >= 0; place -= 1) {
      const item = items[place];
      if (!item || item.seq <= this.#seen) break;
      if (item.type === "custom" && item.namespace === "pilothouse" && TELLING.test(item.eventName)) {
        return (this.#seen = item.seq);
      }
    }
    return this.#seen;
  }

  async #refresh(): Promise<void> {
    this.#stale = true;
    if (this.#reading) return;
    this.#reading = true;
    while (this.#stale) {
      this.#stale = false;
      const answer = await this.#open.hub.api
        .get<Beside>(`${path("sessions", this.#open.id)}?items=false`)
        .catch(() => null);
      if (!answer) continue; // it is read again when the connection is back
      this.#read.value = answer.queue ?? [];
      this.policy.value = answer.policy ?? null;
    }
    this.#reading = false;
  }
}
