"""The list of sessions by WebSocket: every consumer that may read is told what changes in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pilothouse.log.records import Device
from pilothouse.model.events import utc_now
from pilothouse.server.auth.secrets import digest
from pilothouse.server.ws.session_list_feed import APART
from tests.support.lanes import Consumer, lane
from tests.support.servers import serving


def row_with(session_id: str, **fields: Any) -> Any:
    """Fits news of a session whose row has these values."""

    def fits(message: dict[str, Any]) -> bool:
        row = message.get("session", {})
        return row.get("id") == session_id and all(row.get(name) == value for name, value in fields.items())

    return fits


async def test_a_session_is_told_from_its_start_to_its_end(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        body = {"agent": "demo", "cwd": str(tmp_path), "title": "The first"}
        row = (await served.client.request("POST", "/sessions", body)).json()
        place = f"/sessions/{row['id']}"
        assert (await consumer.until_news(row_with(row["id"])))["session"] == row
        await served.client.request("PATCH", place, {"title": "Another"})
        await consumer.until_news(row_with(row["id"], title="Another"))
        await served.client.request("PATCH", place, {"archived": True})
        archived = await consumer.until_news(lambda m: bool(m.get("session", {}).get("archived")))
        assert archived["session"]["id"] == row["id"]
        await served.client.request("DELETE", place)
        gone = await consumer.until_news(lambda m: m["type"] == "session_deleted")
        assert gone == {"type": "session_deleted", "sessionId": row["id"]}


async def test_what_waits_for_somebody_is_told_also_of_sessions_that_nobody_follows(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        session = await served.hub.start_session("demo", tmp_path)
        turn = asyncio.create_task(session.prompt("permission"))
        asked = row_with(session.id, status="waiting_for_approval", pendingApprovals=1)
        await consumer.until_news(asked)
        behind = asyncio.create_task(session.prompt("echo later"))
        await consumer.until_news(row_with(session.id, queueLength=1))
        for approval in await served.hub.approvals(session.id):
            await served.client.request("POST", f"/approvals/{approval.id}", {"decision": "deny"})
        await asyncio.wait((turn, behind))
        last = await session.committed()
        idle = await consumer.until_news(
            row_with(session.id, status="idle", pendingApprovals=0, queueLength=0, seq=last)
        )
        assert idle["session"]["updated"] >= idle["session"]["created"]
        assert not consumer.events


async def test_a_session_that_streams_is_told_about_twice_a_second(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        session = await served.hub.start_session("demo", tmp_path)
        await session.start()
        await session.committed()
        began = asyncio.get_running_loop().time()
        await session.prompt("flood 5000")
        last = await session.committed()
        await consumer.until_news(row_with(session.id, seq=last))
        lasted = asyncio.get_running_loop().time() - began
        at_once = await _status_changes(served.hub.log, session.id)
        assert len(consumer.news) <= lasted / APART + at_once + 3


async def _status_changes(log: Any, session_id: str) -> int:
    entries, after = [], 0
    while batch := await log.read(session_id, after):
        entries += batch
        after = batch[-1].seq
    return sum(entry.type.startswith("session:") for entry in entries)


async def test_who_may_not_read_is_told_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        device = Device(id="dev_1", name="writer", credential=digest("secret"), scopes=["prompt"], created=utc_now())
        await served.hub.log.devices.add(device)
        async with lane(served.port, "secret", greeted=False) as blind, lane(served.port) as consumer:
            session = await served.hub.start_session("demo", tmp_path)
            await consumer.until_news(row_with(session.id))
            await blind.say("ping")
            await blind.until("pong")
            assert [message["type"] for message in blind.messages] == ["authenticated", "pong"]
            assert not blind.news


async def test_who_comes_in_the_middle_misses_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        sessions = []

        async def start() -> None:
            for _ in range(10):
                sessions.append(await served.hub.start_session("demo", tmp_path))

        starting = asyncio.create_task(start())
        async with lane(served.port) as consumer:
            await starting
            listed = {row["id"] for message in consumer.messages for row in message.get("sessions", ())}
            for session in sessions:
                if session.id not in listed:
                    await _hears_of(consumer, session.id)


async def _hears_of(consumer: Consumer, session_id: str) -> None:
    await consumer.until_news(row_with(session_id))
