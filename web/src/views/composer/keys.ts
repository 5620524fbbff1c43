/** Which key does what in the composer. */
import { isComposing } from "../../app/shortcuts";

export type Act = "send" | "stop" | "edit-last" | "leave" | "next" | "previous" | "accept" | null;

export interface Situation {
  /** A list of suggestions is open, with something in it. */
  choosing: boolean;
  /** Nothing is typed. */
  empty: boolean;
  /** A finger types: its Enter is for new lines, and the button sends. */
  touch: boolean;
  /** A prompt of the queue is being edited. */
  editing: boolean;
}

export function actOf(event: KeyboardEvent, { choosing, empty, touch, editing }: Situation): Act {
  if (isComposing(event)) return null;
  const command = event.ctrlKey || event.metaKey;
  const plain = !command && !event.altKey && !event.shiftKey;
  if (choosing && plain && event.key in CHOOSING) return CHOOSING[event.key] ?? null;
  switch (event.key) {
    case "Enter":
      if (command) return "send";
      return plain && !touch ? "send" : null;
    case "Escape":
      return editing ? "leave" : "stop";
    case "ArrowUp":
      return empty && plain ? "edit-last" : null;
  }
  return null;
}

const CHOOSING: Readonly<Record<string, Act>> = {
  ArrowDown: "next",
  ArrowUp: "previous",
  Enter: "accept",
  Tab: "accept",
  Escape: "leave",
};

export const isTouch = (): boolean =>
  typeof matchMedia === "function" && matchMedia("(hover: none) and (pointer: coarse)").matches;
