"""What a user would write instead: the official SDK, FastAPI, sse-starlette, one commit for each update.

    python by_hand.py DIRECTORY AGENT…

Prints the port. `POST /prompt` runs one, `GET /events` streams.
"""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import acp
import uvicorn
from fastapi import FastAPI, Request
from sse_starlette.sse import EventSourceResponse


class Client(acp.Client):
    """Stores each update, then hands it to the consumers."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.queues: set[asyncio.Queue[tuple[int, str]]] = set()

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        data = update.model_dump_json(by_alias=True)
        row = self.db.execute("INSERT INTO events (data) VALUES (?)", (data,))
        self.db.commit()
        for queue in self.queues:
            queue.put_nowait((row.lastrowid or 0, data))


async def main(directory: str, command: list[str]) -> None:
    db = sqlite3.connect(Path(directory) / "events.db")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, data TEXT)")
    client = Client(db)
    app = FastAPI()
    async with acp.spawn_agent_process(client, *command) as (agent, _):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=directory, mcp_servers=[])

        @app.post("/prompt")
        async def prompt(request: Request) -> dict[str, Any]:
            text = (await request.json())["content"]
            done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(text)])
            return {"stopReason": done.stop_reason}

        @app.get("/events")
        async def events() -> EventSourceResponse:
            queue: asyncio.Queue[tuple[int, str]] = asyncio.Queue()
            client.queues.add(queue)

            async def stream() -> AsyncIterator[dict[str, Any]]:
                try:
                    while True:
                        seq, data = await queue.get()
                        yield {"id": str(seq), "event": "message", "data": data}
                finally:
                    client.queues.discard(queue)

            return EventSourceResponse(stream())

        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
