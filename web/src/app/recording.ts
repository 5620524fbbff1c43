/**
 * A session as it was recorded: its events, when each of them happens while it is played, and its state at any of them.
 *
 * The state after some events is what folding exactly these gives, however it was reached. Events are never handed to
 * a fold themselves, since a fold owns what it is given: they are copied, and texts are shared by all copies.
 */
import type { EventOf } from "../model/handlers";
import { Session } from "../model/session";
import type { Fields } from "../model/state";
import { millisecondsBetween } from "../model/summary";
import type { MessageContent, SessionEvent, SessionItem } from "../model/wire.gen";
import { shortenText } from "../text/shorten";
import { summarizeRequest } from "./approvals";

/** The longest wait that is played as long as it was; a longer one is played as this, as `pilothouse replay` does. */
export const LONGEST_WAIT = 2000;
/** Events from one kept state to the next. */
const SPACING = 1000;
/** Events that share a timestamp, as those of an imported session may, still come one after another. */
const SHORTEST_WAIT = 1;
const LABEL = 120;

export type MarkKind = "prompt" | "approval" | "edit" | "error";

/** A place worth going to. `count` events lead there, the one it is about being the last of them. */
export interface Mark {
  kind: MarkKind;
  count: number;
  label: string;
}

export class Recording {
  readonly events: SessionEvent[] = [];
  readonly marks: Mark[] = [];
  /** Waits that are shortened when they are played: how long they were, by the event that they end with. */
  readonly waits = new Map<number, number>();
  readonly #times: number[] = [];
  readonly #seqs: number[] = [];
  readonly #kept: Fields[] = [];
  /** All of it so far; the states that are kept are taken from it. */
  readonly #whole = new Session();
  #copies = new Map<SessionItem, SessionItem>();

  constructor(events: readonly SessionEvent[] = []) {
    this.add(events);
  }

  get length(): number {
    return this.events.length;
  }

  /** How long it plays, in milliseconds at its own speed. */
  get duration(): number {
    return this.#times.at(-1) ?? 0;
  }

  add(events: readonly SessionEvent[]): void {
    for (const event of events) {
      this.#times.push(this.duration + this.#wait(event));
      this.#seqs.push(Math.max(event.seq, this.#seqs.at(-1) ?? 0));
      this.events.push(event);
      this.#whole.apply(copied(event));
      const mark = markOf(event, this.#whole);
      if (mark) this.marks.push({ ...mark, label: clip(mark.label), count: this.length });
      if (this.length % SPACING === 0) this.#kept.push(this.#taken());
    }
  }

  /**
   * The session after so many events. It is the caller's, as are the items of another session of this recording that
   * are given up to it: those before the first that was another then are used again, so that views know them.
   */
  at(count: number, given: readonly SessionItem[] = []): Session {
    const near = Math.min(Math.floor(count / SPACING), this.#kept.length);
    const fields = this.#kept[near - 1];
    const session = fields ? new Session(copiedFields(fields, copied)) : new Session();
    this.apply(session, near * SPACING, count);
    const items = [...session.fields.items];
    for (let at = 0; at < items.length && same(items[at], given[at]); at += 1) items[at] = given[at]!;
    return given.length ? new Session({ ...session.fields, items }) : session;
  }

  /** Let a session that has had `from` events have `to` of them. */
  apply(session: Session, from: number, to: number): void {
    for (let index = from; index < Math.min(to, this.length); index += 1) session.apply(copied(this.events[index]!));
  }

  /** When that event happens, in milliseconds of playing; the first one at once. */
  timeOf(count: number): number {
    return this.#times[Math.min(count, this.length) - 1] ?? 0;
  }

  /** How many events have happened at a moment of playing. */
  countAt(time: number): number {
    return above(this.#times, time);
  }

  /** How many events there are up to that number. */
  countOf(seq: number): number {
    return above(this.#seqs, seq);
  }

  /** The number of the last of so many events. */
  seqOf(count: number): number {
    return this.#seqs[count - 1] ?? 0;
  }

  #wait(event: SessionEvent): number {
    const before = this.events.at(-1);
    if (!before) return 0;
    const real = millisecondsBetween(before.timestamp, event.timestamp);
    if (real > LONGEST_WAIT) this.waits.set(this.length + 1, real);
    return Math.min(Math.max(real, SHORTEST_WAIT), LONGEST_WAIT);
  }

  /** The state as it is now. Items that did not change since the last one are shared with it. */
  #taken(): Fields {
    for (const item of this.#whole.takeChanges().items.keys()) this.#copies.delete(item);
    const copies = new Map<SessionItem, SessionItem>();
    const fields = copiedFields(this.#whole.fields, (item) => {
      const copy = this.#copies.get(item) ?? copied(item);
      copies.set(item, copy);
      return copy;
    });
    this.#copies = copies;
    return fields;
  }
}

/** How many of the ascending values are not above the limit. */
function above(values: readonly number[], limit: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

// -- copies -----------------------------------------------------------------------------------------------------------

/** The spread first: it makes even `__proto__`, which an agent's JSON may have, a field like others. */
function copied<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copied) as Value;
  const copy = { ...value } as Record<string, unknown>;
  for (const [key, inner] of Object.entries(copy)) {
    if (typeof inner === "object" && inner !== null) copy[key] = copied(inner);
  }
  return copy as Value;
}

/** A field that is not there is the same as one that is undefined. */
function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [mine, its] = [one as Record<string, unknown>, other as Record<string, unknown>];
  for (const key of Object.keys(mine)) if (!same(mine[key], its[key])) return false;
  for (const key of Object.keys(its)) if (its[key] !== undefined && mine[key] === undefined) return false;
  return true;
}

