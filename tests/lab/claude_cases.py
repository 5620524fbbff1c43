"""What Claude Code's own CLI has to hold through our bridge, each case under the hub and in an editor.

The fixtures `agent` and `way` are for whoever collects them to give.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.agent.process import AgentSpec
from tests.lab.talks import OPEN, PATIENCE, WAYS, Talk


def script(*steps: Any) -> str:
    return "@@fake " + json.dumps(list(steps))


def bash(command: str) -> dict[str, Any]:
    return {"op": "bash", "cmd": command}


def write(path: Path, content: str = "x\n") -> dict[str, Any]:
    return {"op": "write", "path": str(path), "content": content}


def raw(name: str, **given: Any) -> dict[str, Any]:
    return {"op": "raw", "name": name, "input": given}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (place / "hello.txt").write_text("hello world\nsecond line\n")
    return place


@pytest.fixture
async def talk(agent: AgentSpec, way: str, tmp_path: Path, work: Path) -> AsyncIterator[Talk]:
    """A session that works, and works to the end: the next prompt after each case is answered."""
    talk = WAYS[way](agent, tmp_path / "hub", work)
    async with asyncio.timeout(PATIENCE):
        await talk.open()
        try:
            yield talk
            turn = await talk.turn(script("Second answer."))
            assert (turn.stop, turn.said) == ("end_turn", "Second answer.")
        finally:
            await talk.close()
    assert talk.processes() == set()


# -- what it says and does --


async def test_text_and_thinking(talk: Talk) -> None:
    turn = await talk.turn(script({"think": "Let me see. ä漢", "text": "Hello from the lab, ä 漢 🛳", "chunk": 3}))
    assert (turn.stop, turn.error) == ("end_turn", "")
    assert turn.said == "Hello from the lab, ä 漢 🛳"
    assert turn.thought == "Let me see. ä漢"


async def test_read_write_edit_and_command(talk: Talk) -> None:
    work = talk.work
    steps = [
        {"text": "Reading. ", "calls": [{"op": "read", "path": f"{work}/hello.txt"}]},
        write(work / "new.txt", "one\ntwo\n"),
        {"op": "edit", "path": f"{work}/hello.txt", "old": "hello world", "new": "HELLO LAB"},
        bash(f"echo ran > {work}/ran.txt"),
        "All done.",
    ]
    turn = await talk.turn(script(*steps))
    assert (turn.stop, turn.said) == ("end_turn", "Reading. All done.")
    assert turn.ends() == [(name, "completed") for name in ("Read", "Write", "Edit", "Bash")]
    assert [call.kind for call in turn.calls.values()] == ["read", "edit", "edit", "execute"]
    changes = [call.changes for call in turn.calls.values()]
    assert changes == [[], [f"{work}/new.txt"], [f"{work}/hello.txt"], []]
    assert talk.asked == ["Write", "Edit", "Bash"]
    found = {path.name: path.read_text() for path in work.iterdir()}
    assert found == {"hello.txt": "HELLO LAB\nsecond line\n", "new.txt": "one\ntwo\n", "ran.txt": "ran\n"}


async def test_todos_are_the_plan(talk: Talk) -> None:
    tasks = [raw("TaskCreate", subject=subject, description=subject, activeForm=subject) for subject in ("One", "Two")]
    turn = await talk.turn(script(*tasks, raw("TaskUpdate", taskId="1", status="completed"), "Planned."))
    assert (turn.stop, turn.said) == ("end_turn", "Planned.")
    assert turn.plan == [("One", "completed"), ("Two", "pending")]
    assert [call.kind for call in turn.calls.values()] == ["think"] * 3


async def test_a_sub_agent_and_its_calls(talk: Talk) -> None:
    inner = script({"op": "read", "path": f"{talk.work}/hello.txt"}, bash(f"touch {talk.work}/sub.txt"), "Sub done.")
    given = {"prompt": inner, "description": "Sub job", "subagent_type": "general-purpose", "run_in_background": False}
    turn = await talk.turn(script(raw("Agent", **given), "Main done."))
    assert (turn.stop, turn.said) == ("end_turn", "Main done.")
    (outer, *nested) = turn.calls
    assert [turn.calls[call].status for call in turn.calls] == ["completed"] * 3
    assert [turn.calls[call].parent for call in nested] == [outer, outer]
    assert talk.asked == ["Bash"]
    assert (talk.work / "sub.txt").exists()


async def test_a_turn_lasts_until_its_sub_agents_in_the_background_are_done(talk: Talk) -> None:
    """The main agent ends its part first, and has a word to say when the sub-agent ends."""
    done = talk.work / "sub.txt"
    inner = script(bash("sleep 1"), bash(f"touch {done}"), "Sub done.")
    given = {"prompt": inner, "description": "Sub job", "subagent_type": "general-purpose"}
    turn = await talk.turn(script(raw("Agent", **given), "Main done."))
    assert (turn.stop, turn.said, done.exists()) == ("end_turn", "Main done.Main done.", True)
    assert {call.status for call in turn.calls.values()} == {"completed"}
    assert talk.asked == ["Bash"]


async def test_a_cancel_stops_a_sub_agent_in_the_background(talk: Talk) -> None:
    done = talk.work / "sub.txt"
    inner = script(bash(f"sleep 5; touch {done}"), "Sub done.")
    given = {"prompt": inner, "description": "Sub job", "subagent_type": "general-purpose"}
    prompt = script(raw("Agent", **given), "Main done.")
    turn = await talk.turn(prompt, cancel=lambda: talk.heard() == "Main done.")
    assert (turn.stop, turn.said) == ("cancelled", "Main done.")
    assert {call.status for call in turn.calls.values()} <= {"completed", "failed"}
    again = await talk.turn(script({"text": "After that.", "hang": 6}))
    assert (again.stop, again.said, done.exists()) == ("end_turn", "After that.", False)


async def test_parallel_calls(talk: Talk) -> None:
    (talk.work / "other.txt").write_text("other\n")
    reads = [{"op": "read", "path": f"{talk.work}/{name}.txt"} for name in ("hello", "other", "none")]
    turn = await talk.turn(script({"think": "Hm. ", "text": "All. ", "calls": reads}, "Done."))
    assert (turn.stop, turn.said, turn.thought) == ("end_turn", "All. Done.", "Hm. ")
    assert turn.ends() == [("Read", "completed"), ("Read", "completed"), ("Read", "failed")]


async def test_half_a_character_costs_nothing_else(talk: Talk) -> None:
    """The CLI writes half a surrogate pair as it is, which no strict reader of JSON takes."""
    turn = await talk.turn(script(write(talk.work / "half.txt", "a \ud83d b\n"), "Half \ud83d of it."))
    assert (turn.stop, turn.said) == ("end_turn", "Half \ufffd of it.")
    assert turn.ends() == [("Write", "completed")]


# -- permissions --


async def test_what_is_denied_is_not_on_disk_and_the_turn_goes_on(talk: Talk) -> None:
    work = talk.work
    talk.choose = lambda name: "reject"
    edit = {"op": "edit", "path": f"{work}/hello.txt", "old": "hello", "new": "HELLO"}
    read = {"op": "read", "path": f"{work}/hello.txt"}
    steps = [read, edit, write(work / "never.txt"), bash(f"touch {work}/never.txt"), "Well then."]
    turn = await talk.turn(script(*steps))
    assert (turn.stop, turn.said) == ("end_turn", "Well then.")
    assert turn.ends() == [("Read", "completed"), ("Edit", "failed"), ("Write", "failed"), ("Bash", "failed")]
    assert {path.name: path.read_text() for path in work.iterdir()} == {"hello.txt": "hello world\nsecond line\n"}


async def test_denied_and_stopped(talk: Talk) -> None:
    talk.choose = lambda name: "stop"
    turn = await talk.turn(script(write(talk.work / "never.txt"), "Never said."))
    assert (turn.stop, turn.said) == ("cancelled", "")
    assert turn.ends() == [("Write", "failed")]
    assert not (talk.work / "never.txt").exists()


async def test_always_stores_a_rule_of_the_hub_and_asks_once(talk: Talk) -> None:
    """The CLI's own "always" and its change of mode are answered with "once": the hub stores its own rule."""
    talk.choose = lambda name: "allow_always"
    turn = await talk.turn(script(*[bash(f"touch {talk.work}/one.txt")] * 2, "Done."))
    assert (turn.said, turn.ends(), talk.asked) == ("Done.", [("Bash", "completed")] * 2, ["Bash"])
    talk.choose, talk.asked = lambda name: "mode:acceptEdits", []
    writes = [write(talk.work / f"{name}.txt") for name in ("two", "three")]
    turn = await talk.turn(script(*writes, "Done."))
    assert (turn.said, talk.asked, talk.mode) == ("Done.", ["Write", "Write"], "default")
    assert {path.stem for path in talk.work.glob("*.txt")} == {"hello", "one", "two", "three"}


