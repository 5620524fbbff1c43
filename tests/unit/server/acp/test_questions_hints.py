"""A question that an editor cannot show: it is told, and nobody else, that somebody waits elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp.errors import RequestError
from pilothouse.hub.hub import Hub
from tests.support.hubs import history
from tests.support.lending import Lender, lending
from tests.support.servers import agent_specs

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
