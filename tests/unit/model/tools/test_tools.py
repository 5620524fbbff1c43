"""Which tool a call uses and what its input says, in the spellings of many agents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.model import tools
from pilothouse.model.tools import (
    acp_kind,
    bridge_kind,
    canonical_name,
    categorize_tool,
    category_of_kind,
    command_text,
    describe_tool_call,
    file_paths,
    identify,
    is_plan_mode,
    kind_of_category,
    packet_kind,
    questions_of,
    relative_path,
    relative_paths_in_text,
    todos_of,
    tool_kind,
)

SANDBOX = "/data/sandboxes/0b7c1f8e-0000-4000-8000-00000000000a/sessions/5f1d3c2b-0000-4000-8000-00000000000b"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


# -- categories ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("category", "names"),
    [
        ("file_read", "Read Glob Grep LS list read_file ReadFile view list_directory search_file_content"),
        ("file_write", "Write NotebookEdit create_file write_file write_to_file delete_file"),
        ("file_edit", "Edit MultiEdit apply_patch str_replace replace str_replace_based_edit_tool ApplyPatch"),
        ("terminal", "Bash bash shell terminal run_shell_command exec exec_command developer__shell BashOutput"),
        ("web", "WebSearch WebFetch web_fetch websearch google_web_search"),
        ("agent", "Task Agent subagent invoke_agent spawn-agent"),
        ("mcp", "mcp__server__tool mcp__github__create_issue McpServer some_mcp_tool mcp_git_log"),
        ("git", "GitCommit mygithelper git git_push legitgit"),
        ("search", "CodeSearch fullsearchindex codebase_search ToolSearch"),
        ("other", "RandomTool FooBar TodoWrite AskUserQuestion digit_sum is_legitimate longitude"),
    ],
)
def test_a_tool_has_the_category_of_its_name(category: str, names: str) -> None:
    assert {name: categorize_tool(name) for name in names.split()} == dict.fromkeys(names.split(), category)


def test_no_name_is_no_category() -> None:
    assert [categorize_tool(value) for value in ("", None, 7, ["Read"])] == ["other"] * 4


def test_a_foreign_tool_does_not_pass_for_one_of_the_agents_own() -> None:
    assert canonical_name("someserver__read") == "someserver__read"
    assert canonical_name("mcp__fs__read_file") == "mcp__fs__read_file"
    assert canonical_name("read__file") == "read__file"
    assert categorize_tool("someserver__read") == "other"


def test_each_spelling_belongs_to_one_tool() -> None:
    from pilothouse.model.tools import names

    spellings = [word for _, _, _, words in names._TABLE for word in words.split()]
    assert len(spellings) == len(set(spellings))
    assert all(names.spelling(word) == word for word in spellings)


# -- identification -----------------------------------------------------------------------------------------------


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


# -- kinds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "packet", "acp", "bridge"),
    [
        ("glob", "search", "search", "read"),
        ("grep", "search", "search", "read"),
        ("read", "read", "read", "read"),
        ("write", "edit", "edit", "write"),
        ("edit", "edit", "edit", "edit"),
        ("bash", "execute", "execute", "command"),
        ("task", "task", "think", "other"),
        ("todowrite", "other", "other", "other"),
        ("webfetch", "other", "fetch", "other"),
        ("websearch", "other", "fetch", "other"),
        ("apply_patch", "edit", "edit", "edit"),
        ("delete", "edit", "delete", "edit"),
        ("nobody knows", "other", "other", "other"),
    ],
)
def test_a_tool_has_a_kind_in_each_vocabulary(name: str, packet: str, acp: str, bridge: str) -> None:
    assert (tool_kind(name), packet_kind(name), acp_kind(name)) == (packet, packet, acp)
    assert bridge_kind(acp_kind(name), name) == bridge


@pytest.mark.parametrize("kind", sorted(tools.ACP_KINDS))
def test_a_protocol_kind_is_its_own(kind: str) -> None:
    assert acp_kind(kind) == kind
    assert packet_kind(kind) in tools.PACKET_KINDS
    assert bridge_kind(kind) in tools.BRIDGE_KINDS


@pytest.mark.parametrize(
    ("kind", "acp"), [("write", "edit"), ("command", "execute"), ("task", "think"), (None, "other")]
)
def test_foreign_kinds_come_back_to_the_protocol(kind: str | None, acp: str) -> None:
    assert acp_kind(kind) == acp


@pytest.mark.parametrize("kind", ["read", "edit", "search", "execute", "fetch", "other"])
def test_kind_to_category_and_back_is_the_kind(kind: str) -> None:
    assert kind_of_category(category_of_kind(kind)) == kind


@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        ({"kind": "edit", "title": "a/b.tsx"}, "edit"),
        (
            {"kind": "other", "title": "Success. Updated the following files:\nM a", "rawInput": {"patchText": "x"}},
            "edit",
        ),
        ({"kind": "think", "rawInput": {"subagent_type": "Plan"}}, "task"),
        ({"kind": "other", "title": "task"}, "task"),
        ({"kind": "fetch"}, "other"),
        ({"kind": ["odd"], "rawInput": 3, "title": None}, "other"),
    ],
)
def test_a_packet_shows_its_kind(packet: dict[str, Any], kind: str) -> None:
    assert tool_kind(packet) == kind


# -- inputs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        ("Bash", {"command": "npm test"}, "Run: npm test"),
        ("shell", {"cmd": ["ls", "a b"]}, "Run: ls 'a b'"),
        ("Bash", {"command": "x" * 200}, "Run: " + "x" * 100),
        ("Read", {"file_path": "/src/index.ts"}, "Read: /src/index.ts"),
        ("read", {"filePath": "/a"}, "Read: /a"),
        ("Write", {"path": "/a"}, "Write: /a"),
        ("Edit", {"file_path": "/a"}, "Edit: /a"),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: a\n*** Add File: b"}, "Edit: a, b"),
        ("Glob", {"pattern": "**/*.py"}, "Search: **/*.py"),
        ("Grep", {"pattern": "TODO"}, "Grep: TODO"),
        ("Task", {"description": "y" * 90}, "Task: " + "y" * 50),
        ("WebSearch", {"query": "react hooks"}, "Search: react hooks"),
        ("WebFetch", {"url": "https://x"}, "Fetch: https://x"),
        ("RandomTool", {"x": 1}, "RandomTool"),
        ("mcp__a__b", None, "mcp__a__b"),
        ("Bash", {}, "Run"),
        ("Read", None, "Read"),
        ("Grep", {"pattern": 7}, "Grep"),
        ("WebSearch", [], "Search"),
        (None, None, ""),
    ],
)
def test_a_call_is_described_in_one_line(name: str, given: Any, line: str) -> None:
    assert describe_tool_call(name, given) == line


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"command": "ls"}, "ls"),
        ({"cmd": "ls"}, "ls"),
        ({"commandLine": "ls"}, "ls"),
        ({"script": "ls"}, "ls"),
        ({"command": ["bash", "-lc", "echo $HOME; ls"]}, "bash -lc 'echo $HOME; ls'"),
        ({"command": "git", "args": ["log", "a b"]}, "git log 'a b'"),
        ({"command": ["sleep", 5]}, "sleep 5"),
        ({"command": "ls", "cmd": "rm -rf /"}, "ls\nrm -rf /"),
        ({"command": "ls", "cmd": "ls"}, "ls"),
        ("ls -a", "ls -a"),
        ({"command": ""}, None),
        ({"command": {}}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_command_of_an_input_is_found(given: Any, text: str | None) -> None:
    assert command_text(given) == text


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"file_path": "/a"}, ["/a"]),
        ({"filepath": "/a", "filePath": "/a"}, ["/a"]),
        ({"absolute_path": "/a", "paths": ["/b", 3, "/a"]}, ["/a", "/b"]),
        ({"files": [{"path": "/a"}, "/b"], "edits": [{"filePath": "/c"}]}, ["/a", "/b", "/c"]),
        ({"changes": {"/a": {"type": "add"}}}, ["/a"]),
        (
            {"patchText": "*** Begin Patch\n*** Update File: a b.ts\n*** Move to: c\n+*** Add File: no\n"},
            ["a b.ts", "c"],
        ),
        ({"uri": "file:///a"}, ["/a"]),
        ({"uri": "https://x"}, []),
        ({"source": "/a", "destination": "/b"}, ["/a", "/b"]),
        ({"path": None}, []),
        (["/a"], ["/a"]),
        (5, []),
    ],
)
def test_every_path_of_an_input_is_found(given: Any, paths: list[str]) -> None:
    assert file_paths(given) == paths


def test_todos_of_several_agents_are_one_list() -> None:
    claude = {"todos": [{"content": "A", "status": "in_progress", "activeForm": "Doing A"}]}
    assert todos_of(claude) == [{"content": "A", "status": "in_progress", "activeForm": "Doing A"}]
    opencode = {"todos": [{"content": "A", "status": "cancelled", "priority": "HIGH", "id": "1"}]}
    assert todos_of(opencode) == [{"content": "A", "status": "completed", "priority": "high"}]
    assert todos_of({"plan": [{"step": "A", "status": "inProgress"}]}) == [{"content": "A", "status": "in_progress"}]
    assert todos_of({"todos": [{"description": "A", "status": "done"}, "B", 3, {}]}) == [
        {"content": "A", "status": "completed"},
        {"content": "B", "status": "pending"},
    ]
    assert todos_of({"content": "- [x] A\n- [ ] B\ntext"}) == [
        {"content": "A", "status": "completed"},
        {"content": "B", "status": "pending"},
    ]
    assert todos_of('[{"content": "A"}]') == [{"content": "A", "status": "pending"}]


def test_a_written_file_with_check_boxes_is_not_a_todo_list() -> None:
    assert todos_of({"file_path": "README.md", "content": "- [x] A"}) == []


def test_questions_of_an_ask_tool_are_read() -> None:
    asked = {
        "questions": [
            {
                "question": "Which colour?",
                "header": "Colour",
                "multiSelect": True,
                "options": [{"label": "Blue", "description": "calm"}, "Red", 4],
            },
            "And why?",
            {"header": "no question"},
        ]
    }
    assert questions_of("AskUserQuestion", asked) == [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [{"label": "Blue", "description": "calm"}, {"label": "Red", "description": ""}],
            "multiSelect": True,
        },
        {"question": "And why?", "header": "", "options": [], "multiSelect": False},
    ]
    assert questions_of("ask_user", {"question": "Go on?"})[0]["question"] == "Go on?"
    assert questions_of("Bash", asked) == []


@pytest.mark.parametrize("mode", ["plan", "Plan", "plan-mode", "https://agents.example/modes#plan", "x/plan"])
def test_plan_modes_are_known(mode: str) -> None:
    assert is_plan_mode(mode)


@pytest.mark.parametrize("mode", ["default", "planner-off", "acceptEdits", "explain", "", None, "#plan#agent"])
def test_other_modes_are_not_plan_modes(mode: str | None) -> None:
    assert not is_plan_mode(mode)


# -- paths --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "workspace", "shown"),
    [
        ("/work/a/src/x.py", "/work/a", "src/x.py"),
        ("/work/a/src/x.py", "/work/a/", "src/x.py"),
        ("/work/a", "/work/a", "."),
        ("/work/ab/src/x.py", "/work/a", "ab/src/x.py"),
        ("/work/a/../b/x.py", "/work/a", "work/b/x.py"),
        ("/x.py", "/", "x.py"),
        (f"{SANDBOX}/outputs/web/app/page.tsx", None, "outputs/web/app/page.tsx"),
        ("/srv/sessions/5f1d3c2b-0000-4000-8000-00000000000b/a.txt", None, "a.txt"),
        ("/path/to/file.tsx", None, "path/to/file.tsx"),
        ("/one/two/three/four.tsx", None, "two/three/four.tsx"),
        ("src/a/b/c/d.py", None, "src/a/b/c/d.py"),
        ("C:\\work\\a\\src\\x.py", "C:\\work\\a", "src/x.py"),
        ("", "/work", ""),
        (None, None, ""),
    ],
)
def test_a_path_is_shown_from_where_people_are(path: str | None, workspace: str | None, shown: str) -> None:
    assert relative_path(path, workspace) == shown


def test_paths_in_text_lose_the_workspace_and_nothing_else() -> None:
    text = "Edited /work/a/x.py, not /work/ab/y, in /work/a\nsee '/x/work/a/z' and /etc/passwd"
    assert (
        relative_paths_in_text(text, "/work/a")
        == "Edited x.py, not /work/ab/y, in .\nsee '/x/work/a/z' and /etc/passwd"
    )


def test_paths_in_text_lose_the_sandbox() -> None:
    assert relative_paths_in_text(f"M {SANDBOX}/a/b.ts (path={SANDBOX}/c)") == "M a/b.ts (path=c)"
    assert relative_paths_in_text("no sessions/here") == "no sessions/here"


def test_long_runs_of_blanks_are_read_in_linear_time() -> None:
    blank = "\n" * 100_000 + " " * 100_000
    assert file_paths({"patchText": f"{blank}\n*** Add File: a{' ' * 100_000}b"}) == [f"a{' ' * 100_000}b"]
    assert todos_of({"content": f"{blank}\n- [ ] a{' ' * 100_000}b"})[0]["content"].endswith("b")
    assert identify(title=blank).how == "none"


def test_long_text_of_slashes_is_read_in_linear_time() -> None:
    text = "/sessions/" * 20_000
    assert relative_paths_in_text(text, "/work") == text


def test_a_command_of_several_lines_is_described_by_its_first() -> None:
    assert describe_tool_call("Bash", {"command": "cat <<E\nx\nE"}) == "Run: cat <<E …"
    assert describe_tool_call("Bash", {"command": "ls\n"}) == "Run: ls"
