"""The samples of the SDK reference, one by one, with `acp` read as `pilothouse.acp`.

Where a sample of that document is wrong the safe behaviour is tested instead: it takes the class `AllowedOutcome` for
consent, although choosing "Reject" gives that class too.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import typing
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilothouse.acp import (
    Agent,
    AgentSideConnection,
    Client,
    ClientSideConnection,
    RequestError,
    StreamDirection,
    StreamEvent,
    is_allowed,
    memory_pair,
    schema,
)
from pilothouse.acp.contrib.permissions import (
    MissingPermissionOptionsError,
    MissingToolCallError,
    PermissionBroker,
    default_permission_options,
)
from pilothouse.acp.contrib.session_state import (
    SessionAccumulator,
    SessionNotificationMismatchError,
    SessionSnapshot,
    SessionSnapshotUnavailableError,
    ToolCallView,
)
from pilothouse.acp.contrib.tool_calls import STREAM_WINDOW, ToolCallTracker, TrackedToolCallView, UnknownToolCall
from pilothouse.acp.helpers import (
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    plan_entry,
    resource_block,
    resource_link_block,
    session_notification,
    start_edit_tool_call,
    start_read_tool_call,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    tool_terminal_ref,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought,
    update_agent_thought_text,
    update_available_commands,
    update_current_mode,
    update_plan,
    update_tool_call,
    update_user_message,
    update_user_message_text,
)
from pilothouse.acp.model import encode
from pilothouse.acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AllowedOutcome,
    AvailableCommand,
    AvailableCommandsUpdate,
    ContentToolCallContent,
    CreateTerminalResponse,
    CurrentModeUpdate,
    DeniedOutcome,
    EnvVariable,
    FileEditToolCallContent,
    ForkSessionResponse,
    InitializeResponse,
    KillTerminalCommandResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PlanEntry,
    PromptResponse,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    ResumeSessionResponse,
    SessionNotification,
    SetSessionModelResponse,
    SetSessionModeResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UserMessageChunk,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)
from tests.support.schema_samples import stable

SESSION = "sess_1"
OPTIONS = (
    PermissionOption(kind="allow_once", name="Allow", option_id="allow"),
    PermissionOption(kind="reject_once", name="Reject", option_id="reject"),
)


def wire(value: Any) -> Any:
    return json.loads(encode(value))


# -- names ----------------------------------------------------------------------------------------------------------

NAMES = {
    "interfaces": "Agent Client",
    "schema": """
        AgentMessageChunk AgentPlanUpdate AgentThoughtChunk AllowedOutcome AudioContentBlock AuthenticateResponse
        AvailableCommand AvailableCommandsUpdate ClientCapabilities ConfigOptionUpdate ContentToolCallContent
        CreateTerminalResponse CurrentModeUpdate DeniedOutcome EmbeddedResourceContentBlock EnvVariable
        FileEditToolCallContent ForkSessionResponse HttpMcpServer ImageContentBlock Implementation InitializeResponse
        KillTerminalCommandResponse ListSessionsResponse LoadSessionResponse McpServerStdio NewSessionResponse
        PermissionOption PlanEntry PromptResponse ReadTextFileResponse ReleaseTerminalResponse
        RequestPermissionRequest RequestPermissionResponse ResourceContentBlock ResumeSessionResponse
        SessionInfoUpdate SessionNotification SetSessionModeResponse SetSessionModelResponse SseMcpServer
        TerminalOutputResponse TerminalToolCallContent TextContentBlock ToolCall ToolCallLocation ToolCallProgress
        ToolCallStart ToolCallStatus ToolCallUpdate ToolKind UserMessageChunk WaitForTerminalExitResponse
        WriteTextFileResponse Content Diff Terminal
    """,
    "core": "run_agent connect_to_agent",
    "connection": "Connection",
    "helpers": """
        ContentBlock ToolCallContentVariant start_tool_call start_read_tool_call start_edit_tool_call update_tool_call
        tool_content tool_diff_content tool_terminal_ref
    """,
    "stdio": "stdio_streams spawn_agent_process spawn_client_process",
    "utils": "",
    "agent": "",
    "agent.connection": "AgentSideConnection",
    "agent.router": "",
    "client": "",
    "client.connection": "ClientSideConnection",
    "client.router": "",
    "contrib": "",
    "contrib.tool_calls": "ToolCallTracker TrackedToolCallView UNSET",
    "contrib.permissions": "PermissionBroker default_permission_options",
    "contrib.session_state": "SessionAccumulator SessionSnapshot ToolCallView",
}


@pytest.mark.parametrize("module", NAMES)
def test_every_module_of_the_document_is_there_with_its_names(module: str) -> None:
    found = importlib.import_module(f"pilothouse.acp.{module}")
    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []


AGENT = {
    "initialize": "protocol_version client_capabilities client_info",
    "new_session": "cwd mcp_servers",
    "load_session": "cwd mcp_servers session_id",
    "list_sessions": "cursor cwd",
    "set_session_mode": "mode_id session_id",
    "set_session_model": "model_id session_id",
    "authenticate": "method_id",
    "prompt": "prompt session_id",
    "fork_session": "cwd session_id mcp_servers",
    "resume_session": "cwd session_id mcp_servers",
    "cancel": "session_id",
    "ext_method": "method params",
    "ext_notification": "method params",
    "on_connect": "conn",
}
CLIENT = {
    "request_permission": "options session_id tool_call",
    "session_update": "session_id update",
    "write_text_file": "content path session_id",
    "read_text_file": "path session_id limit line",
    "create_terminal": "command session_id args cwd env output_byte_limit",
    "terminal_output": "session_id terminal_id",
    "release_terminal": "session_id terminal_id",
    "wait_for_terminal_exit": "session_id terminal_id",
    "kill_terminal": "session_id terminal_id",
    "ext_method": "method params",
    "ext_notification": "method params",
    "on_connect": "conn",
}


@pytest.mark.parametrize(
    ("cls", "methods"),
    [(Agent, AGENT), (ClientSideConnection, AGENT), (Client, CLIENT), (AgentSideConnection, CLIENT)],
    ids=["Agent", "connection to an agent", "Client", "connection to a client"],
)
def test_interfaces_and_connections_take_the_arguments_of_the_document(cls: Any, methods: dict[str, str]) -> None:
    for name, arguments in methods.items():
        parameters = inspect.signature(getattr(cls, name)).parameters
        assert set(arguments.split()) <= parameters.keys(), name
        takes_more = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        assert takes_more or name in ("ext_method", "ext_notification", "on_connect"), name


# -- types ----------------------------------------------------------------------------------------------------------


def test_kinds_and_statuses_are_the_words_of_the_document() -> None:
    kinds = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
    assert typing.get_args(schema.ToolKind) == kinds
    assert typing.get_args(schema.ToolCallStatus) == ("pending", "in_progress", "completed", "failed")
    assert set(typing.get_args(schema.PermissionOptionKind)) == {
        f"{verdict}_{span}" for verdict in ("allow", "reject") for span in ("once", "always")
    }


def test_notifications_and_content_inherit_from_what_they_carry() -> None:
    for special, general in (
        (ToolCallStart, schema.ToolCall),
        (ToolCallProgress, ToolCallUpdate),
        (ContentToolCallContent, schema.Content),
        (FileEditToolCallContent, schema.Diff),
        (TerminalToolCallContent, schema.Terminal),
    ):
        assert issubclass(special, general)
        assert not issubclass(general, special)


def test_a_tool_call_has_the_fields_of_the_document() -> None:
    fields = {
        "kind": "edit",
        "status": "pending",
        "content": [tool_terminal_ref("t")],
        "locations": [ToolCallLocation(path="/a", line=3, field_meta={"k": 1})],
        "raw_input": {"a": [1]},
        "raw_output": "text",
        "field_meta": {"k": 2},
    }
    for cls, discriminator in ((schema.ToolCall, {}), (ToolCallStart, {"session_update": "tool_call"})):
        call = cls(tool_call_id="1", title="t", **fields, **discriminator)
        assert {name: getattr(call, name) for name in fields} == fields
        assert all(getattr(cls(tool_call_id="1", title="t"), name) is None for name in fields)
        with pytest.raises(ValueError, match="title"):
            cls(tool_call_id="1")
    for cls, discriminator in ((ToolCallUpdate, {}), (ToolCallProgress, {"session_update": "tool_call_update"})):
        update = cls(tool_call_id="1", **fields, **discriminator)
        assert {name: getattr(update, name) for name in fields} == fields
        assert all(getattr(cls(tool_call_id="1"), name) is None for name in [*fields, "title"])
        with pytest.raises(ValueError, match="tool_call_id"):
            cls(title="t")


def test_content_variants_take_and_show_their_discriminator() -> None:
    wrapped = ContentToolCallContent(type="content", content=TextContentBlock(type="text", text="t"))
    diff = FileEditToolCallContent(type="diff", path="/a", new_text="n")
    terminal = TerminalToolCallContent(type="terminal", terminal_id="7")
    assert [item.type for item in (wrapped, diff, terminal, wrapped.content)] == ["content", "diff", "terminal", "text"]
    assert diff.old_text is None, "a new file has no old text"
    with pytest.raises(ValueError, match="line"):
        ToolCallLocation(path="/a", line=-1)


# -- a pair of connections --------------------------------------------------------------------------------------------


class Editor:
    """A client that keeps files in memory, records what it is told, and answers permission as it is set to."""

    def __init__(self, choice: str | None = None) -> None:
        self.choice = choice
        self.files: dict[str, str] = {"/project/config.json": '{"debug": false}'}
        self.updates: list[Any] = []
        self.asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.events: list[str] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)
        self.events.append(f"{update.session_update} {getattr(update, 'status', '')}".strip())

    async def request_permission(
        self, options: list[PermissionOption], session_id: str, tool_call: ToolCallUpdate, **kwargs: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.events.append("permission")
        if self.choice is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.choice))

    async def read_text_file(
        self, path: str, session_id: str, limit: int | None = None, line: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        self.events.append("read")
        return ReadTextFileResponse(content=self.files[path])

    async def write_text_file(
        self, content: str, path: str, session_id: str, **kwargs: Any
    ) -> WriteTextFileResponse | None:
        self.events.append("write")
        self.files[path] = content
        return None


class Wire:
    """What passed between the two, seen from the agent."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def __call__(self, event: StreamEvent) -> None:
        if event.direction is StreamDirection.OUTGOING:
            self.messages.append(event.message)

    def params(self, method: str) -> list[Any]:
        return [message["params"] for message in self.messages if message.get("method") == method]


