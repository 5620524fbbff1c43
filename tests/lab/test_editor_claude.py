"""Claude Code's own program, driven by clients nobody here wrote: acpx and the official SDKs', by `pilothouse acp`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.agent.process import AgentSpec
from tests.lab.claude_cases import bash, script, write
from tests.lab.conftest import WANTED
from tests.support.acpx import DENIED, Acpx, acpx_for, answer_to, heard
from tests.support.editors import Home, gone
from tests.support.foreign_clients import KINDS, foreign_client, home_left_clean

pytestmark = pytest.mark.parametrize("agent", ["claude-code"] if "claude-code" in WANTED else [], indirect=True)


@pytest.fixture
async def home(agent: AgentSpec, tmp_path: Path) -> AsyncIterator[Home]:
    async with home_left_clean(tmp_path) as made:
        command = json.dumps(list(agent.command))
        (made.path / "config.toml").write_text(f"[agents.claude]\ncommand = {command}\n")
        yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


@pytest.fixture
async def acpx(home: Home, work: Path) -> AsyncIterator[Acpx]:
    async with acpx_for(home, work, "-a", "claude") as made:
        yield made


async def test_acpx_allows(acpx: Acpx, work: Path) -> None:
    steps = [write(work / "new.txt", "one\n"), bash(f"echo ran > {work}/ran.txt"), "All done."]
    code, out = await acpx("--approve-all", "exec", script(*steps))
    assert (code, "All done." in out) == (0, True), out
    assert out.rstrip().endswith("[done] end_turn")
    assert {path.name: path.read_text() for path in work.iterdir()} == {"new.txt": "one\n", "ran.txt": "ran\n"}


async def test_acpx_denies(acpx: Acpx, work: Path) -> None:
    code, out = await acpx("--deny-all", "exec", script(write(work / "new.txt"), "Well then."))
    assert (code, "Well then." in out) == (DENIED, True), out
    assert list(work.iterdir()) == []


async def test_acpx_cancels(acpx: Acpx) -> None:
    await acpx.json("sessions", "new")
    told = await acpx.cancel(script({"text": "tick " * 300, "chunk": 5, "delay": 0.1}), when="tick")
    assert answer_to(told, "session/prompt")["stopReason"] == "cancelled"
    assert len(heard(told)) < 1500
    assert heard(await acpx.say(script("Second answer."))) == "Second answer."
    assert (await acpx("sessions", "close"))[0] == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_is_loaded_after_the_hub_was_killed(kind: str, home: Home, work: Path) -> None:
    """By the editor that was there, and by one that comes later; the agent knows what was before."""
    step = {"think": "Hm.", "text": "First. ", "chunk": 3, "calls": [write(work / "new.txt")]}
    prompts = [script(step, "Written.")]
    async with foreign_client(kind, home, "-a", "claude") as editor:
        session = await editor.new_session(work)
        editor.choose("allow_once")
        assert (await editor.prompt(session, prompts[0]))["stopReason"] == "end_turn"
        assert editor.texts(session) == "First. Written."
        assert (work / "new.txt").read_text() == "x\n"
        await gone(home.kill_hub())
        prompts.append(script("I was told {scripts} scripts."))
        assert (await editor.prompt(session, prompts[1]))["stopReason"] == "end_turn"
        assert editor.texts(session) == "First. Written.I was told 2 scripts."
        assert editor.texts(session, "user_message_chunk") == ""

        async with foreign_client(kind, home) as other:
            await other.load(session, work)
            first = editor.seqs(session)[0]
            loaded = [one for one in other.updates[session] if seq_of(one) >= first]
            users = [one for one in loaded if one["sessionUpdate"] == "user_message_chunk"]
            assert [one["content"]["text"] for one in users] == prompts
            # what could be chosen at the start was in the answer to the editor that began it
            begun = [one for one in loaded if one["sessionUpdate"] in CHOICES and seq_of(one) < seq_of(users[0])]
            assert [one for one in loaded if one not in users + begun] == editor.updates[session]


CHOICES = ("config_option_update", "current_mode_update")


def seq_of(update: dict[str, Any]) -> int:
    return int(update["_meta"]["pilothouse"]["seq"])
