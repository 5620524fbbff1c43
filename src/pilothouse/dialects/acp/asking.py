"""What an agent asks its user: the preview of an approval, the question of an elicitation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...model.changes import content_of
from ...model.diffs import DEFAULT_LIMIT
from ...model.records import ApprovalPreview, CommandPreview, DescriptionPreview, DiffPreview, FileChange
from ...model.tools import canonical_name, command_text, describe_tool_call, file_paths, relative_path
from .call import Call
from .content import block_text
from .outcomes import file_changes

__all__ = ["headline", "preview", "question"]

_LONGEST = 200
_WRITERS = frozenset({"Write", "Edit", "MultiEdit", "apply_patch"})


def headline(call: Call, tool_input: Any, workspace: str | None) -> str:
    """What a call is called where somebody decides on it: as its agent calls it, and with how many files it writes."""
    title = " ".join(call.title.split())
    if not title or title.casefold() == call.name.casefold():
        title = describe_tool_call(call.name, tool_input) if tool_input else call.name
    title = title if len(title) <= _LONGEST else title[: _LONGEST - 1] + "…"
    files = _files(call, tool_input, workspace)
    named = _named(title, files)
    if named == len(files) or len(files) < 2:
        return title
    return f"{title} and {len(files) - named} more" if named else f"{title} ({len(files)} files)"


def _files(call: Call, tool_input: Any, workspace: str | None) -> dict[str, str]:
    """The files that a call writes, as far as it is told: as people read them, and as they were written."""
    paths = [change.path for change in file_changes(call, "", workspace)]
    if canonical_name(call.name) in _WRITERS:
        paths += file_paths(tool_input)
    return {relative_path(path, workspace): path for path in reversed(paths)}


def _named(title: str, files: Mapping[str, str]) -> int:
    """How many of the files a title names; a name that two of them have counts for one."""
    found: set[str] = set()
    for shown, path in files.items():
        names = (name for name in (path, shown, path.rpartition("/")[2]) if name and _has_name(title, name))
        found.add(next(names, ""))
    return len(found - {""})


def _has_name(title: str, name: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)", title) is not None


def preview(call: Call, raw_input: Any, workspace: str | None) -> ApprovalPreview:
    """What the user should see before deciding: the diff, the command, or what is known."""
    command = command_text(raw_input)
    if command is not None and call.category not in ("file_write", "file_edit"):
        where = next((raw_input[key] for key in ("cwd", "workdir", "directory") if _text(raw_input, key)), workspace)
        return CommandPreview(command=command, working_dir=where or "")
    changes = file_changes(call, "", workspace)
    files = _files(call, raw_input, workspace)
    if any(change.diff for change in changes):
        told = {relative_path(change.path, workspace) for change in changes}
        changes += (FileChange(path=files[name], change_type="modified") for name in files if name not in told)
        first = next(change for change in changes if change.diff)
        return DiffPreview(path=first.path, diff=_sections(changes, workspace))
    given = raw_input.get("diff") if isinstance(raw_input, Mapping) else None
    path = next((raw_input[key] for key in ("filepath", "filePath", "path") if _text(raw_input, key)), "")
    if isinstance(given, str) and given:
        return DiffPreview(path=path, diff=given)
    text = block_text(call.content) or describe_tool_call(call.name, raw_input)
    listed = [f"- {name}" for name in reversed(files)] if len(files) > 1 else []
    seen = [TOO_LARGE] if any(change.change_type != "deleted" for change in changes) else []
    whole = content_of(raw_input)
    if seen and len(files) == 1 and whole is not None and len(whole) <= DEFAULT_LIMIT:
        seen = [WHOLE, whole]
    return DescriptionPreview(text="\n".join([text, *listed, *seen]))


WHOLE = "What is there now is not told. This would take its place:"
TOO_LARGE = "What would change is too large to be shown here, or was not told: nobody sees it before it is allowed."


def _sections(changes: list[FileChange], workspace: str | None) -> str:
    """One diff of several files: each has its names above it, also one whose changes are not known."""
    if len(changes) == 1:
        return changes[0].diff or ""
    return "".join(map(partial(_section, workspace), changes))


def _section(workspace: str | None, change: FileChange) -> str:
    diff = change.diff or ""
    if diff.startswith(("--- ", "diff ", "Index: ")):
        return diff if diff.endswith("\n") else diff + "\n"
    name = relative_path(change.path, workspace)
    old = "/dev/null" if change.change_type == "created" else f"a/{name}"
    new = "/dev/null" if change.change_type == "deleted" else f"b/{name}"
    return f"--- {old}\n+++ {new}\n{diff}{'' if diff.endswith(chr(10)) or not diff else chr(10)}"


def _text(raw: Any, key: str) -> bool:
    return isinstance(raw, Mapping) and isinstance(raw.get(key), str)


def question(params: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `interaction:question` that an elicitation gives."""
    form = params.get("requestedSchema")
    url = params.get("url")
    message = params.get("message")
    fields: dict[str, Any] = {
        "question": message if isinstance(message, str) else "",
        "form": form if isinstance(form, dict) else None,
        "url": url if isinstance(url, str) else None,
    }
    only = _only_property(form)
    if only:
        items = only.get("items")
        choices = _choices(only) or (_choices(items) if isinstance(items, Mapping) else None)
        default = only.get("default")
        fields["options"] = choices
        fields["multi_select"] = only.get("type") == "array"
        fields["default_value"] = default if isinstance(default, str) else None
    return fields


def _only_property(form: Any) -> Mapping[str, Any] | None:
    """The field of a form that has one; a larger form is not a question with options."""
    properties = form.get("properties") if isinstance(form, Mapping) else None
    if not isinstance(properties, Mapping) or len(properties) != 1:
        return None
    only = next(iter(properties.values()))
    return only if isinstance(only, Mapping) else None


def _choices(field: Mapping[str, Any]) -> list[str] | None:
    for key in ("enum", "oneOf", "anyOf"):
        values = field.get(key)
        if isinstance(values, list):
            named = [value.get("const") if isinstance(value, Mapping) else value for value in values]
            return [value for value in named if isinstance(value, str)] or None
    return None
