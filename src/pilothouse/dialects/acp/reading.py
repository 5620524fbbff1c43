"""Reading what comes in any shape: JSON as bytes, dicts, schema objects, or none of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...acp import schema
from ...acp.lenient import repair
from ...acp.model import encode, to_wire
from ...model.errors import ValidationError
from ...model.records import EnvironmentModel, Option
from ...model.session import sound

__all__ = ["UNDECODABLE", "last_segment", "mapping", "model_of", "permission_of", "source_of", "string", "values_of"]

UNDECODABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def source_of(value: Any) -> bytes | None:
    """The JSON of a request or an answer, verbatim when it came as bytes."""
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, memoryview, msgspec.Raw)):
        return bytes(value)
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError):
        return None


def values_of(value: Any) -> Any:
    """JSON bytes, or Python values of any kind, as values that JSON can carry."""
    if isinstance(value, (bytes, bytearray, memoryview, msgspec.Raw)):
        try:
            return msgspec.json.decode(value)
        except UNDECODABLE:
            return bytes(value).decode(errors="replace")
    try:
        return sound(to_wire(value))
    except (TypeError, ValueError, RecursionError):
        return sound(repr(value))


def mapping(value: Any) -> dict[str, Any]:
    """The same where an object is expected; anything else is none."""
    values = values_of(value)
    return values if isinstance(values, dict) else {}


def string(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def last_segment(path: str) -> str:
    return path.rstrip("/\\").replace("\\", "/").rpartition("/")[2]


def model_of(setup: Mapping[str, Any]) -> EnvironmentModel | None:
    """The model a session starts with, if its agent says so."""
    models = setup.get("models")
    current = models.get("currentModelId") if isinstance(models, Mapping) else None
    options = setup.get("configOptions")
    for option in options if isinstance(options, list) else []:
        if isinstance(option, Mapping) and option.get("category") == "model":
            current = current or option.get("currentValue")
    return EnvironmentModel(id=current) if isinstance(current, str) else None


def permission_of(wire: dict[str, Any]) -> tuple[Any, list[Option]]:
    """The tool call and the options of a permission request, whatever shape they are in."""
    called = wire.get("toolCall")
    fields = called if isinstance(called, dict) else {}
    if not isinstance(fields.get("toolCallId"), str):
        fields = {**fields, "toolCallId": str(fields.get("toolCallId", ""))}
    try:
        asked, _ = repair(schema.ToolCallUpdate, fields, "toolCall")
    except (ValidationError, RecursionError):
        asked = schema.ToolCallUpdate(tool_call_id=fields["toolCallId"])
    offered = wire.get("options")
    options = [
        Option(option_id=string(item, "optionId"), name=string(item, "name"), kind=string(item, "kind"))
        for item in (offered if isinstance(offered, list) else [])
        if isinstance(item, Mapping)
    ]
    return asked, options
