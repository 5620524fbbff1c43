"""A talk with a probed agent: its process, started anew when it is gone, its session, and what is asked of it.

No process is left behind: `close` ends the agent, whatever it runs, and whoever of its family went its own way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ...acp.errors import ConnectionClosed, RequestError
from ...adapters.catalog import without_flaws
from ...adapters.running import RunningAgent, start_agent
from ...hub.agent.client_requests import CLIENT_CAPABILITIES
from ...hub.agent.process import AgentSpec
from ...hub.startup import end_orphans
from ...model.capabilities import Features
from ...model.marks import HUB
from .client import FILE, NOTE, ProbeClient, Script

STARTS = 6
"""How often an agent is started that dies or hangs again and again."""
TIDYING = 3.0
SHOWN = 200
_decode = msgspec.json.Decoder().decode


class Untried(Exception):
    """A step that cannot be done now, and why."""


class Talk:
    """With one agent. `sent` is the last that it was asked, `login` its refusal to do anything before a login."""

    def __init__(
        self,
        spec: AgentSpec,
        directory: Path,
        now: Callable[[], str],
        *,
        script: Script,
        prompts: bool,
        allows: bool,
        model: str | None,
        timeout: float,
    ) -> None:
        self.spec = spec
        self.directory = directory
        self.script = script
        self.prompts = prompts
        self.allows = allows
        self.model = model
        self.timeout = timeout
        self.told: Callable[[str], None] = lambda what: None
        """Called with what a start waits for that takes its time."""
        self.secret = f"lantern-{secrets.token_hex(4)}"
        """What the file has in it that the agent is told to read."""
        self.client = ProbeClient(directory, now, allows=allows, secret=self.secret)
        self.agent: RunningAgent | None = None
        self.initialized: dict[str, Any] = {}
        self.stated = Features()
        """What it says that it can do, as flags."""
        self.opened: dict[str, Any] = {}
        self.made: list[str] = []
        """The sessions that the agent now has because of the probe."""
        self.login: RequestError | None = None
        self.turned_away: RequestError | None = None
        """Its refusal of a prompt for the same reason, though it opened a session."""
        self.kept = ""
        """The session that was prompted last."""
        self.sent = ""
        self.limit: asyncio.Timeout | None = None
        """When the step that is being done must be over."""
        self._mark = f"probe_{secrets.token_hex(8)}"
        self._starts = 0
        self.mute = ""
        """Why it is not prompted any more."""
        self.turns = 0
        """Turns that ended."""
        (directory / NOTE).write_text(f"{self.secret}\n")

    # -- the process --

    async def start(self) -> RunningAgent:
        """Raises what `start_agent` raises, and Untried."""
        self._starts += 1
        if self._starts > STARTS:
            raise Untried(f"it was started {STARTS} times and does not stay")
        if self.limit is not None:  # starting has a limit of its own, and tells of it with the agent's last words
            self.limit.reschedule(None)
        try:
            return await start_agent(
                self.spec.command,
                self.client,
                cwd=self.directory,
                env={**self.spec.env, HUB: self._mark},
                client_capabilities=without_flaws(CLIENT_CAPABILITIES, self.spec.command),
                timeout=self.timeout,
                told=self.told,
            )
        finally:
            if self.limit is not None:
                self.limit.reschedule(asyncio.get_running_loop().time() + self.timeout)

    async def drop(self) -> None:
        """End the agent; the next step that needs one gets another."""
        agent, self.agent = self.agent, None
        if agent is not None:
            await agent.stop(timeout=1.0)

    async def close(self) -> None:
        ending = asyncio.ensure_future(self._ended())
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):  # who is in a hurry leaves no process behind either
                await asyncio.shield(ending)
        ending.result()

    async def _ended(self) -> None:
        with contextlib.suppress(RequestError, ConnectionClosed, TimeoutError):
            async with asyncio.timeout(TIDYING):
                await self._tidy()
        await self.drop()
        await self.client.close()
        await asyncio.to_thread(end_orphans, self._mark)

    async def _tidy(self) -> None:
        """Let the agent delete what it keeps of the probe, if it can."""
        if self.agent is not None and "delete" in self.sessions:
            for session_id in self.made:
                await self.agent.request("session/delete", {"sessionId": session_id})

    async def call(self, method: str, params: dict[str, Any], agent: RunningAgent | None = None) -> dict[str, Any]:
        """Raises what `RunningAgent.request` raises."""
        running = agent or await self.live()
        told = {key: value for key, value in params.items() if key not in ("sessionId", "mcpServers")}
        self.sent = f"{method} {short(json.dumps(told, ensure_ascii=False))}"
        result = _decode(await running.request(method, params, session=params.get("sessionId")))
        return mapping(result)

    async def live(self) -> RunningAgent:
        """The agent, with a session open; started anew if it is gone. Raises Untried when it has to be logged in."""
        if self.login is not None:
            raise Untried("it has to be logged in first")
        if self.agent is None or not self.agent.is_running:
            await self.drop()
            self.agent = await self.start()
            self.opened = {}
        if not self.opened:
            self.opened = await self.open(self.agent)
        return self.agent

    async def open(self, agent: RunningAgent) -> dict[str, Any]:
        params = {"cwd": str(self.directory), "mcpServers": []}
        self.sent = f"session/new {json.dumps(params)}"
        opened = _decode(await agent.request("session/new", params))
        if not isinstance(opened, dict) or not isinstance(opened.get("sessionId"), str):
            raise RequestError.internal_error({"details": f"expected a sessionId, got {short(json.dumps(opened))}"})
        self.made.append(opened["sessionId"])
        return opened

    @property
    def session(self) -> str:
        return str(self.opened.get("sessionId", ""))

    @property
    def capabilities(self) -> dict[str, Any]:
        """What it says that it can do."""
        return mapping(self.initialized.get("agentCapabilities"))

    @property
    def sessions(self) -> dict[str, Any]:
        """What it says that it can do with sessions."""
        return mapping(self.capabilities.get("sessionCapabilities"))

    # -- turns --

    async def prompt(self, words: str) -> dict[str, Any]:
        """A whole turn; its result. Raises Untried, and as `call`."""
        if self.mute:
            raise Untried(self.mute)
        await self.live()
        self.client.turn_began(f"turn_{secrets.token_hex(4)}")
        params = {"sessionId": self.session, "prompt": [{"type": "text", "text": words}]}
        try:
            result = await self.call("session/prompt", params)
        except BaseException:
            self.client.turn_ended({"stopReason": "cancelled"})
            raise
        self.client.turn_ended(result)
        self.turns += 1
        self.kept = self.session
        return result

    def evidence(self, result: dict[str, Any]) -> str:
        """What was seen of a turn."""
        return f"stopReason {result.get('stopReason')}; {self.client.told}; said {self.client.heard[:80]!r}"

    @property
    def has_written(self) -> bool:
        """Whether the file is there that nobody but the agent writes; a link to nowhere counts."""
        return os.path.lexists(self.directory / FILE)

    @property
    def has_meddled(self) -> bool:
        """Whether the file that it was to read is not what it was."""
        try:
            return (self.directory / NOTE).read_text(errors="replace") != f"{self.secret}\n"
        except OSError:
            return True

    # -- another process --

    async def another(self) -> RunningAgent:
        """Another process of the agent, which has not seen the session; the first one has ended, as some let nobody
        else have what they have open. Raises Untried, and what `start` raises."""
        if self.login is not None:
            raise Untried("it has to be logged in first")
        if not self.kept:
            raise Untried("no session was prompted, and only such a one may be kept")
        await self.drop()
        agent = self.agent = await self.start()
        self.opened = {}
        return agent


def short(text: str, most: int = SHOWN) -> str:
    """As much of a text as fits into a row, without what would move a terminal's cursor or could not be written."""
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def mapping(value: Any) -> dict[str, Any]:
    """An object of JSON; empty where an agent gave something else."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of an array; none where an agent gave something else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
