/**
 * Custom events: ACP updates without a type of their own, and the hub's own facts about turns.
 *
 * `data` comes from agents and may be any JSON: whatever has not the expected shape is kept as it came, among the
 * items. A handler says whether it took the event.
 */
import { answerQuestion, withdraw } from "./asks";
import { closeCall, closeSubAgents } from "./calls";
import { type EventOf, type Handlers, head } from "./handlers";
import { filled, isObject, textOf } from "./json";
import { finish } from "./messages";
import { planKey, type State } from "./state";
import type { CallStatus, Compaction, Json, Plan, Todo, TokenUsage } from "./wire.gen";

type CustomEvent = EventOf<"custom">;

/** The turn is over, or its agent is gone: what is open ends now. Each item is closed once, so this is paid for. */
export function closeAll(state: State, status: CallStatus, timestamp: string): void {
  for (const item of [...state.lookup.open]) {
    if (item.type === "tool_call") closeCall(state, item, status, timestamp);
    else finish(state, item, timestamp);
  }
  for (const ask of [...state.lookup.pending]) withdraw(state, ask, timestamp);
  closeSubAgents(state, status, timestamp);
  state.fields.progress = null;
  const turn = state.fields.turn;
  if (turn?.open) {
    turn.open = false;
    turn.endedAt = timestamp;
    state.fields.turnsEnded.push({ ...turn });
  }
}

/** The plan of this turn. */
export function planOf(state: State, event: { seq: number; timestamp: string }, planId = ""): Plan {
  const known = state.lookup.plans.get(planKey(state.turnId, planId));
  if (!known) return state.add({ type: "plan", ...head(state, event), planId, todos: [] });
  state.touch(known);
  return known;
}

// -- turns ------------------------------------------------------------------------------------------------------------

function turnStarted(state: State, event: CustomEvent): true {
  const turnId = textOf(event.data["turnId"]);
  const turn = state.fields.turn;
  if (turn?.open) {
    if (turnId && turnId === turn.turnId) return true;
    closeAll(state, "failed", event.timestamp); // its end never came
  }
  state.fields.turns += 1;
  state.fields.turn = {
    turnId: turnId || `turn-${state.fields.turns}`,
    open: true,
    startedAt: event.timestamp,
    elsewhere: event.data["elsewhere"] === true || undefined,
  };
  return true;
}

function turnEnded(state: State, event: CustomEvent): true {
  const turnId = textOf(event.data["turnId"]);
  const reason = textOf(event.data["stopReason"]);
  const turn = state.fields.turn;
  // the late end of an earlier turn says nothing about this one
  if (turn && turnId && turnId !== turn.turnId) return true;
  if (turn) {
    turn.stopReason = reason || turn.stopReason;
    turn.usage = usageIn(event.data["usage"]) ?? turn.usage;
  }
  closeAll(state, reason === "cancelled" ? "cancelled" : "failed", event.timestamp);
  return true;
}

const USAGE_NAMES: Readonly<Record<string, string>> = {
  cachedReadTokens: "cacheReadTokens",
  cachedWriteTokens: "cacheWriteTokens",
};
const USAGE_FIELDS = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "thoughtTokens"] as const;

/** ACP's usage of a turn, or the stream's own; their names are the same where they mean the same. */
function usageIn(value: Json | undefined): TokenUsage | undefined {
  if (!isObject(value)) return undefined;
  const told = new Map(Object.entries(value).map(([key, count]) => [USAGE_NAMES[key] ?? key, count]));
  const usage: Partial<TokenUsage> = {};
  for (const field of USAGE_FIELDS) {
    const count = told.get(field);
    if (Number.isInteger(count)) usage[field] = count as number;
    else if (count !== undefined && count !== null) return undefined;
  }
  const { inputTokens, outputTokens } = usage;
  return inputTokens === undefined || outputTokens === undefined ? undefined : { ...usage, inputTokens, outputTokens };
}

function artifact(state: State, event: CustomEvent): true {
  state.add({ type: "artifact", ...head(state, event), artifact: event.data["artifact"] ?? null });
  return true;
}

// -- ACP --------------------------------------------------------------------------------------------------------------

function commands(state: State, event: CustomEvent): boolean {
  const offered = event.data["availableCommands"];
  if (!Array.isArray(offered)) return false;
  state.fields.availableCommands = offered;
  return true;
}

function config(state: State, event: CustomEvent): boolean {
  const options = event.data["configOptions"];
  if (!Array.isArray(options)) return false;
  state.fields.configOptions = options;
  for (const option of options.filter(isObject)) {
    const kind = filled(option["category"]) ? option["category"] : option["id"];
    const value = textOf(option["currentValue"]);
    if (value && kind === "model") state.fields.model = value;
    else if (value && kind === "mode") state.fields.mode = value;
  }
  return true;
}

