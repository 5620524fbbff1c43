"""What was said and done in a session, as `session/load` replays it: a list of updates in their wire form.

A run of text is one update of it, so that a long answer costs its characters and not its pieces. Where the updates are
kept besides is up to whoever derives from this.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..acp import (
    AgentMessageChunk,
    AgentThoughtChunk,
    ContentBlock,
    SessionUpdate,
    TextContentBlock,
    UserMessageChunk,
    text_block,
)
from ..acp.model import encode
from .endings import endings

__all__ = ["Transcript"]

Chunk = AgentMessageChunk | AgentThoughtChunk


class Transcript:
    """The updates of one session; `store` is called with each that is new."""

    def __init__(self, updates: Sequence[bytes] = ()) -> None:
        self.updates = list(updates)
        self._run: Chunk | None = None
        self._texts: list[str] = []

    def add(self, update: SessionUpdate) -> None:
        if isinstance(update, Chunk) and isinstance(update.content, TextContentBlock):
            run = self._run
            if run is None or type(run) is not type(update) or run.message_id != update.message_id:
                self.settle()
                self._run = update
            self._texts.append(update.content.text)
            return
        self.settle()
        self.append(encode(update))

    def add_prompt(self, blocks: Sequence[ContentBlock], message_id: str) -> None:
        for block in blocks:
            self.add(UserMessageChunk(content=block, message_id=message_id))

    def settle(self) -> None:
        """Store the run of text that is still open. To be called when a turn ends."""
        run, self._run = self._run, None
        if run is not None:
            texts, self._texts = self._texts, []
            self.append(encode(type(run)(content=text_block("".join(texts)), message_id=run.message_id)))

    def end(self) -> None:
        """End what was begun and not ended. To be called when nothing of it can still be running."""
        self.settle()
        for update in endings(self.updates):
            self.append(update)

    def store(self, update: bytes) -> None:
        """Keep an update where it outlives the process, if there is such a place."""

    def append(self, update: bytes) -> None:
        """Add an update that is in its wire form already."""
        self.updates.append(update)
        self.store(update)
