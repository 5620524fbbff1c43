"""Streams and pages over HTTP: from any cursor, complete, in order, whatever becomes of the connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.session.session import HubSession
from pilothouse.log.errors import LogFull
from pilothouse.server.limits import Limits
from tests.support.http_client import Frame, Stream, parse_frame
from tests.support.hubs import PATIENCE, fact, history, until
from tests.support.servers import TOKEN, Served, server_process, serving

JSON = {"Accept": "application/json"}
BEARER = f"Authorization: Bearer {TOKEN}"


async def start(served: Served, tmp_path: Path, agent: str = "demo") -> HubSession:
    return await served.hub.start_session(agent, tmp_path)


async def take(stream: Stream, wanted: Callable[[Frame], bool]) -> list[Frame]:
    """Frames up to and with the first that is wanted."""
    frames = []
    async with asyncio.timeout(PATIENCE):
        async for frame in stream.frames():
            frames.append(frame)
            if wanted(frame):
                return frames
    raise AssertionError(f"it ended after {frames[-3:]}")


def is_packet(kind: str) -> Callable[[Frame], bool]:
    return lambda frame: bool(frame.data) and frame.json().get("type") == kind


def has_id(number: int) -> Callable[[Frame], bool]:
    return lambda frame: frame.id is not None and int(frame.id) >= number


async def turn(served: Served, session: HubSession, content: Any, **fields: Any) -> list[Frame]:
    """All frames of a turn, comments left out."""
    async with (
        asyncio.timeout(PATIENCE),
        served.client.stream("POST", f"/sessions/{session.id}/send-message", {"content": content, **fields}) as stream,
    ):
        assert stream.status == 200
        return [frame async for frame in stream.frames() if frame.comment is None]


async def quiet(served: Served, left: int = 0) -> None:
    """Until so many streams are open."""
    async with asyncio.timeout(PATIENCE):
        while len(served.server.connections) != left:
            await asyncio.sleep(0.01)


# -- a prompt and its turn -----------------------------------------------------------------------------------------


async def test_a_turn_streams_its_packets_and_ends_with_one_terminator(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        for content in ("think", [{"type": "text", "text": "echo "}, {"type": "text", "text": "hi"}], "tools"):
            frames = await turn(served, session, content)
            kinds = [frame.json()["type"] for frame in frames]
            assert kinds.count("prompt_response") == 1
            assert kinds[-1] == "prompt_response"
            ids = [int(frame.id) for frame in frames if frame.id is not None]
            assert ids == sorted(set(ids))
            assert {frame.event for frame in frames} == {"message"}
        assert await history(served.hub.log, session.id)


async def test_a_stream_of_a_turn_has_the_headers_that_keep_it_flowing(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        target = f"/sessions/{session.id}/send-message"
        async with served.client.stream("POST", target, {"content": "echo hi"}) as stream:
            assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert stream.headers["cache-control"] == "no-store"
            assert stream.headers["x-accel-buffering"] == "no"
            assert "content-encoding" not in stream.headers
            await stream.body()


async def test_whoever_does_not_want_to_wait_gets_the_turns_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        target = f"/sessions/{session.id}/send-message"
        prefer = {"Prefer": "wait=5, respond-async"}
        answer = await served.client.request("POST", target, {"content": "slow 1"}, headers=prefer)
        assert answer.status == 202
        told = answer.json()
        assert told.keys() == {"turn_id", "session_id", "seq", "status"}
        assert (told["session_id"], told["status"]) == (session.id, "running")
        async with served.client.stream("GET", f"/sessions/{session.id}/packets?after={told['seq']}") as stream:
            frames = await take(stream, is_packet("prompt_response"))
        text = "".join(frame.json()["content"]["text"] for frame in frames if is_packet("agent_message_chunk")(frame))
        assert len(text) > 10
        queued = [
            (await served.client.request("POST", target, {"content": text}, headers=prefer)).json()["status"]
            for text in ("slow 1", "echo hi")
        ]
        assert queued == ["running", "queued"]


async def test_a_prompt_that_must_not_wait_is_refused_while_a_turn_runs(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        target = f"/sessions/{session.id}/send-message"
        prompt = {"content": "wait", "client_request_id": "one"}
        first = await served.client.request("POST", target, prompt, headers={"Prefer": "respond-async"})
        busy = await served.client.request("POST", f"{target}?queue=false", {"content": "echo hi"})
        assert busy.status == 409
        assert busy.json()["error"]["code"] == "busy"
        assert busy.json()["error"]["details"]["turnId"] == first.json()["turn_id"]
        again = await served.client.request(
            "POST", f"{target}?queue=false", prompt, headers={"Prefer": "respond-async"}
        )
        assert again.json() == first.json()  # it is that turn
        await session.cancel()
        assert (await served.client.request("POST", f"{target}?queue=false", {"content": "echo hi"})).status == 200


async def test_a_queued_prompt_keeps_its_stream_alive_and_gets_only_its_own_packets(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(heartbeat=0.05)) as served:
        session = await start(served, tmp_path)
        target = f"/sessions/{session.id}/send-message"
        running = await session.send("wait")
        async with served.client.stream("POST", target, {"content": "echo mine"}) as stream:
            beats = await take(stream, lambda frame: frame.comment is not None)
            assert beats[-1].comment == "keep-alive"
            await session.cancel()
            frames = [frame async for frame in stream.frames() if frame.comment is None]
        assert running.done.done()
        assert [frame.json()["type"] for frame in frames] == ["agent_message_chunk", "prompt_response"]
        assert frames[0].json()["content"]["text"] == "mine"


async def test_a_prompt_taken_out_of_the_queue_ends_its_stream_as_cancelled(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await session.send("wait")
        async with served.client.stream("POST", f"/sessions/{session.id}/send-message", {"content": "echo"}) as stream:
            session.cancel_queued(stream.headers["x-turn-id"])
            frames = [frame async for frame in stream.frames()]
        (only,) = frames
        assert only.json()["stopReason"] == "cancelled"
        assert only.id is not None
        await session.cancel()


async def test_closing_the_stream_does_not_end_the_turn(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        async with served.client.stream(
            "POST", f"/sessions/{session.id}/send-message", {"content": "slow 1"}
        ) as stream:
            await take(stream, is_packet("agent_message_chunk"))
        await quiet(served)
        assert not session.is_idle
        ended = await until(session, fact("turn_ended"))
        assert ended.data["stopReason"] == "end_turn"  # type: ignore[attr-defined]


async def test_the_same_request_again_is_the_same_turn_from_its_start(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await turn(served, session, "echo before")
        target, prompt = f"/sessions/{session.id}/send-message", {"content": "slow 1", "client_request_id": "r1"}
        async with served.client.stream("POST", target, prompt) as stream:
            await take(stream, is_packet("agent_message_chunk"))
            meanwhile = await turn(served, session, "slow 1", client_request_id="r1")
        afterwards = await turn(served, session, "slow 1", client_request_id="r1")
        other = await served.client.request("POST", target, {**prompt, "content": "anything"})
        assert (other.status, other.json()["error"]["code"]) == (409, "id_reused")
        assert other.json()["error"]["details"] == {"field": "client_request_id"}
        await turn(served, session, "echo after")
        assert meanwhile == afterwards
        assert len([event for event in await history(served.hub.log, session.id) if fact("turn_started")(event)]) == 3
        middle = next(frame.id for frame in meanwhile if frame.id is not None)
        async with served.client.stream("POST", target, prompt, headers={"Last-Event-ID": middle}) as stream:
            rest = [frame async for frame in stream.frames()]
        assert rest == [frame for frame in meanwhile if frame.id is not None and int(frame.id) > int(middle)]
        told = await served.client.request("POST", target, prompt, headers={"Prefer": "respond-async"})
        assert (told.json()["status"], told.json()["stop_reason"]) == ("ended", "end_turn")


async def test_an_agents_error_is_a_packet_with_its_code_and_details(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        *_, error, end = [frame.json() for frame in await turn(served, session, "error -32042")]
        assert (error["type"], error["code"]) == ("error", -32042)
        assert error["details"] == {"command": "error"}
        assert end["type"] == "prompt_response"
        *_, error, end = [frame.json() for frame in await turn(served, session, "crash 3")]
        assert (error["type"], error["code"]) == ("error", None)
        assert error["details"]["exitCode"] == 3
        assert error["details"]["code"] == "agent_died"


async def test_what_the_log_refuses_in_mid_turn_is_an_error_packet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await turn(served, session, "echo hi")

        def refuse(*given: Any, **also: Any) -> asyncio.Future[int]:
            refused: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            refused.set_exception(LogFull())
            return refused

        async with served.client.stream(
            "POST", f"/sessions/{session.id}/send-message", {"content": "slow 20"}
        ) as stream:
            await take(stream, is_packet("agent_message_chunk"))
            with monkeypatch.context() as patch:
                patch.setattr(served.hub.log, "append_nowait", refuse)
                frames = [frame async for frame in stream.frames() if frame.comment is None]
        assert frames[-1].id is None
        assert frames[-1].json()["type"] == "error"
        assert frames[-1].json()["details"]["code"] == "not_stored"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"content": ""}, 422, "content"),
        ({"content": "  "}, 422, "content"),
        ({"content": []}, 422, "content"),
        ({"content": 3}, 422, "content"),
        ({"content": [{"type": "text"}]}, 422, "content[0]"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": 3}]}, 422, "content[1].text"),
        ({"content": [{"type": "image", "data": "AA=="}]}, 422, "content[0]"),
        ({"content": [{"type": "film"}]}, 422, "content[0]"),
        ({"content": ["text"]}, 422, "content[0]"),
        ({"content": [{"type": "text", "text": "a"}] * 1001}, 422, "content"),
        ({"content": "a", "client_request_id": ""}, 422, "client_request_id"),
        ({"content": "a", "clientRequestId": "1"}, 422, "clientRequestId"),
        ({"message": "a"}, 422, "message"),
        ({}, 422, "content"),
        (["a"], 422, "body"),
    ],
)
async def test_a_bad_prompt_is_a_status_that_names_the_field(
    tmp_path: Path, body: Any, status: int, field: str
) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        answer = await served.client.request("POST", f"/sessions/{session.id}/send-message", body)
        assert answer.status == status
        assert answer.json()["error"]["details"]["field"].startswith(field), answer.body
        assert await history(served.hub.log, session.id) == []


async def test_a_prompt_for_nobody_is_not_found(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for method, target in (
            ("POST", "/sessions/ses_none/send-message"),
            ("GET", "/sessions/ses_none/events"),
            ("GET", "/sessions/ses_none/packets"),
            ("GET", "/sessions/ses_none/messages"),
        ):
            answer = await served.client.request(method, target, {"content": "a"} if method == "POST" else None)
            assert answer.status == 404
            assert answer.json()["error"]["code"] == "unknown_session"


# -- streams -------------------------------------------------------------------------------------------------------


async def test_a_session_streams_history_then_what_comes(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await turn(served, session, "echo one")
        async with served.client.stream("GET", f"/sessions/{session.id}/events") as stream:
            assert stream.headers["x-accel-buffering"] == "no"
            assert stream.headers["cache-control"] == "no-store"
            seen = await take(stream, has_id(session.state.seq))
            await session.prompt("echo two")
            seen += await take(stream, has_id(session.state.seq))
        assert seen[0].retry == 1000
        frames = [frame for frame in seen if frame.data]
        assert [int(frame.id or 0) for frame in frames] == list(range(1, len(frames) + 1))
        assert [frame.json()["seq"] for frame in frames] == list(range(1, len(frames) + 1))
        stored = [entry.data for entry in await served.hub.log.read(session.id, 0, 1000)]
        assert [frame.data.encode() for frame in frames] == stored[: len(frames)]


async def test_a_cursor_gives_what_lies_beyond_it_and_the_header_wins(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await turn(served, session, "echo one")
        last = session.state.seq
        for target, headers, first in (
            (f"/sessions/{session.id}/events?after=3", {}, 4),
            (f"/sessions/{session.id}/events", {"Last-Event-ID": "5"}, 6),
            (f"/sessions/{session.id}/events?after=3", {"Last-Event-ID": "5"}, 6),
            ("/events?after=2", {"Last-Event-ID": " "}, 3),
        ):
            async with served.client.stream("GET", target, headers=headers) as stream:
                frames = [frame for frame in await take(stream, has_id(last)) if frame.data]
            assert [int(frame.id or 0) for frame in frames] == list(range(first, last + 1))


async def test_whoever_wants_only_what_comes_starts_at_the_end(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await turn(served, session, "echo one")
        before = session.state.seq
        async with served.client.stream("GET", "/events?live=true") as stream:
            await take(stream, lambda frame: frame.retry is not None)
            await session.prompt("echo two")
            frames = await take(stream, lambda frame: bool(frame.data))
        assert frames[0].json()["seq"] == before + 1


@pytest.mark.parametrize("cursor", ["-1", "x", "1.5", "³", "9" * 16, "1 2"])
async def test_a_cursor_that_is_none_is_refused_by_name(tmp_path: Path, cursor: str) -> None:
    async with serving(tmp_path) as served:
        answer = await served.client.request("GET", "/events", headers={"Last-Event-ID": cursor})
        assert answer.status == 422
        assert answer.json()["error"]["details"] == {"field": "Last-Event-ID"}


async def test_a_cursor_beyond_the_end_is_a_conflict_with_both_numbers(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await turn(served, session, "echo one")
        last = session.state.seq
        for target in (f"/sessions/{session.id}/packets", f"/sessions/{session.id}/events", "/events"):
            for headers in ({}, JSON):
                answer = await served.client.request("GET", f"{target}?after={last + 1}", headers=headers)
                assert answer.status == 409
                error = answer.json()["error"]
                assert (error["code"], error["details"]) == ("cursor_ahead", {"cursor": last + 1, "last": last})
        headers = {"Last-Event-ID": str(last + 1)}
        target = f"/sessions/{session.id}/send-message"
        assert (await served.client.request("POST", target, {"content": "a"}, headers=headers)).status == 409
        assert session.state.seq == last


async def test_silence_is_broken_by_comments(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(heartbeat=0.05)) as served:
        session = await start(served, tmp_path)
        await turn(served, session, "echo one")
        async with served.client.stream("GET", f"/sessions/{session.id}/packets?types=error") as stream:
            frames = await take(stream, lambda frame: frame.comment is not None)
            # nothing of what happened was wanted, but the cursor has moved over it
            assert frames[-1].id == str(session.state.seq)
            assert [frame for frame in frames if frame.data] == []
            again = await take(stream, lambda frame: frame.comment is not None)
        assert again[-1].id is None


async def test_all_sessions_share_one_stream_in_the_order_of_the_log(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        one, two = await start(served, tmp_path), await start(served, tmp_path)
        await asyncio.gather(one.prompt("flood 200"), two.prompt("flood 200"))
        last = await served.hub.log.last_position()
        async with served.client.stream("GET", "/events") as stream:
            frames = [frame for frame in await take(stream, has_id(last)) if frame.data]
        places = [int(frame.id or 0) for frame in frames]
        assert places == sorted(set(places))
        for session in (one, two):
            mine = [frame.json()["seq"] for frame in frames if frame.json()["sessionId"] == session.id]
            assert mine == list(range(1, session.state.seq + 1))


async def test_packets_from_any_cursor_are_the_rest_of_all_packets(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        policy = {"autoApprove": {"reads": True, "writes": ["**"], "commands": ["*"]}}
        session = await served.hub.start_session("demo", tmp_path, policy=policy)
        await session.prompt("tour")
        await session.prompt("subagent")
        last = session.state.seq
        async with served.client.stream("GET", f"/sessions/{session.id}/packets") as stream:
            frames = [frame for frame in await take(stream, is_packet("prompt_response")) if frame.data]
            frames += await take(stream, is_packet("prompt_response"))
        by_seq: dict[int, list[Any]] = {}
        waiting: list[Any] = []
        for frame in frames:
            waiting.append(frame.json())
            if frame.id is not None:
                by_seq[int(frame.id)], waiting = waiting, []
        for cursor in range(last + 1):
            page = await served.client.request("GET", f"/sessions/{session.id}/packets?after={cursor}", headers=JSON)
            rest = [packet for seq, packets in by_seq.items() if seq > cursor for packet in packets]
            assert page.json() == {"packets": rest, "seq": last}, cursor


async def test_several_consumers_of_a_flood_each_get_all_of_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await session.prompt("echo hi")

        async def follow(after: int, lane: str) -> list[str]:
            async with served.client.stream("GET", f"/sessions/{session.id}/{lane}?after={after}") as stream:
                last = is_packet("prompt_response") if lane == "packets" else _is_end
                return [frame.data for frame in await take(stream, last) if frame.data]

        after = session.state.seq
        followers = [asyncio.ensure_future(follow(after, lane)) for lane in ("events", "packets") * 4]
        await quiet(served, 8)
        await session.prompt("flood 5000")
        events, packets, *others = await asyncio.gather(*followers)
        assert len([line for line in events if '"message:delta"' in line]) == 5000
        assert len(packets) == 5001
        assert all(seen in (events, packets) for seen in others)


def _is_end(frame: Frame) -> bool:
    return '"turn_ended"' in frame.data


async def test_gzip_is_used_when_it_is_asked_for_and_comes_through_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await session.prompt("markdown")
        plain: list[Frame] | None = None
        for coding in ("", "br", "gzip;q=0", "gzip, br", "GZIP ; q=0.5"):
            headers = {"Accept-Encoding": coding} if coding else {}
            async with served.client.stream("GET", f"/sessions/{session.id}/events", headers=headers) as stream:
                assert ("content-encoding" in stream.headers) is (coding in ("gzip, br", "GZIP ; q=0.5"))
                # live: the stream is open, so what is read here was flushed
                frames = await take(stream, has_id(session.state.seq))
            plain = plain or frames
            assert frames == plain
        page = await served.client.request(
            "GET", f"/sessions/{session.id}/events", headers={**JSON, "Accept-Encoding": "gzip"}
        )
        assert page.headers["content-encoding"] == "gzip"
        assert len(page.json()["events"]) == session.state.seq


# -- consumers that stall, leave, or are cut -----------------------------------------------------------------------


async def test_a_consumer_that_leaves_is_noticed(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        async with contextlib.AsyncExitStack() as stack:
            for target in ("/events", f"/sessions/{session.id}/events", f"/sessions/{session.id}/packets"):
                await stack.enter_async_context(served.client.stream("GET", target))
            await quiet(served, 3)
        await quiet(served)
        assert served.hub.log.statistics()["events"] == session.state.seq


async def test_a_consumer_that_takes_nothing_is_let_go_and_its_cursor_is_good(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(stall=0.5)) as served:
        session = await start(served, tmp_path)
        target = f"/sessions/{session.id}/events"
        async with served.client.stream("GET", target) as stream:
            first = await take(stream, lambda frame: frame.retry is not None)
            stream.transport.pause_reading()  # type: ignore[attr-defined]
            while len(served.server.connections):  # more than what lies between the two can hold
                await session.prompt("big 500000")
            stream.transport.resume_reading()  # type: ignore[attr-defined]
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                async for frame in stream.frames():
                    first.append(frame)
        cursor = max((int(frame.id) for frame in first if frame.id is not None), default=0)
        assert cursor < session.state.seq
        page = await served.client.request("GET", f"{target}?after={cursor}&limit=1", headers=JSON)
        assert page.json()["events"][0]["seq"] == cursor + 1


async def test_a_stream_that_is_cut_ends_in_order(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        running = await session.send("slow 1")
        target = f"/sessions/{session.id}/packets"
        async with (
            served.client.stream("GET", target) as stream,
            served.client.stream("GET", "/events", headers={"Accept-Encoding": "gzip"}) as other,
        ):
            await take(stream, lambda frame: frame.retry is not None)
            assert served.server.connections.cut() == 2
            async with asyncio.timeout(PATIENCE):
                await stream.body()
                await other.body()
        assert (await running.done).stop_reason == "end_turn"


async def test_a_deleted_session_ends_its_streams(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await session.prompt("echo hi")
        async with served.client.stream("GET", f"/sessions/{session.id}/events") as stream:
            await take(stream, has_id(session.state.seq))
            await served.hub.delete_session(session.id)
            assert len([frame async for frame in stream.frames()]) < 10
        assert (await served.client.request("GET", f"/sessions/{session.id}/events")).status == 404


async def test_one_caller_may_have_only_so_many_streams(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(per_caller=2)) as served:
        session = await start(served, tmp_path)
        async with served.client.stream("GET", "/events"), served.client.stream("GET", "/events"):
            await quiet(served, 2)
            for method, target in (("GET", "/events"), ("POST", f"/sessions/{session.id}/send-message")):
                answer = await served.client.request(method, target, {"content": "a"} if method == "POST" else None)
                assert answer.status == 429
            assert (await served.client.request("GET", "/events", headers=JSON)).status == 200
        assert await history(served.hub.log, session.id) == []  # the refusal came before the prompt


async def test_a_prompt_without_a_stream_needs_no_place_among_the_streams(tmp_path: Path) -> None:
    async with serving(tmp_path, limits=Limits(per_caller=1)) as served:
        session = await start(served, tmp_path)
        async with served.client.stream("GET", "/events"):
            await quiet(served, 1)
            answer = await served.client.request(
                "POST", f"/sessions/{session.id}/send-message", {"content": "a"}, headers={"Prefer": "respond-async"}
            )
            assert answer.status == 202


# -- pages ---------------------------------------------------------------------------------------------------------


async def pages(served: Served, target: str, name: str, limit: int) -> AsyncIterator[list[Any]]:
    cursor = 0
    while True:
        answer = await served.client.request("GET", f"{target}?limit={limit}&after={cursor}", headers=JSON)
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        page = answer.json()
        assert page.keys() == {name, "seq"}
        if page["seq"] == cursor:
            assert page[name] == []
            return
        cursor = page["seq"]
        yield page[name]


async def test_pages_lead_through_all_of_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await session.prompt("tools")
        stored = [json.loads(entry.data) for entry in await served.hub.log.read(session.id, 0, 10_000)]
        for target in (f"/sessions/{session.id}/events", "/events"):
            found = [page async for page in pages(served, target, "events", 7)]
            assert {len(page) for page in found[:-1]} == {7}
            assert [event for page in found for event in page] == stored
        whole = (await served.client.request("GET", f"/sessions/{session.id}/packets", headers=JSON)).json()["packets"]
        for target in (f"/sessions/{session.id}/packets", f"/sessions/{session.id}/messages"):
            found = [packet async for page in pages(served, target, "packets", 5) for packet in page]
            assert [packet for packet in found if packet["type"] != "user_message"] == whole
            said = [packet["content"]["text"] for packet in found if packet["type"] == "user_message"]
            assert said == (["tools"] if target.endswith("messages") else [])


async def test_a_page_may_wait_for_something_to_come(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await session.prompt("echo one")
        target = f"/sessions/{session.id}/packets?after={session.state.seq}"
        empty = await served.client.request("GET", f"{target}&wait=0.05", headers=JSON)
        assert empty.json() == {"packets": [], "seq": session.state.seq}
        waiting = asyncio.ensure_future(served.client.request("GET", f"{target}&wait=20"))
        await quiet(served, 1)
        await session.prompt("echo two")
        packets = (await waiting).json()["packets"]
        assert packets[0]["content"]["text"] == "two"
        for wrong in ("wait=61", "wait=-1", "wait=x", "wait=nan", "limit=0", "limit=10001", "after=-1", "types=,"):
            answer = await served.client.request("GET", f"/sessions/{session.id}/packets?{wrong}", headers=JSON)
            assert answer.status == 422, wrong
            assert answer.json()["error"]["details"]["field"] == wrong.partition("=")[0]


async def test_a_wait_that_is_cut_is_answered(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        waiting = asyncio.ensure_future(served.client.request("GET", "/events?wait=20"))
        await quiet(served, 1)
        served.server.connections.cut()
        assert (await waiting).status == 503


async def test_only_some_types_and_the_source(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        await session.prompt("tools")
        target = f"/sessions/{session.id}/events"
        chosen = await served.client.request("GET", f"{target}?types=tool:*,message:complete", headers=JSON)
        kinds = {event["type"] for event in chosen.json()["events"]}
        assert {"tool:start", "tool:result", "message:complete"} <= kinds
        assert all(kind.startswith("tool:") or kind == "message:complete" for kind in kinds)
        async with served.client.stream("GET", f"{target}?types=tool:start") as stream:
            frame = (await take(stream, lambda frame: bool(frame.data)))[-1]
        assert frame.json()["type"] == "tool:start"
        sourced = (await served.client.request("GET", f"{target}?source=true", headers=JSON)).json()["events"]
        plain = (await served.client.request("GET", target, headers=JSON)).json()["events"]
        entries = await served.hub.log.read(session.id, 0, 10_000)
        assert [{name: event[name] for name in event if name != "source"} for event in sourced] == plain
        for event, entry in zip(sourced, entries, strict=True):
            told = event.get("source", "nothing")
            assert told == ("nothing" if entry.source is None else json.loads(entry.source) if entry.source else None)


# -- with curl, and a server that is killed ------------------------------------------------------------------------


class Curl:
    """A stream read by curl, which can be killed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._rest = b""
        self.frames: list[Frame] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, *arguments: str) -> AsyncIterator[Curl]:
        process = await asyncio.create_subprocess_exec(
            *("curl", "-sN", "-H", BEARER, *arguments), stdout=asyncio.subprocess.PIPE, limit=1 << 24
        )
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def until(self, wanted: Callable[[Frame], bool]) -> None:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while not any(map(wanted, self.frames[-1:])):
                text = (await self._process.stdout.readuntil(b"\n\n"))[:-2]
                self.frames.append(parse_frame(text.decode()))

    async def to_the_end(self) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            await self.until(lambda frame: False)

    @property
    def cursor(self) -> str:
        return [frame.id for frame in self.frames if frame.id is not None][-1]

    @property
    def packets(self) -> list[Any]:
        """What is complete: packets up to the cursor."""
        last = max(index for index, frame in enumerate(self.frames) if frame.id is not None)
        return [frame.json() for frame in self.frames[: last + 1] if frame.data]


