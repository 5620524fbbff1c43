"""Which tool a call uses, by the best evidence in the call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.model import tools
from pilothouse.model.tools import (
    command_text,
    describe_tool_call,
    file_paths,
    identify,
    is_plan_mode,
    questions_of,
    relative_path,
    todos_of,
    tool_kind,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


# -- identification ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("update", "name", "kind", "how"),
    [
        ({"_meta": {"toolName": "Read"}, "name": "x", "rawInput": {"command": "ls"}}, "Read", "read", "meta"),
        ({"_meta": {"claudeCode": {"toolName": "Write"}}, "title": "Preparing file…"}, "Write", "edit", "meta"),
        ({"_meta": {"claudeCode": {"toolName": "Agent"}}, "kind": "think", "title": "Task"}, "Task", "think", "meta"),
        ({"_meta": {"claudeCode": {"toolName": "mcp__echo__shout"}}}, "mcp__echo__shout", "other", "meta"),
        ({"_meta": {"goose": {"toolCall": {"toolName": "todo__todo_write"}}}}, "TodoWrite", "other", "meta"),
        ({"_meta": {"goose": {"toolCall": {"toolName": "shell"}}}, "kind": "other"}, "Bash", "execute", "meta"),
        ({"name": "exec_command", "kind": "read", "title": "Read file 'x'"}, "Bash", "read", "name"),
        ({"name": "NoSuchTool", "kind": "other"}, "NoSuchTool", "other", "name"),
        ({"title": "6 todos", "kind": "other", "rawInput": {"todos": []}}, "TodoWrite", "other", "input"),
        ({"rawInput": {"plan": [{"step": "a", "status": "pending"}]}}, "TodoWrite", "other", "input"),
        ({"raw_input": {"subagent_type": "Explore", "prompt": "p"}, "title": "Sub job"}, "Task", "think", "input"),
        ({"rawInput": {"subagentType": "x", "command": "/review"}, "kind": "think"}, "Task", "think", "input"),
        ({"rawInput": {"patchText": "*** Begin Patch"}, "kind": "other"}, "apply_patch", "edit", "input"),
        ({"rawInput": {"input": "*** Begin Patch\n"}}, "apply_patch", "edit", "input"),
        ({"rawInput": {"command": ["ls", "-a"]}, "kind": "read"}, "Bash", "read", "input"),
        ({"rawInput": {"filePath": "/a", "oldString": "x", "newString": "y"}}, "Edit", "edit", "input"),
        ({"rawInput": {"path": "/a", "before": "x", "after": "y"}, "kind": "other"}, "Edit", "edit", "input"),
        ({"rawInput": {"filepath": "/a", "diff": "Index: a"}, "title": "/a", "kind": "edit"}, "Edit", "edit", "input"),
        ({"rawInput": {"filePath": "/a", "content": ""}}, "Write", "edit", "input"),
        ({"rawInput": {"command": "view", "path": "/a"}}, "Read", "read", "input"),
        ({"rawInput": {"command": "str_replace", "path": "/a", "old_str": "x"}}, "Edit", "edit", "input"),
        ({"rawInput": {"notebook_path": "/a", "new_source": "x"}}, "NotebookEdit", "edit", "input"),
        ({"rawInput": {"file_path": "/a", "edits": [{"old_string": "x"}]}}, "MultiEdit", "edit", "input"),
        ({"rawInput": {"pattern": "files/**/*.json"}, "kind": "search"}, "Glob", "search", "input"),
        ({"rawInput": {"pattern": "TODO", "path": "src"}, "kind": "search"}, "Grep", "search", "input"),
        ({"rawInput": {"pattern": "*.py", "output_mode": "content"}}, "Grep", "search", "input"),
        ({"rawInput": {"pattern": "foo.*bar"}}, "Grep", "search", "input"),
        ({"rawInput": {"url": "https://x"}}, "WebFetch", "fetch", "input"),
        ({"rawInput": {"query": "react hooks"}}, "WebSearch", "fetch", "input"),
        ({"rawInput": {"query": "where"}, "kind": "search", "title": "x"}, "Search", "search", "kind"),
        ({"rawInput": {"questions": [{"question": "?"}]}}, "AskUserQuestion", "other", "input"),
        ({"rawInput": {"filePath": "/a"}, "title": "/a"}, "Read", "read", "input"),
        ({"rawInput": {"file_path": "/a"}, "kind": "edit"}, "Edit", "edit", "kind"),
        ({"toolCallId": "write_todos__call_1", "title": "Set 3 todo(s)", "kind": "other"}, "TodoWrite", "other", "id"),
        ({"toolCallId": "replace-1761234567890", "kind": "edit"}, "Edit", "edit", "id"),
        ({"kind": "execute", "title": "read the docs"}, "Bash", "execute", "kind"),
        ({"kind": "edit", "title": "Writing to new.txt"}, "Edit", "edit", "kind"),
        ({"kind": "edit", "title": "bash"}, "Edit", "edit", "kind"),
        ({"kind": "edit", "title": "write", "rawInput": {}}, "Write", "edit", "title"),
        ({"kind": "search", "title": "glob", "rawInput": {}}, "Glob", "search", "title"),
        ({"kind": "other", "title": "todowrite", "rawInput": {}}, "TodoWrite", "other", "title"),
        ({"kind": "think", "title": "task", "rawInput": {}}, "Task", "think", "title"),
        ({"kind": "command"}, "Bash", "execute", "kind"),
        ({"kind": "write"}, "Edit", "edit", "kind"),
        ({"kind": "think"}, "Think", "think", "kind"),
        ({"title": "Set 3 todo(s)"}, "TodoWrite", "other", "title"),
        ({"title": "2 todos", "kind": "other"}, "TodoWrite", "other", "title"),
        ({"title": "shell · cat x"}, "Bash", "execute", "title"),
        ({"title": "echo_shout", "kind": "other"}, "echo_shout", "other", "title"),
        ({"title": "Success. Updated:\nM a", "kind": "other"}, "Success. Updated:", "other", "title"),
        ({}, "", "other", "none"),
    ],
)
def test_a_call_is_identified_by_the_best_evidence(update: dict[str, Any], name: str, kind: str, how: str) -> None:
    found = identify(update)
    assert (found.name, found.kind, found.how) == (name, kind, how)


def test_a_title_may_name_a_server() -> None:
    found = identify(title="shout (echo MCP Server)", kind="other")
    assert (found.name, found.category) == ("shout (echo MCP Server)", "mcp")


def test_the_title_never_beats_the_rest() -> None:
    found = identify(name="Bash", raw_input={"command": "ls"}, kind="execute", title="Read")
    assert (found.name, found.category) == ("Bash", "terminal")


@pytest.mark.parametrize(
    "extra", [{"todos": []}, {"subagent_type": "x"}, {"questions": [{"question": "?"}]}, {"url": "u"}]
)
def test_an_extra_argument_cannot_make_a_command_look_harmless(extra: dict[str, Any]) -> None:
    assert identify(raw_input={"command": "rm -rf /", **extra}, kind="execute").name == "Bash"


def test_an_edit_is_not_hidden_by_an_extra_argument() -> None:
    assert identify(raw_input={"filePath": "/a", "todos": []}, kind="edit").category == "file_edit"


@settings(max_examples=300, deadline=None)
@given(meta=JSON, name=JSON, raw=JSON, kind=JSON, title=JSON, call=JSON)
def test_any_json_gives_an_identity(meta: Any, name: Any, raw: Any, kind: Any, title: Any, call: Any) -> None:
    found = identify(meta=meta, name=name, raw_input=raw, kind=kind, title=title, tool_call_id=call)
    assert found.kind in tools.ACP_KINDS
    assert isinstance(describe_tool_call(name, raw), str)
    assert isinstance(todos_of(raw), list)
    assert isinstance(questions_of("AskUserQuestion", raw), list)
    assert isinstance(file_paths(raw), list)
    assert isinstance(command_text(raw), str | None)
    assert isinstance(relative_path(raw, kind), str)
    assert isinstance(is_plan_mode(title), bool)
    assert tool_kind(raw) in tools.PACKET_KINDS
