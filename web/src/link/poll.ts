/**
 * The lane by long polling, for proxies that let no WebSocket through or hold streams back: requests that the hub
 * answers as soon as there is something.
 *
 * One request for what concerns all sessions, and one for each session that is followed; a page follows few. The lists
 * are read again when something happened that shows in them, and now and then: not every change is an event. Sessions
 * that were begun elsewhere are taken to have changed every few seconds.
 */
import { isObject } from "../model/json";
import type { Json, SessionEvent } from "../model/wire.gen";
import type { Command, Lane, LaneEvents, Loss } from "./lane";
import { Listing } from "./listing";
import type { Answer, Ports, Request } from "./ports";
import { failure } from "./socket";

/** Seconds that the hub may wait before it answers with nothing; below what proxies allow. */
const WAIT = 25;
/** Milliseconds beyond that after which no answer is taken for a lost one. */
const PATIENCE = 15_000;
const PAGE = 1000;
/** Events that show in the list of sessions or among what waits for a decision. */
const TOLD = "approval:*,session:*,interaction:question,message:start,tool:start,custom";
/** Milliseconds between two readings of the lists, however much happens. */
const APART = 1000;
/** Milliseconds after which what was begun elsewhere may be other than before: no request waits for that. */
const ELSEWHERE = 5000;

class Lost extends Error {
  constructor(readonly loss: Loss) {
    super(loss);
  }
}

export class PollLane implements Lane {
  readonly kind = "poll";
  readonly #ports: Ports;
  readonly #events: LaneEvents;
  readonly #all = new AbortController();
  readonly #sessions = new Map<string, AbortController>();

  constructor(ports: Ports, events: LaneEvents) {
    this.#ports = ports;
    this.#events = events;
    this.#run(this.#all.signal, () => this.#begin());
  }

  follow(sessionId: string, after: number): void {
    this.unfollow(sessionId);
    const stop = new AbortController();
    this.#sessions.set(sessionId, stop);
    this.#run(stop.signal, () => this.#session(sessionId, after, stop.signal));
  }

  unfollow(sessionId: string): void {
    this.#sessions.get(sessionId)?.abort();
    this.#sessions.delete(sessionId);
  }

  send(command: Command): void {
    this.#run(this.#all.signal, () => this.#command(command));
  }

