"""Typed views of a tool call's `rawInput` and `rawOutput`, one pair per documented tool; and artifacts.

A view is for reading: a field that is missing or odd is None, other agents' spellings of a field are understood, and
undocumented fields are in `extra`. JSON names are the documents', where inputs mix camelCase and snake_case. Artifacts
are the files of a session worth showing by themselves: images, pages, web applications, files. An application is one
artifact, its root; the files below it are not listed one by one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, ClassVar

import msgspec
from msgspec import Struct, field

from ...model.patches import PatchedFile, read_patched_files
from ...model.tools import canonical_name, command_text, file_paths, identify, patch_text, todos_of
from .shapes import ArtifactType, Names, Parts, Shape, read_shape

_IMAGES = frozenset({"png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "ico", "avif", "tif", "tiff"})
_NEXT_FILE = re.compile(
    r"(?:^|/)(?:next\.config\.(?:[cm]?js|ts)|(?:src/)?app/(?:page|layout)\.[jt]sx?|pages/_app\.[jt]sx?)$"
)
_WEB_FILE = re.compile(r"(?:^|/)vite\.config\.(?:[cm]?[jt]s)$|\.html?$")


def detect_artifact(path: object, mime: object = None, content: object = None) -> ArtifactType:
    """What a file is, by its name, and by its type and text where they are known."""
    name = path.replace("\\", "/") if isinstance(path, str) else ""
    kind = mime if isinstance(mime, str) else ""
    if kind.startswith("image/") or name.rpartition(".")[2].lower() in _IMAGES:
        return "image"
    if _NEXT_FILE.search(name) or (posixpath.basename(name) == "package.json" and _depends_on_next(content)):
        return "nextjs_app"
    if kind.partition(";")[0] == "text/html" or _WEB_FILE.search(name.lower()):
        return "web_app"
    return "file"


def _depends_on_next(content: object) -> bool:
    if not isinstance(content, str | bytes):
        return False
    try:
        package = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    wanted = package.get("dependencies") if isinstance(package, Mapping) else None
    return isinstance(wanted, Mapping) and "next" in wanted


def artifacts_of(changes: Iterable[object]) -> list[dict[str, Any]]:
    """The artifacts that some file changes made: records, events or JSON of them, or plain paths.

    Only files that are new make one. The id follows from the path, so the same file is the same artifact again.
    """
    made = [(path, detect_artifact(path, content=text)) for path, text in map(_created, changes) if path]
    roots = {_root(path) for path, kind in made if kind == "nextjs_app"}
    artifacts: dict[str, dict[str, Any]] = {}
    for path, kind in made:
        root = next((root for root in roots if root is not None and _below(path, root)), None)
        place = path if root is None else root
        artifacts.setdefault(place, _artifact(place or ".", kind if root is None else "nextjs_app"))
    return list(artifacts.values())


def artifact_id(path: str) -> str:
    """The id of what is made at a path."""
    return f"artifact-{blake2b(path.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def _artifact(path: str, kind: ArtifactType) -> dict[str, Any]:
    name = posixpath.basename(path.rstrip("/")) or path
    return {"id": artifact_id(path), "type": kind, "name": name, "path": path, "preview_url": None}


def _root(path: str) -> str:
    """The directory of the application that a file gives away."""
    folder = posixpath.dirname(path)
    if posixpath.basename(folder) in {"app", "pages"} and "config" not in posixpath.basename(path):
        folder = posixpath.dirname(folder)
        if posixpath.basename(folder) == "src":
            folder = posixpath.dirname(folder)
    return folder


def _below(path: str, root: str) -> bool:
    return not root or path == root or path.startswith(root.rstrip("/") + "/")


def _created(change: object) -> tuple[str, object]:
    """The path and the new text of a change that makes a file; no path for any other."""
    if isinstance(change, str):
        return change, None
    fields: Any = change if isinstance(change, Mapping) else _fields(change)
    path = next((fields[name] for name in ("path", "file_path", "filePath") if isinstance(fields.get(name), str)), "")
    how = next(
        (fields[name] for name in ("change_type", "changeType", "type") if isinstance(fields.get(name), str)), ""
    )
    return (path, fields.get("after")) if how in {"created", "add"} else ("", None)


def _fields(change: object) -> dict[str, Any]:
    return {name: getattr(change, name) for name in getattr(change, "__struct_fields__", ())}


# -- inputs -------------------------------------------------------------------------------------------------------


class GlobInput(Shape):
    ALIASES: ClassVar[Names] = {"pattern": ("glob", "glob_pattern")}

    pattern: str | None = None


class GrepInput(Shape):
    ALIASES: ClassVar[Names] = {"pattern": ("query", "regex"), "path": ("dir_path",)}

    pattern: str | None = None
    path: str | None = None


class ReadInput(Shape):
    file_path: str | None = None


class WriteInput(Shape):
    ALIASES: ClassVar[Names] = {"content": ("contents", "file_text", "text")}

    file_path: str | None = None
    content: str | None = None


class EditInput(Shape):
    ALIASES: ClassVar[Names] = {
        "old_string": ("oldString", "old_str", "oldText", "old_text", "before"),
        "new_string": ("newString", "new_str", "newText", "new_text", "after"),
    }

    file_path: str | None = None
    old_string: str | None = field(name="old_string", default=None)
    new_string: str | None = field(name="new_string", default=None)


class BashInput(Shape):
    command: str | None = None
    description: str | None = None


class TaskInput(Shape):
    ALIASES: ClassVar[Names] = {"subagent_type": ("subagentType", "agent_name")}

    prompt: str | None = None
    description: str | None = None
    subagent_type: str | None = field(name="subagent_type", default=None)


class TodoItem(Shape):
    content: str = ""
    status: str = "pending"
    active_form: str | None = None


class TodoWriteInput(Shape):
    todos: list[TodoItem] = field(default_factory=list)


class PatchInput(Shape):
    patch_text: str | None = None


# -- outputs ------------------------------------------------------------------------------------------------------


class SearchMetadata(Shape):
    ALIASES: ClassVar[Names] = {"count": ("matches",)}

    count: int | None = None
    truncated: bool | None = None


class SearchOutput(Shape):
    NESTED: ClassVar[Parts] = {"metadata": SearchMetadata}

    output: str | None = None
    metadata: SearchMetadata = field(default_factory=SearchMetadata)


class ReadMetadata(Shape):
    preview: str | None = None
    truncated: bool | None = None


class ReadOutput(Shape):
    NESTED: ClassVar[Parts] = {"metadata": ReadMetadata}

    output: str | None = None
    metadata: ReadMetadata = field(default_factory=ReadMetadata)


class BashMetadata(Shape):
    ALIASES: ClassVar[Names] = {"exit": ("exitCode", "exit_code")}

    output: str | None = None
    exit: int | None = None
    description: str | None = None
    truncated: bool | None = None


class BashOutput(Shape):
    NESTED: ClassVar[Parts] = {"metadata": BashMetadata}
    ALIASES: ClassVar[Names] = {"output": ("stdout", "formatted_output")}

    output: str | None = None
    metadata: BashMetadata = field(default_factory=BashMetadata)


class WriteMetadata(Shape):
    """Of write and edit; an edit has its diff in `extra`."""

    diagnostics: dict[str, Any] | None = None
    filepath: str | None = None
    exists: bool | None = None
    truncated: bool | None = None


class WriteOutput(Shape):
    NESTED: ClassVar[Parts] = {"metadata": WriteMetadata}

    output: str | None = None
    metadata: WriteMetadata = field(default_factory=WriteMetadata)


class EditOutput(WriteOutput):
    """As write's: the documents give edit no shape of its own."""


