/** Time for views that count down. */
import { useEffect, useState } from "preact/hooks";

/** Now, anew every second as long as there is something to count. */
export function useNow(counting: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!counting) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [counting]);
  return now;
}

/** Seconds until a moment, null where none is set. */
export function useCountdown(until: string | null | undefined): number | null {
  const end = until ? Date.parse(until) : NaN;
  const known = !Number.isNaN(end);
  const now = useNow(known);
  return known ? Math.max(0, (end - now) / 1000) : null;
}

/** Milliseconds in which what has just appeared under a finger takes no tap. */
export const GUARD = 400;

/** False for as long as the guard lasts. */
export function useReady(): boolean {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), GUARD);
    return () => clearTimeout(timer);
  }, []);
  return ready;
}
