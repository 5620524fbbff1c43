/**
 * Which move of its status an event implies. The tables come from the hub.
 *
 * The rule that a change must not break: only a turn makes an idle session run.
 */
import { isObject } from "./json";
import { MOVES, type Move, STATUSES, TRANSITIONS, WAITING } from "./tables.gen";
import type { SessionEvent, SessionStatus } from "./wire.gen";

/**
 * The status of a session in `status` after `event`. `asked`: an approval or a question is open once the event has
 * happened; `turn`: whether a turn is, null when that is not known.
 */
export function statusAfter(
  status: SessionStatus,
  event: SessionEvent,
  asked: boolean,
  turn: boolean | null,
): SessionStatus {
  if (event.type === "session:status_changed") return STATUSES.includes(event.to) ? event.to : status;
  const key = moveKey(event);
  const move = Object.hasOwn(MOVES, key) ? MOVES[key]! : null;
  if (!move || !move.leaves.includes(status)) return status;
  if (WAITING.includes(status) && asked && (move.to === "running" || move.to === "thinking")) return status;
  return settle(status, move, turn);
}

/** The end of the move, given whether a turn is open. */
function settle(status: SessionStatus, move: Move, turn: boolean | null): SessionStatus {
  if (turn === false && move.rule === "answered") return "idle"; // asked and answered outside of any turn
  if (turn && move.rule === "ended") return status; // the late end of an earlier turn
  if (turn && move.rule === "resumed" && TRANSITIONS[status].includes("running")) return "running";
  return move.to;
}

const TURN_ENDED = "pilothouse/turn_ended";

/** Under which name the event stands in the table; "" for one that moves nothing whatever its type. */
function moveKey(event: SessionEvent): string {
  if (event.type === "custom") {
    const key = `${event.namespace}/${event.eventName}`;
    return key === TURN_ENDED && isObject(event.data) && event.data["stopReason"] === "error" ? `${key} error` : key;
  }
  if (event.type === "message:start" && event.role !== "assistant") return "";
  if (event.type === "session:error" && event.error.recoverable) return "";
  return event.type;
}
