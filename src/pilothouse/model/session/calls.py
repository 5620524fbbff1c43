"""The life of tool calls, approvals and questions.

A call is pending → executing → completed, failed or cancelled. Real agents update calls that they never announced, end
them twice, and reuse an id. So any event about an unknown id creates the call; a start for an id that has ended creates
another call beside the old one; and the last event about the end of a call counts. A call that its turn or agent left
open is closed here as `unfinished`; a later result corrects it, other late events add to it without reopening it.

An approval or a question is asked once and answered once: the first decision wins. One that the fold made itself,
because the turn was over, gives way to a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import to_builtins

from ..errors import ACPError
from ..events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CustomEvent,
    FileChangeBatchEvent,
    FileChangeEvent,
    GitOperationEvent,
    ProgressEvent,
    SubAgentCompletedEvent,
    SubAgentProgressEvent,
    SubAgentSpawnedEvent,
    ToolCallArgsDeltaEvent,
    ToolCallErrorEvent,
    ToolCallExecutingEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserQuestionEvent,
    WebOperationEvent,
)
from ..records import FileChange
from ..tools import describe_tool_call
from .items import Approval, CallStatus, Custom, Question, Text, ToolCall
from .state import Progress, State, SubAgent, merge_change

_APPROVAL_FIELDS = (
    *("tool_call_id", "tool_name", "tool_input", "description", "risk_level", "risk_reasons"),
    *("expires_at", "preview", "options", "notes", "origin", "rule_offers", "rule_refusal", "question_ids"),
)
_QUESTION_FIELDS = (
    *("question", "options", "default_value", "expires_at"),
    *("multi_select", "form", "url", "tool_call_id"),
)


def withdraw(state: State, item: Approval | Question, timestamp: str) -> None:
    """Close one that nobody answered."""
    if isinstance(item, Approval):
        item.approved, item.resolved_by, item.resolved_at = False, "cancelled", timestamp
    else:
        item.outcome, item.answered_at = "cancelled", timestamp
    item.unfinished = True
    state.index.closed(item)


def _requested(state: State, event: ApprovalRequestedEvent) -> None:
    known = state.index.approvals.get(event.request_id)
    approval = known if known is not None and known.pending else state.add(_approval(state, event))
    for name in _APPROVAL_FIELDS:
        setattr(approval, name, getattr(event, name))
    call = state.index.calls.get(event.tool_call_id)
    if call is not None:
        link_approval(call, approval)


def link_approval(call: ToolCall, approval: Approval) -> None:
    """The call knows who was asked about it; its own risk, once it has one, counts."""
    if approval.request_id not in call.approval_ids:
        call.approval_ids.append(approval.request_id)
    if call.risk_level is None:
        call.risk_level, call.risk_reasons = approval.risk_level, approval.risk_reasons


def _approval(state: State, event: ApprovalRequestedEvent | ApprovalResolvedEvent) -> Approval:
    return Approval(
        seq=event.seq,
        timestamp=event.timestamp,
        turn_id=state.turn_id,
        request_id=event.request_id,
        tool_call_id=event.tool_call_id,
        tool_name="",
        tool_input={},
        description="",
        risk_level="low",
    )


def _resolved(state: State, event: ApprovalResolvedEvent) -> None:
    """A decision about a request that is not in the log (a rule answered before it was asked) is kept as well."""
    approval = state.index.approvals.get(event.request_id) or state.add(_approval(state, event))
    if not (approval.pending or approval.unfinished):
        return
    approval.approved, approval.resolved_by, approval.resolved_at = event.approved, event.resolved_by, event.timestamp
    approval.reason, approval.option_id, approval.decided_by = event.reason, event.option_id, event.decided_by
    approval.unfinished = False
    state.index.closed(approval)
    call = state.index.calls.get(event.tool_call_id)
    if call is not None and event.approved and call.status == "pending":
        call.status, call.executing_at = "executing", event.timestamp


def _asked(state: State, event: UserQuestionEvent) -> None:
    known = state.index.questions.get(event.question_id)
    question = known if known is not None and known.pending else state.add(_question(state, event, event.question_id))
    for name in _QUESTION_FIELDS:
        setattr(question, name, getattr(event, name))


def _question(state: State, event: UserQuestionEvent | CustomEvent, question_id: str) -> Question:
    return Question(
        seq=event.seq, timestamp=event.timestamp, turn_id=state.turn_id, question_id=question_id, question=""
    )


def answer_question(state: State, event: CustomEvent) -> None:
    """`question_answered` with `questionId`, `outcome` and `answer`."""
    question_id = event.data.get("questionId")
    question = state.index.questions.get(question_id) if isinstance(question_id, str) else None
    if question is None:
        question = state.add(_question(state, event, question_id if isinstance(question_id, str) else ""))
    if not (question.pending or question.unfinished):
        return
    outcome = event.data.get("outcome")
    question.outcome = outcome if isinstance(outcome, str) and outcome else "answered"
    question.answer, question.answered_at = event.data.get("answer"), event.timestamp
    question.unfinished = False
    state.index.closed(question)


REQUEST_HANDLERS: Mapping[type[Any], Callable[[State, Any], None]] = {
    ApprovalRequestedEvent: _requested,
    ApprovalResolvedEvent: _resolved,
    UserQuestionEvent: _asked,
}


CANCELLED_CODES = frozenset({"cancelled", "canceled", "aborted"})
"""Codes of `tool:error`, in any case and with or without `tool_` in front, that mean nobody wanted the result.

