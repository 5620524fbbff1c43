/** Starting a session: what is asked of the hub, and at which field of the form a refusal belongs. */
import { signal } from "@preact/signals";
import { Refused } from "../../app/api";
import type { Hub } from "../../app/hub";
import { words } from "../../app/hub";
import { outboxOf } from "../../app/outbox";
import type { SessionRow } from "../../app/rows";
import { toast } from "../../app/toasts";
import { isObject } from "../../model/json";
import type { Json } from "../../model/wire.gen";

export interface Wish {
  agent: string;
  cwd: string;
  title: string;
  prompt: string;
  /** Undefined: the hub's default. */
  policy: Json | undefined;
}

/** Where the next session is to be, set before going to the form. */
export const startIn = signal<string | null>(null);

export type Field = "agent" | "cwd" | "title" | "policy" | "prompt";
export type Troubles = Partial<Record<Field | "form", string>>;

const FIELDS: readonly Field[] = ["agent", "cwd", "title", "policy", "prompt"];
/** Of refusals that name no field; the last two are about the path of home. */
const BY_CODE: Readonly<Record<string, Field>> = {
  unknown_agent: "agent",
  agent_failed: "agent",
  not_found: "cwd",
  unreadable: "cwd",
};

/** What is wrong before anybody is asked. */
export function check(wish: Wish): Troubles {
  const troubles: Troubles = {};
  if (!wish.agent) troubles.agent = "Choose an agent.";
  if (!wish.cwd) troubles.cwd = "Say in which directory it works.";
  else if (!/^(\/|~|[A-Za-z]:[\\/])/.test(wish.cwd)) troubles.cwd = "Give the whole path, from / or ~ on.";
  return troubles;
}

/** The session; its prompt is on its way. `requestId` again is the same session. Rejects with Refused. */
export async function start(hub: Hub, wish: Wish, requestId: string): Promise<SessionRow> {
  const cwd = await whole(hub, wish.cwd);
  const body: Record<string, Json> = { agent: wish.agent, cwd, client_request_id: requestId };
  if (wish.title) body["title"] = wish.title;
  if (wish.policy !== undefined) body["policy"] = wish.policy;
  const row = await hub.api.post<SessionRow>("sessions", body);
  if (wish.prompt) void prompt(hub, row, wish.prompt);
  return row;
}

// it outlives the page like any prompt; what the hub did not take stands in the session's composer, to be sent from there
async function prompt(hub: Hub, { id, seq }: SessionRow, message: string): Promise<void> {
  const outbox = outboxOf(hub, id);
  await outbox.send(message, message, [], [], Math.max(1, seq));
  if (outbox.failed.peek() !== null) toast(`The prompt was not taken: ${outbox.failed.peek()}`, "failed");
}

/** Sessions need the whole path; only the hub knows where home is. */
async function whole(hub: Hub, cwd: string): Promise<string> {
  if (!cwd.startsWith("~")) return cwd;
  return (await hub.api.get<{ path: string }>(`directories?path=${encodeURIComponent(`${cwd}/`)}&limit=1`)).path;
}

/** The refusal at the field that it names, else at the form. */
export function troublesOf(error: unknown): Troubles {
  if (!(error instanceof Refused)) return { form: words(error) };
  const { code, message, details } = error.failure;
  const named =
    isObject(details) && typeof details["field"] === "string" ? details["field"].split(/[.[]/)[0] : BY_CODE[code];
  const field = FIELDS.find((one) => one === (named === "path" ? "cwd" : named));
  return { [field ?? "form"]: message };
}
