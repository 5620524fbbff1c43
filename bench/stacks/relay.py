"""The least that could be between an agent and a consumer: lines from the pipe, framed, to the socket. Keeps nothing.

    python relay.py AGENT…

Prints the port. `GET /events` streams to the one consumer; `POST /prompt` gives the agent a prompt.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys


async def main(command: list[str]) -> None:
    agent = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=2**26)
    assert agent.stdin is not None
    assert agent.stdout is not None
    consumers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if head.startswith("GET"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            consumers.append(writer)
            return
        length = next(int(line[15:]) for line in head.lower().splitlines() if line.startswith("content-length:"))
        text = json.loads(await reader.readexactly(length))["content"]
        params = {"sessionId": "bench", "prompt": [{"type": "text", "text": text}]}
        request = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}
        assert agent.stdin is not None
        agent.stdin.write(json.dumps(request).encode() + b"\n")
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    while line := await agent.stdout.readline():
        for writer in consumers:
            writer.write(b"event: message\ndata: " + line + b"\n")
            if writer.transport.get_write_buffer_size() > 65536:
                await writer.drain()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
