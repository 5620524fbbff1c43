"""After a crash: what was open when the hub died ends by an event.

The log is the truth. A session whose last events say that a turn was under way gets the events that a hub would have
written had it known that it was going to die. The same is done when the log had refused events: what it has, counts.
A turn of a session that another program runs is none of the hub's: it ends when the record of that program says so.
"""

from __future__ import annotations

import logging
import os.path
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ...adapters.catalog import PERMISSION_BEHAVIOR
from ...dialects.acp.effects import absolute_path
from ...log.contract import EventLog
from ...log.records import Change, SessionRecord
from ...model.acts import CommandLine
from ...model.errors import ACPError
from ...model.events import (
    DERIVED,
    ApprovalResolvedEvent,
    CustomEvent,
    Event,
    MessageCompleteEvent,
    SessionErrorEvent,
    SessionStatusChangedEvent,
    SubAgentCompletedEvent,
    ThinkingCompleteEvent,
    ToolCallErrorEvent,
    decode_event,
)
from ...model.policy import Rule, decide, parse_policy
from ...model.records import TextContent
from ...model.session import ACTIVE, WAITING, Approval, Custom, Message, Session, TextRun, Thought, ToolCall, shed
from ...model.tools import file_paths
from ...model.tools.commands import find_commands
from ...model.tools.harmless import HARMLESS_KINDS, is_foreign_tool, is_harmless_tool, is_risky
from .rules import StandingRules

logger = logging.getLogger(__name__)

MESSAGE = "The hub was stopped before this ended."
NEWEST = 100
"""Items of a page of history that are looked at again with the next page: later events may be about them."""
LEFT_OPEN = (*sorted(ACTIVE), "starting")
"""Statuses that only a running hub has."""


async def fold(log: EventLog, session_id: str, *, into: Session | None = None) -> tuple[Session, list[str]]:
    """A session as its events tell it, and the prompts that were queued and never began.

    A session that is given goes on from where it is, and keeps all; a new one is without its older items.
    """
    state = Session(id=session_id) if into is None else into
    queued: dict[str, None] = {}
    cursor = state.seq
    while entries := await log.read(session_id, cursor):
        for entry in entries:
            try:
                event = decode_event(entry.data)
            except Exception:  # one event that cannot be read must not make the others unreadable
                logger.exception("session %s: event %d cannot be read", session_id, entry.seq)
                state.seq = entry.seq
                continue
            state.apply(event)
            if type(event) is CustomEvent and event.namespace == "pilothouse":
                _follow_queue(queued, event)
        cursor = entries[-1].seq
        if into is None:
            shed(state, newest=NEWEST)  # a history may be larger than memory
    return state, list(queued)


def _follow_queue(queued: dict[str, None], event: CustomEvent) -> None:
    if event.event_name == "prompt_queued":
        queued[str(event.data.get("promptId"))] = None
    elif event.event_name in ("prompt_cancelled", "turn_started"):
        queued.pop(str(event.data.get("promptId") or event.data.get("turnId")), None)


async def end_open(
    log: EventLog, record: SessionRecord, *, failure: BaseException | None = None, waiting: Collection[str] = ()
) -> Session:
    """End by events, and in the records, whatever a session's log leaves open. The session as it then is.

    `failure` is why the log refused what happened, if it is that and not a death of the hub; `waiting` are the prompts
    whose turn will still come.
    """
    state, queued = await fold(log, record.id)
    left = [prompt_id for prompt_id in queued if prompt_id not in waiting]
    goes_on = failure is None and record.watched_id is not None and record.archived is None
    standing = StandingRules(log, record.id, record.cwd)
    standing.policy = parse_policy(record.policy) if record.policy is not None else None
    rules = await standing.rules()
    events = closing_events(state, log.now(), left, failure=failure, goes_on=goes_on, rules=rules)
    message = _message(failure)
    moved = [event.to for event in events if isinstance(event, SessionStatusChangedEvent)]
    status = moved[-1] if moved else state.status
    also: list[Change] = []
    for approval in await log.approvals.pending(record.id):
        decision = {"approved": False, "resolvedBy": "cancelled", "reason": message, "optionId": None}
        also.append(log.approvals.resolving(approval.id, decision, decided_by="recovery", strict=False))
    if record.status != status:
        also.append(log.sessions.updating(record.id, status=status))
    if events or also:
        await log.append(record.id, state.seq, events, also=also)
    for event in events:
        state.apply(event)
    return state


def _message(failure: BaseException | None) -> str:
    return MESSAGE if failure is None else f"What happened could not be stored: {failure}"


