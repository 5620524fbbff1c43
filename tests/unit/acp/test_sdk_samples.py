"""The samples of the SDK reference, one by one, with `acp` read as `pilothouse.acp`.

Where a sample of that document is wrong the safe behaviour is tested instead: it takes the class `AllowedOutcome` for
consent, although choosing "Reject" gives that class too.
"""

from __future__ import annotations

import importlib
import inspect
import typing
from typing import Any

import pytest

from pilothouse.acp import (
    Agent,
    AgentSideConnection,
    Client,
    ClientSideConnection,
    is_allowed,
    schema,
)
from pilothouse.acp.helpers import (
    text_block,
    tool_terminal_ref,
)
from pilothouse.acp.schema import (
    AllowedOutcome,
    ContentToolCallContent,
    DeniedOutcome,
    FileEditToolCallContent,
    PermissionOption,
    RequestPermissionResponse,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)
from tests.support.schema_samples import stable
from tests.support.sdk_pair import OPTIONS, SESSION, Editor, connected, prompted

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
