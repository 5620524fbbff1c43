"""What an agent asks its user: the preview of an approval, the question of an elicitation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model.records import ApprovalPreview, CommandPreview, DescriptionPreview, DiffPreview
from ...model.tools import command_text, describe_tool_call
from .call import Call
from .content import block_text
from .outcomes import file_changes

__all__ = ["preview", "question"]


def preview(call: Call, raw_input: Any, workspace: str | None) -> ApprovalPreview:
    """What the user should see before deciding: the diff, the command, or what is known."""
    command = command_text(raw_input)
    if command is not None and call.category not in ("file_write", "file_edit"):
        where = next((raw_input[key] for key in ("cwd", "workdir", "directory") if _text(raw_input, key)), workspace)
        return CommandPreview(command=command, working_dir=where or "")
    changes = [change for change in file_changes(call, "", workspace) if change.diff]
    if changes:
        return DiffPreview(path=changes[0].path, diff="".join(change.diff or "" for change in changes))
    given = raw_input.get("diff") if isinstance(raw_input, Mapping) else None
    path = next((raw_input[key] for key in ("filepath", "filePath", "path") if _text(raw_input, key)), "")
    if isinstance(given, str) and given:
        return DiffPreview(path=path, diff=given)
    return DescriptionPreview(text=block_text(call.content) or describe_tool_call(call.name, raw_input))


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
