/**
 * What happened in a session, from the first word to the last: as much of it drawn as can be seen.
 *
 * An item that changes draws itself and nothing else; items that come are added to the last chunk. Neither costs more
 * in a long transcript than in a short one.
 */
import { effect, signal } from "@preact/signals";
import { useContext, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { SessionItem } from "../../model/wire.gen";
import { Icon } from "../../ui/icon";
import { FamiliesContext } from "../cards/family";
import { PlanCard } from "../cards/plan";
import { memo } from "../text/memo";
import { OpenContext } from "../../app/context";
import { type Source, SourceContext } from "../text/source";
import { AT_FIRST, Layout, type Chunk, CHUNK } from "./layout";
import { type Mark, MarkContext, RowView } from "./row";
import { Scroller } from "./scroll";
import { TurnNow } from "./turn";

interface Props {
  /** Where it comes from; the open session when not given. */
  source?: Source;
  /** The last event that was read: the transcript opens at what came after it. */
  readSeq?: number | undefined;
  /** What is looked for: the transcript opens there. */
  foundSeq?: number | undefined;
}

export function Transcript({ source: given, ...at }: Props) {
  const open = useContext(OpenContext);
  const source = given ?? open;
  if (!source) throw new Error("no session around this view");
  return (
    <SourceContext.Provider value={source}>
      <Reader key={idOf(source)} source={source} at={at} />
    </SourceContext.Provider>
  );
}

const ids = new WeakMap<Source, number>();
let lastId = 0;
/** Another source is another transcript, with a place of its own. */
function idOf(source: Source): number {
  let id = ids.get(source);
  if (id === undefined) ids.set(source, (id = ++lastId));
  return id;
}

type At = Omit<Props, "source">;

function Reader({ source, at }: { source: Source; at: At }) {
  const { layout, scroller, mark } = useMemo(() => opened(source, at), [source]);
  const sought = useRef(isThere(source, at.foundSeq) ? undefined : at.foundSeq);
  const box = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const sent = useContext(OpenContext)?.sent.value ?? 0;
  useLayoutEffect(() => {
    if (sent) scroller.toEnd();
  }, [sent]);
  useLayoutEffect(() => {
    if (!box.current || !body.current) return undefined;
    const stop = scroller.attach(box.current, body.current);
    showMark(body.current, scroller);
    const end = effect(() => {
      const items = source.items.value;
      const begins = layout.chunks.peek().length === 0;
      layout.take(items, source.session.peek()?.fields, !begins && scroller.stuck.peek());
      if (begins) drawLast(layout);
      scroller.came();
      if (sought.current === undefined || !isThere(source, sought.current)) return;
      mark.value = placeOf(layout, items, sought.current);
      sought.current = undefined;
      if (mark.value) layout.drawAt(mark.value.key);
      requestAnimationFrame(() => showMark(body.current, scroller)); // when it is drawn
    });
    return () => {
      end();
      stop();
    };
  }, [source]);
  return (
    <FamiliesContext.Provider value={layout.families}>
      <MarkContext.Provider value={mark}>
        <div class="transcript">
          <PlanCard />
          <div ref={box} class="transcript-scroll" tabIndex={0} role="log" aria-live="off" aria-label="Transcript">
            <div ref={body} class="transcript-body">
              <Chunks layout={layout} />
              <div class="transcript-end">
                <TurnNow />
              </div>
            </div>
          </div>
          <Jump scroller={scroller} />
        </div>
      </MarkContext.Provider>
    </FamiliesContext.Provider>
  );
}

function opened(source: Source, { readSeq, foundSeq }: At) {
  const layout = new Layout();
  const items = source.items.peek();
  layout.take(items, source.session.peek()?.fields, false);
  drawLast(layout);
  const fresh = readSeq === undefined ? undefined : items.find((item) => item.seq > readSeq);
  const found = foundSeq !== undefined && isThere(source, foundSeq) ? placeOf(layout, items, foundSeq) : null;
  const mark = signal(foundSeq === undefined ? marked(layout, fresh, "New") : found);
  if (mark.value) layout.drawAt(mark.value.key);
  return { layout, scroller: new Scroller(layout), mark };
}

/** Whether what is looked for has come; a session that could not be read at once comes event by event. */
const isThere = (source: Source, seq = 0): boolean => (source.session.peek()?.fields.seq ?? 0) >= seq;

const placeOf = (layout: Layout, items: readonly SessionItem[], seq: number): Mark | null =>
  marked(
    layout,
    items.findLast((item) => item.seq <= seq),
    "Found",
  );

function showMark(body: HTMLElement | null, scroller: Scroller): void {
  const line = body?.querySelector<HTMLElement>(".unread");
  if (line) scroller.show(line, 48);
}

/** Nothing is marked at the very beginning: there is nothing before it. */
function marked(layout: Layout, item: SessionItem | undefined, word: string): Mark | null {
  const key = item === undefined ? null : layout.rowWith(item);
  return key === null || key === layout.chunks.peek()[0]?.rows.peek()[0]?.key ? null : { key, word };
}

function drawLast(layout: Layout): void {
  for (const chunk of layout.chunks.peek().slice(-AT_FIRST)) chunk.drawn.value = true;
}

function Chunks({ layout }: { layout: Layout }) {
  return (
    <>
      {layout.chunks.value.map((chunk) => (
        <ChunkView key={chunk.key} chunk={chunk} />
      ))}
    </>
  );
}

/** Pixels of a row that nobody has seen yet. */
const GUESS = 64;

const ChunkView = memo(({ chunk }: { chunk: Chunk }) => {
  const rows = chunk.rows.value;
  if (!chunk.drawn.value) {
    const height = chunk.height ?? Math.max(1, Math.min(rows.length, CHUNK)) * GUESS;
    return <section class="transcript-chunk" style={{ height: `${height}px` }} aria-hidden="true" />;
  }
  return (
    <section class="transcript-chunk transcript-drawn">
      {rows.map((row) => (
        <RowView key={row.key} row={row} />
      ))}
    </section>
  );
});

function Jump({ scroller }: { scroller: Scroller }) {
  if (scroller.stuck.value || scroller.low.value) return null;
  const fresh = scroller.fresh.value;
  return (
    <button type="button" class="button transcript-jump" onClick={() => scroller.toEnd()}>
      <Icon name="down" size={14} />
      Jump to latest{fresh > 0 && ` (${fresh} new)`}
    </button>
  );
}
