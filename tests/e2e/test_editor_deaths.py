"""Editor, hub and agent die, in each order and in every state that a session is in: what holds for who is left.

No process stays behind; whoever waits is answered with the truth; the next prompt works; the editor was shown what the
log has, once and in order; the log says of every turn how it ended. PILOTHOUSE_SOAK=1 runs all there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.editors import PATIENCE, Editor, Home, Refused, runs
from tests.support.hubs import processes_with
from tests.support.session_logs import ended, stored

Json = dict[str, Any]
Case = tuple[str, str, signal.Signals]

STATES = {
    "idle": "",
    "text": "slow 60",
    "permission": "edit notes.txt",
    "tool": "bash echo $$ > pid.new; mv pid.new pid; exec sleep 300",
    "terminal": "bash sleep 300",
}
"""What a session is doing, and the prompt that makes it do so. A tool is run by the hub, a terminal is the editor's."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM)
ORDERS = ["".join(order) for order in itertools.permutations("EHA")]
"""Who dies: the editor with its bridge, the hub, the agent."""
ENDS = {"H": "interrupted", "A": "error"}
"""How a turn ends whose hub or agent dies."""
WORDS = {"H": "interrupted", "A": "ended by|exit|died|gone"}
"""What its editor reads of that."""


def cases() -> Iterator[Case]:
    """All, or two for each order, so that every state and signal meets the most of them."""
    if os.environ.get("PILOTHOUSE_SOAK"):
        yield from itertools.product(ORDERS, STATES, SIGNALS)
        return
    states = list(STATES)
    for number, order in enumerate(ORDERS):
        yield order, states[(2 * number) % 5], SIGNALS[number % 2]
        yield order, states[(2 * number + 1) % 5], SIGNALS[(number + 1) % 2]


class Stage:
    """A session in an editor, and those on whom it depends."""

    def __init__(self, home: Home, work: Path, editor: Editor, session: str, state: str) -> None:
        self.home = home
        self.work = work
        self.editor = editor
        self.session = session
        self.state = state
        self.prompt: asyncio.Future[Any] | None = None
        self.is_watched = True
        """Whether the editor is alive."""
        self.ends: list[set[str]] = []
        """How each turn may have ended."""
        self.commands: list[int] = []
        """What the hub ran for the agent."""

    def agents(self) -> list[int]:
        return [pid for pid in processes_with(f"PILOTHOUSE_HOME={self.home.path}") if "demo-agent" in _command(pid)]

    def hubs(self) -> list[int]:
        return [pid for pid in processes_with(f"PILOTHOUSE_HOME={self.home.path}") if " serve " in _command(pid)]

    async def succeed(self, text: str) -> None:
        answer = await self.editor.prompt(self.session, f"echo {text}")
        assert answer["stopReason"] == "end_turn"
        assert self.editor.texts(self.session).endswith(text)
        self.ends.append({"end_turn"})

    async def begin(self) -> None:
        """Bring the session into its state."""
        if not STATES[self.state]:
            return
        editor, shown, asked = self.editor, len(self.editor.updates(self.session)), len(self.editor.asked)
        self.prompt = editor.start_prompt(self.session, STATES[self.state])
        if self.state == "text":
            await editor.until(lambda: len(editor.updates(self.session)) > shown + 2)
            return
        (permission,) = await editor.until(lambda: _of(editor.asked[asked:], "session/request_permission"))
        if self.state == "permission":
            return
        options = {one["kind"]: one["optionId"] for one in permission["params"]["options"]}
        chosen = {"outcome": {"outcome": "selected", "optionId": options["allow_once"]}}
        editor.say(id=permission["id"], result=chosen)
        if self.state == "terminal":
            await editor.until(lambda: _of(editor.asked[asked:], "terminal/wait_for_exit"))
        else:
            await _until((self.work / "pid").exists)
            self.commands.append(int((self.work / "pid").read_text()))
            (self.work / "pid").unlink()

    async def kill(self, who: str, number: signal.Signals) -> None:
        """End them, wait until they are gone, and see what the editor reads of it."""
        agents = self.agents()
        victims = {"E": [self.editor.process.pid], "H": self.hubs(), "A": agents}[who]
        assert len(victims) <= 1
        for pid in victims:
            os.kill(pid, number)
        must_go = {*victims, *(agents if who == "H" else ())}
        await _until(lambda: not any(map(runs, must_go)))
        if who == "E":
            self.is_watched = False
            await self.editor.process.wait()
        await self._see(who, bool(victims))

    async def _see(self, who: str, had_one: bool) -> None:
        """How the turn ended that was running, if one was."""
        if self.prompt is None or not had_one:
            return
        if who == "E":
            # what ran in it has ended with it, so its agent may go on and be done
            self.ends.append({"end_turn"} if self.state == "terminal" else set())
            return
        if not self.is_watched:
            self.ends[-1].add(ENDS[who])
            async with asyncio.timeout(PATIENCE):  # nobody is told, so it is looked whether the hub knows of its agent
                while who == "A" and len(ended(await stored(self.home, self.session))) < len(self.ends):
                    await asyncio.sleep(0.02)
        else:
            with pytest.raises(Refused, match=WORDS[who]):
                async with asyncio.timeout(PATIENCE):
                    await self.prompt
            self.ends.append({ENDS[who]})
        self.prompt = None


