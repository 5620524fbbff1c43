"""The ways in which ACP connections are known to break, one test each.

The numbers are those of the list of defects that were reproduced against the most used Python library; each is
tried here against a raw peer or a real process, as it happens to users.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.acp import (
    NULL,
    AgentMessageChunk,
    AllowedOutcome,
    Client,
    CloseSessionResponse,
    Connection,
    ConnectionClosed,
    CreateElicitationResponse,
    DeclineElicitationResponse,
    DeleteSessionResponse,
    InitializeResponse,
    LoadSessionResponse,
    LogoutResponse,
    PermissionOption,
    PromptResponse,
    RequestError,
    RequestPermissionResponse,
    ResumeSessionResponse,
    ToolCallProgress,
    UnknownContent,
    UnknownUpdate,
    is_allowed,
    memory_pair,
    session_notification,
    spawn_agent_process,
    text_block,
    update_agent_message_text,
)
from pilothouse.acp.contrib import SessionAccumulator
from tests.support.wire import agent_on_wire, chunk, client_on_wire, is_alive, update_message

DONE = {"stopReason": "end_turn"}


class Recorder(Client):
    """A client that keeps the texts it is sent."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    @property
    def texts(self) -> list[str]:
        return [u.content.text for u in self.updates if isinstance(u, AgentMessageChunk)]

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)


def program(tmp_path: Path, code: str) -> str:
    path = tmp_path / "peer.py"
    path.write_text(textwrap.dedent(code))
    return str(path)


@pytest.mark.parametrize(
    "line",
    [
        *(b"null", b"42", b"true", b"NaN", b'"text"', b"[]", b"{}", b"plain noise", b"\xff\xfe\x00", b"{", b"[" * 5000),
        json.dumps([chunk("batch"), chunk("batch")]).encode(),
    ],
    ids=lambda line: repr(line[:20]),
)
async def test_01_stray_line_is_reported_and_the_connection_lives(line: bytes) -> None:
    client = Recorder()
    async with client_on_wire(client) as (connection, wire, diagnostics):
        prompt = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(chunk("before"), line, chunk("after"))
        await wire.answer(DONE)
        async with asyncio.timeout(30):
            assert (await prompt).stop_reason == "end_turn"
        assert client.texts == ["before", "after"]
        assert [d.kind for d in diagnostics] == ["malformed"]


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ({"error": "plain text"}, -32603, "plain text"),
        ({"error": 7}, -32603, "7"),
        ({"error": None}, -32603, "None"),
        ({"error": {"code": "x", "message": 3}}, -32603, "Error"),
        ({"error": {"code": -32000, "message": "login"}}, -32000, "login"),
    ],
)
async def test_02_odd_error_answers_resolve_their_call(answer: dict[str, Any], code: int, message: str) -> None:
    async with client_on_wire(Recorder()) as (connection, wire, _):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.answer(**answer)
        async with asyncio.timeout(30):
            with pytest.raises(RequestError) as caught:
                await call
        assert caught.value.code == code
        assert message in str(caught.value)


async def test_02_string_echoed_and_unhashable_ids_do_not_hang_or_kill() -> None:
    async with client_on_wire(Recorder()) as (connection, wire, diagnostics):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        request = await wire.receive()
        for bad in ({"a": 1}, [1], 1.5, True):
            await wire.send({"jsonrpc": "2.0", "id": bad, "result": DONE})
        await wire.send({"jsonrpc": "2.0", "id": str(request["id"]), "result": DONE})
        async with asyncio.timeout(30):
            assert (await call).stop_reason == "end_turn"
        assert [d.kind for d in diagnostics] == ["malformed", "malformed", "unmatched_response", "malformed"]


async def test_03_updates_are_handled_in_order_whatever_the_handler_awaits() -> None:
    class Uneven(Recorder):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await asyncio.sleep(random.random() / 1000)
            await super().session_update(session_id, update)

    client = Uneven()
    async with client_on_wire(client) as (connection, wire, _):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(*(chunk(str(i)) for i in range(300)))
        await wire.answer(DONE)
        async with asyncio.timeout(10):
            await call
        assert client.texts == [str(i) for i in range(300)]


