/**
 * The life of a tool call: pending → executing → completed, failed or cancelled.
 *
 * Real agents update calls that they never announced, end them twice, and use an id again. So any event about an
 * unknown id makes the call; a start for an id that has ended begins another call beside the old one; and the last
 * word about the end of a call counts. A call that its turn or agent left open is closed as `unfinished`; a result
 * that comes after all corrects it, other late events add to it without reopening it.
 */
import { linkApproval } from "./asks";
import { mergeChange } from "./files";
import { type EventOf, type Handlers, head } from "./handlers";
import { ended, type State } from "./state";
import { CANCELLED_CODES } from "./tables.gen";
import { describeToolCall } from "./tools";
import type { CallStatus, FileChange, Json, SubAgent, ToolCall } from "./wire.gen";

type CallEvent = { seq: number; timestamp: string; toolCallId: string; name?: string };

/** End a call that no event ended. */
export function closeCall(state: State, call: ToolCall, status: CallStatus, timestamp: string): void {
  call.status = status;
  call.endedAt = timestamp;
  call.unfinished = true;
  if (status === "failed") {
    call.error = { code: "unfinished", message: "The turn ended before this call did", recoverable: true };
  }
  state.closed(call);
}

/** End the sub-agents of which nothing was heard. */
export function closeSubAgents(state: State, status: string, timestamp: string): void {
  for (const agent of state.lookup.agents.values()) {
    agent.status = status;
    agent.endedAt = timestamp;
    agent.unfinished = true;
  }
  state.lookup.agents.clear();
}

/** The last call of the event's id, about to be changed; a new one if the id is unknown. */
function callOf(state: State, event: CallEvent): ToolCall {
  const call = state.lookup.calls.get(event.toolCallId) ?? newCall(state, event);
  state.touch(call);
  return call;
}

function newCall(state: State, event: CallEvent): ToolCall {
  const call: ToolCall = {
    type: "tool_call",
    ...head(state, event),
    toolCallId: event.toolCallId,
    name: event.name ?? "",
    category: "other",
    status: "pending",
    output: "",
  };
  for (const approval of state.pendingApprovals) {
    // agents may ask before they announce the call
    if (approval.toolCallId === call.toolCallId) linkApproval(state, call, approval);
  }
  return state.add(call);
}

function start(state: State, event: EventOf<"tool:start">): void {
  const known = state.lookup.calls.get(event.toolCallId);
  const call = !known || ended(known) ? newCall(state, event) : known;
  call.name = event.name || call.name;
  call.category = event.category;
  call.description = event.description ?? call.description;
  call.title = event.title ?? call.title;
  call.kind = event.kind ?? call.kind;
  call.locations = event.locations ?? call.locations;
  call.parentToolCallId = event.parentToolCallId ?? call.parentToolCallId;
  state.touch(call);
}

function args(state: State, event: EventOf<"tool:args_delta">): void {
  const call = callOf(state, event);
  call.args = call.args === undefined || event.replace ? event.delta : call.args + event.delta;
}

function executing(state: State, event: EventOf<"tool:executing">): void {
  const call = callOf(state, event);
  call.name = event.name || call.name;
  call.input = event.input;
  call.riskLevel = event.riskLevel;
  call.riskReasons = event.riskReasons;
  call.requiresApproval = event.requiresApproval || undefined;
  const described = describeToolCall(call.name, event.input);
  if (Object.keys(event.input).length && described !== call.name) call.description = described;
  if (ended(call)) return;
  if (event.requiresApproval && !call.executingAt) {
    call.status = "pending"; // until somebody approves
  } else {
    call.status = "executing";
    call.executingAt = call.executingAt || event.timestamp;
  }
}

function result(state: State, event: EventOf<"tool:result">): void {
  const call = callOf(state, event);
  call.error = undefined;
  end(state, call, event, "completed");
}

function error(state: State, event: EventOf<"tool:error">): void {
  const call = callOf(state, event);
  call.error = event.error;
  const code = event.error.code.toLowerCase().replace(/^tool_/, "");
  end(state, call, event, CANCELLED_CODES.includes(code) ? "cancelled" : "failed");
}

function end(state: State, call: ToolCall, event: EventOf<"tool:result" | "tool:error">, status: CallStatus): void {
  call.name = event.name || call.name;
  if (event.output) call.output = event.output; // an empty one does not unsay what was printed on the way
  call.structured = event.structured ?? call.structured;
  call.duration = event.duration ?? call.duration;
  call.status = status;
  call.endedAt = event.timestamp;
  call.unfinished = undefined;
  call.percentage = undefined;
  state.closed(call);
}

