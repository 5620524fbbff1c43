"""Prompts on their way: the queue, how a turn ended, and how the log remembers it."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.dialects.acp import Translator
from pilothouse.hub.errors import NotStored, QueueFull
from pilothouse.hub.session.prompt_queue import Prompt, PromptQueue, TurnResult, result_of, stored_result
from pilothouse.log.memory import MemoryLog

NOW = "2026-01-01T00:00:00.000Z"


async def test_the_queue_keeps_its_order_and_its_limit() -> None:
    queue = PromptQueue(limit=3)
    one, two, three = (Prompt(name, name) for name in ("one", "two", "three"))
    for prompt in (one, two, three):
        queue.put(prompt)
    with pytest.raises(QueueFull):
        queue.put(Prompt("four", "four"))
    assert [queue.move(three, -5), queue.move(one, 99)] == [0, 2]
    assert list(queue) == [three, two, one]
    queue.remove(two)
    assert (queue.find("two"), queue.find("one")) == (None, one)
    assert queue.take() is three
    assert queue.clear() == [one]
    assert queue.take() is None


async def test_a_prompt_is_settled_once() -> None:
    prompt = Prompt("t", "hi")
    prompt.deadline = asyncio.get_running_loop().call_later(60, lambda: None)
    first = TurnResult("t", "end_turn", 3)
    prompt.settle(first)
    prompt.settle(NotStored("too late"))
    assert await prompt.done == first
    assert prompt.deadline.cancelled()


async def test_the_log_remembers_how_a_turn_ended() -> None:
    async with MemoryLog() as log:
        await log.sessions.create("s", agent="a", cwd="/w")
        one = Translator("s", workspace="/w")
        begun = one.prompt("turn_b is not mine", NOW, turn_id="turn_a")
        ended = one.failed({"code": -32603, "message": "broken"}, NOW)
        dropped = one.fact("prompt_cancelled", {"promptId": "turn_c"}, NOW)
        running = one.prompt("hi", NOW, turn_id="turn_d")
        await log.append("s", 0, [*begun, *ended, *dropped, *running])
        assert await stored_result(log, "s", "turn_a") == result_of("turn_a", ended)
        assert result_of("turn_a", ended).error == "broken"
        cancelled = await stored_result(log, "s", "turn_c")
        assert cancelled is not None
        assert cancelled.stop_reason == "cancelled"
        assert await stored_result(log, "s", "turn_b") is None
        assert await stored_result(log, "s", "turn_d") is None
