/**
 * Colours for code, whenever the page has nothing better to do.
 *
 * A slice of a text is read per idle moment, so that a page full of code stays quick to the touch; the grammars are
 * loaded with the first. What was read is kept for a while: the same file tends to come again.
 */
import type { Line } from "./spans";

/** Characters of a text beyond which it stays plain: nobody reads that far. */
export const COLOUR_LIMIT = 100_000;
/** Characters of all texts whose colours are kept. */
const KEPT = 1_000_000;

const PLAIN = new Set(["", "text", "txt", "plain", "plaintext", "output", "log", "none"]);

type Lines = readonly Line[] | null;
type Slices = typeof import("./grammars").slices;

interface Job {
  readonly text: string;
  readonly language: string;
  readonly signal: AbortSignal | undefined;
  done(lines: Lines): void;
}

const jobs: Job[] = [];
const kept = new Map<string, Lines>();
let keptLength = 0;
let awake = false;
let grammars: Promise<Slices> | undefined;

/** Whether asking is of any use. */
export const colourable = (text: string, language: string): boolean =>
  text.length > 0 && text.length <= COLOUR_LIMIT && !PLAIN.has(language.toLowerCase());

/** The colours of each line, later; null when there are none, or the signal was given before they were read. */
export function colours(text: string, language: string, signal?: AbortSignal): Promise<Lines> {
  if (!colourable(text, language)) return Promise.resolve(null);
  const known = kept.get(keyOf(text, language));
  if (known) return Promise.resolve(known);
  return new Promise((done) => {
    jobs.push({ text, language: language.toLowerCase(), signal, done });
    wake();
  });
}

const keyOf = (text: string, language: string): string => `${language.toLowerCase()}\n${text}`;

function wake(): void {
  if (awake) return;
  awake = true;
  idle(() => void work());
}

async function work(): Promise<void> {
  const job = jobs.shift();
  if (job) job.done(job.signal?.aborted ? null : await read(job));
  awake = false;
  if (jobs.length) wake();
}

async function read({ text, language, signal }: Job): Promise<Lines> {
  const key = keyOf(text, language);
  const known = kept.get(key);
  if (known) return known;
  try {
    grammars ??= import("./grammars").then((module) => module.slices);
    const reading = (await grammars)(text, language);
    for (let slice = reading.next(); !signal?.aborted; slice = reading.next()) {
      if (slice.done) return keep(key, slice.value);
      await new Promise<void>(idle);
    }
    return null;
  } catch {
    grammars = undefined; // not to be reached now; the next text tries again
    return null;
  }
}

function keep(key: string, lines: Lines): Lines {
  kept.set(key, lines);
  keptLength += key.length;
  for (const oldest of kept.keys()) {
    if (keptLength <= KEPT) break;
    kept.delete(oldest);
    keptLength -= oldest.length;
  }
  return lines;
}

function idle(callback: () => void): void {
  if (typeof requestIdleCallback === "function") requestIdleCallback(callback, { timeout: 2000 });
  else setTimeout(callback, 30); // Safari has no idle callbacks
}
