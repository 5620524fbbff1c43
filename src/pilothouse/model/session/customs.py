"""Custom events: ACP updates without a type of their own, and the hub's own facts about turns.

`data` comes from agents and may be any JSON: whatever has not the expected shape is kept as it came, among the items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..events import CustomEvent, Event
from ..records import Todo, TokenUsage
from .calls import answer_question, close_call, close_sub_agents, withdraw
from .items import Artifact, CallStatus, Compaction, Custom, Plan, ToolCall
from .messages import finish
from .state import State, Turn


def close_all(state: State, status: CallStatus, timestamp: str) -> None:
    """The turn is over, or its agent is gone: what is open ends now. Each item is closed once, so this is paid for."""
    for item in list(state.index.open.values()):
        if isinstance(item, ToolCall):
            close_call(state, item, status, timestamp)
        else:
            finish(state, item, timestamp)
    for ask in list(state.index.pending.values()):
        withdraw(state, ask, timestamp)
    close_sub_agents(state, status, timestamp)
    state.progress = None
    if state.turn is not None and state.turn.open:
        state.turn.open, state.turn.ended_at = False, timestamp
        state.turns_ended.append(msgspec.structs.replace(state.turn))


def plan_of(state: State, event: Event, plan_id: str = "") -> Plan:
    """The plan of this turn."""
    return state.index.plans.get((state.turn_id, plan_id)) or state.add(
        Plan(seq=event.seq, timestamp=event.timestamp, turn_id=state.turn_id, plan_id=plan_id, todos=[])
    )


# -- turns -----------------------------------------------------------------------------------------------------------


def _turn_started(state: State, event: CustomEvent) -> bool:
    turn_id = _text(event.data.get("turnId")) or ""
    if state.turn is not None and state.turn.open:
        if turn_id and turn_id == state.turn.turn_id:
            return True
        close_all(state, "failed", event.timestamp)  # its end never came
    state.turns += 1
    state.turn = Turn(
        turn_id=turn_id or f"turn-{state.turns}",
        open=True,
        started_at=event.timestamp,
        elsewhere=event.data.get("elsewhere") is True,
    )
    return True


def _turn_ended(state: State, event: CustomEvent) -> bool:
    turn_id, reason = _text(event.data.get("turnId")) or "", _text(event.data.get("stopReason"))
    turn = state.turn
    if turn is not None and turn_id and turn_id != turn.turn_id:
        return True  # the late end of an earlier turn says nothing about this one
    if turn is not None:
        turn.stop_reason = reason or turn.stop_reason
        turn.usage = _usage(event.data.get("usage")) or turn.usage
    close_all(state, "cancelled" if reason == "cancelled" else "failed", event.timestamp)
    return True


def _usage(value: Any) -> TokenUsage | None:
    """ACP's usage of a turn, or the stream's own; their names are the same where they mean the same."""
    if not isinstance(value, dict):
        return None
    renamed = {{"cachedReadTokens": "cacheReadTokens", "cachedWriteTokens": "cacheWriteTokens"}.get(k, k): v
               for k, v in value.items()}  # fmt: skip
    try:
        return msgspec.convert(renamed, TokenUsage)
    except msgspec.ValidationError:
        return None


def _answered(state: State, event: CustomEvent) -> bool:
    answer_question(state, event)
    return True


def _artifact(state: State, event: CustomEvent) -> bool:
    state.add(
        Artifact(seq=event.seq, timestamp=event.timestamp, turn_id=state.turn_id, artifact=event.data.get("artifact"))
    )
    return True


# -- ACP -------------------------------------------------------------------------------------------------------------


def _commands(state: State, event: CustomEvent) -> bool:
    commands = event.data.get("availableCommands")
    if isinstance(commands, list):
        state.available_commands = commands
    return isinstance(commands, list)


def _config(state: State, event: CustomEvent) -> bool:
    options = event.data.get("configOptions")
    if not isinstance(options, list):
        return False
    state.config_options = options
    for option in options:
        if isinstance(option, dict):
            kind, value = option.get("category") or option.get("id"), _text(option.get("currentValue"))
            if value and kind == "model":
                state.model = value
            elif value and kind == "mode":
                state.mode = value
    return True


def _setup(state: State, event: CustomEvent) -> bool:
    """What the agent offered when the session began: modes, models, config options."""
    for name, current, offered in (
        ("modes", "currentModeId", "availableModes"),
        ("models", "currentModelId", "availableModels"),
    ):
        told = event.data.get(name)
        if not isinstance(told, dict):
            continue
        choices, chosen = told.get(offered), _text(told.get(current))
        if isinstance(choices, list):
            setattr(state, name, choices)
        if chosen or choices == []:  # where nothing is offered, nothing is chosen
            setattr(state, name.removesuffix("s"), chosen or None)
    _config(state, event)
    return True


def _info(state: State, event: CustomEvent) -> bool:
    if "title" in event.data:  # null takes the title away
        state.title = _text(event.data["title"]) or None
    return True


def _mode(state: State, event: CustomEvent) -> bool:
    mode = _text(event.data.get("currentModeId"))
    state.mode = mode or state.mode
    return bool(mode)


def _compaction(state: State, event: CustomEvent) -> bool:
    compaction = _compaction_of(state, event)
    compaction.status = _text(event.data.get("status")) or compaction.status
    compaction.error = _text(event.data.get("error")) or compaction.error
    summary = event.data.get("summary")
    if isinstance(summary, list) and summary:
        compaction.summary.replace("".join(map(_block_text, summary)))
    elif isinstance(summary, str) and summary:
        compaction.summary.replace(summary)
    return True


def _compaction_chunk(state: State, event: CustomEvent) -> bool:
    _compaction_of(state, event).summary.append(_block_text(event.data.get("content")))
    return True


def _compaction_of(state: State, event: CustomEvent) -> Compaction:
    compaction_id = _text(event.data.get("compactionId")) or ""
    return state.index.compactions.get(compaction_id) or state.add(
        Compaction(
            seq=event.seq,
            timestamp=event.timestamp,
            turn_id=state.turn_id,
            compaction_id=compaction_id,
            status="in_progress",
        )
    )


def _plan(state: State, event: CustomEvent) -> bool:
    """A plan written as text. One with entries has become `progress:todo_update` before it came here."""
    plan = event.data.get("plan")
    text = _text(plan.get("content")) if isinstance(plan, dict) else None
    if text is None or not isinstance(plan, dict):
        return False
    plan_of(state, event, _text(plan.get("planId")) or "").text = text
    return True


def _entries(state: State, event: CustomEvent) -> bool:
    """A plan that says what the list of things to do says already; in another turn it is that turn's list as well."""
    try:
        todos = msgspec.convert(event.data.get("entries"), list[Todo])
    except msgspec.ValidationError:
        return False
    state.todos = plan_of(state, event).todos = todos
    return True