def closing_events(
    session: Session,
    now: str,
    queued: Collection[str] = (),
    *,
    failure: BaseException | None = None,
    goes_on: bool = False,
    rules: Sequence[Rule] = (),
) -> list[Event]:
    """The events that end everything that is open; none for a session at rest, unless there is a failure to tell.

    With `goes_on` a turn that is open, and its calls, are another program's and stay so. Calls that may have acted and
    that no approval, rule or mode covers are flagged.
    """
    events: list[Event] = []
    goes_on = goes_on and session.turn is not None and session.turn.open
    message = _message(failure)

    def emit(cls: type[Event], **fields: Any) -> None:
        events.append(cls(seq=0, session_id=session.id, timestamp=now, **fields))

    def fact(name: str, /, **data: Any) -> None:
        emit(CustomEvent, namespace="pilothouse", event_name=name, data=data)

    for item in session.items:
        if isinstance(item, Message) and not item.done:
            texts = "".join(str(block.text) for block in item.content if isinstance(block, TextRun))
            content = [TextContent(text=texts)] if texts else []
            emit(MessageCompleteEvent, message_id=item.message_id, role=item.role, content=content)
            events[-1].source = DERIVED  # its pieces were sent; it adds nothing to them
        elif isinstance(item, Thought) and not item.done:
            emit(ThinkingCompleteEvent, message_id=item.message_id, content=str(item.text))
            events[-1].source = DERIVED
    for approval in session.pending_approvals:
        emit(
            ApprovalResolvedEvent,
            request_id=approval.request_id,
            tool_call_id=approval.tool_call_id,
            approved=False,
            resolved_by="cancelled",
            reason=message,
        )
    for question in session.pending_questions:
        fact("question_answered", questionId=question.question_id, outcome="cancelled", answer=None)
    if goes_on:
        if (session.pending_approvals or session.pending_questions) and session.status in WAITING:
            emit(SessionStatusChangedEvent, from_=session.status, to="running", reason=message)
        return events
    for call in session.tool_calls:
        if not call.ended:
            error = ACPError(code="interrupted", message=message, recoverable=True)
            emit(ToolCallErrorEvent, tool_call_id=call.tool_call_id, name=call.name, error=error)
            if _acted_unasked(session, call, rules):
                about = {"toolCallId": call.tool_call_id, "name": call.name, "riskLevel": call.risk_level}
                fact("acted_without_asking", **about)
    for agent in session.sub_agents.values():
        if agent.ended_at is None:
            parent = agent.parent_tool_call_id
            emit(SubAgentCompletedEvent, sub_agent_id=agent.sub_agent_id, parent_tool_call_id=parent, result=message)
    if failure is not None:
        emit(SessionErrorEvent, error=ACPError(code="not_stored", message=message, recoverable=True))
    how = "interrupted" if failure is None else "error"
    if session.turn is not None and session.turn.open:
        fact("turn_ended", turnId=session.turn.turn_id, stopReason=how)
    for prompt_id in queued:
        fact("prompt_cancelled", promptId=prompt_id, reason=message)
    if session.status in LEFT_OPEN and session.seq:
        emit(SessionStatusChangedEvent, from_=session.status, to="idle", reason=how)
    return events


# -- acts without permission --


def _acted_unasked(session: Session, call: ToolCall, rules: Sequence[Rule]) -> bool:
    """Whether a call that was running may have acted although nothing permits it, as far as the log says."""
    if call.status != "executing" or not is_risky(call.risk_level or "low"):
        return False
    acts = _list_acts(session, call.input)
    is_excused = call.kind in HARMLESS_KINDS or is_harmless_tool(call.name)
    if is_excused and not is_foreign_tool(call.name) and not find_commands(call.input):
        return False
    approvals = [item for item in session.items if isinstance(item, Approval) and item.turn_id == call.turn_id]
    if any(one.tool_call_id == call.tool_call_id and (one.approved or one.pending) for one in approvals):
        return False
    permitted = {act for one in approvals if one.approved for act in _list_acts(session, one.tool_input)}
    done = [note for note in _list_notes(session, "act_allowed") if note.turn_id == call.turn_id]
    permitted |= {act for note in done for act in _list_acts(session, note.data)}
    if acts and acts <= permitted:
        return False
    if _is_covered_by_mode(session, call):
        return False
    return decide(list(rules) or None, call.name, call.input, session.working_directory).outcome != "allow"


def _is_covered_by_mode(session: Session, call: ToolCall) -> bool:
    """Whether the user chose a mode in which some agent does not ask about such a call inside the workspace."""
    mode, root = find_chosen_mode(session), session.working_directory
    commands = find_commands(call.input)
    places = [*file_paths(call.input), *(one.cwd or "." for one in commands)]
    if not all(Path(os.path.normpath(absolute_path(place, root))).is_relative_to(root) for place in places):
        return False
    programs = [" ".join(one.line().words[:1]) for one in commands]
    known = PERMISSION_BEHAVIOR.values()
    return any(one.may_act_unasked(mode, programs, writes=bool(file_paths(call.input))) for one in known)


def _list_acts(session: Session, raw: Any) -> set[CommandLine | str]:
    """The commands and the files of an input, or of an act of the hub."""
    lines = (one.line() for one in find_commands(raw))
    return {*lines, *(absolute_path(path, session.working_directory) for path in file_paths(raw))}


def find_chosen_mode(session: Session) -> str | None:
    """The mode that the user chose last, if the agent has not left it since."""
    notes = _list_notes(session, "mode_chosen")
    mode = notes[-1].data.get("modeId") if notes else None
    return mode if isinstance(mode, str) and mode == session.mode else None


def _list_notes(session: Session, name: str) -> list[Custom]:
    """The hub's own notes of this name, oldest first."""
    notes = (item for item in session.items if isinstance(item, Custom) and item.namespace == "pilothouse")
    return [item for item in notes if item.event_name == name and isinstance(item.data, dict)]
