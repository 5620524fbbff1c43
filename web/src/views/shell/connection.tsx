/** Says that what is on the screen may be old, and since when; says nothing while all is well. */
import { useEffect, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import type { Phase } from "../../link/link";
import { lasting } from "../../ui/time";

const WORDS: Partial<Record<Phase, string>> = {
  connecting: "Connecting to the hub…",
  reconnecting: "Reconnecting…",
  catching_up: "Catching up…",
};
/** Seconds from which it is told how long it has lasted. */
const LONG = 10;
/** Milliseconds that are not worth a word. */
const SHORT: Partial<Record<Phase, number>> = { connecting: 400, reconnecting: 0, catching_up: 800 };

export function Connection() {
  const hub = useHub();
  const { phase } = hub.status.value;
  const text = WORDS[phase];
  const [since, setSince] = useState<{ phase: Phase; seconds: number } | null>(null);
  useEffect(() => {
    setSince(null);
    if (text === undefined) return;
    const began = Date.now();
    const show = () => setSince({ phase, seconds: Math.floor((Date.now() - began) / 1000) });
    const first = setTimeout(show, SHORT[phase] ?? 0);
    const clock = setInterval(show, 1000);
    return () => {
      clearTimeout(first);
      clearInterval(clock);
    };
  }, [phase]);
  const shown = text !== undefined && since?.phase === phase;
  return (
    <div class="connection" role="status" aria-live="polite" data-phase={phase}>
      {shown && (
        <p class="connection-words">
          <span class="connection-dot" aria-hidden="true" />
          {text}
          {phase === "reconnecting" && <span class="connection-why">what you see may be out of date</span>}
          {since.seconds >= LONG && (
            // it counts, which would be read out every second
            <span class="muted" aria-hidden="true">
              · {lasting(since.seconds * 1000)}
            </span>
          )}
          {phase === "reconnecting" && (
            <button type="button" class="button quiet small" onClick={() => hub.link.wake()}>
              Try now
            </button>
          )}
        </p>
      )}
    </div>
  );
}