class TaskOutput(Shape):
    """Not documented; sub-agents answer with text."""

    output: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class TodoWriteMetadata(Shape):
    todos: list[TodoItem] = field(default_factory=list)
    truncated: bool | None = None


class TodoWriteOutput(Shape):
    NESTED: ClassVar[Parts] = {"metadata": TodoWriteMetadata}

    output: str | None = None
    metadata: TodoWriteMetadata = field(default_factory=TodoWriteMetadata)


class PatchMetadata(Shape):
    diff: str | None = None
    files: list[PatchedFile] = field(default_factory=list)
    diagnostics: dict[str, Any] | None = None
    truncated: bool | None = None


class PatchOutput(Shape):
    NESTED: ClassVar[Parts] = {"metadata": PatchMetadata}

    output: str | None = None
    metadata: PatchMetadata = field(default_factory=PatchMetadata)


class FailedOutput(Shape):
    """What a failed call has instead."""

    error: str | None = None


# -- making views -------------------------------------------------------------------------------------------------

_INPUTS: dict[str, type[Shape]] = {
    "Glob": GlobInput, "Grep": GrepInput, "Read": ReadInput, "Write": WriteInput, "Edit": EditInput, "Bash": BashInput,
    "Task": TaskInput, "TodoWrite": TodoWriteInput, "apply_patch": PatchInput,
}  # fmt: skip
_OUTPUTS: dict[str, type[Shape]] = {
    "Glob": SearchOutput, "Grep": SearchOutput, "Read": ReadOutput, "Write": WriteOutput, "Edit": EditOutput,
    "Bash": BashOutput, "Task": TaskOutput, "TodoWrite": TodoWriteOutput, "apply_patch": PatchOutput,
}  # fmt: skip


