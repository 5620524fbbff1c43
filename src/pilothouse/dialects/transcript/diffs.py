"""What a call does to files, as diffs: told by its events, else computed from its input while it still runs."""

from __future__ import annotations

from typing import Any

from ...model.changes import TEXT_LIMIT, content_of, diff_change, edit_changes, patch_changes
from ...model.records import FileChange, FileDiff
from ...model.session import ToolCall, line_counts
from ...model.tools import file_paths, patch_text, relative_path
from ..texts import Limits, clip_lines
from .entries import FileDiffView

__all__ = ["diffs_of"]


def diffs_of(tool: str, call: ToolCall, arguments: Any, workspace: str, limits: Limits) -> list[FileDiffView]:
    """One view for each change. A call that failed changed nothing, so only what its events told is shown."""
    changes = list(call.files)
    if not changes and isinstance(call.structured, FileDiff):
        told = call.structured
        changes = [FileChange(path=told.path, change_type=told.change_type, diff=told.diff)]
    if not changes and call.status not in ("failed", "cancelled"):
        changes = _intended(tool, call, arguments, workspace)
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


def _intended(tool: str, call: ToolCall, arguments: Any, workspace: str) -> list[FileChange]:
    if call.category not in ("file_write", "file_edit") and call.kind != "edit":
        return []
    patch = patch_text(arguments)
    if patch is not None:
        return patch_changes(patch) if len(patch) <= TEXT_LIMIT else []
    edits = edit_changes(arguments, workspace)
    if edits:
        return edits
    paths, whole = file_paths(arguments), content_of(arguments)
    return [diff_change(paths[0], None, whole, workspace)] if tool == "Write" and paths and whole is not None else []
