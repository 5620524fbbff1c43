/** What a session with an open turn is doing right now, in a few words. Pure. */
import type { State } from "../../model/state";
import { visible } from "../../text/highlight/odd";
import { shortenText } from "../../text/shorten";
import { headOf } from "../cards/kinds";

export interface Activity {
  text: string;
  /** It goes on only when somebody decides. */
  waits: boolean;
}

export function activity({ fields, lookup }: State): Activity {
  for (const ask of lookup.pending) {
    return { text: ask.type === "approval" ? "Waiting for your decision" : "Waiting for your answer", waits: true };
  }
  const open = [...lookup.open].at(-1);
  if (open?.type === "tool_call") {
    const { verb, about } = headOf(open, fields.workingDirectory);
    const what = visible(shortenText(`${verb} ${about}`.trim(), 120));
    return { text: open.status === "executing" ? `${what}…` : `About to: ${what}`, waits: false };
  }
  if (fields.progress?.label) return { text: `${fields.progress.label}…`, waits: false };
  if (open?.type === "message") return { text: "Writing…", waits: false };
  return { text: fields.status === "starting" ? "Starting…" : "Thinking…", waits: false };
}
