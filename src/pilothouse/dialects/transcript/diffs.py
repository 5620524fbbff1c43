"""What a call does to files, as diffs: told by its events, else computed from its input while it still runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...model.diffs import change_type, unified_diff
from ...model.patches import FilePatch, parse_patch
from ...model.records import ChangeType, FileChange, FileDiff
from ...model.session import ToolCall, line_counts
from ...model.tools import file_paths, patch_text, relative_path
from .entries import FileDiffView
from .limits import Limits, clip_lines

__all__ = ["diffs_of"]

_OLD = ("old_string", "oldString", "old_str", "oldText", "old_text", "before")
_NEW = ("new_string", "newString", "new_str", "newText", "new_text", "after", "new_source", "newSource")
_WHOLE = ("content", "contents", "file_text", "fileText")
_INPUT_LIMIT = 1_000_000
"""Characters of old and new text above which no diff is computed from an input."""


def diffs_of(tool: str, call: ToolCall, arguments: Any, workspace: str, limits: Limits) -> list[FileDiffView]:
    """One view for each change. A call that failed changed nothing, so only what its events told is shown."""
    changes = list(call.files)
    if not changes and isinstance(call.structured, FileDiff):
        told = call.structured
        changes = [FileChange(path=told.path, change_type=told.change_type, diff=told.diff)]
    if not changes and call.status not in ("failed", "cancelled"):
        changes = list(_intended(tool, call, arguments))
    return [_view(change, workspace, limits) for change in changes]


def _view(change: FileChange, workspace: str, limits: Limits) -> FileDiffView:
    added, removed = line_counts(change)
    diff, omitted = clip_lines(change.diff or "", limits.diff)
    return FileDiffView(
        path=change.path,
        display_path=relative_path(change.path, workspace),
        change_type=change.change_type,
        diff=diff,
        lines_added=added,
        lines_removed=removed,
        omitted=omitted,
    )


def _intended(tool: str, call: ToolCall, arguments: Any) -> Iterator[FileChange]:
    if call.category not in ("file_write", "file_edit") and call.kind != "edit":
        return
    patch = patch_text(arguments)
    if patch is not None:
        if len(patch) <= _INPUT_LIMIT:
            yield from map(_patched, parse_patch(patch).files)
        return
    paths = file_paths(arguments)
    if not paths or not isinstance(arguments, Mapping):
        return
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if isinstance(edit, Mapping):
            yield from _edited(tool, paths[0], edit)


def _edited(tool: str, path: str, edit: Mapping[str, Any]) -> Iterator[FileChange]:
    old, new = _text(edit, _OLD), _text(edit, _NEW)
    if new is None and old is None:
        new = _text(edit, _WHOLE) if tool == "Write" else None
    if (old is None and new is None) or len(old or "") + len(new or "") > _INPUT_LIMIT:
        return
    # a text that is taken out of a file leaves the file there, unlike `deleted`
    new = new or ""
    made = unified_diff(old, new, path)
    yield FileChange(
        path=path,
        change_type=change_type(old, new),
        diff=made.text,
        lines_added=made.added,
        lines_removed=made.removed,
    )


def _text(edit: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((edit[key] for key in keys if isinstance(edit.get(key), str)), None)


_KINDS: Mapping[str, ChangeType] = {"add": "created", "update": "modified", "move": "modified", "delete": "deleted"}


def _patched(file: FilePatch) -> FileChange:
    lines: list[str] = []
    for hunk in file.hunks:
        if len(file.hunks) > 1 or hunk.context:
            lines.append(" ".join(["@@", *hunk.context]))
        lines += (mark + text for mark, text in hunk.lines)
    return FileChange(
        path=file.move_to or file.path,
        change_type=_KINDS[file.kind],
        diff="".join(line + "\n" for line in lines),
        lines_added=file.additions,
        lines_removed=file.deletions,
    )
