"""What the preview of a request shows, and which members of the tool's input it does not show.

A user decides on the whole request. So every surface shows the members that the preview leaves out, except those that
only describe the call or limit it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .diffs import HUNK_HEADER, list_changed_lines
from .records import ApprovalPreview, CommandPreview, DiffPreview
from .tools.commands import (
    find_commands,
    find_other_texts,
    is_file_member,
    is_remark,
    is_significant_member,
    list_other_members,
    simplify_key,
)

__all__ = [
    "DiffSection",
    "find_root",
    "list_unshown_members",
    "list_unshown_of_questions",
    "split_command",
    "split_sections",
]

_PATHS = ("path", "paths", "file", "files", "filename", "uri")
_EDITS = ("edits", "changes")
# members of one edit besides its path and its texts
_EDIT_PARTS = frozenset({"add", "update", "delete", "type", "unifieddiff"})
# texts that are no part of a file
_PROSE = frozenset({"prompt", "message", "question"})
_ID = re.compile(r"[\w:.-]{1,80}")
# members of a question, and of one of its options
_QUESTION_TEXTS = ("question", "text", "prompt")
_QUESTION_OPTIONS = ("options", "choices", "follow_up")
_QUESTION = frozenset({"header", "multiselect", "multiple", "id", "type"})
_OPTION = frozenset({"label", "value", "text", "name", "id", "description"})
_NOTHING: tuple[Any, ...] = (None, "", False, [], {})


# -- diffs --------------------------------------------------------------------------------------------------------


class DiffSection(NamedTuple):
    """One file of a unified diff. Without `lines` its change is not shown. `path` is None before the first header."""

    path: str | None
    is_created: bool
    lines: list[str]
    """The hunk headers and what is below them."""


def split_sections(diff: str) -> list[DiffSection]:
    """The files of a diff. Lines of a hunk are counted: a removed `-- x` is not the name of a file."""
    sections: list[DiffSection] = []
    lines = diff.split("\n")
    if lines[-1] == "":
        lines.pop()
    old = new = index = 0
    is_counted = True
    while index < len(lines):
        line = lines[index]
        is_within = old > 0 or new > 0
        if not is_within and _is_header(lines, index, is_counted):
            before, after = line[4:], lines[index + 1][4:]
            path = re.sub(r"^[ab]/", "", before if after == "/dev/null" else after)
            sections.append(DiffSection(path, before == "/dev/null", []))
            is_counted = True
            index += 2
            continue
        if is_within:
            old -= line[:1] not in ("+", "\\")
            new -= line[:1] not in ("-", "\\")
        elif line.startswith("@@"):
            header = HUNK_HEADER.match(line)
            is_counted = header is not None
            old, new = (int(header[1] or 1), int(header[2] or 1)) if header is not None else (0, 0)
        if not sections:
            sections.append(DiffSection(None, False, []))
        sections[-1].lines.append(line)
        index += 1
    return sections


def _is_header(lines: list[str], index: int, is_counted: bool) -> bool:
    """Whether two lines are the names of a file. Within a hunk that does not say its length a hunk must follow them."""
    if not lines[index].startswith("--- ") or not "".join(lines[index + 1 : index + 2]).startswith("+++ "):
        return False
    return is_counted or "".join(lines[index + 2 : index + 3]).startswith("@@")


# -- members of an input ------------------------------------------------------------------------------------------


def list_unshown_members(raw: object, preview: ApprovalPreview | None, root: str | None = None) -> dict[str, Any]:
    """The members of an input that a preview of a command or a change does not show. `root` is the session's directory.

    For any other preview these are all members, except one that is the whole preview.
    """
    if not isinstance(raw, Mapping):
        return {}
    if isinstance(preview, CommandPreview):
        others = list_other_members(raw)
        moved = split_command(preview.command, raw)[1]
        return {str(key): value for key, value in raw.items() if str(key) in others or str(key) in moved}
    if isinstance(preview, DiffPreview):
        sections = split_sections(preview.diff)
        root = find_root(preview.path, sections) if root is None else root
        names = frozenset(
            _normalize(posixpath.join(root, path)) for path in (preview.path, *(one.path for one in sections)) if path
        )
        changed = [line[1:] for line in list_changed_lines(preview.diff)]
        return {str(key): value for key, value in raw.items() if not _is_in_diff(key, value, names, changed, root)}
    text = preview.text.strip() if preview is not None else ""
    return {str(key): value for key, value in raw.items() if not text or str(value).strip() != text}


def split_command(command: str, raw: object) -> tuple[str, frozenset[str]]:
    """The command of a preview without the texts below it that are members of the input, and those members."""
    if not isinstance(raw, Mapping):
        return command, frozenset()
    commands = find_commands(raw)
    if command == "\n".join(dict.fromkeys(one.text for one in commands)):
        return command, frozenset()
    texts = find_other_texts(raw, commands)
    listed = "\n".join(dict.fromkeys(f"{name}: {text}" for name, text in texts))
    if not listed or not (command == listed or command.endswith(f"\n{listed}")):
        return command, frozenset()
    wanted = set(texts)
    keys = {str(key) for key, value in raw.items() if not wanted.isdisjoint(find_other_texts({key: value}, commands))}
    return command[: -len(listed)].removesuffix("\n"), frozenset(keys)


def find_root(path: str, sections: list[DiffSection]) -> str:
    """The directory to which the names in a diff are relative, by the `path` of one of its files; "" if unknown."""
    names = [one.path for one in sections if one.path and path.endswith(f"/{one.path}")]
    return path[: -len(max(names, key=len))] if names else ""


def _is_in_diff(key: object, value: object, names: frozenset[str], changed: list[str], root: str) -> bool:
    """Whether a diff shows a member, or the member changes nothing."""
    name = simplify_key(key)
    if not is_significant_member(key, value):
        return True
    if name.endswith(_PATHS) or name in _EDITS:
        return all(_is_named(one, names, root) if isinstance(one, str) else _is_edit(one) for one in _items(value))
    if name.endswith("id") and isinstance(value, str) and _ID.fullmatch(value) is not None:
        return True
    if name == "replaceall":
        return isinstance(value, bool)
    # the hub makes the diff from the texts of an edit
    if is_file_member(key) and name not in _PROSE and not is_remark(key):
        return isinstance(value, str)
    return isinstance(value, str) and _are_among(value.split("\n"), changed)


def _items(value: Any) -> list[Any]:
    """The files or edits that a member lists; some agents key them by path."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else [value]


