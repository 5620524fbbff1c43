"""Clients that nobody here wrote use the built-in agent: the official SDKs' own, and acpx; and editors by the hub."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.model.server import Server, model_server
from tests.support.acpx import DENIED, Acpx, acpx_for, answer_to, heard
from tests.support.editors import Home
from tests.support.foreign_clients import ForeignClient, foreign_client, home_left_clean


class Direct(Home):
    """A home whose editors start the agent itself, not the hub."""

    def command(self, *options: str) -> list[str]:
        return [sys.executable, "-m", "pilothouse.cli", "agent", *options]


@pytest.fixture
def server() -> Iterator[Server]:
    with model_server() as server:
        yield server
        assert server.problems == []


@pytest.fixture
async def direct(tmp_path: Path) -> AsyncIterator[Home]:
    async with home_left_clean(tmp_path) as home:
        yield Direct(home.path)


@pytest.fixture
async def client(kind: str, direct: Home, server: Server) -> AsyncIterator[ForeignClient]:
    async with foreign_client(kind, direct, "--model", model(server)) as made:
        yield made


def model(server: Server) -> str:
    return f"openai:fake@{server.url}/v1"


def script(*steps: Any) -> str:
    return f"@@fake {json.dumps(list(steps))}"


WRITE = {"op": "write", "path": "notes.txt", "content": "a new line\n"}


def statuses(client: ForeignClient, session: str) -> list[str]:
    return [one["status"] for one in client.updates[session] if one.get("toolCallId") and one.get("status")]


async def test_it_works_with_the_files_and_terminals_of_the_client_and_another_process_goes_on(
    client: ForeignClient, kind: str, direct: Home, server: Server, work: Path
) -> None:
    """As few processes as it takes: to start one takes seconds."""
    session = await client.new_session(work)
    for choice in ("reject_once", "reject_always"):
        denied = await client.new_session(work)
        client.choose(choice)
        await client.prompt(denied, script(WRITE, "I did not."))
        assert list(work.iterdir()) == []
        assert statuses(client, denied)[-1] == "failed"
        assert "fs/write_text_file" not in client.served

    client.asked.clear()
    client.choose("allow_once")
    answer = await client.prompt(session, script({"text": "I write.", "calls": [WRITE]}, "It is written."))
    assert answer["stopReason"] == "end_turn"
    assert client.texts(session) == "I write.It is written."
    assert (work / "notes.txt").read_text() == "a new line\n"
    assert [asked["title"] for asked in client.asked] == ["Write notes.txt"]
    assert client.served[-1] == "fs/write_text_file"
    assert (statuses(client, session)[0], statuses(client, session)[-1]) == ("pending", "completed")

    await client.prompt(session, script({"op": "bash", "cmd": "echo in the $WHERE > where.txt"}, "Done."))
    assert (work / "where.txt").read_text() == "in the editor\n"
    assert "terminal/create" in client.served

    prompt = client.start_prompt(session, script({"text": "slow " * 400, "delay": 0.05}))
    await client.until(lambda: "slow" in client.texts(session))
    await client.tell("session/cancel", sessionId=session)
    assert (await prompt)["stopReason"] == "cancelled"
    assert (await client.prompt(session, script("There are {scripts}.")))["stopReason"] == "end_turn"
    assert client.texts(session).endswith("There are 4.")

    said = client.texts(session)
    async with foreign_client(kind, direct, "--model", model(server)) as other:
        await other.load(session, work)
        assert other.texts(session) == said
        await other.prompt(session, script("There are {scripts}."))
        assert other.texts(session).endswith("There are 5.")


# -- acpx --


@pytest.fixture
async def acpx(direct: Home, server: Server, work: Path) -> AsyncIterator[Acpx]:
    async with acpx_for(direct, work, "--model", model(server)) as made:
        yield made


async def test_acpx_denies_and_allows_and_its_session_remembers(acpx: Acpx, work: Path) -> None:
    await acpx.json("sessions", "new")
    code, out = await acpx("--deny-all", "prompt", script(WRITE, "I did not."))
    assert code == DENIED
    assert "I did not." in out
    assert list(work.iterdir()) == []
    await acpx.let_go()  # the next prompt starts the agent anew
    bash = {"op": "bash", "cmd": "cat notes.txt"}
    told = await acpx.say(script(WRITE, bash, "All is done: {scripts}."))
    assert heard(told).endswith("All is done: 2.")
    assert answer_to(told, "session/prompt")["stopReason"] == "end_turn"
    assert {"fs/write_text_file", "terminal/create"} <= {one.get("method") for one in told}
    assert (work / "notes.txt").read_text() == "a new line\n"
    assert (await acpx("sessions", "close"))[0] == 0


# -- by the hub --


async def test_an_editor_reaches_it_by_the_hub_and_its_model_comes_from_the_file(
    home: Home, server: Server, work: Path
) -> None:
    home.path.mkdir(exist_ok=True)
    (home.path / "config.toml").write_text(f'[agent]\nmodel = "openai:from-the-file@{server.url}/v1"\n')
    async with foreign_client("python", home, "-a", "coder") as client:
        session = await client.new_session(work)
        client.choose("allow_once")
        answer = await client.prompt(session, script(WRITE, "It is written by {model}."))
        assert answer["stopReason"] == "end_turn"
        assert client.texts(session) == "It is written by from-the-file."
        assert (work / "notes.txt").read_text() == "a new line\n"
        assert client.served[-1] == "fs/write_text_file"
