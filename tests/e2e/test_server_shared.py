"""One session, shared: WebSockets, event streams and remote ACP see the same in the same order, and decide once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import acp
from acp import schema as sdk
from acp.ws import create_websocket_stream

from tests.support.lanes import Consumer, lane
from tests.support.servers import TOKEN, Served, serving

PATIENCE = 60
FLOOD = 20_000
CONSUMERS = 50
INTEROP = Path(__file__).parents[1] / "interop"


class SdkClient:
    """An ACP client made with the official Python SDK. A permission is decided by `choose`, or waits for ever."""

    def __init__(self, choose: str | None = None) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.choose = choose
        self.may_choose = asyncio.Event()
        self.may_choose.set()
        self._came = asyncio.Event()

    async def session_update(self, session_id: str, update: Any) -> None:
        self.updates.append(update)
        self._wake()

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any]) -> Any:
        self.asked.append(tool_call)
        self._wake()
        if self.choose is None:
            await asyncio.Event().wait()
        await self.may_choose.wait()
        outcome = sdk.AllowedOutcome(outcome="selected", option_id=str(self.choose))
        return sdk.RequestPermissionResponse(outcome=outcome)

    def _wake(self) -> None:
        self._came.set()
        self._came = asyncio.Event()

    async def until_asked(self, count: int = 1) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.asked) < count:
                await self._came.wait()

    async def until_said(self, text: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while text not in said(self.updates, "agent_message_chunk"):
                await self._came.wait()

    @property
    def seqs(self) -> list[int]:
        return [update.field_meta["pilothouse"]["seq"] for update in self.updates]


def said(updates: list[Any], kind: str) -> str:
    return "".join(update.content.text for update in updates if update.session_update == kind)


@contextlib.asynccontextmanager
async def sdk_client(served: Served, client: SdkClient) -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    stream = await create_websocket_stream(f"ws://127.0.0.1:{served.port}/acp", headers=headers)
    connection = acp.connect_to_agent(client, stream, use_unstable_protocol=True)  # type: ignore[arg-type]
    try:
        await connection.initialize(protocol_version=1)
        yield connection
    finally:
        await connection.close()


class Listener:
    """A consumer of server-sent events."""

    def __init__(self, served: Served, session_id: str) -> None:
        self.events: list[dict[str, Any]] = []
        self._served = served
        self._target = f"/sessions/{session_id}/events"
        self._task = asyncio.create_task(self._read())
        self._came = asyncio.Event()

    async def _read(self) -> None:
        async with self._served.client.stream("GET", self._target) as stream:
            async for frame in stream.frames():
                if frame.data:
                    self.events.append(frame.json())
                    self._came.set()

    async def until(self, seq: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while not self.events or self.events[-1]["seq"] < seq:
                self._came.clear()
                await self._came.wait()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))


async def caught_up(consumer: Consumer, seq: int) -> None:
    while not consumer.events or consumer.events[-1]["seq"] < seq:
        await consumer.next()


async def test_all_kinds_of_consumers_see_the_same_order_and_the_same_seqs(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(4 * PATIENCE),
        serving(tmp_path) as served,
        lane(served.port) as one,
        lane(served.port) as two,
    ):
        client = SdkClient()
        async with sdk_client(served, client) as agent:
            session_id = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            await one.say("subscribe", sessionIds=[session_id])
            await two.say("subscribe")
            listener = Listener(served, session_id)
            await one.command(session_id, "a", command="send_message", message="echo from the first socket")
            await client.until_said("from the first socket")
            await two.command(session_id, "b", command="send_message", message="echo from the second socket")
            await client.until_said("from the second socket")
            content = {"content": "echo from HTTP"}
            answer = await served.client.request("POST", f"/sessions/{session_id}/send-message", content)
            assert answer.status == 200
            response = await agent.prompt(session_id=session_id, prompt=[acp.text_block("echo over ACP")])
            end = response.field_meta["pilothouse"]["seq"]
            session = await served.hub.session(session_id)
            last = await session.committed()
            await asyncio.gather(caught_up(one, last), caught_up(two, last), listener.until(last))
            await listener.stop()

            assert one.seqs == two.seqs == [event["seq"] for event in listener.events] == list(range(1, last + 1))
            assert one.events == two.events == listener.events
            stored = [json.loads(entry.data) for entry in await served.hub.log.read(session_id, 0, 1000)]
            assert one.events == stored
            # updates are some of the events, in the same order, under the same numbers
            assert client.seqs == sorted(client.seqs)
            spoken = [event for event in one.events if event["type"] == "message:delta"]
            chunks = [(u.field_meta["pilothouse"]["seq"], u.content.text) for u in client.updates if _is_speech(u)]
            # the first piece of a message goes out with its beginning
            assert [text for _, text in chunks] == [event["delta"] for event in spoken]
            assert all(0 <= event["seq"] - seq <= 1 for (seq, _), event in zip(chunks, spoken, strict=True))
            assert end in one.seqs
            # what others said is told to the client, what it said itself is not told back
            prompts = said(client.updates, "user_message_chunk")
            assert prompts == "echo from the first socketecho from the second socketecho from HTTP"
            asked = [
                e["content"][0]["text"] for e in one.events if e["type"] == "message:complete" and e["role"] == "user"
            ]
            assert asked[-1] == "echo over ACP"


def _is_speech(update: Any) -> bool:
    return bool(update.session_update == "agent_message_chunk")


async def test_a_permission_answered_by_one_is_withdrawn_from_the_others(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(4 * PATIENCE),
        serving(tmp_path) as served,
        lane(served.port) as one,
        lane(served.port) as two,
    ):
        client, other = SdkClient(), SdkClient()
        async with sdk_client(served, client) as agent, sdk_client(served, other) as second:
            session_id = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            await second.load_session(session_id=session_id, cwd=str(tmp_path), mcp_servers=[])
            await one.say("subscribe", sessionIds=[session_id])
            prompt = asyncio.create_task(agent.prompt(session_id=session_id, prompt=[acp.text_block("permission")]))
            await asyncio.gather(client.until_asked(), other.until_asked())
            # every consumer learns of it, also one that follows nothing
            asked = (await two.until("approval_requested"))["approval"]
            assert asked["sessionId"] == session_id
            assert client.asked[0].field_meta["pilothouse"]["approvalId"] == asked["id"]

            command = {"command": "deny_tool_call", "requestId": asked["id"], "toolCallId": "call-1", "reason": "no"}
            result = await one.command(session_id, "deny", **command)
            assert result["ok"] is True
            resolved = (await two.until("approval_resolved"))["approval"]
            assert resolved["decision"]["approved"] is False
            assert resolved["decidedBy"] == "token"
            async with asyncio.timeout(PATIENCE):
                assert (await prompt).stop_reason == "end_turn"
            late = await served.client.request("POST", f"/approvals/{asked['id']}", {"decision": "allow"})
            assert late.status == 409

        # the answer of an ACP client settles it for the sockets
        client = SdkClient(choose="yes")
        client.may_choose.clear()
        async with sdk_client(served, client) as agent:
            await agent.resume_session(session_id=session_id, cwd=str(tmp_path), mcp_servers=[])
            prompt = asyncio.create_task(agent.prompt(session_id=session_id, prompt=[acp.text_block("permission")]))
            asked = (await two.until("approval_requested"))["approval"]
            client.may_choose.set()  # one that is decided at once is nobody's, and nobody is told of it
            resolved = (await two.until("approval_resolved"))["approval"]
            async with asyncio.timeout(PATIENCE):
                await prompt
            assert (resolved["id"], resolved["decision"]["optionId"]) == (asked["id"], "yes")
        check = await served.client.request("GET", "/approvals")
        assert check.json() == {"approvals": []}


async def test_who_comes_late_is_asked_and_who_leaves_decides_nothing(tmp_path: Path) -> None:
    async with asyncio.timeout(4 * PATIENCE), serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path)
        first = SdkClient()
        async with sdk_client(served, first) as agent:
            await agent.load_session(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
            prompt = await session.send("permission")
            await first.until_asked()
        assert [record.state for record in await served.hub.approvals()] == ["pending"]
        assert not prompt.done.done()

        for method in ("load_session", "resume_session"):
            late = SdkClient()
            async with sdk_client(served, late) as agent:
                await getattr(agent, method)(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
                await late.until_asked()
                assert late.asked[0].tool_call_id == first.asked[0].tool_call_id
                assert late.asked[0].title == first.asked[0].title
        async with lane(served.port, greeted=False) as consumer:
            listed = (await consumer.until("approvals"))["approvals"]
            assert len(listed) == 1
        last = SdkClient(choose="yes")
        async with sdk_client(served, last) as agent:
            await agent.resume_session(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
            async with asyncio.timeout(PATIENCE):
                assert (await prompt.done).stop_reason == "end_turn"


async def test_the_typescript_sdk_shares_a_session_too(tmp_path: Path) -> None:
    async with asyncio.timeout(4 * PATIENCE), serving(tmp_path) as served, lane(served.port) as consumer:
        program = await asyncio.create_subprocess_exec(
            *("node", "--no-warnings", "--experimental-websocket", "ws_client.mjs"),
            *(f"ws://127.0.0.1:{served.port}/acp", TOKEN, str(tmp_path)),
            cwd=INTEROP,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert program.stdin is not None
        assert program.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE):
                opened = json.loads(await program.stdout.readline())
                assert opened["refused"] == -32000
                await consumer.say("subscribe", sessionIds=[opened["sessionId"]])
                await consumer.command(opened["sessionId"], "a", command="send_message", message="permission")
                withdrawn = await consumer.until("approval_requested")
                command = {"requestId": withdrawn["approval"]["id"], "toolCallId": "call-1"}
                assert json.loads(await program.stdout.readline()) == {"asked": "call-1"}
                await consumer.command(opened["sessionId"], "b", command="approve_tool_call", **command)
                assert json.loads(await program.stdout.readline()) == {"withdrawn": "call-1"}
                program.stdin.write(b"go on\n")
                told = json.loads(await program.stdout.readline())
        finally:
            program.stdin.close()
            await program.wait()
        assert told["stopReason"] == "end_turn"
        assert told["user"] == "permission"
        assert told["agent"].endswith("so it is allowed.from TypeScript")
        await consumer.until_event(lambda event: event.get("delta") == "from TypeScript")
        assert told["seqs"] == sorted(told["seqs"])
        assert set(told["seqs"]) <= set(consumer.seqs)


async def test_fifty_consumers_follow_one_flood_and_each_gets_all_of_it(
    tmp_path: Path, tell: Callable[[str], None]
) -> None:
    async with asyncio.timeout(4 * PATIENCE), serving(tmp_path) as served:
        session = await served.hub.start_session("demo", tmp_path, start=True)
        await session.prompt("echo ready")
        last = session.state.seq + FLOOD
        arguments = [str(served.port), TOKEN, session.id, str(CONSUMERS), str(last)]
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.flood_readers", *arguments),
            cwd=Path(__file__).parents[2],
            stdout=asyncio.subprocess.PIPE,
        )
        assert program.stdout is not None
        async with asyncio.timeout(4 * PATIENCE):
            assert await program.stdout.readline() == b"READY\n"
            await session.prompt(f"flood {FLOOD}")
            report = json.loads(await program.stdout.readline())
            await program.wait()
    tell(
        f"{CONSUMERS} WebSocket consumers, one flood of {FLOOD} updates: {report['median']:,.0f} events/s each "
        f"(slowest {report['least']:,.0f}), {report['frames']:.0f} frames each"
    )
    assert report["complete"] == CONSUMERS
