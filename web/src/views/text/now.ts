/** The time, for views that show how long something has taken so far. */
import { useContext, useEffect, useState } from "preact/hooks";
import { SourceContext } from "./source";

/** The present in milliseconds, anew every second while `running`; of what is played, the moment that is shown. */
export function useNow(running: boolean): number {
  const past = useContext(SourceContext)?.past;
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!running || past) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [running, past]);
  return past && running ? past.value : now;
}
