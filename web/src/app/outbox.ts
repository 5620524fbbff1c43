/**
 * Prompts between the press of the button and the hub's word that it has them.
 *
 * Each has an id of its own, under which the hub takes it once however often it is sent; so one that was on its way when
 * the page went is sent again by the next page. What the hub refuses goes back to where it was typed.
 */
import { signal } from "@preact/signals";
import { CommandFailed } from "../link/link";
import { isObject, textOf } from "../model/json";
import type { Session } from "../model/session";
import { type Picture, type Prompt, sendMessage, wordsOf } from "./commands";
import { draftOf } from "./drafts";
import { type Hub, words } from "./hub";
import type { Queued } from "./queue";
import { read, write } from "./stored";

export interface Outgoing {
  id: string;
  prompt: Prompt;
  text: string;
  mentions: string[];
  pictures: Picture[];
  /** The last event when it was sent: what tells of it comes later. */
  after: number;
  /** What the hub calls it; null until it has it. */
  turnId: string | null;
}

/** A prompt that nobody saw go is sent again within this time; later it is only a draft. */
const FRESH = 10 * 60_000;
/** Characters that are kept for the next page; a picture is more. */
const KEPT = 200_000;
/** The hub has it: if no event tells of it in this time, it went another way. */
const LINGER = 15_000;

/** One that is too large to be kept whole has no prompt: its words become a draft. */
type Kept = { id: string; prompt: Prompt | null; text: string; mentions: string[]; at: number };

export class Outbox {
  readonly sending = signal<readonly Outgoing[]>([]);
  /** Why the last one came back. */
  readonly failed = signal<string | null>(null);
  readonly #hub: Hub;
  readonly #sessionId: string;
  readonly #sent = new Map<string, number>();

  constructor(hub: Hub, sessionId: string) {
    this.#hub = hub;
    this.#sessionId = sessionId;
    for (const one of read<Kept[]>(this.#name, [])) this.#again(one);
  }

  /** Whether the hub took it; if not, it is back in the draft. */
  async send(prompt: Prompt, text: string, mentions: string[], pictures: readonly Picture[], after: number) {
    const id = this.#hub.ports.newId();
    this.#sent.set(id, Date.now());
    return this.#carry({ id, prompt, text, mentions, pictures: [...pictures], after, turnId: null });
  }

  /** Let go of those that the session tells of by now. */
  settle(session: Session, queue: readonly Queued[]): void {
    const { sending } = this;
    const left = sending.value.filter((one) => !arrived(one, session, queue));
    if (left.length < sending.value.length) sending.value = left;
  }

  get #name(): string {
    return `outbox:${this.#sessionId}`;
  }

  #again({ id, prompt, text, mentions, at }: Kept): void {
    if (prompt !== null && Date.now() - at < FRESH) {
      this.#sent.set(id, at);
      void this.#carry({ id, prompt, text, mentions, pictures: [], after: 0, turnId: null });
    } else {
      this.#sent.set(id, at);
      draftOf(this.#sessionId).restore(text, mentions, []);
      this.#keep();
    }
  }

  async #carry(one: Outgoing): Promise<boolean> {
    this.failed.value = null;
    this.sending.value = [...this.sending.value, one];
    this.#keep();
    try {
      const result = await sendMessage(this.#hub, this.#sessionId, one.prompt, one.id);
      const turnId = isObject(result) ? textOf(result["turnId"]) : "";
      this.#change(one.id, turnId ? { ...one, turnId } : null);
      setTimeout(() => this.#change(one.id, null), LINGER);
      return true;
    } catch (error) {
      if (error instanceof CommandFailed && error.failure.code === "closed") return false; // the next page goes on
      this.#change(one.id, null);
      draftOf(this.#sessionId).restore(one.text, one.mentions, one.pictures);
      this.failed.value = words(error);
      return false;
    }
  }

  #change(id: string, to: Outgoing | null): void {
    this.sending.value = this.sending.value.flatMap((one) => (one.id === id ? (to ? [to] : []) : [one]));
    this.#keep();
  }

  /** What the hub has not taken yet, where the next page finds it; what other tabs have there is theirs. */
  #keep(): void {
    const others = read<Kept[]>(this.#name, []).filter(({ id }) => !this.#sent.has(id));
    const kept = this.sending.value
      .filter((one) => one.turnId === null)
      .map(({ id, prompt, text, mentions }): Kept => {
        const whole = JSON.stringify(prompt).length <= KEPT;
        return { id, prompt: whole ? prompt : null, text, mentions, at: this.#sent.get(id) ?? 0 };
      });
    const all = [...others, ...kept];
    write(this.#name, all.length ? all : null);
  }
}

/** Whether the transcript or the queue shows it, so that it is not shown twice. */
function arrived(one: Outgoing, session: Session, queue: readonly Queued[]): boolean {
  const { turn, items } = session.fields;
  if (one.turnId !== null && (turn?.turnId === one.turnId || queue.some(({ promptId }) => promptId === one.turnId)))
    return true;
  for (let place = items.length - 1; place >= 0; place -= 1) {
    const item = items[place];
    if (!item || item.seq <= one.after) return false;
    if (one.turnId !== null && item.turnId === one.turnId) return true;
    if (item.type === "message" && item.role === "user" && one.after && wordsOf(item.content) === said(one))
      return true;
    if (item.type === "custom" && isObject(item.data)) {
      const { clientRequestId, promptId } = item.data;
      if (item.eventName === "prompt_queued" && clientRequestId === one.id) {
        return queue.some((queued) => queued.promptId === promptId);
      }
      if (item.eventName === "prompt_cancelled" && promptId === one.turnId) return true;
    }
  }
  return false;
}

const said = ({ prompt, text }: Outgoing): string => (typeof prompt === "string" ? prompt : text.trim());

const outboxes = new WeakMap<Hub, Map<string, Outbox>>();

/** The same one as long as the page lasts: a prompt goes on its way while another session is looked at. */
export function outboxOf(hub: Hub, sessionId: string): Outbox {
  const known = outboxes.get(hub) ?? new Map<string, Outbox>();
  outboxes.set(hub, known);
  let outbox = known.get(sessionId);
  if (!outbox) known.set(sessionId, (outbox = new Outbox(hub, sessionId)));
  return outbox;
}
