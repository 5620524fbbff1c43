"""A prompt of the client as a line for the CLI: the protocol's content blocks in the API's shape.

Text that is alone stays a plain string: only so does the CLI recognise a slash command in every version.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from ...acp.model import to_wire
from .reading import mapping, text

__all__ = ["model_asked_for", "prompt_content"]

Block = dict[str, Any]
_MODEL = re.compile(r"\s*/model\s+(\S+)\s*\Z")


def prompt_content(prompt: Any) -> str | list[Block]:
    """What the `content` of a user line is for a prompt: text, or a list of blocks, decoded or as objects."""
    if isinstance(prompt, str):
        return prompt
    wire = to_wire(prompt)
    found = [made for block in (wire if isinstance(wire, list) else [wire]) for made in _blocks(mapping(block))]
    if len(found) == 1 and found[0]["type"] == "text":
        return text(found[0]["text"])
    return found


def model_asked_for(prompt: Any) -> str:
    """The model that a command of the CLI in a prompt asks for; "" for any other prompt."""
    content = prompt_content(prompt)
    found = _MODEL.match(content) if isinstance(content, str) else None
    return found[1] if found is not None else ""


def _blocks(block: Block) -> list[Block]:
    make = _MAKE.get(text(block.get("type")))
    return make(block) if make is not None else [_text(f"[{text(block.get('type')) or 'unknown'} content left out]")]


def _text(words: str) -> Block:
    return {"type": "text", "text": words}


def _words(block: Block) -> list[Block]:
    words = text(block.get("text"))
    return [_text(words)] if words else []


def _image(block: Block) -> list[Block]:
    data, uri = text(block.get("data")), text(block.get("uri"))
    kind = text(block.get("mimeType")) or text(block.get("mediaType")) or "image/png"
    if data:
        return [{"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}]
    if uri.startswith(("http://", "https://")):
        return [{"type": "image", "source": {"type": "url", "url": uri}}]
    return [_text(_mention(uri))] if uri else []


def _link(block: Block) -> list[Block]:
    return [_text(_mention(text(block.get("uri")), text(block.get("name"))))]


def _resource(block: Block) -> list[Block]:
    """An embedded resource: its place in the text, then what is in it."""
    resource = mapping(block.get("resource"))
    uri, kind, blob = text(resource.get("uri")), text(resource.get("mimeType")), text(resource.get("blob"))
    if "text" in resource:
        body = text(resource.get("text"))
        return [_text(_mention(uri)), _text(f'<context ref="{uri}">\n{body}\n</context>')]
    if blob and kind.startswith("image/"):
        return [{"type": "image", "source": {"type": "base64", "media_type": kind, "data": blob}}]
    if blob and kind == "application/pdf":
        return [{"type": "document", "source": {"type": "base64", "media_type": kind, "data": blob}}]
    return [_text(_mention(uri))]


def _mention(uri: str, name: str = "") -> str:
    """A file as the CLI's users name one, which makes it read the file; anything else by its address."""
    if uri.startswith("file:"):
        path = uri[len("file:") :].split("#", maxsplit=1)[0]
        # after two slashes comes the name of a machine, nearly always left out
        return f"@{unquote(path if not path.startswith('//') else path[path.find('/', 2) :])}"
    if uri.startswith("/"):
        return f"@{uri}"
    return f"[{name}]({uri})" if name and name != uri else uri or name or "[nothing]"


_MAKE: dict[str, Callable[[Block], list[Block]]] = {
    "text": _words,
    "image": _image,
    "resource_link": _link,
    "resource": _resource,
}
