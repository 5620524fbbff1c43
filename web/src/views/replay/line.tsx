/** The time line: drag it, and see where prompts, approvals, edits and errors are. */
import { useMemo } from "preact/hooks";
import type { MarkKind, Recording } from "../../app/recording";
import type { ReplaySession } from "../../app/replay";
import { clock } from "../../ui/time";

/** Marks nearer than this part of the line look like one. */
const GRAIN = 1 / 400;

/** Kinds in the order they are drawn in: what counts most comes last, and so on top. */
const KINDS: readonly MarkKind[] = ["edit", "prompt", "approval", "error"];

export function TimeLine({ replay }: { replay: ReplaySession }) {
  const { recording } = replay;
  const time = replay.time.value;
  const whole = recording.duration || 1;
  const marks = useMemo(() => drawn(recording), [recording]);
  const said = `${clock(time)} of ${clock(recording.duration)}, event ${replay.count.value} of ${recording.length}`;
  return (
    <div class="replay-line" style={{ "--at": `${(100 * time) / whole}%` }}>
      <div class="replay-marks" aria-hidden="true">
        {marks.map(({ kind, at }) => (
          <span key={`${kind}-${at}`} data-kind={kind} style={{ left: `${100 * at}%` }} />
        ))}
      </div>
      <input
        type="range"
        min={0}
        max={whole}
        step={1}
        value={time}
        aria-label="Moment"
        aria-valuetext={said}
        onInput={(event) => replay.goToTime(event.currentTarget.valueAsNumber)}
      />
    </div>
  );
}

/** Where marks are drawn, in parts of the line; a thousand of them in one place are one. */
export function drawn(recording: Recording): { kind: MarkKind; at: number }[] {
  const whole = recording.duration || 1;
  return KINDS.flatMap((kind) => {
    const marks = recording.marks.filter((mark) => mark.kind === kind);
    const places = marks.map(({ count }) => Math.round(recording.timeOf(count) / whole / GRAIN) * GRAIN);
    return [...new Set(places)].map((at) => ({ kind, at }));
  });
}
