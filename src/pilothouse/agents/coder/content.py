"""What the user sends, as the model takes it: text, images, files and links.

A file that no model takes is put as words, or as its text where it has one: one prompt must not fail for it, and the
model must not believe that it has seen it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from mimetypes import guess_type

from pydantic_ai import BinaryContent
from pydantic_ai.messages import UserContent

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
from .attachments import left_out

__all__ = ["text_of", "user_content"]

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