async def test_04_a_flood_is_bounded_by_not_reading_on() -> None:
    started = asyncio.Event()
    release = asyncio.Event()

    class Stuck(Recorder):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            started.set()
            await release.wait()
            await super().session_update(session_id, update)

    client = Stuck()
    count = 50_000
    async with client_on_wire(client) as (connection, wire, _):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        flood = asyncio.ensure_future(wire.send(*(chunk(str(i)) for i in range(count))))
        await started.wait()
        for _ in range(50):
            await asyncio.sleep(0.002)
        backlog = connection.connection._backlog
        assert backlog.size < 3 * backlog.limit
        tasks = [t for t in asyncio.all_tasks() if "session_update" in repr(t) or "lane" in t.get_name()]
        assert len(tasks) == 1, "one task per session, not one per message"
        assert not flood.done(), "the sender must feel that nobody reads"
        release.set()
        await flood
        await wire.answer(DONE)
        async with asyncio.timeout(30):
            await call
        assert client.texts == [str(i) for i in range(count)]
        assert backlog.size == 0


async def test_05_load_session_returns_after_its_replay_is_handled() -> None:
    class Slow(Recorder):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0.005)
            await super().session_update(session_id, update)

    client = Slow()
    async with client_on_wire(client) as (connection, wire, _):
        call = asyncio.ensure_future(connection.load_session(cwd="/", session_id="s"))
        await wire.receive()
        await wire.send(*(chunk(str(i)) for i in range(5)), {"jsonrpc": "2.0", "id": 0, "result": None})
        assert isinstance(await call, LoadSessionResponse)
        assert client.texts == ["0", "1", "2", "3", "4"]


async def test_06_a_chatty_stderr_does_not_block_the_agent(tmp_path: Path) -> None:
    script = program(
        tmp_path,
        """
        import json, sys
        for line in sys.stdin:
            sys.stderr.write("log line\\n" * 100_000)
            sys.stderr.flush()
            result = {"stopReason": "end_turn"}
            print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": result}), flush=True)
        """,
    )
    async with asyncio.timeout(20), spawn_agent_process(Recorder(), sys.executable, script) as (connection, _):
        for _ in range(2):
            assert (await connection.prompt("s", [text_block("hi")])).stop_reason == "end_turn"


async def test_07_close_ends_when_the_peer_has_stopped_reading(tmp_path: Path) -> None:
    script = program(tmp_path, "import time\ntime.sleep(600)\n")
    started = time.monotonic()
    async with spawn_agent_process(Recorder(), sys.executable, script, transport_kwargs={"shutdown_timeout": 0.3}) as (
        connection,
        process,
    ):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("x" * 5_000_000)]))
        await asyncio.sleep(0.1)
    assert time.monotonic() - started < 8
    assert process.returncode is not None
    with pytest.raises(ConnectionClosed):
        await call


async def test_07_close_of_a_plain_stream_ends_when_the_peer_has_stopped_reading() -> None:
    async with client_on_wire(Recorder()) as (connection, _, _):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("x" * 20_000_000)]))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(30):
            await connection.close()
        with pytest.raises(ConnectionClosed):
            await call


async def cancel_for_ever(connection: Any) -> None:
    while True:
        await connection.cancel("s")
        await asyncio.sleep(0.01)


async def test_08_a_peer_that_closes_its_stdin_fails_every_call(tmp_path: Path) -> None:
    script = program(
        tmp_path,
        """
        import os, sys, time
        sys.stdin.readline()
        os.close(0)
        time.sleep(600)
        """,
    )
    async with spawn_agent_process(Recorder(), sys.executable, script, transport_kwargs={"shutdown_timeout": 0.3}) as (
        connection,
        _,
    ):
        first = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        async with asyncio.timeout(10):
            with pytest.raises(ConnectionClosed):
                await cancel_for_ever(connection)
            for _ in range(3):
                with pytest.raises(ConnectionClosed):
                    await connection.prompt("s", [text_block("again")])
            with pytest.raises(ConnectionClosed):
                await first


