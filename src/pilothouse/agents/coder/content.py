"""The content of a prompt, as the model takes it: text, images, files and links.

A file that the model does not take becomes its text if it has one, else a note: the prompt must not fail for it, and
the model must not believe that it has seen it. The whole conversation is sent with each request, so an attachment that
the model refuses is replaced, or it would end the session.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import replace
from mimetypes import guess_type
from typing import Any

from pydantic_ai import BinaryContent, ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart
from pydantic_ai.messages import UserContent, is_multi_modal_content

from ...acp import (
    AudioContentBlock,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    RequestError,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)


def about(attachment: Any) -> str:
    """Its type and its size."""
    if isinstance(attachment, BinaryContent):
        return f"type {attachment.media_type}, {len(attachment.data)} bytes"
    return f"type {attachment.media_type}"


def left_out(what: str, why: str = "the model's server did not take it") -> str:
    """What the model reads in the place of an attachment."""
    return f"[An attachment, {what}, was left out: {why}.]"


def last_answer(messages: Sequence[ModelMessage]) -> int:
    """How many messages there are up to the last answer of the model."""
    answers = [number for number, message in enumerate(messages, 1) if isinstance(message, ModelResponse)]
    return answers[-1] if answers else 0


def replaced(messages: Sequence[ModelMessage], since: int = 0) -> tuple[list[ModelMessage], list[Any]]:
    """The conversation with words for every attachment in the messages from `since` on, and these attachments."""
    found: list[Any] = []
    later = [_replaced(message, found) for message in messages[since:]]
    return [*messages[:since], *later], found


def _replaced(message: ModelMessage, found: list[Any]) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    count = len(found)
    parts: list[Any] = list(message.parts)
    for number, part in enumerate(parts):
        if isinstance(part, (UserPromptPart, ToolReturnPart)):
            parts[number] = replace(part, content=_words(part.content, found))
    return replace(message, parts=parts) if len(found) > count else message


def _words(content: Any, found: list[Any]) -> Any:
    if is_multi_modal_content(content):
        found.append(content)
        return left_out(about(content))
    if isinstance(content, (list, tuple)):
        return [_words(one, found) for one in content]
    if isinstance(content, dict):
        return {name: _words(one, found) for name, one in content.items()}
    return content


UNKNOWN = "application/octet-stream"
OFFICE = r"vnd\.openxmlformats-officedocument\."
SENDABLE = re.compile(
    r"(?:image|audio|video)/[\w.+-]+$"
    rf"|application/(?:pdf|msword|vnd\.ms-excel|{OFFICE}wordprocessingml\.document|{OFFICE}spreadsheetml\.sheet)$"
)
"""Types that some models take as they are. Whether this model does is told by its server."""


def text_of(blocks: Sequence[ContentBlock]) -> str:
    """What the user wrote."""
    return "".join(block.text for block in blocks if isinstance(block, TextContentBlock))


def user_content(blocks: Sequence[ContentBlock]) -> list[UserContent]:
    """The prompt as the model gets it, block by block. Raises RequestError for one that is empty or no base64."""
    content = [_content(block, number) for number, block in enumerate(blocks)]
    # some servers refuse a prompt without words, and with it every conversation that has one in it
    if not any(one.strip() if isinstance(one, str) else True for one in content):
        raise RequestError.invalid_params({"field": "prompt", "reason": "there is nothing in it"})
    return content


def _content(block: ContentBlock, number: int) -> UserContent:
    match block:
        case TextContentBlock():
            return block.text
        case ImageContentBlock() | AudioContentBlock():
            return _attached(_decoded(block.data, f"prompt[{number}].data"), block.mime_type, f"prompt[{number}]")
        case EmbeddedResourceContentBlock(resource=TextResourceContents() as file):
            return _file(file.uri, file.text)
        case EmbeddedResourceContentBlock(resource=BlobResourceContents() as file):
            data = _decoded(file.blob, f"prompt[{number}].resource.blob")
            return _attached(data, file.mime_type or _guessed(file.uri), file.uri)
        case ResourceContentBlock():
            about = f" ({block.description})" if block.description else ""
            return f"[{block.name}]({block.uri}){about}"
    raise RequestError.invalid_params({"field": f"prompt[{number}]", "reason": "no content that the agent can use"})


def _attached(data: bytes, kind: str | None, name: str) -> UserContent:
    """A file as it is, as its text, or as words about it: the first that a model can take."""
    kind = (kind or UNKNOWN).partition(";")[0].strip().lower()
    if SENDABLE.match(kind):
        return BinaryContent(data, media_type=kind)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return _file(name, text)
    return left_out(f"{name}, type {kind}, {len(data)} bytes", "models do not take this type")


def _guessed(uri: str) -> str | None:
    try:
        return guess_type(uri)[0]
    except ValueError:  # no address at all
        return None


def _file(uri: str, text: str) -> str:
    return f'<file uri="{uri}">\n{text}\n</file>'


def _decoded(data: str, field: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise RequestError.invalid_params({"field": field, "reason": f"no base64: {exc}"}) from exc
