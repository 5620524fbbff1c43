"""A tool call as its client sees it: announced, in progress, over.

Every call that is announced must end. Each agent says in its own class when that is, and what leave it needs before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from ..acp import (
    ConnectionClosed,
    SessionUpdate,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    text_block,
    tool_content,
)
from ..acp.contrib import ToolCallTracker

PACE = 0.1
"""Seconds between two updates with what a call has streamed. Each has all of it."""


class Send(Protocol):
    """Tells the client of an update, and remembers it, or `replay` in its place, for `session/load`.

    What is `passing` is told and not remembered: something that says the same and more will follow.
    """

    async def __call__(
        self, update: SessionUpdate, *, replay: SessionUpdate | None = None, passing: bool = False
    ) -> None: ...


class ToolCall:
    """One call. `parent` is the call that it is a part of, where one works for another."""

    def __init__(self, tracker: ToolCallTracker, send: Send, name: str | None, parent: ToolCall | None) -> None:
        self.id = ""
        self.key = f"{id(self)}"
        """What the tracker knows it by."""
        self.status: ToolCallStatus = "pending"
        self._tracker = tracker
        self._tell = send
        self._name = name
        self._unsent: list[str] = []
        self._has_streamed = False
        self._sent_at = float("-inf")
        self._later: asyncio.Task[None] | None = None
        self._meta = {"pilothouse": {"parentToolCallId": parent.id}} if parent is not None else None

    @property
    def is_open(self) -> bool:
        return self.status in ("pending", "in_progress")

    async def announce(self, fields: dict[str, Any]) -> None:
        """Tell of the call for the first time."""
        start = self._tracker.start(self.key, status="pending", **fields)
        start.name, self.id = self._name, start.tool_call_id
        await self._send(start)

    async def show(self, **changes: Any) -> None:
        """Show more of the call, such as the diff it is about, before it is asked for."""
        await self._progress(changes)

    async def start(self, *, replay_content: Sequence[Any] | None = None, **changes: Any) -> None:
        """The work itself begins."""
        self.status = "in_progress"
        await self._progress(changes, replay_content)

    async def stream(self, text: str) -> None:
        """Add to the output shown while the call is running. It is shown in a moment, together with what follows."""
        if self.status != "in_progress":  # something left in the background may still be talking
            return
        self._unsent.append(text)
        wait = self._sent_at + PACE - asyncio.get_running_loop().time()
        if wait <= 0:
            await self._flush()
        elif self._later is None:
            self._later = asyncio.create_task(self._flush_after(wait))

    async def end(
        self, status: ToolCallStatus = "completed", *, replay_content: Sequence[Any] | None = None, **changes: Any
    ) -> None:
        """The call is over. `replay_content` is what a replay shows instead of things that no longer exist."""
        self.status = status
        if self._settle() and changes.get("content") is None:
            # of what was streamed nothing is remembered so far, and not all of it may have been told
            changes["content"] = list(self._tracker.view(self.key).content or ())
        await self._progress(changes, replay_content)
        self._tracker.forget(self.key)

    async def give_up(self, reason: str) -> None:
        """End the call as failed."""
        self._settle()
        # what the call has shown so far (a diff, a terminal) stays; the reason is added where it shows nothing
        shown = self._tracker.view(self.key).content
        content = None if shown else [tool_content(text_block(reason))]
        await self.end("failed", content=content, raw_output={"error": reason})

    async def _flush_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._later = None
        with suppress(ConnectionClosed):
            await self._flush()

    async def _flush(self) -> None:
        if self._unsent:
            self._sent_at = asyncio.get_running_loop().time()
            await self._send(self._streamed(), passing=True)

    def _settle(self) -> bool:
        """Take in what was streamed and not sent yet. Whether anything was ever streamed."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._unsent:
            self._streamed()
        return self._has_streamed

    def _streamed(self) -> ToolCallProgress:
        text, self._unsent = "".join(self._unsent), []
        self._has_streamed = True
        return self._tracker.append_stream_text(self.key, text)

    async def _progress(self, changes: dict[str, Any], replay_content: Sequence[Any] | None = None) -> None:
        given = {name: value for name, value in changes.items() if value is not None}
        progress = self._tracker.progress(self.key, status=self.status, **given)
        replay = None
        if replay_content is not None:
            replay = progress.model_copy(update={"content": list(replay_content), "field_meta": self._meta})
        await self._send(progress, replay=replay)

    async def _send(
        self,
        update: ToolCallStart | ToolCallProgress,
        *,
        replay: ToolCallProgress | None = None,
        passing: bool = False,
    ) -> None:
        update.field_meta = self._meta
        await self._tell(update, replay=replay, passing=passing)