A call that was cut off, as by a restart of the hub, has failed: somebody may still want it."""


def close_call(state: State, call: ToolCall, status: CallStatus, timestamp: str) -> None:
    """End a call that no event ended."""
    call.status, call.ended_at, call.unfinished = status, timestamp, True
    if status == "failed":
        call.error = ACPError(code="unfinished", message="The turn ended before this call did", recoverable=True)
    state.index.closed(call)


def close_sub_agents(state: State, status: str, timestamp: str) -> None:
    """End the sub-agents of which nothing was heard."""
    for agent in state.index.agents.values():
        agent.status, agent.ended_at, agent.unfinished = status, timestamp, True
    state.index.agents.clear()


def _call(state: State, event: Any) -> ToolCall:
    """The last call of the event's id; a new one if the id is unknown."""
    known = state.index.calls.get(event.tool_call_id)
    if known is not None:
        return known
    return _new(state, event)


def _new(state: State, event: Any) -> ToolCall:
    call = ToolCall(
        seq=event.seq,
        timestamp=event.timestamp,
        turn_id=state.turn_id,
        tool_call_id=event.tool_call_id,
        name=getattr(event, "name", ""),
        category="other",
        status="pending",
    )
    for approval in state.pending_approvals:  # agents may ask before they announce the call
        if approval.tool_call_id == call.tool_call_id:
            link_approval(call, approval)
    return state.add(call)


def _start(state: State, event: ToolCallStartEvent) -> None:
    known = state.index.calls.get(event.tool_call_id)
    call = _new(state, event) if known is None or known.ended else known
    call.name = event.name or call.name
    call.category = event.category
    for name in ("description", "title", "kind", "locations", "parent_tool_call_id"):
        value = getattr(event, name)
        if value is not None:
            setattr(call, name, value)


def _args(state: State, event: ToolCallArgsDeltaEvent) -> None:
    call = _call(state, event)
    if call.args is None or event.replace:
        call.args = Text(event.delta)
    else:
        call.args.append(event.delta)


def _executing(state: State, event: ToolCallExecutingEvent) -> None:
    call = _call(state, event)
    call.name = event.name or call.name
    call.input = event.input
    call.risk_level, call.risk_reasons = event.risk_level, event.risk_reasons
    call.requires_approval = event.requires_approval
    described = describe_tool_call(call.name, event.input)
    if event.input and described != call.name:
        call.description = described
    if call.ended:
        return
    if event.requires_approval and not call.executing_at:
        call.status = "pending"  # until somebody approves
    else:
        call.status = "executing"
        call.executing_at = call.executing_at or event.timestamp


def _result(state: State, event: ToolCallResultEvent) -> None:
    call = _call(state, event)
    call.error = None
    _end(state, call, event, "completed")


def _error(state: State, event: ToolCallErrorEvent) -> None:
    call = _call(state, event)
    call.error = event.error
    code = event.error.code.lower().removeprefix("tool_")
    _end(state, call, event, "cancelled" if code in CANCELLED_CODES else "failed")


def _end(state: State, call: ToolCall, event: ToolCallResultEvent | ToolCallErrorEvent, status: CallStatus) -> None:
    call.name = event.name or call.name
    if event.output:  # an empty one does not unsay what was printed on the way
        call.output.replace(event.output)
    if event.structured is not None:
        call.structured = event.structured
    call.duration = event.duration if event.duration is not None else call.duration
    call.status, call.ended_at, call.unfinished = status, event.timestamp, False
    call.percentage = None
    state.index.closed(call)