@asynccontextmanager
async def connected(agent: Any, client: Any) -> AsyncIterator[tuple[ClientSideConnection, AgentSideConnection, Wire]]:
    """An agent and a client on two ends of one link in memory."""
    seen = Wire()
    left, right = memory_pair()
    async with asyncio.timeout(5):
        agent_side = AgentSideConnection(agent, left, observers=[seen])
        client_side = ClientSideConnection(client, right)
        async with agent_side, client_side:
            yield client_side, agent_side, seen


def prompted(work: Callable[[Any], Awaitable[Any]]) -> Any:
    """An agent whose prompts do `work` with the connection to the client."""

    class Working(Agent):
        result: Any = None

        def on_connect(self, conn: Client) -> None:
            self.client_conn = conn

        async def prompt(self, prompt: list[Any], session_id: str, **kwargs: Any) -> PromptResponse:
            self.result = await work(self.client_conn)
            return PromptResponse(stop_reason="end_turn")

    return Working()


async def config_lifecycle(client_conn: Any) -> bool:
    """The four phases of the document, with the safe reading of the answer."""
    await client_conn.session_update(
        SESSION,
        ToolCallStart(
            session_update="tool_call",
            tool_call_id="call_1",
            title="Modifying configuration",
            kind="edit",
            status="pending",
            locations=[ToolCallLocation(path="/project/config.json")],
            raw_input={"path": "/project/config.json"},
        ),
    )
    response = await client_conn.request_permission(
        session_id=SESSION,
        tool_call=ToolCallUpdate(
            tool_call_id="call_1",
            title="Modifying configuration",
            kind="edit",
            status="pending",
            locations=[ToolCallLocation(path="/project/config.json")],
            raw_input={"path": "/project/config.json"},
        ),
        options=list(OPTIONS),
    )
    if not is_allowed(response, OPTIONS):
        await client_conn.session_update(
            SESSION, ToolCallProgress(session_update="tool_call_update", tool_call_id="call_1", status="failed")
        )
        return False
    await client_conn.session_update(
        SESSION,
        ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id="call_1",
            status="in_progress",
            content=[
                ContentToolCallContent(
                    type="content", content=TextContentBlock(type="text", text="Reading configuration file...")
                )
            ],
        ),
    )
    await client_conn.write_text_file(session_id=SESSION, path="/project/config.json", content='{"debug": true}')
    await client_conn.session_update(
        SESSION,
        ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id="call_1",
            status="completed",
            raw_output={"success": True},
            content=[
                FileEditToolCallContent(
                    type="diff",
                    path="/project/config.json",
                    old_text='{"debug": false}',
                    new_text='{"debug": true}',
                )
            ],
        ),
    )
    return True


