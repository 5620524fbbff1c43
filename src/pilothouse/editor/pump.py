"""The bridge at work: bytes between stdio and the hub's socket, in whole lines, no faster than either side takes them.

Rules a change must not break: half a line is never passed on; nobody's bytes pile up here; the end of the editor is
the end of the bridge, and of nothing else. An editor that only closes its side and reads on gets its answers first.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from ..acp.errors import ConnectionClosed
from ..acp.framing import DEFAULT_LINE_LIMIT, LineFramer
from ..acp.transport import Link
from .bridge import Bridge, Line
from .hub_connection import NoHub, Reaching

HIGH_WATER = 1 << 20
"""Bytes that may wait for the editor before no more is read from the hub."""
HELD = 64 << 20
"""Bytes of requests that may wait for a hub before no more is read from the editor."""
LOOK = 1.0
"""Seconds between two looks for a hub while nobody needs one: it may come back by itself."""
SILENCE = 30.0
"""Seconds without a word from a hub that somebody waits for. It may have nothing to say for hours: so it is asked for a
word, and given up after as much again."""
EARLY = 10.0
"""Seconds: a hub that is gone before that, again and again, dies of what it is asked."""
LINGER, STEP = 10.0, 0.05
"""Seconds in which an editor that says nothing more is still answered, but for its prompts, which may take hours; and
between two looks whether it still reads."""
PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds before such a hub is tried again, the first time and at most."""


class HubConnection(asyncio.Protocol):
    """One connection to a hub. What is cut off in the middle of a line is dropped: it comes again."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._framer = LineFramer(2 * DEFAULT_LINE_LIMIT)  # what fits into an agent's line, fits with its seq
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard = 0
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard += len(data)
        if lines := self._framer.feed(data):
            self._pump.from_hub(lines)

    def pause_writing(self) -> None:
        self._pump.hub_is_full(True)

    def resume_writing(self) -> None:
        self._pump.hub_is_full(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


class Pump:
    """Runs a bridge until the editor leaves, or `leave` is called."""

    def __init__(self, bridge: Bridge, editor: Link, reaching: Reaching) -> None:
        self._bridge = bridge
        self._editor = editor
        self._reaching = reaching
        self._hub: HubConnection | None = None
        self._begun = asyncio.Event()
        self._wanted = asyncio.Event()
        self._left = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None
        self._lingering: asyncio.Task[None] | None = None
        self._is_held = False
        self._hub_is_full = False
        self._early = 0

    async def run(self) -> None:
        self._editor.start(self.from_editor, lambda error: self._linger())
        keeping = asyncio.create_task(self._keep(), name="keeping a hub")
        leaving = asyncio.create_task(self._left.wait())
        done, _ = await asyncio.wait((keeping, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (keeping, leaving, self._draining, self._lingering):
            if task is not None:
                task.cancel()
        if self._hub is not None:
            self._hub.transport.close()  # what was handed over still goes to the hub
            await asyncio.wait((self._hub.lost,), timeout=1.0)
        await self._editor.close()
        if keeping in done:
            keeping.result()

    def leave(self) -> None:
        """The editor is gone, or the bridge is told to go."""
        self._left.set()

    def _linger(self) -> None:
        self._lingering = asyncio.get_running_loop().create_task(self._answer_first(), name="answering an editor")

    async def _answer_first(self) -> None:
        """The editor says nothing more: leave when nothing is owed to it, or nobody is there to read it."""
        with contextlib.suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(LINGER):
                while self._bridge.owes:
                    self._editor.send(b"")  # raises when the other end is closed
                    await asyncio.sleep(STEP)
        self.leave()

    # -- lines --

    def from_editor(self, lines: Sequence[Line]) -> None:
        self._bridge.from_editor(lines)
        self._begun.set()
        self._flush()

    def from_hub(self, lines: Sequence[Line]) -> None:
        self._bridge.from_hub(lines)
        self._flush()

    def _flush(self) -> None:
        out, up = self._bridge.take()
        if out:
            self._show(out)
        if up and self._hub is not None:
            self._hub.transport.write(up)
        if self._bridge.wants_hub:
            self._wanted.set()
        self._pace_editor()

    def _show(self, out: bytes) -> None:
        try:
            self._editor.send(out)
        except ConnectionClosed:
            self.leave()
            return
        if self._editor.unsent > HIGH_WATER and self._draining is None and self._hub is not None:
            self._hub.transport.pause_reading()
            self._draining = asyncio.create_task(self._drain(self._hub), name="waiting for the editor")

    async def _drain(self, hub: HubConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self._editor.drain()
        self._draining = None
        if not hub.lost.done():
            hub.transport.resume_reading()

    def hub_is_full(self, is_full: bool) -> None:
        self._hub_is_full = is_full
        self._pace_editor()

    def _pace_editor(self) -> None:
        """Read from the editor only while there is room for what it says."""
        hold = self._hub_is_full or self._bridge.held_bytes > HELD
        if hold != self._is_held:
            self._is_held = hold
            (self._editor.pause if hold else self._editor.resume)()

    # -- the hub --

    async def _keep(self) -> None:
        """Have a hub while the editor needs one; look for one, and start none, while it does not."""
        await self._begun.wait()
        start = True
        while True:
            if self._draining is not None:
                await asyncio.wait((self._draining,))  # a hub lets go of those who take nothing, and would again
            self._wanted.clear()
            try:
                hub = await (self._reaching.get(self._connection) if start else self._reaching.find(self._connection))
                if hub is not None:
                    await self._use(hub)
                else:
                    self._bridge.nobody()
            except NoHub as exc:
                self._bridge.fail(exc.as_error())
            self._flush()
            if not self._bridge.wants_hub:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await self._wanted.wait()
            start = self._bridge.wants_hub

    def _connection(self) -> HubConnection:
        return HubConnection(self)

    async def _use(self, hub: HubConnection) -> None:
        """Until it is gone. Raises NoHub for one that is of no use."""
        clock = asyncio.get_running_loop().time
        self._hub, begin = hub, clock()
        self._bridge.attach()
        self._flush()
        try:
            await self._watch(hub)
        finally:
            if not self._left.is_set():
                self._hub = None
                self._hub_is_full = False
                hub.transport.abort()
                self._bridge.detach(early=clock() - begin < EARLY)
                self._flush()
        self._early = self._early + 1 if clock() - begin < EARLY else 0
        await asyncio.sleep(min(PAUSE * 2**self._early, LONGEST_PAUSE) if self._early > 1 else 0)

    async def _watch(self, hub: HubConnection) -> None:
        """Until it is gone. Raises NoHub for one that hangs while somebody waits for it."""
        is_asked = False
        while not hub.lost.done():
            before = hub.heard
            await asyncio.wait((hub.lost,), timeout=SILENCE)
            is_waited_for = self._bridge.is_joining or self._bridge.wants_hub
            if hub.heard != before or hub.lost.done() or self._draining is not None or not is_waited_for:
                is_asked = False
            elif is_asked:
                raise self._reaching.silent()
            else:
                is_asked = True
                self._bridge.ask_for_a_word()
                self._flush()
