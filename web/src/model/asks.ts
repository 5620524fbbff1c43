/**
 * Approvals and questions: asked once, answered once.
 *
 * The first decision wins. One that the fold made itself, because the turn was over, gives way to a real one.
 */
import { type EventOf, type Handlers, head } from "./handlers";
import { type Ask, pending, type State } from "./state";
import type { Approval, Question, ToolCall } from "./wire.gen";

/** Close one that nobody answered. */
export function withdraw(state: State, ask: Ask, timestamp: string): void {
  if (ask.type === "approval") {
    ask.approved = false;
    ask.resolvedBy = "cancelled";
    ask.resolvedAt = timestamp;
  } else {
    ask.outcome = "cancelled";
    ask.answeredAt = timestamp;
  }
  ask.unfinished = true;
  state.closed(ask);
}

function requested(state: State, event: EventOf<"approval:requested">): void {
  const known = state.lookup.approvals.get(event.requestId);
  const approval = known && pending(known) ? known : state.add(newApproval(state, event));
  approval.toolCallId = event.toolCallId;
  approval.toolName = event.toolName;
  approval.toolInput = event.toolInput;
  approval.description = event.description;
  approval.riskLevel = event.riskLevel;
  approval.riskReasons = event.riskReasons;
  approval.expiresAt = event.expiresAt;
  approval.preview = event.preview;
  approval.options = event.options;
  approval.notes = event.notes;
  approval.origin = event.origin;
  approval.ruleOffers = event.ruleOffers;
  approval.ruleRefusal = event.ruleRefusal;
  approval.questionIds = event.questionIds;
  state.touch(approval);
  const call = state.lookup.calls.get(event.toolCallId);
  if (call) linkApproval(state, call, approval);
}

/** The call knows who was asked about it; its own risk, once it has one, counts. */
export function linkApproval(state: State, call: ToolCall, approval: Approval): void {
  if (!call.approvalIds?.includes(approval.requestId)) (call.approvalIds ??= []).push(approval.requestId);
  if (call.riskLevel === undefined) {
    call.riskLevel = approval.riskLevel;
    call.riskReasons = approval.riskReasons;
  }
  state.touch(call);
}

function newApproval(state: State, event: EventOf<"approval:requested" | "approval:resolved">): Approval {
  const { requestId, toolCallId } = event;
  const blank = { toolName: "", toolInput: {}, description: "", riskLevel: "low" };
  return { type: "approval", ...head(state, event), requestId, toolCallId, ...blank };
}

/** A decision about a request that is not in the log (a rule answered before it was asked) is kept as well. */
function resolved(state: State, event: EventOf<"approval:resolved">): void {
  const approval = state.lookup.approvals.get(event.requestId) ?? state.add(newApproval(state, event));
  if (!pending(approval) && !approval.unfinished) return;
  approval.approved = event.approved;
  approval.resolvedBy = event.resolvedBy;
  approval.resolvedAt = event.timestamp;
  approval.reason = event.reason;
  approval.optionId = event.optionId;
  approval.decidedBy = event.decidedBy;
  approval.unfinished = undefined;
  state.closed(approval);
  const call = state.lookup.calls.get(event.toolCallId);
  if (call && event.approved && call.status === "pending") {
    call.status = "executing";
    call.executingAt = event.timestamp;
    state.touch(call);
  }
}

function asked(state: State, event: EventOf<"interaction:question">): void {
  const known = state.lookup.questions.get(event.questionId);
  const question = known && pending(known) ? known : newQuestion(state, event, event.questionId);
  question.question = event.question;
  question.options = event.options;
  question.defaultValue = event.defaultValue;
  question.expiresAt = event.expiresAt;
  question.multiSelect = event.multiSelect;
  question.form = event.form;
  question.url = event.url;
  question.toolCallId = event.toolCallId;
  state.touch(question);
}

function newQuestion(state: State, event: EventOf<"interaction:question" | "custom">, questionId: string): Question {
  return state.add({ type: "question", ...head(state, event), questionId, question: "" });
}

/** `question_answered` with `questionId`, `outcome` and `answer`. */
export function answerQuestion(state: State, event: EventOf<"custom">): true {
  const { questionId, outcome, answer } = event.data;
  const id = typeof questionId === "string" ? questionId : "";
  const known = typeof questionId === "string" ? state.lookup.questions.get(id) : undefined;
  const question = known ?? newQuestion(state, event, id);
  if (!pending(question) && !question.unfinished) return true;
  question.outcome = typeof outcome === "string" && outcome ? outcome : "answered";
  question.answer = answer ?? undefined;
  question.answeredAt = event.timestamp;
  question.unfinished = undefined;
  state.closed(question);
  return true;
}

export const ASK_HANDLERS: Handlers = {
  "approval:requested": requested,
  "approval:resolved": resolved,
  "interaction:question": asked,
};
