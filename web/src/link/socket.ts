/**
 * The lane by WebSocket: all sessions, approvals and commands on one connection.
 *
 * A browser does not say when a connection is dead, so after a silence the lane asks, and a hub that does not answer
 * in time is gone.
 */
import { isObject, type JsonObject, textOf } from "../model/json";
import type { Failed, Json, SessionEvent } from "../model/wire.gen";
import type { Command, Lane, LaneEvents, Loss, News } from "./lane";
import type { Cancel, Ports, SocketPort } from "./ports";

/** Milliseconds until the hub must have said who we are: through a proxy that holds data back it never does. */
const GREETING = 6_000;
/** Silence after which the hub is asked whether it is there. */
const SILENCE = 20_000;
/** Milliseconds between two messages of events: often enough for who reads, and a fraction of the work of each one. */
const EVERY = 60;
/** How long it may take to answer that. */
const ANSWER = 8_000;
/** Close codes by which the hub says that this caller need not come back as it is. */
const REFUSED: ReadonlySet<number> = new Set([1008, 4401]);

export class SocketLane implements Lane {
  readonly kind = "socket";
  readonly #ports: Ports;
  readonly #events: LaneEvents;
  readonly #socket: SocketPort;
  #timer: Cancel;
  #opened = false;
  #over = false;

  constructor(ports: Ports, events: LaneEvents) {
    this.#ports = ports;
    this.#events = events;
    this.#timer = ports.clock.after(GREETING, () => this.#lose(this.#opened ? "silent" : "broken"));
    this.#socket = ports.openSocket("ws", {
      // whom the hub does not know it lets speak first, and refuses by what they say: without a word it would wait
      opened: () => {
        this.#opened = true;
        this.#say({ type: "ping" });
      },
      message: (text) => this.#take(text),
      closed: (code) => this.#lose(REFUSED.has(code) ? "refused" : "broken"),
    });
  }

  follow(sessionId: string, after: number): void {
    this.#say({ type: "subscribe", sessionIds: [sessionId], after, every: EVERY });
  }

  unfollow(sessionId: string): void {
    this.#say({ type: "unsubscribe", sessionIds: [sessionId] });
  }

  send({ commandId, sessionId, command }: Command): void {
    this.#say({ type: "command", requestId: commandId, sessionId, commandId, command });
  }

  check(patience: number): void {
    this.#ask(patience);
  }

  close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#timer();
    this.#socket.close();
  }

  #lose(loss: Loss): void {
    if (this.#over) return;
    this.close();
    this.#events.lost(loss);
  }

  #say(message: JsonObject): void {
    if (!this.#over) this.#socket.send(JSON.stringify(message));
  }

  // -- silence --------------------------------------------------------------------------------------------------------

  #listen(): void {
    this.#timer();
    this.#timer = this.#ports.clock.after(SILENCE, () => this.#ask(ANSWER));
  }

  #ask(patience: number): void {
    this.#timer();
    this.#timer = this.#ports.clock.after(patience, () => this.#lose("broken"));
    this.#say({ type: "ping" });
  }

  // -- what the hub says ----------------------------------------------------------------------------------------------

  #take(text: string): void {
    if (this.#over) return;
    const message = parsed(text);
    if (!message) return;
    this.#listen();
    const type = textOf(message["type"]);
    if (Object.hasOwn(MESSAGES, type)) MESSAGES[type]!(this.#events, message);
  }
}

function parsed(text: string): JsonObject | null {
  try {
    const message: unknown = JSON.parse(text);
    return isObject(message) ? message : null;
  } catch {
    return null;
  }
}

type Message = (events: LaneEvents, message: JsonObject) => void;

const news: Message = (events, message) => events.news(message as unknown as News);
const sessionOf = (message: JsonObject): string => textOf(message["sessionId"]);

/** Handlers by type; a message of a later hub is passed over. */
const MESSAGES: Readonly<Record<string, Message>> = {
  authenticated: (events, { name, scopes }) =>
    events.ready({ name: textOf(name), scopes: Array.isArray(scopes) ? scopes.map(textOf) : [] }),
  sessions_list: news,
  session_changed: news,
  session_deleted: news,
  approvals: news,
  approval_requested: news,
  approval_resolved: news,
  discovered_changed: news,
  subscribed: (events, message) => {
    if (message["resume"] === "reset") events.reset(sessionOf(message));
  },
  events: (events, message) => events.events(sessionOf(message), message["events"] as unknown as SessionEvent[]),
  caught_up: (events, message) => events.caughtUp(sessionOf(message)),
  unsubscribed: (events, message) => {
    if (isObject(message["error"])) events.gone(sessionOf(message), failure(message["error"]));
  },
  error: (events, message) => {
    const [requestId, error] = [textOf(message["requestId"]), failure(message["error"])];
    if (requestId) events.outcome(requestId, { ok: false, error });
    else if (sessionOf(message)) events.gone(sessionOf(message), error);
  },
  command_result: (events, message) => {
    const { commandId, ok, result = null, seq, error } = message;
    const outcome = ok
      ? { ok, result, seq: typeof seq === "number" ? seq : null }
      : { ok: false, error: failure(error) };
    events.outcome(textOf(commandId), outcome as Parameters<LaneEvents["outcome"]>[1]);
  },
};

/** An error record of the hub, or one that says that there was none. */
export function failure(value: Json | undefined, code = "unknown"): Failed {
  if (isObject(value) && typeof value["code"] === "string") return value as unknown as Failed;
  return { code, message: "The hub gave no reason", recoverable: true };
}
