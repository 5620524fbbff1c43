/** Whether the hub has been out of reach for so long that what it said last should not be believed any more. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useHub } from "../../app/context";

/** Milliseconds: coming back takes a second or two, and words that flicker are worse than words that are a little old. */
const PATIENCE = 10_000;
const offline = signal(false);

export function useOffline(): boolean {
  const { phase } = useHub().status.value;
  const away = phase !== "live" && phase !== "catching_up";
  useEffect(() => {
    if (!away) {
      offline.value = false;
      return;
    }
    const timer = setTimeout(() => (offline.value = true), PATIENCE);
    return () => clearTimeout(timer);
  }, [away]);
  return away && offline.value;
}
