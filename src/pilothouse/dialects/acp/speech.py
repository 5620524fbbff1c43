"""Messages and thoughts: chunks in, `start`, `delta` and `complete` out.

A message is open from its first chunk until something else follows. What comes between chunks without being part of
the conversation (usage, modes, commands) does not end it, so that agents which report usage while they talk are not
cut into pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from ...acp import schema
from ...model.events import (
    DERIVED,
    CustomEvent,
    MessageCompleteEvent,
    MessageDeltaEvent,
    MessageStartEvent,
    SubAgentProgressEvent,
    ThinkingCompleteEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
)
from ...model.records import MessageContent, TextContent
from .call import parent_of
from .content import PIECES, to_content
from .stream import Stream

CHUNKS: dict[type, str] = {
    schema.AgentMessageChunk: "assistant",
    schema.UserMessageChunk: "user",
    schema.AgentThoughtChunk: "thought",
}
"""What is spoken by each kind of chunk: a message of a role, or a thought."""

MANY = 1_000
"""Pieces after which they are put together: a million short strings weigh ten times what their text does."""


class Speech:
    """At most one open message or thought."""

    def __init__(self, stream: Stream, prefix: str) -> None:
        self._stream = stream
        self._prefix = prefix
        self._count = 0
        self._ended: dict[str, int] = {}
        self._kind = ""
        self._id = ""
        self._given: str | None = None
        self._pieces: list[str | MessageContent] = []
        self._recent: list[str] = []
        self._echo = ""

    def deltas(self, chunks: Sequence[Any], sources: Sequence[bytes]) -> list[MessageDeltaEvent | ThinkingDeltaEvent]:
        """The events of chunks that go on with what is open, one of each, made without ceremony, with their sources;
        the first that does not is the end of it.

        Nearly every update of a session takes this way, so it does as little as can be for each.
        """
        if not self._all_go_on(chunks):
            chunks = list(takewhile(self._goes_on, chunks))
        if not chunks:
            return []
        texts = [chunk.content.text for chunk in chunks]
        self._recent += texts
        if len(self._recent) > MANY:
            self._settle()
        piece: Any = self._delta()  # a copy of it costs less than half of what another one would
        events = []
        for text, source in zip(texts, sources, strict=False):
            event = piece.__copy__()
            event.delta, event.source = text, source
            events.append(event)
        return events

    def _all_go_on(self, chunks: Sequence[Any]) -> bool:
        """Whether these are pieces of what is open and nothing else; one look at all of them."""
        kinds = {PIECES.get(type(chunk)) for chunk in chunks}
        return kinds == {self._kind} and {chunk.message_id for chunk in chunks} <= {None, self._given}

    def _goes_on(self, chunk: Any) -> bool:
        kind = PIECES.get(type(chunk))
        if kind is None:
            kind = CHUNKS[type(chunk)]
            if type(chunk.content) is not schema.TextContentBlock or chunk.field_meta is not None:
                return False
        return kind == self._kind and (chunk.message_id is None or chunk.message_id == self._given)

    def _delta(self) -> MessageDeltaEvent | ThinkingDeltaEvent:
        """A piece without its text."""
        stream = self._stream
        if self._kind == "thought":
            return ThinkingDeltaEvent(
                seq=0, session_id=stream.session_id, timestamp=stream.now, message_id=self._id, delta=""
            )
        return MessageDeltaEvent(
            seq=0,
            session_id=stream.session_id,
            timestamp=stream.now,
            message_id=self._id,
            role=self._kind,  # type: ignore[arg-type]  # a role, as it is no thought
            delta="",
        )

    def chunk(self, kind: str, chunk: Any) -> None:
        """Take in any chunk."""
        parent = parent_of(chunk.field_meta or {})
        if parent is not None:
            # a sub-agent's words are its own; mixed into the parent's they could not be told apart
            text = getattr(chunk.content, "text", None) or ""
            self._stream.emit(SubAgentProgressEvent, sub_agent_id=parent, message=text)
            return
        if kind == "user" and self._is_echo(chunk):
            return
        given = chunk.message_id
        if kind != self._kind or (given is not None and given != self._given):
            self._echo = ""
            self.close()
            self._open(kind, given)
        content = to_content(chunk.content)
        text = content.text if isinstance(content, TextContent) else ""
        if isinstance(content, TextContent):
            self._recent.append(text)
        else:
            self._settle()
            self._pieces.append(content)
        block = None if isinstance(content, TextContent) else content
        if kind == "thought":
            self._stream.emit(ThinkingDeltaEvent, message_id=self._id, delta=text, content=block)
        else:
            self._stream.emit(MessageDeltaEvent, message_id=self._id, role=kind, delta=text, content=block)

    def _is_echo(self, chunk: Any) -> bool:
        """Some agents say the prompt after the user; it is told already."""
        text = getattr(chunk.content, "text", None)
        if not text or not self._echo.startswith(text):
            return False
        self._echo = self._echo[len(text) :]
        self._stream.emit(CustomEvent, namespace="acp", event_name="prompt_echo", data={"text": text})
        return True

    def _open(self, kind: str, given: str | None) -> None:
        self._kind, self._given, self._id = kind, given, self._new_id(given)
        self._pieces = []
        if kind == "thought":
            self._stream.emit(ThinkingStartEvent, message_id=self._id)
        else:
            self._stream.emit(MessageStartEvent, message_id=self._id, role=kind)

    def _new_id(self, given: str | None) -> str:
        """The agent's own id, numbered when the same message goes on after something else."""
        if given is None:
            self._count += 1
            return f"{self._prefix}m{self._count}"
        part = self._ended.get(given, 0) + 1
        self._ended[given] = part
        return given if part == 1 else f"{given}.{part}"

    def spoken(self, message_ids: Iterable[str]) -> None:
        """These were told before."""
        for message_id in message_ids:
            self._ended.setdefault(message_id, 1)

    def close(self, stop_reason: str | None = None) -> None:
        """Complete what is open. Its chunks had sources, so whoever closes it, this adds nothing to what was sent."""
        if not self._kind:
            return
        before, self._stream.source = self._stream.source, DERIVED
        self._complete(stop_reason)
        self._stream.source = before

    def _settle(self) -> None:
        """Put the recent pieces together, each once: a long message is not copied again and again."""
        if self._recent:
            self._pieces.append("".join(self._recent))
            self._recent = []

    def _complete(self, stop_reason: str | None) -> None:
        kind, self._kind = self._kind, ""
        self._settle()
        pieces, self._pieces = self._pieces, []
        if kind == "thought":
            text = "".join(piece for piece in pieces if isinstance(piece, str))
            self._stream.emit(ThinkingCompleteEvent, message_id=self._id, content=text)
            return
        reason = stop_reason if kind == "assistant" else None
        self._stream.emit(
            MessageCompleteEvent, message_id=self._id, role=kind, content=_joined(pieces), stop_reason=reason
        )

    def say(self, kind: str, content: list[MessageContent], message_id: str | None) -> None:
        """A whole message at once."""
        self.close()
        self._echo = "".join(part.text for part in content if isinstance(part, TextContent))
        message_id = self._new_id(message_id)
        self._stream.emit(MessageStartEvent, message_id=message_id, role=kind)
        self._stream.emit(MessageCompleteEvent, message_id=message_id, role=kind, content=content)


def _joined(pieces: list[str | MessageContent]) -> list[MessageContent]:
    """Pieces in order, neighbouring text in one block."""
    content: list[MessageContent] = []
    texts: list[str] = []
    for piece in [*pieces, None]:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        text, texts = "".join(texts), []
        if text:
            content.append(TextContent(text=text))
        if piece is not None:
            content.append(piece)
    return content
