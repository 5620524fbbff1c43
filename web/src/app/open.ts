/**
 * A session that is open on the page, as it happens.
 *
 * Events come as fast as they like; what they changed is looked at when the page draws.
 */
import { signal } from "@preact/signals";
import { SessionFeed } from "../link/feed";
import type { Failed } from "../model/wire.gen";
import type { Hub } from "./hub";
import { Pace } from "./pace";
import { ShownSession } from "./shown";

export type { Growth } from "./shown";

export class OpenSession extends ShownSession {
  readonly id: string;
  readonly hub: Hub;
  readonly gone = signal<Failed | null>(null);
  /** Counts the prompts that were sent from here: who sends one wants to see what comes of it. */
  readonly sent = signal(0);
  readonly #feed: SessionFeed;
  readonly #pace = new Pace(() => this.#draw());

  constructor(id: string, hub: Hub) {
    super();
    this.id = id;
    this.hub = hub;
    this.#feed = new SessionFeed(id, hub.link, hub.ports.fetch, {
      changed: () => this.#plan(),
      gone: (error) => (this.gone.value = error),
    });
    void this.#feed.open();
  }

  close(): void {
    this.#pace.stop();
    this.#feed.close();
  }

  // a page in the background draws no frames, yet its title and its badge should be true
  #plan(): void {
    if (document.visibilityState === "visible") this.#pace.plan();
    else this.#draw();
  }

  #draw(): void {
    this.#pace.stop();
    if (this.#feed.session) this.show(this.#feed.session);
  }
}
