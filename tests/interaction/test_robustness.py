"""What else goes wrong between two programs: each case once made a call wait for ever, or lost or kept too much."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp import (
    Agent,
    AgentSideConnection,
    CancelElicitationResponse,
    Client,
    ClientSideConnection,
    ConnectionClosed,
    CreateElicitationResponse,
    LoadSessionResponse,
    PromptResponse,
    RequestError,
    RequestPermissionResponse,
    memory_pair,
    spawn_agent_process,
    text_block,
    update_agent_message_text,
)
from pilothouse.acp import connection as connection_module
from tests.support.wire import agent_on_wire, chunk, client_on_wire, is_alive

DONE = {"stopReason": "end_turn"}
PERMISSION = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []}


class Quiet(Client):
    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        pass


# -- every call gets its answer --


async def test_an_answer_that_waits_for_updates_is_given_when_the_connection_closes() -> None:
    class Stuck(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await asyncio.Event().wait()

    async with client_on_wire(Stuck()) as (connection, wire, _):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(chunk("x"))
        await wire.answer(DONE)
        await asyncio.sleep(0.05)
        assert not call.done()
        await connection.close()
        async with asyncio.timeout(2):
            assert (await call).stop_reason == "end_turn"


async def test_a_handler_that_ends_in_a_cancellation_of_its_own_is_a_failed_handler() -> None:
    seen: list[str] = []

    class Awaiting(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            seen.append(update.content.text)
            if update.content.text == "0":
                task = asyncio.ensure_future(asyncio.Event().wait())
                asyncio.get_running_loop().call_soon(task.cancel)
                await task

    async with client_on_wire(Awaiting(), backlog_limit=20_000) as (connection, wire, diagnostics):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(*(chunk(str(i)) for i in range(100)))
        await wire.answer(DONE)
        async with asyncio.timeout(5):
            await call
        assert seen == [str(i) for i in range(100)]
        assert [d.kind for d in diagnostics] == ["handler_error"]
        assert connection.connection._backlog.size == 0


async def test_a_dead_child_fails_calls_even_if_its_child_holds_the_pipe() -> None:
    command = "sleep 60 & read line; echo boom >&2; exit 3"
    async with asyncio.timeout(10), spawn_agent_process(Quiet(), "sh", "-c", command) as (connection, _):
        with pytest.raises(ConnectionClosed, match="boom") as caught:
            await connection.initialize()
        assert caught.value.exit_code == 3


async def test_output_that_a_dead_child_left_unread_is_not_cut_off(tmp_path: Path) -> None:
    """Its pipe is read to the end first, however slow the handler."""
    script = tmp_path / "agent.py"
    script.write_text(
        textwrap.dedent(
            """
            import json, subprocess, sys
            subprocess.Popen(["sleep", "60"])
            sys.stdin.readline()
            for i in range(400):
                update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x" * 1000}}
                params = {"sessionId": "s", "update": update}
                print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}))
            print(json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}}), flush=True)
            """
        )
    )
    seen = 0

    class Slow(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            nonlocal seen
            seen += 1
            await asyncio.sleep(0.003)

    options = {"backlog_limit": 20_000, "transport_kwargs": {"shutdown_timeout": 0.2}}
    async with (
        asyncio.timeout(20),
        spawn_agent_process(Slow(), sys.executable, str(script), **options) as (connection, _),
    ):
        assert (await connection.prompt("s", [text_block("go")])).stop_reason == "end_turn"
        assert seen == 400


async def test_a_request_queued_before_its_handler_made_a_call_is_let_through() -> None:
    class Nesting(Client):
        def on_connect(self, conn: Any) -> None:
            self.conn = conn

        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0.05)
            self.answer = await self.conn.ext_method("ask", {})

        async def request_permission(self, **kwargs: Any) -> RequestPermissionResponse:
            return RequestPermissionResponse(outcome={"outcome": "cancelled"})

    client = Nesting()
    async with asyncio.timeout(5), client_on_wire(client) as (_, wire, _):
        await wire.send(chunk("x"))
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": PERMISSION})
        first, second = await wire.receive(), await wire.receive()
        asked, answered = (first, second) if "method" in first else (second, first)
        assert answered["result"] == {"outcome": {"outcome": "cancelled"}}
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"ok": True}})
        while not hasattr(client, "answer"):
            await asyncio.sleep(0.001)


async def test_handlers_of_two_sessions_may_call_into_each_other() -> None:
    done: list[str] = []

    class Crossing(Client):
        def on_connect(self, conn: Any) -> None:
            self.conn = conn

        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            other = "b" if session_id == "a" else "a"
            await self.conn.prompt(other, [text_block("hi")])
            done.append(session_id)

    async with asyncio.timeout(5), client_on_wire(Crossing()) as (_, wire, _):
        await wire.send(chunk("x", "a"), chunk("x", "b"))
        requests = [await wire.receive(), await wire.receive()]
        for request in requests:
            await wire.send({"jsonrpc": "2.0", "id": request["id"], "result": DONE})
        while len(done) < 2:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("result", [None, {}])
async def test_an_error_beside_a_result_is_an_error(result: Any) -> None:
    async with client_on_wire(Quiet()) as (connection, wire, _):
        errors = [{"code": -32002, "message": "gone"}, None]
        calls = [asyncio.ensure_future(connection.load_session(cwd="/", session_id="s")) for _ in errors]
        for error in errors:
            request = await wire.receive()
            await wire.send({"jsonrpc": "2.0", "id": request["id"], "result": result, "error": error})
        with pytest.raises(RequestError, match="gone"):
            await calls[0]
        assert isinstance(await calls[1], LoadSessionResponse)


async def test_an_answer_whose_id_has_a_point_is_matched() -> None:
    async with client_on_wire(Quiet()) as (connection, wire, _):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.receive()
        await wire.send(b'{"jsonrpc":"2.0","id":0.0,"result":{"stopReason":"end_turn"}}')
        async with asyncio.timeout(5):
            assert (await call).stop_reason == "end_turn"


# -- every request of the peer gets an answer, and one that fits --


class Sloppy(Agent):
    async def prompt(self, **kwargs: Any) -> Any:
        return None

    async def initialize(self, **kwargs: Any) -> Any:
        return {"bogus": 1}

    async def new_session(self, **kwargs: Any) -> Any:
        return {"session_id": "from a dict"}

    async def load_session(self, **kwargs: Any) -> Any:
        return None

    async def close_session(self, **kwargs: Any) -> Any:
        raise RequestError(-32603, "cannot read /tmp/\udcff", {"path": "\udcff"})

    async def list_sessions(self, **kwargs: Any) -> Any:
        return {"sessions": [object()]}


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("session/prompt", {"sessionId": "s", "prompt": []}, "stopReason"),
        ("initialize", {"protocolVersion": 1}, "protocolVersion"),
        ("session/new", {"cwd": "/", "mcpServers": []}, {"sessionId": "from a dict"}),
        ("session/load", {"cwd": "/", "sessionId": "s", "mcpServers": []}, {}),
        ("session/close", {"sessionId": "s"}, "\\udcff"),
        ("session/list", {}, "object"),
    ],
)
async def test_what_a_handler_answers_is_checked_and_never_swallowed(method: str, params: Any, expected: Any) -> None:
    async with agent_on_wire(Sloppy()) as (_, wire, _):
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = await wire.receive()
        if isinstance(expected, dict):
            assert answer["result"] == expected
        else:
            assert answer["error"]["code"] == -32603
            assert expected in json.dumps(answer["error"], ensure_ascii=False)


async def test_an_id_in_use_is_refused_and_its_first_request_still_ends() -> None:
    ended: list[str] = []

    class Waiting(Agent):
        async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(session_id)
            raise AssertionError("can't happen")

    async with agent_on_wire(Waiting()) as (connection, wire, _):
        for session in ("a", "b", "c"):
            params = {"sessionId": session, "prompt": []}
            await wire.send({"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params})
        for _ in range(2):
            assert (await wire.receive())["error"]["code"] == -32600
        await connection.close()
        assert ended == ["a"]


async def test_no_more_requests_are_taken_than_allowed() -> None:
    class Waiting(Agent):
        async def prompt(self, **kwargs: Any) -> PromptResponse:
            await asyncio.Event().wait()
            raise AssertionError("can't happen")

    async with agent_on_wire(Waiting(), max_inflight=10) as (_, wire, _):
        params = {"sessionId": "s", "prompt": []}
        await wire.send(*({"jsonrpc": "2.0", "id": i, "method": "session/prompt", "params": params} for i in range(12)))
        refused = [await wire.receive(), await wire.receive()]
        assert [answer["id"] for answer in refused] == [10, 11]
        assert "more than 10 requests" in refused[0]["error"]["data"]["details"]


async def test_elicitation_handlers_get_raw_params_and_meta_when_they_ask_for_them() -> None:
    seen: list[Any] = []

    class Asked(Client):
        async def create_elicitation(  # type: ignore[override]
            this,  # noqa: N805
            message: str,
            mode: Any,
            raw_params: Any,
            field_meta: Any,
        ) -> CreateElicitationResponse:
            seen.extend([message, bytes(raw_params), field_meta])
            return CancelElicitationResponse()

        async def session_update(this, session_id: str, update: Any, **kwargs: Any) -> None:  # noqa: N805
            seen.append(kwargs)

    async with asyncio.timeout(5), client_on_wire(Asked()) as (_, wire, _):
        params = {"mode": "form", "message": "?", "sessionId": "s", "requestedSchema": {}, "_meta": {"k": 1}}
        await wire.send({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": params})
        assert (await wire.receive())["result"] == {"action": "cancel"}
        assert seen == ["?", json.dumps(params).encode(), {"k": 1}]
        await wire.send(chunk("x", _meta={"this": 1, "that": 2}))
        while len(seen) < 4:
            await asyncio.sleep(0.001)
        assert seen[3] == {"that": 2}


# -- nothing grows without bound --


async def test_requests_that_wait_count_towards_the_backlog() -> None:
    release = asyncio.Event()

    class Stuck(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await release.wait()

        async def write_text_file(self, **kwargs: Any) -> None:
            pass

    async with asyncio.timeout(20), client_on_wire(Stuck()) as (connection, wire, _):
        params = {"sessionId": "s", "path": "/f", "content": "x" * 10_000}
        flood = [{"jsonrpc": "2.0", "id": i, "method": "fs/write_text_file", "params": params} for i in range(2_000)]
        sending = asyncio.ensure_future(wire.send(chunk("x"), *flood))
        backlog = connection.connection._backlog
        while not backlog.waiting:
            await asyncio.sleep(0.001)
        assert backlog.size < 2 * backlog.limit
        release.set()
        answers = {(await wire.receive())["id"] for _ in flood}
        await sending
        assert answers == set(range(2_000))
        assert backlog.size == 0


async def test_a_peer_that_reads_no_answers_is_not_read_from() -> None:
    async with agent_on_wire(Sloppy()) as (connection, wire, _):
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "no/such" + "x" * 20_000}).encode()
        sent = 0
        try:
            async with asyncio.timeout(1.5):
                while True:
                    await wire.send(request)
                    sent += 1
        except TimeoutError:
            pass
        assert connection.connection._link.unsent < 12 * 1024 * 1024
        for _ in range(sent):
            assert (await wire.receive())["error"]["code"] == -32601


async def test_a_silence_of_our_own_making_is_no_timeout() -> None:
    release = asyncio.Event()

    class Stuck(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await release.wait()

    lines = [chunk("y" * 1000) for _ in range(2000)]
    options = {"backlog_limit": 10_000, "receive_timeout": 0.5}
    async with asyncio.timeout(10), client_on_wire(Stuck(), **options) as (connection, wire, _):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        sending = asyncio.ensure_future(wire.send(*lines))
        try:
            while not connection.connection._backlog.waiting:
                await asyncio.sleep(0.001)
            await asyncio.sleep(1.2)  # more than twice the silence that would end it
            assert not connection.connection.is_closed
        finally:
            release.set()
        await asyncio.gather(sending, wire.answer(DONE))
        await call


async def test_a_real_silence_ends_the_connection_and_every_later_call_says_why() -> None:
    async with client_on_wire(Quiet(), receive_timeout=0.05) as (connection, _, _):
        for _ in range(2):
            with pytest.raises(ConnectionClosed, match=r"nothing received for 0\.05 s"):
                await connection.prompt("s", [text_block("hi")])


async def test_a_handler_that_others_wait_for_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "STALL", 0.05)
    release = asyncio.Event()

    class Stuck(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await release.wait()

    async with asyncio.timeout(5), client_on_wire(Stuck()) as (connection, wire, diagnostics):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(chunk("x"))
        await asyncio.sleep(0.01)
        await wire.answer(DONE)
        while not diagnostics:
            await asyncio.sleep(0.005)
        assert diagnostics[0].kind == "stalled"
        release.set()
        await call


# -- things end --


async def test_closing_in_a_handler_handles_nothing_more() -> None:
    seen: list[str] = []

    class Closing(Client):
        def on_connect(self, conn: Any) -> None:
            self.conn = conn

        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            seen.append(update.content.text)
            await self.conn.close()

    async with client_on_wire(Closing()) as (connection, wire, _):
        await wire.send(*(chunk(str(i)) for i in range(5)))
        async with asyncio.timeout(5):
            await connection.connection.wait_closed()
            await connection.close()
        assert seen == ["0"]


async def test_a_sending_loop_can_be_cancelled() -> None:
    class Flooding(Agent):
        def on_connect(self, conn: Any) -> None:
            self.conn = conn
            self.cancelled = False

        async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
            while not self.cancelled:
                await self.conn.session_update(session_id, update_agent_message_text("x"))
            return PromptResponse(stop_reason="cancelled")

        async def cancel(self, session_id: str, **kwargs: Any) -> None:
            self.cancelled = True

    left, right = memory_pair()
    async with (
        asyncio.timeout(10),
        AgentSideConnection(Flooding(), left),
        ClientSideConnection(Quiet(), right) as connection,
    ):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await asyncio.sleep(0.05)
        await connection.cancel("s")
        assert (await call).stop_reason == "cancelled"


LEAVES_BEHIND = {
    "a daemon": "(setsid sh -c 'sleep 61 & echo $! > {pid}; wait' </dev/null >/dev/null 2>&1 &)\nread line",
    "a child of a dead agent": "setsid sh -c 'echo $$ > {pid}; exec sleep 62' >/dev/null 2>&1 &\nread x; exit 1",
    "one that ignores SIGTERM": "trap '' TERM\necho $$ > {pid}\nwhile :; do sleep 0.1; done",
}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group is known")
@pytest.mark.parametrize("what", LEAVES_BEHIND)
async def test_nothing_of_an_agent_stays(what: str, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = LEAVES_BEHIND[what].format(pid=pid)
    async with asyncio.timeout(15):
        spawned = spawn_agent_process(Quiet(), "sh", "-c", code, transport_kwargs={"shutdown_timeout": 0.3})
        async with spawned as (connection, _):
            while not pid.exists() or not pid.read_text().strip():
                await asyncio.sleep(0.01)
            await connection.cancel("s")
            await asyncio.sleep(0.1)
        number = int(pid.read_text())
        while is_alive(number):
            await asyncio.sleep(0.01)


async def test_cancelling_the_end_again_and_again_leaves_no_child(tmp_path: Path) -> None:
    code = "trap '' TERM\nwhile :; do sleep 0.1; done"
    process: Any = None

    async def work() -> None:
        nonlocal process
        async with spawn_agent_process(Quiet(), "sh", "-c", code) as (_, process):
            await asyncio.Event().wait()

    task = asyncio.ensure_future(work())
    while process is None:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.05)
    async with asyncio.timeout(5):
        await asyncio.wait((task,))
        while is_alive(process.pid):
            await asyncio.sleep(0.01)