@pytest.mark.parametrize(("order", "state", "number"), list(cases()), ids=lambda value: getattr(value, "name", value))
async def test_whoever_dies_the_others_know_and_go_on(
    home: Home, work: Path, order: str, state: str, number: signal.Signals
) -> None:
    async with begun(home, work, state) as stage:
        await stage.succeed("first")
        for who in order:
            if stage.is_watched:
                await stage.begin()
            await stage.kill(who, number)
            if stage.is_watched:
                await stage.succeed(f"after {who}")
        assert stage.editor.stderr == b""
        await check_afterwards(stage)


@contextlib.asynccontextmanager
async def begun(home: Home, work: Path, state: str) -> AsyncIterator[Stage]:
    async with home.editor("-a", "demo", initialize=False) as editor:
        await editor.initialize({"fs": {}, "terminal": state == "terminal"})
        answering = asyncio.create_task(lend(editor))
        try:
            yield Stage(home, work, editor, await editor.new_session(work), state)
        finally:
            answering.cancel()


async def lend(editor: Editor) -> None:
    """Terminals in which a command runs until it is killed."""
    waiting: list[Any] = []
    for number in itertools.count():
        await editor.until(partial(_has_more, editor.asked, number))
        asked = editor.asked[number]
        method = asked["method"]
        if method == "terminal/create":
            editor.say(id=asked["id"], result={"terminalId": f"t{asked['id']}"})
        elif method == "terminal/output":
            editor.say(id=asked["id"], result={"output": "", "truncated": False})
        elif method == "terminal/wait_for_exit":
            waiting.append(asked["id"])
        elif method in ("terminal/kill", "terminal/release"):
            editor.say(id=asked["id"], result={})
            for one in waiting:
                editor.say(id=one, result={"exitCode": None, "signal": "SIGKILL"})
            waiting.clear()


def _has_more(found: list[Json], number: int) -> bool:
    return len(found) > number


async def check_afterwards(stage: Stage) -> None:
    """Somebody else opens the session: it can be gone on with, and is what the editor that died was shown."""
    home, work, session = stage.home, stage.work, stage.session
    async with home.editor("-a", "demo") as other:
        setup = await other.load(session, work)
        told = list(other.updates(session))
        if setup["_meta"]["pilothouse"]["status"] not in ("idle", "error"):
            other.say(method="session/cancel", params={"sessionId": session})
            stage.ends[-1].add("cancelled")
        assert (await other.prompt(session, "echo last"))["stopReason"] == "end_turn"
        stage.ends.append({"end_turn"})
        assert other.texts(session).endswith("last")
        assert not any(map(runs, stage.commands))
        assert not (work / "notes.txt").exists(), "nobody allowed that"
        ends = ended(await stored(home, session))
        assert len(ends) == len(stage.ends)
        assert all(end in allowed for end, allowed in zip(ends, stage.ends, strict=True)), (ends, stage.ends)
        seqs = stage.editor.seqs(session)
        assert seqs == sorted(seqs)
        shown = comparable(stage.editor.updates(session))
        assert shown == [one for one in comparable(told) if shown[0][0] <= one[0] <= shown[-1][0]]
        await other.leave()


def comparable(updates: list[Json]) -> list[tuple[int, Any]]:
    """What all editors are told alike: not their own words, nor what is shown in a terminal that only one has."""
    found: list[tuple[int, Any]] = []
    for update in updates:
        seq, kind = update["_meta"]["pilothouse"]["seq"], update["sessionUpdate"]
        if kind in ("tool_call", "tool_call_update") and "status" in update:
            found.append((seq, (kind, update["toolCallId"], update["status"])))
        elif kind not in ("user_message_chunk", "tool_call", "tool_call_update"):
            found.append((seq, update))
    return found


def _of(asked: list[Json], method: str) -> list[Json]:
    return [one for one in asked if one["method"] == method]


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.02)