async def curl(*arguments: str) -> Any:
    command = ("curl", "-s", "-H", BEARER, "-H", "Accept: application/json", *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    return json.loads((await process.communicate())[0])


BODY = ("-H", "Content-Type: application/json", "-d")


def pace(count: int) -> Callable[[Frame], bool]:
    """True at the so many-th frame that has data."""
    seen = 0

    def reached(frame: Frame) -> bool:
        nonlocal seen
        seen += bool(frame.data)
        return seen >= count and frame.id is not None

    return reached


async def test_with_curl_alone_nothing_is_missed_when_curl_or_the_server_is_killed(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    async with server_process(home) as server:
        made = await curl(*BODY, json.dumps({"agent": "demo", "cwd": str(work)}), f"{server.url}/sessions")
        at = f"{server.url}/sessions/{made['id']}"
        async with Curl.open(*BODY, json.dumps({"content": "slow 1"}), f"{at}/send-message") as first:
            await first.until(pace(2))
        # curl is dead; the turn is not
        async with Curl.open("-H", f"Last-Event-ID: {first.cursor}", f"{at}/packets") as second:
            await second.until(is_packet("prompt_response"))
            stored = (await curl(f"{at}/packets"))["packets"]
            assert first.packets + second.packets == stored
            assert stored[-1]["stopReason"] == "end_turn"
            port = server.port
            begun = await curl(
                "-H", "Prefer: respond-async", *BODY, json.dumps({"content": "slow 30"}), f"{at}/send-message"
            )
            assert begun["status"] == "running"
            await second.until(pace(3))
            queued = json.dumps({"content": "echo queued", "client_request_id": "queued"})
            waiting = await curl("-H", "Prefer: respond-async", *BODY, queued, f"{at}/send-message")
            assert waiting["status"] == "queued"
            server.kill()
            await server.wait()
            await second.to_the_end()
    async with server_process(home, port=port) as server:
        async with Curl.open("-H", f"Last-Event-ID: {second.cursor}", f"{at}/packets") as third:
            await third.until(is_packet("prompt_response"))
        everything = (await curl(f"{at}/packets"))["packets"]
        assert first.packets + second.packets + third.packets == everything
        assert [packet["type"] for packet in everything[-2:]] == ["error", "prompt_response"]
        assert everything[-2]["details"]["code"] == "interrupted"
        assert everything[-1]["stopReason"] == "cancelled"
        async with Curl.open(*BODY, queued, f"{at}/send-message") as lost:
            await lost.to_the_end()
        assert [packet["type"] for packet in lost.packets] == ["error", "prompt_response"]
        assert "the hub was stopped" in lost.packets[0]["message"].lower()
        assert lost.packets[1]["stopReason"] == "cancelled"
        seqs = [event["seq"] for event in (await curl(f"{at}/events"))["events"]]
        assert seqs == list(range(1, len(seqs) + 1))
        async with Curl.open(*BODY, json.dumps({"content": "echo still here"}), f"{at}/send-message") as fourth:
            await fourth.to_the_end()
        assert fourth.packets[-1]["stopReason"] == "end_turn"


async def test_the_front_end_of_the_guide_comes_back_when_it_is_cut(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "docs" / "examples" / "front_end.mjs"
    async with serving(tmp_path) as served:
        session = await start(served, tmp_path)
        command = ("node", example, f"http://127.0.0.1:{served.port}", TOKEN, session.id, "slow 2")
        process = await asyncio.create_subprocess_exec(*map(str, command), stdout=asyncio.subprocess.PIPE)
        try:
            after = 0
            for _ in range(3):
                after = (await until(session, "message:delta", after)).seq
                await quiet(served, 1)
                served.server.connections.cut()
            async with asyncio.timeout(PATIENCE):
                shown = (await process.communicate())[0].decode()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        said = "".join(
            event.delta  # type: ignore[attr-defined]
            for event in await history(served.hub.log, session.id)
            if event.type == "message:delta"
        )
        assert shown == f"{said.rstrip()}\n(end_turn)\n"
