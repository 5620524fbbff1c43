/**
 * Characters that do not show, or make others show in another order, as something one can see.
 *
 * A text that is about to be approved must read as it runs: nothing in it may hide or turn the rest around.
 */

/** Embeddings, overrides and isolates: all of them change the order in which what follows is shown. */
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
/** Controls but tab and line feed, what has no width (but joiners, which writing needs), line separators, tags. */
const ODD =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/u;
const ALL_ODD = new RegExp(ODD, "gu");

export interface Odd {
  /** What is shown in its place: `NUL`, `U+202E`. */
  readonly shown: string;
}

export const isOdd = (text: string): boolean => ODD.test(text);

export const isTurning = (text: string): boolean => TURNING.test(text);

/** The text with what is odd in it apart. Most texts come back as they are. */
export function pieces(text: string): readonly (string | Odd)[] {
  if (!ODD.test(text)) return [text];
  const found: (string | Odd)[] = [];
  let from = 0;
  for (const { 0: char, index } of text.matchAll(ALL_ODD)) {
    if (index > from) found.push(text.slice(from, index));
    found.push({ shown: picture(char) });
    from = index + char.length;
  }
  if (from < text.length) found.push(text.slice(from));
  return found;
}

/** The text in one string, for titles and labels. */
export const visible = (text: string): string =>
  pieces(text)
    .map((piece) => (typeof piece === "string" ? piece : piece.shown))
    .join("");

/** Names rather than control pictures, for which many fonts have no glyph. */
const NAMES =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US";
const CONTROLS = NAMES.split(" ");

function picture(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  const control = CONTROLS[code];
  if (control) return control;
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}
