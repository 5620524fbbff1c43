/**
 * A session on the page: its state as the hub has it, then every event as it comes.
 *
 * The state is there after one request, however long the session is; what happens meanwhile is beyond its `seq`, and
 * comes with the events.
 */
import { isObject } from "../model/json";
import { Session } from "../model/session";
import type { Failed, SessionEvent, SessionState } from "../model/wire.gen";
import type { Sink } from "./follower";
import type { Link } from "./link";
import type { Ports } from "./ports";
import { failure } from "./socket";

export interface FeedEvents {
  /** The session changed; `session.takeChanges()` says what. Draw when it suits. */
  changed(): void;
  gone(error: Failed): void;
}

export class SessionFeed implements Sink {
  readonly #sessionId: string;
  readonly #link: Link;
  readonly #fetch: Ports["fetch"];
  readonly #told: FeedEvents;
  #session: Session | null = null;
  #closed = false;

  constructor(sessionId: string, link: Link, fetch: Ports["fetch"], told: FeedEvents) {
    this.#sessionId = sessionId;
    this.#link = link;
    this.#fetch = fetch;
    this.#told = told;
  }

  /** Null until it was read. After `reset` it is another one. */
  get session(): Session | null {
    return this.#session;
  }

  /** Read the state, then follow. What cannot be read now is followed from the beginning. */
  async open(): Promise<void> {
    const answer = await this.#fetch(`sessions/${encodeURIComponent(this.#sessionId)}`).catch(() => null);
    if (this.#closed) return;
    const { status = 0, body = null } = answer ?? {};
    if (status === 404 || status === 403) {
      this.gone(failure(isObject(body) ? body["error"] : undefined, `http_${status}`));
      return;
    }
    const read = status === 200 && isObject(body) && Array.isArray(body["items"]);
    this.#session = read ? Session.from(body as unknown as SessionState) : new Session();
    this.#link.follow(this.#sessionId, this.#session.fields.seq, this);
    this.#told.changed();
  }

  close(): void {
    this.#closed = true;
    this.#link.unfollow(this.#sessionId);
  }

  events(events: SessionEvent[]): void {
    for (const event of events) this.#session?.apply(event);
    this.#told.changed();
  }

  reset(): void {
    this.#session = new Session();
    this.#told.changed();
  }

  gone(error: Failed): void {
    this.#told.gone(error);
  }
}
