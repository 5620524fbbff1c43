"""What an agent asks its user: the preview of an approval, the question of an elicitation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ...acp import schema
from ...model.acts import FileEdit, apply_edits, normalize_text
from ...model.changes import content_of, diff_change, merged
from ...model.diffs import DEFAULT_LIMIT, list_changed_lines
from ...model.previews import quote_code, split_sections
from ...model.records import ApprovalPreview, CommandPreview, DescriptionPreview, DiffPreview, FileChange
from ...model.risk import Reason
from ...model.tools import canonical_name, describe_tool_call, exact_path, file_paths
from ..texts import shorten_middle
from .call import Call
from .content import block_text
from .effects import (
    NOT_SHOWN,
    FoundCommands,
    absolute_path,
    commands_of,
    edits_of,
    effects_of,
    format_line,
    list_other_edits,
    list_patched,
)
from .outcomes import file_changes

_LONGEST = 200
_MOST_LISTED = 5
"""Parts of a request's content that a note lists."""
_WRITERS = frozenset({"Write", "Edit", "MultiEdit", "apply_patch"})


def headline(call: Call, tool_input: Any, workspace: str | None) -> str:
    """The title of a request: the agent's title of the call, with the number of files that it does not name."""
    title = " ".join(call.title.split())
    if not title or title.casefold() == call.name.casefold():
        title = describe_tool_call(call.name, tool_input) if tool_input else call.name
    title = shorten_middle(title, _LONGEST)
    files = _files(call, tool_input, workspace)
    named = _named(title, files)
    if named == len(files) or len(files) < 2:
        return title
    return f"{title} and {len(files) - named} more" if named else f"{title} ({len(files)} files)"


def _files(call: Call, tool_input: Any, workspace: str | None) -> dict[str, str]:
    """The files that a call writes, as far as they are known: by the path that users see, the path as it was given."""
    paths = [change.path for change in file_changes(call, "", workspace)]
    if canonical_name(call.name) in _WRITERS:
        paths += file_paths(tool_input)
    paths += [edit.path for edit in list_patched(call)]
    return {_path_name(path, workspace): path for path in reversed(paths)}


def _path_name(path: str, workspace: str | None) -> str:
    """The path of a file as the user sees it; two names of one file are the same."""
    return exact_path(absolute_path(path, workspace or ""), workspace)


def _named(title: str, files: Mapping[str, str]) -> int:
    """How many of the files a title names; a name that two of them have counts for one."""
    found: set[str] = set()
    for shown, path in files.items():
        names = (name for name in (path, shown, path.rpartition("/")[2]) if name and _has_name(title, name))
        found.add(next(names, ""))
    return len(found - {""})


def _has_name(title: str, name: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)", title) is not None


def preview(
    call: Call,
    tool_input: Any,
    workspace: str | None,
    files: Mapping[str, str | None] | None = None,
    real_paths: Mapping[str, str] | None = None,
) -> tuple[ApprovalPreview, list[Reason]]:
    """The diff, command or description that the user sees before deciding, and reasons for a higher risk.

    `files` are the current texts by absolute path (None: no such file). Where they are known, the diff is computed from
    them, not from the text that the agent claims to replace. `real_paths` has each path that is a link to another.
    """
    found = commands_of(call)
    if found is not None and not edits_of(call):
        return _command_preview(found, workspace)
    changes, reasons = _compute_changes(call, workspace, files, real_paths or {}) if files is not None else ([], [])
    if found is not None:
        reasons.append(Reason("mismatch", "The request also contains a command."))
    changes = changes or file_changes(call, "", workspace)
    reasons += _explain_omissions(changes, workspace)
    named = _files(call, tool_input, workspace)
    if any(change.diff for change in changes):
        covered = {_path_name(change.path, workspace) for change in changes}
        changes += (FileChange(path=named[name], change_type="modified") for name in named if name not in covered)
        first = next(change for change in changes if change.diff)
        return DiffPreview(path=first.path, diff=_sections(changes, workspace)), reasons
    given = tool_input.get("diff") if isinstance(tool_input, Mapping) else None
    path = next((tool_input[key] for key in ("filepath", "filePath", "path") if _text(tool_input, key)), "")
    if isinstance(given, str) and given:
        return DiffPreview(path=path, diff=given), reasons
    text = block_text(call.content) or describe_tool_call(call.name, tool_input)
    listed = [f"- {name}" for name in reversed(named)] if len(named) > 1 else []
    seen = [TOO_LARGE] if any(change.change_type != "deleted" for change in changes) else []
    whole = content_of(tool_input)
    if seen and len(named) == 1 and whole is not None and len(whole) <= DEFAULT_LIMIT:
        seen = [WHOLE, whole]
    return DescriptionPreview(text="\n".join([text, *listed, *seen])), reasons


def describe_unshown_content(call: Call) -> list[str]:
    """A note on what the content of a call has besides text, diffs and terminals: links, pictures, binary files."""
    found: dict[str, None] = {}
    for item in call.content:
        inner = item.content if isinstance(item, schema.ContentToolCallContent) else None
        if isinstance(inner, schema.ResourceContentBlock):
            found[f"a link to {quote_code(shorten_middle(inner.uri, _LONGEST))}"] = None
        elif isinstance(inner, schema.EmbeddedResourceContentBlock) and not block_text([item]):
            found[f"the file {quote_code(shorten_middle(inner.resource.uri, _LONGEST))}"] = None
        elif isinstance(inner, schema.ImageContentBlock):
            found["a picture"] = None
        elif isinstance(inner, schema.AudioContentBlock):
            found["a sound"] = None
    listed = ", ".join([*found][:_MOST_LISTED]) + (" and more" if len(found) > _MOST_LISTED else "")
    return [f"Not shown here: the request also contains {listed}."] if found else []


