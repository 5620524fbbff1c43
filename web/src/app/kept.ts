/**
 * What the hub told last, kept in this browser for reading while it cannot be reached: the list of sessions, and those
 * that were opened last.
 *
 * It is somebody's work, so it is forgotten as soon as the hub no longer knows this browser. Where a browser has no
 * caches (a page without TLS that is not of this machine) nothing is kept.
 */
import { isObject } from "../model/json";
import type { Json } from "../model/wire.gen";

const SESSIONS = 10;
/** Characters of one session; a longer one is not kept. */
const LARGEST = 8 << 20;

export class Kept {
  readonly #caches: CacheStorage | undefined;
  readonly #base: URL;
  /** One after the other: what is forgotten must not come back by something that was under way. */
  #last: Promise<void> = Promise.resolve();

  /** `base` is where the page is served: hubs below other paths of an origin keep their own. */
  constructor(caches: CacheStorage | undefined, base: string) {
    this.#caches = caches;
    this.#base = new URL(".", base);
  }

  session(id: string): Promise<Json> {
    return this.#read(sessionKey(id));
  }

  keepSession(id: string, state: Json): Promise<void> {
    return this.#next(async () => {
      await this.#write(sessionKey(id), state);
      await this.#trim();
    });
  }

  dropSession(id: string): Promise<void> {
    return this.#next(async () => void (await (await this.#open())?.delete(this.#url(sessionKey(id)))));
  }

  async #trim(): Promise<void> {
    const cache = await this.#open();
    const keys = (await cache?.keys())?.filter(({ url }) => url.startsWith(this.#url(sessionKey("")))) ?? [];
    await Promise.all(keys.slice(0, -SESSIONS).map((key) => cache?.delete(key)));
  }

  async rows(): Promise<Json[] | null> {
    const rows = await this.#read("rows");
    return Array.isArray(rows) ? rows : null;
  }

  keepRows(rows: Json[]): Promise<void> {
    return this.#next(() => this.#write("rows", rows));
  }

  forget(): Promise<void> {
    return this.#next(async () => void (await this.#caches?.delete(this.#name).catch(() => false)));
  }

  /** What fails is not kept; it must not keep what comes later, such as to forget, from being done. */
  #next(work: () => Promise<void>): Promise<void> {
    return (this.#last = this.#last.then(work).catch(() => {}));
  }

  get #name(): string {
    return `pilothouse-kept ${this.#base.pathname}`;
  }

  // a browser may forbid what it has; then nothing is kept
  async #open(): Promise<Cache | undefined> {
    return this.#caches?.open(this.#name).catch(() => undefined);
  }

  #url(key: string): string {
    return new URL(`kept/${key}`, this.#base).href;
  }

  async #read(key: string): Promise<Json> {
    const found = await (await this.#open())?.match(this.#url(key)).catch(() => undefined);
    return ((await found?.json().catch(() => null)) ?? null) as Json;
  }

  /** What is put becomes the last of the cache's keys, in one step: a page may end in the middle of two. */
  async #write(key: string, value: Json): Promise<void> {
    const cache = await this.#open();
    const text = JSON.stringify(value);
    if (!cache || text.length > LARGEST) return;
    await cache.put(this.#url(key), new Response(text)).catch(() => undefined);
  }
}

const sessionKey = (id: string): string => `sessions/${encodeURIComponent(id)}`;

/** The session whose state a path asks for. */
export function sessionOf(path: string): string | null {
  const id = /^sessions\/([^/?]+)$/.exec(path)?.[1];
  return id === undefined ? null : decodeURIComponent(id);
}

/** Whether it is a state that a session can be shown from. */
export const isState = (body: Json): boolean => isObject(body) && Array.isArray(body["items"]);
