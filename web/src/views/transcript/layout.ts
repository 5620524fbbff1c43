/**
 * Items → rows, and rows → chunks that are drawn or not.
 *
 * Items that were laid out stay as they are: what is added costs what it brings, and changes nothing but the last
 * chunk. Only when items went away is everything laid out again. What belongs to a call (the calls of its sub-agent,
 * a word of the hub about it) goes to its family and is no row.
 */
import { type Signal, signal } from "@preact/signals";
import { isObject, textOf } from "../../model/json";
import type { Custom, SessionItem, SessionState, ToolCall, Turn } from "../../model/wire.gen";
import { Families, type Step } from "../cards/family";
import { kindOf } from "../cards/kinds";

export type Row =
  | { readonly kind: "item"; readonly key: number; readonly item: Exclude<SessionItem, Step | Custom> }
  | { readonly kind: "run"; readonly key: number; readonly steps: readonly Step[] }
  | { readonly kind: "details"; readonly key: number; readonly items: readonly Custom[] }
  /** A turn begins here; the one before it is over. */
  | {
      readonly kind: "turn";
      readonly key: number;
      readonly ended: Turn | null;
      readonly startedAt: string;
      /** So long after the last one that the time is worth telling. */
      readonly timed: boolean;
      /** Another program did it. */
      readonly elsewhere: boolean;
    };

/** The turns of a session, as its fold has them. */
export type Turns = Pick<SessionState, "turn" | "turnsEnded">;

export class Chunk {
  readonly rows = signal<readonly Row[]>([]);
  readonly drawn = signal(false);
  /** How high it was when it was last drawn. */
  height: number | null = null;

  constructor(readonly key: number) {}
}

/** Rows of a chunk. */
export const CHUNK = 12;
/** Chunks at the end that are drawn when a transcript is laid out as a whole. */
export const AT_FIRST = 2;
/** Steps of a run; a longer one is several, so that a change costs no more. */
export const RUN = 40;

/** Milliseconds without a word about the time. */
const PAUSE = 300_000;

const keys = new WeakMap<object, number>();
let lastKey = 0;
/** Ids and numbers are the agents' to choose, and may come twice: the object is what tells them apart. */
export function keyOf(item: object): number {
  let key = keys.get(item);
  if (key === undefined) keys.set(item, (key = ++lastKey));
  return key;
}

export class Layout {
  readonly chunks: Signal<readonly Chunk[]> = signal([]);
  readonly families = new Families();
  /** Rows so far. */
  count = 0;
  #items: readonly SessionItem[] = [];
  #were: readonly Chunk[] = [];
  #calls = new Map<string, ToolCall>();
  #parents = new Map<ToolCall, ToolCall>();
  #turnId: string | undefined;
  #timed = "";

