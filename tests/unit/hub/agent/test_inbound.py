"""Noise: the first of it is kept, a flood is counted, and nothing of it is passed over in silence."""

from __future__ import annotations

import asyncio
import re

import pytest

from pilothouse.hub.agent import inbound as noise
from pilothouse.hub.agent.inbound import BURST, Noise

Told = list[tuple[str, str]]


def total(told: Told) -> int:
    """How many pieces of noise are told of."""
    more = (re.search(r"; (\d+) more before it", reason) for _, reason in told)
    return len(told) + sum(int(found[1]) for found in more if found)


async def test_a_little_noise_is_kept_as_it_is() -> None:
    told: Told = []
    heard = Noise(lambda *words: told.append(words))
    for number in range(BURST):
        heard.hear(str(number), "why")
    assert told == [(str(number), "why") for number in range(BURST)]


async def test_a_flood_is_counted_and_the_count_is_told_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "TELL_AFTER", 0.01)
    told: Told = []
    heard = Noise(lambda *words: told.append(words))
    for number in range(10_000):
        heard.hear(str(number), "why")
    async with asyncio.timeout(30):
        while total(told) < 10_000:
            await asyncio.sleep(0.01)
    assert total(told) == 10_000
    assert len(told) < BURST + 50
    assert told[-1][0] == "9999"


async def test_what_comes_while_the_log_is_behind_is_only_counted() -> None:
    told: Told = []
    heard = Noise(lambda *words: told.append(words))
    heard.hear("a", "why", is_behind=True)
    heard.hear("b", "why", is_behind=True)
    assert told == []
    heard.count()
    assert told == [("b", "why; 1 more before it were not kept")]
    heard.count()
    assert len(told) == 1
