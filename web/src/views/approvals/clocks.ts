/** How long an answer may take, and how early one may come. */
import { useEffect, useState } from "preact/hooks";
import { useNow } from "../../ui/now";

/** Whole seconds until a moment, null where none is set. */
export function useCountdown(until: string | null | undefined): number | null {
  const end = until ? Date.parse(until) : NaN;
  const known = !Number.isNaN(end);
  const now = useNow(known);
  return known ? Math.max(0, Math.ceil((end - now) / 1000)) : null;
}

/** Milliseconds in which what has just appeared under a finger takes no tap. */
const GUARD = 400;

/** False for as long as the guard lasts. */
export function useReady(): boolean {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), GUARD);
    return () => clearTimeout(timer);
  }, []);
  return ready;
}