async def test_the_lifecycle_of_a_tool_call_arrives_phase_by_phase() -> None:
    editor = Editor(choice="allow")
    agent = prompted(config_lifecycle)
    async with connected(agent, editor) as (conn, _, seen):
        response = await conn.prompt(session_id=SESSION, prompt=[text_block("turn debugging on")])
    assert response.stop_reason == "end_turn"
    assert agent.result is True
    assert editor.events == [
        "tool_call pending",
        "permission",
        "tool_call_update in_progress",
        "write",
        "tool_call_update completed",
    ]
    start, running, done = editor.updates
    assert (type(start), start.kind, start.raw_input) == (ToolCallStart, "edit", {"path": "/project/config.json"})
    assert running.content[0].content.text == "Reading configuration file..."
    assert running.title is None
    assert (done.content[0].old_text, done.content[0].new_text) == ('{"debug": false}', '{"debug": true}')
    assert done.raw_output == {"success": True}
    (asked, options) = editor.asked[0]
    assert type(asked) is ToolCallUpdate
    assert asked.tool_call_id == start.tool_call_id
    assert options == list(OPTIONS)
    assert seen.params("session/update")[0] == {
        "sessionId": SESSION,
        "update": {
            "sessionUpdate": "tool_call",
            "toolCallId": "call_1",
            "title": "Modifying configuration",
            "kind": "edit",
            "status": "pending",
            "locations": [{"path": "/project/config.json"}],
            "rawInput": {"path": "/project/config.json"},
        },
    }
    for params in seen.params("session/update"):
        assert stable().errors("SessionNotification", params) == []
    (request,) = seen.params("session/request_permission")
    assert stable().errors("RequestPermissionRequest", request) == []