def _is_named(path: str, names: frozenset[str], root: str) -> bool:
    return _normalize(posixpath.join(root, path.removeprefix("file://"))) in names


def _is_edit(value: Any) -> bool:
    """Whether a value has only the texts of an edit, from which the hub makes the diff."""
    if not isinstance(value, Mapping):
        return not isinstance(value, list)
    return all(
        (is_file_member(key) or simplify_key(key) in _EDIT_PARTS) and _is_edit(one) for key, one in value.items()
    )


def _are_among(lines: list[str], changed: list[str]) -> bool:
    """Whether all lines with text are changed lines."""
    known = set(changed)
    return all(line in known for line in lines if line.strip())


def _normalize(path: str) -> str:
    normal = posixpath.normpath(path)
    return "/" + normal.lstrip("/") if normal.startswith("/") else normal


# -- questions ----------------------------------------------------------------------------------------------------


def list_unshown_of_questions(raw: object) -> dict[str, Any]:
    """The members of an input that are not the questions which a tool asks its user."""
    if not isinstance(raw, Mapping):
        return {}
    questions = raw.get("questions")
    if not isinstance(questions, list):
        return _list_odd_members(raw)
    others = {str(key): value for key, value in raw.items() if key != "questions" and value not in _NOTHING}
    odd = [_list_odd_members(one) if isinstance(one, Mapping) else {} for one in questions]
    return {**({"questions": [one for one in odd if one]} if any(odd) else {}), **others}


def _list_odd_members(question: Mapping[Any, Any]) -> dict[str, Any]:
    """The members of a question that are not part of it, such as a command."""
    text = next((key for key in _QUESTION_TEXTS if isinstance(question.get(key), str) and question[key]), None)
    odd: dict[str, Any] = {}
    for key, value in question.items():
        if key == text or value in _NOTHING or simplify_key(key) in _QUESTION:
            continue
        rest = _list_odd_options(value) if key in _QUESTION_OPTIONS and isinstance(value, list) else value
        if rest:
            odd[str(key)] = rest
    return odd


def _list_odd_options(options: list[Any]) -> list[dict[str, Any]]:
    rests = (
        {str(key): value for key, value in one.items() if simplify_key(key) not in _OPTION}
        for one in options
        if isinstance(one, Mapping)
    )
    return [rest for rest in rests if rest]
