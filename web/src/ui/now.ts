/** The time, for views that count or say how long ago something was. */
import { useEffect, useState } from "preact/hooks";

/** The present in milliseconds, anew every second, or as often as said, while `running`. */
export function useNow(running: boolean, every = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!running) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [running, every]);
  return now;
}
