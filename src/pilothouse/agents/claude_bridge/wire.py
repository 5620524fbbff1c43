"""The lines that Claude Code's command line reads and writes in stream-json mode, typed; no I/O.

Each version of the CLI adds types and fields. So only the fields that are used are named, others are ignored, and a
line of an unknown type is an `Unknown` that keeps the whole object: a reader skips it and counts it. A field with an
unexpected value counts as absent, so that it does not cost the line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ...acp.errors import ValidationError
from ...acp.jsonrpc import with_whole_characters


class Wire(Struct, kw_only=True, omit_defaults=True):
    """Base of the lines and their parts; the CLI's names are snake_case already."""


# -- parts --------------------------------------------------------------------------------------------------------


class Text(Wire, tag_field="type", tag="text"):
    text: str


class Thinking(Wire, tag_field="type", tag="thinking"):
    thinking: str
    signature: str | None = None


class RedactedThinking(Wire, tag_field="type", tag="redacted_thinking"):
    data: str = ""


class ToolUse(Wire, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: Any


class ToolResult(Wire, tag_field="type", tag="tool_result"):
    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


Block: TypeAlias = Text | Thinking | RedactedThinking | ToolUse | ToolResult
_BLOCKS: Mapping[str, type[Wire]] = {
    str(cls.__struct_config__.tag): cls for cls in (Text, Thinking, RedactedThinking, ToolUse, ToolResult)
}


class Message(Wire):
    """A message of the conversation. Its content is text, as typed prompts are, or a list of blocks."""

    role: str
    content: Any
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None

    def blocks(self) -> list[Block | dict[str, Any]]:
        """The content as blocks; one of an unknown kind stays the object it is."""
        if isinstance(self.content, str):
            return [Text(text=self.content)]
        items = self.content if isinstance(self.content, list) else []
        return [_block(item) for item in items if isinstance(item, dict)]


def _block(item: dict[str, Any]) -> Any:
    kind = item.get("type")
    cls = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        return item
    try:
        return msgspec.convert(item, cls)
    except msgspec.ValidationError:
        return item


# -- lines --------------------------------------------------------------------------------------------------------


class Line(Wire, tag_field="type"):
    """Base of the lines."""


class System(Line, tag="system"):
    """News of the CLI itself. `init` and `hook_response` have types of their own; of others `fields` has everything."""

    subtype: str
    session_id: str | None = None
    fields: dict[str, Any] = {}


class Init(System, kw_only=True, tag="system"):
    """The start of a turn: what the CLI works with. Sent again at the start of every turn."""

    subtype: Literal["init"]
    tools: list[str] = []
    model: str | None = None
    cwd: str | None = None
    permissionMode: str | None = None  # noqa: N815  # the one camelCase name among the CLI's
    slash_commands: list[str] = []
    mcp_servers: list[Any] = []
    claude_code_version: str | None = None


class HookResponse(System, kw_only=True, tag="system"):
    subtype: Literal["hook_response"]
    hook_name: str
    hook_id: str | None = None
    hook_event: str | None = None
    output: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    outcome: str | None = None


class Assistant(Line, tag="assistant"):
    """A message of the model, often one block at a time. With an `error` it is the CLI that speaks of a failure."""

    message: Message
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    agent_id: str | None = None
    uuid: str | None = None
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None


class User(Line, tag="user"):
    """A prompt on the way in; on the way out, the results of tools and what the CLI says in the user's name."""

    message: Message
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    tool_use_result: Any = None
    tool_result_meta: list[Any] = []
    uuid: str | None = None
    isReplay: bool = False  # noqa: N815
    isSynthetic: bool = False  # noqa: N815


class StreamEvent(Line, tag="stream_event"):
    event: dict[str, Any]
    session_id: str | None = None
    parent_tool_use_id: str | None = None


class Result(Line, tag="result"):
    """The end of a turn. `is_error` may be true with any `subtype`: a failed API call ends with `success` too."""

    subtype: str
    session_id: str | None = None
    result: str | None = None
    duration_ms: float | None = None
    is_error: bool = False
    stop_reason: str | None = None
    terminal_reason: str | None = None
    num_turns: int | None = None
    total_cost_usd: float | None = None
    usage: dict[str, Any] | None = None
    modelUsage: dict[str, Any] = {}  # noqa: N815
    errors: list[Any] = []
    origin: dict[str, Any] | None = None
    queued_turn_count: int | None = None
    api_error: str | None = None
    api_error_status: int | None = None


class ControlRequest(Line, tag="control_request"):
    request_id: str
    request: dict[str, Any]


class ControlResponse(Line, tag="control_response"):
    response: dict[str, Any]


class ControlCancel(Line, tag="control_cancel_request"):
    request_id: str


class Unknown:
    """A line of a type, or of a shape, that is not known here."""

    __slots__ = ("raw", "reason")

    def __init__(self, raw: dict[str, Any], reason: str) -> None:
        self.raw = raw
        self.reason = reason

    def __repr__(self) -> str:
        return f"Unknown({self.raw.get('type')!r}, {self.reason!r})"


_LINES: Mapping[str, type[Line]] = {
    str(cls.__struct_config__.tag): cls
    for cls in (System, Assistant, User, StreamEvent, Result, ControlRequest, ControlResponse, ControlCancel)
}
_SYSTEM: Mapping[str, type[Line]] = {"init": Init, "hook_response": HookResponse}


def read_line(line: bytes | str) -> Line | Unknown:
    """One line of the CLI. Raises ValidationError for what is no JSON object."""
    try:
        raw = decoded(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        raise ValidationError(str(exc)) from None
    if not isinstance(raw, dict):
        raise ValidationError(f"Expected an object, got {type(raw).__name__}")
    return line_of(raw)


def decoded(line: bytes | str) -> Any:
    """A line as JSON. Text in it that the CLI has cut in the middle of a character, as it does with long output, costs
    that character and not the line. Raises msgspec.DecodeError, UnicodeError, RecursionError."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError):
        text = line if isinstance(line, str) else line.decode(errors="replace")
        return msgspec.json.decode(with_whole_characters(text.encode(errors="replace")))


def line_of(raw: dict[str, Any]) -> Line | Unknown:
    """A line that has been decoded."""
    kind, subtype = raw.get("type"), raw.get("subtype")
    cls = _LINES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        return Unknown(raw, "its type is not known")
    if cls is System and isinstance(subtype, str):
        cls = _SYSTEM.get(subtype, System)
    read = _convert(raw, cls)
    if type(read) is System:
        read.fields = raw
    return read


MENDED = 12
"""Fields of one line that may be wrong before the line itself is."""
_PLACE = re.compile(r" - at `\$((?:\.\w+)+)`$")


def _convert(raw: dict[str, Any], cls: type[Line]) -> Line | Unknown:
    mended, reason = raw, ""
    for _ in range(MENDED):
        try:
            return msgspec.convert(mended, cls)
        except msgspec.ValidationError as exc:
            reason = str(exc)
        place = _PLACE.search(reason)
        if place is None:
            break
        mended = deepcopy(raw) if mended is raw else mended
        if not _drop(mended, place[1].split(".")[1:]):
            break
    return Unknown(raw, reason)


def _drop(raw: dict[str, Any], path: list[str]) -> bool:
    """Remove the field at a path, so that its default takes its place."""
    node: Any = raw
    for key in path[:-1]:
        node = node.get(key) if isinstance(node, dict) else None
    if not isinstance(node, dict) or path[-1] not in node:
        return False
    del node[path[-1]]
    return True


_encode = msgspec.json.Encoder().encode


def encode_line(line: Line) -> bytes:
    """A line for the CLI's standard input, without its newline."""
    return _encode(line.fields if type(line) is System and line.fields else line)


def user_line(content: str | list[dict[str, Any]]) -> bytes:
    """A prompt: text, or blocks in the API's own shape."""
    return encode_line(User(message=Message(role="user", content=content)))


# -- the end of a turn --------------------------------------------------------------------------------------------

STOP_REASONS: Mapping[str, str] = {
    "success": "end_turn",
    "cancelled": "cancelled",
    "max_tokens": "max_tokens",
    "error_max_turns": "max_turn_requests",
    "error_max_budget_usd": "max_turn_requests",
}
"""ACP's stop reason for a result's `subtype`, before what else the result says is looked at."""


def stop_reason(result: Result) -> str | None:
    """The stop reason of a turn, or None for one that failed and whose error has to be told instead.

    What the model and the CLI say of the end wins over the subtype, which is `success` for refusals and for failed
    calls of the API as well, and never says that the user interrupted.
    """
    if result.stop_reason in ("refusal", "max_tokens"):
        return result.stop_reason
    if result.api_error == "max_output_tokens":
        return "max_tokens"
    if (result.terminal_reason or "").startswith("aborted"):
        return "cancelled"
    if result.subtype.startswith("error_max_"):
        return STOP_REASONS.get(result.subtype, "max_turn_requests")
    if failed(result):
        return None
    return STOP_REASONS.get(result.subtype)


def failed(result: Result) -> bool:
    """Whether a turn went wrong: some versions of the CLI say that by the subtype alone."""
    return result.is_error or result.subtype.startswith("error_")
