/** Rows of the hub's lists, and the words and the order in which people are shown them. */
import type { ApprovalRequestedEvent, Json, Option } from "../model/wire.gen";

export interface SessionRow {
  id: string;
  agent: string;
  cwd: string;
  title: string | null;
  status: string;
  created: string;
  updated: string;
  archived: string | null;
  seq: number;
  pendingApprovals: number;
  queueLength: number | null;
  /** Another program runs it: it is shown as it goes on there, and takes no prompts. */
  watched?: boolean;
}

export interface ApprovalRow {
  id: string;
  sessionId: string;
  state: "pending" | "resolved";
  /** The event that asked, with preview and risk. */
  request: ApprovalRequestedEvent;
  options: Option[];
  created: string;
  expires: string | null;
  resolved: string | null;
  decision: Record<string, Json> | null;
  decidedBy: string | null;
}

/** What people are told of a status. */
export type Word = "working" | "waiting for you" | "idle" | "done" | "failed" | "paused" | "offline";

const WORDS: Readonly<Record<string, Word>> = {
  starting: "working",
  thinking: "working",
  running: "working",
  waiting_for_approval: "waiting for you",
  waiting_for_input: "waiting for you",
  paused: "paused",
  completed: "done",
  error: "failed",
};

export const wordOf = (status: string, asks = 0): Word => (asks > 0 ? "waiting for you" : (WORDS[status] ?? "idle"));

/**
 * Whether a session waits for the answer to a question, as far as its row says. One that still waits although it has no
 * pending approval left waits for an answer; one with both may have a question as well, which only the session knows.
 */
export const asksQuestion = ({ status, pendingApprovals }: Pick<SessionRow, "status" | "pendingApprovals">): boolean =>
  status === "waiting_for_input" || (status === "waiting_for_approval" && pendingApprovals === 0);

const RANKS: Readonly<Record<Word, number>> = {
  "waiting for you": 0,
  working: 1,
  paused: 2,
  failed: 2,
  idle: 2,
  done: 2,
  offline: 2,
};

/** Who needs somebody comes first, then who works, then the one that was active last. */
export function byUrgency(one: SessionRow, other: SessionRow): number {
  const rank = RANKS[wordOf(one.status, one.pendingApprovals)] - RANKS[wordOf(other.status, other.pendingApprovals)];
  return rank || (one.updated < other.updated ? 1 : one.updated > other.updated ? -1 : 0);
}

/** Whether the list has it: one that was put aside is there all the same while it waits for somebody. */
export const isListed = (row: SessionRow): boolean =>
  row.archived === null || wordOf(row.status, row.pendingApprovals) === "waiting for you";

/** A path as one knows it by: its last part, and the one before that. */
export function placeOf(where: string): { parent: string; name: string } {
  const before = where.replace(/[^/]+\/*$/, "");
  const parent = before === where ? "" : before.replace(/^.*\/([^/]+\/)$/, "…/$1");
  return { parent, name: nameOf({ title: null, cwd: where }) };
}

/** Words without the marks of code, where they are shown as nothing else. */
export const unmarked = (text: string): string => text.replace(/(?<!`)(`+)(?!`)(.*?[^`])\1(?!`)/g, "$2");

/** What a session is called where it has no title of its own. */
export const nameOf = (row: Pick<SessionRow, "title" | "cwd">): string =>
  row.title || row.cwd.replace(/\/+$/, "").split("/").at(-1) || "/";
