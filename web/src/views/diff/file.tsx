/** One changed file: its head, its rows, and what must be said of it beside them. */
import type { RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { languageOf } from "../../diff/language";
import { type DiffRow, type FileDiff, type LineRow, tightened } from "../../diff/rows";
import { isTurning, visible } from "../../text/highlight/odd";
import { useNear } from "../code/near";
import { useLineColours } from "./colours";
import { type Counts, type Fold, Head, type Kind } from "./head";
import { chosen, isNarrow, roomOf, useWidth } from "./layout";
import { Rows } from "./table";

export interface FileProps {
  path: string;
  diff: FileDiff;
  kind?: Kind | undefined;
  /** As they were told, where the diff may be a part of the change. */
  counts?: Counts | undefined;
  language?: string | undefined;
  fold?: Fold | undefined;
  /** What changes is to be seen first, in the box that scrolls around it. */
  first?: boolean | undefined;
  /** Give the rows beyond the limit too. */
  showAll?: (() => void) | undefined;
}

export function FileView({ path, diff, counts, language, fold, first = false, showAll, ...props }: FileProps) {
  const ref = useRef<HTMLElement>(null);
  const width = useWidth(ref);
  const near = useNear(ref);
  const open = fold?.open ?? true;
  const kind = kindOf(diff, props.kind);
  const facts = useMemo(() => factsOf(diff.rows), [diff.rows]);
  const narrow = isNarrow(width);
  const rows = useMemo(() => (first && narrow ? tightened(diff.rows, 1) : diff.rows), [diff.rows, first && narrow]);
  const colours = useLineColours(rows, language ?? languageOf(path), near && open);
  const drawn = open && facts.lines > 0 && !diff.binary && diff.added + diff.removed > 0;
  const oneSided = kind === "created" || kind === "deleted";
  const room = roomOf(oneSided ? 0 : (width ?? 0), chosen.value);
  useFirstChange(ref, first && drawn && width !== null);
  return (
    <section ref={ref} class={`diff${narrow ? " diff-narrow" : ""}`} aria-label={`Changes of ${visible(path)}`}>
      <Head
        path={path}
        from={kind === "renamed" ? (diff.before ?? undefined) : undefined}
        kind={kind}
        counts={drawn || !open ? (counts ?? diff) : null}
        remarks={diff.binary ? ["Binary"] : facts.ends === "crlf" ? ["CRLF"] : []}
        fold={fold}
        room={drawn ? room : null}
      />
      {open && (
        <>
          {!drawn && <p class="diff-note">{emptyWords(kind, diff)}</p>}
          {drawn && <Notes diff={diff} turning={facts.turning} mixed={facts.ends === "mixed"} />}
          {drawn && width === null && <Bone rows={diff.rows.length} />}
          {drawn && width !== null && (
            <Rows
              label={visible(path)}
              rows={rows}
              colours={colours}
              returns={facts.ends === "crlf"}
              split={room.layout === "split"}
              single={oneSided ? kind : null}
              digits={facts.digits}
            />
          )}
          {drawn && <Rest diff={diff} counts={counts} showAll={showAll} />}
        </>
      )}
    </section>
  );
}

/** Scroll to what changes, with a line of what is before it: nobody decides on lines that stay. */
function useFirstChange(ref: RefObject<HTMLElement | null>, drawn: boolean): void {
  useLayoutEffect(() => {
    const change = ref.current?.querySelector(".diff-code.diff-added, .diff-code.diff-removed");
    const box = ref.current?.closest(".ask-body");
    if (!drawn || !change || !box) return;
    const head = ref.current?.querySelector(".diff-head")?.getBoundingClientRect().height ?? 0;
    const { top, height } = change.getBoundingClientRect();
    const before = top - box.getBoundingClientRect().top - head - Math.min(height, CONTEXT);
    if (before > 0) box.scrollTop += before;
  }, [drawn]);
}

/** Pixels: a line of code. */
const CONTEXT = 22;

/** Rows beyond which nobody sees that there was less room. */
const ENOUGH = 100;

/** Room for the rows while the width is measured: what is around must not move meanwhile, or a reader loses their place. */
function Bone({ rows }: { rows: number }) {
  return <div style={{ height: `calc(var(--code-row) * ${Math.min(rows, ENOUGH)})` }} />;
}

function kindOf({ before, after }: FileDiff, told: Kind | undefined): Kind {
  if (before === null) return "created";
  if (after === null) return "deleted";
  if (before !== undefined && after !== undefined && before !== after) return "renamed";
  return told ?? "modified";
}

interface Facts {
  lines: number;
  digits: number;
  ends: "lf" | "crlf" | "mixed";
  turning: boolean;
}

function factsOf(rows: readonly DiffRow[]): Facts {
  let [lines, returns, last, turning] = [0, 0, 0, false];
  const look = (row: LineRow) => {
    lines += 1;
    if (row.text.endsWith("\r")) returns += 1;
    last = Math.max(last, row.before ?? 0, row.after ?? 0);
    turning ||= row.kind !== "same" && isTurning(row.text);
  };
  for (const row of rows) (row.kind === "gap" ? row.lines : [row]).forEach(look);
  const ends = returns === 0 ? "lf" : returns === lines ? "crlf" : "mixed";
  return { lines, digits: Math.max(2, String(last).length), ends, turning };
}

export const EMPTY: Readonly<Record<Kind, string>> = {
  created: "The new file is empty.",
  deleted: "The deleted file was empty.",
  renamed: "Renamed; its lines are the same.",
  modified: "No line was changed.",
};

const emptyWords = (kind: Kind, { binary, unknown }: FileDiff): string =>
  binary
    ? "A binary file: there are no lines to compare."
    : unknown
      ? "The change of this file is not shown."
      : EMPTY[kind];

function Notes({ diff, turning, mixed }: { diff: FileDiff; turning: boolean; mixed: boolean }) {
  return (
    <>
      {turning && (
        <p class="diff-note diff-warn" role="note">
          Some changed lines hold characters that change the reading direction. They are shown as U+… here; elsewhere
          the code may look different from what it does.
        </p>
      )}
      {mixed && <p class="diff-note">Line ends differ: CR is a carriage return at the end of a line.</p>}
      {diff.coarse && <p class="diff-note">Too much changed to compare line by line: old lines first, then the new.</p>}
    </>
  );
}

function Rest({ diff, counts, showAll }: Pick<FileProps, "diff" | "counts" | "showAll">) {
  const missing = counts ? counts.added + counts.removed - diff.added - diff.removed : 0;
  return (
    <>
      {diff.cut !== undefined && (
        <p class="diff-note">
          {diff.cut.toLocaleString()} more rows are not shown.
          {showAll && (
            <button type="button" class="button" onClick={showAll}>
              Show anyway
            </button>
          )}
        </p>
      )}
      {missing > 0 && (
        <p class="diff-note">
          The hub kept a part of this diff: {missing.toLocaleString()} changed lines are not in it.
        </p>
      )}
    </>
  );
}
