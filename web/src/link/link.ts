/**
 * The link to the hub: one lane at a time, and coming back when it is lost.
 *
 *     connecting → catching_up → live
 *                       ↑          ↓
 *                       └── reconnecting → refused (until somebody logs in)
 *
 * The lane of choice is the WebSocket: one connection carries every session, what waits for a decision and the
 * commands, and a browser allows many of them, but only six streams of events to one host, over all its tabs. Where
 * none gets through, long polling does. Cursors live here, so whatever happens to lanes, a sink sees every event once
 * and in order; and so do commands, which are sent again under the same id until they are answered.
 */
import type { Failed, Json } from "../model/wire.gen";
import { delay } from "./backoff";
import { Follower, type Sink } from "./follower";
import type { Command, Greeting, Lane, LaneEvents, Loss, News, Outcome } from "./lane";
import { PollLane } from "./poll";
import type { Cancel, Ports } from "./ports";
import { SocketLane } from "./socket";

export type Phase = "connecting" | "catching_up" | "live" | "reconnecting" | "refused" | "closed";

export interface Status {
  readonly phase: Phase;
  readonly lane: Lane["kind"];
  /** When the hub was last known to be there, by the clock of the ports; null if it never was. */
  readonly seen: number | null;
}

export interface LinkEvents {
  status(status: Status): void;
  greeted(greeting: Greeting): void;
  news(news: News): void;
}

/** A command that the hub refused, or that will not be answered any more. */
export class CommandFailed extends Error {
  constructor(readonly failure: Failed) {
    super(failure.message);
  }
}

/** Failures in a row, each without a greeting, after which the other kind of lane is tried. */
const TRIES = 2;
/** Milliseconds of polling after which it is seen whether a WebSocket gets through by now. */
const PROBE = 300_000;
/** Milliseconds that the hub has to answer after the page was away, when somebody is looking. */
const CHECK = 3_000;
/** The same when the browser says that the network is gone: what is shown is old within half a second. */
const DOUBT = 400;
/** Bytes of a command, with room for what is around it in a frame: a larger one would cost the lane, each time anew. */
const LARGEST = (8 << 20) - 1024;
/** Two signs of life of the page within this time are one. */
const WAKE_APART = 1000;

interface Pending extends Command {
  /** It goes by the lane there is, or not at all. */
  brief: boolean;
  settle(outcome: Outcome): void;
}

export class Link {
  readonly #ports: Ports;
  readonly #told: LinkEvents;
  readonly #followers = new Map<string, Follower>();
  readonly #pending = new Map<string, Pending>();
  #lane: Lane | null = null;
  #probing: Lane | null = null;
  /** The kind of lane that worked last. */
  #preferred: Lane["kind"] = "socket";
  #ready = false;
  #status: Status = { phase: "connecting", lane: "socket", seen: null };
  #failures = 0;
  #ungreeted = 0;
  #timer: Cancel = () => {};
  #woken = -Infinity;

  constructor(ports: Ports, told: LinkEvents) {
    this.#ports = ports;
    this.#told = told;
    this.#connect();
  }

  get status(): Status {
    return this.#status;
  }

  /** Hand the session's events beyond `after` to the sink, until it is unfollowed. */
  follow(sessionId: string, after: number, sink: Sink): void {
    const follower = new Follower(sink, after);
    this.#followers.set(sessionId, follower);
    this.#ask(sessionId, follower);
    this.#settle();
  }

