"""Agents as the SDK reference recommends them, and one that has every method of it, over a real link."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.acp import (
    Agent,
    Client,
    RequestError,
    schema,
)
from pilothouse.acp.contrib.permissions import (
    PermissionBroker,
)
from pilothouse.acp.contrib.session_state import (
    SessionAccumulator,
)
from pilothouse.acp.contrib.tool_calls import ToolCallTracker
from pilothouse.acp.helpers import (
    start_tool_call,
    text_block,
    update_agent_message_text,
)
from pilothouse.acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    CreateTerminalResponse,
    CurrentModeUpdate,
    EnvVariable,
    ForkSessionResponse,
    InitializeResponse,
    KillTerminalCommandResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    ReleaseTerminalResponse,
    ResumeSessionResponse,
    SetSessionModelResponse,
    SetSessionModeResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    TextContentBlock,
    ToolCallLocation,
    UserMessageChunk,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)
from tests.support.sdk_pair import SESSION, Editor, connected, notify, prompted

# -- the pattern that the document recommends -------------------------------------------------------------------------


class PunieAgent(Agent):
    """The document's agent; its session exists before the connection, and consent is asked of the option's kind."""

    session_id = SESSION

    def __init__(self) -> None:
        self.tracker = ToolCallTracker()

    def on_connect(self, conn: Client) -> None:
        self.client_conn = conn
        self.broker = PermissionBroker(
            session_id=self.session_id, requester=conn.request_permission, tracker=self.tracker
        )

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, mcp_servers: list[Any], **kwargs: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=self.session_id)

    async def prompt(self, prompt: list[Any], session_id: str, **kwargs: Any) -> PromptResponse:
        path, new_content = prompt[0].text.split(" := ")
        before = await self.read_file_tool(path)
        edited = await self.edit_file_tool(path, new_content)
        verdict = f"was {before!r}, " + ("edited" if edited else "left alone")
        await self.client_conn.session_update(session_id, update_agent_message_text(verdict))
        return PromptResponse(stop_reason="end_turn")

    async def read_file_tool(self, path: str) -> str:
        start = self.tracker.start(
            f"read_{path}", title=f"Reading {path}", kind="read", locations=[ToolCallLocation(path=path)]
        )
        await self.client_conn.session_update(self.session_id, start)
        response = await self.client_conn.read_text_file(session_id=self.session_id, path=path)
        done = self.tracker.progress(f"read_{path}", status="completed", raw_output={"bytes": len(response.content)})
        await self.client_conn.session_update(self.session_id, done)
        return response.content

    async def edit_file_tool(self, path: str, new_content: str) -> bool:
        start = self.tracker.start(
            f"edit_{path}", title=f"Editing {path}", kind="edit", locations=[ToolCallLocation(path=path)]
        )
        await self.client_conn.session_update(self.session_id, start)
        if not await self.broker.is_allowed(f"edit_{path}"):
            failed = self.tracker.progress(f"edit_{path}", status="failed")
            await self.client_conn.session_update(self.session_id, failed)
            return False
        await self.client_conn.write_text_file(session_id=self.session_id, path=path, content=new_content)
        done = self.tracker.progress(f"edit_{path}", status="completed", raw_output={"success": True})
        await self.client_conn.session_update(self.session_id, done)
        return True


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ("approve", True),
        ("approve_for_session", True),
        ("reject", False),
        (None, False),
        ("something else", False),
    ],
)
async def test_the_recommended_agent_edits_only_what_it_may(choice: str | None, written: bool) -> None:
    editor = Editor(choice)
    path = "/project/config.json"
    async with connected(PunieAgent(), editor) as (conn, _, _):
        assert (await conn.initialize(protocol_version=1)).protocol_version == 1
        session = await conn.new_session(cwd="/project", mcp_servers=[])
        response = await conn.prompt(session_id=session.session_id, prompt=[text_block(f"{path} := new text")])
    assert response.stop_reason == "end_turn"
    assert editor.files == {path: "new text" if written else '{"debug": false}'}
    accumulator = SessionAccumulator()
    for update in editor.updates:
        accumulator.apply(notify(update))
    read, edit = accumulator.snapshot().tool_calls.values()
    assert (read.title, read.kind, read.status, read.raw_output) == (
        f"Reading {path}",
        "read",
        "completed",
        {"bytes": 16},
    )
    assert (edit.title, edit.kind, edit.status) == (f"Editing {path}", "edit", "completed" if written else "failed")
    assert edit.raw_output == ({"success": True} if written else None)
    assert editor.asked[0][0].tool_call_id == edit.tool_call_id
    said = accumulator.snapshot().agent_messages[0].content.text
    assert said.endswith("edited" if written else "left alone")
    expected = ["tool_call in_progress", "read", "tool_call_update completed", "tool_call in_progress", "permission"]
    expected += ["write", "tool_call_update completed"] if written else ["tool_call_update failed"]
    assert editor.events == [*expected, "agent_message_chunk"]


# -- every method of the document -------------------------------------------------------------------------------------


class WholeAgent(Agent):
    """All methods of the document's agent; each notes its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def on_connect(self, conn: Client) -> None:
        self.conn = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: Any = None, client_info: Any = None, **kwargs: Any
    ) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, mcp_servers: list[Any], **kwargs: Any) -> NewSessionResponse:
        self.calls.append(("new", {"cwd": cwd, "mcp_servers": mcp_servers}))
        return NewSessionResponse(session_id="new")

    async def load_session(
        self, cwd: str, mcp_servers: list[Any], session_id: str, **kwargs: Any
    ) -> LoadSessionResponse | None:
        self.calls.append(("load", {"session_id": session_id}))
        return None

    async def list_sessions(
        self, cursor: str | None = None, cwd: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        self.calls.append(("list", {"cursor": cursor, "cwd": cwd}))
        return ListSessionsResponse(sessions=[schema.SessionInfo(session_id="s", cwd="/w")])

    async def set_session_mode(self, mode_id: str, session_id: str, **kwargs: Any) -> SetSessionModeResponse | None:
        self.calls.append(("mode", {"mode_id": mode_id, "session_id": session_id}))
        return None

    async def set_session_model(self, model_id: str, session_id: str, **kwargs: Any) -> SetSessionModelResponse | None:
        self.calls.append(("model", {"model_id": model_id, "session_id": session_id}))
        return None

    async def fork_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **kwargs: Any
    ) -> ForkSessionResponse:
        self.calls.append(("fork", {"cwd": cwd, "session_id": session_id}))
        return ForkSessionResponse(session_id="forked")

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **kwargs: Any
    ) -> ResumeSessionResponse:
        self.calls.append(("resume", {"cwd": cwd, "session_id": session_id}))
        return ResumeSessionResponse()

    async def authenticate(self, method_id: str, **kwargs: Any) -> None:
        self.calls.append(("authenticate", {"method_id": method_id, **kwargs}))

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self.calls.append(("cancel", {"session_id": session_id}))

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"method": method, "params": params}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.calls.append(("ext_notification", {"method": method, "params": params}))


