"""What the client is told in a session: every update goes through here, and is remembered for `session/load`."""

from __future__ import annotations

import uuid

from ...acp import AgentMessageChunk, AgentThoughtChunk, Notice, SessionUpdate, text_block
from .host import Host
from .session import Session
from .wire import clean, sendable

__all__ = ["Speech"]


class Speech:
    """The voice of a turn."""

    def __init__(self, host: Host, session: Session) -> None:
        self._host = host
        self._session = session
        self._message: tuple[type, str] | None = None

    async def send(self, update: SessionUpdate, *, replay: SessionUpdate | None = None, passing: bool = False) -> None:
        """Send an update and remember it, or `replay` in its place; one that is `passing` is not remembered."""
        if not isinstance(update, (AgentMessageChunk, AgentThoughtChunk)):
            self._message = None
            update, replay = sendable(update), replay and sendable(replay)
        if not passing:
            self._session.journal.add(replay or update)
        await self._host.client.session_update(session_id=self._session.id, update=update)

    async def say(self, text: str | None) -> None:
        """A piece of the answer."""
        if text:
            await self.send(AgentMessageChunk(content=text_block(clean(text)), message_id=self._id(AgentMessageChunk)))

    async def think(self, text: str | None) -> None:
        """A piece of what the model thinks."""
        if text:
            await self.send(AgentThoughtChunk(content=text_block(clean(text)), message_id=self._id(AgentThoughtChunk)))

    async def notice(self, text: str) -> None:
        """Something about the turn itself: as a notice, or aside for a client that knows none."""
        if self._host.takes_notices:
            await self.send(Notice(severity="warning", title=text))
        else:
            await self.think(f"{text}\n")

    def _id(self, kind: type) -> str:
        """The id of the message that is being said; another one begins when something else came between."""
        if self._message is None or self._message[0] is not kind:
            self._message = (kind, f"message-{uuid.uuid4().hex[:12]}")
        return self._message[1]