  unfollow(sessionId: string): void {
    if (!this.#followers.delete(sessionId)) return;
    if (this.#ready) this.#lane?.unfollow(sessionId);
    this.#settle();
  }

  /** Carried out once, however often it has to be sent. Rejects with CommandFailed. */
  command(sessionId: string, command: Command["command"], commandId = this.#ports.newId()): Promise<Json> {
    return this.#carry(sessionId, command, commandId, false);
  }

  /**
   * The same for what is about this very moment, such as a stop: it is not sent later, when it would hit something
   * else. Rejects with the code `lost` when the hub is out of reach, or goes before it has answered.
   */
  commandNow(sessionId: string, command: Command["command"]): Promise<Json> {
    return this.#carry(sessionId, command, this.#ports.newId(), true);
  }

  #carry(sessionId: string, command: Command["command"], commandId: string, brief: boolean): Promise<Json> {
    return new Promise((resolve, reject) => {
      const settle = (outcome: Outcome) =>
        outcome.ok ? resolve(outcome.result) : reject(new CommandFailed(outcome.error));
      const pending = { commandId, sessionId, command, brief, settle };
      if (this.#status.phase === "closed") {
        settle({ ok: false, error: CLOSED });
        return;
      }
      if (brief && !this.#ready) {
        settle({ ok: false, error: LOST });
        return;
      }
      if (isTooLarge(command)) {
        settle({ ok: false, error: TOO_LARGE });
        return;
      }
      this.#pending.set(commandId, pending);
      if (this.#ready) this.#lane?.send(pending);
    });
  }

  /** The page came to the front, or the network is back: come back at once, or look whether the hub is still there. */
  wake(): void {
    const now = this.#ports.clock.now();
    if (now - this.#woken < WAKE_APART) return;
    this.#woken = now;
    if (this.#status.phase === "closed") return;
    if (this.#status.phase === "refused")
      this.retry(); // somebody may have logged in elsewhere
    else if (!this.#lane) {
      this.#failures = 0;
      this.#connect();
    } else if (this.#ready) {
      this.#lane.check(CHECK);
      for (const [sessionId, follower] of this.#followers) this.#ask(sessionId, follower);
    }
  }

  /** The browser says that the network is gone. That need not concern a hub on this machine: it is asked. */
  doubt(): void {
    if (this.#ready) this.#lane?.check(DOUBT);
  }

  /** Somebody logged in, perhaps as another one than before: come anew. */
  retry(): void {
    if (this.#status.phase === "closed") return;
    this.#failures = this.#ungreeted = 0;
    this.#connect();
  }

  close(): void {
    this.#drop();
    this.#enter("closed");
    for (const pending of this.#pending.values()) pending.settle({ ok: false, error: CLOSED });
    this.#pending.clear();
    this.#followers.clear();
  }

  // -- lanes ----------------------------------------------------------------------------------------------------------

  #connect(): void {
    this.#drop();
    const other = Math.floor(this.#ungreeted / TRIES) % 2 === 1;
    const kind = (this.#preferred === "socket") === other ? "poll" : "socket";
    this.#enter(this.#status.seen === null ? "connecting" : "reconnecting", kind);
    const events = this.#laneEvents(
      (loss) => this.#lost(loss),
      (greeting) => this.#greeted(greeting),
    );
    this.#lane = kind === "poll" ? new PollLane(this.#ports, events) : new SocketLane(this.#ports, events);
  }

  #laneEvents(lost: LaneEvents["lost"], ready: LaneEvents["ready"]): LaneEvents {
    return {
      ready,
      lost,
      news: (news) => this.#told.news(news),
      events: (sessionId, list) => {
        const follower = this.#followers.get(sessionId);
        if (follower && !follower.take(list)) this.#ask(sessionId, follower);
      },
      caughtUp: (sessionId) => {
        const follower = this.#followers.get(sessionId);
        if (follower && !follower.settle()) this.#ask(sessionId, follower);
        this.#settle();
      },
      reset: (sessionId) => this.#followers.get(sessionId)?.reset(),
      gone: (sessionId, error) => {
        const follower = this.#followers.get(sessionId);
        this.#followers.delete(sessionId);
        follower?.sink.gone(error);
        this.#settle();
      },
      outcome: (commandId, outcome) => {
        this.#pending.get(commandId)?.settle(outcome);
        this.#pending.delete(commandId);
      },
    };
  }

  /** While polling works: see whether a WebSocket does by now, and change over if so. */
  #probe(): void {
    const again = () => {
      this.#timer = this.#ports.clock.after(PROBE, () => this.#probe());
    };
    const lane: Lane = new SocketLane(
      this.#ports,
      this.#laneEvents(
        (loss) => (this.#lane === lane ? this.#lost(loss) : again()),
        (greeting) => {
          this.#lane?.close();
          this.#lane = lane;
          this.#probing = null;
          this.#enter("catching_up", "socket");
          this.#greeted(greeting);
        },
      ),
    );
    this.#probing = lane;
  }

  /** Let go of the lane, and of what was planned. */
  #drop(): void {
    this.#timer();
    this.#timer = () => {};
    this.#lane?.close();
    this.#probing?.close();
    this.#lane = this.#probing = null;
    this.#ready = false;
    for (const [commandId, pending] of this.#pending) {
      if (!pending.brief) continue;
      this.#pending.delete(commandId);
      pending.settle({ ok: false, error: LOST });
    }
  }

  #greeted(greeting: Greeting): void {
    this.#ready = true;
    this.#failures = this.#ungreeted = 0;
    this.#preferred = this.#status.lane;
    this.#status = { ...this.#status, seen: this.#ports.clock.now() };
    this.#told.greeted(greeting);
    for (const [sessionId, follower] of this.#followers) {
      follower.begin();
      this.#ask(sessionId, follower);
    }
    for (const pending of this.#pending.values()) this.#lane?.send(pending);
    this.#settle();
    if (this.#lane?.kind === "poll") this.#timer = this.#ports.clock.after(PROBE, () => this.#probe());
  }

  #ask(sessionId: string, follower: Follower): void {
    if (this.#ready) this.#lane?.follow(sessionId, follower.cursor);
  }

  #lost(loss: Loss): void {
    const seen = this.#ready ? this.#ports.clock.now() : this.#status.seen;
    if (!this.#ready) this.#ungreeted += loss === "silent" ? TRIES - (this.#ungreeted % TRIES) : 1;
    this.#drop();
    this.#status = { ...this.#status, seen };
    if (loss === "refused") {
      this.#enter("refused");
      return;
    }
    this.#failures += 1;
    this.#enter(seen === null ? "connecting" : "reconnecting");
    this.#timer = this.#ports.clock.after(delay(this.#failures, this.#ports.random()), () => this.#connect());
  }

  // -- phases ---------------------------------------------------------------------------------------------------------

  /** Live once every session has caught up. */
  #settle(): void {
    if (!this.#ready) return;
    const live = [...this.#followers.values()].every((follower) => follower.caughtUp);
    this.#enter(live ? "live" : "catching_up");
  }

  #enter(phase: Phase, lane = this.#status.lane): void {
    if (phase === this.#status.phase && lane === this.#status.lane) return;
    this.#status = { ...this.#status, phase, lane };
    this.#told.status(this.#status);
  }
}

const TOO_LARGE: Failed = { code: "too_large", message: "It is too large: 8 MB at most", recoverable: true };

function isTooLarge(command: Command["command"]): boolean {
  const text = JSON.stringify(command);
  return text.length * 3 > LARGEST && new TextEncoder().encode(text).length > LARGEST;
}

const LOST: Failed = { code: "lost", message: "The hub is out of reach", recoverable: true };
const CLOSED: Failed = { code: "closed", message: "The page let go of the hub", recoverable: true };
