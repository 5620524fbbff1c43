/** How a module says which events it takes in: one function for each type, each called with events of its type. */
import type { State } from "./state";
import type { SessionEvent } from "./wire.gen";

export type EventOf<Type extends SessionEvent["type"]> = Extract<SessionEvent, { type: Type }>;
export type Handlers = { [Type in SessionEvent["type"]]?: (state: State, event: EventOf<Type>) => void };

/** What every item begins with. */
export function head(state: State, event: { seq: number; timestamp: string }) {
  return { seq: event.seq, timestamp: event.timestamp, turnId: state.turnId };
}
