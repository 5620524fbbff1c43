/** What an approval asks for and how it was decided, in one sentence each. Names come from agents; they are only text. */
import type { Json } from "../../model/wire.gen";
import type { ApprovalRow } from "../../app/rows";
import { nameOf } from "../../app/rows";

/** A directory as people call it. */
const homely = (path: string): string => path.replace(/^(?:\/home\/[^/]+|\/Users\/[^/]+|\/root)(?=\/|$)/, "~");

/** A path as seen from the session's directory. */
export function below(path: string, cwd: string | undefined): string {
  const root = cwd?.replace(/\/+$/, "");
  return root && path.startsWith(`${root}/`) ? path.slice(root.length + 1) : homely(path);
}

/** `Run a command in ~/project`, `Edit src/a.py`, or the agent's own words. */
export function asked(row: ApprovalRow, cwd?: string): string {
  const { preview, description, toolName } = row.request;
  if (preview?.type === "command") {
    return preview.workingDir ? `Run a command in ${homely(preview.workingDir)}` : "Run a command";
  }
  if (preview?.type === "diff") return change(preview.path, preview.diff, cwd);
  return description || toolName || "Go on";
}

function change(path: string, diff: string, cwd: string | undefined): string {
  const files = diff.match(/^\+\+\+ /gm)?.length ?? 0;
  if (files > 1) return `Change ${files} files`;
  const verb = /^--- \/dev\/null$/m.test(diff) ? "Create" : /^\+\+\+ \/dev\/null$/m.test(diff) ? "Delete" : "Edit";
  return `${verb} ${path ? below(path, cwd) : "a file"}`;
}

/** What the agent says of it besides; empty where that is no more than what is shown anyway. */
export function remark(row: ApprovalRow): string {
  const { preview, description, toolName } = row.request;
  if (preview?.type !== "command" || !description || description === toolName) return "";
  const command = preview.command.replace(/\s+/g, " ").trim();
  const bare = description
    .replace(/^(?:Run: )?`?/, "")
    .replace(/\s*…?`?$/, "")
    .replace(/\s+/g, " ");
  return command.startsWith(bare) || bare.startsWith(command) ? "" : description;
}

export interface Verdict {
  allowed: boolean;
  text: string;
  reason: string;
}

const text = (value: Json | undefined): string => (typeof value === "string" ? value : "");

/** `Allowed by phone`, `Denied by rule always:rule_1`, `Denied: nobody decided in time`. */
export function verdict(row: ApprovalRow, own = false): Verdict {
  const { approved, resolvedBy, reason } = row.decision ?? {};
  const allowed = approved === true;
  const word = allowed ? "Allowed" : "Denied";
  const by = row.decidedBy ?? "";
  const who: Record<string, string> = {
    user: by && own ? `${word} by you (${by})` : `${word}${by && by !== "user" ? ` by ${by}` : ""}`,
    policy: `${word} by rule${by && by !== "policy" ? ` ${by}` : ""}`,
    timeout: `${word}: nobody decided in time`,
    cancelled: "Withdrawn: the agent does not wait for it any more",
  };
  return { allowed, text: who[text(resolvedBy)] ?? word, reason: text(resolvedBy) === "user" ? text(reason) : "" };
}

/** What a session is called beside its approvals. */
export const sessionName = (row: { title: string | null; cwd: string } | undefined): string =>
  row ? nameOf(row) : "Another session";
