"""The WebSocket lane over real sockets: who comes in, what they are told, and what becomes of those who stall."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from pilothouse.log.records import Device
from pilothouse.model.events import utc_now
from pilothouse.server.auth.secrets import digest
from pilothouse.server.limits import Limits
from pilothouse.server.ws import stream as websocket_module
from tests.support.hubs import until
from tests.support.lanes import PATIENCE, Consumer, ended, lane
from tests.support.servers import TOKEN, Served, serving


async def closed(consumer: Consumer) -> tuple[int, str]:
    """How the server closed the connection, after whatever else it said."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await consumer.next()
            except ConnectionClosed:
                return consumer.socket.close_code or 0, consumer.socket.close_reason or ""


# -- who comes in --


async def test_the_first_message_says_who_it_is_and_everything_follows(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path, title="The first")
        async with lane(served.port) as consumer:
            assert [message["type"] for message in consumer.messages] == ["authenticated", "sessions_list", "approvals"]
            assert consumer.messages[0]["scopes"] == ["read", "prompt", "approve", "admin"]
            assert [row["id"] for row in consumer.messages[1]["sessions"]] == [session.id]


async def test_a_token_in_the_header_is_enough(tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with serving(tmp_path) as served, lane(served.port, None, additional_headers=headers) as consumer:
        assert consumer.messages[0]["type"] == "authenticated"
        await consumer.say("authenticate", token=TOKEN)
        assert (await consumer.next())["error"]["code"] == "conflict"


async def test_the_socket_of_the_home_is_its_owners(tmp_path: Path) -> None:
    async with serving(tmp_path):
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "hub.sock"))
        writer.write(_upgrade("localhost"))
        await reader.readuntil(b"\r\n\r\n")
        assert b'"name":"local"' in await reader.readexactly(80)
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    "first",
    [
        {"type": "authenticate", "token": "wrong"},
        {"type": "authenticate", "token": ""},
        {"type": "subscribe"},
        {"type": "ping"},
        {"type": "authenticate", "token": TOKEN, "extra": 1},
        "no JSON",
    ],
)
async def test_nobody_else_is_told_anything(tmp_path: Path, first: Any) -> None:
    async with serving(tmp_path) as served, lane(served.port, None, greeted=False) as consumer:
        await consumer.socket.send(first if isinstance(first, str) else json.dumps(first))
        assert (await closed(consumer))[0] == 4401
        assert [message["type"] for message in consumer.messages] == ["error"]
        assert consumer.messages[0]["error"]["code"] == "unauthorized"


async def test_a_stranger_is_not_listened_to_for_long(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for path in ("ws", "acp"):
            async with connect(f"ws://127.0.0.1:{served.port}/{path}") as stranger:
                await stranger.send("x" * 100_000)
                with pytest.raises(ConnectionClosed):
                    await stranger.recv()
                assert stranger.close_code == 1009
        async with lane(served.port) as consumer:
            await consumer.say("ping", requestId="x" * 100_000)
            assert (await consumer.next())["type"] == "pong"


async def test_who_says_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket_module, "AUTHENTICATION", 0.1)
    async with serving(tmp_path) as served, lane(served.port, None, greeted=False) as consumer:
        assert (await closed(consumer))[0] == 4401


async def test_one_caller_has_so_many_connections(tmp_path: Path) -> None:
    limits = Limits(per_caller=1)
    async with (
        serving(tmp_path, limits=limits) as served,
        lane(served.port),
        lane(served.port, greeted=False) as second,
    ):
        assert (await closed(second))[0] == 4429
        assert second.messages[-1]["error"]["code"] == "too_many_connections"


# -- following --


