"""Approvals put to one ACP client: which option it may choose, and what is decided when it has none."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pilothouse.acp.schema import ClientCapabilities
from pilothouse.log.records import Approval
from pilothouse.model.events import ApprovalRequestedEvent
from pilothouse.model.records import Option
from pilothouse.server.acp.questions import LONGEST, Asking
from pilothouse.server.auth.callers import ADMIN, Caller

CALLER = Caller(name="editor", scopes=ADMIN)
ONCE = Option(option_id="once", name="Yes", kind="allow_once")
ALWAYS = Option(option_id="always", name="Always", kind="allow_always")
DENY = Option(option_id="no", name="No", kind="reject_once")


class Session:
    def __init__(self) -> None:
        self.decided: list[dict[str, Any]] = []

    async def decide(self, request_id: str, **decision: Any) -> Approval:
        self.decided.append(decision)
        return Approval(id=request_id, session_id="ses", request={}, options=[], created="")


class Hub:
    def __init__(self) -> None:
        self.session_of_it = Session()

    async def session(self, session_id: str) -> Session:
        return self.session_of_it


class Client:
    """An editor that chooses an option, and the asking for it."""

    def __init__(self, choice: str, *, alone: bool = False) -> None:
        self.asked: list[Any] = []
        self.hints: list[tuple[str, str]] = []
        self._choice = choice
        hub: Any = Hub()
        self.session = hub.session_of_it
        self.asking = Asking(hub, "ses", self.request, caller=CALLER, capabilities=ClientCapabilities(), alone=alone)
        self.asking.hint = lambda seq, title, text: self.hints.append((title, text))
        self.asking.go_live()

    async def request(self, method: str, params: Any) -> Any:
        self.asked.append(params)
        return msgspec.Raw(msgspec.json.encode({"outcome": {"outcome": "selected", "optionId": self._choice}}))

    async def put(self, event: ApprovalRequestedEvent) -> None:
        self.asking.asked(event)
        async with asyncio.timeout(10):
            while self.asking._waiting or self.asking._deciding:
                await asyncio.sleep(0)
                if not any(not task.done() for task in (*self.asking._waiting.values(), *self.asking._deciding)):
                    break


def approval(*options: Option, **fields: Any) -> ApprovalRequestedEvent:
    given: dict[str, Any] = {
        "request_id": "apr_1",
        "tool_call_id": "call",
        "tool_name": "Bash",
        "tool_input": {},
        "description": "Run: make",
        "risk_level": "critical",
    }
    return ApprovalRequestedEvent(seq=1, session_id="ses", timestamp="", **{**given, **fields}, options=list(options))


async def test_offered_option_decides() -> None:
    client = Client("once")
    await client.put(approval(ONCE, ALWAYS, DENY))
    assert [option["name"] for option in client.asked[0]["options"]] == [
        "Deny (agent: “No”)",
        "Allow once (agent: “Yes”)",
    ]
    assert [one["option_id"] for one in client.session.decided] == ["once"]


async def test_option_that_was_left_out_decides_nothing() -> None:
    client = Client("always")
    text = "rm " + "x" * 2 * LONGEST + " \u202e/"
    await client.put(approval(ONCE, ALWAYS, DENY, description=text))
    assert client.session.decided == []
    ((_, told),) = client.hints
    assert "characters left out" in told
    assert told.endswith("xx ⟨U+202E⟩/")


@pytest.mark.parametrize("alone", [True, False])
async def test_request_without_an_option_to_offer_is_denied_where_no_other_client_decides(alone: bool) -> None:
    client = Client("always", alone=alone)
    await client.put(approval(ALWAYS))
    assert client.asked == []
    assert [one["approved"] for one in client.session.decided] == [False] * alone