# -- interrupts --


async def test_interrupt_during_text(talk: Talk) -> None:
    prompt = script({"text": "tick " * 300, "chunk": 5, "delay": 0.1})
    turn = await talk.turn(prompt, cancel=lambda: "tick" in talk.heard())
    assert turn.stop == "cancelled"
    assert turn.said.startswith("tick")
    assert len(turn.said) < 1500


async def test_interrupt_during_a_tool(talk: Talk) -> None:
    begun, late = talk.work / "begun.txt", talk.work / "late.txt"
    await talk.turn(script("First answer."))
    before = talk.processes()
    turn = await talk.turn(script(bash(f"touch {begun}; sleep 61; touch {late}"), "Never."), cancel=begun.exists)
    assert (turn.stop, turn.ends()) == ("cancelled", [("Bash", "failed")])
    assert not late.exists()
    assert talk.processes() == before


async def test_interrupt_during_a_pending_permission(talk: Talk) -> None:
    talk.choose = lambda name: OPEN
    turn = await talk.turn(script(write(talk.work / "never.txt"), "Never."), cancel=lambda: talk.asked == ["Write"])
    assert (turn.stop, turn.ends()) == ("cancelled", [("Write", "failed")])
    assert not (talk.work / "never.txt").exists()


# -- what lasts, and what changes in place --


