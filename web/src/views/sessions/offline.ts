/** Whether the hub has been out of reach for so long that what it said last should not be believed any more. */
import { signal } from "@preact/signals";
import { useContext, useEffect } from "preact/hooks";
import { HubContext } from "../../app/context";

/** Milliseconds: coming back takes a second or two, and words that flicker are worse than words that are a little old. */
const PATIENCE = 4_000;
const offline = signal(false);

/** Where no hub is needed, as in a session that was exported, none is away. */
export function useOffline(): boolean {
  const phase = useContext(HubContext)?.status.value.phase ?? "live";
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
