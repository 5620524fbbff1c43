"""Chunks that are a piece of text and nothing else, as nearly all updates are, by types that have room for no more.

They are read in half the time that the schema's own take. Whatever has anything besides, or lacks anything, does not
fit and goes the long way: what is made of an update must not depend on how many come at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

__all__ = ["PIECES", "decode_pieces"]


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
