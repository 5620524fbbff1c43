"""The hub as an ACP agent, over a link in memory: what an editor asks of it, and what it is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.acp import schema, text_block
from pilothouse.acp.client.connection import ClientSideConnection
from pilothouse.acp.errors import RequestError
from pilothouse.acp.transport import memory_pair
from pilothouse.dialects.acp import to_updates
from pilothouse.dialects.acp.requests import elicitation_request, permission_request
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.log.entries import Entry
from pilothouse.model.events import ApprovalRequestedEvent, UserQuestionEvent, decode_event
from pilothouse.model.records import DescriptionPreview, Option
from pilothouse.server.acp.update_frames import encode_run, notification, numbered, update_head
from pilothouse.server.acp.websocket import AcpFace
from pilothouse.server.auth.callers import ADMIN, Caller
from pilothouse.server.frame_cache import FrameCache
from tests.support.hubs import PATIENCE, fact, until
from tests.support.records import append, finder, says, write_record
from tests.support.servers import agent_specs

OWNER = Caller(name="editor", scopes=ADMIN)
Answer = Callable[..., Awaitable[Any]]


class Editor:
    """A client that keeps what it is told. `permission` and `elicitation` answer what it is asked."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.permission: Answer | None = None
        self.elicitation: Answer | None = None
        self._came = asyncio.Event()
        self.agent: ClientSideConnection

    async def session_update(self, session_id: str, update: Any, raw_params: Any) -> None:
        self.updates.append(json.loads(bytes(raw_params)))
        self._wake()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, raw_params: Any) -> Any:
        self.asked.append(json.loads(bytes(raw_params)))
        self._wake()
        return await (self.permission or forever)()

    async def create_elicitation(self, message: str, mode: Any, raw_params: Any) -> Any:
        self.asked.append(json.loads(bytes(raw_params)))
        self._wake()
        return await (self.elicitation or forever)()

    def _wake(self) -> None:
        self._came.set()
        self._came = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                await self._came.wait()

    def said(self, kind: str = "agent_message_chunk") -> str:
        chunks = [params["update"] for params in self.updates if params["update"]["sessionUpdate"] == kind]
        return "".join(chunk["content"]["text"] for chunk in chunks)

    @property
    def kinds(self) -> list[str]:
        return [params["update"]["sessionUpdate"] for params in self.updates]

    @property
    def seqs(self) -> list[int]:
        return [params["update"]["_meta"]["pilothouse"]["seq"] for params in self.updates]


async def forever() -> None:
    await asyncio.Event().wait()


def chosen(option_id: str) -> Answer:
    async def answer() -> Any:
        return {"outcome": {"outcome": "selected", "optionId": option_id}}

    return answer


@contextlib.asynccontextmanager
async def hub_of(home: Path) -> AsyncIterator[Hub]:
    async with Hub(home=home, agents=agent_specs(home), cancel_deadline=5.0) as hub:
        yield hub


@contextlib.asynccontextmanager
async def editing(
    hub: Hub, caller: Caller | None = OWNER, *, capabilities: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Editor]:
    ours, theirs = memory_pair()
    editor = Editor()
    face = AcpFace(hub, ours, caller=caller, **options)
    connection = ClientSideConnection(editor, theirs)  # type: ignore[arg-type]
    editor.agent = connection
    try:
        given = msgspec.convert(capabilities or {}, schema.ClientCapabilities)
        await connection.initialize(protocol_version=1, client_capabilities=given)
        yield editor
    finally:
        await connection.close()
        await face.close()


async def opened(editor: Editor, cwd: Path) -> str:
    answer = await editor.agent.new_session(cwd=str(cwd), mcp_servers=[])
    return answer.session_id


async def prompted(editor: Editor, session_id: str, text: str) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await editor.agent.prompt(session_id=session_id, prompt=[text_block(text)])


# -- who comes in --


