/** How well a few letters fit a text: all of them in order, better at the beginnings of words and in a row. Pure. */

export interface Match {
  score: number;
  /** The places in the text that were hit. */
  at: number[];
}

const START = 8;
const RUN = 5;
const WHOLE = 12;
const GAP = 0.1;
/** Letters that may be left out within a word; more of them is chance. */
const FAR = 3;

/** Null where a letter is missing. Every word of what is wanted must fit; an empty wish fits everything. */
export function match(wanted: string, text: string): Match | null {
  const all: Match = { score: 0, at: [] };
  for (const word of wanted.toLowerCase().split(/\s+/).filter(Boolean)) {
    const one = best(word, text, text.toLowerCase());
    if (!one) return null;
    all.score += one.score;
    all.at.push(...one.at);
  }
  all.at.sort((one, other) => one - other);
  // of two that fit alike, the shorter one is closer to what was typed
  all.score -= text.length / 200;
  return all;
}

/** The whole word somewhere is what people mean; else its letters, from the best of its first ones on. */
function best(word: string, text: string, lower: string): Match | null {
  let found: Match | null = null;
  for (let from = lower.indexOf(word); from >= 0; from = lower.indexOf(word, from + 1)) {
    const at = Array.from(word, (_, step) => from + step);
    found = better(found, { at, score: scored(at, text) + (startsWord(text, from) ? WHOLE : 0) });
  }
  if (found) return found;
  for (let from = lower.indexOf(word[0] ?? ""); from >= 0; from = lower.indexOf(word[0] ?? "", from + 1)) {
    const at = spread(word, lower, from);
    if (!at) break;
    if (isFar(at, text)) continue;
    found = better(found, { at, score: scored(at, text) });
  }
  return found;
}

const better = (one: Match | null, other: Match): Match => (one && one.score >= other.score ? one : other);

function spread(word: string, lower: string, from: number): number[] | null {
  const at: number[] = [];
  for (const letter of word) {
    const next = lower.indexOf(letter, from);
    if (next < 0) return null;
    at.push(next);
    from = next + letter.length;
  }
  return at;
}

const isFar = (at: readonly number[], text: string): boolean =>
  at.some((place, index) => place - (at[index - 1] ?? place) - 1 > FAR && !startsWord(text, place));

function scored(at: readonly number[], text: string): number {
  return at.reduce((sum, place, index) => {
    const before = at[index - 1];
    const run = before !== undefined && place === before + 1;
    const gap = before === undefined ? place : place - before - 1;
    return sum + 1 + (run ? RUN : 0) + (startsWord(text, place) ? START : 0) - gap * GAP;
  }, 0);
}

const startsWord = (text: string, place: number): boolean =>
  place === 0 || /[\s/_.:-]/.test(text[place - 1] ?? "") || /[a-z][A-Z]/.test(text.slice(place - 1, place + 1));

/** A text in pieces, those that were hit marked. */
export function pieces(text: string, at: readonly number[]): { text: string; hit: boolean }[] {
  const hits = new Set(at);
  const found: { text: string; hit: boolean }[] = [];
  for (let place = 0; place < text.length; place++) {
    const hit = hits.has(place);
    const last = found.at(-1);
    if (last?.hit === hit) last.text += text[place];
    else found.push({ text: text[place] ?? "", hit });
  }
  return found;
}
