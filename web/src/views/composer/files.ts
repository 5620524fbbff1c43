/**
 * The files of a session's directory, for completion: what lies near the top is looked through, and a directory that is
 * typed is listed. The hub lists one directory at a time, so how many are asked for is bounded.
 */
import { signal } from "@preact/signals";
import { path } from "../../app/api";
import type { Hub } from "../../app/hub";
import { type Entry, isSpaced } from "./completion";

const DIRECTORIES = 60;
const FRESH = 30_000;
const SKIPPED = /^(?:\..*|node_modules|__pycache__|target|dist|build|vendor|venv)$/;

interface Listing {
  entries: { name: string; path: string; kind: string }[];
}

export class Files {
  readonly entries = signal<readonly Entry[]>([]);
  readonly looking = signal(false);
  readonly #hub: Hub;
  readonly #sessionId: string;
  readonly #known = new Map<string, Entry>();
  #listed = new Set<string>();
  #since = -Infinity;

  constructor(hub: Hub, sessionId: string) {
    this.#hub = hub;
    this.#sessionId = sessionId;
  }

  /** Somebody completes: look through what may have changed, and into the directory that is typed. */
  async look(query: string): Promise<void> {
    if (Date.now() - this.#since > FRESH) {
      this.#since = Date.now();
      this.#listed = new Set();
      void this.#walk();
    }
    const typed = query.slice(0, Math.max(0, query.lastIndexOf("/")));
    const mayBe = !isSpaced(query) || this.#known.has(typed);
    if (typed && mayBe && !this.#listed.has(typed)) await this.#list(typed);
  }

  async #walk(): Promise<void> {
    this.looking.value = true;
    const waiting = [""];
    for (let count = 0; waiting.length && count < DIRECTORIES; count += 1) {
      const found = await this.#list(waiting.shift() ?? "");
      waiting.push(...found.filter((one) => !SKIPPED.test(one.slice(one.lastIndexOf("/") + 1))));
    }
    this.looking.value = false;
  }

  /** Gives the directories in it. */
  async #list(directory: string): Promise<string[]> {
    this.#listed.add(directory);
    const query = new URLSearchParams({ path: directory || ".", limit: "1000" });
    const url = `${path("sessions", this.#sessionId, "files")}?${query}`;
    const { entries } = await this.#hub.api.get<Listing>(url).catch((): Listing => ({ entries: [] }));
    for (const entry of entries) {
      if (entry.kind !== "other") {
        this.#known.set(entry.path, { path: entry.path, directory: entry.kind === "directory" });
      }
    }
    this.entries.value = [...this.#known.values()];
    return entries.filter(({ kind }) => kind === "directory").map((entry) => entry.path);
  }
}
