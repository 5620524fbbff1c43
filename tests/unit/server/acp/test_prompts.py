"""Prompts in the moment in which they come: in their order, and one that is cancelled at once does not run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp.errors import REQUEST_CANCELLED, RequestError
from pilothouse.hub.hub import Hub
from tests.support.lending import Lender, lending
from tests.support.servers import agent_specs


@asynccontextmanager
async def in_session(tmp_path: Path) -> AsyncIterator[tuple[Hub, Lender, str]]:
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub, lending(hub) as editor:
        yield hub, editor, await editor.open(tmp_path, agent="demo")


def begin(editor: Lender, session_id: str, text: str = "wait", **ours: Any) -> asyncio.Task[Any]:
    """Prompt; for something that goes on until it is cancelled."""
    prompt = [{"type": "text", "text": text}]
    meta = {"_meta": {"pilothouse": ours}} if ours else {}
    return asyncio.create_task(editor.call("session/prompt", sessionId=session_id, prompt=prompt, **meta))


async def cancel(editor: Lender, session_id: str) -> None:
    await asyncio.sleep(0)  # the prompt is on its way
    await editor.wire.send_notification("session/cancel", {"sessionId": session_id})


@pytest.mark.parametrize("ours", [{}, {"clientRequestId": "one"}], ids=["plain", "named"])
async def test_a_cancel_right_behind_a_prompt_is_not_lost(tmp_path: Path, ours: dict[str, Any]) -> None:
    async with in_session(tmp_path) as (_, editor, session_id):
        prompt = begin(editor, session_id, **ours)
        await cancel(editor, session_id)
        assert (await prompt)["stopReason"] == "cancelled"
        assert (await editor.prompt(session_id, "echo next"))["stopReason"] == "end_turn"


async def test_a_cancel_while_the_session_is_taken_up_from_the_log_is_not_lost(tmp_path: Path) -> None:
    async with in_session(tmp_path) as (hub, editor, session_id):
        await hub.release(session_id)
        prompt = begin(editor, session_id, clientRequestId="one")
        await cancel(editor, session_id)
        assert (await prompt)["stopReason"] == "cancelled"
        assert (await editor.prompt(session_id, "echo next"))["stopReason"] == "end_turn"


async def test_a_prompt_behind_a_cancel_runs(tmp_path: Path) -> None:
    async with in_session(tmp_path) as (_, editor, session_id):
        cancelled = begin(editor, session_id, clientRequestId="one")
        await cancel(editor, session_id)
        assert (await editor.prompt(session_id, "echo next"))["stopReason"] == "end_turn"
        assert (await cancelled)["stopReason"] == "cancelled"


async def test_a_request_that_is_cancelled_before_its_turn_has_begun_does_not_run(tmp_path: Path) -> None:
    async with in_session(tmp_path) as (_, editor, session_id):
        prompt = begin(editor, session_id)
        await asyncio.sleep(0)
        prompt.cancel()
        with pytest.raises((RequestError, asyncio.CancelledError)) as refused:
            await prompt
        assert getattr(refused.value, "code", REQUEST_CANCELLED) == REQUEST_CANCELLED
        assert (await editor.prompt(session_id, "echo next"))["stopReason"] == "end_turn"


async def test_prompts_run_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    """Of the first it is looked up whether it came before; the other could overtake it meanwhile."""
    async with in_session(tmp_path) as (_, editor, session_id):
        prompts = [begin(editor, session_id, "echo one,", clientRequestId="one"), begin(editor, session_id, "echo two")]
        assert [(await prompt)["stopReason"] for prompt in prompts] == ["end_turn", "end_turn"]
        assert editor.said == "one,two"
