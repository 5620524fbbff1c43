/**
 * What a program printed, as a terminal without a size would show it: colours, progress bars that write over
 * themselves, lines that are taken back.
 *
 * Text arrives in pieces that may end inside of an escape sequence. Sequences that do anything else (titles, links,
 * the clipboard, questions to the terminal) are left out. The output is text and style values, so nothing in it can
 * become markup. Memory has limits: old lines are dropped and counted, and endless lines are broken.
 */
import { type Line, Row } from "./row";
import { PLAIN, restyle, type Style } from "./style";

export interface Limits {
  lines: number;
  columns: number;
}

const LIMITS: Limits = { lines: 5000, columns: 4000 };
/** Rows from the end that can still be written to; what scrolled out of a terminal cannot either. */
const REACH = 60;
/** Characters after which a sequence that never ends is taken for text again. */
const SEQUENCE_LIMIT = 4096;
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g;
const CSI = /^[\u0020-\u003f]*[\u0040-\u007e]/;
const MOVES = "ABCDEFGHfJKm";

export class AnsiScreen {
  readonly #limits: Limits;
  #rows: Row[] = [new Row(0)];
  #made = 1;
  #row = 0;
  #column = 0;
  /** Where the screen begins that was cleared last: what was printed before stays. */
  #cleared = 0;
  #style: Style = PLAIN;
  /** The beginning of a sequence whose end has not come. */
  #held = "";
  /** Lines that are not kept any more. */
  dropped = 0;

  constructor(limits: Partial<Limits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  write(piece: string): void {
    const text = this.#held + piece;
    this.#held = "";
    let at = 0;
    while (at < text.length) {
      CONTROL.lastIndex = at;
      const place = CONTROL.exec(text)?.index ?? text.length;
      if (place > at) this.#print(text.slice(at, place));
      if (place === text.length) return;
      const next = text[place] === "\u001b" ? this.#escape(text, place) : this.#control(text, place);
      if (next === null) {
        this.#held = text.slice(place);
        return;
      }
      at = next;
    }
  }

  /** All lines that are kept. An empty last one, where nothing was printed yet, is none. */
  lines(): readonly Line[] {
    const lines = this.#rows.map((row) => row.line);
    if (lines.at(-1)?.spans.length === 0) lines.pop();
    return lines;
  }

  // -- text -----------------------------------------------------------------------------------------------------------

  #print(text: string): void {
    const { columns } = this.#limits;
    let rest = text;
    while (this.#column + rest.length > columns) {
      const fits = Math.max(0, columns - this.#column);
      this.#put(rest.slice(0, fits));
      this.#newLine();
      rest = rest.slice(fits);
    }
    this.#put(rest);
  }

  #put(text: string): void {
    if (!text) return;
    this.#rows[this.#row]!.put(this.#column, text, this.#style);
    this.#column += text.length;
  }

  #newLine(): void {
    this.#row += 1;
    this.#column = 0;
    if (this.#row < this.#rows.length) return;
    this.#rows.push(new Row(this.#made++));
    // a quarter at a time: a shift for each line would cost all lines
    const excess = this.#rows.length - this.#limits.lines;
    if (excess > this.#limits.lines / 4) this.#drop(excess);
  }

  #drop(count: number): void {
    this.#rows.splice(0, count);
    this.#row -= count;
    this.#cleared = Math.max(0, this.#cleared - count);
    this.dropped += count;
  }

  // -- controls -------------------------------------------------------------------------------------------------------

  #control(text: string, place: number): number {
    const char = text[place];
    if (char === "\n") this.#newLine();
    else if (char === "\r") this.#column = 0;
    else if (char === "\b") this.#column = Math.max(0, this.#column - 1);
    return place + 1;
  }

  /** Where the text goes on behind the sequence; null when its end has not come. */
  #escape(text: string, place: number): number | null {
    const kind = text[place + 1];
    const open = text.length - place <= SEQUENCE_LIMIT;
    if (kind === undefined) return null;
    if (kind === "[") return this.#csi(text, place + 2, open);
    if ("]PX^_".includes(kind)) return skipString(text, place + 2, open);
    if (kind >= " " && kind <= "/") return text.length > place + 2 ? place + 3 : null; // a character set
    return place + (kind === "\u001b" ? 1 : 2);
  }

  #csi(text: string, start: number, open: boolean): number | null {
    const found = CSI.exec(text.slice(start, start + SEQUENCE_LIMIT));
    if (!found) return open && /^[\u0020-\u003f]*$/.test(text.slice(start)) ? null : start;
    const parameters = found[0].slice(0, -1);
    const action = found[0].at(-1)!;
    if (MOVES.includes(action) && /^[\d;:]*$/.test(parameters)) this.#act(action, parameters);
    return start + found[0].length;
  }

  #act(action: string, parameters: string): void {
    if (action === "m") this.#style = restyle(this.#style, parameters);
    else if (action === "K") this.#eraseLine(Number(parameters) || 0);
    else if (action === "J") this.#eraseBelow(Number(parameters) || 0);
    else this.#move(action, parameters);
  }

  #move(action: string, parameters: string): void {
    const [first, second] = parameters.split(";").map(Number);
    const count = first || 1;
    if (action === "C") this.#column = Math.min(this.#column + count, this.#limits.columns - 1);
    else if (action === "D") this.#column = Math.max(0, this.#column - count);
    else if (action === "G") this.#column = Math.min(count, this.#limits.columns) - 1;
    else if (action === "H" || action === "f") {
      this.#goTo(this.#top + count - 1);
      this.#column = Math.min(second || 1, this.#limits.columns) - 1;
    } else {
      this.#goTo(this.#row + (action === "A" || action === "F" ? -count : count));
      if (action === "E" || action === "F") this.#column = 0;
    }
  }

  get #top(): number {
    return Math.max(this.#cleared, this.#rows.length - REACH);
  }

  /** Within what there is: nobody makes lines by moving. */
  #goTo(row: number): void {
    this.#row = Math.max(this.#top, Math.min(row, this.#rows.length - 1));
  }

  #eraseLine(what: number): void {
    const row = this.#rows[this.#row]!;
    row.erase(what === 0 ? this.#column : 0, what === 1 ? this.#column + 1 : row.length);
  }

  #eraseBelow(what: number): void {
    if (what === 1) return;
    if (what >= 2) return this.#clear();
    this.#eraseLine(0);
    this.#rows.length = this.#row + 1;
  }

  /** A program that draws its screen again and again replaces it; what was printed before, or is longer, is kept. */
  #clear(): void {
    const isRedrawn = this.#cleared > 0 && this.#rows.length - this.#cleared <= REACH;
    if (!isRedrawn && this.#rows.at(-1)!.length) this.#rows.push(new Row(this.#made++));
    if (!isRedrawn) this.#cleared = this.#rows.length - 1;
    this.#rows.length = this.#cleared + 1;
    this.#row = this.#cleared;
    this.#column = 0;
    this.#eraseLine(2);
  }
}

/** Titles, links, device controls: up to BEL or `ESC \`. */
function skipString(text: string, start: number, open: boolean): number | null {
  const end = /\u0007|\u001b\\/.exec(text.slice(start, start + SEQUENCE_LIMIT));
  if (end) return start + end.index + end[0].length;
  return open ? null : start;
}

/** A whole output at once, without colours. */
export function plainText(output: string): string {
  const screen = new AnsiScreen({ lines: Infinity });
  screen.write(output);
  return screen
    .lines()
    .map((line) => line.spans.map((span) => span.text).join(""))
    .join("\n");
}
