/** Approvals as the hub lists them. */
import type { ApprovalRow } from "../../src/app/rows";
import type { Option } from "../../src/model/wire.gen";

export const OPTIONS: Option[] = [
  { optionId: "no", name: "No, not now", kind: "reject_once" },
  { optionId: "yes-always", name: "Yes, always", kind: "allow_always" },
  { optionId: "yes", name: "Yes, this once", kind: "allow_once" },
];

export function approvalRow(id: string, more: Partial<ApprovalRow> = {}): ApprovalRow {
  const created = more.created ?? "2026-03-01T10:00:00.000Z";
  return {
    id,
    sessionId: "ses_1",
    state: "pending",
    request: {
      type: "approval:requested",
      requestId: id,
      toolCallId: `call-${id}`,
      toolName: "Bash",
      toolInput: { command: "npm test" },
      description: "Run: npm test",
      riskLevel: "medium",
      riskReasons: ["runs a program"],
      preview: { type: "command", command: "npm test", workingDir: "/home/ada/project" },
      seq: 1,
      sessionId: "ses_1",
      timestamp: created,
    },
    options: OPTIONS,
    created,
    expires: null,
    resolved: null,
    decision: null,
    decidedBy: null,
    ...more,
  };
}