async def test_every_call_of_the_document_reaches_the_agent() -> None:
    agent = WholeAgent()
    server = schema.McpServerStdio(name="n", command="c", args=[], env=[EnvVariable(name="K", value="v")])
    async with connected(agent, Editor()) as (conn, _, _):
        assert (await conn.initialize(protocol_version=1)).protocol_version == 1
        assert (await conn.new_session(cwd="/w", mcp_servers=[server])).session_id == "new"
        assert isinstance(await conn.load_session(cwd="/w", mcp_servers=[], session_id="s"), LoadSessionResponse)
        assert (await conn.list_sessions(cursor="c", cwd="/w")).sessions[0].session_id == "s"
        assert isinstance(await conn.set_session_mode(mode_id="plan", session_id="s"), SetSessionModeResponse)
        assert isinstance(await conn.set_session_model(model_id="big", session_id="s"), SetSessionModelResponse)
        assert (await conn.fork_session(cwd="/w", session_id="s")).session_id == "forked"
        assert isinstance(await conn.resume_session(cwd="/w", session_id="s"), ResumeSessionResponse)
        await conn.authenticate(method_id="m", hint="h")
        await conn.cancel(session_id="s")
        await conn.ext_notification("vendor/note", {"b": 2})
        answer = await conn.ext_method("vendor/ask", {"a": 1})
    assert answer == {"method": "vendor/ask", "params": {"a": 1}}
    assert agent.calls == [
        ("new", {"cwd": "/w", "mcp_servers": [server]}),
        ("load", {"session_id": "s"}),
        ("list", {"cursor": "c", "cwd": "/w"}),
        ("mode", {"mode_id": "plan", "session_id": "s"}),
        ("model", {"model_id": "big", "session_id": "s"}),
        ("fork", {"cwd": "/w", "session_id": "s"}),
        ("resume", {"cwd": "/w", "session_id": "s"}),
        ("authenticate", {"method_id": "m", "hint": "h"}),
        ("cancel", {"session_id": "s"}),
        ("ext_notification", {"method": "vendor/note", "params": {"b": 2}}),
    ]


