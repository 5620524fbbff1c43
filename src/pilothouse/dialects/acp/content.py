"""Content blocks: ACP's on one side, those of unified messages on the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...acp import schema
from ...acp.lenient import Open, repair
from ...acp.model import to_wire
from ...acp.nesting import TOO_DEEP, is_deep
from ...model.errors import ValidationError
from ...model.records import (
    AudioContent,
    ImageContent,
    MessageContent,
    OtherContent,
    ResourceContent,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from ...model.session import sound

__all__ = ["as_blocks", "block_text", "to_block", "to_content"]


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
