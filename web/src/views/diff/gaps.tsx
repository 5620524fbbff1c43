/** Unchanged lines that are left out, and how they come back: some from either end, or all. */
import type { DiffRow, GapRow, LineRow } from "../../diff/rows";
import { Icon, type IconName } from "../../ui/icon";
import { odd } from "../code/line";

/** Lines that one press brings back. */
const STEP = 20;

/** How many lines of a gap are shown at its beginning and at its end. */
export interface Shown {
  readonly head: number;
  readonly tail: number;
}

/** What is left of a gap. */
export interface OpenGap extends GapRow {
  readonly whole: GapRow;
  /** Whether there are lines before it, and after it, that it could grow from. */
  readonly above: boolean;
  readonly below: boolean;
}

/** The rows with the lines that were asked for; every gap that is left is an `OpenGap`. */
export function opened(rows: readonly DiffRow[], shown: ReadonlyMap<GapRow, Shown>): (LineRow | OpenGap)[] {
  return rows.flatMap((row, index): (LineRow | OpenGap)[] => {
    if (row.kind !== "gap") return [row];
    const { head, tail } = shown.get(row) ?? { head: 0, tail: 0 };
    const ends = { whole: row, above: index > 0, below: index < rows.length - 1 };
    if (!row.lines.length) return [{ ...row, ...ends }];
    if (head + tail >= row.lines.length) return [...row.lines];
    const rest = row.lines.slice(head, row.lines.length - tail);
    const left = { ...row, ...ends, count: rest.length, lines: rest };
    return [...row.lines.slice(0, head), left, ...row.lines.slice(row.lines.length - tail)];
  });
}

/** What is shown of a gap once a button was pressed. */
export function grown({ whole }: OpenGap, shown: Shown | undefined, by: "head" | "tail" | "all"): Shown {
  const { head, tail } = shown ?? { head: 0, tail: 0 };
  if (by === "all") return { head: whole.lines.length, tail: 0 };
  return by === "head" ? { head: head + STEP, tail } : { head, tail: tail + STEP };
}

export function GapView({ gap, open }: { gap: OpenGap; open(by: "head" | "tail" | "all"): void }) {
  return (
    <div role="row" class="diff-gap">
      <span role="cell" class="diff-gap-cell">
        {gap.lines.length ? expanders(gap, open) : <span class="diff-gap-text">{words(gap.count)}</span>}
        {gap.heading && <span class="diff-heading">{odd(gap.heading)}</span>}
      </span>
    </div>
  );
}

const words = (count: number | null): string => (count && count > 0 ? `${lines(count)} not shown` : "⋯");

const lines = (count: number): string => `${count.toLocaleString()} unchanged ${count === 1 ? "line" : "lines"}`;

function expanders(gap: OpenGap, open: (by: "head" | "tail" | "all") => void) {
  const few = gap.lines.length <= 2 * STEP;
  const button = (by: "head" | "tail" | "all", icon: IconName, label: string, text?: string) => (
    <button type="button" class="diff-expand" aria-label={label} title={label} onClick={() => open(by)}>
      <Icon name={icon} size={14} />
      {text && <span>{text}</span>}
    </button>
  );
  return (
    <>
      {!few && gap.above && button("head", "down", `Show ${STEP} more lines downwards`)}
      {!few && gap.below && button("tail", "up", `Show ${STEP} more lines upwards`)}
      {button("all", "fold", `Show ${lines(gap.lines.length)}`, `Show ${lines(gap.lines.length)}`)}
    </>
  );
}
