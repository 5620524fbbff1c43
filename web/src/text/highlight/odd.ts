/**
 * Make characters visible that are invisible, change the direction, or cover others.
 *
 * A text that is about to be approved must read as it runs: nothing in it may hide or reorder the rest. The set of
 * characters is the one of `pilothouse/model/previews.py`.
 */

/** Embeddings, overrides and isolates: all of them change the order in which the following text is shown. */
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

/**
 * Controls except tab and line feed, characters without width or ink, unusual blanks, lone surrogates, tags; marks that
 * strike through or enclose a character; private characters, which every font draws in its own way.
 */
const INVISIBLE =
  "\\0-\\x08\\x0b-\\x1f\\x7f-\\xa0\\xad\\u034f\\u061c\\u115f\\u1160\\u1680\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f" +
  "\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffc\\ud800-\\udfff" +
  "\\u{13430}-\\u{13438}\\u{16fe4}\\u{1bca0}-\\u{1bca3}\\u{1d159}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}\\p{Default_Ignorable_Code_Point}" +
  "\\u0334-\\u0338\\u0488\\u0489\\u1abe\\u20d2\\u20d3\\u20d8-\\u20da\\u20dd-\\u20e0\\u20e2-\\u20e6\\u20ea\\u20eb" +
  "\\ua670-\\ua672\\ue000-\\uf8ff\\u{f0000}-\\u{10ffff}";
/** A combining mark without a letter, or the fourth of one letter: it covers other text. */
const STRAY_MARK = `(?<!\\p{L}\\p{M}{0,2})(?![${INVISIBLE}])\\p{M}`;
const EMOJI = "\\p{Extended_Pictographic}\\p{Emoji_Modifier}";
/** The colour selector directly behind an emoji, and the joiner between two emoji, are part of the picture. */
const PART_OF_EMOJI = `(?<=[${EMOJI}])\\ufe0f|(?<=[${EMOJI}\\ufe0f])\\u200d(?=[${EMOJI}])`;
// the class alone is fast, and few texts have any of these
const SUSPECT = new RegExp(`[${INVISIBLE}\\p{M}]`, "u");
const ODD = new RegExp(`(?=[${INVISIBLE}])(?!${PART_OF_EMOJI})[^]|${STRAY_MARK}`, "u");
const ALL_ODD = new RegExp(ODD, "gu");
/** Blanks that have a width but are not the space: they look like one. */
const BLANK = /[\xa0\u2000-\u2008\u202f\u205f\u3000]/;

export interface Odd {
  /** The name to show in its place: `NUL`, `U+202E`. */
  readonly shown: string;
  /** The character itself, if it is a blank: code can keep its columns and mark the blank. */
  readonly blank?: string;
}

export const isOdd = (text: string): boolean => SUSPECT.test(text) && ODD.test(text);

export const isTurning = (text: string): boolean => TURNING.test(text);

/** Split a text into plain pieces and odd characters. Most texts come back unchanged. */
export function pieces(text: string): readonly (string | Odd)[] {
  if (!isOdd(text)) return [text];
  const found: (string | Odd)[] = [];
  let from = 0;
  for (const { 0: char, index } of text.matchAll(ALL_ODD)) {
    if (index > from) found.push(text.slice(from, index));
    found.push(BLANK.test(char) ? { shown: nameOf(char), blank: char } : { shown: nameOf(char) });
    from = index + char.length;
  }
  if (from < text.length) found.push(text.slice(from));
  return found;
}

/** The same as one string, for titles and labels. */
export const visible = (text: string): string =>
  pieces(text)
    .map((piece) => (typeof piece === "string" ? piece : piece.shown))
    .join("");

/** Names rather than control pictures, for which many fonts have no glyph. */
const NAMES =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US";
const CONTROLS = NAMES.split(" ");

function nameOf(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  const control = CONTROLS[code];
  if (control) return control;
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}
