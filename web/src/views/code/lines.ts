/** A text as chunks of lines. A text that grew is read from its last line on. */

/** Lines that are drawn together. */
export const CHUNK = 100;

export interface Chunks {
  readonly text: string;
  readonly chunks: readonly (readonly string[])[];
  readonly count: number;
}

const NOTHING: Chunks = { text: "", chunks: [], count: 0 };

/** A last line end begins no line. Chunks that did not change are the same objects as before. */
export function chunked(text: string, before: Chunks = NOTHING): Chunks {
  if (text === before.text) return before;
  // comparing whole strings is much faster than `startsWith`, which goes letter by letter
  const grew = before.count > 0 && text.slice(0, before.text.length) === before.text;
  const kept = grew ? before.chunks.slice(0, -1) : [];
  const last = (grew && before.chunks.at(-1)) || [];
  const from = grew ? before.text.length - length(last, before.text) : 0;
  const lines = text.slice(from).split("\n");
  if (lines.at(-1) === "") lines.pop();
  const chunks = [...kept];
  for (let at = 0; at < lines.length; at += CHUNK) chunks.push(lines.slice(at, at + CHUNK));
  return { text, chunks, count: kept.length * CHUNK + lines.length };
}

/** Characters that these lines take at the end of the text. */
function length(lines: readonly string[], text: string): number {
  const ends = lines.length - (text.endsWith("\n") ? 0 : 1);
  return lines.reduce((sum, line) => sum + line.length, ends);
}