function copiedFields({ items, files, subAgents, ...rest }: Fields, copy: (item: SessionItem) => SessionItem): Fields {
  return { ...copied(rest), items: items.map(copy), files: copiedMap(files), subAgents: copiedMap(subAgents) };
}

const copiedMap = <Value>(map: ReadonlyMap<string, Value>): Map<string, Value> =>
  new Map(Array.from(map, ([key, value]) => [key, copied(value)]));

// -- marks ------------------------------------------------------------------------------------------------------------

type Marker = Pick<Mark, "kind" | "label">;

/** From the event, and the session that it has just happened in. */
const MARKERS: { [Type in SessionEvent["type"]]?: (event: EventOf<Type>, session: Session) => Marker | null } = {
  "message:complete": ({ role, content }) => (role === "user" ? { kind: "prompt", label: textOf(content) } : null),
  "approval:requested": (event, { fields }) => ({
    kind: "approval",
    label: summarizeRequest(event, fields.workingDirectory),
  }),
  "interaction:question": ({ question }) => ({ kind: "approval", label: question }),
  "file:change": (event, session) => edited([event], session),
  "file:batch": ({ changes }, session) => edited(changes, session),
  "session:error": ({ error }) => ({ kind: "error", label: error.message }),
  "tool:error": ({ toolCallId }, { lookup }) => {
    const call = lookup.calls.get(toolCallId);
    return call?.status === "failed" ? { kind: "error", label: call.description || call.title || call.name } : null;
  },
};

function edited(changes: readonly { path: string }[], { fields }: Session): Marker {
  const root = `${fields.workingDirectory}/`;
  const paths = changes.map(({ path }) => (path.startsWith(root) ? path.slice(root.length) : path));
  return { kind: "edit", label: paths.join(", ") };
}

function markOf(event: SessionEvent, session: Session): Marker | null {
  const marker = Object.hasOwn(MARKERS, event.type) ? MARKERS[event.type] : undefined;
  return (marker as ((event: SessionEvent, session: Session) => Marker | null) | undefined)?.(event, session) ?? null;
}

const textOf = (content: readonly MessageContent[]): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join(" ");

/** A label in one line; of a long one both ends are shown. */
const clip = (text: string): string => shortenText(text.replace(/\s+/g, " ").trim(), LABEL);
