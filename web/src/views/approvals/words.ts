/** How an approval was decided, and the agent's own words about it. */
import type { Json } from "../../model/wire.gen";
import type { ApprovalRow } from "../../app/rows";
import { nameOf } from "../../app/rows";

/** The agent's description of a command; empty if it only repeats the command or the tool's name. */
export function agentDescription(row: ApprovalRow): string {
  const { preview, description, toolName } = row.request;
  if (preview?.type !== "command" || !description || description === toolName) return "";
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
