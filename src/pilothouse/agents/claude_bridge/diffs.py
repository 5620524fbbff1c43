"""The change that a tool is about to make to a file, and the change that it made.

Before the tool runs only its input is known: the text to be written, the passages to be exchanged. The file as it is
now is read so that the user sees what would be lost: only files of the workspace, only short texts, never behind a link
that leads outside. Afterwards the change comes from the result, which has the original file and a patch.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...model.loose_json import count, items, mapping, text

WHOLE_FILE = 256 * 1024
"""Characters up to which a file is shown whole, before and after. Of a larger one only the changed passages are."""

Diff = dict[str, Any]


def _diff(path: str, old: str | None, new: str) -> Diff:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


# -- before -------------------------------------------------------------------------------------------------------


Look = Callable[[str], str | None]
"""Gives what is in a file now; None for one that is not there, or cannot be shown."""


def proposed(name: str, given: dict[str, Any], look: Look | None = None) -> list[Diff]:
    """What a tool would change, by its input; nothing for a tool that changes no file."""
    make = _PROPOSED.get(name)
    return make(given, look) if make is not None else []


def _write(given: dict[str, Any], look: Look | None) -> list[Diff]:
    path, new = text(given.get("file_path")), given.get("content")
    if not path or not isinstance(new, str):
        return []
    return [_diff(path, look(path) if look is not None else None, new)]


def _edit(given: dict[str, Any], look: Look | None) -> list[Diff]:
    path = text(given.get("file_path"))
    return _passages(path, [given])


def _multi_edit(given: dict[str, Any], look: Look | None) -> list[Diff]:
    return _passages(text(given.get("file_path")), items(given.get("edits")))


def _passages(path: str, edits: list[Any]) -> list[Diff]:
    pairs = [(mapping(edit).get("old_string"), mapping(edit).get("new_string")) for edit in edits]
    return [
        _diff(path, old or None, new) for old, new in pairs if path and isinstance(old, str) and isinstance(new, str)
    ]


def _notebook(given: dict[str, Any], look: Look | None) -> list[Diff]:
    """A cell; one that is deleted has nothing to show."""
    path, new = text(given.get("notebook_path")), given.get("new_source")
    is_known = path and isinstance(new, str) and given.get("edit_mode") != "delete"
    return [_diff(path, None, text(new))] if is_known else []


_PROPOSED = {"Write": _write, "Edit": _edit, "MultiEdit": _multi_edit, "NotebookEdit": _notebook}


# -- after --------------------------------------------------------------------------------------------------------


def made(result: dict[str, Any]) -> list[Diff]:
    """The change that a result tells of; nothing where it tells too little."""
    path = text(result.get("filePath")) or text(result.get("notebook_path"))
    if not path:
        return []
    old, new = _before(result), _after(result)
    if new is not None and "originalFile" in result and result["originalFile"] is None:
        return [_diff(path, None, new)]
    if old is not None and new is not None and len(old) + len(new) <= 2 * WHOLE_FILE:
        return [_diff(path, old, new)]
    hunks = [_sides(hunk) for hunk in _hunks(result)]
    return [_diff(path, before or None, after) for before, after in hunks]


def changed_line(result: dict[str, Any]) -> int | None:
    """The first line that a result says was changed."""
    hunks = _hunks(result)
    return count(hunks[0].get("newStart")) if hunks else None


def _before(result: dict[str, Any]) -> str | None:
    known = (result.get(key) for key in ("originalFile", "originalFileContents", "original_file"))
    return next((value for value in known if isinstance(value, str)), None)


def _after(result: dict[str, Any]) -> str | None:
    """The file as it became: as told, or by doing the same to the file as it was."""
    for key in ("updated_file", "content"):
        if isinstance(result.get(key), str):
            return text(result[key])
    old = _before(result)
    if old is None:
        return None
    edits = items(result.get("edits")) or [result]
    return _patched(old, _hunks(result)) or _exchanged(old, edits)


def _exchanged(old: str, edits: list[Any]) -> str | None:
    new = old
    for edit in map(mapping, edits):
        before = edit.get("oldString", edit.get("old_string"))
        after = edit.get("newString", edit.get("new_string"))
        if not isinstance(before, str) or not isinstance(after, str) or not before or before not in new:
            return None
        everywhere = edit.get("replaceAll", edit.get("replace_all")) is True
        new = new.replace(before, after) if everywhere else new.replace(before, after, 1)
    return new


def _hunks(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [hunk for hunk in items(result.get("structuredPatch")) if isinstance(hunk, dict)]


def _lines(hunk: dict[str, Any]) -> list[str]:
    return [line for line in items(hunk.get("lines")) if isinstance(line, str)]


def _sides(hunk: dict[str, Any]) -> tuple[str, str]:
    lines = _lines(hunk)
    before = [line[1:] for line in lines if line[:1] in (" ", "-")]
    after = [line[1:] for line in lines if line[:1] in (" ", "+")]
    return "\n".join(before), "\n".join(after)


def _patched(old: str, hunks: list[dict[str, Any]]) -> str | None:
    """The text with a patch applied; None where the patch does not fit it to the letter."""
    if not hunks:
        return None
    source, target, at = old.split("\n"), [], 0
    for hunk in hunks:
        start = (count(hunk.get("oldStart")) or 1) - 1
        before = [line[1:] for line in _lines(hunk) if line[:1] in (" ", "-")]
        if start < at or source[start : start + len(before)] != before:
            return None
        target += source[at:start]
        target += [line[1:] for line in _lines(hunk) if line[:1] in (" ", "+")]
        at = start + len(before)
    return "\n".join(target + source[at:])


_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a pipe must not keep us waiting


class Originals:
    """The files of a workspace."""

    def __init__(self, cwd: str) -> None:
        self._cwd = Path(cwd)

    def __call__(self, path: str) -> str | None:
        """What is in a file; None when that cannot be shown."""
        try:
            real = Path(os.path.realpath(self._cwd / path))
            if not real.is_relative_to(os.path.realpath(self._cwd)):
                return None
            with os.fdopen(os.open(real, _FLAGS), "rb") as file:
                is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                data = file.read(WHOLE_FILE + 1) if is_file else b"\xff"
            return data.decode() if len(data) <= WHOLE_FILE else None
        except (OSError, ValueError):  # it is not there, or no text
            return None
