"""Approvals and questions sent to one ACP client: the options it may choose, and hints where it cannot show them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.acp.errors import RequestError
from pilothouse.acp.schema import ClientCapabilities
from pilothouse.hub.hub import Hub
from pilothouse.log.records import Approval
from pilothouse.model.events import ApprovalRequestedEvent
from pilothouse.model.records import Option
from pilothouse.server.acp.questions import LONGEST, Asking
from pilothouse.server.auth.callers import ADMIN, Caller
from tests.support.hubs import history
from tests.support.lending import Lender, lending
from tests.support.servers import agent_specs

# -- options ----------------------------------------------------------------------------------------------------------

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


class FakeHub:
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
        hub: Any = FakeHub()
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


# -- hints ------------------------------------------------------------------------------------------------------------

FORMS = {"elicitation": {"form": {}, "url": {}}}


def hints(editor: Lender) -> list[dict[str, Any]]:
    return [one for one in editor.updates if str(one.get("messageId", "")).startswith("pilothouse-")]


def notices(editor: Lender) -> list[dict[str, Any]]:
    return [one for one in editor.updates if one["sessionUpdate"] == "notice"]


async def decline(hub: Hub, session_id: str, prompt: asyncio.Task[Any]) -> None:
    """Answer elsewhere whatever is asked, until the turn is over."""
    session = await hub.session(session_id)
    while not prompt.done():
        for question in session.state.pending_questions:
            session.answer(question.question_id, None, action="decline", by="phone")
        await asyncio.sleep(0.01)


async def test_an_editor_without_forms_is_told_where_to_answer_and_the_log_is_not(tmp_path: Path) -> None:
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub, lending(hub) as editor:
        session_id = await editor.open(tmp_path, agent="demo")
        async with lending(hub, **FORMS) as able:
            able.answers["elicitation/create"] = lambda params: asyncio.Event().wait()
            await able.load(session_id)
            prompt = asyncio.create_task(editor.prompt(session_id, "question"))
            await editor.until(lambda: hints(editor))
            await able.until(lambda: able.asked("elicitation/create"))
            told = hints(editor)[0]
            asked = able.asked("elicitation/create")[0]["message"]
            assert asked in told["content"]["text"]
            assert f"pilothouse attach {session_id}" in told["content"]["text"]
            await decline(hub, session_id, prompt)
            assert (await prompt)["stopReason"] == "end_turn"
            assert hints(able) == []
        events = await history(hub.log, session_id)
        assert not [event for event in events if b"cannot show it" in (event.source or b"")]
        seqs = [one["_meta"]["pilothouse"]["seq"] for one in editor.updates]
        assert seqs == sorted(seqs), "a bridge knows its place by the last line"
        before = len(hints(editor))
        async with lending(hub) as later:
            await later.load(session_id)
            assert hints(later) == [], "what was answered long ago waits for nobody"
        assert len(hints(editor)) == before


async def test_who_comes_while_a_question_waits_is_told_once(tmp_path: Path) -> None:
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub, lending(hub) as editor:
        session_id = await editor.open(tmp_path, agent="demo")
        prompt = asyncio.create_task(editor.prompt(session_id, "question"))
        await editor.until(lambda: hints(editor))
        async with lending(hub) as other:
            await other.load(session_id)
            await other.until(lambda: hints(other))
            assert len(hints(other)) == 1
        await decline(hub, session_id, prompt)
        await prompt


async def test_an_editor_that_knows_notices_gets_one_and_no_words(tmp_path: Path) -> None:
    async with (
        Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub,
        lending(hub, session={"notices": {}}) as editor,
    ):
        session_id = await editor.open(tmp_path, agent="demo")
        prompt = asyncio.create_task(editor.prompt(session_id, "question"))
        await editor.until(lambda: notices(editor))
        assert "A question waits for you" in notices(editor)[0]["title"]
        assert hints(editor) == []
        await decline(hub, session_id, prompt)
        await prompt


async def answer_unknown(params: dict[str, Any]) -> Any:
    return {"outcome": {"outcome": "selected", "optionId": "never offered"}}


async def answer_error(params: dict[str, Any]) -> Any:
    raise RequestError(-32603, "the dialog broke")


@pytest.mark.parametrize("answer", [answer_unknown, answer_error])
async def test_an_editor_whose_answer_decides_nothing_is_told_that_the_permission_still_waits(
    tmp_path: Path, answer: Any
) -> None:
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub, lending(hub) as editor:
        editor.answers["session/request_permission"] = answer
        session_id = await editor.open(tmp_path, agent="demo")
        prompt = asyncio.create_task(editor.prompt(session_id, "edit notes.txt"))
        await editor.until(lambda: hints(editor))
        assert "notes.txt" in hints(editor)[0]["content"]["text"]
        assert f"pilothouse attach {session_id}" in hints(editor)[0]["content"]["text"]
        session = await hub.session(session_id)
        (pending,) = session.state.pending_approvals
        await session.decide(pending.request_id, approved=False, by="phone")
        assert (await prompt)["stopReason"] == "end_turn"
        assert len(hints(editor)) == 1
