/** A world for the link: a clock that is moved by hand, a network that can be broken, and a small hub behind it. */
import type { Answer, Ports, Request, SocketEvents } from "../../src/link/ports";
import { Session } from "../../src/model/session";
import type { Json, SessionEvent } from "../../src/model/wire.gen";

export class TestClock {
  time = 0;
  #timers: { at: number; call: () => void }[] = [];

  now = (): number => this.time;
  after = (milliseconds: number, call: () => void): (() => void) => {
    const timer = { at: this.time + milliseconds, call };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  };

  /** Let time pass, with everything that is due and everything that waits for nothing but its turn. */
  async pass(milliseconds: number): Promise<void> {
    const end = this.time + milliseconds;
    await settled();
    for (;;) {
      const [next] = this.#timers.filter((timer) => timer.at <= end).sort((one, other) => one.at - other.at);
      if (!next) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.time = Math.max(this.time, next.at);
      next.call();
      await settled();
    }
    this.time = end;
  }
}

/** Promises that wait for nothing else have gone on. */
export async function settled(): Promise<void> {
  for (let round = 0; round < 20; round += 1) await Promise.resolve();
}

const head = { sessionId: "s", timestamp: "2026-03-01T10:00:00.000Z", messageId: "m", role: "assistant" } as const;
export const delta = (seq: number): SessionEvent => ({ type: "message:delta", ...head, seq, delta: `${seq} ` });

interface Peer {
  events: SocketEvents;
  following: boolean;
  alive: boolean;
}

export class World {
  readonly clock = new TestClock();
  readonly log: SessionEvent[] = [];
  /** The list of sessions. */
  rows: { id: string; updated: string; [field: string]: Json }[] = [];
  readonly commands = new Map<string, number>();
  readonly said: { type: string; [field: string]: Json }[] = [];
  readonly requests: string[] = [];
  peers: Peer[] = [];
  opened = 0;
  /** How the network treats WebSockets: lets them through, refuses them, or opens them and holds all data back. */
  sockets: "through" | "refused" | "held" = "through";
  http: "through" | "down" = "through";
  /** Who we are to the hub. */
  known = true;
  #waiting: (() => void)[] = [];
  #ids = 0;

  readonly ports: Ports = {
    clock: this.clock,
    random: () => 0.5,
    newId: () => `id-${(this.#ids += 1)}`,
    openSocket: (_, events) => this.#open(events),
    fetch: (path, request) => this.#answer(path, request),
  };

  /** Something happens in the session. */
  happen(count = 1): void {
    for (let turn = 0; turn < count; turn += 1) this.log.push(delta(this.log.length + 1));
    const fresh = this.log.slice(-count);
    for (const peer of this.peers)
      if (peer.following) this.tell(peer, { type: "events", sessionId: "s", events: fresh as unknown as Json });
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** The row of a session is another one from now on, or there is none any more. */
  change(id: string, updated: string | null): void {
    this.rows = this.rows.filter((row) => row.id !== id);
    const row = updated === null ? null : { id, updated };
    if (row) this.rows.unshift(row);
    for (const peer of this.peers)
      this.tell(peer, row ? { type: "session_changed", session: row } : { type: "session_deleted", sessionId: id });
    for (const wake of this.#waiting.splice(0)) wake();
  }

  tell(peer: Peer, message: { type: string; [field: string]: Json }): void {
    queueMicrotask(() => peer.alive && peer.events.message(JSON.stringify(message)));
  }

  /** Every connection ends now, and the other side is told. */
  cut(code = 1006): void {
    for (const peer of this.peers.splice(0)) {
      if (!peer.alive) continue;
      peer.alive = false;
      peer.events.closed(code);
    }
  }

  /** Every connection is dead from now on, and nobody is told. */
  vanish(): void {
    for (const peer of this.peers.splice(0)) peer.alive = false;
  }

  // -- the WebSocket --------------------------------------------------------------------------------------------------

  #open(events: SocketEvents) {
    this.opened += 1;
    const peer: Peer = { events, following: false, alive: true };
    if (this.sockets === "refused") queueMicrotask(() => peer.alive && events.closed(1006));
    else if (this.sockets === "held") queueMicrotask(() => peer.alive && events.opened());
    else {
      this.peers.push(peer);
      queueMicrotask(() => peer.alive && events.opened());
      queueMicrotask(() => this.#greet(peer));
    }
    return {
      // what is held back does not arrive either
      send: (text: string) => queueMicrotask(() => this.peers.includes(peer) && this.#hear(peer, JSON.parse(text))),
      close: () => {
        peer.alive = false;
        this.peers = this.peers.filter((one) => one !== peer);
      },
    };
  }

  #greet(peer: Peer): void {
    if (!peer.alive || !this.known) return;
    this.tell(peer, { type: "authenticated", name: "browser", scopes: ["read"], version: "1" });
    this.tell(peer, { type: "sessions_list", sessions: this.rows });
    this.tell(peer, { type: "approvals", approvals: [] });
  }

  #hear(peer: Peer, message: { type: string; [field: string]: Json }): void {
    if (!this.known) {
      peer.alive = false;
      peer.events.closed(4401);
      return;
    }
    this.said.push(message);
    if (message.type === "ping") this.tell(peer, { type: "pong" });
    if (message.type === "unsubscribe") peer.following = false;
    if (message.type === "subscribe")
      this.#subscribe(peer, message["after"] as number, (message["sessionIds"] as string[])[0]!);
    if (message.type === "command") this.#carryOut(peer, message);
  }

  #subscribe(peer: Peer, after: number, sessionId: string): void {
    if (sessionId !== "s") {
      const error = { code: "unknown_session", message: "There is none", recoverable: false };
      this.tell(peer, { type: "error", requestId: null, sessionId, error });
      return;
    }
    peer.following = true;
    const reset = after > this.log.length;
    const from = reset ? 0 : after;
    this.tell(peer, {
      type: "subscribed",
      sessionId,
      seq: this.log.length,
      after: from,
      resume: reset ? "reset" : "ok",
    });
    const stored = this.log.slice(from);
    for (let at = 0; at < stored.length; at += 3) {
      this.tell(peer, { type: "events", sessionId, events: stored.slice(at, at + 3) as unknown as Json });
    }
    this.tell(peer, { type: "caught_up", sessionId, seq: this.log.length });
  }

