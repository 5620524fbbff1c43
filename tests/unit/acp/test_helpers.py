"""The helpers of the SDK reference: what each of them builds, as it is on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.acp.helpers import (
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    plan_entry,
    resource_block,
    resource_link_block,
    session_notification,
    start_edit_tool_call,
    start_read_tool_call,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    tool_terminal_ref,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought,
    update_agent_thought_text,
    update_available_commands,
    update_current_mode,
    update_plan,
    update_tool_call,
    update_user_message,
    update_user_message_text,
)
from pilothouse.acp.schema import (
    AvailableCommand,
    ContentToolCallContent,
    FileEditToolCallContent,
    TerminalToolCallContent,
    ToolCallProgress,
    ToolCallStart,
)
from tests.support.schema_samples import stable
from tests.support.sdk_pair import DIFF, LOCATION, wire

HELPERS: dict[str, tuple[Any, Any]] = {
    "text": (text_block("t"), {"type": "text", "text": "t"}),
    "image": (image_block("aGk=", "image/png"), {"type": "image", "data": "aGk=", "mimeType": "image/png"}),
    "image with uri": (
        image_block("aGk=", "image/png", uri="file:///a.png"),
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a.png"},
    ),
    "audio": (audio_block("aGk=", "audio/wav"), {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}),
    "link": (resource_link_block("n", "file:///a"), {"type": "resource_link", "name": "n", "uri": "file:///a"}),
    "link with all": (
        resource_link_block("n", "file:///a", mime_type="text/plain", size=3, description="d", title="t"),
        {
            "type": "resource_link",
            "name": "n",
            "uri": "file:///a",
            "mimeType": "text/plain",
            "size": 3,
            "description": "d",
            "title": "t",
        },
    ),
    "embedded text": (
        resource_block(embedded_text_resource("file:///a", "t", mime_type="text/plain")),
        {"type": "resource", "resource": {"uri": "file:///a", "text": "t", "mimeType": "text/plain"}},
    ),
    "embedded blob": (
        resource_block(embedded_blob_resource("file:///a", "aGk=")),
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}},
    ),
    "tool content": (tool_content(text_block("t")), {"type": "content", "content": {"type": "text", "text": "t"}}),
    "diff": (DIFF, {"type": "diff", "path": "/a", "newText": "new", "oldText": "old"}),
    "diff of a new file": (tool_diff_content("/a", "new"), {"type": "diff", "path": "/a", "newText": "new"}),
    "terminal": (tool_terminal_ref("7"), {"type": "terminal", "terminalId": "7"}),
    "plan entry": (plan_entry("c"), {"content": "c", "priority": "medium", "status": "pending"}),
    "plan entry with all": (
        plan_entry("c", priority="high", status="completed"),
        {"content": "c", "priority": "high", "status": "completed"},
    ),
    "plan": (
        update_plan([plan_entry("c")]),
        {"sessionUpdate": "plan", "entries": [{"content": "c", "priority": "medium", "status": "pending"}]},
    ),
    "user message": (
        update_user_message(image_block("aGk=", "image/png")),
        {"sessionUpdate": "user_message_chunk", "content": wire(image_block("aGk=", "image/png"))},
    ),
    "agent message": (
        update_agent_message(text_block("t")),
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "thought": (
        update_agent_thought(text_block("t")),
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "user text": (
        update_user_message_text("t"),
        {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "agent text": (
        update_agent_message_text("t"),
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "thought text": (
        update_agent_thought_text("t"),
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "commands": (
        update_available_commands([AvailableCommand(name="commit", description="d")]),
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": "commit", "description": "d"}],
        },
    ),
    "mode": (update_current_mode("plan"), {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}),
    "start": (start_tool_call("1", "t"), {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "t"}),
    "start with all": (
        start_tool_call(
            "1",
            "t",
            kind="execute",
            status="in_progress",
            content=(DIFF,),
            locations=(LOCATION,),
            raw_input={"a": 1},
            raw_output=[2],
        ),
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "1",
            "title": "t",
            "kind": "execute",
            "status": "in_progress",
            "content": [wire(DIFF)],
            "locations": [{"path": "/a", "line": 4}],
            "rawInput": {"a": 1},
            "rawOutput": [2],
        },
    ),
    "start of a read": (
        start_read_tool_call("1", "Read a", "/a"),
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "1",
            "title": "Read a",
            "kind": "read",
            "status": "pending",
            "locations": [{"path": "/a"}],
            "rawInput": {"path": "/a"},
        },
    ),
    "start of an edit": (
        start_edit_tool_call("1", "Edit a", "/a", "new", extra_options=[DIFF]),
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "1",
            "title": "Edit a",
            "kind": "edit",
            "status": "pending",
            "content": [wire(DIFF)],
            "locations": [{"path": "/a"}],
            "rawInput": {"path": "/a", "content": "new"},
        },
    ),
    "update": (update_tool_call("1"), {"sessionUpdate": "tool_call_update", "toolCallId": "1"}),
    "update with all": (
        update_tool_call(
            "1",
            title="t",
            kind="edit",
            status="completed",
            content=[DIFF],
            locations=[LOCATION],
            raw_input={},
            raw_output={"ok": True},
        ),
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "1",
            "title": "t",
            "kind": "edit",
            "status": "completed",
            "content": [wire(DIFF)],
            "locations": [{"path": "/a", "line": 4}],
            "rawInput": {},
            "rawOutput": {"ok": True},
        },
    ),
    "notification": (
        session_notification("s", update_agent_message_text("t")),
        {
            "sessionId": "s",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}},
        },
    ),
}


@pytest.mark.parametrize(("built", "expected"), HELPERS.values(), ids=HELPERS)
def test_helpers_build_exactly_this(built: Any, expected: Any) -> None:
    assert wire(built) == expected
    assert type(built).model_validate(expected) == built
    definition = next(cls.__name__ for cls in type(built).__mro__ if cls.__name__ in stable().defs)
    assert stable().errors(definition, expected) == []


def test_builders_of_the_document_return_its_types() -> None:
    assert type(start_tool_call("1", "t")) is ToolCallStart
    assert type(start_read_tool_call("1", "t", "/a")) is ToolCallStart
    assert type(start_edit_tool_call("1", "t", "/a", {"any": "thing"})) is ToolCallStart
    assert type(update_tool_call("1")) is ToolCallProgress
    assert type(tool_content(text_block("t"))) is ContentToolCallContent
    assert type(DIFF) is FileEditToolCallContent
    assert type(tool_terminal_ref("7")) is TerminalToolCallContent
