/** Which sessions of the list are shown. Pure. */
import { nameOf, type SessionRow, wordOf } from "../../app/rows";

export interface Filter {
  show: "all" | "needs" | "working";
  agent: string;
  project: string;
  text: string;
}

export const NO_FILTER: Filter = { show: "all", agent: "", project: "", text: "" };

const SHOWN: Readonly<Record<Filter["show"], (row: SessionRow) => boolean>> = {
  all: () => true,
  needs: (row) => wordOf(row.status, row.pendingApprovals) === "waiting for you",
  working: (row) => wordOf(row.status, row.pendingApprovals) === "working",
};

export const isFiltered = (filter: Filter): boolean =>
  filter.show !== "all" || filter.agent !== "" || filter.project !== "";

export function filtered(rows: readonly SessionRow[], filter: Filter): SessionRow[] {
  const words = wordsOf(filter.text);
  return rows.filter(
    (row) =>
      SHOWN[filter.show](row) &&
      (!filter.agent || row.agent === filter.agent) &&
      (!filter.project || row.cwd === filter.project) &&
      hasAll(row, words),
  );
}

function hasAll(row: SessionRow, words: readonly string[]): boolean {
  if (!words.length) return true;
  const text = `${row.title ?? ""} ${row.cwd} ${row.agent} ${row.id}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

export const wordsOf = (text: string): string[] => text.toLowerCase().split(/\s+/).filter(Boolean);

export const countShown = (rows: readonly SessionRow[], show: Filter["show"]): number =>
  rows.filter(SHOWN[show]).length;

/** Values to choose from, the most frequent first. */
export function choicesOf(rows: readonly SessionRow[], key: "agent" | "cwd"): string[] {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(row[key], (counts.get(row[key]) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1]).map(([value]) => value);
}

/** The last part of a path, which is what people call a project. */
export const projectOf = (cwd: string): string => nameOf({ title: null, cwd });

/** A text in pieces, those that begin like one of the words marked. */
export function marked(text: string, words: readonly string[]): { text: string; hit: boolean }[] {
  const wanted = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!wanted.length) return [{ text, hit: false }];
  const pieces = text.split(new RegExp(`(${wanted.join("|")})`, "giu"));
  return pieces.map((piece, at) => ({ text: piece, hit: at % 2 === 1 })).filter((piece) => piece.text);
}

/** A piece of Markdown in one line, without the marks that are only for the eye of who writes it. */
export const unformatted = (text: string): string =>
  text
    .replace(/`{3,}[\w+#.-]*/g, " ")
    .replace(/(^|\s)(?:#{2,6}|(?<=^)#)\s+/g, "$1")
    .replace(/\*\*(?=\S)(.*?\S)\*\*/g, "$1")
    .replace(/!?\[([^\]]*)\]\([^)\s]*\)/g, "$1")
    .replace(/`/g, "")
    .replace(/\s+/g, " ")
    .trim();
