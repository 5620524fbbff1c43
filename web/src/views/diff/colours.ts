/** The colours of a diff: each side is read as the text it is a part of, and every line takes its own. */
import { useEffect, useState } from "preact/hooks";
import type { DiffRow, LineRow } from "../../diff/rows";
import { COLOUR_LIMIT, colours } from "../../text/highlight/queue";
import type { Line } from "../../text/highlight/spans";

export type LineColours = ReadonlyMap<LineRow, Line>;

const NONE: LineColours = new Map();

/** The lines of one side in runs without a hole: what is behind a hole may begin anywhere, such as in a comment. */
function segments(rows: readonly DiffRow[], side: "before" | "after"): LineRow[][] {
  const other = side === "before" ? "added" : "removed";
  const found: LineRow[][] = [[]];
  for (const row of rows) {
    if (row.kind === "gap" && !row.lines.length) found.push([]);
    else if (row.kind === "gap") found.at(-1)?.push(...row.lines);
    else if (row.kind !== other) found.at(-1)?.push(row);
  }
  // a line that stayed is coloured as it is now, so runs of the old side matter only for what was taken out
  return found.filter((run) => run.some((row) => side === "after" || row.kind === "removed"));
}

export function useLineColours(rows: readonly DiffRow[], language: string, wanted: boolean): LineColours {
  const [found, setFound] = useState<LineColours>(NONE);
  useEffect(() => {
    if (!wanted || !language) return undefined;
    const stop = new AbortController();
    void read(rows, language, stop.signal).then((lines) => {
      if (lines.size && !stop.signal.aborted) setFound(lines);
    });
    return () => stop.abort();
  }, [rows, language, wanted]);
  return found;
}

async function read(rows: readonly DiffRow[], language: string, signal: AbortSignal): Promise<LineColours> {
  const lines = new Map<LineRow, Line>();
  for (const side of ["before", "after"] as const) {
    const runs = segments(rows, side).map((run) => ({ run, text: run.map((row) => row.text).join("\n") }));
    if (runs.reduce((sum, { text }) => sum + text.length, 0) > COLOUR_LIMIT) continue;
    for (const { run, text } of runs) {
      const spans = await colours(text, language, signal);
      if (signal.aborted) return NONE;
      for (const [index, row] of run.entries()) {
        const line = spans?.[index];
        if (line && (side === "after" || row.kind === "removed")) lines.set(row, line);
      }
    }
  }
  return lines;
}
