/**
 * A text that grows: what was added since it was last looked at, without comparing all of it.
 *
 * What is told of its growth is trusted only where it adds up to the length that the text has now.
 */
import { useLayoutEffect, useRef } from "preact/hooks";
import type { SessionItem } from "../../model/wire.gen";
import { useSource } from "./source";

export class Growing {
  #known = "";
  #told: string | null = "";

  tell(text: string | null): void {
    this.#told = text === null || this.#told === null ? null : this.#told + text;
  }

  /** What was added at the end; null when this is another text. */
  take(text: string): string | null {
    const [known, told] = [this.#known, this.#told];
    [this.#known, this.#told] = [text, ""];
    if (told !== null && known.length + told.length === text.length) return told;
    return text.startsWith(known) ? text.slice(known.length) : null;
  }
}

/** Something that takes in text piece by piece, and is made anew when the text is another one. */
export interface Fed {
  feed(text: string): void;
}

/** A value fed with the text of an item, which grows while `live`. */
export function useFed<Value extends Fed>(item: SessionItem, text: string, live: boolean, make: () => Value): Value {
  const source = useSource();
  const held = useRef<{ item: SessionItem; growing: Growing; value: Value } | null>(null);
  if (held.current?.item !== item) held.current = { item, growing: new Growing(), value: make() };
  const now = held.current;
  useLayoutEffect(() => (live ? source.grown(item, (added) => now.growing.tell(added)) : undefined), [item, live, now]);
  const added = now.growing.take(text);
  if (added === null) now.value = make();
  if (added !== "") now.value.feed(added ?? text);
  return now.value;
}
