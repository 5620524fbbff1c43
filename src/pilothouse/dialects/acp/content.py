"""Content of ACP messages: read from JSON of any shape, and converted to the blocks of unified messages and back.

Chunks that are a piece of text and nothing else, as nearly all updates are, have types of their own, which are decoded
in half the time of the schema's. A chunk with any other field, or without a field, takes the general path: the events
of an update must not depend on how many updates arrive at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from ...acp import schema
from ...acp.jsonrpc import TOO_DEEP, is_deep
from ...acp.lenient import Open, repair
from ...acp.model import encode, to_wire
from ...model.errors import ValidationError
from ...model.records import (
    AudioContent,
    EnvironmentModel,
    ImageContent,
    MessageContent,
    Option,
    OtherContent,
    ResourceContent,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from ...model.session import sound

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


class Text(Struct, forbid_unknown_fields=True, gc=False):
    """A text without anything that could be said of it. Its type is a field: as a tag it would not have to be there."""

    type: Literal["text"]
    text: str


class Piece(Struct, tag_field="sessionUpdate", forbid_unknown_fields=True, gc=False):
    content: Text
    message_id: str | None = field(default=None, name="messageId")


class MessagePiece(Piece, tag="agent_message_chunk", gc=False):
    pass


class UserPiece(Piece, tag="user_message_chunk", gc=False):
    pass


class ThoughtPiece(Piece, tag="agent_thought_chunk", gc=False):
    pass


PIECES: dict[type, str] = {MessagePiece: "assistant", UserPiece: "user", ThoughtPiece: "thought"}
"""What is spoken by each kind of piece."""

decode_pieces: Callable[[bytes], list[Any]] = msgspec.json.Decoder(list[MessagePiece | UserPiece | ThoughtPiece]).decode


def as_blocks(prompt: Any) -> list[Any]:
    """A prompt, given as text, a block or a list of blocks, as typed blocks; what cannot be read is kept as it is.

    Raises ValidationError for what is nested too deeply.
    """
    if isinstance(prompt, str):
        return [schema.TextContentBlock(text=sound(prompt))]
    return [_as_block(item) for item in (prompt if isinstance(prompt, (list, tuple)) else [prompt])]


def _as_block(item: Any) -> Any:
    if isinstance(item, str):
        return schema.TextContentBlock(text=sound(item))
    try:
        wire = to_wire(item)
    except RecursionError:
        raise ValidationError(TOO_DEEP, "content") from None
    except TypeError:
        return _unread(item)
    if is_deep(wire):
        raise ValidationError(TOO_DEEP, "content")
    try:
        return repair(schema.ContentBlock, sound(wire))[0]
    except (ValidationError, TypeError):
        return _unread(item)


def _unread(item: Any) -> Any:
    return Open(sound(item) if isinstance(item, dict) else {"type": "other", "value": repr(item)})


def to_content(block: Any) -> MessageContent:
    """An ACP block as part of a unified message."""
    match block:
        case schema.TextContentBlock():
            return TextContent(text=block.text)
        case schema.ImageContentBlock():
            return ImageContent(url=_data_url(block) if block.data else block.uri or "", mime_type=block.mime_type)
        case schema.AudioContentBlock():
            return AudioContent(url=_data_url(block), mime_type=block.mime_type)
        case schema.ResourceContentBlock():
            return ResourceContent(uri=block.uri, name=block.name, mime_type=block.mime_type)
        case schema.EmbeddedResourceContentBlock():
            inner = block.resource
            text = getattr(inner, "text", None)
            uri = getattr(inner, "uri", "")
            blob = getattr(inner, "blob", None)
            return ResourceContent(uri=uri, mime_type=getattr(inner, "mime_type", None), text=text, blob=blob)
    return OtherContent(block=to_wire(block))


def _data_url(block: Any) -> str:
    return f"data:{block.mime_type};base64,{block.data}"


def to_block(content: MessageContent) -> dict[str, Any]:
    """A part of a unified message as an ACP block."""
    match content:
        case TextContent():
            return {"type": "text", "text": content.text}
        case ImageContent() | AudioContent():
            return _media(content)
        case ResourceContent():
            return _resource(content)
        case ToolUseContent():
            return {"type": "text", "text": f"[{content.name}]"}
        case ToolResultContent():
            return {"type": "text", "text": content.content}
    block = content.block
    return block if isinstance(block, dict) and "type" in block else {"type": "text", "text": str(block)}


def _media(content: ImageContent | AudioContent) -> dict[str, Any]:
    kind = "image" if isinstance(content, ImageContent) else "audio"
    head, comma, data = content.url.partition(";base64,")
    if head.startswith("data:") and comma:
        return {"type": kind, "data": data, "mimeType": content.mime_type or head[5:]}
    name = content.url.rpartition("/")[2] or kind
    link = {"type": "resource_link", "uri": content.url, "name": name}
    return {**link, "mimeType": content.mime_type} if content.mime_type else link


def _resource(content: ResourceContent) -> dict[str, Any]:
    extra = {"mimeType": content.mime_type} if content.mime_type else {}
    if content.text is not None:
        return {"type": "resource", "resource": {"uri": content.uri, "text": content.text, **extra}}
    if content.blob is not None:
        return {"type": "resource", "resource": {"uri": content.uri, "blob": content.blob, **extra}}
    name = content.name or content.uri.rpartition("/")[2] or content.uri
    return {"type": "resource_link", "uri": content.uri, "name": name, **extra}


def block_text(items: Iterable[Any]) -> str:
    """The text that tool call content shows, without diffs and terminals."""
    texts = []
    for item in items:
        inner = item.content if isinstance(item, schema.ContentToolCallContent) else item
        text = getattr(inner, "text", None)
        if text is None and isinstance(inner, schema.EmbeddedResourceContentBlock):
            text = getattr(inner.resource, "text", None)
        if isinstance(text, str):
            texts.append(text)
    return "\n".join(texts)
