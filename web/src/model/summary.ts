/** What a session did, counted from its state. */
import type { State } from "./state";
import type { SessionSummary } from "./wire.gen";

/** Errors are those of the session and the calls that failed; a call that was cancelled is not one. */
export function summary({ fields }: State): SessionSummary {
  let [toolCallsCount, messagesCount, errorCount] = [0, 0, 0];
  for (const item of fields.items) {
    if (item.type === "tool_call") {
      toolCallsCount += 1;
      if (item.status === "failed") errorCount += 1;
    } else if (item.type === "message") {
      if (item.role === "user" || item.role === "assistant") messagesCount += 1;
    } else if (item.type === "error") errorCount += item.count ?? 1;
  }
  return {
    filesChanged: [...fields.files.values()].map(({ path, changeType, linesAdded, linesRemoved }) => ({
      path,
      changeType,
      linesAdded,
      linesRemoved,
    })),
    tokenUsage: fields.usage ?? { inputTokens: 0, outputTokens: 0 },
    duration: millisecondsBetween(fields.startedAt, fields.updatedAt),
    toolCallsCount,
    messagesCount,
    errorCount,
    cost: fields.cost ?? undefined,
  };
}

/** From one timestamp to another; 0 when either cannot be read or they are the wrong way round. */
export function millisecondsBetween(first: string, last: string): number {
  return Math.max(0, moment(last) - moment(first)) || 0;
}

/** A time without a zone is UTC. */
function moment(text: string): number {
  return Date.parse(/T.*(?:Z|[+-]\d\d(?::?\d\d)?)$/i.test(text) || !text.includes("T") ? text : `${text}Z`);
}