def _progress(state: State, event: ProgressEvent) -> None:
    if event.tool_call_id is None:
        state.progress = Progress(
            label=event.label, current=event.current, total=event.total, percentage=event.percentage
        )
        return
    call = _call(state, event)
    call.title = event.label or call.title
    if event.locations is not None:
        call.locations = event.locations
    if event.percentage is not None and not call.ended:
        call.percentage = event.percentage
    if event.output is not None:
        (call.output.replace if event.replace else call.output.append)(event.output)


# -- what calls bring about ----------------------------------------------------------------------------------------


def _file(state: State, event: FileChangeEvent) -> None:
    change = FileChange(
        path=event.path,
        change_type=event.change_type,
        diff=event.diff,
        lines_added=event.lines_added,
        lines_removed=event.lines_removed,
    )
    _files(state, event.tool_call_id, [change])


def _batch(state: State, event: FileChangeBatchEvent) -> None:
    _files(state, event.tool_call_id, event.changes)


def _files(state: State, tool_call_id: str | None, changes: list[FileChange]) -> None:
    for change in changes:
        merge_change(state.files, change)
    call = state.index.calls.get(tool_call_id) if tool_call_id is not None else None
    if call is not None:
        call.files.extend(changes)


def _git(state: State, event: GitOperationEvent) -> None:
    call = _owner(state, event)
    if call is not None:
        call.git.append(event.operation)


def _web(state: State, event: WebOperationEvent) -> None:
    call = _owner(state, event)
    if call is not None:
        call.web.append(event.operation)


def _owner(state: State, event: GitOperationEvent | WebOperationEvent) -> ToolCall | None:
    """The call that did it. An operation without one stands for itself among the items."""
    call = state.index.calls.get(event.tool_call_id) if event.tool_call_id is not None else None
    if call is None:
        state.add(
            Custom(
                seq=event.seq,
                timestamp=event.timestamp,
                turn_id=state.turn_id,
                namespace="unified",
                event_name=event.type,
                data=to_builtins(event.operation),
            )
        )
    return call


# -- sub-agents ----------------------------------------------------------------------------------------------------


def _sub_agent(state: State, event: Any) -> SubAgent:
    known = state.sub_agents.get(event.sub_agent_id)
    if known is not None:
        return known
    agent = SubAgent(
        sub_agent_id=event.sub_agent_id,
        parent_tool_call_id=getattr(event, "parent_tool_call_id", ""),
        task=getattr(event, "task", ""),
        status="running",
        started_at=event.timestamp,
    )
    state.sub_agents[event.sub_agent_id] = state.index.agents[event.sub_agent_id] = agent
    return agent


def _spawned(state: State, event: SubAgentSpawnedEvent) -> None:
    known = state.sub_agents.get(event.sub_agent_id)
    if known is not None and known.ended_at is not None:
        del state.sub_agents[event.sub_agent_id]  # the same one was set to work again
    agent = _sub_agent(state, event)
    agent.task, agent.model = event.task or agent.task, event.model or agent.model
    _link(state, agent, event.parent_tool_call_id)


def _sub_progress(state: State, event: SubAgentProgressEvent) -> None:
    agent = _sub_agent(state, event)
    agent.message = event.message
    agent.progress = event.progress if event.progress is not None else agent.progress


def _sub_completed(state: State, event: SubAgentCompletedEvent) -> None:
    agent = _sub_agent(state, event)
    agent.status, agent.ended_at, agent.unfinished = "completed", event.timestamp, False
    state.index.agents.pop(event.sub_agent_id, None)
    agent.result, agent.token_usage = event.result, event.token_usage
    _link(state, agent, event.parent_tool_call_id)


def _link(state: State, agent: SubAgent, tool_call_id: str) -> None:
    agent.parent_tool_call_id = tool_call_id or agent.parent_tool_call_id
    call = state.index.calls.get(agent.parent_tool_call_id)
    if call is not None:
        call.sub_agent_id = agent.sub_agent_id


HANDLERS: Mapping[type[Any], Callable[[State, Any], None]] = {
    ToolCallStartEvent: _start,
    ToolCallArgsDeltaEvent: _args,
    ToolCallExecutingEvent: _executing,
    ToolCallResultEvent: _result,
    ToolCallErrorEvent: _error,
    ProgressEvent: _progress,
    FileChangeEvent: _file,
    FileChangeBatchEvent: _batch,
    GitOperationEvent: _git,
    WebOperationEvent: _web,
    SubAgentSpawnedEvent: _spawned,
    SubAgentProgressEvent: _sub_progress,
    SubAgentCompletedEvent: _sub_completed,
}
