"""Changes of files, as a tool's diffs, patch or input tell them.

A snippet is diffed as a snippet: its ends are not the file's. What the file was before is often not known; then there
is no diff, and no count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from . import patches
from .diffs import change_type, unified_diff
from .records import ChangeType, FileChange
from .tools import file_paths
from .tools.inputs import PATH_KEYS, paths_under

_OLD = ("old_string", "oldString", "old_str", "oldText", "old_text", "before")
_NEW = ("new_string", "newString", "new_str", "newText", "new_text", "after", "new_source", "newSource")
_WHOLE = ("content", "contents", "file_text", "fileText")
_PATCHED: Mapping[str, ChangeType] = {
    "add": "created", "update": "modified", "delete": "deleted", "move": "modified",
}  # fmt: skip
TEXT_LIMIT = 1_000_000
"""Characters of old and new text above which no diff is made."""


def diff_change(path: str, old: str | None, new: str | None, workspace: str | None = None) -> FileChange:
    """A change by the text before (None: there was no file) and after (None: there is none any more)."""
    kind = change_type(old, new)
    if len(old or "") + len(new or "") > TEXT_LIMIT:
        return FileChange(path=path, change_type=kind)
    if old and new and not old.endswith("\n") and not new.endswith("\n"):
        # most agents send the lines that change and not the whole file
        old, new = old + "\n", new + "\n"
    diff = unified_diff(old, new, _inside(path, workspace))
    return FileChange(path=path, change_type=kind, diff=diff.text, lines_added=diff.added, lines_removed=diff.removed)


def _inside(path: str, workspace: str | None) -> str:
    """A path as a diff names it: relative to the workspace, so that it can be applied there."""
    root = (workspace or "").rstrip("/") + "/"
    return path[len(root) :] if workspace and path.startswith(root) else path


def merged(changes: Iterable[FileChange]) -> list[FileChange]:
    """Several edits of one file are one change of it."""
    found: dict[str, FileChange] = {}
    for change in changes:
        first = found.setdefault(change.path, change)
        if first is not change:
            first.diff = (first.diff or "") + (change.diff or "")
            first.lines_added = (first.lines_added or 0) + (change.lines_added or 0)
            first.lines_removed = (first.lines_removed or 0) + (change.lines_removed or 0)
    return list(found.values())


# -- by what an input says ----------------------------------------------------------------------------------------


def edit_changes(raw: Any, workspace: str | None = None) -> list[FileChange]:
    """The edits of an input: text to be replaced, with what replaces it; also several of them (`edits`)."""
    paths = file_paths(raw)
    if not paths or not isinstance(raw, Mapping):
        return []
    found = find_replacements(raw)
    return merged(diff_change(one.path or paths[0], one.old or None, one.new, workspace) for one in found)


class Replacement(NamedTuple):
    """A text that replaces another one.

    `path` is the file if the item names one itself. `old` is None if the input does not show what is replaced, for
    example for an insertion at a line.
    """

    path: str | None
    old: str | None
    new: str
    replace_all: bool = False


def find_replacements(raw: Any) -> list[Replacement]:
    """The replacements of an input, or of the items of its list of edits."""
    if not isinstance(raw, Mapping):
        return []
    lists = (raw[key] for key in ("edits", "files", "changes", "operations") if isinstance(raw.get(key), list))
    items = next(lists, None)
    found = []
    for item in [raw] if items is None else items:
        if not isinstance(item, Mapping):
            continue
        old, new = _text(item, _OLD), _text(item, _NEW)
        if old is None and new is None:
            continue
        path = None if item is raw else next(paths_under(item, PATH_KEYS), None)
        everywhere = any(item.get(key) is True for key in ("replace_all", "replaceAll"))
        # a text that is taken out of a file leaves the file there
        found.append(Replacement(path, old, new or "", everywhere))
    return found


def content_of(raw: Any) -> str | None:
    """The whole text that an input gives a file."""
    return _text(raw, _WHOLE) if isinstance(raw, Mapping) else None


def _text(item: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((item[key] for key in keys if isinstance(item.get(key), str)), None)


# -- by patches ---------------------------------------------------------------------------------------------------


def patch_changes(text: str) -> list[FileChange]:
    """What a patch says it does; the files around its hunks are not known."""
    return [change for file in patches.parse_patch(text).files for change in _patched(file)]


def _patched(file: patches.FilePatch) -> Iterator[FileChange]:
    lines: list[str] = []
    for hunk in file.hunks:
        if len(file.hunks) > 1 or hunk.context:
            lines.append(" ".join(["@@", *hunk.context]))
        lines += (mark + text for mark, text in hunk.lines)
    yield FileChange(
        path=file.move_to or file.path,
        change_type=_PATCHED[file.kind],
        diff="".join(line + "\n" for line in lines) or None,
        lines_added=file.additions,
        lines_removed=file.deletions,
    )
    if file.move_to:
        yield FileChange(path=file.path, change_type="deleted")


def report_changes(metadata: Any) -> list[FileChange]:
    """What an apply_patch result tells of each file."""
    return [change for file in patches.read_patched_files(metadata) for change in _reported(file)]


def _reported(file: patches.PatchedFile) -> Iterator[FileChange]:
    path = file.file_path or file.relative_path
    yield FileChange(
        path=file.move_path or path,
        change_type=_PATCHED[file.type],
        diff=file.diff or unified_diff(file.before, file.after, file.relative_path or path).text or None,
        lines_added=file.additions,
        lines_removed=file.deletions,
    )
    if file.move_path:
        yield FileChange(path=path, change_type="deleted")
