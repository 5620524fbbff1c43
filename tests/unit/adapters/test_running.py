"""Updates that arrive together are decoded together; what reaches the owner is what reaches it line by line."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import Raw

from pilothouse.acp.connection import Connection
from pilothouse.acp.dispatch import Diagnostic
from pilothouse.acp.transport import OnEnd, OnLines
from pilothouse.adapters.running import Dispatch, RawUpdate


class Owner:
    def __init__(self) -> None:
        self.heard: list[tuple[str, bytes]] = []

    async def updated(self, session_id: str, update: Raw) -> None:
        self.heard.append((session_id, bytes(update)))

    def several_updated(self, updates: list[RawUpdate]) -> int:
        self.heard += [(each.session_id, bytes(each.update)) for each in updates]
        return len(updates)

    async def requested(self, method: str, params: Any, raw: bytes) -> Any:
        return None

    def notified(self, method: str, params: Any) -> None:
        self.heard.append(("", method.encode()))

    def diagnosed(self, diagnostic: Diagnostic) -> None:
        self.heard.append(("?", diagnostic.excerpt.encode()))

    async def ended(self) -> None:
        """Until the last words of both sessions were heard, and the last notification."""
        while not ({"s", "t"} <= {session_id for session_id, what in self.heard if b"the end" in what} and self._told):
            await asyncio.sleep(0)

    @property
    def _told(self) -> bool:
        return ("", b"_end") in self.heard


class Lines:
    """A link that is told what arrives."""

    congested = False
    unsent = 0

    def start(self, on_lines: OnLines, on_end: OnEnd) -> None:
        self._on_lines, self._on_end = on_lines, on_end

    def arrive(self, lines: Sequence[bytes]) -> None:
        self._on_lines(lines)

    def end(self) -> None:
        self._on_end(None)

    def send(self, frame: bytes) -> None:
        pass

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    async def drain(self) -> None:
        pass

    async def close(self) -> None:
        pass


def update(session_id: str, text: str) -> bytes:
    said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    params = {"sessionId": session_id, "update": said}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode()


ODD = [
    update("t", "of another session"),
    b'{"jsonrpc":"2.0","method":"_news","params":{}}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":3}}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{}}}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"',
    b'"update":{}}}',
    update("s", "twice") + b"," + update("s", "on a line"),
    b"no JSON",
]


async def heard(chunks: list[list[bytes]], *, together: bool) -> dict[str, list[bytes]]:
    """What the owner hears of each session, in order."""
    owner, link = Owner(), Lines()
    dispatch = Dispatch(owner)
    if not together:
        dispatch.decode_updates = lambda data: []
    async with Connection(dispatch, link, on_diagnostic=owner.diagnosed):
        for lines in chunks:
            link.arrive(lines)
        link.arrive([update("s", "the end"), update("t", "the end"), b'{"jsonrpc":"2.0","method":"_end"}'])
        async with asyncio.timeout(10):
            await owner.ended()
    found: dict[str, list[bytes]] = {}
    for session_id, what in owner.heard:
        found.setdefault(session_id, []).append(what)
    return found


@pytest.mark.parametrize("start", range(20))
async def test_the_owner_hears_the_same_of_updates_decoded_together(start: int) -> None:
    dice = random.Random(start)
    plain = [update("s", f"piece {number}") for number in range(300)]
    lines = [dice.choice(ODD) if dice.random() < 0.03 else line for line in plain]
    chunks = []
    while lines:
        size = dice.choice((1, 7, 20, 60))
        chunks.append(lines[:size])
        lines = lines[size:]
    assert await heard(chunks, together=True) == await heard(chunks, together=False)


async def test_a_chunk_of_updates_of_one_session_is_decoded_once() -> None:
    owner, link = Owner(), Lines()
    dispatch = Dispatch(owner)
    dispatch.decode_update = _never
    async with Connection(dispatch, link, on_diagnostic=owner.diagnosed):
        link.arrive([update("s", str(number)) for number in range(20)])
        async with asyncio.timeout(10):
            while len(owner.heard) < 20:
                await asyncio.sleep(0)
    assert [json.loads(what)["content"]["text"] for _, what in owner.heard] == list(map(str, range(20)))


def _never(line: bytes) -> Any:
    raise AssertionError("decoded alone")
