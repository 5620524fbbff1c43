/** How a piece of terminal output looks: the part of SGR that programs use, as values and never as markup. */

/** A place in the palette of 256 (0 to 15 are the theme's own), or `#rrggbb`. */
export type Colour = number | `#${string}`;

export interface Style {
  readonly foreground?: Colour | undefined;
  readonly background?: Colour | undefined;
  readonly bold?: boolean | undefined;
  readonly dim?: boolean | undefined;
  readonly italic?: boolean | undefined;
  readonly underline?: boolean | undefined;
  readonly inverse?: boolean | undefined;
  readonly hidden?: boolean | undefined;
  readonly strike?: boolean | undefined;
}

export const PLAIN: Style = Object.freeze({});

const CHANGES: Readonly<Record<number, Style>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  8: { hidden: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: undefined, dim: undefined },
  23: { italic: undefined },
  24: { underline: undefined },
  27: { inverse: undefined },
  28: { hidden: undefined },
  29: { strike: undefined },
  39: { foreground: undefined },
  49: { background: undefined },
};

/** The style after `ESC [ parameters m`. What is not known changes nothing. */
export function restyle(style: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map(Number);
  let now = style;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at]!;
    if (code === 0) now = PLAIN;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes, at + 1, parameters.includes(":"));
      if (colour !== null) now = { ...now, [code === 38 ? "foreground" : "background"]: colour };
      at += used;
    } else now = { ...now, ...CHANGES[code], ...basic(code) };
  }
  return now;
}

function basic(code: number): Style {
  if (code >= 30 && code <= 37) return { foreground: code - 30 };
  if (code >= 90 && code <= 97) return { foreground: code - 82 };
  if (code >= 40 && code <= 47) return { background: code - 40 };
  if (code >= 100 && code <= 107) return { background: code - 92 };
  return {};
}

/** `5;n` or `2;r;g;b`; with colons a colour space may stand between. Also how many numbers that took. */
function extended(codes: number[], at: number, colons: boolean): [Colour | null, number] {
  if (codes[at] === 5) return [isByte(codes[at + 1]) ? codes[at + 1]! : null, 2];
  if (codes[at] !== 2) return [null, 0];
  const skip = colons && codes.length - at > 4 ? 1 : 0;
  const parts = codes.slice(at + 1 + skip, at + 4 + skip);
  const colour: Colour = `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  return [parts.length === 3 && parts.every(isByte) ? colour : null, 4 + skip];
}

const isByte = (value: number | undefined): boolean => Number.isInteger(value) && value! >= 0 && value! <= 255;
