"""Sessions that were begun elsewhere, over HTTP and WebSocket: listed, watched, adopted, refused with choices."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.contract import AdapterError
from pilothouse.hub.errors import UnknownAgent
from pilothouse.hub.external.writer_lock import Leases
from pilothouse.log.records import Device
from pilothouse.model.discovery import DiscoveredSession
from pilothouse.model.events import utc_now
from pilothouse.server.auth.secrets import digest
from tests.support.http_client import Answer, Client
from tests.support.hubs import PATIENCE
from tests.support.lanes import lane
from tests.support.records import Holders, append, finder, holder_of, program, says, write_record
from tests.support.servers import Served, agent_specs, serving

ID = "demo-1-0123abcd"


@contextlib.asynccontextmanager
async def world(home: Path, holders: Holders | None = None, **options: Any) -> AsyncIterator[Served]:
    place = home / "demo"
    write_record(place, ID, home, [says("Hello", "u1", user=True), says("Hi.", "a1")])
    async with serving(home, **options) as served:
        made = finder(place, home, holders)
        served.hub.discovery.prepare(lambda: made, Leases(home / "leases", home))
        await served.hub.discovery.begin()
        yield served


def error(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]["code"]


def body(session_id: str = ID, **more: Any) -> dict[str, Any]:
    return {"agent": "demo", "sessionId": session_id, **more}


async def device(served: Served, *scopes: str) -> Client:
    record = Device(id="dev", name="phone", credential=digest("secret"), scopes=list(scopes), created=utc_now())
    await served.hub.log.devices.add(record)
    return Client(served.port, token="secret")


async def test_what_was_found_is_listed_and_knows_its_session_here(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        answer = (await served.client.request("GET", "/discovered")).json()
        assert answer["problems"] == []
        (one,) = answer["sessions"]
        assert (one["id"], one["agent"], one["projectPath"]) == (ID, "demo", str(tmp_path))
        assert one["integrationMethod"] == "file-watch"
        assert "hubSessionId" not in one
        made = await served.client.request("POST", "/discovered/watch", body())
        row = made.json()
        assert (made.status, row["watched"], row["title"]) == (201, True, "Found")
        assert made.headers["location"] == f"/sessions/{row['id']}"
        again = (await served.client.request("POST", "/discovered/watch", body())).json()
        assert again["id"] == row["id"]
        (one,) = (await served.client.request("GET", "/discovered?agent=demo&refresh=true")).json()["sessions"]
        assert one["hubSessionId"] == row["id"]
        assert (await served.client.request("GET", "/discovered?agent=claude")).json()["sessions"] == []


async def test_a_watched_session_is_shown_everywhere_and_refuses_prompts(tmp_path: Path) -> None:
    async with world(tmp_path) as served, lane(served.port) as consumer:
        row = (await served.client.request("POST", "/discovered/watch", body())).json()
        place = f"/sessions/{row['id']}"
        await served.hub.discovery.told(row["id"])
        news = await consumer.until_news(lambda m: m.get("session", {}).get("id") == row["id"])
        assert news["session"]["watched"] is True
        detail = (await served.client.request("GET", place)).json()
        assert detail["watched"] is True
        assert [item["role"] for item in detail["items"] if item["type"] == "message"] == ["user", "assistant"]
        messages = (await served.client.request("GET", f"{place}/messages")).json()
        kinds = [message["type"] for message in messages["packets"]]
        assert (kinds[0], kinds[-1]) == ("user_message", "prompt_response")
        assert "Hello" in str(messages)
        assert "Hi." in str(messages)
        refused = await served.client.request("POST", f"{place}/send-message", {"content": "more"})
        assert error(refused) == (409, "illegal_command")
        assert "pilothouse adopt" in refused.json()["error"]["message"]


async def test_a_session_is_adopted_and_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:  # somebody else's hub, to begin it
        session = await served.hub.start_session("demo", tmp_path)
        await session.prompt("flood 2")
        begun = session.agent_session_id
        assert begun is not None
    async with world(tmp_path / "other") as served:
        made = finder(tmp_path / "demo", tmp_path)
        served.hub.agents["demo"] = agent_specs(tmp_path)["demo"]
        served.hub.discovery._use(made)
        answer = await served.client.request("POST", "/discovered/adopt", body(begun))
        row = answer.json()
        assert (answer.status, row["watched"]) == (201, False)
        hub_session = await served.hub.session(row["id"])
        assert (await hub_session.prompt("flood 2")).error is None
        assert hub_session.agent_session_id == begun


async def test_one_that_a_program_has_is_refused_with_what_can_be_done(tmp_path: Path) -> None:
    holders = Holders()
    process = program()
    try:
        holders.by_id[ID] = holder_of(process)
        async with world(tmp_path, holders) as served:
            (one,) = (await served.client.request("GET", "/discovered")).json()["sessions"]
            assert one["pid"] == process.pid
            refused = await served.client.request("POST", "/discovered/adopt", body())
            assert error(refused) == (409, "held")
            details = refused.json()["error"]["details"]
            assert details["choices"] == ["watch", "fork", "take_over"]
            assert details["pid"] == process.pid
            other = await served.client.request("POST", "/discovered/adopt", body(how="take_over", pid=process.pid + 1))
            assert error(other) == (409, "held")
            assert process.poll() is None
            taken = await served.client.request("POST", "/discovered/adopt", body(how="take_over", pid=process.pid))
            assert taken.status == 201
            process.wait(PATIENCE)
    finally:
        process.kill()
        process.communicate()


async def test_one_that_a_program_only_may_have_is_told_as_that(tmp_path: Path) -> None:
    holders = Holders()
    process = program()
    try:
        holders.by_id[ID] = holder_of(process, sign="directory")
        async with world(tmp_path, holders) as served:
            (one,) = (await served.client.request("GET", "/discovered")).json()["sessions"]
            assert one.get("pid") is None
            refused = await served.client.request("POST", "/discovered/adopt", body(how="take_over"))
            assert error(refused) == (409, "held")
            details = refused.json()["error"]["details"]
            assert (details["choices"], details["sure"]) == (["watch", "fork"], False)
            assert details["pid"] == process.pid
            assert process.poll() is None
            taken = await served.client.request("POST", "/discovered/adopt", body(how="take_over", pid=process.pid))
            assert taken.status == 201
            process.wait(PATIENCE)
    finally:
        process.kill()
        process.communicate()


async def test_ending_a_program_needs_more_than_prompting(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        phone = await device(served, "read", "prompt")
        refused = await phone.request("POST", "/discovered/adopt", body(how="take_over"))
        assert error(refused) == (403, "forbidden")
        assert (await phone.request("POST", "/discovered/adopt", body())).status == 201


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({"agent": "demo"}, 422),
        ({"agent": "demo", "sessionId": ""}, 422),
        ({"agent": "demo", "sessionId": ID, "how": "steal"}, 422),
        ({"agent": "demo", "sessionId": ID, "more": 1}, 422),
        ({"agent": "demo", "sessionId": "../../etc/passwd"}, 404),
        ({"agent": "nobody", "sessionId": ID}, 404),
    ],
)
async def test_what_is_wrong_is_named(tmp_path: Path, value: dict[str, Any], status: int) -> None:
    async with world(tmp_path) as served:
        answer = await served.client.request("POST", "/discovered/adopt", value)
        assert answer.status == status
        assert answer.json()["error"]["message"]


async def test_an_agent_without_a_record_is_asked_only_by_name(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(agent: str) -> list[DiscoveredSession]:
        asked.append(agent)
        if agent == "broken":
            raise AdapterError("cannot look")
        if agent == "nobody":
            raise UnknownAgent("no agent 'nobody' is known", agent=agent)
        return [
            DiscoveredSession(
                id=f"s{day}",
                agent=agent,
                project_path="/p",
                project_name="p",
                created_at="",
                last_activity=f"2026-01-0{day}T00:00:00Z",
            )
            for day in (1, 2)
        ]

    async with world(tmp_path, discover=ask) as served:
        assert len((await served.client.request("GET", "/discovered")).json()["sessions"]) == 1
        assert len((await served.client.request("GET", "/discovered?agent=demo")).json()["sessions"]) == 1
        assert asked == []
        found = (await served.client.request("GET", "/discovered?agent=vibe")).json()["sessions"]
        assert [one["id"] for one in found] == ["s2", "s1"]
        assert error(await served.client.request("GET", "/discovered?agent=broken")) == (502, "agent_failed")
        assert error(await served.client.request("GET", "/discovered?agent=nobody")) == (404, "unknown_agent")
        reader = await device(served, "read")
        assert len((await reader.request("GET", "/discovered?agent=demo")).json()["sessions"]) == 1
        del asked[:]
        assert error(await reader.request("GET", "/discovered?agent=vibe")) == (403, "forbidden")
        assert asked == []  # who may only read starts no program


async def test_consumers_are_told_that_the_list_changed(tmp_path: Path) -> None:
    async with world(tmp_path) as served, lane(served.port) as consumer:
        watcher = served.hub.discovery.finder._watcher  # type: ignore[union-attr]
        async with asyncio.timeout(PATIENCE):
            await watcher.watching.wait()
        append(tmp_path / "demo" / f"{ID}.jsonl", {"update": says("More.", "a2")})
        assert await consumer.until_news(lambda m: m["type"] == "discovered_changed") == {"type": "discovered_changed"}


async def test_a_hub_that_looks_for_nothing_finds_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert (await served.client.request("GET", "/discovered")).json() == {"sessions": [], "problems": []}
        assert error(await served.client.request("POST", "/discovered/watch", body())) == (404, "not_found")
