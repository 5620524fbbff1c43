/** Values that this browser keeps: settings, drafts, what was read. Where nothing can be kept, they last as the page does. */
import { effect, type Signal, signal } from "@preact/signals";
import type { Json } from "../model/wire.gen";

const PREFIX = "pilothouse:";
let over = false;

export function read<Value extends Json>(name: string, otherwise: Value): Value {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? otherwise : (JSON.parse(text) as Value);
  } catch {
    return otherwise;
  }
}

export function write(name: string, value: Json): void {
  if (over) return;
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // full, or forbidden by the browser's settings: nothing that the page cannot do without
  }
}

/** At logout: all of it goes, and nothing comes back until the page is loaded again, as drafts would at its end. */
export function wipe(): void {
  over = true;
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
  } catch {
    // where nothing can be kept there is nothing to remove
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