  /** All items there are. Chunks that come anew are drawn if `draw` says so. */
  take(items: readonly SessionItem[], turns: Turns | undefined, draw: boolean): void {
    const known = this.#items.length;
    const same = items.length >= known && (known === 0 || items[known - 1] === this.#items[known - 1]);
    if (!same) this.#clear();
    const added = same ? items.slice(known) : items;
    this.#items = items;
    if (!added.length && same) return;
    const chunks = [...this.chunks.peek()];
    const open = new Map<Chunk, Row[]>();
    const before = chunks.length;
    for (const item of added) this.#place(item, turns, chunks, open);
    for (const [chunk, rows] of open) chunk.rows.value = rows;
    if (draw) for (const chunk of chunks.slice(same ? before : -AT_FIRST)) chunk.drawn.value = true;
    this.#were = [];
    if (chunks.length !== before || !same) this.chunks.value = chunks;
  }

  /** The key of the row in which an item stands; null for one that is no row. */
  rowWith(item: SessionItem): number | null {
    for (const chunk of this.chunks.peek()) {
      for (const row of chunk.rows.peek()) if (itemsOf(row).includes(item)) return row.key;
    }
    return null;
  }

  /** Have the row drawn, with what is around it. */
  drawAt(key: number): void {
    const chunks = this.chunks.peek();
    const at = chunks.findIndex((chunk) => chunk.rows.peek().some((row) => row.key === key));
    if (at >= 0) for (const chunk of chunks.slice(Math.max(0, at - 1), at + 2)) chunk.drawn.value = true;
  }

  /** Chunks that come in their places are drawn as they were: of what is played again most is the same. */
  #clear(): void {
    this.#were = this.chunks.peek();
    for (const item of this.#items) if (item.type === "tool_call") this.families.forget(item);
    this.chunks.value = [];
    this.#calls = new Map();
    this.#parents = new Map();
    this.#turnId = undefined;
    this.#timed = "";
    this.count = 0;
  }

  #place(item: SessionItem, turns: Turns | undefined, chunks: Chunk[], open: Map<Chunk, Row[]>): void {
    if (isBookkeeping(item) || this.#toFamily(item)) return;
    if (item.turnId !== undefined && item.turnId !== this.#turnId) {
      const ended = turns?.turnsEnded.findLast((turn) => turn.turnId === this.#turnId) ?? null;
      const elsewhere = isElsewhere(item.turnId, turns);
      const startedAt = item.timestamp;
      const timed = !(Date.parse(startedAt) - Date.parse(this.#timed) < PAUSE);
      this.#turnId = item.turnId;
      if (timed) this.#timed = startedAt;
      this.#push({ kind: "turn", key: keyOf({}), ended, startedAt, timed, elsewhere }, chunks, open);
    }
    const rows = rowsOf(chunks.at(-1), open);
    const joined = rows?.length ? join(rows.at(-1)!, item) : null;
    if (rows && joined) rows[rows.length - 1] = joined;
    else this.#push(rowOf(item), chunks, open);
  }

  /** Whether the item belongs to a call and is shown with it. */
  #toFamily(item: SessionItem): boolean {
    if (item.type === "tool_call") {
      const parent = item.parentToolCallId === undefined ? undefined : this.#calls.get(item.parentToolCallId);
      this.#calls.set(item.toolCallId, item);
      if (!parent) return false;
      this.#parents.set(item, parent);
      return this.#adopt(parent, item);
    }
    if (item.type === "approval") {
      const call = this.#calls.get(item.toolCallId);
      const parent = call && this.#parents.get(call);
      return parent ? this.#adopt(parent, item) : false;
    }
    if (item.type !== "custom" || item.eventName !== "acted_without_asking" || !isObject(item.data)) return false;
    const call = this.#calls.get(String(item.data["toolCallId"]));
    if (call && isAskedAbout(call, textOf(item.data["riskLevel"]) || call.riskLevel))
      this.families.of(call).unasked.value = item;
    return call !== undefined;
  }

  #adopt(parent: ToolCall, step: Step): true {
    const { children } = this.families.of(parent);
    if (!children.peek().includes(step)) children.value = [...children.peek(), step];
    return true;
  }

  #push(row: Row, chunks: Chunk[], open: Map<Chunk, Row[]>): void {
    this.count += 1;
    const rows = rowsOf(chunks.at(-1), open);
    if (rows && rows.length < CHUNK) {
      rows.push(row);
      return;
    }
    const was = this.#were[chunks.length];
    const chunk = new Chunk(was?.key ?? row.key);
    if (was) [chunk.drawn.value, chunk.height] = [was.drawn.peek(), was.height];
    chunks.push(chunk);
    open.set(chunk, [row]);
  }
}

/** Records of the hub that are shown elsewhere: the queue in the composer, an act and a mode with their calls. */
const BOOKKEEPING = /^(?:prompt_|act_allowed$|act_undone$|mode_chosen$)/;
const isBookkeeping = (item: SessionItem): boolean =>
  item.type === "custom" && item.namespace === "pilothouse" && BOOKKEEPING.test(item.eventName);

/** Whether anybody would want to be asked: agents think and go over to another mode by calls as well. */
const isAskedAbout = (call: ToolCall, risk: string | undefined): boolean =>
  risk !== "low" && !["think", "mode", "todo", "question"].includes(kindOf(call));

function isElsewhere(turnId: string, turns: Turns | undefined): boolean {
  const now = turns?.turn;
  const turn = now?.turnId === turnId ? now : turns?.turnsEnded.findLast((one) => one.turnId === turnId);
  return turn?.elsewhere ?? false;
}

/** The rows of a chunk, to be changed. */
function rowsOf(chunk: Chunk | undefined, open: Map<Chunk, Row[]>): Row[] | null {
  if (!chunk) return null;
  let rows = open.get(chunk);
  if (!rows) open.set(chunk, (rows = [...chunk.rows.peek()]));
  return rows;
}

function itemsOf(row: Row): readonly SessionItem[] {
  if (row.kind === "run") return row.steps;
  return row.kind === "details" ? row.items : row.kind === "item" ? [row.item] : [];
}

const isStep = (item: SessionItem): item is Step =>
  item.type === "tool_call" || item.type === "approval" || item.type === "thought";

function rowOf(item: SessionItem): Row {
  const key = keyOf(item);
  if (isStep(item)) return { kind: "run", key, steps: [item] };
  return item.type === "custom" ? { kind: "details", key, items: [item] } : { kind: "item", key, item };
}

/** The row with the item added, where it goes on with the same. */
function join(row: Row, item: SessionItem): Row | null {
  if (row.kind === "run" && isStep(item) && row.steps.length < RUN) return { ...row, steps: [...row.steps, item] };
  if (row.kind === "details" && item.type === "custom" && row.items.length < RUN) {
    return { ...row, items: [...row.items, item] };
  }
  return null;
}
