"""The tracker of tool calls: ids, updates, copies and streamed output."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.acp.contrib.tool_calls import STREAM_WINDOW, ToolCallTracker, TrackedToolCallView, UnknownToolCall
from pilothouse.acp.helpers import (
    text_block,
    tool_content,
)
from pilothouse.acp.model import encode
from pilothouse.acp.schema import (
    ToolCallLocation,
    ToolCallUpdate,
)
from tests.support.sdk_pair import DIFF, LOCATION, SESSION, Editor, connected, prompted, wire


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