async def test_it_says_what_it_can_and_nothing_else(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        answer = await editor.agent.initialize(protocol_version=7)
        assert answer.protocol_version == 1
        wire = json.loads(msgspec.json.encode(answer.agent_capabilities))
        assert wire["loadSession"] is True
        assert sorted(key for key, value in wire["sessionCapabilities"].items() if value is not None) == [
            "additionalDirectories",
            "close",
            "delete",
            "fork",
            "list",
            "resume",
        ]
        assert answer.auth_methods == []
        with pytest.raises(RequestError) as caught:
            await editor.agent.connection.send_request("session/archive", {"sessionId": "x"})
        assert caught.value.code == -32601


async def test_who_is_not_known_must_authenticate_first(tmp_path: Path) -> None:
    async def authenticate(token: str) -> Caller | None:
        return OWNER if token == "right" else None

    async with hub_of(tmp_path) as hub, editing(hub, None, authenticate=authenticate) as editor:
        agent = editor.agent
        methods = (await agent.initialize(protocol_version=1)).auth_methods
        assert [method.id for method in methods] == ["pilothouse-token"]
        for call in (
            agent.list_sessions(),
            agent.new_session(cwd=str(tmp_path), mcp_servers=[]),
            agent.load_session(session_id="x", cwd=str(tmp_path), mcp_servers=[]),
            agent.prompt(session_id="x", prompt=[text_block("hello")]),
            agent.ext_method("pilothouse.dev/echo", {"sessionId": "x"}),
            agent.authenticate(method_id="pilothouse-token", token="wrong"),
        ):
            with pytest.raises(RequestError) as caught:
                await call
            assert caught.value.code == -32000
        with pytest.raises(RequestError) as caught:
            await agent.authenticate(method_id="another")
        assert caught.value.code == -32602
        await agent.authenticate(method_id="pilothouse-token", token="right")
        assert (await agent.list_sessions()).sessions == []


async def test_scopes_are_kept(tmp_path: Path) -> None:
    reader = Caller(name="screen", scopes=frozenset({"read"}))
    async with hub_of(tmp_path) as hub, editing(hub, reader) as editor:
        session = await hub.start_session("demo", tmp_path)
        await editor.agent.load_session(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
        for call in (
            editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[]),
            editor.agent.prompt(session_id=session.id, prompt=[text_block("hello")]),
            editor.agent.set_session_mode(session_id=session.id, mode_id="plan"),
            editor.agent.close_session(session_id=session.id),
            editor.agent.delete_session(session_id=session.id),
            editor.agent.ext_method("pilothouse.dev/echo", {"sessionId": session.id}),
        ):
            with pytest.raises(RequestError) as caught:
                await call
            assert caught.value.code == -32003
        turn = await session.send("wait")
        await editor.until(lambda: "Waiting" in editor.said())
        await editor.agent.cancel(session_id=session.id)
        await editor.agent.list_sessions()
        assert not turn.done.done()
        await session.cancel()
        permission = await session.send("permission")
        await until(session, "approval:requested")
        await editor.agent.list_sessions()
        assert editor.asked == []
        await session.cancel()
        await permission.done


async def test_who_may_not_read_cannot_come_to_have_a_session_open(tmp_path: Path) -> None:
    writer = Caller(name="writer", scopes=frozenset({"prompt"}))
    async with hub_of(tmp_path) as hub, editing(hub, writer) as editor:
        session = await hub.start_session("demo", tmp_path)
        await session.prompt("echo before")
        for call in (
            editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[]),
            editor.agent.fork_session(session_id=session.id, cwd=str(tmp_path)),
            editor.agent.prompt(session_id=session.id, prompt=[text_block("echo mine")]),
        ):
            with pytest.raises(RequestError) as caught:
                await call
            assert (caught.value.code, caught.value.data["scope"]) == (-32003, "read")
        await session.prompt("echo of the owner")
        await editor.agent.set_session_mode(session_id=session.id, mode_id="plan")
        assert editor.updates == []
        assert [record.id for record in (await hub.sessions()).sessions] == [session.id]


# -- sessions --