def _command_preview(found: FoundCommands, workspace: str | None) -> tuple[ApprovalPreview, list[Reason]]:
    reasons: list[Reason] = []
    if found.source == "none" and not found.texts:
        reasons.append(Reason("hidden-command", NOT_SHOWN, "high"))
        return DescriptionPreview(text=NOT_SHOWN), reasons
    places = dict.fromkeys(command.cwd or workspace for command in found.commands)
    where = next(iter(places)) if len(places) == 1 else workspace
    lines = _command_lines(found, where)
    return CommandPreview(command="\n".join(dict.fromkeys(lines)), working_dir=where or ""), reasons


def _command_lines(found: FoundCommands, where: str | None) -> list[str]:
    """The commands, then the other texts as `member: text`."""
    texts = [f"{name}: {text}" for name, text in found.texts]
    return [*(format_line(command, where) for command in found.commands), *texts]


def _compute_changes(
    call: Call, workspace: str | None, files: Mapping[str, str | None], real_paths: Mapping[str, str]
) -> tuple[list[FileChange], list[Reason]]:
    """The changes that the edits of a call make to the current files, each file on its own, whatever its names are.

    The agent's own account is used only for a file that cannot be read or that its edits do not fit; a reason says so.
    """
    changes: list[FileChange] = []
    reasons: list[Reason] = []
    files_edited: dict[str, list[FileEdit]] = {}
    for edit in effects_of(call, workspace).edits:
        files_edited.setdefault(real_paths.get(edit.path, edit.path), []).append(edit)
    for several in files_edited.values():
        path = several[0].path
        name = _path_name(path, workspace)
        known = [edit for edit in several if edit.new is not None]
        if not known:
            changes.append(FileChange(path=path, change_type="deleted" if call.kind == "delete" else "modified"))
            continue
        base = files.get(path)
        result = apply_edits(base, several)
        if len({edit.path for edit in several}) > 1:
            names = ", ".join(dict.fromkeys(_path_name(edit.path, workspace) for edit in several))
            reasons.append(Reason("mismatch", f"These are names of one file: {names}."))
        if path in files and result is not None:
            if base is not None and any(edit.old is None for edit in several) and not _claims_no_old_text(call):
                reasons.append(
                    Reason("mismatch", f"The agent says that {name} is new, but it exists and would be replaced.")
                )
            changes.append(diff_change(path, None if base is None else normalize_text(base), result, workspace))
            reasons += _find_contradictions(call, path, result, workspace)
            continue
        why = "does not hold the text that the agent says it replaces" if path in files else "could not be read as text"
        reasons.append(Reason("mismatch", f"{name} {why}. The change is shown as the agent describes it."))
        changes += merged(diff_change(path, edit.old, edit.new, workspace) for edit in known)
    return changes, reasons


def _find_contradictions(call: Call, path: str, result: str, workspace: str | None) -> Iterator[Reason]:
    """A reason if the input of a call describes another result for a file than its diff does."""
    for edit in list_other_edits(call):
        if absolute_path(edit.path, workspace or "") != path or edit.new is None:
            continue
        new = normalize_text(edit.new)
        if new != result if edit.old is None else new not in result:
            name = _path_name(path, workspace)
            text = f"The request's input would change {name} in another way than shown: {shorten_middle(new, _LONGEST)}"
            yield Reason("mismatch", text)


def _explain_omissions(changes: list[FileChange], workspace: str | None) -> list[Reason]:
    """A reason for each file whose change is not shown as a whole."""
    reasons = []
    for change in changes:
        shown = len(list_changed_lines(change.diff or ""))
        whole = (change.lines_added or 0) + (change.lines_removed or 0)
        if change.change_type != "deleted" and (change.diff is None or shown < whole):
            name = _path_name(change.path, workspace)
            how = (
                f"{whole - shown:,} of {whole:,} changed lines of {name} are"
                if change.diff
                else f"The change of {name} is"
            )
            reasons.append(Reason("not-shown", f"{how} not shown."))
    return reasons


def _claims_no_old_text(call: Call) -> bool:
    """Whether a call has no diff, so that it claims nothing about the text that it replaces."""
    return not any(isinstance(item, schema.FileEditToolCallContent) for item in call.content)


WHOLE = "The current text is not known. The whole file would become:"
TOO_LARGE = "The change is too large to show, or the agent did not describe it: you would allow it unseen."


def _sections(changes: list[FileChange], workspace: str | None) -> str:
    """One diff of several files: each has its names above it, even if its changes are not known."""
    return "".join(map(partial(_section, workspace), changes))


def _section(workspace: str | None, change: FileChange) -> str:
    """The diff of one file below its name as the user sees it: the name of a file elsewhere keeps its first slash."""
    name = _path_name(change.path, workspace).replace("\n", "\\n").replace("\r", "\\r")
    old = "/dev/null" if change.change_type == "created" else f"a/{name}"
    new = "/dev/null" if change.change_type == "deleted" else f"b/{name}"
    parts = [section.lines for section in split_sections(change.diff or "")] or [[]]
    return "".join(f"{line}\n" for lines in parts for line in (f"--- {old}", f"+++ {new}", *lines))


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
