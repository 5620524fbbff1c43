"""A tool's input and output as typed views, a read's plain text, and the artifacts a session made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.dialects.packets import FileText, artifacts_of, detect_artifact, input_view, output_view, unwrap_read
from pilothouse.dialects.packets.views import (
    BashInput,
    BashOutput,
    EditInput,
    FailedOutput,
    GlobInput,
    GrepInput,
    PatchInput,
    PatchOutput,
    ReadInput,
    ReadOutput,
    SearchOutput,
    TaskInput,
    TodoItem,
    TodoWriteInput,
    TodoWriteOutput,
    WriteInput,
    WriteOutput,
)
from pilothouse.model.patches import PatchedFile
from pilothouse.model.records import FileChange

GOLDEN = Path(__file__).parents[3] / "golden" / "packets.jsonl"
EXAMPLES = {line["example"]: line["json"] for line in map(json.loads, GOLDEN.read_text().splitlines())}


@pytest.mark.parametrize(
    ("tool", "raw", "view"),
    [
        ("glob", {"pattern": "**/*.py"}, GlobInput(pattern="**/*.py")),
        ("grep", {"pattern": "x", "path": "src"}, GrepInput(pattern="x", path="src")),
        ("read", {"filePath": "/a"}, ReadInput(file_path="/a")),
        ("Read", {"file_path": "/a"}, ReadInput(file_path="/a")),
        ("write", {"filePath": "/a", "content": "c"}, WriteInput(file_path="/a", content="c")),
        (
            "edit",
            {"filePath": "/a", "oldString": "x", "new_string": "y"},
            EditInput(file_path="/a", old_string="x", new_string="y"),
        ),
        ("bash", {"command": ["ls", "a b"], "description": "d"}, BashInput(command="ls 'a b'", description="d")),
        (
            "task",
            {"prompt": "p", "description": "d", "subagentType": "Plan"},
            TaskInput(prompt="p", description="d", subagent_type="Plan"),
        ),
        (
            "todowrite",
            {"todos": [{"content": "A", "status": "in_progress", "activeForm": "Doing A"}]},
            TodoWriteInput(todos=[TodoItem(content="A", status="in_progress", active_form="Doing A")]),
        ),
        ("apply_patch", {"patchText": "*** Begin Patch"}, PatchInput(patch_text="*** Begin Patch")),
        ("bash", {}, BashInput()),
        ("bash", {"command": 3}, BashInput(extra={"command": 3})),
        ("bash", "ls", None),
        ("unknown", {"command": "ls"}, None),
    ],
)
def test_an_input_is_read_by_its_tool(tool: str, raw: Any, view: Any) -> None:
    seen = input_view(tool, raw)
    if seen is not None:
        seen.extra = {key: value for key, value in seen.extra.items() if key != "file_path"}
    assert seen == view


def test_the_documents_outputs_are_read() -> None:
    bash = output_view("bash", EXAMPLES["bash completed"]["rawOutput"])
    assert isinstance(bash, BashOutput)
    assert (bash.metadata.exit, bash.metadata.truncated) == (0, None)
    assert bash.output == bash.metadata.output
    read = output_view("read", EXAMPLES["read completed"]["rawOutput"])
    assert isinstance(read, ReadOutput)
    assert read.metadata.truncated is False
    assert unwrap_read(read.output).text.startswith('import Image from "next/image";\n\nexport default')
    patch = output_view("apply_patch", EXAMPLES["patch: update"]["rawOutput"])
    assert isinstance(patch, PatchOutput)
    assert [(file.type, file.additions, file.deletions) for file in patch.metadata.files] == [("update", 16, 8)]
    new = output_view("apply_patch", EXAMPLES["patch: new file"]["rawOutput"])
    assert isinstance(new, PatchOutput)
    assert new.metadata.files == [PatchedFile(type="add", after="// new file content...", additions=230)]
    assert output_view("bash", EXAMPLES["bash rejected"]["rawOutput"]) == FailedOutput(
        error="Error: The user rejected permission to use this specific tool call."
    )


def test_other_outputs_are_read() -> None:
    search = output_view("grep", {"output": "a\nb", "metadata": {"matches": 2, "truncated": True}})
    assert isinstance(search, SearchOutput)
    assert (search.metadata.count, search.metadata.truncated) == (2, True)
    write = output_view("write", {"output": "ok", "metadata": {"filepath": "/a", "exists": False, "diagnostics": {}}})
    assert isinstance(write, WriteOutput)
    assert (write.metadata.filepath, write.metadata.exists) == ("/a", False)
    todos = output_view(
        "todowrite", {"output": '[{"content": "A", "status": "done"}]', "metadata": {"truncated": False}}
    )
    assert isinstance(todos, TodoWriteOutput)
    assert todos.metadata.todos == [TodoItem(content="A", status="completed")]
    plain = output_view("bash", "just text")
    assert isinstance(plain, BashOutput)
    assert plain.output == "just text"
    assert output_view("bash", None) is None
    assert output_view("unknown", {"output": "x"}) is None


TOOLS = ["glob", "grep", "read", "write", "edit", "bash", "task", "todowrite", "apply_patch"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["output", "files", "todos"]), inner),
    max_leaves=5,
)
KEYS = ["output", "metadata", "error", "files", "todos", "filePath", "command", "pattern", "patchText", "content"]


@settings(max_examples=200, deadline=None)
@given(tool=st.sampled_from(TOOLS), raw=VALUES | st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_no_input_or_output_makes_a_view_raise(tool: str, raw: Any) -> None:
    assert (input_view(tool, raw) is None) == (not isinstance(raw, dict))
    assert (output_view(tool, raw) is None) == (not isinstance(raw, dict | str))


# -- what a read shows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("<file>\n00001| a\n00002| b\n\n(End of file - total 2 lines)\n</file>", FileText(text="a\nb")),
        ("<file>\n00001| a\n00002| \n</file>", FileText(text="a\n")),
        (
            "<file>\n00010| a\n00011|   b\n\n(File has more lines. Use 'offset' to read beyond line 11)\n</file>",
            FileText(text="a\n  b", first_line=10, complete=False),
        ),
        ("<file>\n00001| a\n...\n</file>", FileText(text="a\n...")),
        ("     1\ta\n     2\tb", FileText(text="a\nb")),
        ("    12→a\n    13→b", FileText(text="a\nb", first_line=12)),
        ("plain\ntext\n", FileText(text="plain\ntext\n")),
        ("<file>\n00001| 2| x\n00002| 9| y\n</file>", FileText(text="2| x\n9| y")),
        ("", FileText(text="")),
        (None, FileText(text="")),
        (["x"], FileText(text="")),
    ],
)
def test_a_read_is_unwrapped_to_the_files_text(output: Any, shown: FileText) -> None:
    assert unwrap_read(output) == shown


@settings(max_examples=200, deadline=None)
@given(
    lines=st.lists(st.text(st.sampled_from("a1| (\t)<>/"), max_size=6), min_size=1, max_size=8),
    start=st.integers(1, 500),
)
def test_wrapping_and_unwrapping_gives_the_lines_back(lines: list[str], start: int) -> None:
    body = "\n".join(f"{number:05}| {line}" for number, line in enumerate(lines, start))
    shown = unwrap_read(f"<file>\n{body}\n\n(End of file - total {len(lines)} lines)\n</file>")
    assert shown == FileText(text="\n".join(lines), first_line=start)


# -- artifacts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "mime", "content", "kind"),
    [
        ("out/chart.PNG", None, None, "image"),
        ("logo.svg", None, None, "image"),
        ("blob", "image/webp", None, "image"),
        ("web/next.config.mjs", None, None, "nextjs_app"),
        ("web/app/page.tsx", None, None, "nextjs_app"),
        ("web/src/app/layout.jsx", None, None, "nextjs_app"),
        ("web/package.json", None, '{"dependencies": {"next": "15"}}', "nextjs_app"),
        ("web/package.json", None, '{"dependencies": {"left-pad": "1"}}', "file"),
        ("package.json", None, "not json", "file"),
        ("site/index.html", None, None, "web_app"),
        ("page", "text/html; charset=utf-8", None, "web_app"),
        ("report.md", None, None, "file"),
        ("myapp/pages.txt", None, None, "file"),
        (None, 3, [], "file"),
    ],
)
def test_a_file_is_an_artifact_of_its_kind(path: Any, mime: Any, content: Any, kind: str) -> None:
    assert detect_artifact(path, mime, content) == kind


def test_an_application_is_one_artifact_and_its_files_are_not_shown_beside_it() -> None:
    changes = [
        FileChange(path="outputs/web/app/page.tsx", change_type="created"),
        FileChange(path="outputs/web/app/logo.png", change_type="created"),
        {"filePath": "outputs/web/package.json", "type": "add", "after": '{"dependencies": {"next": "15"}}'},
        PatchedFile(file_path="outputs/report.md", type="add"),
        FileChange(path="outputs/old.md", change_type="modified"),
        "outputs/website/x.txt",
        7,
    ]
    made = artifacts_of(changes)
    assert [(item["type"], item["path"], item["name"]) for item in made] == [
        ("nextjs_app", "outputs/web", "web"),
        ("file", "outputs/report.md", "report.md"),
        ("file", "outputs/website/x.txt", "x.txt"),
    ]
    assert all(item["preview_url"] is None for item in made)


def test_the_same_file_is_the_same_artifact_again() -> None:
    [first] = artifacts_of(["a.png", "a.png"])
    [second] = artifacts_of(["a.png"])
    [other] = artifacts_of(["b.png"])
    assert first == second
    assert first["id"] != other["id"]


def test_a_view_may_be_asked_for_by_the_packet() -> None:
    packet = {"title": "Success. Updated the following files:\nM a", "kind": "other", "rawInput": {"patchText": "x"}}
    view = input_view(packet, packet["rawInput"])
    assert getattr(view, "patch_text", None) == "x"
