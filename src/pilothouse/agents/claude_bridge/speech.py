"""Text and thinking: streamed by token, and repeated whole by the `assistant` line that follows.

Only the part of the whole that was not streamed is forwarded. Both are matched by their content: ids differ behind
gateways, an interrupted API call starts over, and without partial messages nothing is streamed. When the CLI compacts a
conversation, it writes some messages again under the same ids; these are skipped.
"""

from __future__ import annotations

from typing import Any

from ...model.loose_json import items, mapping, text
from .actions import Outbox

REMEMBERED = 2000
"""Messages that are still known; what is kept of a conversation are the last ones."""


class Repeats:
    """The messages of a session so far."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def take(self, uuid: str | None) -> bool:
        """One more message; whether it is one that was told before."""
        if not uuid:
            return False
        is_known = uuid in self._known
        self._keep(uuid)
        return is_known

    def kept(self, metadata: dict[str, Any]) -> None:
        """A conversation was shortened: what the CLI says that it kept was told, by it or by one that ran before."""
        for uuid in items(mapping(metadata.get("preserved_messages")).get("uuids"))[-REMEMBERED:]:
            if text(uuid):
                self._keep(uuid)

    def _keep(self, uuid: str) -> None:
        self._known.pop(uuid, None)  # the latest stay longest
        self._known[uuid] = None
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]


_CHUNKS = {"text": "agent_message_chunk", "thinking": "agent_thought_chunk"}
_DELTAS = {"text_delta": ("text", "text"), "thinking_delta": ("thinking", "thinking")}
WITHHELD = "(The model's reasoning is withheld here.)"


class Piece:
    """One block as far as it was streamed. `echo` is what an earlier try had shown and this one may repeat."""

    __slots__ = ("echo", "kind", "parts")

    def __init__(self, kind: str, echo: str = "") -> None:
        self.kind = kind
        self.parts: list[str] = []
        self.echo = echo

    def shown(self) -> str:
        """What the client has seen of it."""
        return self.echo or "".join(self.parts)

    def grow(self, more: str) -> str:
        """Take in a piece of text; what of it is new to the client."""
        self.parts.append(more)
        if not self.echo:
            return more
        whole = "".join(self.parts)
        if self.echo.startswith(whole):
            return ""
        echo, self.echo = self.echo, ""
        return whole.removeprefix(echo)


class Strand:
    """The message that one agent, the main one or a sub-agent, is streaming."""

    __slots__ = ("blocks", "broken", "message_id", "pieces")

    def __init__(self) -> None:
        self.message_id: str | None = None
        self.blocks: dict[Any, Piece] = {}
        self.pieces: list[Piece] = []
        self.broken: list[Piece] = []

    def begin(self, message_id: str | None) -> None:
        """Another message. What was streamed and never told whole belongs to a call of the API that failed."""
        self.message_id = message_id
        self.broken = [piece for piece in self.pieces if piece.shown()]
        self.blocks, self.pieces = {}, []

    def open(self, index: Any, kind: str) -> Piece:
        repeated = next((piece for piece in self.broken if piece.kind == kind), None)
        if repeated is not None:
            self.broken.remove(repeated)
        piece = Piece(kind, repeated.shown() if repeated else "")
        self.blocks[index] = piece
        self.pieces.append(piece)
        return piece

    def rest(self, kind: str, whole: str) -> tuple[str, bool]:
        """What the client has not seen of a block that is told whole, and whether any of it was streamed."""
        fitting = [piece for piece in (*self.pieces, *self.broken) if piece.kind == kind]
        piece = max(fitting, key=lambda piece: _likeness(piece.shown(), whole), default=None)
        if piece is None or not _likeness(piece.shown(), whole):
            return whole, False
        (self.pieces if piece in self.pieces else self.broken).remove(piece)
        return whole[len(piece.shown()) :], True


def _likeness(shown: str, whole: str) -> int:
    """How well what was shown fits a block; 0 for what is none of it. The beginning of another may fit, too, so the
    one that fits best is meant."""
    if shown and shown.strip() == whole.strip():
        return len(whole) + 1 + (shown == whole)
    return min(len(shown), len(whole)) if whole.startswith(shown) or shown.startswith(whole) else 0


class Speech:
    """What the model says, of every agent in the session."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._strands: dict[str | None, Strand] = {}
        self.said = False
        """Whether the main agent has said anything since `begin_turn`, or has no turn in which it could."""

    def begin_turn(self) -> None:
        self.said = False
        self._strands.pop(None, None)

    def end_turn(self) -> None:
        """What still comes of it is known by what was streamed before; its result has nothing more to say."""
        self.said = True

    def forget(self, parent: str) -> None:
        """A sub-agent has ended."""
        self._strands.pop(parent, None)

    def streamed(self, event: dict[str, Any], parent: str | None) -> None:
        """An event of the API's own stream."""
        kind = event.get("type")
        if kind == "content_block_delta":
            self._delta(event, parent)
        elif kind == "content_block_start":
            block = mapping(event.get("content_block"))
            name = text(block.get("type"))
            if name in _CHUNKS:
                piece = self._strand(parent).open(_index(event), name)
                self._say(name, piece.grow(text(block.get(name))), parent)
        elif kind == "message_start":
            self._strand(parent).begin(text(mapping(event.get("message")).get("id")) or None)

    def _delta(self, event: dict[str, Any], parent: str | None) -> None:
        delta = mapping(event.get("delta"))
        kind, key = _DELTAS.get(text(delta.get("type")), ("", ""))
        if not kind:
            return
        strand = self._strand(parent)
        piece = strand.blocks.get(_index(event))
        if piece is None or piece.kind != kind:
            piece = strand.open(_index(event), kind)
        self._say(kind, piece.grow(text(delta.get(key))), parent)

    def whole(self, kind: str, words: str, message_id: str | None, parent: str | None) -> None:
        """A block of an `assistant` line."""
        strand = self._strands.get(parent)
        if strand is None or not words:
            self._say(kind, words, parent, message_id)
            return
        rest, begun = strand.rest(kind, words)
        self._say(kind, rest, parent, strand.message_id if begun else message_id)

    def withheld(self, message_id: str | None, parent: str | None) -> None:
        """A block of thinking that only the model can read."""
        meta = {"redacted": True, **({"parentToolUseId": parent} if parent else {})}
        content = {"type": "text", "text": WITHHELD}
        self._outbox.update("agent_thought_chunk", meta, content=content, messageId=message_id)

    def tell(self, words: str) -> None:
        """Words of the CLI itself in answer to the user: the output of a command."""
        self._say("text", words, None)

    def _strand(self, parent: str | None) -> Strand:
        return self._strands.setdefault(parent, Strand())

    def _say(self, kind: str, words: str, parent: str | None, message_id: str | None = None) -> None:
        if not words:
            return
        strand = self._strands.get(parent)
        given = message_id or (strand.message_id if strand else None)
        meta = {"parentToolUseId": parent} if parent else None
        self.said = self.said or (parent is None and kind == "text")
        self._outbox.update(_CHUNKS[kind], meta, content={"type": "text", "text": words}, messageId=given)


def _index(event: dict[str, Any]) -> Any:
    index = event.get("index")
    return index if isinstance(index, (int, str)) else None