class Workbench(Editor):
    """The document's client with terminals."""

    async def create_terminal(
        self,
        command: str,
        session_id: str,
        args: list[str] | None = None,
        cwd: str | None = None,
        env: list[EnvVariable] | None = None,
        output_byte_limit: int | None = None,
        **kwargs: Any,
    ) -> CreateTerminalResponse:
        self.events.append(f"create {command} {args} {cwd} {env and env[0].name} {output_byte_limit}")
        return CreateTerminalResponse(terminal_id="term_1")

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> TerminalOutputResponse:
        return TerminalOutputResponse(output="out", truncated=False, exit_status=TerminalExitStatus(exit_code=0))

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        return WaitForTerminalExitResponse(exit_code=0)

    async def kill_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> KillTerminalCommandResponse | None:
        return KillTerminalCommandResponse()

    async def release_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None:
        self.events.append(f"release {terminal_id}")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {method: params}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self.events.append(f"{method} {params}")


async def test_every_call_of_the_document_reaches_the_client() -> None:
    async def work(client_conn: Any) -> None:
        terminal = await client_conn.create_terminal(
            command="make",
            session_id=SESSION,
            args=["test"],
            cwd="/w",
            env=[EnvVariable(name="CI", value="1")],
            output_byte_limit=100,
        )
        where = {"session_id": SESSION, "terminal_id": terminal.terminal_id}
        assert (await client_conn.wait_for_terminal_exit(**where)).exit_code == 0
        output = await client_conn.terminal_output(**where)
        assert (output.output, output.truncated, output.exit_status.exit_code) == ("out", False, 0)
        assert isinstance(await client_conn.kill_terminal(**where), KillTerminalCommandResponse)
        assert isinstance(await client_conn.release_terminal(**where), ReleaseTerminalResponse)
        written = await client_conn.write_text_file(session_id=SESSION, path="/n", content="new")
        assert isinstance(written, WriteTextFileResponse)
        assert (await client_conn.read_text_file(session_id=SESSION, path="/n", line=1, limit=2)).content == "new"
        await client_conn.ext_notification("vendor/note", {"b": 2})
        assert await client_conn.ext_method("vendor/ask", {"a": 1}) == {"vendor/ask": {"a": 1}}

    bench = Workbench()
    async with connected(prompted(work), bench) as (conn, _, _):
        await conn.prompt(session_id=SESSION, prompt=[text_block("go")])
    assert bench.events == [
        "create make ['test'] /w CI 100",
        "release term_1",
        "write",
        "read",
        "vendor/note {'b': 2}",
    ]


async def test_what_a_side_does_not_implement_is_method_not_found() -> None:
    async def work(client_conn: Any) -> int:
        with pytest.raises(RequestError) as caught:
            await client_conn.create_terminal(command="make", session_id=SESSION)
        return caught.value.code

    agent = prompted(work)
    async with connected(agent, Editor()) as (conn, _, _):
        await conn.prompt(session_id=SESSION, prompt=[])
        for call in (
            conn.set_session_model(model_id="m", session_id=SESSION),
            conn.fork_session(cwd="/w", session_id=SESSION),
            conn.resume_session(cwd="/w", session_id=SESSION),
            conn.list_sessions(),
            conn.ext_method("vendor/ask", {}),
        ):
            with pytest.raises(RequestError) as caught:
                await call
            assert caught.value.code == -32601
    assert agent.result == -32601


async def test_an_update_that_cannot_be_written_does_not_pass_for_a_missing_method() -> None:
    async def work(client_conn: Any) -> None:
        await client_conn.session_update(SESSION, start_tool_call("1", "t", raw_input={"handle": object()}))

    async with connected(prompted(work), Editor()) as (conn, _, _):
        with pytest.raises(RequestError) as caught:
            await conn.prompt(session_id=SESSION, prompt=[])
    assert caught.value.code == -32603
    assert "object" in str(caught.value.data)


def test_chunks_of_the_document_are_told_apart_by_class() -> None:
    for cls, name in (
        (UserMessageChunk, "user_message_chunk"),
        (AgentMessageChunk, "agent_message_chunk"),
        (AgentThoughtChunk, "agent_thought_chunk"),
    ):
        chunk = cls(session_update=name, content=TextContentBlock(type="text", text="t"))
        assert chunk.session_update == name
    assert AgentPlanUpdate(session_update="plan", entries=[]).entries == []
    assert AvailableCommandsUpdate(session_update="available_commands_update", available_commands=[]).session_update
    assert CurrentModeUpdate(session_update="current_mode_update", current_mode_id="m").current_mode_id == "m"
