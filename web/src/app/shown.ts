/**
 * A session as views see it: its fold, and signals that say what to draw again.
 *
 * An item is the same object for as long as it exists and is changed in place, so a view subscribes to the item's
 * version. Where the events come from, and when to look at what they changed, is for others to say.
 */
import { batch, type Signal, signal } from "@preact/signals";
import type { Session } from "../model/session";
import type { SessionItem } from "../model/wire.gen";

/** What may be told of an item besides that it changed: the text that was added at its end, or null for anything. */
export type Growth = (text: string | null) => void;

export class ShownSession {
  /** Null until it was read. */
  readonly session = signal<Session | null>(null);
  readonly items = signal<readonly SessionItem[]>([]);
  /** Counts up when anything of the session changed that is no item: status, title, turn, todos, usage, queue. */
  readonly head = signal(0);
  readonly #versions = new WeakMap<SessionItem, Signal<number>>();
  readonly #growths = new WeakMap<SessionItem, Set<Growth>>();

  /** Read it in a view, and the view is drawn again when the item changed. */
  version(item: SessionItem): Signal<number> {
    let known = this.#versions.get(item);
    if (!known) this.#versions.set(item, (known = signal(0)));
    return known;
  }

  /** Be told how an item grows, before its version counts up. Gives the way to stop that. */
  grown(item: SessionItem, told: Growth): () => void {
    const all = this.#growths.get(item) ?? new Set<Growth>();
    this.#growths.set(item, all);
    all.add(told);
    return () => all.delete(told);
  }

  /** Tell the views what changed since the last time; another session than the last is all new. */
  protected show(session: Session): void {
    const anew = session !== this.session.value;
    const changes = session.takeChanges();
    batch(() => {
      if (anew) this.session.value = session;
      for (const [item, text] of changes.items) this.#tell(item, text);
      if (anew || changes.order) this.items.value = [...session.fields.items];
      if (anew || changes.head) this.head.value += 1;
    });
  }

  #tell(item: SessionItem, text: string | null): void {
    for (const told of this.#growths.get(item) ?? []) told(text);
    const version = this.#versions.get(item);
    if (version) version.value += 1;
  }
}
