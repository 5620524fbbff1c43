/** Where a turn begins and how it ended: the time, how long it took, and why it stopped unless it was simply done. */
import { useMemo } from "preact/hooks";
import { millisecondsBetween } from "../../model/summary";
import type { Turn } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { count, lasting, moment } from "../../ui/time";
import { useOffline } from "../sessions/offline";
import { useMoment, useSource } from "../text/source";
import { activity } from "./activity";
import { clock } from "./message";

/** Milliseconds; a shorter turn is not worth telling. */
const WORTH = 3000;

const REASONS: Readonly<Record<string, readonly [text: string, look: "plain" | "bad"]>> = {
  cancelled: ["Stopped", "plain"],
  refusal: ["The agent refused to go on", "bad"],
  max_tokens: ["The answer reached the limit of tokens. Send “continue” to go on", "bad"],
  max_turn_requests: ["The turn reached the limit of requests. Send “continue” to go on", "bad"],
  interrupted: ["Interrupted, as the hub was restarted. Send the prompt again to go on", "bad"],
};

/** Ends that need no word: the answer is there, or the error is. */
const PLAIN: ReadonlySet<string> = new Set(["end_turn", "error"]);

function TurnEnd({ turn }: { turn: Turn }) {
  const { stopReason, usage } = turn;
  const plain = stopReason === undefined || PLAIN.has(stopReason);
  const [why, look] = plain ? ["", "plain"] : (REASONS[stopReason] ?? [`Ended: ${stopReason}`, "plain"]);
  const took = turn.endedAt ? millisecondsBetween(turn.startedAt, turn.endedAt) : 0;
  const facts = [
    took >= WORTH && `${why ? "after" : "Took"} ${lasting(took)}`,
    usage && `${count(usage.inputTokens + usage.outputTokens)} tokens`,
  ].filter(Boolean);
  if (!why && !facts.length) return null;
  return (
    <p class={`turn-end${look === "bad" ? " turn-bad" : ""}`}>
      {why && (
        <span class="turn-why">
          <Icon name={look === "bad" ? "warning" : "stop"} size={13} />
          {why}
        </span>
      )}
      {facts.length > 0 && <span class="muted">{facts.join(" · ")}</span>}
    </p>
  );
}

interface MarkProps {
  ended: Turn | null;
  startedAt: string;
  timed: boolean;
  elsewhere: boolean;
}

export function TurnMark({ ended, startedAt, timed, elsewhere }: MarkProps) {
  const said = useMemo(() => (timed ? when(startedAt) : ""), [startedAt, timed]);
  return (
    <>
      {ended && <TurnEnd turn={ended} />}
      {(said || elsewhere) && (
        <p class={`turn-mark${elsewhere ? " turn-elsewhere" : ""}`}>
          {said && (
            <time dateTime={startedAt} title={moment(startedAt)}>
              {said}
            </time>
          )}
          {elsewhere && <span>Done in another program</span>}
        </p>
      )}
    </>
  );
}

/** `14:05` today, `16 Nov, 14:05` on another day. */
function when(timestamp: string): string {
  const then = new Date(timestamp);
  const time = clock(timestamp);
  if (!time || then.toDateString() === new Date().toDateString()) return time;
  return `${then.toLocaleDateString(undefined, { day: "numeric", month: "short" })}, ${time}`;
}

/** The end of the transcript: what goes on now, or how the last turn ended. */
export function TurnNow() {
  const source = useSource();
  void source.head.value;
  void source.items.value;
  const session = source.session.value;
  const turn = session?.fields.turn;
  const now = useMoment(turn?.open ?? false);
  const offline = useOffline();
  if (!session || !turn) return null;
  if (!turn.open) return <TurnEnd turn={turn} />;
  if (offline) return <p class="doing">The hub is out of reach; how it went on is not known yet.</p>;
  const doing = activity(session);
  // the line of what is asked says so already
  if (doing.waits) return null;
  const elapsed = Math.floor((now - Date.parse(turn.startedAt)) / 1000);
  // not announced: it counts the seconds
  return (
    <p class="doing">
      <span class="doing-dots" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      <span class="cut">{doing.text}</span>
      {elapsed >= 3 && <span class="muted tiny">{lasting(elapsed * 1000)}</span>}
    </p>
  );
}