async def test_who_draws_is_sent_few_messages_and_every_event(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as drawing, lane(served.port) as eager:
        session = await served.hub.start_session("demo", tmp_path)
        await drawing.say("subscribe", sessionIds=[session.id], every=200)
        await drawing.until("caught_up")
        await eager.say("subscribe", sessionIds=[session.id])
        await session.prompt("slow 2")  # a piece every 100 ms
        stored = await session.committed()
        for consumer in (drawing, eager):
            while not consumer.seqs or consumer.seqs[-1] < stored:
                await consumer.next()
            assert consumer.seqs == list(range(1, stored + 1))
        few, many = (sum(one["type"] == "events" for one in consumer.messages) for consumer in (drawing, eager))
        assert few * 3 < many * 2, (few, many)


@pytest.mark.parametrize("every", [-1, 1001, "often", 0.5])
async def test_how_often_is_checked(tmp_path: Path, every: Any) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        await consumer.say("subscribe", every=every, requestId=7)
        refused = await consumer.next()
        assert (refused["type"], refused["requestId"]) == ("error", 7)
        assert refused["error"]["details"]["field"] == "every"


async def test_history_then_caught_up_then_live(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        session = await served.hub.start_session("demo", tmp_path)
        await session.prompt("echo before")
        stored = await session.committed()
        await consumer.say("subscribe", sessionIds=[session.id], requestId=1)
        subscribed = await consumer.next()
        expected = {"sessionId": session.id, "seq": stored, "after": 0, "resume": "ok", "requestId": 1}
        assert subscribed == {"type": "subscribed", **expected}
        assert await consumer.until("caught_up") == {"type": "caught_up", "sessionId": session.id, "seq": stored}
        assert consumer.seqs == list(range(1, stored + 1))
        await session.prompt("echo after")
        await consumer.until_event(ended(2))
        assert consumer.seqs == list(range(1, consumer.seqs[-1] + 1))


async def test_a_cursor_takes_up_where_it_stood(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        one = await served.hub.start_session("demo", tmp_path)
        two = await served.hub.start_session("demo", tmp_path)
        await one.prompt("echo one")
        await two.prompt("echo two")
        async with lane(served.port) as consumer:
            await consumer.say("subscribe", sessionIds=[one.id, two.id], after={one.id: 5})
            for _ in range(2):
                await consumer.until("caught_up")
            got = [(event["sessionId"], event["seq"]) for event in consumer.events]
            assert [seq for session, seq in got if session == one.id] == list(range(6, one.state.seq + 1))
            assert [seq for session, seq in got if session == two.id] == list(range(1, two.state.seq + 1))
        async with lane(served.port) as consumer:
            await consumer.say("subscribe", sessionIds=[one.id], after=one.state.seq)
            await consumer.until("caught_up")
            assert consumer.events == []


async def test_a_cursor_from_elsewhere_is_reset_and_said_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        session = await served.hub.start_session("demo", tmp_path)
        await session.prompt("echo hello")
        await consumer.say("subscribe", sessionIds=[session.id], after=10_000)
        subscribed = await consumer.next()
        assert (subscribed["resume"], subscribed["after"]) == ("reset", 0)
        assert "10000" in subscribed["reason"]
        await consumer.until("caught_up")
        assert consumer.seqs[0] == 1


async def test_all_sessions_are_followed_by_the_position(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        one = await served.hub.start_session("demo", tmp_path)
        await one.prompt("echo one")
        await consumer.say("subscribe")
        caught = await consumer.until("caught_up")
        two = await served.hub.start_session("demo", tmp_path)
        await two.prompt("echo two")
        await consumer.until_event(ended(2))
        assert {event["sessionId"] for event in consumer.events} == {one.id, two.id}
        async with lane(served.port) as second:
            await second.say("subscribe", after=caught["position"])
            await second.until("caught_up")
            assert {event["sessionId"] for event in second.events} == {two.id}


async def test_events_come_one_by_one_and_with_their_sources_to_who_asks(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        session = await served.hub.start_session("demo", tmp_path)
        await session.prompt("echo hello")
        await consumer.say("subscribe", sessionIds=[session.id], batch=False, source=True)
        await consumer.until("caught_up")
        assert {message["type"] for message in consumer.messages[3:]} == {"subscribed", "event", "caught_up"}
        started = next(event for event in consumer.events if event.get("source"))
        assert started["source"]["sessionUpdate"] == "available_commands_update"


async def test_what_is_followed_no_longer_is_sent_no_longer(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        session = await served.hub.start_session("demo", tmp_path)
        await consumer.say("subscribe", sessionIds=[session.id])
        await consumer.until("caught_up")
        await consumer.say("unsubscribe", sessionIds=[session.id])
        await consumer.until("unsubscribed")
        await session.prompt("echo nobody hears")
        await consumer.say("ping", requestId="x")
        assert await consumer.next() == {"type": "pong", "requestId": "x"}
        assert consumer.events == []
        await consumer.say("subscribe", sessionIds=[session.id])
        await consumer.until("caught_up")
        await served.hub.delete_session(session.id)
        gone = await consumer.until("unsubscribed")
        assert (gone["sessionId"], gone["error"]["code"]) == (session.id, "unknown_session")


async def test_a_page_of_history_needs_no_subscription(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        session = await served.hub.start_session("demo", tmp_path)
        await session.prompt("echo hello")
        last = await session.committed()
        got: list[int] = []
        more = True
        while more:
            await consumer.say("history", sessionId=session.id, after=len(got), limit=3)
            page = await consumer.until("history")
            got += [event["seq"] for event in page["events"]]
            assert page["seq"] == got[-1]
            more = page["more"]
        assert got == list(range(1, last + 1))
        await consumer.say("history", sessionId=session.id, after=last)
        assert (await consumer.next())["events"] == []


# -- commands --


async def test_a_session_is_started_and_led_over_the_socket(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        fields = {
            "agent": "demo",
            "cwd": str(tmp_path),
            "commandId": "new",
            "prompt": "permission",
            "title": "By socket",
        }
        await consumer.say("start_session", **fields)
        started = await consumer.until("command_result")
        session_id = started["sessionId"]
        assert started["ok"] is True
        assert started["session"]["title"] == "By socket"
        await consumer.say("subscribe", sessionIds=[session_id])
        asked = (await consumer.until("approval_requested"))["approval"]
        call = asked["request"]["toolCallId"]
        command = {"command": "approve_tool_call", "requestId": asked["id"], "toolCallId": call}
        done = await consumer.command(session_id, "yes", **command)
        assert done["result"]["decision"]["approved"] is True
        end = await consumer.until_event(ended())
        assert end["data"] == {"turnId": started["result"]["turnId"], "stopReason": "end_turn"}
        resolved = next(event for event in consumer.events if event["type"] == "approval:resolved")
        assert (resolved["decidedBy"], resolved["seq"] <= done["seq"]) == ("token", True)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": [{"type": "zzz"}]}, "prompt[0].type"),
        ({"prompt": "echo hi", "commandId": "c" * 300}, "commandId"),
        ({"commandId": "c" * 300}, "commandId"),
    ],
)
async def test_a_start_that_is_refused_leaves_no_session_and_names_what_was_sent(
    tmp_path: Path, wish: dict[str, Any], field: str
) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        await consumer.say("start_session", **{"agent": "demo", "cwd": str(tmp_path), "commandId": "new", **wish})
        refused = await consumer.until("command_result")
        assert (refused["ok"], refused["error"]["details"]["field"]) == (False, field)
        assert (await served.hub.sessions()).sessions == []


async def test_an_id_that_started_another_session_is_named_as_it_was_given(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        for title, ok in (("one", True), ("two", False)):
            await consumer.say("start_session", agent="demo", cwd=str(tmp_path), commandId="s", title=title)
            answer = await consumer.until("command_result")
            assert answer["ok"] is ok
        assert answer["error"]["details"]["field"] == "commandId"


async def test_a_command_sent_again_is_answered_again_and_does_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as one, lane(served.port) as two:
        session = await served.hub.start_session("demo", tmp_path)
        first = await one.command(session.id, "a", command="send_message", message="echo once")
        again = await two.command(session.id, "a", command="send_message", message="echo once")
        assert first["result"] == again["result"]
        other = await two.command(session.id, "a", command="send_message", message="echo twice")
        assert other["error"]["code"] == "id_reused"
        await until(session, lambda event: getattr(event, "event_name", "") == "turn_ended")
        assert session.state.turns == 1
        await one.say("start_session", agent="demo", cwd=str(tmp_path), commandId="s")
        await two.say("start_session", agent="demo", cwd=str(tmp_path), commandId="s")
        ids = {(await consumer.until("command_result"))["sessionId"] for consumer in (one, two)}
        assert len(ids) == 1


async def test_prompts_of_one_consumer_keep_their_order(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        session = await served.hub.start_session("demo", tmp_path)
        for number in range(20):
            command = {"command": "send_message", "message": f"echo {number}"}
            await consumer.say("command", sessionId=session.id, commandId=f"c{number}", command=command)
        await consumer.say("subscribe", sessionIds=[session.id])
        await consumer.until_event(ended(20))
        said = [
            e["content"][0]["text"] for e in consumer.events if e["type"] == "message:complete" and e["role"] == "user"
        ]
        assert said == [f"echo {number}" for number in range(20)]


async def test_a_cancel_is_not_held_up_by_the_turn_it_ends(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        session = await served.hub.start_session("demo", tmp_path)
        await consumer.command(session.id, "a", command="send_message", message="wait")
        done = await consumer.command(session.id, "b", command="cancel")
        assert done["result"] == {"cancelled": True}


async def test_a_command_goes_on_when_who_sent_it_is_gone(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path)
        async with lane(served.port) as consumer:
            command = {"command": "send_message", "message": "echo still here"}
            await consumer.say("command", sessionId=session.id, commandId="a", command=command)
        await until(session, lambda event: getattr(event, "event_name", "") == "turn_ended")


async def test_a_device_may_do_what_its_scopes_say_and_no_more(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path)
        secret = await _device(served, ["read"])
        async with lane(served.port, secret) as reader:
            assert reader.messages[0]["scopes"] == ["read"]
            await reader.say("subscribe", sessionIds=[session.id])
            await reader.until("caught_up")
            refused = [
                await reader.command(session.id, "a", command="send_message", message="echo no"),
                await reader.command(session.id, "b", command="terminate"),
                await reader.command(session.id, "c", command="approve_tool_call", requestId="x", toolCallId="y"),
            ]
            assert [answer["error"]["code"] for answer in refused] == ["forbidden"] * 3
            await reader.say("start_session", agent="demo", cwd=str(tmp_path), commandId="d")
            assert (await reader.next())["error"]["code"] == "forbidden"
        blind = await _device(served, ["prompt"])
        async with lane(served.port, blind, greeted=False) as prompter:
            await prompter.say("subscribe")
            await prompter.say("list_sessions")
            await prompter.until(lambda message: message["type"] == "error")
            await prompter.until(lambda message: message["type"] == "error")
            assert [m["type"] for m in prompter.messages] == ["authenticated", "error", "error"]
        assert session.state.turns == 0


async def test_a_revoked_device_is_cut_off_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        secret = await _device(served, ["read"])
        async with lane(served.port, secret) as consumer:
            await consumer.say("subscribe")
            await consumer.until("caught_up")
            (device,) = await served.hub.log.devices.list()
            await served.hub.log.devices.revoke(device.id)
            served.server.connections.cut(device.id, reason="revoked")
            assert (await closed(consumer))[0] == 1008


async def _device(served: Served, scopes: list[str]) -> str:
    secret = base64.urlsafe_b64encode(os.urandom(32)).decode()
    device = Device(id=f"dev_{secret[:6]}", name="phone", credential=digest(secret), scopes=scopes, created=utc_now())
    await served.hub.log.devices.add(device)
    return secret


# -- what goes wrong --


async def test_nonsense_is_answered_and_the_connection_stays(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, lane(served.port) as consumer:
        for text, code in [
            ("{", "malformed"),
            (b"\x00\x01", "malformed"),
            ('{"type":"dance","requestId":9}', "unknown_type"),
            ('{"type":"subscribe","after":-1,"requestId":9}', "invalid"),
            ('{"type":"subscribe","after":{"a":1},"requestId":9}', "invalid"),
            ('{"type":"subscribe","sessionIds":[],"requestId":9}', "invalid"),
            ('{"type":"subscribe","sessionIds":["ses_none"],"requestId":9}', "unknown_session"),
            ('{"type":"history","sessionId":"ses_none","requestId":9}', "unknown_session"),
            ('{"type":"list_sessions","before":"rubbish","requestId":9}', "invalid"),
        ]:
            await consumer.socket.send(text)
            answer = await consumer.next()
            assert (answer["type"], answer["error"]["code"]) == ("error", code), text
            assert answer.get("requestId") == (9 if "9" in str(text) else None)
        for command, code in [
            ({"command": "nothing"}, "invalid"),
            ({"command": "cancel", "extra": 1}, "invalid"),
            ({"command": "cancel"}, "unknown_session"),
        ]:
            answer = await consumer.command("ses_none", "x", **command)
            assert (answer["ok"], answer["error"]["code"]) == (False, code)
        await consumer.say("ping")
        assert await consumer.next() == {"type": "pong"}


@pytest.mark.parametrize("depth", [200, 480, 900, 20_000])
async def test_a_command_that_is_nested_too_deeply_is_refused_by_name(tmp_path: Path, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    async with serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path)
        async with lane(served.port) as consumer:
            for command in (
                f'{{"command":"send_message","message":[{{"type":"text","text":"x","_meta":{deep}}}]}}',
                f'{{"command":"answer_question","questionId":"q","answer":{deep}}}',
            ):
                head = f'"type":"command","requestId":9,"sessionId":"{session.id}"'
                await consumer.socket.send(f'{{{head},"command":{command}}}')
                answer = await consumer.next()
                assert depth > 500 or answer["requestId"] == 9
                refused = answer["error"]
                assert refused["code"] == "invalid"
                assert "nested too deeply" in refused["message"]
            await consumer.say("ping")
            assert (await consumer.next())["type"] == "pong"


async def test_a_frame_beyond_the_limit_ends_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(frame=10_000)) as served, lane(served.port) as consumer:
        await consumer.socket.send("x" * 20_000)
        assert (await closed(consumer))[0] == 1009


async def test_a_consumer_follows_so_many_sessions(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(subscriptions=2)) as served, lane(served.port) as consumer:
        ids = [(await served.hub.start_session("demo", tmp_path)).id for _ in range(3)]
        await consumer.say("subscribe", sessionIds=ids)
        refused = await consumer.until("error")
        assert (refused["sessionId"], refused["error"]["code"]) == (ids[2], "too_many_subscriptions")


def _upgrade(host: str, path: str = "/ws") -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        f"Authorization: Bearer {TOKEN}" if host != "localhost" else "X-Nothing: here",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def _stalled(port: int, *messages: dict[str, Any], path: str = "/ws") -> socket.socket:
    """A consumer that says this and then reads nothing."""
    loop = asyncio.get_running_loop()
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await loop.sock_connect(raw, ("127.0.0.1", port))
    await loop.sock_sendall(raw, _upgrade(f"127.0.0.1:{port}", path))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += await loop.sock_recv(raw, 1)
    for text in map(json.dumps, messages):
        assert len(text) < 126
        await loop.sock_sendall(raw, b"\x81" + bytes([128 | len(text)]) + b"\0\0\0\0" + text.encode())
    return raw


async def _rest(raw: socket.socket) -> bytes:
    loop, data = asyncio.get_running_loop(), b""
    async with asyncio.timeout(PATIENCE):
        while part := await loop.sock_recv(raw, 1 << 20):
            data += part
            if b"\x88" in part and data.endswith(b"}"):
                break
    return data


async def test_a_consumer_that_stalls_is_let_go_with_its_cursor_and_slows_nobody(tmp_path: Path) -> None:
    limits = Limits(stall=0.3, heartbeat=60)
    async with serving(tmp_path, limits=limits) as served:
        session = await served.hub.start_session("demo", tmp_path)
        raw = await _stalled(served.port, {"type": "subscribe", "sessionIds": [session.id]})
        async with lane(served.port) as other:
            await other.say("subscribe", sessionIds=[session.id])
            # far more than the buffers of the kernel and the server hold
            for _ in range(6):
                await session.send("big 3000000")
            await other.until_event(ended(6))
            assert other.seqs == list(range(1, other.seqs[-1] + 1))
        async with asyncio.timeout(PATIENCE):
            while len(served.server.connections):
                await asyncio.sleep(0.02)
        data = await _rest(raw)
        raw.close()
        reason = data[data.rindex(b'{"after"') :]
        assert data[: -len(reason)].endswith((4408).to_bytes(2, "big"))
        cursor = json.loads(reason)["after"][session.id]
        assert 0 < cursor < session.state.seq
        async with lane(served.port) as back:
            await back.say("subscribe", sessionIds=[session.id], after=cursor)
            await back.until("caught_up")
            assert back.seqs == list(range(cursor + 1, session.state.seq + 1))


async def test_a_remote_acp_client_that_stalls_is_let_go_too(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(stall=0.3, heartbeat=60)) as served:
        session = await served.hub.start_session("demo", tmp_path)
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
        params = {"sessionId": session.id, "cwd": "/"}
        resume = {"jsonrpc": "2.0", "id": 2, "method": "session/resume", "params": params}
        raw = await _stalled(served.port, hello, resume, path="/acp")
        for _ in range(6):
            await session.prompt("big 3000000")
        async with asyncio.timeout(PATIENCE):
            while len(served.server.connections):
                await asyncio.sleep(0.02)
        loop, data = asyncio.get_running_loop(), b""
        async with asyncio.timeout(PATIENCE):
            while b"go on by session/resume" not in data[-200:]:
                part = await loop.sock_recv(raw, 1 << 20)
                assert part, "closed without a reason"
                data += part
        raw.close()
        assert (4408).to_bytes(2, "big") in data[-200:]


async def test_the_server_asks_whether_anybody_is_there(tmp_path: Path) -> None:
    limits = Limits(heartbeat=0.1, stall=0.2)
    async with serving(tmp_path, limits=limits) as served, lane(served.port, ping_interval=None) as alive:
        raw = await _stalled(served.port)  # never answers a ping
        async with asyncio.timeout(PATIENCE):
            while len(served.server.connections) != 2:
                await asyncio.sleep(0.02)
            while len(served.server.connections) != 1:
                await asyncio.sleep(0.02)
        raw.close()
        await alive.say("ping")
        assert await alive.next() == {"type": "pong"}


async def test_the_hub_closes_with_consumers_connected(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path)
        async with lane(served.port) as consumer:
            await consumer.say("subscribe", sessionIds=[session.id])
            await consumer.until("caught_up")
            served.server.connections.cut()
            assert (await closed(consumer))[0] == 1001
        assert len(served.server.connections) == 0
