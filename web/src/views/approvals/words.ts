/** How an approval was decided, and the agent's own words about it. */
import type { Json } from "../../model/wire.gen";
import type { ApprovalRow } from "../../app/rows";
import { nameOf } from "../../app/rows";

/** The agent's description of a command or a change; empty if it only repeats the command, the file or the tool's name. */
export function agentDescription(row: ApprovalRow): string {
  const { preview, description, toolName } = row.request;
  if (!preview || !description || description === toolName) return "";
  if (preview.type === "diff") return isChangeOf(preview.path, description) ? "" : description;
  if (preview.type !== "command") return "";
  const bare = description
    .replace(/^(?:Run: )?`?/, "")
    .replace(/`?$/, "")
    .replace(/\s+/g, " ")
    .trim();
  return isShortened(bare, preview.command.replace(/\s+/g, " ").trim()) ? "" : description;
}

/** Whether a text is the beginning of another one, or all of it with an ellipsis where something is left out. */
function isShortened(text: string, whole: string): boolean {
  const [head = "", ...rest] = text.split("…");
  return whole.startsWith(head.trim()) && whole.endsWith(rest.at(-1)?.trim() ?? "");
}

/** Words with which agents say that they change a file. */
const CHANGES =
  /^(?:edit|(?:over)?writ|creat|updat|modif|delet|remov|replac|insert|append|add|chang|patch|appl|sav)(?:e|s|es|y|ies|y?ing)?$/i;
const LONGEST_PATH = 4096;
const BETWEEN = /^(?:apply_patch|multiedit|str_replace|a|the|to|in|into|of|and|file|files|more|\d+)$/i;

/** Whether a description says no more than that this file is changed. */
function isChangeOf(path: string, description: string): boolean {
  if (path.length > LONGEST_PATH) return false;
  let rest = description;
  for (let name = path; name; name = name.includes("/") ? name.slice(name.indexOf("/") + 1) : "") {
    rest = rest.replaceAll(name, " ");
  }
  const words = rest.split(/[\s`'"():,]+/).filter(Boolean);
  return words.every((word) => CHANGES.test(word) || BETWEEN.test(word));
}

export interface Verdict {
  allowed: boolean;
  text: string;
  reason: string;
}

const text = (value: Json | undefined): string => (typeof value === "string" ? value : "");

/** `Allowed by phone`, `Denied by rule always:rule_1`, `Denied: no decision in time`. */
export function verdict(row: ApprovalRow, own = false): Verdict {
  const { approved, resolvedBy, reason } = row.decision ?? {};
  const allowed = approved === true;
  const word = allowed ? "Allowed" : "Denied";
  const by = row.decidedBy ?? "";
  const outcomes: Record<string, string> = {
    user: by && own ? `${word} by you (${by})` : `${word}${by && by !== "user" ? ` by ${by}` : ""}`,
    policy: `${word} by rule${by && by !== "policy" ? ` ${by}` : ""}`,
    timeout: `${word}: no decision in time`,
    cancelled: reason ? "Cancelled" : "Cancelled with the turn",
  };
  return {
    allowed,
    text: outcomes[text(resolvedBy)] ?? word,
    reason: ["user", "cancelled"].includes(text(resolvedBy)) ? text(reason) : "",
  };
}

/** The name of a session next to its approvals. */
export const sessionName = (row: { title: string | null; cwd: string } | undefined): string =>
  row ? nameOf(row) : "Another session";