@pytest.mark.parametrize("choice", [None, "reject", "never offered"])
async def test_nothing_is_written_unless_an_allowing_option_was_chosen(choice: str | None) -> None:
    editor = Editor(choice)
    agent = prompted(config_lifecycle)
    async with connected(agent, editor) as (conn, _, _):
        await conn.prompt(session_id=SESSION, prompt=[text_block("turn debugging on")])
    assert agent.result is False
    assert editor.files == {"/project/config.json": '{"debug": false}'}
    assert editor.events == ["tool_call pending", "permission", "tool_call_update failed"]


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [("allow_once", True), ("allow_always", True), ("reject_once", False), ("reject_always", False)],
)
def test_consent_is_read_from_the_kind_of_the_option_and_not_from_the_class(kind: Any, allowed: bool) -> None:
    offered = [PermissionOption(kind=kind, name="n", option_id="chosen"), *OPTIONS]
    response = RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="chosen"))
    assert isinstance(response.outcome, AllowedOutcome), "the check of the document says yes to all four"
    assert is_allowed(response, offered) is allowed


def test_consent_is_denied_when_anything_is_unclear() -> None:
    def chose(option_id: str) -> RequestPermissionResponse:
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option_id))

    assert not is_allowed(RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled")), OPTIONS)
    assert not is_allowed(chose("allow"), [])
    assert not is_allowed(chose("ALLOW"), OPTIONS)
    twice = [OPTIONS[0], PermissionOption(kind="reject_once", name="No", option_id="allow")]
    assert not is_allowed(chose("allow"), twice), "an id that both allows and rejects"
    odd = PermissionOption.model_construct(option_id="o", name="n", kind="allow_twice")
    assert not is_allowed(chose("o"), [odd])
    assert is_allowed(chose("allow"), iter(OPTIONS))


# -- helpers ----------------------------------------------------------------------------------------------------------

LOCATION = ToolCallLocation(path="/a", line=4)
DIFF = tool_diff_content("/a", "new", "old")
HELPERS: dict[str, tuple[Any, Any]] = {
    "text": (text_block("t"), {"type": "text", "text": "t"}),
    "image": (image_block("aGk=", "image/png"), {"type": "image", "data": "aGk=", "mimeType": "image/png"}),
    "image with uri": (
        image_block("aGk=", "image/png", uri="file:///a.png"),
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a.png"},
    ),
    "audio": (audio_block("aGk=", "audio/wav"), {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}),
    "link": (resource_link_block("n", "file:///a"), {"type": "resource_link", "name": "n", "uri": "file:///a"}),
    "link with all": (
        resource_link_block("n", "file:///a", mime_type="text/plain", size=3, description="d", title="t"),
        {
            "type": "resource_link",
            "name": "n",
            "uri": "file:///a",
            "mimeType": "text/plain",
            "size": 3,
            "description": "d",
            "title": "t",
        },
    ),
    "embedded text": (
        resource_block(embedded_text_resource("file:///a", "t", mime_type="text/plain")),
        {"type": "resource", "resource": {"uri": "file:///a", "text": "t", "mimeType": "text/plain"}},
    ),
    "embedded blob": (
        resource_block(embedded_blob_resource("file:///a", "aGk=")),
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}},
    ),
    "tool content": (tool_content(text_block("t")), {"type": "content", "content": {"type": "text", "text": "t"}}),
    "diff": (DIFF, {"type": "diff", "path": "/a", "newText": "new", "oldText": "old"}),
    "diff of a new file": (tool_diff_content("/a", "new"), {"type": "diff", "path": "/a", "newText": "new"}),
    "terminal": (tool_terminal_ref("7"), {"type": "terminal", "terminalId": "7"}),
    "plan entry": (plan_entry("c"), {"content": "c", "priority": "medium", "status": "pending"}),
    "plan entry with all": (
        plan_entry("c", priority="high", status="completed"),
        {"content": "c", "priority": "high", "status": "completed"},
    ),
    "plan": (
        update_plan([plan_entry("c")]),
        {"sessionUpdate": "plan", "entries": [{"content": "c", "priority": "medium", "status": "pending"}]},
    ),
    "user message": (
        update_user_message(image_block("aGk=", "image/png")),
        {"sessionUpdate": "user_message_chunk", "content": wire(image_block("aGk=", "image/png"))},
    ),
    "agent message": (
        update_agent_message(text_block("t")),
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "thought": (
        update_agent_thought(text_block("t")),
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "user text": (
        update_user_message_text("t"),
        {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "agent text": (
        update_agent_message_text("t"),
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "thought text": (
        update_agent_thought_text("t"),
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "t"}},
    ),
    "commands": (
        update_available_commands([AvailableCommand(name="commit", description="d")]),
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": "commit", "description": "d"}],
        },
    ),
    "mode": (update_current_mode("plan"), {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}),
    "start": (start_tool_call("1", "t"), {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "t"}),
    "start with all": (
        start_tool_call(
            "1",
            "t",
            kind="execute",
            status="in_progress",
            content=(DIFF,),
            locations=(LOCATION,),
            raw_input={"a": 1},
            raw_output=[2],
        ),
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "1",
            "title": "t",
            "kind": "execute",
            "status": "in_progress",
            "content": [wire(DIFF)],
            "locations": [{"path": "/a", "line": 4}],
            "rawInput": {"a": 1},
            "rawOutput": [2],
        },
    ),
    "start of a read": (
        start_read_tool_call("1", "Read a", "/a"),
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "1",
            "title": "Read a",
            "kind": "read",
            "status": "pending",
            "locations": [{"path": "/a"}],
            "rawInput": {"path": "/a"},
        },
    ),
    "start of an edit": (
        start_edit_tool_call("1", "Edit a", "/a", "new", extra_options=[DIFF]),
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "1",
            "title": "Edit a",
            "kind": "edit",
            "status": "pending",
            "content": [wire(DIFF)],
            "locations": [{"path": "/a"}],
            "rawInput": {"path": "/a", "content": "new"},
        },
    ),
    "update": (update_tool_call("1"), {"sessionUpdate": "tool_call_update", "toolCallId": "1"}),
    "update with all": (
        update_tool_call(
            "1",
            title="t",
            kind="edit",
            status="completed",
            content=[DIFF],
            locations=[LOCATION],
            raw_input={},
            raw_output={"ok": True},
        ),
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "1",
            "title": "t",
            "kind": "edit",
            "status": "completed",
            "content": [wire(DIFF)],
            "locations": [{"path": "/a", "line": 4}],
            "rawInput": {},
            "rawOutput": {"ok": True},
        },
    ),
    "notification": (
        session_notification("s", update_agent_message_text("t")),
        {
            "sessionId": "s",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}},
        },
    ),
}


