/** The rows of a file in chunks, which are drawn when they come near the screen: no file is too long for the page. */
import { useMemo, useRef, useState } from "preact/hooks";
import { type DiffRow, type GapRow, type LineRow, side, type SideRow } from "../../diff/rows";
import { Chunk, Still } from "../code/chunk";
import { CHUNK } from "../code/lines";
import type { LineColours } from "./colours";
import { GapView, grown, opened, type OpenGap, type Shown } from "./gaps";
import type { Kind } from "./head";
import { wrapped } from "./layout";
import { type Drawing, PairRow, UnifiedRow } from "./rows";

interface RowsProps {
  label: string;
  rows: readonly DiffRow[];
  colours: LineColours;
  returns: boolean;
  split: boolean;
  single: Kind | null;
  digits: number;
}

type Shape = LineRow | SideRow | OpenGap;

export function Rows({ label, rows, colours, returns, split, single, digits }: RowsProps) {
  const [shown, setShown] = useState<ReadonlyMap<GapRow, Shown>>(new Map());
  const body = useRef<HTMLDivElement>(null);
  // `side` passes gaps through as they are
  const shapes = useMemo(() => {
    const lines = opened(rows, shown);
    return split ? (side(lines) as Shape[]) : (lines as Shape[]);
  }, [rows, shown, split]);
  const drawing: Drawing = { colours, returns };
  const open = (gap: OpenGap, by: "head" | "tail" | "all") => {
    setShown((now) => new Map(now).set(gap.whole, grown(gap, now.get(gap.whole), by)));
    // the button goes away with the gap, and the focus must not be lost with it
    if (by === "all") body.current?.focus();
  };
  const style = `diff-body${split ? " diff-split" : wrapped.value ? "" : " diff-long"}${single ? ` diff-${single}` : ""}`;
  return (
    <div
      ref={body}
      class={style}
      tabIndex={0}
      role="group"
      aria-label={`Lines of ${label}`}
      style={{ "--diff-digits": digits }}
      onMouseDown={split ? (event) => selectOneSide(event.currentTarget, event.target) : undefined}
    >
      <div class="diff-rows" role="table" aria-label={label}>
        {chunks(shapes).map((chunk, index) => (
          <Chunk key={index} rows={chunk.length} first={index === 0} class="diff-chunk" role="rowgroup">
            {() => (
              <Still on={[returns, ...chunk, ...chunk.map((shape) => colourOf(shape, colours))]}>
                {() => chunk.map((shape, at) => <Row key={at} shape={shape} drawing={drawing} open={open} />)}
              </Still>
            )}
          </Chunk>
        ))}
      </div>
    </div>
  );
}

function* slices<Value>(values: readonly Value[]): Generator<readonly Value[]> {
  for (let at = 0; at < values.length; at += CHUNK) yield values.slice(at, at + CHUNK);
}

const chunks = (shapes: readonly Shape[]): (readonly Shape[])[] => [...slices(shapes)];

/** Something that is another value when the colours of the row are. */
function colourOf(shape: Shape, colours: LineColours): unknown {
  if (shape.kind === "gap") return null;
  if (shape.kind !== "pair") return colours.get(shape);
  return (shape.left && colours.get(shape.left)) ?? (shape.right && colours.get(shape.right));
}

interface RowProps {
  shape: Shape;
  drawing: Drawing;
  open(gap: OpenGap, by: "head" | "tail" | "all"): void;
}

function Row({ shape, drawing, open }: RowProps) {
  if (shape.kind === "gap") return <GapView gap={shape} open={(by) => open(shape, by)} />;
  if (shape.kind === "pair") return <PairRow pair={shape} drawing={drawing} />;
  return <UnifiedRow row={shape} drawing={drawing} />;
}

/** Who drags over two columns wants one of them: the one where it began. */
function selectOneSide(body: HTMLElement, target: EventTarget | null): void {
  const left = target instanceof Element && target.closest(".diff-left");
  body.classList.toggle("diff-only-left", !!left);
  body.classList.toggle("diff-only-right", !left);
}