def _block_text(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_TABLE: Mapping[tuple[str, str], Callable[[State, CustomEvent], bool]] = {
    ("pilothouse", "turn_started"): _turn_started,
    ("pilothouse", "turn_ended"): _turn_ended,
    ("pilothouse", "question_answered"): _answered,
    ("pilothouse", "artifact_created"): _artifact,
    ("pilothouse", "session_info_update"): _info,
    ("acp", "session_setup"): _setup,
    ("acp", "available_commands_update"): _commands,
    ("acp", "config_option_update"): _config,
    ("acp", "session_info_update"): _info,
    ("acp", "current_mode_update"): _mode,
    ("acp", "compaction_update"): _compaction,
    ("acp", "compaction_summary_chunk"): _compaction_chunk,
    ("acp", "plan"): _entries,
    ("acp", "plan_update"): _plan,
}


def _custom(state: State, event: CustomEvent) -> None:
    handler = _TABLE.get((event.namespace, event.event_name))
    if handler is not None and isinstance(event.data, dict) and handler(state, event):
        return
    state.add(
        Custom(
            seq=event.seq,
            timestamp=event.timestamp,
            turn_id=state.turn_id,
            namespace=event.namespace,
            event_name=event.event_name,
            data=event.data,
        )
    )


HANDLERS: Mapping[type[Any], Callable[[State, Any], None]] = {CustomEvent: _custom}
