/** The session that the page shows: one at a time, opened when it is gone to and let go when it is left. */
import { computed, effect, signal } from "@preact/signals";
import type { Hub } from "./hub";
import { OpenSession } from "./open";
import { route } from "./route";

export const opened = signal<OpenSession | null>(null);

/** Follow the address. Gives the way to stop that. */
export function openByRoute(hub: Hub): () => void {
  const wanted = computed(() => (route.value.view === "session" ? route.value.id : null));
  return effect(() => {
    const id = wanted.value;
    const before = opened.peek();
    if (before?.id === id) return;
    before?.close();
    opened.value = id === null ? null : new OpenSession(id, hub);
  });
}
