"""What the input of a tool call says: its command, files, todos and questions."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.model.tools import (
    command_text,
    describe_tool_call,
    file_paths,
    identify,
    is_plan_mode,
    questions_of,
    relative_path,
    relative_paths_in_text,
    todos_of,
)

SANDBOX = "/data/sandboxes/0b7c1f8e-0000-4000-8000-00000000000a/sessions/5f1d3c2b-0000-4000-8000-00000000000b"


# -- inputs -----------------------------------------------------------------------------------------------------------


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


# -- paths ------------------------------------------------------------------------------------------------------------


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