def _named(tool: object) -> str:
    return identify(tool).name if isinstance(tool, Mapping) else canonical_name(tool)


def input_view(tool: object, raw_input: object) -> Shape | None:
    """The input of a tool, named in any spelling or by its packet.

    None for a tool that is not documented or an input that is none.
    """
    cls = _INPUTS.get(_named(tool))
    if cls is None or not isinstance(raw_input, Mapping):
        return None
    raw = dict(raw_input)
    if cls is TodoWriteInput:
        return TodoWriteInput(todos=_todos(raw.pop("todos", raw_input)), extra=raw)
    found: dict[str, Any] = {}
    if cls is PatchInput:
        found["patchText"] = patch_text(raw)
    elif cls is BashInput:
        found["command"] = command_text(raw)
    elif cls in {ReadInput, WriteInput, EditInput} and not isinstance(raw.get("filePath"), str):
        found["filePath"] = next(iter(file_paths(raw)), None)
    return read_shape(cls, {**raw, **{name: value for name, value in found.items() if value is not None}})


def output_view(tool: object, raw_output: object) -> Shape | None:
    """The output of a tool; None for a tool that is not documented or an output that is none."""
    cls = _OUTPUTS.get(_named(tool))
    if isinstance(raw_output, str):
        raw_output = {"output": raw_output}
    if cls is None or not isinstance(raw_output, Mapping):
        return None
    error = raw_output.get("error")
    if isinstance(error, str) and "output" not in raw_output:
        return read_shape(FailedOutput, raw_output)
    metadata = raw_output.get("metadata")
    inner = dict(metadata) if isinstance(metadata, Mapping) else {}
    outer = {**raw_output, "metadata": inner}
    if cls is TodoWriteOutput:
        todos = _todos(inner.pop("todos", None)) or _todos(raw_output.get("output"))
        view = read_shape(TodoWriteOutput, outer)
        view.metadata.todos = todos
        return view
    if cls is PatchOutput:
        files = read_patched_files({"files": inner.pop("files", None)})
        patched = read_shape(PatchOutput, outer)
        patched.metadata.files = files
        return patched
    return read_shape(cls, outer)


def _todos(value: object) -> list[TodoItem]:
    return [
        TodoItem(
            content=todo["content"],
            status=todo["status"],
            active_form=todo.get("activeForm"),
            extra={"priority": todo["priority"]} if "priority" in todo else {},
        )
        for todo in todos_of(value)
    ]


# -- what a read shows --------------------------------------------------------------------------------------------

_NUMBERED = re.compile(r"(\s{0,8}\d+)(?:\| ?|→|\t)(.*)", re.DOTALL)
_END = re.compile(r"\s*\((?:End of file|File has more lines|Output truncated|Output capped|Showing lines)[^\n]*\)\s*")


class FileText(Struct, frozen=True, kw_only=True):
    """A file's text as a read tool showed it; `complete` when the tool did not say that there is more."""

    text: str
    first_line: int = 1
    complete: bool = True


def unwrap_read(output: object) -> FileText:
    """Take the `<file>` tags, the line numbers and the closing remark off a read's output.

    A number is taken off only where it goes on from the line before, so that a file which itself looks numbered
    loses nothing.
    """
    if not isinstance(output, str):
        return FileText(text="")
    body = output
    opened = re.match(r"\s*<(file|content)>\n?", body)
    if opened:
        body = body[opened.end() :]
        end = body.rfind(f"</{opened[1]}>")
        body = body[:end] if end >= 0 else body
    lines = body.split("\n")
    complete = True
    if opened and not lines[-1]:
        lines.pop()
    if opened and lines and _END.fullmatch(lines[-1]):
        complete = "End of file" in lines.pop()
        if lines and not lines[-1]:  # the remark is set off by a blank line
            lines.pop()
    first = _NUMBERED.fullmatch(lines[0]) if lines else None
    if first is None:
        return FileText(text="\n".join(lines), complete=complete)
    return FileText(text="\n".join(_unnumbered(lines)), first_line=int(first[1]), complete=complete)


def _unnumbered(lines: list[str]) -> list[str]:
    plain: list[str] = []
    last = -1
    for line in lines:
        match = _NUMBERED.fullmatch(line)
        if match and (last < 0 or int(match[1]) == last + 1):
            last = int(match[1])
            plain.append(match[2])
        else:
            plain.append(line)
    return plain