  /** A request is under way at all times, but one that a dead network swallowed does not end. */
  check(patience: number): void {
    const stop = new AbortController();
    const cancel = this.#ports.clock.after(patience, () => stop.abort());
    this.#run(this.#all.signal, () =>
      this.#ask("whoami", stop.signal).then(cancel, (error: unknown) => {
        cancel();
        throw error;
      }),
    );
  }

  close(): void {
    this.#all.abort();
    for (const stop of this.#sessions.values()) stop.abort();
    this.#sessions.clear();
  }

  /** The first loop that fails ends the lane; one that was stopped ends quietly. */
  #run(signal: AbortSignal, loop: () => Promise<void>): void {
    loop().catch((error: unknown) => {
      if (signal.aborted || this.#all.signal.aborted) return;
      this.close();
      this.#events.lost(error instanceof Lost ? error.loss : "broken");
    });
  }

  // -- requests -------------------------------------------------------------------------------------------------------

  async #ask(path: string, signal: AbortSignal, request: Request = {}): Promise<Answer> {
    if (signal.aborted) throw new Lost("broken");
    const stop = new AbortController();
    const abort = () => stop.abort();
    signal.addEventListener("abort", abort);
    const cancel = this.#ports.clock.after(WAIT * 1000 + PATIENCE, abort);
    try {
      const answer = await this.#ports.fetch(path, { ...request, signal: stop.signal });
      if (signal.aborted) throw new Lost("broken");
      if (answer.status === 401) throw new Lost("refused");
      if (answer.status === 429 || answer.status >= 500) throw new Lost("broken");
      return answer;
    } finally {
      cancel();
      signal.removeEventListener("abort", abort);
    }
  }

  async #get(path: string): Promise<Json> {
    const { status, body } = await this.#ask(path, this.#all.signal);
    if (status !== 200 || body === null) throw new Lost("broken");
    return body;
  }

  // -- what concerns all sessions -------------------------------------------------------------------------------------

  async #begin(): Promise<void> {
    const who = await this.#get("whoami");
    const { name, scopes } = isObject(who) ? who : {};
    // where the log ends now, before the lists are read: what happens meanwhile is told again and not missed
    let position = cursorOf(await this.#get("events?live=true&limit=1"), 0);
    const listing = new Listing();
    const sessions = await this.#get("sessions");
    this.#events.ready({ name: String(name), scopes: Array.isArray(scopes) ? scopes.map(String) : [] });
    this.#events.news(listing.begin(sessions));
    await this.#approvals();
    this.#run(this.#all.signal, () => this.#elsewhere());
    for (;;) {
      const page = await this.#get(`events?after=${position}&types=${TOLD}&limit=${PAGE}&wait=${WAIT}`);
      position = cursorOf(page, position);
      if (eventsOf(page).some(({ type }) => type.startsWith("approval:"))) await this.#approvals();
      for (const news of listing.take(await this.#get("sessions"))) this.#events.news(news);
      await this.#pause(APART);
    }
  }

  /** Whoever looks at that reads it again; for anybody else it is a number that counts up. */
  async #elsewhere(): Promise<void> {
    for (;;) {
      await this.#pause(ELSEWHERE);
      if (this.#all.signal.aborted) return;
      this.#events.news({ type: "discovered_changed" });
    }
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => void this.#ports.clock.after(milliseconds, resolve));
  }

  async #approvals(): Promise<void> {
    const answer = await this.#get("approvals");
    const approvals = isObject(answer) ? answer["approvals"] : answer;
    this.#events.news({ type: "approvals", approvals: Array.isArray(approvals) ? approvals : [] });
  }

  // -- one session ----------------------------------------------------------------------------------------------------

  async #session(sessionId: string, after: number, signal: AbortSignal): Promise<void> {
    let cursor = after;
    let wait = 0;
    for (;;) {
      const path = `sessions/${encodeURIComponent(sessionId)}/events?after=${cursor}&limit=${PAGE}&wait=${wait}`;
      const { status, body } = await this.#ask(path, signal);
      if (status === 409 && cursor > 0) {
        cursor = 0;
        this.#events.reset(sessionId);
        continue;
      }
      if (status !== 200) {
        const error = isObject(body) ? body["error"] : null;
        this.#sessions.delete(sessionId);
        this.#events.gone(sessionId, failure(error ?? undefined, `http_${status}`));
        return;
      }
      const events = eventsOf(body);
      const before = cursor;
      cursor = cursorOf(body, cursor);
      if (events.length) this.#events.events(sessionId, events);
      if (wait === 0 && cursor === before) {
        wait = WAIT;
        this.#events.caughtUp(sessionId);
      }
    }
  }

  async #command({ commandId, sessionId, command }: Command): Promise<void> {
    const path = `sessions/${encodeURIComponent(sessionId)}/commands`;
    const answer = await this.#ask(path, this.#all.signal, { method: "POST", body: { ...command, commandId } });
    const body = isObject(answer.body) ? answer.body : {};
    if (answer.status >= 300) {
      this.#events.outcome(commandId, { ok: false, error: failure(body["error"], `http_${answer.status}`) });
      return;
    }
    const { result = null, seq } = body;
    this.#events.outcome(commandId, { ok: true, result, seq: typeof seq === "number" ? seq : null });
  }
}

const eventsOf = (page: Json): SessionEvent[] =>
  isObject(page) && Array.isArray(page["events"]) ? (page["events"] as unknown as SessionEvent[]) : [];

const cursorOf = (page: Json, otherwise: number): number =>
  isObject(page) && typeof page["seq"] === "number" ? page["seq"] : otherwise;
