/**
 * The rows of a diff, in one column or in two.
 *
 * Numbers and signs are drawn by the style sheet, so what is selected and copied is code alone; what a sign means is
 * also there in words, for those who hear the page.
 */
import type { LineRow, SideRow } from "../../diff/rows";
import { LineText } from "../code/line";
import type { LineColours } from "./colours";

export interface Drawing {
  readonly colours: LineColours;
  /** All lines end with a carriage return too, and that is said once. */
  readonly returns: boolean;
}

const WORDS: Readonly<Record<LineRow["kind"], string>> = { same: "", added: "added: ", removed: "removed: " };

export function UnifiedRow({ row, drawing }: { row: LineRow; drawing: Drawing }) {
  return (
    <div role="row" class={`diff-row diff-${row.kind}`}>
      <span role="cell" class="diff-num diff-old" data-line={row.before ?? ""} />
      <span role="cell" class="diff-num diff-new" data-line={row.after ?? ""} />
      <CodeCell row={row} drawing={drawing} class={`diff-${row.kind}`} />
    </div>
  );
}

export function PairRow({ pair, drawing }: { pair: SideRow; drawing: Drawing }) {
  return (
    <div role="row" class="diff-pair">
      <Half row={pair.left} number={pair.left?.before} drawing={drawing} side="left" />
      <Half row={pair.right} number={pair.right?.after} drawing={drawing} side="right" />
    </div>
  );
}

interface HalfProps {
  row: LineRow | null;
  number: number | null | undefined;
  drawing: Drawing;
  side: "left" | "right";
}

function Half({ row, number, drawing, side }: HalfProps) {
  const name = `diff-${row ? row.kind : "none"} diff-${side}`;
  return (
    <>
      <span role="cell" class={`diff-num ${name}`} data-line={number ?? ""} />
      {row ? <CodeCell row={row} drawing={drawing} class={name} /> : <span role="cell" class={`diff-code ${name}`} />}
    </>
  );
}

function CodeCell({ row, drawing, class: name }: { row: LineRow; drawing: Drawing; class: string }) {
  const text = drawing.returns ? row.text.replace(/\r$/, "") : row.text;
  return (
    <span role="cell" class={`diff-code ${name}`}>
      {WORDS[row.kind] && <span class="aside">{WORDS[row.kind]}</span>}
      <LineText text={text} spans={drawing.colours.get(row)} marks={row.marks} />
      {!text && "\n"}
      {row.bare && <span class="diff-bare">no newline at end of file</span>}
    </span>
  );
}
