"""Comparisons for the flag "acted without asking" alone: whether an act that an agent reports was permitted.

Agents report less than they ask for, in other forms: without directory and variables, with a shell around a command, a
snippet instead of a whole file, the text that a formatter made. These comparisons accept such differences, so they must
never be used to permit an act.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...model.acts import (
    CommandAct,
    CommandLine,
    FileEdit,
    apply_edits,
    command_from_text,
    core_of_edit,
    normalize_text,
)
from ...model.events import ApprovalRequestedEvent
from ...model.policy.calls import are_same_arguments
from ...model.tools.commands import is_act_member, is_program_input, is_significant_member, list_other_members
from ...model.tools.harmless import is_foreign_tool
from ...model.tools.names import known

_SHELL = re.compile(r"(?:/usr|/usr/local|/opt/homebrew)?/bin/(?:ba|z|da|fi)?sh")
_WORD = re.compile(r"\w+")
MOST_LINES, LONGEST_COMMAND = 10, 5_000
"""Lines and characters of an approved command in which a second form of it is looked for."""
LONGEST_TEXT = 200_000
"""Characters of a text whose words are compared."""

# -- commands --


def is_same_command(reported: CommandAct, approved: CommandAct, root: str) -> bool:
    """Whether a command is the approved one; an agent may leave out its directory and its variables."""
    line = _without_shell(reported.line)
    is_same_line = line == _without_shell(approved.line) or line in _both_forms(approved.line)
    is_same_directory = reported.cwd in (approved.cwd, os.path.realpath(root))
    return is_same_line and is_same_directory and reported.env in ((), approved.env)


def _without_shell(line: CommandLine) -> CommandLine:
    words = line.words
    if len(words) == 3 and words[1] in ("-c", "-lc") and _SHELL.fullmatch(words[0]):
        return command_from_text(words[2])
    return line


def _both_forms(line: CommandLine) -> Iterator[CommandLine]:
    """The command as its agent announced it and as it asked about it, if a request showed both, one after the other."""
    lines = line.text.split("\n", MOST_LINES) if len(line.text) <= LONGEST_COMMAND else []
    for count in range(1, len(lines)):
        yield _without_shell(command_from_text("\n".join(lines[:count])))
        yield _without_shell(command_from_text("\n".join(lines[count:])))


# -- files --


class ApprovedEdits(NamedTuple):
    """The edits of one file that were approved, or the text that the hub wrote.

    `path` is resolved, `shown` is its name in the request. `files` are the texts that the edits were shown against.
    """

    path: str
    shown: str
    edits: Sequence[FileEdit]
    files: Mapping[str, str | None]


class ReportedEdits(NamedTuple):
    """The edits of one file as a call shows them. With `has_diffs` a formatter may have changed their texts."""

    path: str
    shown: str
    edits: Sequence[FileEdit]
    has_diffs: bool
    root: str


def is_same_edit(reported: ReportedEdits, approved: ApprovedEdits) -> bool:
    """Whether a change of a file is the approved one. A side that shows no text can only be compared by its path."""
    if not _is_same_path(reported, approved):
        return False
    if all(edit.new is None for edit in reported.edits) or all(edit.new is None for edit in approved.edits):
        return True
    if set(map(core_of_edit, reported.edits)) <= {
        core_of_edit(one._replace(path=reported.path)) for one in approved.edits
    }:
        return True
    is_base_known = approved.path in approved.files
    base = approved.files.get(approved.path)
    results = [apply_edits(base, edits) for edits in (reported.edits, approved.edits)]
    if (is_base_known or _are_whole(reported.edits, approved.edits)) and None not in results:
        if results[0] == results[1]:
            return True
        if not reported.has_diffs:
            return False
    return _share_words(reported.edits, approved.edits, base)


def _is_same_path(reported: ReportedEdits, approved: ApprovedEdits) -> bool:
    """Whether both mean one file. A link that was approved may have been deleted or replaced by the act."""
    if _expand_home(reported.path, reported.root) == _expand_home(approved.path, reported.root):
        return True
    name = os.path.normpath(reported.shown)
    is_replaced = os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name)) == reported.path  # noqa: PTH118, PTH119, PTH120
    return is_replaced and os.path.normpath(approved.shown) == name


def _expand_home(path: str, root: str) -> str:
    """A path without `~`, which is below the session's directory after it was made absolute."""
    for place in (root, os.path.realpath(root)):
        if path.startswith(f"{place}/~/"):
            return os.path.expanduser(path.removeprefix(f"{place}/"))  # noqa: PTH111 - compared as text
    return path


def _are_whole(*several: Sequence[FileEdit]) -> bool:
    return all(not edit.old for edits in several for edit in edits)


def _share_words(reported: Sequence[FileEdit], approved: Sequence[FileEdit], base: str | None) -> bool:
    """Whether at least half of the words that a change adds or removes are among those of the approved change."""
    changed, known_words = _changed_words(reported, base), _changed_words(approved, base)
    if not changed or not known_words:
        changed = {word for edit in reported for word in _words(edit.new)}
        known_words = {word for edit in approved for word in _words(edit.new)}
    return len(changed & known_words) * 2 >= len(changed)


def _changed_words(edits: Sequence[FileEdit], base: str | None) -> set[str]:
    return {word for edit in edits for word in _words(edit.new) ^ _words(edit.old or base)}


def _words(text: str | None) -> set[str]:
    return set(_WORD.findall(normalize_text(text or "")[:LONGEST_TEXT].lower()))


# -- inputs --


def has_same_input(request: ApprovalRequestedEvent, name: str, tool_input: Mapping[str, Any]) -> bool:
    """Whether a call that shows no act repeats the approved arguments, and the approved name if that says anything."""
    is_named = is_foreign_tool(request.tool_name) or known(request.tool_name) is not None
    if is_foreign_tool(name) and is_named and request.tool_name != name:
        return False
    asked = request.tool_input
    repeated = {key: tool_input.get(key, value) for key, value in asked.items()}
    # agents that ask with the arguments show all of them; others ask with none
    more = (key for key in tool_input if key not in asked and is_significant_member(key, tool_input[key]))
    return are_same_arguments(repeated, asked) and not (asked and is_foreign_tool(name) and any(more))


def has_same_settings(request: ApprovalRequestedEvent | None, tool_input: Mapping[str, Any]) -> bool:
    """Whether a call has no other settings next to its act, no added switch, and no input that was not shown.

    Without a request (None) the hub carried out the act, so only its own arguments count.
    """
    asked: Mapping[str, Any] = request.tool_input if request is not None else {}
    is_same = all(
        tool_input.get(key, value) == value
        for key, value in asked.items()
        if isinstance(value, str | bool) and not is_act_member(key)
    )
    added = {key: value for key, value in list_other_members(tool_input).items() if key not in asked}
    has_switch = request is not None and any(isinstance(value, bool) for value in added.values())
    has_input = any(is_program_input(key) and tool_input[key] and key not in asked for key in tool_input)
    return is_same and not has_switch and not has_input
