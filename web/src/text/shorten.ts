/**
 * Leave out the middle of a long text. Its end stays in sight, because that is where a command hides something.
 */

export interface Shortened {
  readonly head: string;
  /** Empty if nothing is left out. */
  readonly tail: string;
  /** Characters and line ends between the two. */
  readonly characters: number;
  readonly lines: number;
}

/** The length of the note about a gap: leaving out fewer characters saves no space. */
const SLACK = 20;

/** About `limit` characters, half of them from the end. */
export function shortenMiddle(text: string, limit: number): Shortened {
  if (text.length <= limit + SLACK) return { head: text, tail: "", characters: 0, lines: 0 };
  const tail = Math.floor(limit / 2);
  return leaveOut(text, limit - tail, text.length - tail);
}

/** At most the given lines and characters, a quarter of them from the end. */
export function shortenBlock(text: string, limits: { lines: number; characters: number }): Shortened {
  const lines = text.split("\n");
  const isLong = lines.length > limits.lines || text.length > limits.characters;
  if (!isLong) return { head: text, tail: "", characters: 0, lines: 0 };
  const [tailLines, tailCharacters] = [Math.floor(limits.lines / 4), Math.floor(limits.characters / 4)];
  const head = lines.slice(0, limits.lines - tailLines).join("\n").length;
  const tail = lines.slice(-tailLines).join("\n").length;
  const end = Math.min(head, limits.characters - tailCharacters);
  return leaveOut(text, end, Math.max(text.length - Math.min(tail, tailCharacters), end));
}

function leaveOut(text: string, from: number, to: number): Shortened {
  const [start, end] = [isHalf(text, from) ? from - 1 : from, isHalf(text, to) ? to + 1 : to];
  const left = text.slice(start, end);
  return {
    head: text.slice(0, start),
    tail: text.slice(end),
    characters: left.length,
    lines: left.split("\n").length - 1,
  };
}

/** Whether a cut there would split a character of two code units. */
const isHalf = (text: string, at: number): boolean =>
  /[\ud800-\udbff]/.test(text.charAt(at - 1)) && /[\udc00-\udfff]/.test(text.charAt(at));

/** `… 1,234 characters …`, with the lines if there are any. */
export function gapText({ characters, lines }: Pick<Shortened, "characters" | "lines">): string {
  const several = lines > 1 ? ` (${lines.toLocaleString()} lines)` : "";
  return `… ${characters.toLocaleString()} ${characters === 1 ? "character" : "characters"}${several} …`;
}

/** A shortened text in one string, for labels and notifications. */
export function shortenText(text: string, limit: number): string {
  const { head, tail, ...gap } = shortenMiddle(text, limit);
  return gap.characters ? `${head} ${gapText(gap)} ${tail}` : text;
}

/** Several lines in one, with a mark for each line end: no line of a command is left out. */
export const joinLines = (text: string): string =>
  text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "").replace(/[ \t]*\r?\n[ \t]*/g, " ↵ ");
