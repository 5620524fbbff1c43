"""What a packet shows: its type, new file or edit, its tool, its file; in either spelling, whatever it holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.dialects.packets import (
    get_file_path,
    is_new_file_operation,
    is_task_tool,
    is_todo_write_tool,
    packet_type,
    tool_kind,
)

SESSION = "/data/sandboxes/0b7c1f8e-0000-4000-8000-00000000000a/sessions/5f1d3c2b-0000-4000-8000-00000000000b"


@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        ({"type": "prompt_response"}, "prompt_response"),
        ({"type": "error", "sessionUpdate": "plan"}, "error"),
        ({"sessionUpdate": "agent_message_chunk"}, "agent_message_chunk"),
        ({"sessionUpdate": "agent_thought_chunk"}, "agent_thought_chunk"),
        ({"sessionUpdate": "tool_call"}, "tool_call_start"),
        ({"session_update": "tool_call_update"}, "tool_call_progress"),
        ({"sessionUpdate": "plan", "type": None}, "agent_plan_update"),
        ({"sessionUpdate": "current_mode_update"}, "current_mode_update"),
        ({"sessionUpdate": "usage_update"}, None),
        ({"sessionUpdate": ["plan"]}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_the_type_of_a_packet(packet: Any, kind: str | None) -> None:
    assert packet_type(packet) == kind


@pytest.mark.parametrize(
    ("diff", "new"),
    [
        ({"oldText": ""}, True),
        ({"oldText": None}, True),
        ({}, True),
        ({"old_text": ""}, True),
        ({"oldText": "const x = 1;"}, False),
        ({"old_text": "x"}, False),
    ],
)
def test_no_text_before_is_a_new_file(diff: dict[str, Any], new: bool) -> None:
    content = [{"type": "content", "content": {"type": "text", "text": "Wrote file successfully."}}]
    packet = {"kind": "edit", "content": [*content, {"type": "diff", "newText": "y", "path": "/a", **diff}]}
    assert is_new_file_operation(packet) is new
    assert is_new_file_operation({**packet, "kind": "write"}) is new
    assert is_new_file_operation({**packet, "kind": "execute"}) is None


@pytest.mark.parametrize(
    "packet", [{"kind": "edit"}, {"kind": "edit", "content": [3, {"type": "content"}]}, {}, None, 7]
)
def test_without_a_diff_nobody_knows_if_a_file_is_new(packet: Any) -> None:
    assert is_new_file_operation(packet) is None


@pytest.mark.parametrize(
    "packet",
    [
        {"title": "todowrite"},
        {"title": "TodoWrite"},
        {"title": "todo_write"},
        {"title": "6 todos", "kind": "other", "rawInput": {"todos": []}},
        {"title": "6 todos", "raw_input": {"todos": [{"content": "x"}]}},
        {"title": "Preparing", "_meta": {"claudeCode": {"toolName": "TodoWrite"}}},
    ],
)
def test_the_todo_tool_is_known_also_when_its_title_changed(packet: dict[str, Any]) -> None:
    assert is_todo_write_tool(packet)
    assert not is_task_tool(packet)


@pytest.mark.parametrize(
    "packet",
    [
        {"title": "Task"},
        {"title": "Look around", "rawInput": {"subagent_type": "Explore"}},
        {"title": "Look around", "raw_input": {"subagentType": "Explore"}},
        {"title": "Look around", "_meta": {"toolName": "task"}},
    ],
)
def test_the_task_tool_is_known_also_when_its_title_changed(packet: dict[str, Any]) -> None:
    assert is_task_tool(packet)
    assert tool_kind(packet) == "task"
    assert not is_todo_write_tool(packet)


@pytest.mark.parametrize("packet", [None, [], {}, {"title": 3}, {"rawInput": "todos"}, {"rawInput": {"todos": 1}}])
def test_odd_packets_are_neither(packet: Any) -> None:
    assert not is_todo_write_tool(packet)
    assert not is_task_tool(packet)


@pytest.mark.parametrize(
    ("packet", "path"),
    [
        ({"rawInput": {"file_path": f"{SESSION}/outputs/a.ts"}}, "outputs/a.ts"),
        ({"rawInput": {"filePath": "/path/to/file.tsx"}}, "path/to/file.tsx"),
        ({"raw_input": {"path": "src/x.py"}, "title": "/other"}, "src/x.py"),
        ({"rawInput": {}, "content": [{"type": "diff", "path": "/a/b/c/d"}], "title": "x/y"}, "b/c/d"),
        ({"rawInput": {"patchText": "*** Begin Patch\n*** Update File: web/app/layout.tsx\n"}}, "web/app/layout.tsx"),
        ({"locations": [{"path": "/a/b"}], "kind": "read"}, "a/b"),
        ({"kind": "edit", "title": "path/to/file.tsx"}, "path/to/file.tsx"),
        ({"kind": "edit", "title": "edit"}, ""),
        ({"kind": "execute", "title": "cat /etc/passwd"}, ""),
        ({"content": "x", "rawInput": [], "title": {}, "locations": 3}, ""),
        ("x", ""),
    ],
)
def test_the_file_of_a_packet(packet: Any, path: str) -> None:
    assert get_file_path(packet) == path


def test_the_file_of_a_packet_is_shown_from_the_workspace() -> None:
    assert get_file_path({"rawInput": {"filePath": "/w/src/a/b/c/d.py"}}, "/w") == "src/a/b/c/d.py"


ANY = st.recursive(st.none() | st.integers() | st.text(max_size=6), lambda x: st.lists(x, max_size=2), max_leaves=4)
FIELDS = ["type", "kind", "title", "content", "rawInput", "raw_input", "locations", "_meta", "sessionUpdate", "name"]


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), ANY | st.dictionaries(st.sampled_from(["todos", "path", "type"]), ANY)))
def test_no_packet_makes_a_rule_raise(packet: dict[str, Any]) -> None:
    assert packet_type(packet) is None or isinstance(packet_type(packet), str)
    assert is_new_file_operation(packet) in (True, False, None)
    assert is_todo_write_tool(packet) in (True, False)
    assert is_task_tool(packet) in (True, False)
    assert isinstance(get_file_path(packet), str)
    assert isinstance(tool_kind(packet), str)


@pytest.mark.parametrize("title", ["List files in /home/me/project", "Success. Updated the following files:\nM a/b"])
def test_a_sentence_with_a_path_in_it_is_no_path(title: str) -> None:
    assert get_file_path({"kind": "other", "title": title}) == ""
