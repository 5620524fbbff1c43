/** Values that this browser keeps: settings, drafts, what was read. Where nothing can be kept, they last as the page does. */
import { effect, type Signal, signal } from "@preact/signals";
import type { Json } from "../model/wire.gen";

const PREFIX = "pilothouse:";

export function read<Value extends Json>(name: string, otherwise: Value): Value {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? otherwise : (JSON.parse(text) as Value);
  } catch {
    return otherwise;
  }
}

export function write(name: string, value: Json): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // full, or forbidden by the browser's settings: nothing that the page cannot do without
  }
}

/** A signal that is written back whenever it changes. */
export function kept<Value extends Json>(name: string, otherwise: Value): Signal<Value> {
  const value = signal(read(name, otherwise));
  let first = true;
  effect(() => {
    const now = value.value;
    if (!first) write(name, now);
    first = false;
  });
  return value;
}
