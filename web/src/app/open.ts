/**
 * A session that is open on the page: its fold, and signals that say what to draw again.
 *
 * Events come as fast as they like; what they changed is looked at once for each frame that the browser draws. An item
 * is the same object for as long as it exists and is changed in place, so a view subscribes to the item's version.
 */
import { type Signal, signal } from "@preact/signals";
import { SessionFeed } from "../link/feed";
import type { Session } from "../model/session";
import type { Failed, SessionItem } from "../model/wire.gen";
import type { Hub } from "./hub";

/** What may be told of an item besides that it changed: the text that was added at its end, or null for anything. */
export type Growth = (text: string | null) => void;

export class OpenSession {
  readonly id: string;
  readonly hub: Hub;
  /** Null until it was read. */
  readonly session = signal<Session | null>(null);
  readonly items = signal<readonly SessionItem[]>([]);
  /** Counts up when anything of the session changed that is no item: status, title, turn, todos, usage, queue. */
  readonly head = signal(0);
  readonly gone = signal<Failed | null>(null);
  readonly #versions = new WeakMap<SessionItem, Signal<number>>();
  readonly #growths = new WeakMap<SessionItem, Set<Growth>>();
  readonly #feed: SessionFeed;
  #frame = 0;

  constructor(id: string, hub: Hub) {
    this.id = id;
    this.hub = hub;
    this.#feed = new SessionFeed(id, hub.link, hub.ports.fetch, {
      changed: () => this.#plan(),
      gone: (error) => (this.gone.value = error),
    });
    void this.#feed.open();
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    this.#feed.close();
  }

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

  // a page in the background draws no frames, yet its title and its badge should be true
  #plan(): void {
    if (document.visibilityState === "hidden") this.#draw();
    else this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const session = this.#feed.session;
    if (!session) return;
    const anew = session !== this.session.value;
    const changes = session.takeChanges();
    if (anew) this.session.value = session;
    for (const [item, text] of changes.items) {
      for (const told of this.#growths.get(item) ?? []) told(text);
      const version = this.#versions.get(item);
      if (version) version.value += 1;
    }
    if (anew || changes.order) this.items.value = [...session.fields.items];
    if (anew || changes.head) this.head.value += 1;
  }
}
