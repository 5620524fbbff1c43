/** What to do about an error, in one sentence. Pure. */
import { isObject, textOf } from "../../model/json";
import type { Failed, RateLimit } from "../../model/wire.gen";
import { lasting } from "../../ui/time";

type Say = (error: Failed, limit: RateLimit | null) => string;

const AGAIN = "Send the prompt again, or say it in other words.";

const STEPS: Readonly<Record<string, Say>> = {
  agent_died: () => "Send a prompt to start it again; it goes on with this conversation.",
  agent_failed: () =>
    "Run `pilothouse agents` on the computer to see whether the agent is installed, then send a prompt.",
  agent_error: () => AGAIN,
  auth_required: (error) => login(error),
  rate_limited: (_, limit) => retry(limit),
  not_found: () => "The agent does not know this conversation any more. Start a new session.",
  not_stored: () => "Look whether the disk is full, with `pilothouse doctor`; then send the prompt again.",
  interrupted: () => "The hub was restarted meanwhile. Send the prompt again.",
  unknown_agent: () => "The agent is not configured any more. `pilothouse agents` lists those that are.",
  unsupported: () => "This agent cannot do that.",
  timeout: () => AGAIN,
};

export function nextStep(error: Failed, limit: RateLimit | null): string {
  const say = Object.hasOwn(STEPS, error.code) ? STEPS[error.code] : undefined;
  if (say) return say(error, limit);
  return error.recoverable ? "" : "The session cannot go on. Start a new one.";
}

/** The agents' own programs log in; the hub holds no passwords of theirs. What it knows of how is in the message. */
function login({ details }: Failed): string {
  if (isObject(details) && textOf(details["login"])) return "Then send the prompt again.";
  const methods = isObject(details) && Array.isArray(details["authMethods"]) ? details["authMethods"] : [];
  const names = methods.filter(isObject).map((method) => textOf(method["name"]) || textOf(method["id"]));
  const how = names.filter(Boolean).join(" or ");
  return `Log in with the agent's own program in a terminal${how && ` (${how})`}, then send the prompt again.`;
}

function retry(limit: RateLimit | null): string {
  if (!limit?.retryAfter) return "The provider asks to wait. Send the prompt again in a few minutes.";
  const at = new Date(Date.parse(limit.timestamp) + limit.retryAfter * 1000);
  if (Number.isNaN(at.getTime())) return `Send the prompt again in ${lasting(limit.retryAfter * 1000)}.`;
  return `Send the prompt again after ${at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })}.`;
}
