"""WebSockets of strangers, of foreign pages, and of clients that send too much."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.attacks import Attempts, bearer, log_in, paired, raw, routes, state, status_of
from tests.support.http_client import PATIENCE
from tests.support.servers import TOKEN, Served

SOCKETS = ("/ws", "/acp")
AUDIT = "pilothouse.audit"


async def test_a_websocket_from_a_foreign_page_or_to_a_foreign_name_is_not_opened(
    served: Served, attempts: Attempts
) -> None:
    cookie = await log_in(served)
    for path in (*routes(), "/nothing"):
        url = f"ws://127.0.0.1:{served.port}{path}"
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:3000"}):
            for proof in (cookie, bearer(served.client)):
                with attempts.refusing(InvalidStatus):
                    async with connect(url, additional_headers={**headers, **proof}):
                        pass
        handshake = (
            f"GET {path} HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Authorization: Bearer {TOKEN}\r\n\r\n"
        )
        attempts.refused(status_of(await raw(served.port, handshake.encode())), 421)


FIRST = [
    '{"type":"list_sessions"}',
    '{"type":"subscribe"}',
    '{"type":"authenticate","token":"wrong"}',
    '{"type":"authenticate","token":""}',
    '{"type":"authenticate","token":null}',
    '{"type":"authenticate"}',
    '{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}',
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}',
    '{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"methodId":"token"}}',
    '{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"methodId":"token","_meta":{"token":"wrong"}}}',
    "\x00",
    "",
    "[]",
]


async def test_a_websocket_that_is_refused_is_told_why_and_is_no_fault_of_the_hub(
    served: Served, attempts: Attempts, caplog: pytest.LogCaptureFixture
) -> None:
    for path, headers, status, code in (
        ("/nothing", {}, 404, "not_found"),
        ("/agents", bearer(served.client), 404, "not_found"),
        ("/ws", {"Origin": "https://evil.example"}, 403, "foreign_origin"),
    ):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(f"ws://127.0.0.1:{served.port}{path}", additional_headers=headers):
                pass
        answer = refused.value.response
        attempts.refused(answer.status_code, status)
        assert json.loads(answer.body)["error"]["code"] == code
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_websocket_that_does_not_say_who_it_is_is_told_nothing(
    served: Served, attempts: Attempts, project: Path
) -> None:
    session = await served.hub.start_session("demo", project)
    before = await state(served.hub)
    for text in FIRST:
        said = ""
        async with asyncio.timeout(PATIENCE), connect(f"ws://127.0.0.1:{served.port}/ws") as lane:
            await lane.send(text)
            with attempts.refusing(ConnectionClosed):
                while True:
                    said += str(await lane.recv())
        assert session.id not in said
        assert "authenticated" not in said
    assert await state(served.hub) == before
    assert len(served.server.connections) == 0


@pytest.mark.parametrize("text", FIRST)
async def test_a_remote_acp_client_that_has_not_authenticated_is_served_nothing(
    served: Served, attempts: Attempts, project: Path, text: str
) -> None:
    session = await served.hub.start_session("demo", project)
    before = await state(served.hub)
    follow_up = {"jsonrpc": "2.0", "id": 99, "method": "session/list", "params": {}}
    said = ""
    async with asyncio.timeout(PATIENCE), connect(f"ws://127.0.0.1:{served.port}/acp") as lane:
        try:
            await lane.send(text)
            await lane.send(json.dumps(follow_up))
            while '"id":99' not in said:
                said = str(await lane.recv())
                assert session.id not in said
            attempts.refused(401 if "error" in json.loads(said) else 200, 401)
        except ConnectionClosed:
            attempts.refused(401)
    assert await state(served.hub) == before


async def test_a_stranger_can_neither_fill_the_log_nor_get_a_secret_into_it(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with asyncio.timeout(PATIENCE), connect(f"ws://127.0.0.1:{served.port}/acp") as lane:
        for _ in range(100):
            await lane.send(json.dumps({"type": "authenticate", "token": TOKEN}))
            await lane.send("nonsense")
        await lane.send(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
        )
        while '"id":1' not in str(await lane.recv()):
            pass
    told = [record for record in caplog.records if record.name.startswith("pilothouse") and record.name != AUDIT]
    assert 0 < len(told) <= 10
    assert all(record.levelno <= logging.INFO for record in told)
    assert TOKEN not in caplog.text


async def test_a_frame_that_is_too_large_ends_the_connection(served: Served, attempts: Attempts) -> None:
    # what is still being sent when the connection ends can take the reason with it
    expected = {bearer(served.client)["Authorization"]: {1009}, "": {1009, 4401}}
    for path in routes():
        for payload in ("x" * 20_001, b"x" * 5_000_000, ["x" * 15_000] * 20):
            for proof, codes in expected.items():
                if not proof and len(payload) == 20_001:
                    continue  # strangers have a limit of their own
                headers = {"Authorization": proof} if proof else {}
                url = f"ws://127.0.0.1:{served.port}{path}"
                async with asyncio.timeout(PATIENCE), connect(url, max_size=None, additional_headers=headers) as lane:
                    with attempts.refusing(ConnectionClosed):
                        await lane.send(payload)
                        while True:
                            await lane.recv()
                    assert lane.close_code in codes | ({1006} if len(payload) != 20_001 else set())


async def test_a_decision_over_a_websocket_is_written_down_with_who_made_it(
    served: Served, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, AUDIT)
    device_id, device = await paired(served.client, "read", "approve")
    session = await served.hub.start_session("demo", project)
    turn = asyncio.create_task(session.prompt("edit notes.txt hello"))
    while not (waiting := (await device.request("GET", "/approvals")).json()["approvals"]):
        await asyncio.sleep(0.01)
    async with connect(f"ws://127.0.0.1:{served.port}/ws", additional_headers=bearer(device)) as socket:
        wish = {"command": "deny_tool_call", "requestId": waiting[0]["id"], "toolCallId": "call-1"}
        await socket.send(json.dumps({"type": "command", "commandId": "c1", "sessionId": session.id, "command": wish}))
        async with asyncio.timeout(PATIENCE):
            while (answer := json.loads(await socket.recv())).get("commandId") != "c1":
                pass
        assert answer["ok"] is True
    await turn
    lines = [json.loads(record.message) for record in caplog.records if record.name == AUDIT]
    (decision,) = (line for line in lines if line["audit"] == "deny_tool_call")
    assert (decision["by"], decision["deviceId"]) == ("phone", device_id)
    assert (decision["sessionId"], decision["requestId"]) == (session.id, waiting[0]["id"])
