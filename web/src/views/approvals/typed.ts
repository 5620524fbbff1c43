/**
 * What was typed or chosen for an answer that is not sent yet: it is still there for who looked at another question or
 * another session meanwhile, and for the next page.
 */
import { useState } from "preact/hooks";
import { read, write } from "../../app/stored";
import type { Json } from "../../model/wire.gen";

/** The last ones; the others are most likely answered. */
const KEPT = 100;
const NAME = "answers";
const known = (): Map<string, Json> => new Map(Object.entries(read<Record<string, Json>>(NAME, {})));

function keep(values: Map<string, Json>): void {
  write(NAME, values.size ? Object.fromEntries([...values].slice(-KEPT)) : null);
}

/** What it was about is answered. */
export function forget(about: string): void {
  keep(new Map([...known()].filter(([key]) => !key.startsWith(`${about}\n`))));
}

/** Like `useState`, for one of the fields of what it is about. */
export function useTyped<Value>(
  about: string,
  field: string,
  first: Value,
): [Value, (change: (before: Value) => Value) => void] {
  const key = `${about}\n${field}`;
  const [value, set] = useState<Value>(() => (known().get(key) as unknown as Value | undefined) ?? first);
  const change = (next: (before: Value) => Value) =>
    set((before) => {
      const now = next(before);
      const all = known();
      all.delete(key);
      keep(all.set(key, now as unknown as Json));
      return now;
    });
  return [value, change];
}