function progress(state: State, event: EventOf<"progress:update">): void {
  if (event.toolCallId === undefined) {
    const { label, current, total, percentage } = event;
    state.fields.progress = { label, current, total, percentage };
    state.touchHead();
    return;
  }
  const call = state.lookup.calls.get(event.toolCallId) ?? newCall(state, { ...event, toolCallId: event.toolCallId });
  const title = event.label || call.title;
  if (onlyPrints(call, event, title)) {
    call.output += event.output!;
    state.grow(call, event.output!);
    return;
  }
  call.title = title;
  call.locations = event.locations ?? call.locations;
  if (event.percentage !== undefined && !ended(call)) call.percentage = event.percentage;
  if (event.output !== undefined) call.output = event.replace ? event.output : (call.output ?? "") + event.output;
  state.touch(call);
}

/** A command's output arrives in many pieces; the page then adds to what it shows. */
function onlyPrints(call: ToolCall, event: EventOf<"progress:update">, title: string | undefined): boolean {
  const { output, replace, locations, percentage } = event;
  return output !== undefined && !replace && !locations && percentage === undefined && title === call.title;
}

// -- what calls bring about -------------------------------------------------------------------------------------------

function file(state: State, event: EventOf<"file:change">): void {
  const { path, changeType, diff, linesAdded, linesRemoved } = event;
  filesChanged(state, event.toolCallId, [{ path, changeType, diff, linesAdded, linesRemoved }]);
}

function filesChanged(state: State, toolCallId: string | undefined, changes: FileChange[]): void {
  for (const change of changes) mergeChange(state.fields.files, change);
  const call = toolCallId === undefined ? undefined : state.lookup.calls.get(toolCallId);
  if (!call || !changes.length) return;
  call.files = [...(call.files ?? []), ...changes]; // views know it by the array
  state.touch(call);
}

/** The call that did it. An operation without one stands for itself among the items. */
function owner(state: State, event: EventOf<"git:operation" | "web:operation">): ToolCall | undefined {
  const call = event.toolCallId === undefined ? undefined : state.lookup.calls.get(event.toolCallId);
  if (call) {
    state.touch(call);
    return call;
  }
  const data = { ...event.operation } as unknown as Json;
  state.add({ type: "custom", ...head(state, event), namespace: "unified", eventName: event.type, data });
  return undefined;
}

function git(state: State, event: EventOf<"git:operation">): void {
  const call = owner(state, event);
  if (call) (call.git ??= []).push(event.operation);
}

function web(state: State, event: EventOf<"web:operation">): void {
  const call = owner(state, event);
  if (call) (call.web ??= []).push(event.operation);
}

// -- sub-agents -------------------------------------------------------------------------------------------------------

type SubAgentEvent = { timestamp: string; subAgentId: string; parentToolCallId?: string; task?: string };

function subAgent(state: State, event: SubAgentEvent): SubAgent {
  const known = state.fields.subAgents.get(event.subAgentId);
  if (known) return known;
  const agent: SubAgent = {
    subAgentId: event.subAgentId,
    parentToolCallId: event.parentToolCallId ?? "",
    task: event.task ?? "",
    status: "running",
    startedAt: event.timestamp,
  };
  state.fields.subAgents.set(event.subAgentId, agent);
  state.lookup.agents.set(event.subAgentId, agent);
  return agent;
}

function spawned(state: State, event: EventOf<"subagent:spawned">): void {
  const known = state.fields.subAgents.get(event.subAgentId);
  if (known?.endedAt !== undefined) state.fields.subAgents.delete(event.subAgentId); // set to work again
  const agent = subAgent(state, event);
  agent.task = event.task || agent.task;
  agent.model = event.model || agent.model;
  link(state, agent, event.parentToolCallId);
}

function subProgress(state: State, event: EventOf<"subagent:progress">): void {
  const agent = subAgent(state, event);
  agent.message = event.message;
  agent.progress = event.progress ?? agent.progress;
}

function subCompleted(state: State, event: EventOf<"subagent:completed">): void {
  const agent = subAgent(state, event);
  agent.status = "completed";
  agent.endedAt = event.timestamp;
  agent.unfinished = undefined;
  state.lookup.agents.delete(event.subAgentId);
  agent.result = event.result;
  agent.tokenUsage = event.tokenUsage;
  link(state, agent, event.parentToolCallId);
}

function link(state: State, agent: SubAgent, toolCallId: string): void {
  agent.parentToolCallId = toolCallId || agent.parentToolCallId;
  const call = state.lookup.calls.get(agent.parentToolCallId);
  if (!call) return;
  call.subAgentId = agent.subAgentId;
  state.touch(call);
}

export const CALL_HANDLERS: Handlers = {
  "tool:start": start,
  "tool:args_delta": args,
  "tool:executing": executing,
  "tool:result": result,
  "tool:error": error,
  "progress:update": progress,
  "file:change": file,
  "file:batch": (state, event) => filesChanged(state, event.toolCallId, event.changes),
  "git:operation": git,
  "web:operation": web,
  "subagent:spawned": spawned,
  "subagent:progress": subProgress,
  "subagent:completed": subCompleted,
};
