"""The built-in agent in a real browser: it reads, writes what is allowed only, stops, and says what it lacks."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.lab.model.server import Server, model_server
from tests.support.browsers import Desk, Size, expect
from tests.support.cli import Cli
from tests.support.http_client import Client
from tests.support.served import Served, serving
from tests.support.web_talk import Talk, until

WRITE = {"op": "write", "path": "notes.txt", "content": "a new line\n"}


def script(*steps: Any) -> str:
    return f"@@fake {json.dumps(list(steps))}"


@pytest.fixture
def model() -> Iterator[Server]:
    with model_server() as server:
        yield server
        assert server.problems == []


class Hub:
    """`pilothouse serve`, as a page and its talk know it."""

    def __init__(self, cli: Cli, served: Served) -> None:
        self.home = cli.home
        self.port = int(served.url.rpartition(":")[2].strip("/"))
        self.login = served.login
        self.client = Client(self.port, token=(cli.home / "token").read_text().strip())

    async def talk(self, desk: Desk, workspace: Path) -> Talk:
        """A new session of the built-in agent, and its page."""
        answer = await self.client.request("POST", "/sessions", {"agent": "coder", "cwd": str(workspace)})
        assert answer.status == 201, answer.body
        talk = Talk(self, desk, answer.json()["id"], workspace)  # type: ignore[arg-type]
        await talk.open()
        return talk


@pytest.fixture
def hub(tmp_path: Path, model: Server) -> Iterator[Hub]:
    """A hub whose file names the scripted model."""
    cli = Cli(tmp_path)
    cli.environment.pop("PILOTHOUSE_MODEL", None)
    cli.home.mkdir(mode=0o700)
    (cli.home / "config.toml").write_text(f'[agent]\nmodel = "openai:fake@{model.url}/v1"\n')
    with serving(cli) as served:
        yield Hub(cli, served)


@pytest_asyncio.fixture(loop_scope="session")
async def desk(hub: Hub, chromium: Browser, size: Size) -> AsyncIterator[Desk]:
    async with Desk(chromium, hub.port, size) as desk:
        await desk.page.goto(hub.login)
        yield desk


async def hears(talk: Talk, words: str) -> None:
    """The script itself is on the page as well, so the hub tells when it was said."""
    await until(lambda: talk.has_said(words))
    await expect(talk.said(words).last).to_be_visible()


async def test_it_reads_writes_what_is_allowed_and_nothing_else_and_stops(hub: Hub, desk: Desk, tmp_path: Path) -> None:
    talk = await hub.talk(desk, tmp_path / "project")
    read = {"op": "read", "path": "a.txt"}
    (talk.workspace / "a.txt").write_text("one\n")
    await talk.write(script({"text": "I look.", "calls": [read]}, "There is one line."))
    await hears(talk, "There is one line.")
    await talk.sees(re.compile("Read a.txt"))

    await talk.write(script(WRITE, "It is written."))
    await expect(talk.ask).to_contain_text("notes.txt")
    await expect(talk.ask).to_contain_text("a new line")
    assert not (talk.workspace / "notes.txt").exists()
    await talk.choose(re.compile("^Allow"))
    await hears(talk, "It is written.")
    assert (talk.workspace / "notes.txt").read_text() == "a new line\n"

    await talk.write(script({**WRITE, "path": "other.txt"}, "I leave it."))
    await expect(talk.ask).to_contain_text("other.txt")
    await talk.choose(re.compile("^Deny(?! with)"))
    await hears(talk, "I leave it.")
    assert not (talk.workspace / "other.txt").exists()
    await expect(talk.ask).to_have_count(0)

    await talk.write(script({"text": "slow " * 400, "delay": 0.05}))
    await until(lambda: talk.has_said("slow slow"))
    await talk.page.get_by_role("button", name=re.compile("^Stop")).click()
    await talk.is_now("idle")
    await talk.write(script("There are {scripts} prompts."))
    await hears(talk, "There are 5 prompts.")


async def test_without_a_model_the_page_says_how_to_get_one(hub: Hub, desk: Desk, tmp_path: Path) -> None:
    (hub.home / "config.toml").write_text("")
    talk = await hub.talk(desk, tmp_path / "project")
    await talk.write("hello")
    await talk.sees(re.compile("No model is configured"))
    await talk.sees(re.compile("PILOTHOUSE_MODEL"))
    await talk.write("again")  # it is still there
    await expect(talk.said(re.compile("No model is configured. Name"))).to_have_count(2)
