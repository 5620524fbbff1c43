/**
 * A lane is one way to the hub, from its first byte until it is lost: a WebSocket, or long polling.
 *
 * A lane knows nothing of phases, cursors and coming back; the link does. It says `lost` once, and then nothing more.
 */
import type { Failed, Json, SessionEvent } from "../model/wire.gen";

export interface Greeting {
  name: string;
  scopes: string[];
}

/** What is told without being asked for. Approvals are rows of the hub's list, with the request as its event has it. */
export type News =
  | { type: "sessions_list"; sessions: Json[]; next?: Json }
  | { type: "session_changed"; session: Json }
  | { type: "session_deleted"; sessionId: string }
  | { type: "approvals"; approvals: Json[] }
  | { type: "approval_requested"; approval: Json }
  | { type: "approval_resolved"; approval: Json }
  /** Sessions that were begun elsewhere came, went on or went. */
  | { type: "discovered_changed" };

/**
 * Refused: coming back would not help, until somebody logs in. Silent: it was open and nothing came, as through a proxy
 * that holds data back; the next one of its kind would be the same.
 */
export type Loss = "broken" | "refused" | "silent";

export interface Command {
  readonly commandId: string;
  readonly sessionId: string;
  readonly command: { command: string; [field: string]: Json };
}

export type Outcome = { ok: true; result: Json; seq: number | null } | { ok: false; error: Failed };

export interface LaneEvents {
  ready(greeting: Greeting): void;
  news(news: News): void;
  events(sessionId: string, events: SessionEvent[]): void;
  /** All that was stored when the session was followed has come. */
  caughtUp(sessionId: string): void;
  /** The cursor was of another log: the session comes anew from its beginning. */
  reset(sessionId: string): void;
  /** It cannot be followed (any more). */
  gone(sessionId: string, error: Failed): void;
  outcome(commandId: string, outcome: Outcome): void;
  lost(loss: Loss): void;
}

export interface Lane {
  readonly kind: "socket" | "poll";
  /** Again for the same session: anew, from this cursor. */
  follow(sessionId: string, after: number): void;
  unfollow(sessionId: string): void;
  send(command: Command): void;
  /** The page was away: find out within so many milliseconds whether the hub is still there. */
  check(patience: number): void;
  close(): void;
}