async def test_09_meta_never_overrides_a_parameter() -> None:
    seen: dict[str, Any] = {}

    class Agent:
        async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
            seen.update(session_id=session_id, prompt=prompt, extra=kwargs)
            return PromptResponse(stop_reason="end_turn")

    meta = {"session_id": "VICTIM", "prompt": "forged", "self": 1, "sessionId": "x", "trace": "t"}
    async with agent_on_wire(Agent()) as (_, wire, _):
        params = {"sessionId": "mine", "prompt": [{"type": "text", "text": "hi"}], "_meta": meta}
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params})
        assert (await wire.receive())["result"] == DONE
    assert seen["session_id"] == "mine"
    assert seen["prompt"][0].text == "hi"
    assert seen["extra"] == {"sessionId": "x", "trace": "t"}


async def test_09_meta_of_an_update_never_overrides_a_parameter() -> None:
    seen: list[tuple[str, Any, dict[str, Any]]] = []

    class Watching:
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            seen.append((session_id, update.content.text, kwargs))

    async with client_on_wire(Watching()) as (connection, wire, _):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(chunk("text", _meta={"session_id": "VICTIM", "update": "forged", "k": 1}))
        await wire.answer(DONE)
        await call
    assert seen == [("s", "text", {"k": 1})]


async def test_10_handlers_without_kwargs_are_served_whatever_is_in_meta() -> None:
    class Agent:
        async def prompt(self, session_id: str, prompt: list[Any]) -> PromptResponse:
            return PromptResponse(stop_reason="end_turn")

    async with agent_on_wire(Agent()) as (_, wire, _):
        meta = {"traceparent": "00-abc", "self": 1, "session_id": "VICTIM"}
        params = {"sessionId": "s", "prompt": [], "_meta": meta}
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params})
        assert (await wire.receive())["result"] == DONE


