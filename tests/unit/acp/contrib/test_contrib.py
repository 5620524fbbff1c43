"""What the SDK reference has beside the protocol: the tracker of calls, the broker of permissions, the accumulator."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.acp import (
    Client,
    is_allowed,
)
from pilothouse.acp.contrib.permissions import (
    MissingPermissionOptionsError,
    MissingToolCallError,
    PermissionBroker,
    default_permission_options,
)
from pilothouse.acp.contrib.session_state import (
    SessionAccumulator,
    SessionNotificationMismatchError,
    SessionSnapshot,
    SessionSnapshotUnavailableError,
    ToolCallView,
)
from pilothouse.acp.contrib.tool_calls import STREAM_WINDOW, ToolCallTracker, TrackedToolCallView, UnknownToolCall
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
from pilothouse.acp.model import encode
from pilothouse.acp.schema import (
    AllowedOutcome,
    AvailableCommand,
    PermissionOption,
    PlanEntry,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    ToolCallLocation,
    ToolCallUpdate,
)
from tests.support.sdk_pair import DIFF, LOCATION, OPTIONS, SESSION, Editor, connected, notify, prompted, wire

# -- ToolCallTracker --------------------------------------------------------------------------------------------------


async def test_the_tracker_reports_a_call_from_start_to_end() -> None:
    tracker = ToolCallTracker()

    async def work(client_conn: Any) -> None:
        start = tracker.start(
            "my_read_1",
            title="Reading configuration",
            kind="read",
            locations=[ToolCallLocation(path="/app/config.json")],
        )
        await client_conn.session_update(SESSION, start)
        await client_conn.session_update(SESSION, tracker.progress("my_read_1", status="in_progress"))
        for piece in ("one ", "two ", "three"):
            await client_conn.session_update(SESSION, tracker.append_stream_text("my_read_1", piece))
        done = tracker.progress("my_read_1", status="completed", raw_output={"bytes": 1024})
        await client_conn.session_update(SESSION, done)
        tracker.forget("my_read_1")

    editor = Editor()
    async with connected(prompted(work), editor) as (conn, _, _):
        await conn.prompt(session_id=SESSION, prompt=[text_block("read it")])
    start, *rest = editor.updates
    assert (start.title, start.kind, start.status) == ("Reading configuration", "read", "in_progress")
    assert len({update.tool_call_id for update in editor.updates}) == 1
    assert len(start.tool_call_id) == 32
    assert [update.content[0].content.text for update in rest[1:4]] == ["one ", "one two ", "one two three"]
    assert wire(rest[0]) == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": start.tool_call_id,
        "status": "in_progress",
    }
    assert (rest[-1].status, rest[-1].raw_output) == ("completed", {"bytes": 1024})
    with pytest.raises(KeyError):
        tracker.view("my_read_1")


def test_the_tracker_makes_ids_and_keeps_calls_apart() -> None:
    ids = iter(["id_1", "id_2"])
    tracker = ToolCallTracker(id_factory=lambda: next(ids))
    assert tracker.start("a", title="A").tool_call_id == "id_1"
    assert tracker.start("b", title="B", status="pending", raw_input={"n": 1}).tool_call_id == "id_2"
    assert tracker.progress("a", title="A!").tool_call_id == "id_1"
    assert (tracker.view("a").title, tracker.view("b").title) == ("A!", "B")
    assert (tracker.view("a").status, tracker.view("b").status) == ("in_progress", "pending")
    tracker.forget("a")
    tracker.forget("a")
    with pytest.raises(UnknownToolCall, match="Unknown tool call id: a"):
        tracker.progress("a", status="completed")
    assert tracker.view("b").raw_input == {"n": 1}


def test_an_update_of_the_tracker_carries_only_what_is_given() -> None:
    tracker = ToolCallTracker(id_factory=lambda: "1")
    tracker.start("x", title="t", kind="edit", locations=[LOCATION], raw_input={"a": 1})
    base = {"sessionUpdate": "tool_call_update", "toolCallId": "1"}
    assert wire(tracker.progress("x")) == base
    assert wire(tracker.progress("x", kind="execute")) == {**base, "kind": "execute"}
    assert wire(tracker.progress("x", content=[DIFF])) == {**base, "content": [wire(DIFF)]}
    assert wire(tracker.append_stream_text("x", "out", status="in_progress", title="T")) == {
        **base,
        "title": "T",
        "status": "in_progress",
        "content": [{"type": "content", "content": {"type": "text", "text": "out"}}],
    }
    view = tracker.view("x")
    assert (view.title, view.kind, view.status, view.raw_input) == ("T", "execute", "in_progress", {"a": 1})
    assert view.locations == (LOCATION,)


def test_views_and_models_of_the_tracker_are_copies() -> None:
    tracker = ToolCallTracker(id_factory=lambda: "1")
    locations = [ToolCallLocation(path="/a")]
    tracker.start("x", title="t", content=[tool_content(text_block("c"))], locations=locations)
    locations[0].path = "/changed by the caller"
    view, model = tracker.view("x"), tracker.tool_call_model("x")
    assert isinstance(view, TrackedToolCallView)
    assert type(model) is ToolCallUpdate
    assert view.locations is not None
    assert (view.tool_call_id, view.locations[0].path, model.locations[0].path) == ("1", "/a", "/a")
    with pytest.raises(AttributeError):
        view.title = "other"  # type: ignore[misc]
    model.content[0].content.text = "changed"
    model.locations.append(LOCATION)
    again = tracker.tool_call_model("x")
    assert again.content[0].content.text == "c"
    assert len(again.locations) == 1


def test_a_long_stream_is_not_sent_again_with_every_piece() -> None:
    tracker = ToolCallTracker()
    tracker.start("x", title="t", kind="execute")
    piece = "y" * 1024
    sizes = [len(encode(tracker.append_stream_text("x", piece))) for _ in range(200)]
    assert max(sizes) < STREAM_WINDOW + 1024
    assert sum(sizes) < 200 * (STREAM_WINDOW + 1024)
    done = tracker.progress("x", status="completed")
    assert done.content[0].content.text == piece * 200, "the whole text goes out once, at the end"


# -- PermissionBroker -------------------------------------------------------------------------------------------------


def test_the_default_options_are_those_of_the_document() -> None:
    assert [wire(option) for option in default_permission_options()] == [
        {"optionId": "approve", "name": "Approve", "kind": "allow_once"},
        {"optionId": "approve_for_session", "name": "Approve for session", "kind": "allow_always"},
        {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
    ]


def answering(option_id: str = "approve") -> tuple[list[RequestPermissionRequest], dict[str, Any]]:
    """Requesters of both calling styles that note what they are asked."""
    asked: list[RequestPermissionRequest] = []
    answer = RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option_id))

    async def one_request(request: RequestPermissionRequest) -> RequestPermissionResponse:
        asked.append(request)
        return answer

    async def by_keywords(
        session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        asked.append(RequestPermissionRequest(session_id=session_id, tool_call=tool_call, options=options))
        return answer

    async def in_the_order_of_the_document(
        options: list[PermissionOption], session_id: str, tool_call: ToolCallUpdate, **kwargs: Any
    ) -> RequestPermissionResponse:
        return await by_keywords(session_id, tool_call, options)

    return asked, {"one request": one_request, "keywords": by_keywords, "older order": in_the_order_of_the_document}


@pytest.mark.parametrize("style", ["one request", "keywords", "older order"])
async def test_the_broker_asks_in_either_calling_style(style: str) -> None:
    asked, requesters = answering()
    tracker = ToolCallTracker(id_factory=lambda: "1")
    broker = PermissionBroker(session_id=SESSION, requester=requesters[style], tracker=tracker)
    tracker.start("edit_1", title="Edit config", kind="edit", content=[DIFF])
    outcome = await broker.request_for("edit_1", description="This will modify the main configuration file.")
    assert is_allowed(outcome, default_permission_options())
    assert await broker.is_allowed("edit_1")
    first, second = asked
    assert (first.session_id, first.tool_call.tool_call_id, first.tool_call.title) == (SESSION, "1", "Edit config")
    assert first.options == list(default_permission_options())
    assert [wire(item) for item in first.tool_call.content] == [
        wire(DIFF),
        {"type": "content", "content": {"type": "text", "text": "This will modify the main configuration file."}},
    ]
    assert second.tool_call.content == [DIFF], "a description is of its request, not of the call"


@pytest.mark.parametrize("choice", ["approve", "approve_for_session", "reject", None])
async def test_the_broker_asks_over_a_connection(choice: str | None) -> None:
    """The sample of the document, which the official package answers with a TypeError."""
    tracker = ToolCallTracker()

    async def work(client_conn: Any) -> Any:
        broker = PermissionBroker(session_id=SESSION, requester=client_conn.request_permission, tracker=tracker)
        await client_conn.session_update(SESSION, tracker.start("edit_1", title="Edit config", kind="edit"))
        outcome = await broker.request_for("edit_1", description="why")
        return is_allowed(outcome, default_permission_options()), await broker.is_allowed("edit_1")

    editor = Editor(choice)
    agent = prompted(work)
    async with connected(agent, editor) as (conn, _, _):
        await conn.prompt(session_id=SESSION, prompt=[text_block("edit")])
    allowed = choice in ("approve", "approve_for_session")
    assert agent.result == (allowed, allowed)
    (asked, options), _ = editor.asked
    assert asked.tool_call_id == editor.updates[0].tool_call_id
    assert asked.content[-1].content.text == "why"
    assert options == list(default_permission_options())


async def test_the_broker_takes_options_content_and_a_call_of_its_own() -> None:
    asked, requesters = answering("allow")
    broker = PermissionBroker(SESSION, requesters["one request"], default_options=OPTIONS)
    call = ToolCallUpdate(tool_call_id="own", title="Own")
    await broker.request_for("anything", tool_call=call, description="why")
    assert call.content is None, "the caller's object is not changed"
    other = [PermissionOption(kind="reject_always", name="Never", option_id="never")]
    assert not await broker.is_allowed("anything", tool_call=call, options=other, content=[DIFF])
    first, second = asked
    assert (first.tool_call.tool_call_id, first.options) == ("own", list(OPTIONS))
    assert (second.options, second.tool_call.content) == (other, [DIFF])


async def test_the_broker_says_what_it_lacks() -> None:
    _, requesters = answering()
    with pytest.raises(MissingToolCallError):
        await PermissionBroker(SESSION, requesters["keywords"]).request_for("x")
    tracker = ToolCallTracker()
    tracker.start("x", title="t")
    with pytest.raises(MissingPermissionOptionsError):
        await PermissionBroker(SESSION, requesters["keywords"], tracker=tracker, default_options=[]).request_for("x")
    with pytest.raises(KeyError):
        await PermissionBroker(SESSION, requesters["keywords"], tracker=tracker).request_for("y")


# -- SessionAccumulator -----------------------------------------------------------------------------------------------


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
