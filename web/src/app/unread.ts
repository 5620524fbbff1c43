/**
 * What this browser's user has seen of each session: its last seq while it was open and visible.
 *
 * A session that was never opened here counts as unread only if it was active after the page was first used, so that
 * a new browser does not begin with a wall of dots.
 */
import { computed, effect, signal } from "@preact/signals";
import type { Hub } from "./hub";
import { route } from "./route";
import type { SessionRow } from "./rows";
import { read, write } from "./stored";

type Seen = Record<string, number>;

const SEEN = "seen";
const SINCE = "since";
/** Sessions that are remembered; those seen longest ago go first. */
const MOST = 500;

const seen = signal<Seen>(read<Seen>(SEEN, {}));
const since = read<string>(SINCE, "") || begin();

function begin(): string {
  const now = new Date().toISOString();
  write(SINCE, now);
  return now;
}

/** Whether the page is looked at. */
export const visible = signal(typeof document === "undefined" || document.visibilityState !== "hidden");

/** The session that somebody looks at, if any. */
export const looked = computed(() => (visible.value && route.value.view === "session" ? route.value.id : null));

export function isUnread(row: Pick<SessionRow, "id" | "seq" | "updated">): boolean {
  if (row.id === looked.value) return false;
  const last = seen.value[row.id];
  return last === undefined ? row.seq > 0 && row.updated > since : row.seq > last;
}

let before: { id: string | null; seq: number | undefined } = { id: null, seq: undefined };

/** How far the session that is looked at was seen when somebody began to; undefined if never. */
export const seenBefore = (id: string): number | undefined => (before.id === id ? before.seq : undefined);

export function markSeen(id: string, seq: number): void {
  const { [id]: last, ...others } = seen.peek();
  if (last !== undefined && last >= seq) return;
  seen.value = Object.fromEntries([...Object.entries(others).slice(-(MOST - 1)), [id, seq]]);
  write(SEEN, seen.value);
}

/** Mark what is looked at, and learn what other tabs have marked. Gives the way to stop that. */
export function watchSeen(hub: Hub): () => void {
  const look = () => (visible.value = document.visibilityState !== "hidden");
  const learn = (event: StorageEvent) => {
    if (event.key?.endsWith(`:${SEEN}`)) seen.value = read<Seen>(SEEN, {});
  };
  document.addEventListener("visibilitychange", look);
  window.addEventListener("storage", learn);
  const stop = effect(() => {
    if (looked.value !== before.id) before = { id: looked.value, seq: seen.peek()[looked.value ?? ""] };
    const row = looked.value === null ? undefined : hub.rows.value?.get(looked.value);
    if (row) markSeen(row.id, row.seq);
  });
  return () => {
    stop();
    document.removeEventListener("visibilitychange", look);
    window.removeEventListener("storage", learn);
  };
}