async def test_11_every_stable_method_is_served_without_a_flag() -> None:
    class Agent:
        async def resume_session(self, session_id: str, cwd: str, **kwargs: Any) -> ResumeSessionResponse:
            return ResumeSessionResponse()

        async def close_session(self, session_id: str, **kwargs: Any) -> CloseSessionResponse:
            return CloseSessionResponse()

        async def delete_session(self, session_id: str, **kwargs: Any) -> DeleteSessionResponse:
            return DeleteSessionResponse()

        async def logout(self, **kwargs: Any) -> LogoutResponse:
            return LogoutResponse()

    calls = {
        "session/resume": {"sessionId": "s", "cwd": "/"},
        "session/close": {"sessionId": "s"},
        "session/delete": {"sessionId": "s"},
        "logout": {},
    }
    async with agent_on_wire(Agent()) as (_, wire, _):
        for i, (method, params) in enumerate(calls.items()):
            await wire.send({"jsonrpc": "2.0", "id": i, "method": method, "params": params})
            answer = await wire.receive()
            assert answer == {"jsonrpc": "2.0", "id": i, "result": {}}

    class Asked:
        async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> CreateElicitationResponse:
            return DeclineElicitationResponse()

    async with client_on_wire(Asked()) as (_, wire, _):
        params = {"mode": "form", "message": "?", "sessionId": "s", "requestedSchema": {"properties": {}}}
        await wire.send({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": params})
        assert (await wire.receive())["result"] == {"action": "decline"}


async def test_12_cancelling_an_awaiting_task_tells_the_peer() -> None:
    async with client_on_wire(Recorder()) as (connection, wire, diagnostics):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        request = await wire.receive()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        notification = await wire.receive()
        assert notification["method"] == "$/cancel_request"
        assert notification["params"] == {"requestId": request["id"]}
        # the answer that still comes is nobody's problem
        await wire.send({"jsonrpc": "2.0", "id": request["id"], "result": DONE})
        following = asyncio.ensure_future(connection.prompt("s", [text_block("next")]))
        await wire.answer(DONE)
        await following
        assert diagnostics == []


async def test_12_a_cancelled_request_of_the_peer_ends_its_handler() -> None:
    cancelled = asyncio.Event()

    class Agent:
        async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            raise AssertionError("can't happen: the event is never set")

    async with agent_on_wire(Agent()) as (_, wire, _):
        request = {
            "jsonrpc": "2.0",
            "id": "abc",
            "method": "session/prompt",
            "params": {"sessionId": "s", "prompt": []},
        }
        await wire.send(request, {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "abc"}})
        answer = await wire.receive()
        assert answer["id"] == "abc"
        assert answer["error"]["code"] == -32800
    assert cancelled.is_set()


async def test_13_unknown_variants_reach_the_handler_with_their_raw_object() -> None:
    client = Recorder()
    vendor = {"sessionUpdate": "_vendor.x", "payload": {"a": [1, None]}}
    broken = {"sessionUpdate": "tool_call", "rawInput": {"k": 1}}
    async with client_on_wire(client) as (connection, wire, diagnostics):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(
            update_message({"sessionUpdate": "notice", "severity": "info", "title": "t"}),
            update_message({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"}),
            update_message(vendor),
            update_message(broken),
            update_message({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "x": 1}}),
        )
        await wire.answer({"stopReason": "out_of_coffee"})
        response = await call
    notice, compaction, unknown, incomplete, hologram = client.updates
    assert notice.title == "t"
    assert compaction.compaction_id == "c"
    assert isinstance(unknown, UnknownUpdate)
    assert unknown.raw == vendor
    assert unknown.session_update == "_vendor.x"
    assert isinstance(incomplete, UnknownUpdate)
    assert incomplete.raw == broken
    assert isinstance(hologram.content, UnknownContent)
    assert response.stop_reason == "out_of_coffee"
    assert [d.kind for d in diagnostics] == ["repair"] * 4


async def test_14_a_proxy_passes_on_what_it_does_not_know() -> None:
    params = (
        b'{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","title":null,"future":[1e3]}}'
    )
    result = b'{"stopReason":"end_turn","future":{"x":null}}'
    seen: list[bytes] = []

    class Sink:
        decode_update = None

        def notification(self, method: str, raw: msgspec.Raw | None) -> Any:
            async def handle() -> None:
                seen.append(bytes(raw or b""))

            return "s", handle, {}

        def request(self, method: str, raw: msgspec.Raw | None) -> Any:
            async def handle() -> msgspec.Raw:
                seen.append(bytes(raw or b""))
                return msgspec.Raw(result)

            return "s", handle, {}, lambda value: value

        def updates(self) -> Any:
            raise AssertionError

    left, right = memory_pair()
    async with Connection(Sink(), left), Connection(Sink(), right) as near:
        await near.send_notification("session/update", msgspec.Raw(params))
        answer = await near.request("session/prompt", msgspec.Raw(params))
        assert bytes(answer or b"") == result
        pretty = msgspec.json.format(params, indent=2)
        await near.request("session/prompt", msgspec.Raw(pretty))
    assert seen == [params, params, params]


async def test_14_an_explicit_null_can_be_sent() -> None:
    update = ToolCallProgress(tool_call_id="t", title=NULL, status=None)
    assert update.model_dump(by_alias=True, exclude_none=True)["title"] is None

    class Silent:
        pass

    async with agent_on_wire(Silent()) as (connection, wire, _):
        await connection.session_update("s", update)
        sent = (await wire.receive())["params"]["update"]
        assert sent == {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": None}


@pytest.mark.parametrize("method", ["terminal/create", "terminal/output", "fs/read_text_file", "elicitation/create"])
async def test_15_what_a_client_does_not_implement_is_method_not_found(method: str) -> None:
    class OnlyInherits(Client):
        pass

    for client in (OnlyInherits(), object()):
        async with client_on_wire(client) as (_, wire, _):
            await wire.send({"jsonrpc": "2.0", "id": 0, "method": method, "params": {"sessionId": "s"}})
            answer = await wire.receive()
            assert answer["error"]["code"] == -32601
            assert answer["error"]["data"] == {"method": method}


async def test_16_the_whole_process_tree_ends(tmp_path: Path) -> None:
    script = program(
        tmp_path,
        """
        import json, os, subprocess, sys, time
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
        child = subprocess.Popen(sleeper)
        away = subprocess.Popen(sleeper, start_new_session=True)
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        deaf = subprocess.Popen([sys.executable, "-c", stubborn])
        for line in sys.stdin:
            result = {"pids": [os.getpid(), child.pid, away.pid, deaf.pid]}
            print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": result}), flush=True)
        """,
    )
    # the way wrappers start agents: a shell in between
    async with spawn_agent_process(
        Recorder(), "sh", "-c", f"{sys.executable} {script}; true", transport_kwargs={"shutdown_timeout": 0.5}
    ) as (connection, process):
        pids = [process.pid, *(await connection.ext_method("pids", {}))["pids"]]
        assert all(is_alive(pid) for pid in pids)
    async with asyncio.timeout(30):
        while any(is_alive(pid) for pid in pids):
            await asyncio.sleep(0.01)


async def test_17_the_environment_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "key")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("OVERRIDDEN", "old")
    script = program(
        tmp_path,
        """
        import json, os, sys
        for line in sys.stdin:
            print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": dict(os.environ)}), flush=True)
        """,
    )
    async with spawn_agent_process(Recorder(), sys.executable, script, env={"OVERRIDDEN": "new"}) as (connection, _):
        environment = await connection.ext_method("env", {})
    expected = {"SOME_API_KEY": "key", "HTTPS_PROXY": "http://127.0.0.1:1", "OVERRIDDEN": "new"}
    assert {name: environment[name] for name in expected} == expected
    assert environment["PATH"] == os.environ["PATH"]


def test_18_the_accumulator_does_the_same_work_for_the_last_chunk_as_for_the_first() -> None:
    accumulator = SessionAccumulator()

    def work_of(text: str) -> int:
        """How many calls, of Python or C functions, one `apply` makes: the same on every machine."""
        note = session_notification("s", update_agent_message_text(text))
        calls = 0

        def count(frame: Any, event: str, arg: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            accumulator.apply(note)
        finally:
            sys.setprofile(None)
        return calls

    work_of("warm up")
    first = work_of("first")
    early = accumulator.snapshot()
    for i in range(5_000):
        accumulator.apply(session_notification("s", update_agent_message_text(f"chunk {i}")))
    assert work_of("last") <= first
    late = accumulator.snapshot()
    assert late.agent_messages._items is early.agent_messages._items, "histories are shared, not copied"
    assert (len(early.agent_messages), len(late.agent_messages)) == (2, 5_003)


def test_19_choosing_a_reject_option_is_a_rejection() -> None:
    options = [
        PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
        PermissionOption(option_id="no", name="Reject", kind="reject_once"),
    ]
    for option_id, allowed in (("yes", True), ("no", False), ("never offered", False)):
        raw = {"outcome": {"outcome": "selected", "optionId": option_id}}
        response = RequestPermissionResponse.model_validate(raw)
        assert isinstance(response.outcome, AllowedOutcome), "the class does not tell"
        assert is_allowed(response, options) is allowed
    cancelled = RequestPermissionResponse.model_validate({"outcome": {"outcome": "cancelled"}})
    assert is_allowed(cancelled, options) is False


async def test_20_an_oversize_line_is_skipped_and_reported_a_large_one_is_taken() -> None:
    client = Recorder()
    limit = 2_000_000
    async with client_on_wire(client, line_limit=limit) as (connection, wire, diagnostics):
        call = asyncio.ensure_future(connection.prompt("s", [text_block("hi")]))
        await wire.send(chunk("x" * (limit - 500)), chunk("y" * (3 * limit)), chunk("after"))
        await wire.answer(DONE)
        async with asyncio.timeout(20):
            await call
        assert [len(text) for text in client.texts] == [limit - 500, 5]
        assert [d.kind for d in diagnostics] == ["malformed"]
        assert "over the limit" in diagnostics[0].message


async def test_initialize_works_as_control() -> None:
    class Agent:
        async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
            return InitializeResponse(protocol_version=protocol_version)

    async with agent_on_wire(Agent()) as (_, wire, diagnostics):
        await wire.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}})
        assert (await wire.receive())["result"]["protocolVersion"] == 1
        assert diagnostics == []
