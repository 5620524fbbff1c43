/**
 * How messages and thoughts grow.
 *
 * A complete one has the last word, except an empty one: agents exist that stream a text and then complete it with
 * nothing, and the streamed text is then what was said.
 */
import { type EventOf, type Handlers, head } from "./handlers";
import { messageKey, type State } from "./state";
import type { Message, MessageContent, Thought } from "./wire.gen";

type MessageEvent = EventOf<"message:start" | "message:delta" | "message:complete">;
type ThinkingEvent = EventOf<"thinking:start" | "thinking:delta" | "thinking:complete">;

/** Nothing more is expected of it. */
export function finish(state: State, item: Message | Thought, timestamp: string): void {
  item.done = true;
  if (item.type === "thought") item.endedAt = timestamp;
  state.closed(item);
}

function messageDelta(state: State, event: EventOf<"message:delta">): void {
  const message = openMessage(state, event);
  if (event.delta) {
    const last = message.content.at(-1);
    if (last?.type === "text") {
      last.text += event.delta;
      state.grow(message, event.delta);
    } else {
      message.content.push({ type: "text", text: event.delta });
      state.touch(message);
    }
  }
  if (event.content !== undefined) {
    message.content.push({ ...event.content });
    state.touch(message);
  }
}

function messageComplete(state: State, event: EventOf<"message:complete">): void {
  const message = knownMessage(state, event) ?? openMessage(state, event);
  if (!(message.content.length && blank(event.content))) {
    message.content = event.content.map((content) => ({ ...content }));
  }
  message.model = event.model || message.model;
  message.stopReason = event.stopReason || message.stopReason;
  state.touch(message);
  if (!message.done) finish(state, message, event.timestamp);
}

/** The message that this completes, also one that was thought to be complete: the end of a turn completes all. */
function knownMessage(state: State, event: MessageEvent): Message | undefined {
  return event.messageId ? state.lookup.messages.get(messageKey(event.role, event.messageId)) : undefined;
}

/** The open message of that id and role; a new one if there is none. */
function openMessage(state: State, event: MessageEvent): Message {
  const known = state.lookup.messages.get(messageKey(event.role, event.messageId));
  if (known && !known.done) return known;
  const { messageId, role } = event;
  return state.add({ type: "message", ...head(state, event), messageId, role, content: [], done: false });
}

const blank = (content: MessageContent[]): boolean => content.every((block) => block.type === "text" && !block.text);

function thinkingDelta(state: State, event: EventOf<"thinking:delta">): void {
  const thought = openThought(state, event);
  append(state, thought, event.delta);
  if (event.content?.type === "text") append(state, thought, event.content.text);
  else if (event.content !== undefined) {
    (thought.content ??= []).push(event.content);
    state.touch(thought);
  }
}

function append(state: State, thought: Thought, text: string): void {
  thought.text += text;
  state.grow(thought, text);
}

function thinkingComplete(state: State, event: EventOf<"thinking:complete">): void {
  const known = event.messageId ? state.lookup.thoughts.get(event.messageId) : undefined;
  const thought = known ?? openThought(state, event);
  if (event.content) thought.text = event.content;
  thought.redacted = event.redacted || thought.redacted;
  state.touch(thought);
  if (!thought.done) finish(state, thought, event.timestamp);
}

function openThought(state: State, event: ThinkingEvent): Thought {
  const known = state.lookup.thoughts.get(event.messageId);
  if (known && !known.done) return known;
  return state.add({ type: "thought", ...head(state, event), messageId: event.messageId, text: "", done: false });
}

export const MESSAGE_HANDLERS: Handlers = {
  "message:start": openMessage,
  "message:delta": messageDelta,
  "message:complete": messageComplete,
  "thinking:start": openThought,
  "thinking:delta": thinkingDelta,
  "thinking:complete": thinkingComplete,
};