@pytest.mark.parametrize(("built", "expected"), HELPERS.values(), ids=HELPERS)
def test_helpers_build_exactly_this(built: Any, expected: Any) -> None:
    assert wire(built) == expected
    assert type(built).model_validate(expected) == built
    definition = next(cls.__name__ for cls in type(built).__mro__ if cls.__name__ in stable().defs)
    assert stable().errors(definition, expected) == []


def test_builders_of_the_document_return_its_types() -> None:
    assert type(start_tool_call("1", "t")) is ToolCallStart
    assert type(start_read_tool_call("1", "t", "/a")) is ToolCallStart
    assert type(start_edit_tool_call("1", "t", "/a", {"any": "thing"})) is ToolCallStart
    assert type(update_tool_call("1")) is ToolCallProgress
    assert type(tool_content(text_block("t"))) is ContentToolCallContent
    assert type(DIFF) is FileEditToolCallContent
    assert type(tool_terminal_ref("7")) is TerminalToolCallContent


# -- ToolCallTracker --------------------------------------------------------------------------------------------------


async def test_the_tracker_reports_a_call_from_start_to_end() -> None:
    tracker = ToolCallTracker()

    async def work(client_conn: Any) -> None:
        start = tracker.start(
            "my_read_1",
            title="Reading configuration",
            kind="read",
            locations=[ToolCallLocation(path="/app/config.json")],
        )
        await client_conn.session_update(SESSION, start)
        await client_conn.session_update(SESSION, tracker.progress("my_read_1", status="in_progress"))
        for piece in ("one ", "two ", "three"):
            await client_conn.session_update(SESSION, tracker.append_stream_text("my_read_1", piece))
        done = tracker.progress("my_read_1", status="completed", raw_output={"bytes": 1024})
        await client_conn.session_update(SESSION, done)
        tracker.forget("my_read_1")

    editor = Editor()
    async with connected(prompted(work), editor) as (conn, _, _):
        await conn.prompt(session_id=SESSION, prompt=[text_block("read it")])
    start, *rest = editor.updates
    assert (start.title, start.kind, start.status) == ("Reading configuration", "read", "in_progress")
    assert len({update.tool_call_id for update in editor.updates}) == 1
    assert len(start.tool_call_id) == 32
    assert [update.content[0].content.text for update in rest[1:4]] == ["one ", "one two ", "one two three"]
    assert wire(rest[0]) == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": start.tool_call_id,
        "status": "in_progress",
    }
    assert (rest[-1].status, rest[-1].raw_output) == ("completed", {"bytes": 1024})
    with pytest.raises(KeyError):
        tracker.view("my_read_1")


