/** A place in a session that somebody wants to see: set before going there, taken by who shows it. */
import { signal } from "@preact/signals";

export interface Place {
  id: string;
  seq: number;
}

export const jump = signal<Place | null>(null);

/** The seq to show in this session, once. */
export function takeJump(id: string): number | null {
  const place = jump.peek();
  if (place?.id !== id) return null;
  jump.value = null;
  return place.seq;
}
