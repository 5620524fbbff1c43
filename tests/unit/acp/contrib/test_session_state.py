"""The session accumulator: updates merged into snapshots of one session."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.acp import (
    Client,
)
from pilothouse.acp.contrib.session_state import (
    SessionAccumulator,
    SessionNotificationMismatchError,
    SessionSnapshot,
    SessionSnapshotUnavailableError,
    ToolCallView,
)
from pilothouse.acp.helpers import (
    plan_entry,
    start_read_tool_call,
    text_block,
    tool_content,
    tool_terminal_ref,
    update_agent_message_text,
    update_agent_thought_text,
    update_available_commands,
    update_current_mode,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from pilothouse.acp.schema import (
    AvailableCommand,
    PlanEntry,
    SessionNotification,
    ToolCallLocation,
)
from tests.support.sdk_pair import DIFF, SESSION, connected, notify, prompted

CONVERSATION = [
    update_user_message_text("fix it"),
    update_agent_thought_text("hm"),
    update_plan([plan_entry("look"), plan_entry("fix")]),
    start_read_tool_call("1", "Read a", "/a"),
    update_tool_call("1", status="completed", content=[tool_content(text_block("text"))]),
    update_current_mode("code"),
    update_available_commands([AvailableCommand(name="commit", description="d")]),
    update_plan([plan_entry("look", status="completed")]),
    update_agent_message_text("done"),
    update_agent_message_text("!"),
]


def test_the_accumulator_merges_a_session() -> None:
    accumulator = SessionAccumulator()
    told: list[tuple[int, int]] = []
    unsubscribe = accumulator.subscribe(
        lambda snapshot, notification: told.append((len(snapshot.tool_calls), len(snapshot.agent_messages)))
    )
    snapshots = [accumulator.apply(notify(update)) for update in CONVERSATION]
    assert told[0] == (0, 0)
    assert told[-1] == (1, 2)
    assert len(told) == len(CONVERSATION)
    last = snapshots[-1]
    assert isinstance(last, SessionSnapshot)
    assert last.session_id == SESSION
    for tool_call_id, tool_call in last.tool_calls.items():
        assert isinstance(tool_call, ToolCallView)
        assert (tool_call_id, tool_call.tool_call_id, tool_call.status) == ("1", "1", "completed")
    call = last.tool_calls["1"]
    assert (call.title, call.kind, call.raw_input) == ("Read a", "read", {"path": "/a"})
    assert call.locations == (ToolCallLocation(path="/a"),)
    assert call.content is not None
    assert call.content[0].content.text == "text"
    assert last.plan_entries == (PlanEntry(content="look", priority="medium", status="completed"),)
    assert last.current_mode_id == "code"
    assert [command.name for command in last.available_commands] == ["commit"]
    assert last.user_messages == (CONVERSATION[0],)
    assert last.agent_thoughts == (CONVERSATION[1],)
    assert last.agent_messages == tuple(CONVERSATION[-2:])
    assert [chunk.content.text for chunk in last.agent_messages] == ["done", "!"]
    assert last.agent_messages[-1].content.text == "!"
    assert last.agent_messages[:1] == (CONVERSATION[-2],)
    assert accumulator.snapshot() == last
    unsubscribe()
    unsubscribe()
    accumulator.apply(notify(update_agent_message_text("more")))
    assert len(told) == len(CONVERSATION)


def test_a_snapshot_stays_what_it_was() -> None:
    accumulator = SessionAccumulator()
    taken = [(accumulator.apply(notify(update)), index) for index, update in enumerate(CONVERSATION)]
    replayed = SessionAccumulator()
    for snapshot, index in taken:
        assert snapshot == replayed.apply(notify(CONVERSATION[index]))
    for name in ("session_id", "tool_calls", "agent_messages"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(taken[-1][0], name, None)
    with pytest.raises(TypeError):
        taken[-1][0].tool_calls["2"] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        taken[-1][0].tool_calls["1"].status = "failed"  # type: ignore[misc]


def test_what_a_caller_does_to_its_update_later_does_not_reach_a_snapshot() -> None:
    accumulator = SessionAccumulator()
    message, start = update_agent_message_text("before"), start_read_tool_call("1", "t", "/before")
    accumulator.apply(notify(message))
    snapshot = accumulator.apply(notify(start))
    message.content.text = "after"
    assert start.locations is not None
    start.locations[0].path = "/after"
    assert snapshot.agent_messages[0].content.text == "before"
    assert snapshot.tool_calls["1"].locations == (ToolCallLocation(path="/before"),)


def test_updates_replace_fields_and_leave_out_what_they_do_not_name() -> None:
    accumulator = SessionAccumulator()
    accumulator.apply(notify(update_tool_call("late", status="in_progress")))
    snapshot = accumulator.apply(notify(update_tool_call("late", content=[DIFF], raw_output={"a": 1})))
    assert snapshot.tool_calls["late"] == ToolCallView(
        tool_call_id="late",
        title=None,
        kind=None,
        status="in_progress",
        content=(DIFF,),
        locations=None,
        raw_input=None,
        raw_output={"a": 1},
    )
    snapshot = accumulator.apply(notify(update_tool_call("late", content=[tool_terminal_ref("7")])))
    assert snapshot.tool_calls["late"].content == (tool_terminal_ref("7"),)
    assert snapshot.tool_calls["late"].raw_output == {"a": 1}


def test_the_accumulator_follows_one_session_at_a_time() -> None:
    accumulator = SessionAccumulator()
    with pytest.raises(SessionSnapshotUnavailableError):
        accumulator.snapshot()
    accumulator.apply(notify(update_agent_message_text("a")))
    snapshot = accumulator.apply(notify(update_agent_message_text("b"), "sess_2"))
    assert (snapshot.session_id, len(snapshot.agent_messages)) == ("sess_2", 1)
    accumulator.reset()
    with pytest.raises(SessionSnapshotUnavailableError):
        accumulator.snapshot()
    steady = SessionAccumulator(auto_reset_on_session_change=False)
    steady.apply(notify(update_agent_message_text("a")))
    with pytest.raises(SessionNotificationMismatchError):
        steady.apply(notify(update_agent_message_text("b"), "sess_2"))
    assert len(steady.snapshot().agent_messages) == 1


async def test_the_accumulator_fed_by_a_connection_sees_the_session() -> None:
    accumulator = SessionAccumulator()

    class Showing(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            accumulator.apply(SessionNotification(session_id=session_id, update=update))

    async def work(client_conn: Any) -> None:
        for update in CONVERSATION:
            await client_conn.session_update(SESSION, update)

    async with connected(prompted(work), Showing()) as (conn, _, _):
        await conn.prompt(session_id=SESSION, prompt=[text_block("go")])
    expected = SessionAccumulator()
    for update in CONVERSATION:
        expected.apply(notify(update))
    assert accumulator.snapshot() == expected.snapshot()
    dumped = accumulator.snapshot().model_dump()
    assert dumped["current_mode_id"] == "code"
    assert len(dumped["agent_messages"]) == 2
