"""Consumers of a stream, in a process of their own: they look for marks in the bytes and do nothing else.

    python consumer.py PORT COUNT MARK TIMES < the request, or the WebSocket frames, that each one sends

Each of COUNT connections reads until it has seen MARK so many TIMES. Prints `ready` when all are connected and have
been answered, then a line of JSON: when the agent began, when the last consumer was done, and the ages of `sent` marks.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

BEGIN = re.compile(rb"begin (\d+\.\d+) ")
SENT = re.compile(rb"sent (\d+\.\d+) ")


class Consumer(asyncio.Protocol):
    def __init__(self, request: bytes, mark: bytes, times: int, ages: list[float]) -> None:
        head, end, self._frames = request.partition(b"\r\n\r\n")
        self._head = head + end
        self._mark = mark
        self._left = times
        self._tail = b""
        self._ages = ages
        self.began = 0.0
        self.size = 0
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.done: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self.size += len(data)
        if not self.answered.done():
            if b" 200 " not in data[:20] and b" 101 " not in data[:20]:
                raise SystemExit(f"refused: {data[:300]!r}")
            self.answered.set_result(None)
            if self._frames:
                self._transport.write(self._frames)
        window = self._tail + data
        if not self.began and (found := BEGIN.search(window)):
            self.began = float(found[1])
        if self._mark == b"sent ":
            marks = list(SENT.finditer(window))[: self._left]  # the whole message, told at its end, has them again
            self._ages += [now - float(mark[1]) for mark in marks]
            rest = window[marks[-1].end() :] if marks else window
            self._tail = rest[-64:]  # a mark that is cut is looked at with the rest of it
            seen = len(marks)
        else:
            seen = window.count(self._mark)
            self._tail = window[len(window) - len(self._mark) + 1 :]
        self._left -= seen
        if self._left <= 0 and not self.done.done():
            self.done.set_result(now)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(f"the stream ended early, {self._left} marks were missing: {exc}"))


async def main(port: int, count: int, mark: bytes, times: int) -> None:
    request = sys.stdin.buffer.read()
    ages: list[float] = []
    loop = asyncio.get_running_loop()
    consumers = []
    for _ in range(count):
        _, consumer = await loop.create_connection(lambda: Consumer(request, mark, times, ages), "127.0.0.1", port)
        consumers.append(consumer)
    for consumer in consumers:
        await consumer.answered
    print("ready", flush=True)
    ended = max([await consumer.done for consumer in consumers])
    sizes = sum(consumer.size for consumer in consumers)
    print(json.dumps({"began": consumers[0].began, "ended": ended, "ages": sorted(ages), "size": sizes}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode(), int(sys.argv[4])))