def test_the_tracker_makes_ids_and_keeps_calls_apart() -> None:
    ids = iter(["id_1", "id_2"])
    tracker = ToolCallTracker(id_factory=lambda: next(ids))
    assert tracker.start("a", title="A").tool_call_id == "id_1"
    assert tracker.start("b", title="B", status="pending", raw_input={"n": 1}).tool_call_id == "id_2"
    assert tracker.progress("a", title="A!").tool_call_id == "id_1"
    assert (tracker.view("a").title, tracker.view("b").title) == ("A!", "B")
    assert (tracker.view("a").status, tracker.view("b").status) == ("in_progress", "pending")
    tracker.forget("a")
    tracker.forget("a")
    with pytest.raises(UnknownToolCall, match="Unknown tool call id: a"):
        tracker.progress("a", status="completed")
    assert tracker.view("b").raw_input == {"n": 1}


def test_an_update_of_the_tracker_carries_only_what_is_given() -> None:
    tracker = ToolCallTracker(id_factory=lambda: "1")
    tracker.start("x", title="t", kind="edit", locations=[LOCATION], raw_input={"a": 1})
    base = {"sessionUpdate": "tool_call_update", "toolCallId": "1"}
    assert wire(tracker.progress("x")) == base
    assert wire(tracker.progress("x", kind="execute")) == {**base, "kind": "execute"}
    assert wire(tracker.progress("x", content=[DIFF])) == {**base, "content": [wire(DIFF)]}
    assert wire(tracker.append_stream_text("x", "out", status="in_progress", title="T")) == {
        **base,
        "title": "T",
        "status": "in_progress",
        "content": [{"type": "content", "content": {"type": "text", "text": "out"}}],
    }
    view = tracker.view("x")
    assert (view.title, view.kind, view.status, view.raw_input) == ("T", "execute", "in_progress", {"a": 1})
    assert view.locations == (LOCATION,)


def test_views_and_models_of_the_tracker_are_copies() -> None:
    tracker = ToolCallTracker(id_factory=lambda: "1")
    locations = [ToolCallLocation(path="/a")]
    tracker.start("x", title="t", content=[tool_content(text_block("c"))], locations=locations)
    locations[0].path = "/changed by the caller"
    view, model = tracker.view("x"), tracker.tool_call_model("x")
    assert isinstance(view, TrackedToolCallView)
    assert type(model) is ToolCallUpdate
    assert view.locations is not None
    assert (view.tool_call_id, view.locations[0].path, model.locations[0].path) == ("1", "/a", "/a")
    with pytest.raises(AttributeError):
        view.title = "other"  # type: ignore[misc]
    model.content[0].content.text = "changed"
    model.locations.append(LOCATION)
    again = tracker.tool_call_model("x")
    assert again.content[0].content.text == "c"
    assert len(again.locations) == 1


def test_a_long_stream_is_not_sent_again_with_every_piece() -> None:
    tracker = ToolCallTracker()
    tracker.start("x", title="t", kind="execute")
    piece = "y" * 1024
    sizes = [len(encode(tracker.append_stream_text("x", piece))) for _ in range(200)]
    assert max(sizes) < STREAM_WINDOW + 1024
    assert sum(sizes) < 200 * (STREAM_WINDOW + 1024)
    done = tracker.progress("x", status="completed")
    assert done.content[0].content.text == piece * 200, "the whole text goes out once, at the end"


# -- PermissionBroker -------------------------------------------------------------------------------------------------