async def test_resume_after_a_restart(talk: Talk) -> None:
    await talk.turn(script("First answer."))
    before = talk.processes()
    await talk.restart()
    turn = await talk.turn(script("I was told {scripts} scripts."))
    assert (turn.stop, turn.said) == ("end_turn", "I was told 2 scripts.")
    assert talk.processes().isdisjoint(before)


async def test_the_mode_is_switched_in_place(talk: Talk) -> None:
    await talk.turn(script("First answer."))
    before = talk.processes()
    await talk.set_mode("acceptEdits")
    await talk.turn(script(write(talk.work / "one.txt"), "Done."))
    assert (talk.mode, talk.asked) == ("acceptEdits", [])
    await talk.set_mode("default")
    turn = await talk.turn(script(write(talk.work / "two.txt"), "I was told {scripts} scripts."))
    assert (talk.mode, talk.asked) == ("default", ["Write"])
    assert turn.said == "I was told 3 scripts."
    assert len(before) == 1
    assert talk.processes() == before


async def test_the_model_is_switched_in_place(talk: Talk) -> None:
    first = await talk.turn(script("{model}"))
    before = talk.processes()
    await talk.set_model("haiku")
    second = await talk.turn(script("{model} after {scripts}"))
    assert "haiku" not in first.said
    assert "haiku" in second.said
    assert second.said.endswith("after 2")
    assert talk.processes() == before


async def test_the_model_is_chosen_by_a_command_and_outlives_the_process(talk: Talk) -> None:
    await talk.turn(script("First answer."))
    assert "Opus" in (await talk.turn("/model opus")).said
    assert talk.model == "opus"
    (before,) = talk.processes()
    os.kill(before, signal.SIGKILL)
    assert "opus" in (await talk.turn(script("{model}"))).said
    assert talk.model == "opus"


async def test_what_a_compaction_kept_is_said_once(talk: Talk) -> None:
    for number in range(5):
        await talk.turn(f"prompt {number}")
    assert "/login" in (await talk.turn("/login")).said
    assert (await talk.turn("/compact")).said == "Compacted"


# -- what goes wrong --

FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "400": ({"error": {"status": 400, "message": "number 400"}}, "invalid_request"),
    "401": ({"error": {"status": 401, "message": "number 401"}}, "auth_required"),
    "429": ({"error": {"status": 429, "message": "number 429"}}, "rate_limit"),
    "500": ({"error": {"status": 500, "message": "number 500"}}, "server_error"),
    "529": ({"error": {"status": 529, "message": "number 529"}}, "overloaded"),
    "drop": ({"text": "This will be cut off.", "drop": 3}, "connection"),
    "drop at once": ({"text": "Never heard.", "drop": 0}, "connection"),
}


async def test_faults_of_the_api_are_told_apart(talk: Talk) -> None:
    """Each with its own kind and words; the session goes on after every one."""
    found, words = {}, {}
    for name, (step, _) in FAULTS.items():
        turn = await talk.turn(script(step))
        found[name], words[name] = turn.kind, turn.error
        assert turn.stop == ""
    assert found == {name: kind for name, (_, kind) in FAULTS.items()}, words
    assert all(f"number {name}" in words[name] for name in FAULTS if name.isdigit()), words


async def test_what_was_cleared_stays_cleared_after_a_restart(talk: Talk) -> None:
    """The CLI goes on under another id, of which nobody outside is told."""
    told = script("I was told {scripts} scripts.")
    for _ in range(3):
        await talk.turn(script("First answers."))
    assert (await talk.turn("/clear")).stop == "end_turn"
    await talk.restart()
    assert (await talk.turn(told)).said == "I was told 1 scripts."
    await talk.restart()
    assert (await talk.turn(told)).said == "I was told 2 scripts."
