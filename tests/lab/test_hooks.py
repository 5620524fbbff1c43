"""Claude Code's own program with our hook in its settings, started by somebody else than the hub."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.discovery.claude import ClaudeStore
from pilothouse.adapters.discovery.finder import Finder
from pilothouse.app.hooks.entries import entry
from pilothouse.app.hooks.installing import install
from pilothouse.hub.agent.process import HUB
from pilothouse.log.records import Approval
from pilothouse.model.events import ACPEvent
from pilothouse.remote.place import Place, write_place
from tests.lab.agents import AGENTS, LAB, is_installed, programs, spec
from tests.lab.conftest import WANTED
from tests.lab.model.server import Server
from tests.support.servers import Served, serving

pytestmark = pytest.mark.skipif("claude-code" not in WANTED, reason="another agent was chosen")

PATIENCE = 60
ESCAPE = re.compile(rb"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b\][^\x07]*\x07|\x1b[()=>][A-Z0-9]?")


class Claude:
    """Claude Code on a home and in a directory of its own; its model does what the prompt says."""

    def __init__(self, directory: Path, model: Server) -> None:
        assert is_installed(LAB, "claude-code")
        self.hub_home = directory / "hub"
        self.hub_home.mkdir(mode=0o700)
        self.home = directory / "user"
        self.work = self.home / "work"
        for place in (self.work, self.home / "tmp", self.home / ".claude"):
            place.mkdir(parents=True)
        self.program = str(programs(LAB, "claude-code") / "claude")
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.home / "tmp"),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), model.url),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
            **AGENTS["claude-code"].configure(self.home, model.url),
        }
        words = (sys.executable, "-P", "-m", "pilothouse.cli", "hook", "--home", str(self.hub_home))
        install(self.home / ".claude" / "settings.json", entry(words), self.hub_home, datetime.now())

    @property
    def file(self) -> Path:
        """What the model is told to make."""
        return self.work / "made.txt"

    def told(self, command: str | None = None) -> str:
        return f"go @@fake {json.dumps([{'op': 'bash', 'cmd': command or f'touch {self.file}'}, 'All done.'])}"

    async def printing(self, *args: str, **env: str) -> asyncio.subprocess.Process:
        """One prompt without a terminal."""
        return await asyncio.create_subprocess_exec(
            *(self.program, "-p", self.told(), "--verbose", "--output-format", "stream-json", *args),
            cwd=self.work,
            env={**self.environment, **env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )


async def result(process: asyncio.subprocess.Process) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        out, _ = await process.communicate()
    lines = [json.loads(line) for line in out.splitlines()]
    found: dict[str, Any] = next(line for line in lines if line["type"] == "result")
    return found


class Screen:
    """The program at a pseudo-terminal."""

    def __init__(self, claude: Claude, prompt: str) -> None:
        known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        settled = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(claude.work): known}}
        settled["customApiKeyResponses"] = {"approved": ["sk-ant-none"], "rejected": []}
        (claude.home / ".claude.json").write_text(json.dumps(settled))
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(claude.work)
            os.execve(claude.program, [claude.program, prompt], claude.environment)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.seen = b""
        asyncio.get_running_loop().add_reader(self.master, self._read)

    def _read(self) -> None:
        try:
            self.seen += os.read(self.master, 65536)
        except OSError:
            asyncio.get_running_loop().remove_reader(self.master)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", ESCAPE.sub(b" ", self.seen).decode(errors="replace"))

    async def shows(self, words: str) -> None:
        await until(lambda: words in self.text)

    def types(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.master)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.master)


async def until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)


@pytest.fixture
def claude(tmp_path: Path, model: Server) -> Claude:
    return Claude(tmp_path, model)


@contextlib.asynccontextmanager
async def hub(claude: Claude) -> AsyncIterator[Served]:
    async with serving(claude.hub_home) as served:
        served.hub.discovery.prepare(lambda: Finder([ClaudeStore(claude.home / ".claude")]), None)
        write_place(claude.hub_home, Place(pid=os.getpid(), socket=str(claude.hub_home / "hub.sock")))
        yield served


@contextlib.asynccontextmanager
async def screen(claude: Claude, prompt: str) -> AsyncIterator[Screen]:
    shown = Screen(claude, prompt)
    try:
        yield shown
    finally:
        shown.close()


async def asked(served: Served) -> Approval:
    async with asyncio.timeout(PATIENCE):
        while not (found := await served.hub.approvals()):
            await asyncio.sleep(0.02)
    assert len(found) == 1
    return found[0]


async def events(served: Served, session_id: str, until_type: str) -> list[ACPEvent]:
    session = await served.hub.session(session_id)
    found: list[ACPEvent] = []
    async with asyncio.timeout(PATIENCE):
        async for event in session.events(after=0):
            found.append(event)
            if event.type == until_type:
                break
    return found


@pytest.mark.parametrize("approved", [True, False])
async def test_a_question_without_a_terminal_is_answered_by_whoever_is_at_the_hub(
    claude: Claude, approved: bool
) -> None:
    async with hub(claude) as served:
        process = await claude.printing()
        approval = await asked(served)
        assert not claude.file.exists()
        assert approval.request["preview"]["command"] == f"touch {claude.file}"
        await served.hub.decide(approval.id, approved=approved, reason="says the phone")
        done = await result(process)
        assert claude.file.exists() is approved
        assert bool(done["permission_denials"]) is not approved
        told = await events(served, approval.session_id, "tool:result" if approved else "tool:error")
        kinds = [event.type for event in told]
        assert kinds.index("message:complete") < kinds.index("approval:requested")  # what led to it comes first
        calls = [event for event in told if event.type == "tool:start"]
        assert [call.tool_call_id for call in calls] == [approval.request["toolCallId"]]  # type: ignore[attr-defined]


async def test_without_a_hub_the_program_decides_as_ever(claude: Claude) -> None:
    done = await result(await claude.printing())
    assert [one["tool_name"] for one in done["permission_denials"]] == ["Bash"]
    assert not claude.file.exists()


async def test_a_hub_that_dies_while_it_is_asked_allows_nothing(claude: Claude) -> None:
    async with hub(claude) as served:
        process = await claude.printing()
        await asked(served)
    done = await result(process)
    assert [one["tool_name"] for one in done["permission_denials"]] == ["Bash"]
    assert not claude.file.exists()


async def test_what_the_program_allows_by_itself_and_what_a_hub_runs_is_not_asked(claude: Claude) -> None:
    async with hub(claude) as served:
        await result(await claude.printing("--permission-mode", "bypassPermissions"))
        assert claude.file.exists()
        claude.file.unlink()
        done = await result(await claude.printing(**{HUB: "hub_1"}))
        assert done["permission_denials"]
        assert await served.hub.log.approvals.list() == []


async def test_a_session_that_the_hub_runs_asks_once(claude: Claude, model: Server) -> None:
    async with hub(claude) as served:
        served.hub.agents["claude-code"] = spec(AGENTS["claude-code"], LAB, claude.home, model.url)
        session = await served.hub.start_session("claude-code", claude.work)
        turn = asyncio.ensure_future(session.prompt(claude.told()))
        approval = await asked(served)
        await served.hub.decide(approval.id, approved=True)
        async with asyncio.timeout(PATIENCE):
            await turn
        assert claude.file.exists()
        assert [one.id for one in await served.hub.log.approvals.list()] == [approval.id]
        assert approval.session_id == session.id


@pytest.mark.parametrize("approved", [True, False])
async def test_the_dialog_of_a_terminal_closes_when_it_is_answered_elsewhere(claude: Claude, approved: bool) -> None:
    async with hub(claude) as served, screen(claude, claude.told()) as shown:
        await shown.shows("Do you want to proceed?")
        approval = await asked(served)
        await served.hub.decide(approval.id, approved=approved)
        await shown.shows("● All done.")
        assert claude.file.exists() is approved


async def test_a_question_that_is_answered_in_the_terminal_is_withdrawn(claude: Claude) -> None:
    async with hub(claude) as served, screen(claude, claude.told()) as shown:
        await shown.shows("Do you want to proceed?")
        approval = await asked(served)
        shown.types(b"\r")
        await shown.shows("● All done.")
        assert claude.file.exists()
        async with asyncio.timeout(PATIENCE):
            while await served.hub.approvals():
                await asyncio.sleep(0.02)
        decision = (await served.hub.log.approvals.get(approval.id)).decision
        assert decision is not None
        assert (decision["approved"], decision["resolvedBy"]) == (False, "cancelled")


@pytest.mark.parametrize("leave", ["escape", "kill"])
async def test_a_question_that_nobody_waits_for_any_more_is_withdrawn(claude: Claude, leave: str) -> None:
    async with hub(claude) as served, screen(claude, claude.told()) as shown:
        await shown.shows("Do you want to proceed?")
        await asked(served)
        if leave == "escape":
            shown.types(b"\x1b")
        else:
            os.kill(shown.pid, 9)
        async with asyncio.timeout(PATIENCE):
            while await served.hub.approvals():
                await asyncio.sleep(0.02)
        assert not claude.file.exists()


async def test_a_dialog_without_a_hub_is_as_ever(claude: Claude) -> None:
    async with screen(claude, claude.told()) as shown:
        await shown.shows("Do you want to proceed?")
        shown.types(b"\r")
        await shown.shows("● All done.")
        assert claude.file.exists()