def test_the_default_options_are_those_of_the_document() -> None:
    assert [wire(option) for option in default_permission_options()] == [
        {"optionId": "approve", "name": "Approve", "kind": "allow_once"},
        {"optionId": "approve_for_session", "name": "Approve for session", "kind": "allow_always"},
        {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
    ]


def answering(option_id: str = "approve") -> tuple[list[RequestPermissionRequest], dict[str, Any]]:
    """Requesters of both calling styles that note what they are asked."""
    asked: list[RequestPermissionRequest] = []
    answer = RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option_id))

    async def one_request(request: RequestPermissionRequest) -> RequestPermissionResponse:
        asked.append(request)
        return answer

    async def by_keywords(
        session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        asked.append(RequestPermissionRequest(session_id=session_id, tool_call=tool_call, options=options))
        return answer

    async def in_the_order_of_the_document(
        options: list[PermissionOption], session_id: str, tool_call: ToolCallUpdate, **kwargs: Any
    ) -> RequestPermissionResponse:
        return await by_keywords(session_id, tool_call, options)

    return asked, {"one request": one_request, "keywords": by_keywords, "older order": in_the_order_of_the_document}


@pytest.mark.parametrize("style", ["one request", "keywords", "older order"])
async def test_the_broker_asks_in_either_calling_style(style: str) -> None:
    asked, requesters = answering()
    tracker = ToolCallTracker(id_factory=lambda: "1")
    broker = PermissionBroker(session_id=SESSION, requester=requesters[style], tracker=tracker)
    tracker.start("edit_1", title="Edit config", kind="edit", content=[DIFF])
    outcome = await broker.request_for("edit_1", description="This will modify the main configuration file.")
    assert is_allowed(outcome, default_permission_options())
    assert await broker.is_allowed("edit_1")
    first, second = asked
    assert (first.session_id, first.tool_call.tool_call_id, first.tool_call.title) == (SESSION, "1", "Edit config")
    assert first.options == list(default_permission_options())
    assert [wire(item) for item in first.tool_call.content] == [
        wire(DIFF),
        {"type": "content", "content": {"type": "text", "text": "This will modify the main configuration file."}},
    ]
    assert second.tool_call.content == [DIFF], "a description is of its request, not of the call"


@pytest.mark.parametrize("choice", ["approve", "approve_for_session", "reject", None])
async def test_the_broker_asks_over_a_connection(choice: str | None) -> None:
    """The sample of the document, which the official package answers with a TypeError."""
    tracker = ToolCallTracker()

    async def work(client_conn: Any) -> Any:
        broker = PermissionBroker(session_id=SESSION, requester=client_conn.request_permission, tracker=tracker)
        await client_conn.session_update(SESSION, tracker.start("edit_1", title="Edit config", kind="edit"))
        outcome = await broker.request_for("edit_1", description="why")
        return is_allowed(outcome, default_permission_options()), await broker.is_allowed("edit_1")

    editor = Editor(choice)
    agent = prompted(work)
    async with connected(agent, editor) as (conn, _, _):
        await conn.prompt(session_id=SESSION, prompt=[text_block("edit")])
    allowed = choice in ("approve", "approve_for_session")
    assert agent.result == (allowed, allowed)
    (asked, options), _ = editor.asked
    assert asked.tool_call_id == editor.updates[0].tool_call_id
    assert asked.content[-1].content.text == "why"
    assert options == list(default_permission_options())


async def test_the_broker_takes_options_content_and_a_call_of_its_own() -> None:
    asked, requesters = answering("allow")
    broker = PermissionBroker(SESSION, requesters["one request"], default_options=OPTIONS)
    call = ToolCallUpdate(tool_call_id="own", title="Own")
    await broker.request_for("anything", tool_call=call, description="why")
    assert call.content is None, "the caller's object is not changed"
    other = [PermissionOption(kind="reject_always", name="Never", option_id="never")]
    assert not await broker.is_allowed("anything", tool_call=call, options=other, content=[DIFF])
    first, second = asked
    assert (first.tool_call.tool_call_id, first.options) == ("own", list(OPTIONS))
    assert (second.options, second.tool_call.content) == (other, [DIFF])


async def test_the_broker_says_what_it_lacks() -> None:
    _, requesters = answering()
    with pytest.raises(MissingToolCallError):
        await PermissionBroker(SESSION, requesters["keywords"]).request_for("x")
    tracker = ToolCallTracker()
    tracker.start("x", title="t")
    with pytest.raises(MissingPermissionOptionsError):
        await PermissionBroker(SESSION, requesters["keywords"], tracker=tracker, default_options=[]).request_for("x")
    with pytest.raises(KeyError):
        await PermissionBroker(SESSION, requesters["keywords"], tracker=tracker).request_for("y")


# -- SessionAccumulator -----------------------------------------------------------------------------------------------


def notify(update: Any, session: str = SESSION) -> SessionNotification:
    return SessionNotification(session_id=session, update=update)


CONVERSATION = [
    update_user_message_text("fix it"),
    update_agent_thought_text("hm"),
    update_plan([plan_entry("look"), plan_entry("fix")]),
    start_read_tool_call("1", "Read a", "/a"),
    update_tool_call("1", status="completed", content=[tool_content(text_block("text"))]),
    update_current_mode("code"),
    update_available_commands([AvailableCommand(name="commit", description="d")]),
    update_plan([plan_entry("look", status="completed")]),
    update_agent_message_text("done"),
    update_agent_message_text("!"),
]


def test_the_accumulator_merges_a_session() -> None:
    accumulator = SessionAccumulator()
    told: list[tuple[int, int]] = []
    unsubscribe = accumulator.subscribe(
        lambda snapshot, notification: told.append((len(snapshot.tool_calls), len(snapshot.agent_messages)))
    )
    snapshots = [accumulator.apply(notify(update)) for update in CONVERSATION]
    assert told[0] == (0, 0)
    assert told[-1] == (1, 2)
    assert len(told) == len(CONVERSATION)
    last = snapshots[-1]
    assert isinstance(last, SessionSnapshot)
    assert last.session_id == SESSION
    for tool_call_id, tool_call in last.tool_calls.items():
        assert isinstance(tool_call, ToolCallView)
        assert (tool_call_id, tool_call.tool_call_id, tool_call.status) == ("1", "1", "completed")
    call = last.tool_calls["1"]
    assert (call.title, call.kind, call.raw_input) == ("Read a", "read", {"path": "/a"})
    assert call.locations == (ToolCallLocation(path="/a"),)
    assert call.content is not None
    assert call.content[0].content.text == "text"
    assert last.plan_entries == (PlanEntry(content="look", priority="medium", status="completed"),)
    assert last.current_mode_id == "code"
    assert [command.name for command in last.available_commands] == ["commit"]
    assert last.user_messages == (CONVERSATION[0],)
    assert last.agent_thoughts == (CONVERSATION[1],)
    assert last.agent_messages == tuple(CONVERSATION[-2:])
    assert [chunk.content.text for chunk in last.agent_messages] == ["done", "!"]
    assert last.agent_messages[-1].content.text == "!"
    assert last.agent_messages[:1] == (CONVERSATION[-2],)
    assert accumulator.snapshot() == last
    unsubscribe()
    unsubscribe()
    accumulator.apply(notify(update_agent_message_text("more")))
    assert len(told) == len(CONVERSATION)


def test_a_snapshot_stays_what_it_was() -> None:
    accumulator = SessionAccumulator()
    taken = [(accumulator.apply(notify(update)), index) for index, update in enumerate(CONVERSATION)]
    replayed = SessionAccumulator()
    for snapshot, index in taken:
        assert snapshot == replayed.apply(notify(CONVERSATION[index]))
    for name in ("session_id", "tool_calls", "agent_messages"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(taken[-1][0], name, None)
    with pytest.raises(TypeError):
        taken[-1][0].tool_calls["2"] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        taken[-1][0].tool_calls["1"].status = "failed"  # type: ignore[misc]


def test_what_a_caller_does_to_its_update_later_does_not_reach_a_snapshot() -> None:
    accumulator = SessionAccumulator()
    message, start = update_agent_message_text("before"), start_read_tool_call("1", "t", "/before")
    accumulator.apply(notify(message))
    snapshot = accumulator.apply(notify(start))
    message.content.text = "after"
    assert start.locations is not None
    start.locations[0].path = "/after"
    assert snapshot.agent_messages[0].content.text == "before"
    assert snapshot.tool_calls["1"].locations == (ToolCallLocation(path="/before"),)


def test_updates_replace_fields_and_leave_out_what_they_do_not_name() -> None:
    accumulator = SessionAccumulator()
    accumulator.apply(notify(update_tool_call("late", status="in_progress")))
    snapshot = accumulator.apply(notify(update_tool_call("late", content=[DIFF], raw_output={"a": 1})))
    assert snapshot.tool_calls["late"] == ToolCallView(
        tool_call_id="late",
        title=None,
        kind=None,
        status="in_progress",
        content=(DIFF,),
        locations=None,
        raw_input=None,
        raw_output={"a": 1},
    )
    snapshot = accumulator.apply(notify(update_tool_call("late", content=[tool_terminal_ref("7")])))
    assert snapshot.tool_calls["late"].content == (tool_terminal_ref("7"),)
    assert snapshot.tool_calls["late"].raw_output == {"a": 1}


def test_the_accumulator_follows_one_session_at_a_time() -> None:
    accumulator = SessionAccumulator()
    with pytest.raises(SessionSnapshotUnavailableError):
        accumulator.snapshot()
    accumulator.apply(notify(update_agent_message_text("a")))
    snapshot = accumulator.apply(notify(update_agent_message_text("b"), "sess_2"))
    assert (snapshot.session_id, len(snapshot.agent_messages)) == ("sess_2", 1)
    accumulator.reset()
    with pytest.raises(SessionSnapshotUnavailableError):
        accumulator.snapshot()
    steady = SessionAccumulator(auto_reset_on_session_change=False)
    steady.apply(notify(update_agent_message_text("a")))
    with pytest.raises(SessionNotificationMismatchError):
        steady.apply(notify(update_agent_message_text("b"), "sess_2"))
    assert len(steady.snapshot().agent_messages) == 1


async def test_the_accumulator_fed_by_a_connection_sees_the_session() -> None:
    accumulator = SessionAccumulator()

    class Showing(Client):
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            accumulator.apply(SessionNotification(session_id=session_id, update=update))

    async def work(client_conn: Any) -> None:
        for update in CONVERSATION:
            await client_conn.session_update(SESSION, update)

    async with connected(prompted(work), Showing()) as (conn, _, _):
        await conn.prompt(session_id=SESSION, prompt=[text_block("go")])
    expected = SessionAccumulator()
    for update in CONVERSATION:
        expected.apply(notify(update))
    assert accumulator.snapshot() == expected.snapshot()
    dumped = accumulator.snapshot().model_dump()
    assert dumped["current_mode_id"] == "code"
    assert len(dumped["agent_messages"]) == 2


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
