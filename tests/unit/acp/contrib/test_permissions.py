"""The permission broker: default options, both calling styles, and a request over a connection."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.acp import (
    is_allowed,
)
from pilothouse.acp.contrib.permissions import (
    MissingPermissionOptionsError,
    MissingToolCallError,
    PermissionBroker,
    default_permission_options,
)
from pilothouse.acp.contrib.tool_calls import ToolCallTracker
from pilothouse.acp.helpers import (
    text_block,
)
from pilothouse.acp.schema import (
    AllowedOutcome,
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionResponse,
    ToolCallUpdate,
)
from tests.support.sdk_pair import DIFF, OPTIONS, SESSION, Editor, connected, prompted, wire


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
