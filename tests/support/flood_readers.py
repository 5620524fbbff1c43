"""Many consumers of the WebSocket lane in one process, as lean as can be, so that they do not slow what is measured.

`python -m tests.support.flood_readers PORT TOKEN SESSION COUNT LAST` prints `READY` when all have caught up, and a
line of JSON when each has had the event numbered LAST; `complete` counts those that had every seq before it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
import time
from typing import Any

HEAD = re.compile(rb'\{"type":"events","sessionId":"[^"]*","seq":(\d+),"events":\[\{')
NUMBER = re.compile(rb'"seq":(\d+),"sessionId"')


class Reader(asyncio.Protocol):
    def __init__(self, port: int, token: str, session_id: str, last: int) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[float] = loop.create_future()
        self.began: float | None = None
        self.began_at = 0
        self.frames = 0
        self.seq = 0
        self.gaps = 0
        self._port = port
        self._token = token
        self._session_id = session_id
        self._last = last
        self._data = bytearray()
        self._is_open = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        lines = [
            "GET /ws HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            f"Authorization: Bearer {self._token}",
        ]
        transport.write("\r\n".join([*lines, "", ""]).encode())

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._is_open:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            del self._data[: end + 4]
            self._is_open = True
            text = json.dumps({"type": "subscribe", "sessionIds": [self._session_id]}).encode()
            self._transport.write(b"\x81" + bytes([128 | len(text)]) + b"\0\0\0\0" + text)
        done = 0
        while (frame := self._frame(done)) is not None:
            start, done = frame
            self._message(bytes(memoryview(self._data)[start:done]))
        del self._data[:done]

    def _frame(self, at: int) -> tuple[int, int] | None:
        data = self._data
        if len(data) - at < 10:
            return None
        size, start = data[at + 1], at + 2
        if size == 126:
            size, start = int.from_bytes(data[at + 2 : at + 4], "big"), at + 4
        elif size == 127:
            size, start = int.from_bytes(data[at + 2 : at + 10], "big"), at + 10
        return (start, start + size) if len(data) >= start + size else None

    def _message(self, text: bytes) -> None:
        found = HEAD.match(text)
        if found is not None:
            now = time.perf_counter()
            first = NUMBER.search(text)
            assert first is not None
            seq = int(found[1])
            self.frames += 1
            self.gaps += int(first[1]) != self.seq + 1
            self.seq = seq
            if self.ready.done() and self.began is None:
                self.began, self.began_at = now, seq
            if seq >= self._last and not self.done.done():
                self.done.set_result(now)
        elif text.startswith(b'{"type":"caught_up"'):
            self.ready.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.ready, self.done):
            if not future.done():
                future.set_exception(ConnectionError("the server closed the connection"))


async def main(port: int, token: str, session_id: str, count: int, last: int) -> None:
    loop = asyncio.get_running_loop()
    readers = []
    for _ in range(count):
        _, reader = await loop.create_connection(lambda: Reader(port, token, session_id, last), "127.0.0.1", port)
        readers.append(reader)
    await asyncio.gather(*(reader.ready for reader in readers))
    print("READY", flush=True)
    ends = await asyncio.gather(*(reader.done for reader in readers))
    rates = sorted((r.seq - r.began_at) / (end - (r.began or 0)) for r, end in zip(readers, ends, strict=True))
    report = {
        "complete": sum(reader.gaps == 0 for reader in readers),
        "median": rates[count // 2],
        "least": rates[0],
        "frames": sum(reader.frames for reader in readers) / count,
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
