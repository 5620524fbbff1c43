"""Editors for tests: programs that start `pilothouse acp` and speak ACP with it, and homes whose hubs end with a test.

async with home_for_editors(tmp_path) as home:
    async with home.editor("-a", "demo") as editor:
        session = await editor.new_session(tmp_path)
        answer = await editor.prompt(session, "echo hello")
    home.kill_hub()
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

PATIENCE = 60
READ = 1 << 18
CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


class Refused(Exception):
    """The bridge answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.data = error.get("data")


class BridgeEnded(Exception):
    """No answer will come. What the bridge wrote to stderr."""


class Editor:
    """One editor. All that came is in `lines`; requests of the hub are in `asked`, withdrawn ids in `withdrawn`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self.asked: list[dict[str, Any]] = []
        self.withdrawn: list[Any] = []
        self.errors: list[dict[str, Any]] = []
        """Errors that belong to no request."""
        self.stderr = b""
        self._updates: dict[str, list[dict[str, Any]]] = {}
        self._parsed = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._changed = asyncio.Condition()
        self._reading = asyncio.Event()
        self._reading.set()
        self._task = asyncio.create_task(self._read())
        self._listening = asyncio.create_task(self._listen())

    # -- speaking --

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def say(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method: str, params: Any) -> asyncio.Future[Any]:
        number = len(self._answers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        self.say(id=number, method=method, params=params)
        return self._answers[number]

    async def request(self, method: str, params: Any) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.ask(method, params)

    async def initialize(self, capabilities: Any = None) -> Any:
        given = {"protocolVersion": 1, "clientCapabilities": capabilities or CAPABILITIES}
        return await self.request("initialize", given)

    async def new_session(self, cwd: Path, **meta: Any) -> str:
        params: dict[str, Any] = {"cwd": str(cwd), "mcpServers": []}
        if meta:
            params["_meta"] = {"pilothouse": meta}
        return str((await self.request("session/new", params))["sessionId"])

    async def load(self, session: str, cwd: Path) -> Any:
        return await self.request("session/load", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})

    def start_prompt(self, session: str, text: str) -> asyncio.Future[Any]:
        return self.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    async def prompt(self, session: str, text: str) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.start_prompt(session, text)

    # -- hearing --

    def updates(self, session: str) -> list[dict[str, Any]]:
        for line in self.lines[self._parsed :]:
            if b'"session/update"' in line:
                params = json.loads(line)["params"]
                self._updates.setdefault(params["sessionId"], []).append(params["update"])
        self._parsed = len(self.lines)
        return self._updates.get(session, [])

    def texts(self, session: str, kind: str = "agent_message_chunk") -> str:
        return "".join(one["content"]["text"] for one in self.updates(session) if one["sessionUpdate"] == kind)

    def seqs(self, session: str) -> list[int]:
        return [one["_meta"]["pilothouse"]["seq"] for one in self.updates(session)]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait for what is to come; the answer is what the condition says."""
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(condition)
            return condition()

    def pause(self) -> None:
        """Take nothing more."""
        self._reading.clear()

    def resume(self) -> None:
        self._reading.set()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        parts: list[bytes] = []
        while True:
            await self._reading.wait()
            data = await self.process.stdout.read(READ)
            if not data:
                break
            *whole, rest = data.split(b"\n")
            if whole:
                whole[0] = b"".join([*parts, whole[0]])
                parts = []
            parts.append(rest)
            async with self._changed:
                for line in whole:
                    self._take(line)
                self._changed.notify_all()
        assert b"".join(parts) == b"", "half a line at the end"
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(BridgeEnded(self.stderr.decode(errors="replace")))
                answer.exception()

    def _take(self, line: bytes) -> None:
        self.lines.append(line)
        if line.startswith(b'{"jsonrpc":"2.0","method":"session/update"'):
            return
        message = json.loads(line)
        if message.get("method") == "$/cancel_request":
            self.withdrawn.append(message["params"]["requestId"])
        elif "method" in message and "id" in message:
            self.asked.append(message)
        elif "id" in message and message["id"] in self._answers:
            answer = self._answers[message["id"]]
            assert not answer.done(), f"answered twice: {line[:200]!r}"
            if "error" in message:
                answer.set_exception(Refused(message["error"]))
                answer.exception()  # who does not wait for it is not to be warned
            else:
                answer.set_result(message["result"])
        elif "error" in message:
            self.errors.append(message)

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(4096):
            self.stderr += data

    # -- the end --

    async def leave(self) -> int:
        """Close its end and wait for the bridge."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.resume()
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def close(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        self.resume()
        await self.process.wait()
        await asyncio.gather(self._task, self._listening)
        self.process._transport.close()  # type: ignore[attr-defined]


class Home:
    """A home of its own. Hubs that bridges start on it are ended with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment = {**os.environ, "PILOTHOUSE_HOME": str(path), "PILOTHOUSE_PORT": "0"}

    @property
    def place(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "hub.json").read_bytes())
        return found

    @property
    def hub_pid(self) -> int:
        return int(self.place["pid"])

    def kill_hub(self) -> int:
        """As if the power had failed."""
        pid = self.hub_pid
        os.kill(pid, signal.SIGKILL)
        return pid

    async def next_hub(self, after: int) -> int:
        """The hub that comes after another one, as soon as it says where it is."""
        async with asyncio.timeout(PATIENCE):
            while True:
                with contextlib.suppress(OSError):  # a hub that begins takes away what the one before has left
                    if self.hub_pid != after:
                        return self.hub_pid
                await asyncio.sleep(0.001)

    async def end_hub(self) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError):
            pid = self.hub_pid
            os.kill(pid, signal.SIGTERM)
            await gone(pid)

    def command(self, *options: str) -> list[str]:
        return [sys.executable, "-m", "pilothouse.cli", "acp", *options]

    @contextlib.asynccontextmanager
    async def editor(self, *options: str, initialize: bool = True) -> AsyncIterator[Editor]:
        process = await asyncio.create_subprocess_exec(
            *self.command(*options),
            env=self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        editor = Editor(process)
        try:
            if initialize:
                await editor.initialize()
            yield editor
        finally:
            await editor.close()


def runs(pid: int) -> bool:
    """Whether a process is there, and more than a name to be forgotten."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"


async def gone(pid: int) -> None:
    """Wait until a process that is not ours is gone."""
    async with asyncio.timeout(PATIENCE):
        while runs(pid):
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def home_for_editors(directory: Path) -> AsyncIterator[Home]:
    home = Home(directory / "home")
    home.path.mkdir(mode=0o700)
    try:
        yield home
    finally:
        await home.end_hub()
