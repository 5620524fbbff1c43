"""Clients that nobody here wrote drive `pilothouse acp -a demo`: the official SDKs' own, and acpx from npm."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.agents.demo.script import FIXED
from pilothouse.agents.demo.talk import SAMPLE
from tests.support.acpx import DENIED, Acpx, acpx_for, answer_to, heard
from tests.support.editors import Home, Refused, gone
from tests.support.foreign_clients import ForeignClient, foreign_client


@pytest.fixture
async def client(kind: str, home: Home) -> AsyncIterator[ForeignClient]:
    async with foreign_client(kind, home, "-a", "demo") as made:
        yield made


# -- the official SDKs --------------------------------------------------------------------------------------------


async def test_text_is_streamed(client: ForeignClient, work: Path) -> None:
    assert client.offer["agentInfo"]["name"] == "pilothouse"
    session = await client.new_session(work)
    assert (await client.prompt(session, "markdown"))["stopReason"] == "end_turn"
    assert client.texts(session) == SAMPLE
    pieces = [one for one in client.updates[session] if one["sessionUpdate"] == "agent_message_chunk"]
    assert len(pieces) > 10
    assert client.seqs(session) == sorted(client.seqs(session))


async def test_what_is_allowed_is_written_through_the_client(client: ForeignClient, work: Path) -> None:
    session = await client.new_session(work)
    client.choose("allow_once")
    assert (await client.prompt(session, "edit notes.txt a new line"))["stopReason"] == "end_turn"
    assert (work / "notes.txt").read_text() == "a new line\n"
    assert [asked["title"] for asked in client.asked] == ["Edit notes.txt"]
    assert client.served[-1] == "fs/write_text_file"
    assert statuses(client, session) == ["pending", "in_progress", "completed"]


async def test_what_is_denied_is_not_written(client: ForeignClient, work: Path) -> None:
    (work / "notes.txt").write_text("as it was\n")
    session = await client.new_session(work)
    client.choose("reject_once")
    assert (await client.prompt(session, "edit notes.txt a new line"))["stopReason"] == "end_turn"
    assert (work / "notes.txt").read_text() == "as it was\n"
    assert len(client.asked) == 1
    assert "fs/write_text_file" not in client.served
    assert statuses(client, session) == ["pending", "failed"]
    assert "rejected" in client.texts(session)


def statuses(client: ForeignClient, session: str) -> list[str]:
    return [one["status"] for one in client.updates[session] if one.get("toolCallId") and one.get("status")]


async def test_what_is_not_saved_is_what_the_agent_reads(client: ForeignClient, work: Path) -> None:
    (work / "notes.txt").write_text("on disk\n")
    session = await client.new_session(work)
    client.edit(work / "notes.txt", "in the buffer\nsecond line\n")
    await client.prompt(session, "read notes.txt")
    assert "in the buffer\nsecond line" in client.texts(session)
    assert "on disk" not in client.texts(session)


async def test_commands_run_in_the_terminals_of_the_client(client: ForeignClient, work: Path) -> None:
    session = await client.new_session(work)
    client.choose("allow_once")
    await client.prompt(session, "bash echo in the ${WHERE:-hub}, $(basename $PWD); exit 3")
    assert "exit code 3.\n\n```\nin the editor, work" in client.texts(session)
    assert client.served == ["terminal/create"]
    shown = [part for one in client.updates[session] for part in one.get("content") or () if "toolCallId" in one]
    assert {part["terminalId"] for part in shown if part["type"] == "terminal"}


async def test_a_turn_is_cancelled_in_the_middle(client: ForeignClient, work: Path) -> None:
    session = await client.new_session(work)
    prompt = client.start_prompt(session, "slow 60")
    await client.until(lambda: "0.2 s" in client.texts(session))
    await client.tell("session/cancel", sessionId=session)
    assert (await prompt)["stopReason"] == "cancelled"
    assert (await client.prompt(session, "echo next"))["stopReason"] == "end_turn"
    assert client.texts(session).endswith("next")


async def test_a_turn_is_cancelled_while_it_asks(client: ForeignClient, work: Path) -> None:
    session = await client.new_session(work)
    prompt = client.start_prompt(session, "edit notes.txt")
    await client.until(lambda: client.asked)
    await client.tell("session/cancel", sessionId=session)
    assert (await prompt)["stopReason"] == "cancelled"
    assert not (work / "notes.txt").exists()
    client.choose("allow_once")
    assert (await client.prompt(session, "edit notes.txt"))["stopReason"] == "end_turn"
    assert (work / "notes.txt").exists()


async def test_sessions_are_listed(client: ForeignClient, work: Path, tmp_path: Path) -> None:
    assert (await client.ask("session/list"))["sessions"] == []
    here, there = await client.new_session(work), await client.new_session(tmp_path)
    await client.prompt(here, "title Something to do")
    listed = {one["sessionId"]: one for one in (await client.ask("session/list"))["sessions"]}
    assert {session: one["cwd"] for session, one in listed.items()} == {here: str(work), there: str(tmp_path)}
    assert listed[here]["title"] == "Something to do"
    found = (await client.ask("session/list", cwd=str(work)))["sessions"]
    assert [one["sessionId"] for one in found] == [here]


async def test_the_mode_is_set_and_counts(client: ForeignClient, kind: str, home: Home, work: Path) -> None:
    session = await client.new_session(work)
    await client.ask("session/set_mode", sessionId=session, modeId="plan")
    await client.prompt(session, "edit notes.txt")
    assert not (work / "notes.txt").exists()
    assert client.asked == []
    with pytest.raises(Refused):
        await client.ask("session/set_mode", sessionId=session, modeId="fly")
    home.kill_hub()
    async with foreign_client(kind, home, "-a", "demo") as other:
        assert (await other.load(session, work))["modes"]["currentModeId"] == "plan"


async def test_all_of_it_is_loaded_once_after_the_hub_was_killed(
    client: ForeignClient, kind: str, home: Home, work: Path
) -> None:
    session = await client.new_session(work)
    client.choose("allow_once")
    prompts = ["markdown", "think", "plan", "tools", "edit notes.txt once", "subagent", "flood 500"]
    for prompt in prompts:
        await client.prompt(session, prompt)
    await gone(home.kill_hub())

    async with foreign_client(kind, home) as other:
        await other.load(session, work)
        assert other.asked == []
        loaded = other.updates[session]
        assert said_by_user(loaded) == prompts
        assert other.seqs(session) == sorted(other.seqs(session))
        first = client.seqs(session)[0]  # what came before was in the answer that opened the session
        assert [one for one in without_user(loaded) if seq_of(one) >= first] == client.updates[session]
        await other.prompt(session, "echo later")
        assert other.texts(session).endswith("499\nlater")
        # who was there all the time sees that too, at its place
        await client.until(lambda: client.texts(session).endswith("later"))
        assert said_by_user(client.updates[session]) == ["echo later"]
        seen = [one for one in without_user(loaded) if seq_of(one) >= first]
        assert seen == without_user(client.updates[session])


def said_by_user(updates: list[dict[str, Any]]) -> list[str]:
    return [one["content"]["text"] for one in updates if one["sessionUpdate"] == "user_message_chunk"]


def without_user(updates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in updates if one["sessionUpdate"] != "user_message_chunk"]


def seq_of(update: dict[str, Any]) -> int:
    return int(update["_meta"]["pilothouse"]["seq"])


async def test_the_hub_is_killed_in_mid_turn_and_the_client_goes_on(
    client: ForeignClient, home: Home, work: Path
) -> None:
    session = await client.new_session(work)
    await client.prompt(session, "echo before")
    prompt = client.start_prompt(session, "slow 60")
    await client.until(lambda: "0.2 s" in client.texts(session))
    home.kill_hub()
    with pytest.raises(Refused, match="interrupted"):
        await prompt
    assert (await client.prompt(session, "echo after"))["stopReason"] == "end_turn"
    assert client.texts(session).endswith("after")
    assert said_by_user(client.updates[session]) == []
    assert client.seqs(session) == sorted(client.seqs(session))


# -- acpx ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def acpx(home: Home, work: Path) -> AsyncIterator[Acpx]:
    async with acpx_for(home, work, "-a", "demo") as made:
        yield made


async def test_acpx_takes_the_tour(acpx: Acpx, work: Path) -> None:
    code, out = await acpx("--approve-all", "exec", "tour")
    assert code == 0, out
    assert "| tests after | both pass |" in out
    assert out.rstrip().endswith("[done] end_turn")
    assert "[client] terminal/create" in out
    assert "[client] fs/write_text_file" in out
    assert (work / "pilothouse-demo" / "cart.py").read_text() == FIXED


async def test_what_acpx_denies_is_not_done(acpx: Acpx, work: Path) -> None:
    (work / "notes.txt").write_text("as it was\n")
    for words, prompt in ((("--approve-reads",), "edit notes.txt something else"), (("--deny-all",), "bash touch x")):
        code, out = await acpx(*words, "exec", prompt)
        assert code == DENIED
        assert "It was rejected." in out
        assert "[done] end_turn" in out
    assert {path.name: path.read_text() for path in work.iterdir()} == {"notes.txt": "as it was\n"}


async def test_a_session_of_acpx_outlives_the_hub(acpx: Acpx, home: Home, work: Path) -> None:
    (made,) = await acpx.json("sessions", "new")
    session = made["acpxSessionId"]
    told = await acpx.say("echo one")
    assert (answer_to(told, "session/prompt")["stopReason"], heard(told)) == ("end_turn", "one")
    home.kill_hub()  # under the bridge that acpx keeps
    assert heard(await acpx.say("edit notes.txt two")) == "`notes.txt` is written."
    assert (work / "notes.txt").read_text() == "two\n"
    home.kill_hub()
    await acpx.let_go()
    assert heard(await acpx.say("echo three")) == "three"

    (listed,) = await acpx.json("sessions", "list")
    assert [one["sessionId"] for one in listed["sessions"]] == [session]
    (kept,) = await acpx.json("sessions", "read")
    said = [one["textPreview"] for one in kept["entries"] if one["role"] == "user"]
    assert said == ["echo one", "edit notes.txt two", "echo three"]
    async with home.editor() as other:
        await other.load(session, work)
        assert said_by_user(other.updates(session)) == said
    assert (await acpx("sessions", "close"))[0] == 0


async def test_acpx_sets_the_mode_and_cancels(acpx: Acpx, work: Path) -> None:
    await acpx.json("sessions", "new")
    assert (await acpx("set-mode", "plan"))[0] == 0
    assert "plan" in heard(await acpx.say("edit notes.txt"))
    assert not (work / "notes.txt").exists()

    told = await acpx.cancel("slow 60", when="0.2 s")
    assert answer_to(told, "session/prompt")["stopReason"] == "cancelled"
    assert heard(await acpx.say("echo next")) == "next"
    assert (await acpx("sessions", "close"))[0] == 0
