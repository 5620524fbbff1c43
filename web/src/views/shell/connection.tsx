/** Says that what is on the screen may be old, and since when; says nothing while all is well. */
import { useEffect, useState } from "preact/hooks";
import { useHub } from "../../app/context";
import type { Phase } from "../../link/link";
import { lasting } from "../../ui/time";

const WORDS: Partial<Record<Phase, string>> = {
  connecting: "Connecting to the hub…",
  reconnecting: "Reconnecting… what you see may be out of date",
  catching_up: "Catching up…",
};
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
          {since.seconds >= 5 && <span class="muted"> · {lasting(since.seconds * 1000)}</span>}
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