/** What the agent offered when the session began: modes, models, config options. */
function setup(state: State, event: CustomEvent): true {
  const { modes, models } = event.data;
  if (isObject(modes)) {
    const offered = modes["availableModes"];
    if (Array.isArray(offered)) state.fields.modes = offered;
    state.fields.mode = textOf(modes["currentModeId"]) || (isEmpty(offered) ? null : state.fields.mode);
  }
  if (isObject(models)) {
    const offered = models["availableModels"];
    if (Array.isArray(offered)) state.fields.models = offered;
    state.fields.model = textOf(models["currentModelId"]) || (isEmpty(offered) ? null : state.fields.model);
  }
  config(state, event);
  return true;
}

/** Where nothing is offered, nothing is chosen. */
function isEmpty(offered: unknown): boolean {
  return Array.isArray(offered) && offered.length === 0;
}

function info(state: State, event: CustomEvent): true {
  if ("title" in event.data) state.fields.title = textOf(event.data["title"]) || null; // null takes the title away
  return true;
}

function mode(state: State, event: CustomEvent): boolean {
  const current = textOf(event.data["currentModeId"]);
  state.fields.mode = current || state.fields.mode;
  return current !== "";
}

function compaction(state: State, event: CustomEvent): true {
  const item = compactionOf(state, event);
  item.status = textOf(event.data["status"]) || item.status;
  item.error = textOf(event.data["error"]) || item.error;
  const summary = event.data["summary"];
  if (Array.isArray(summary) && summary.length) item.summary = summary.map(blockText).join("");
  else item.summary = textOf(summary) || item.summary;
  return true;
}

function compactionChunk(state: State, event: CustomEvent): true {
  const item = compactionOf(state, event);
  item.summary += blockText(event.data["content"]);
  return true;
}

function compactionOf(state: State, event: CustomEvent): Compaction {
  const compactionId = textOf(event.data["compactionId"]);
  const known = state.lookup.compactions.get(compactionId);
  const blank = { compactionId, status: "in_progress", summary: "" };
  if (!known) return state.add({ type: "compaction", ...head(state, event), ...blank });
  state.touch(known);
  return known;
}

/** A plan written as text. One with entries has become `progress:todo_update` before it came here. */
function planText(state: State, event: CustomEvent): boolean {
  const plan = event.data["plan"];
  if (!isObject(plan) || typeof plan["content"] !== "string") return false;
  planOf(state, event, textOf(plan["planId"])).text = plan["content"];
  return true;
}

/** A plan that says what the list of things to do says already; in another turn it is that turn's list as well. */
function planEntries(state: State, event: CustomEvent): boolean {
  const entries = event.data["entries"];
  const todos = Array.isArray(entries) ? entries.map(todoIn) : [undefined];
  if (!todos.every((todo) => todo !== undefined)) return false;
  state.fields.todos = planOf(state, event).todos = todos;
  return true;
}

const oneOf = (value: Json | undefined, ...words: string[]): boolean =>
  typeof value === "string" && words.includes(value);

function todoIn(value: Json): Todo | undefined {
  if (!isObject(value)) return undefined;
  const { content, status, priority = null, activeForm = null } = value;
  if (typeof content !== "string" || !oneOf(status, "pending", "in_progress", "completed")) return undefined;
  if (priority !== null && !oneOf(priority, "high", "medium", "low")) return undefined;
  if (activeForm !== null && typeof activeForm !== "string") return undefined;
  return { content, status, priority: priority ?? undefined, activeForm: activeForm ?? undefined } as Todo;
}

const blockText = (block: Json | undefined): string => (isObject(block) ? textOf(block["text"]) : "");

const TABLE = new Map<string, (state: State, event: CustomEvent) => boolean>([
  ["pilothouse/turn_started", turnStarted],
  ["pilothouse/turn_ended", turnEnded],
  ["pilothouse/question_answered", answerQuestion],
  ["pilothouse/artifact_created", artifact],
  ["pilothouse/session_info_update", info],
  ["acp/session_setup", setup],
  ["acp/available_commands_update", commands],
  ["acp/config_option_update", config],
  ["acp/session_info_update", info],
  ["acp/current_mode_update", mode],
  ["acp/compaction_update", compaction],
  ["acp/compaction_summary_chunk", compactionChunk],
  ["acp/plan", planEntries],
  ["acp/plan_update", planText],
]);

function custom(state: State, event: CustomEvent): void {
  const { namespace, eventName, data } = event;
  if (isObject(data) && TABLE.get(`${namespace}/${eventName}`)?.(state, event)) return;
  state.add({ type: "custom", ...head(state, event), namespace, eventName, data });
}

export const CUSTOM_HANDLERS: Handlers = { custom };
