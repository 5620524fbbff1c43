"""A model that calls every tool it is offered, with arguments made from the tools' own schemas."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.models.test import TestModel

from pilothouse.agents.coder.tools import TOOLS
from tests.support.coders import Script, coder


@dataclass
class EveryTool(Script):
    answers: list[Any] = field(default_factory=list)

    def model(self) -> Any:
        return TestModel()


@pytest.mark.parametrize("kind", ["reject_once", "reject_always"])
async def test_every_tool_is_called_and_ended_and_rejected_ones_leave_the_disk_as_it_was(
    tmp_path: Path, kind: str
) -> None:
    place = tmp_path / "work"
    place.mkdir()
    (place / "a").write_text("as it was")  # the name and the texts that such a model makes up
    async with coder(EveryTool(), place, home=tmp_path / "home") as client:
        client.choose(kind)
        answer = await client.say("Use everything")
        assert answer.stop_reason == "end_turn"
        assert {call["name"] for call in client.calls.values()} >= {tool.__name__ for tool in TOOLS}
        assert client.is_settled()
        assert client.asked
        assert (await client.say("And again")).stop_reason == "end_turn"
    assert [path.name for path in place.iterdir()] == ["a"]
    assert (place / "a").read_text() == "as it was"


async def test_the_same_model_may_write_what_is_allowed(tmp_path: Path) -> None:
    place = tmp_path / "work"
    place.mkdir()
    async with coder(EveryTool(), place, home=tmp_path / "home") as client:
        assert (await client.say("Use everything")).stop_reason == "end_turn"
        # its sub-agent does the same, and one of the two finds the file as it wants it
        writes = [call["status"] for call in client.calls.values() if call["name"] == "write"]
        assert sorted(writes) == ["completed", "failed"]
        assert client.is_settled()
    assert (place / "a").read_text() == "a"
