"""`acpx`, a client of ACP from npm, driven in a test: its agent is `pilothouse acp`.

async with acpx_for(home, work, "-a", "demo") as acpx:
    code, out = await acpx("--approve-all", "exec", "tour")
    await acpx.json("sessions", "new")
    messages = await acpx.say("echo hello")            # all that was said between it and the bridge
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.editors import PATIENCE, Home
from tests.support.foreign_clients import INTEROP, clean_environment, node_program
from tests.support.hubs import processes_with

__all__ = ["DENIED", "Acpx", "acpx_for", "answer_to", "heard"]

PROGRAM = "acpx/dist/cli.js"
DENIED = 5
"""Its exit code when a permission was denied."""

Message = dict[str, Any]


class Acpx:
    """For one directory, in a clean environment, with a HOME of its own."""

    def __init__(self, home: Home, work: Path, *options: str) -> None:
        self._home = home
        self._work = work
        self._command = [node_program(PROGRAM), str(INTEROP / "node_modules" / PROGRAM), "--cwd", str(work)]
        self._command += ["--agent", " ".join(home.command(*options))]

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(*self._command, *words),
            env=clean_environment(self._home),
            cwd=self._work,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )

    async def __call__(self, *words: str) -> tuple[int, str]:
        """Run it to its end: its exit code, and what it printed."""
        process = await self.start(*words)
        async with asyncio.timeout(PATIENCE):
            out, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode()

    async def json(self, *words: str) -> list[Message]:
        """What it prints for programs; of a prompt, every message between it and its agent."""
        code, out = await self("--format", "json", *words)
        assert code == 0, out
        return [json.loads(line) for line in out.splitlines()]

    async def say(self, text: str) -> list[Message]:
        """Prompt in the session of its directory, which a process of its own keeps open."""
        return await self.json("--approve-all", "prompt", text)

    async def cancel(self, text: str, when: str) -> list[Message]:
        """Prompt as above, and cancel as soon as something was said; all that was said in the end."""
        process = await self.start("--approve-all", "--format", "json", "prompt", text)
        assert process.stdout is not None
        told: list[Message] = []
        async with asyncio.timeout(PATIENCE):
            while when not in heard(told):
                told.append(json.loads(await process.stdout.readline()))
            assert (await self("cancel"))[0] == 0
            told += [json.loads(line) for line in (await process.stdout.read()).splitlines()]
            await process.wait()
        return told

    async def let_go(self) -> None:
        """End the process with which it keeps a session open, and wait for that."""
        for pid in self._owners():
            os.kill(pid, signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            while self._owners():
                await asyncio.sleep(0.05)

    def _owners(self) -> list[int]:
        return [pid for pid in processes_with(f"PILOTHOUSE_HOME={self._home.path}") if _is_owner(pid)]


@contextlib.asynccontextmanager
async def acpx_for(home: Home, work: Path, *options: str) -> AsyncIterator[Acpx]:
    acpx = Acpx(home, work, *options)
    try:
        yield acpx
    finally:
        await acpx.let_go()


def _is_owner(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"__queue-owner" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def answer_to(messages: list[Message], method: str) -> Any:
    number = next(one["id"] for one in messages if one.get("method") == method)
    return next(one["result"] for one in messages if one.get("id") == number and "result" in one)


def heard(messages: list[Message]) -> str:
    """What the agent said."""
    updates = [one["params"]["update"] for one in messages if one.get("method") == "session/update"]
    return "".join(one["content"]["text"] for one in updates if one["sessionUpdate"] == "agent_message_chunk")