  #carryOut(peer: Peer, message: { [field: string]: Json }): void {
    const id = message["commandId"] as string;
    this.commands.set(id, (this.commands.get(id) ?? 0) + 1);
    const command = (message["command"] as { command: string }).command;
    const refused = command === "refused";
    const error = { code: "conflict", message: "Not now", recoverable: true };
    this.tell(peer, {
      type: "command_result",
      commandId: id,
      ok: !refused,
      ...(refused ? { error } : { result: command, seq: 1 }),
    });
  }

  // -- HTTP -----------------------------------------------------------------------------------------------------------

  async #answer(path: string, { method = "GET", body, signal }: Request = {}): Promise<Answer> {
    this.requests.push(`${method} ${path}`);
    if (this.http === "down") throw new TypeError("no network");
    if (!this.known) return { status: 401, body: null };
    const url = new URL(path, "http://hub/");
    if (method === "POST") {
      this.commands.set((body as { commandId: string }).commandId, 1);
      return { status: 200, body: { result: "done", seq: 1 } };
    }
    if (url.pathname === "/whoami") return { status: 200, body: { name: "browser", scopes: ["read"] } };
    if (url.pathname === "/sessions") return { status: 200, body: { sessions: this.rows, next: null } };
    if (url.pathname === "/approvals") return { status: 200, body: { approvals: [] } };
    if (url.pathname === "/sessions/s/events") return this.#page(url, signal);
    if (url.pathname === "/sessions/s") return this.#state();
    if (url.pathname === "/events") {
      if (!url.searchParams.has("live")) await this.#wait(url, signal);
      return { status: 200, body: { events: [], seq: 0 } };
    }
    return { status: 404, body: { error: { code: "unknown_session", message: "There is none", recoverable: false } } };
  }

  async #page(url: URL, signal?: AbortSignal): Promise<Answer> {
    const after = Number(url.searchParams.get("after"));
    if (after > this.log.length) return { status: 409, body: { error: { code: "cursor_ahead" } } };
    if (after === this.log.length && url.searchParams.get("wait") !== "0") {
      await this.#wait(url, signal);
    }
    const events = this.log.slice(after, after + 3);
    return { status: 200, body: { events: events as unknown as Json, seq: after + events.length } };
  }

  /** Until something happens, or for as long as was asked. */
  #wait(url: URL, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve);
      this.clock.after(1000 * Number(url.searchParams.get("wait")), resolve);
      signal?.addEventListener("abort", () => reject(new Error("aborted")));
    });
  }

  /** The hub's own view of the session. */
  #state(): Answer {
    const session = new Session();
    for (const event of this.log) session.apply({ ...event });
    return { status: 200, body: session.snapshot() as unknown as Json };
  }
}
