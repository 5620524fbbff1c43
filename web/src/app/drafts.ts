/**
 * What was typed and not sent yet, for each session: it outlives leaving the session, the page and the browser.
 *
 * Pictures stay as long as the page does: they are too large for what a browser keeps.
 */
import { type Signal, signal } from "@preact/signals";
import type { Picture } from "./commands";
import { read, write } from "./stored";

const DEBOUNCE = 300;

type Stored = { text: string; mentions: string[] };

export class Draft {
  readonly text: Signal<string>;
  /** Files that were chosen for the text, by their paths; whether they still stand in it is seen when it is sent. */
  readonly mentions: Signal<readonly string[]>;
  readonly pictures = signal<readonly Picture[]>([]);
  readonly #name: string;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(sessionId: string) {
    this.#name = `draft:${sessionId}`;
    const kept = read<Stored>(this.#name, { text: "", mentions: [] });
    this.text = signal(typeof kept.text === "string" ? kept.text : "");
    this.mentions = signal(Array.isArray(kept.mentions) ? kept.mentions : []);
  }

  get empty(): boolean {
    return !this.text.value.trim() && !this.pictures.value.length;
  }

  type(text: string): void {
    this.text.value = text;
    this.#plan();
  }

  mention(path: string): void {
    if (!this.mentions.value.includes(path)) this.mentions.value = [...this.mentions.value, path];
    this.#plan();
  }

  /** Those that stand in the text now. */
  mentioned(): string[] {
    return this.mentions.value.filter((path) => this.text.value.includes(`@${path}`));
  }

  replace(text: string, mentions: readonly string[], pictures: readonly Picture[]): void {
    this.mentions.value = mentions;
    this.pictures.value = pictures;
    this.type(text);
  }

  clear(): void {
    this.replace("", [], []);
    this.flush();
  }

  /** Give back what could not be sent, before what was typed meanwhile. */
  restore(text: string, mentions: readonly string[], pictures: readonly Picture[]): void {
    const later = this.text.value;
    const both = later.trim() && text ? `${text}\n\n${later}` : text || later;
    this.replace(both, [...new Set([...mentions, ...this.mentions.value])], [...pictures, ...this.pictures.value]);
    this.flush();
  }

  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const text = this.text.value;
    write(this.#name, text ? { text, mentions: this.mentioned() } : null);
  }

  /** Keep what is not kept yet, and only that: what another tab has typed since then is not this one's to undo. */
  settle(): void {
    if (this.#timer !== null) this.flush();
  }

  #plan(): void {
    this.#timer ??= setTimeout(() => this.flush(), DEBOUNCE);
  }
}

const drafts = new Map<string, Draft>();

export function draftOf(sessionId: string): Draft {
  let draft = drafts.get(sessionId);
  if (!draft) drafts.set(sessionId, (draft = new Draft(sessionId)));
  return draft;
}

// the last moment at which a browser lets a page write
if (typeof window !== "undefined") {
  window.addEventListener("pagehide", () => {
    for (const draft of drafts.values()) draft.settle();
  });
}