async def test_nothing_of_a_session_is_sent_before_the_answer_that_names_it(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        answer = await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        assert editor.updates == []
        assert answer.modes is not None
        assert answer.config_options
        assert answer.field_meta is not None
        assert answer.field_meta["pilothouse"]["agent"] == "demo"
        # what is in the answer is not said again, what the agent sent is
        await editor.until(lambda: bool(editor.updates))
        assert editor.kinds == ["available_commands_update"]


async def test_an_agent_is_chosen_by_name(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        answer = await editor.agent.new_session(cwd=str(tmp_path), mcp_servers=[], pilothouse={"agent": "odd"})
        assert (await hub.session(answer.session_id)).agent_name == "odd"
        for wrong in ({"agent": "nobody"}, {"agent": "demo", "cwd": "/no/such/place"}):
            cwd = str(wrong.pop("cwd", tmp_path))
            with pytest.raises(RequestError) as caught:
                await editor.agent.new_session(cwd=cwd, mcp_servers=[], pilothouse=wrong)
            assert caught.value.code == -32602
        assert len((await hub.sessions()).sessions) == 1


async def test_an_agent_that_cannot_be_started_leaves_no_session_behind(tmp_path: Path) -> None:
    async with Hub(home=tmp_path, agents={"demo": msgspec.structs.replace(_demo(tmp_path), command=("/no/x",))}) as hub:
        async with editing(hub) as editor:
            with pytest.raises(RequestError) as caught:
                await opened(editor, tmp_path)
            assert "/no/x" in str(caught.value)
        assert (await hub.sessions(archived=None)).sessions == []


def _demo(home: Path) -> Any:
    return agent_specs(home)["demo"]


async def stored_updates(hub: Hub, session: HubSession) -> list[Any]:
    entries = await hub.log.read(session.id, 0, 5000)
    events = []
    for entry in entries:
        event = decode_event(entry.data)
        event.source = entry.source
        events.append(event)
    return [json.loads(update) for update in to_updates(events)]


def bare(updates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Updates without what the hub added."""
    found = []
    for params in updates:
        update = dict(params["update"])
        meta = {key: value for key, value in update.pop("_meta").items() if key != "pilothouse"}
        found.append({**update, "_meta": meta} if meta else update)
    return found


async def test_a_replay_is_all_that_was_and_comes_before_its_answer(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub:
        session = await hub.start_session("demo", tmp_path)
        for text in ("echo one", "think", "plan", "tools"):
            await session.prompt(text)
        async with editing(hub) as editor:
            answer = await editor.agent.load_session(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
            told = list(editor.updates)
            assert bare(told) == await stored_updates(hub, session)
            assert editor.seqs == sorted(editor.seqs)
            assert editor.said("user_message_chunk") == "echo onethinkplantools"
            assert answer is not None
            assert answer.field_meta is not None
            assert answer.field_meta["pilothouse"]["seq"] == session.state.seq
            await session.prompt("echo live")
            await editor.until(lambda: editor.said().endswith("live"))


async def test_a_resume_tells_only_what_comes_or_what_came_after_a_seq(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub:
        session = await hub.start_session("demo", tmp_path)
        await session.prompt("echo one")
        cursor = session.state.seq
        await session.prompt("echo two")
        async with editing(hub) as editor:
            await editor.agent.resume_session(session_id=session.id, cwd=str(tmp_path))
            assert editor.updates == []
            await session.prompt("echo three")
            await editor.until(lambda: editor.said() == "three")
            editor.updates.clear()
            await editor.agent.resume_session(session_id=session.id, cwd=str(tmp_path), pilothouse={"after": cursor})
            assert editor.said() == "twothree"
            assert min(editor.seqs) > cursor
            for wrong in (10_000, -1, "x", True):
                with pytest.raises(RequestError) as caught:
                    await editor.agent.resume_session(
                        session_id=session.id, cwd=str(tmp_path), pilothouse={"after": wrong}
                    )
                assert caught.value.code == -32602


async def test_sessions_are_listed_page_by_page(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        other = tmp_path / "other"
        other.mkdir()
        ids = {(await hub.start_session("demo", tmp_path)).id for _ in range(60)}
        elsewhere = await hub.start_session("demo", other, title="Elsewhere")
        found: list[str] = []
        cursor = None
        while cursor is not None or not found:
            page = await editor.agent.list_sessions(cwd=str(tmp_path), cursor=cursor)
            found += [info.session_id for info in page.sessions]
            cursor = page.next_cursor
        assert (len(found), set(found)) == (60, ids)
        (info,) = (await editor.agent.list_sessions(cwd=str(other))).sessions
        assert (info.session_id, info.title) == (elsewhere.id, "Elsewhere")
        with pytest.raises(RequestError) as caught:
            await editor.agent.list_sessions(cursor="rubbish")
        assert caught.value.code == -32602


async def test_unknown_sessions_are_named(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        for call in (
            editor.agent.load_session(session_id="ses_none", cwd=str(tmp_path), mcp_servers=[]),
            editor.agent.prompt(session_id="ses_none", prompt=[text_block("x")]),
            editor.agent.set_session_mode(session_id="ses_none", mode_id="x"),
            editor.agent.delete_session(session_id="ses_none"),
        ):
            with pytest.raises(RequestError) as caught:
                await call
            assert (caught.value.code, caught.value.data["sessionId"]) == (-32002, "ses_none")


async def test_an_editor_that_leaves_a_watched_session_does_not_end_the_watching(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    path = write_record(place, "demo-1-0123abcd", tmp_path, [says("Hello", "u1", user=True), says("Hi.", "a1")])
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        made = finder(place, tmp_path)
        hub.discovery.prepare(lambda: made, None)
        session = await hub.watch_session(await hub.discovery.find("demo", "demo-1-0123abcd"))
        await editor.agent.load_session(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
        await editor.agent.close_session(session_id=session.id)
        append(path, {"update": says("More.", "a2")})
        await until(session, lambda event: "More." in str(getattr(event, "delta", "")))


async def test_closing_leaves_and_deleting_deletes(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session_id = await opened(editor, tmp_path)
        await prompted(editor, session_id, "echo one")
        pid = (await hub.session(session_id)).agent_pid
        assert pid is not None
        await editor.agent.close_session(session_id=session_id)
        session = await hub.session(session_id)
        assert session.agent_pid is None
        editor.updates.clear()
        await session.prompt("echo unheard")
        await editor.agent.list_sessions()
        assert editor.updates == []
        await editor.agent.delete_session(session_id=session_id)
        assert (await hub.sessions()).sessions == []


async def test_modes_and_options_are_set_and_told_to_others(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as one, editing(hub) as two:
        session_id = await opened(one, tmp_path)
        await two.agent.load_session(session_id=session_id, cwd=str(tmp_path), mcp_servers=[])
        two.updates.clear()
        await one.agent.set_session_mode(session_id=session_id, mode_id="plan")
        await two.until(lambda: "current_mode_update" in two.kinds)
        answer = await one.agent.set_config_option(session_id=session_id, config_id="model", value="scripted-large")
        assert answer is not None
        values = {option.id: option.current_value for option in answer.config_options}
        assert values["model"] == "scripted-large"
        assert (await hub.session(session_id)).state.mode == "plan"


async def test_a_title_is_told_whoever_gave_it(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session_id = await opened(editor, tmp_path)
        await prompted(editor, session_id, "echo hello")
        (await hub.session(session_id)).rename("Given elsewhere")
        await editor.until(lambda: editor.kinds.count("session_info_update") > 1)
        told = [one["update"] for one in editor.updates if one["update"]["sessionUpdate"] == "session_info_update"]
        assert [update["title"] for update in told] == ["echo hello", "Given elsewhere"]


async def test_extensions_are_the_agents(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session_id = await opened(editor, tmp_path)
        answer = await editor.agent.ext_method("pilothouse.dev/echo", {"sessionId": session_id, "x": [1]})
        assert answer["x"] == [1]
        assert answer["sessionId"] == session_id
        for method, params in (("pilothouse.dev/echo", {}), ("unheard/of", {"sessionId": session_id})):
            with pytest.raises(RequestError) as caught:
                await editor.agent.ext_method(method, params)
            assert caught.value.code == -32601


# -- turns --


@pytest.mark.parametrize(("text", "reason"), [("echo hi", "end_turn"), ("refuse", "refusal"), ("limit", "max_tokens")])
async def test_a_prompt_is_answered_after_all_of_its_turn(tmp_path: Path, text: str, reason: str) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session_id = await opened(editor, tmp_path)
        answer = await prompted(editor, session_id, text)
        assert answer.stop_reason == reason
        session = await hub.session(session_id)
        spoken = "".join(message.text for message in session.state.messages if message.role == "assistant")
        assert editor.said() == spoken
        assert editor.said("user_message_chunk") == ""
        assert answer.usage is not None


async def test_a_flood_is_sent_before_the_answer(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session_id = await opened(editor, tmp_path)
        await prompted(editor, session_id, "flood 3000")
        chunks = editor.kinds.count("agent_message_chunk")
        assert chunks == 3000
        assert editor.seqs == sorted(editor.seqs)


@pytest.mark.parametrize(
    ("text", "code", "has"), [("error -32050", -32050, "agent_error"), ("crash 3", -32603, "agent_died")]
)
async def test_a_turn_that_fails_is_an_error_with_its_reason(tmp_path: Path, text: str, code: int, has: str) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session_id = await opened(editor, tmp_path)
        with pytest.raises(RequestError) as caught:
            await prompted(editor, session_id, text)
        assert (caught.value.code, caught.value.data["code"]) == (code, has)
        if has == "agent_died":
            assert caught.value.data["details"]["exitCode"] == 3
        assert (await prompted(editor, session_id, "echo again")).stop_reason == "end_turn"


async def test_a_cancel_ends_the_turn_and_takes_back_ones_own_prompts(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as one, editing(hub) as two:
        session_id = await opened(one, tmp_path)
        await two.agent.resume_session(session_id=session_id, cwd=str(tmp_path))
        running = asyncio.create_task(prompted(one, session_id, "wait"))
        await one.until(lambda: "Waiting" in one.said())
        waiting = asyncio.create_task(prompted(one, session_id, "echo mine"))
        others = asyncio.create_task(prompted(two, session_id, "echo theirs"))
        session = await hub.session(session_id)
        await until(session, lambda e: fact("prompt_queued")(e) and "theirs" in str(getattr(e, "data", "")))
        await one.agent.cancel(session_id=session_id)
        assert [(await task).stop_reason for task in (running, waiting, others)] == [
            "cancelled",
            "cancelled",
            "end_turn",
        ]
        await one.until(lambda: one.said("user_message_chunk") == "echo theirs")
        assert "mine" not in one.said()


async def test_who_opens_a_session_again_still_gets_the_answer_after_its_turn(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session = await hub.start_session("demo", tmp_path)
        # not opened before: both of these do it
        running = [asyncio.create_task(prompted(editor, session.id, text)) for text in ("wait", "echo last")]
        await editor.until(lambda: "Waiting" in editor.said())
        for _ in range(2):
            editor.updates.clear()
            await editor.agent.load_session(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
            assert editor.said("user_message_chunk") == "wait"
        await session.cancel()
        assert [(await task).stop_reason for task in running] == ["cancelled", "end_turn"]
        spoken = "".join(message.text for message in session.state.messages if message.role == "assistant")
        assert editor.said() == spoken
        assert editor.said("user_message_chunk") == "wait"


async def test_a_request_that_is_cancelled_ends_its_turn(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session_id = await opened(editor, tmp_path)
        running = asyncio.create_task(prompted(editor, session_id, "wait"))
        await editor.until(lambda: "Waiting" in editor.said())
        running.cancel()
        session = await hub.session(session_id)
        ended = await until(session, fact("turn_ended"))
        assert ended.data["stopReason"] == "cancelled"  # type: ignore[attr-defined]


async def test_who_leaves_ends_no_turn(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub:
        async with editing(hub) as editor:
            session_id = await opened(editor, tmp_path)
            running = asyncio.create_task(prompted(editor, session_id, "slow 0.5"))
            await editor.until(lambda: bool(editor.said()))
        await asyncio.wait((running,))
        assert running.exception() is not None
        ended = await until(await hub.session(session_id), fact("turn_ended"))
        assert ended.data["stopReason"] == "end_turn"  # type: ignore[attr-defined]


async def test_a_seq_can_be_gone_on_from_when_nothing_more_of_it_follows(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session = await hub.start_session("demo", tmp_path)
        await session.prompt([{"type": "text", "text": "echo one "}, {"type": "text", "text": "two"}])
        await editor.agent.load_session(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
        spoken = [
            params["update"] for params in editor.updates if params["update"]["sessionUpdate"] == "user_message_chunk"
        ]
        first, second = (update["_meta"]["pilothouse"] for update in spoken)
        assert (first["seq"], first["more"]) == (second["seq"], True)
        assert "more" not in second


@pytest.mark.parametrize("count", [0, 1001])
async def test_a_prompt_without_blocks_or_with_too_many_is_refused_by_name(tmp_path: Path, count: int) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        session_id = await opened(editor, tmp_path)
        with pytest.raises(RequestError) as caught:
            await editor.agent.prompt(session_id=session_id, prompt=[text_block("a")] * count)
        assert caught.value.data["field"] == "prompt"


# -- questions --


async def not_found() -> Any:
    raise RequestError.method_not_found("session/request_permission")


async def cancelled() -> Any:
    return {"outcome": {"outcome": "cancelled"}}


async def failing() -> Any:
    raise RequestError.internal_error({"details": "no window"})


@pytest.mark.parametrize("answer", [not_found, cancelled, failing, chosen("no-such-option")])
async def test_a_client_that_does_not_decide_leaves_it_to_others(tmp_path: Path, answer: Answer) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as one, editing(hub) as two:
        one.permission = answer
        session_id = await opened(one, tmp_path)
        await two.agent.resume_session(session_id=session_id, cwd=str(tmp_path))
        running = asyncio.create_task(prompted(one, session_id, "permission"))
        await one.until(lambda: bool(one.asked))
        await two.until(lambda: bool(two.asked))
        assert one.asked == two.asked
        (approval,) = await hub.approvals()
        await hub.decide(approval.id, approved=True, by="somebody else")
        assert (await running).stop_reason == "end_turn"
        assert "it is allowed" in one.said()
        assert len(one.asked) == 1


async def test_a_chosen_rejection_denies_and_says_who(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        editor.permission = chosen("no")
        session_id = await opened(editor, tmp_path)
        await prompted(editor, session_id, "permission")
        session = await hub.session(session_id)
        (item,) = session.state.index.approvals.values()
        assert (item.approved, item.option_id, item.decided_by) == (False, "no", "editor")


async def test_what_an_editor_does_is_written_down_with_its_device(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pilothouse.audit")
    laptop = Caller(name="laptop", scopes=ADMIN, device_id="dev_1")
    async with hub_of(tmp_path) as hub, editing(hub, laptop) as editor:
        editor.permission = chosen("no")
        session_id = await opened(editor, tmp_path)
        await prompted(editor, session_id, "permission")
        await editor.agent.close_session(session_id=session_id)
    lines = [json.loads(record.message) for record in caplog.records if record.name == "pilothouse.audit"]
    assert [line.get("method") or line["audit"] for line in lines] == [
        "session/new",
        "session/prompt",
        "approval_decided",
        "session/close",
    ]
    assert {(line["by"], line["deviceId"], line["sessionId"]) for line in lines} == {("laptop", "dev_1", session_id)}
    assert (lines[2]["approved"], lines[2]["optionId"]) == (False, "no")


async def test_a_cancelled_turn_withdraws_its_questions(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub, editing(hub) as editor:
        withdrawn = asyncio.Event()

        async def wait() -> Any:
            try:
                await forever()
            finally:
                withdrawn.set()

        editor.permission = wait
        session_id = await opened(editor, tmp_path)
        running = asyncio.create_task(prompted(editor, session_id, "permission"))
        await editor.until(lambda: bool(editor.asked))
        await editor.agent.cancel(session_id=session_id)
        assert (await running).stop_reason == "cancelled"
        async with asyncio.timeout(PATIENCE):
            await withdrawn.wait()


async def test_what_was_decided_long_ago_is_not_asked_on_a_replay(tmp_path: Path) -> None:
    async with hub_of(tmp_path) as hub:
        session = await hub.start_session("demo", tmp_path)
        turn = await session.send("permission")
        asked = await until(session, "approval:requested")
        await session.decide(asked.request_id, approved=True)  # type: ignore[attr-defined]
        await turn.done
        async with editing(hub) as editor:
            await editor.agent.load_session(session_id=session.id, cwd=str(tmp_path), mcp_servers=[])
            await prompted(editor, session.id, "echo done")
            assert editor.asked == []


async def test_a_form_goes_to_a_client_that_can_show_it(tmp_path: Path) -> None:
    async def accept() -> Any:
        return {"action": "accept", "content": {"name": "Ada"}}

    can = {"elicitation": {"form": {}}}
    async with hub_of(tmp_path) as hub, editing(hub, capabilities=can) as one, editing(hub) as two:
        one.elicitation = accept
        session_id = await opened(one, tmp_path)
        await two.agent.resume_session(session_id=session_id, cwd=str(tmp_path))
        running = asyncio.create_task(prompted(one, session_id, "question"))
        session = await hub.session(session_id)
        await one.until(lambda: bool(one.asked))
        assert one.asked[0]["sessionId"] == session_id
        # the second question is a web page, which this client cannot show: somebody else answers it
        page = await until(session, lambda e: isinstance(e, UserQuestionEvent) and e.url is not None)
        session.answer(page.question_id, None, action="decline")  # type: ignore[attr-defined]
        assert (await running).stop_reason == "end_turn"
        assert [params["mode"] for params in one.asked] == ["form"]
        assert two.asked == []
        first = next(iter(session.state.index.questions.values()))
        assert (first.outcome, first.answer) == ("answered", {"name": "Ada"})


async def test_updates_that_a_client_does_not_know_are_kept_from_it(tmp_path: Path) -> None:
    knows = {"session": {"notices": {}, "compaction": {}}}
    async with hub_of(tmp_path) as hub, editing(hub) as plain, editing(hub, capabilities=knows) as knowing:
        session_id = await opened(plain, tmp_path)
        await knowing.agent.resume_session(session_id=session_id, cwd=str(tmp_path))
        for text in ("notice warning careful", "compact", "echo end"):
            await prompted(plain, session_id, text)
        await knowing.until(lambda: knowing.said().endswith("end"))
        new = {"notice", "compaction_update", "compaction_summary_chunk"}
        assert new & set(plain.kinds) == set()
        assert {"notice", "compaction_update"} <= set(knowing.kinds)


# -- shapes --


def test_clients_of_a_session_share_what_is_made_of_its_pieces() -> None:
    source = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}'
    entries = [Entry("s", seq, seq, "message:delta", b"{}", source if seq > 1 else b"") for seq in (1, 2, 3)]
    cache = FrameCache()
    run = encode_run("s", entries, cache)
    assert [json.loads(line)["params"]["update"]["_meta"]["pilothouse"]["seq"] for line in run.lines] == [2, 3]
    assert encode_run("s", list(entries), cache) is run
    assert encode_run("s", entries[1:], cache) is not run
    framed = run.framed(lambda line: b"<" + line + b">")
    assert framed == b"".join(b"<" + line[:-1] + b">" for line in run.lines)


@pytest.mark.parametrize(
    "odd", [b"", b" ", b"\t", b"\n", b"\r\n", b',"_meta":{"a":1}', b',"_meta":null', b',"content":{"text":"a} b"}']
)
def test_updates_made_together_are_as_those_made_alone(odd: bytes) -> None:
    sources = [b'{"sessionUpdate":"agent_message_chunk","n":%d}' % number for number in range(5)]
    sources[2] = sources[2] + odd if odd.isspace() else sources[2][:-1] + odd + b"}"
    entries = [Entry('s"s', seq, seq, "message:delta", b"{}", source) for seq, source in enumerate(sources, 7)]
    alone = [notification(update_head('s"s'), source, seq) for seq, source in enumerate(sources, 7)]
    assert encode_run('s"s', entries, FrameCache()).lines == alone
    assert [json.loads(line)["params"]["update"]["_meta"]["pilothouse"]["seq"] for line in alone] == [7, 8, 9, 10, 11]


def test_a_seq_is_added_and_the_rest_is_as_it_came() -> None:
    source = b'{"sessionUpdate":"x", "n": 1.50, "u":"\\u00e9"}'
    assert numbered(source, 7) == source[:-1] + b',"_meta":{"pilothouse":{"seq":7}}}'
    own = numbered(b'{"sessionUpdate":"x","_meta":{"a": 1.50},"n": 2.0}', 7)
    assert own == b'{"sessionUpdate":"x","_meta":{"a":1.50,"pilothouse":{"seq":7}},"n":2.0}'
    inner = b'{"sessionUpdate":"x","content":{"_meta":{"a":1}}}'
    assert json.loads(numbered(inner, 7))["_meta"] == {"pilothouse": {"seq": 7}}
    assert json.loads(numbered(inner, 7))["content"] == {"_meta": {"a": 1}}
    for odd in (b'{"_meta":null}', b'{"_meta":[1]}', b'{\n"a": 1\n} '):
        assert json.loads(numbered(odd, 7))["_meta"] == {"pilothouse": {"seq": 7}}
        assert b"\n" not in numbered(odd, 7)


def approval(source: Any = None, **fields: Any) -> ApprovalRequestedEvent:
    given: dict[str, Any] = {
        "request_id": "apr_1",
        "tool_call_id": "call",
        "tool_name": "bash",
        "tool_input": {"command": "ls"},
        "description": "Run: ls",
        "risk_level": "low",
        "options": [Option(option_id="y", name="Yes", kind="allow_once")],
        "preview": DescriptionPreview(text="lists files"),
    }
    event = ApprovalRequestedEvent(seq=3, session_id="ses", timestamp="t", **{**given, **fields})
    event.source = None if source is None else msgspec.json.encode(source)
    return event


def test_a_permission_request_keeps_the_agents_fields_and_names_options_in_our_words() -> None:
    call = {"toolCallId": "call", "title": "List", "future": {"x": 1}, "_meta": {"own": 1}}
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once", "extra": True}]
    params = permission_request(approval({"sessionId": "theirs", "toolCall": call, "options": options}), "ses")
    assert params is not None
    assert params["sessionId"] == "ses"
    assert params["options"] == [{**options[0], "name": "Allow once (agent: “Yes”)"}]
    assert params["toolCall"]["future"] == {"x": 1}
    assert params["toolCall"]["_meta"]["own"] == 1
    assert params["toolCall"]["_meta"]["pilothouse"]["approvalId"] == "apr_1"


@pytest.mark.parametrize("source", [None, {"toolCall": 5}, {"options": "none"}, {"toolCall": {}, "options": []}])
def test_a_permission_without_usable_words_is_made_from_the_event(source: Any) -> None:
    params = permission_request(approval(source), "ses")
    assert params is not None
    assert params["toolCall"]["title"] == "Run: ls"
    assert params["toolCall"]["content"][0]["content"]["text"].startswith("lists files\n\nArguments:")
    assert params["options"] == [{"optionId": "y", "name": "Allow once (agent: “Yes”)", "kind": "allow_once"}]
    assert permission_request(approval(source, options=[]), "ses") is None


def test_a_question_of_a_tool_is_no_elicitation() -> None:
    def question(**fields: Any) -> UserQuestionEvent:
        return UserQuestionEvent(seq=1, session_id="s", timestamp="t", question_id="q", question="Which?", **fields)

    assert elicitation_request(question(tool_call_id="call"), "s") is None
    made = elicitation_request(question(options=["a", "b"]), "s")
    assert made is not None
    assert made["requestedSchema"]["properties"]["answer"]["enum"] == ["a", "b"]
    several = elicitation_request(question(options=["a"], multi_select=True), "s")
    assert several is not None
    assert several["requestedSchema"]["properties"]["answer"]["type"] == "array"
    page = elicitation_request(question(url="https://example.org"), "s")
    assert page is not None
    assert page["mode"] == "url"
