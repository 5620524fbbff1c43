"""What handlers may rely on: order, barriers, and freedom from deadlock."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp import (
    AgentSideConnection,
    Client,
    ClientSideConnection,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
    memory_pair,
    text_block,
)
from tests.support.wire import chunk, client_on_wire

DONE = {"stopReason": "end_turn"}


async def test_sessions_do_not_wait_for_each_other() -> None:
    release = asyncio.Event()
    seen: list[str] = []

    class TwoSpeeds(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            if session_id == "slow":
                await release.wait()
            seen.append(session_id)

    async with asyncio.timeout(10), client_on_wire(TwoSpeeds()) as (connection, wire, _):
        slow = asyncio.ensure_future(connection.prompt("slow", [text_block("hi")]))
        fast = asyncio.ensure_future(connection.prompt("fast", [text_block("hi")]))
        await wire.send(chunk("1", "slow"), chunk("2", "fast"))
        await wire.answer(DONE)
        await wire.answer(DONE)
        await fast
        assert seen == ["fast"]
        assert not slow.done()
        release.set()
        await slow
        assert seen == ["fast", "slow"]


async def test_an_error_answer_waits_for_the_updates_before_it_too() -> None:
    seen: list[str] = []

    class Slow(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0.01)
            seen.append(update.content.text)

    async with asyncio.timeout(10), client_on_wire(Slow()) as (connection, wire, _):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(chunk("a"), chunk("b"))
        await wire.answer(error={"code": 1, "message": "no"})
        with pytest.raises(Exception, match="no"):
            await call
        assert seen == ["a", "b"]


async def test_a_handler_may_call_the_peer_about_its_own_session() -> None:
    class Nesting(Client):
        def on_connect(self, conn: Any) -> None:
            self.conn = conn
            self.results: list[str] = []

        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            if update.content.text == "ask":
                response = await asyncio.gather(self.conn.prompt(session_id, [text_block("nested")]))
                self.results.append(response[0].stop_reason)
            self.results.append(update.content.text)

    client = Nesting()
    async with asyncio.timeout(10), client_on_wire(client) as (connection, wire, _):
        outer = asyncio.ensure_future(connection.prompt("s", [text_block("outer")]))
        request = await wire.receive()
        await wire.send(chunk("ask"), chunk("after"))
        await wire.answer({"stopReason": "refusal"})
        await wire.send({"jsonrpc": "2.0", "id": request["id"], "result": DONE})
        await outer
        assert client.results == ["refusal", "ask", "after"]


async def test_a_handler_that_waits_for_an_answer_does_not_stop_the_reading() -> None:
    """Its answer may stand behind more updates than may be unhandled."""

    class Nesting(Client):
        asked = False

        def on_connect(self, conn: Any) -> None:
            self.conn = conn

        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            if not self.asked:
                self.asked = True
                await self.conn.prompt("other", [text_block("nested")])

    async with asyncio.timeout(20), client_on_wire(Nesting(), backlog_limit=10_000) as (connection, wire, _):
        outer = asyncio.ensure_future(connection.prompt("s", [text_block("outer")]))
        await wire.receive()
        await wire.send(chunk("first"))
        nested = await wire.receive()
        await wire.send(*(chunk("x" * 1000) for _ in range(500)))
        await wire.send({"jsonrpc": "2.0", "id": nested["id"], "result": DONE})
        await wire.send({"jsonrpc": "2.0", "id": 0, "result": DONE})
        await outer


async def test_a_prompt_from_a_task_left_behind_by_a_handler_keeps_its_barrier() -> None:
    class Spawning(Client):
        def __init__(self) -> None:
            self.seen: list[str] = []
            self.task: asyncio.Task[Any] | None = None

        def on_connect(self, conn: Any) -> None:
            self.conn = conn

        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            if self.task is None:
                self.task = asyncio.ensure_future(self.conn.prompt(session_id, [text_block("later")]))
                return
            await asyncio.sleep(0.002)
            self.seen.append(update.content.text)

    client = Spawning()
    async with asyncio.timeout(10), client_on_wire(client) as (_, wire, _):
        await wire.send(chunk("start"))
        await wire.receive()
        await wire.send(*(chunk(str(i)) for i in range(20)), {"jsonrpc": "2.0", "id": 0, "result": DONE})
        assert client.task is not None
        await client.task
        assert client.seen == [str(i) for i in range(20)]


async def test_a_request_of_the_peer_starts_after_the_updates_before_it() -> None:
    log: list[str] = []

    class Asked(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0.01)
            log.append(update.content.text)

        async def request_permission(
            self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
        ) -> RequestPermissionResponse:
            log.append("asked")
            return RequestPermissionResponse(outcome={"outcome": "cancelled"})

    async with asyncio.timeout(10), client_on_wire(Asked()) as (_, wire, _):
        params = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []}
        ask = {"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params}
        await wire.send(chunk("a"), chunk("b"), ask)
        assert (await wire.receive())["result"] == {"outcome": {"outcome": "cancelled"}}
        assert log == ["a", "b", "asked"]


async def test_a_cancel_right_behind_its_prompt_finds_the_prompt_running() -> None:
    class Agent:
        def __init__(self) -> None:
            self.running: dict[str, asyncio.Event] = {}

        async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
            self.running[session_id] = asyncio.Event()
            await self.running[session_id].wait()
            return PromptResponse(stop_reason="cancelled")

        async def cancel(self, session_id: str, **kwargs: Any) -> None:
            self.running[session_id].set()

    class Silent(Client):
        pass

    left, right = memory_pair()
    async with (
        asyncio.timeout(10),
        AgentSideConnection(Agent(), left),
        ClientSideConnection(Silent(), right) as connection,
    ):
        for _ in range(20):
            call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
            await asyncio.sleep(0)
            await connection.cancel("s")
            assert (await call).stop_reason == "cancelled"


async def test_a_failing_handler_is_reported_and_the_next_update_handled() -> None:
    seen: list[str] = []

    class Fragile(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            if update.content.text == "bad":
                raise RuntimeError("handler broke")
            seen.append(update.content.text)

    async with asyncio.timeout(10), client_on_wire(Fragile()) as (connection, wire, diagnostics):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(chunk("a"), chunk("bad"), chunk("b"))
        await wire.answer(DONE)
        await call
        assert seen == ["a", "b"]
        assert [d.kind for d in diagnostics] == ["handler_error"]


async def test_close_from_inside_a_handler_ends() -> None:
    class Closing(Client):
        def on_connect(self, conn: Any) -> None:
            self.conn = conn
            self.closed = asyncio.Event()

        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await self.conn.close()
            self.closed.set()

    client = Closing()
    async with asyncio.timeout(10), client_on_wire(client) as (connection, wire, _):
        await wire.send(chunk("x"))
        await client.closed.wait()
        with pytest.raises(ConnectionError):
            await connection.prompt("s", [text_block("hi")])


async def test_answers_received_before_the_end_are_given_out() -> None:
    seen: list[str] = []

    class Slow(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0.01)
            seen.append(update.content.text)

    async with asyncio.timeout(10), client_on_wire(Slow()) as (connection, wire, _):
        done = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        lost = asyncio.ensure_future(connection.prompt("t", [text_block("hi")]))
        await wire.receive()
        await wire.send(chunk("a"), chunk("b"), {"jsonrpc": "2.0", "id": 0, "result": DONE})
        await wire.close()
        with pytest.raises(ConnectionError):
            await lost
        assert (await done).stop_reason == "end_turn"
        assert seen == ["a", "b"]


async def test_an_agent_answers_what_was_asked_before_its_stdin_closed(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        textwrap.dedent(
            """
            import asyncio
            from pilothouse.acp import PromptResponse, run_agent, update_agent_message_text

            class Agent:
                def on_connect(self, conn):
                    self.conn = conn

                async def prompt(self, session_id, prompt, **kwargs):
                    await asyncio.sleep(0.2)
                    await self.conn.session_update(session_id, update_agent_message_text("late"))
                    return PromptResponse(stop_reason="end_turn")

            asyncio.run(run_agent(Agent()))
            """
        )
    )
    line = b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}'
    done = subprocess.run([sys.executable, program], input=line, capture_output=True, timeout=20, check=True)
    update, answer = (json.loads(out) for out in done.stdout.splitlines())
    assert update["params"]["update"]["content"]["text"] == "late"
    assert answer["result"] == DONE
    assert done.stderr == b""
