"""A session in the terminal: sends prompts, prints the turns, and puts approvals and questions to the user.

After a hub has exited, the events that its log got last are printed where the stream broke off.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import click

from ...app.stored_sessions import Archive
from ...config import Config
from ...log.sqlite.reader import lock_holder
from ...model.events import Event, decode_event
from ...model.session import Session
from ...remote.session import TurnEnd, end_of
from ...terminal.keyboard import Interrupted, Keyboard
from ...terminal.screen import Screen
from ..exits import Exit
from ..output import console, say, short_path, title_of_prompt
from ..stored_rules import NAMED
from .backends import Sent, Side, Stored, begins
from .requests import Asks, Manners, ended

CLOSING = 10.0
"""Seconds that a hub which is closing has to let go of the log, before what it wrote last is read."""
STEP = 0.05


async def hub_closed(config: Config) -> None:
    """Wait until the hub has let go: what it says at its end is stored then."""
    for _ in range(int(CLOSING / STEP)):
        if lock_holder(config.database) is None:
            return
        await asyncio.sleep(STEP)


async def draw_stored(archive: Archive, conversation: Conversation, session_id: str, since: int) -> None:
    """Draw what is stored beyond an event."""
    if conversation.seq < since:
        await conversation.recall(session_id, archive.entries(session_id), since)
    async for entry in archive.entries(session_id, since):
        await conversation.draw_named([entry])


NOTHING_TO_DETACH = "This session runs in this terminal and ends with it: there is nothing to detach from."
INVITATION = "The session is idle. Type a prompt and Enter, or Ctrl-C to leave."
STOPS = {
    "end_turn": Exit.OK,
    "cancelled": Exit.CANCELLED,
    "refusal": Exit.REFUSED,
    "max_tokens": Exit.LIMIT,
    "max_turn_requests": Exit.LIMIT,
}


class Conversation:
    """One session, drawn and decided here. Make it in the task that holds it, and `close` it."""

    left: int | None = None
    """The exit code, once the user has decided to leave at once."""
    find_rules: Callable[[], Awaitable[Mapping[str, str]]] | None = None
    """Finds what the rules made by "always" are called."""
    detached = False
    """Whether the user left by the key for that, and the turn is to go on."""

    def __init__(self, manners: Manners) -> None:
        self._manners = manners
        self.screen = None if manners.as_json else Screen(console(), echo=manners.echo, hint=manners.hint)
        can_ask = self.screen is not None and sys.stdin.isatty() and not self.screen.plain
        self.keyboard = Keyboard() if can_ask else None
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._side: Side
        self._batches: AsyncGenerator[Sequence[Stored], None] | None = None
        self._reading: asyncio.Future[Sequence[Stored]] | None = None
        self.seq = 0
        self._live_from = 0
        self._asks = Asks(manners, self.screen, self.keyboard, lambda: self._interrupts > 0)
        self._turn: Sent | None = None
        self._is_sending = False
        self._is_idle = False
        self._is_running = False
        self._end: TurnEnd | None = None
        self._agent_ran = False
        self._aside: set[asyncio.Task[None]] = set()
        self._interrupts = 0
        self._busy_with: str | None = None
        self._is_invited = False

    # -- from start to end --

    def begin_at(self, state: Session) -> None:
        """What is drawn comes after this state."""
        self.seq = state.seq
        if self.screen is not None:
            self.screen.session = state

    async def recall(self, session_id: str, entries: AsyncIterator[Stored], until: int | None = None) -> Session:
        """Take in what happened before, up to an event, without drawing it: what was asked then may still wait."""
        state = Session(id=session_id)
        async for entry in entries:
            if until is not None and entry.seq > until:
                break
            event = decode_event(entry.data)
            state.apply(event)
            self._learn(event)
        self.begin_at(state)
        return state

    def join(self, side: Side, live_from: int = 0) -> None:
        """Take up a session from here. What was asked before the event `live_from` may be settled by then."""
        self._side, self._live_from = side, live_from
        if self.screen is not None and side.is_elsewhere and self._manners.hint == Manners().hint:
            self.screen.region.hint += " · Ctrl-\\ detaches"
        self._batches = side.follow(self.seq, self._wait_for_hub)

    def _wait_for_hub(self) -> None:
        if self.screen is not None:
            self.screen.note("The hub does not answer; waiting for it to come back.")

    def introduce(self) -> None:
        if self.screen is not None and self.keyboard is not None:
            side = self._side
            self.keyboard.quiet()
            self.screen.note(f"{side.agent_name} · {short_path(side.cwd)} · {side.id}")

    async def run(self, prompt: str) -> int:
        """Start the agent, then run the prompt, or talk until the user leaves. Raises AgentFailed, RemoteError."""
        if self.keyboard is not None:
            self.keyboard.quiet()
        if self.screen is not None:
            self.screen.begin(f"starting {self._side.agent_name}")
        await self._side.start()
        self.introduce()  # not before: a session whose agent never ran is deleted, and its id names nothing
        self._agent_ran = self._agent_ran or not self._side.is_elsewhere
        if prompt or self.keyboard is None:
            return await self._say(prompt)
        return await self._talk(self.keyboard)

    async def _talk(self, keyboard: Keyboard) -> int:
        assert self.screen is not None
        code = int(Exit.OK)
        self.screen.rest()
        self.screen.say("Enter sends, Ctrl-C stops a turn, Ctrl-D leaves.")
        while True:
            self.screen.say("")
            line = await self._typed(self.screen, keyboard)
            if line is None or line.strip().lower() in ("quit", "exit", "/quit", "/exit"):
                self.rest()
                if line is None:
                    click.echo()
                say(f"`pilothouse run -s {self._side.id}` goes on with it.")
                return code
            self._interrupts = 0
            if line.strip():
                if not self.screen.session.turns and not self.screen.session.title:
                    await self._side.rename(title_of_prompt(line))
                code = await self._say(line.strip())

    async def _typed(self, screen: Screen, keyboard: Keyboard) -> str | None:
        """The next prompt; None when the user leaves, by Ctrl-D or by Ctrl-C twice."""
        self._is_idle, warned = True, False
        try:
            while True:
                try:
                    return await keyboard.line(screen.ask("›"))
                except Interrupted:
                    if warned:
                        return None
                    warned = True
                    screen.say("")
                    screen.say("Ctrl-C again or Ctrl-D leaves.")
        finally:
            self._is_idle = False

    async def watch(self) -> None:
        """Draw what comes until the user leaves. Raises ConnectionLost when the hub is gone."""
        if self.seq >= self._live_from:
            self._show_busy()
            await self._asks.see_to(self._side, self.seq)
        while True:
            if self.screen is None or self.keyboard is None or not self._may_prompt:
                await self._step()
            elif (text := await self._typed_meanwhile(self.screen, self.keyboard)) is not None:
                await self._say_here(self.screen, text)

    @property
    def _may_prompt(self) -> bool:
        """Whether whoever watches could say something now: nothing is under way, and all that was is drawn."""
        is_idle = self.screen is not None and self.screen.session.status in ("idle", "error")
        return is_idle and self.seq >= self._live_from and self._asks.are_seen_to

    async def _typed_meanwhile(self, screen: Screen, keyboard: Keyboard) -> str | None:
        """A prompt that is typed before anything comes, else None; what was typed by then stays typed."""
        if not self._is_invited:
            self._is_invited = True
            screen.say(INVITATION)
        reading = self._next()
        screen.pause()
        self._is_idle = True
        typing = asyncio.ensure_future(keyboard.line(screen.ask("›")))
        try:
            waiting: set[asyncio.Future[Any]] = {typing, reading}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._is_idle = False
            if not typing.done():
                await ended(typing)
                keyboard.put_back()
                screen.say("")
        if typing.cancelled():
            await self._step()
            return None
        return self._line_of(typing)

    def _line_of(self, typing: asyncio.Future[str | None]) -> str | None:
        """What was typed; who typed Ctrl-C or Ctrl-D leaves."""
        try:
            line = typing.result()
        except Interrupted:
            line = None
        if line is None:
            if self.screen is not None:
                self.screen.say("")
            self._leave(Exit.CANCELLED)
            return None
        return line.strip() or None

    async def _say_here(self, screen: Screen, text: str) -> None:
        """A prompt of whoever watches. As in `run`, the first Ctrl-C ends its turn."""
        hint, screen.region.hint, self._interrupts = screen.region.hint, Manners().hint, 0
        screen.echo(False)
        try:
            await self._say(text)
        finally:
            screen.region.hint, self._interrupts = hint, 0
            screen.echo(self._manners.echo)

    def rest(self) -> None:
        """Nothing is awaited any more; the terminal is as it was, if it is still there."""
        with contextlib.suppress(OSError):
            if self.screen is not None:
                self.screen.rest(over=not self._goes_on)
        if self.keyboard is not None:
            self.keyboard.close()

    @property
    def _goes_on(self) -> bool:
        """Whether the turn outlives this terminal."""
        return self.left is not None and self._batches is not None and self._side.is_elsewhere

    async def close(self) -> None:
        """End what is under way here, and leave the terminal as it was."""
        for task in (self._reading, *self._aside):
            if task is not None:
                await ended(task)
        if self._batches is not None:
            await self._batches.aclose()
        self.rest()

    # -- a turn --

    async def _say(self, text: str) -> int:
        if self.screen is not None:
            self.screen.begin()
        self._end, self._is_running = None, False
        self._is_sending = True
        try:
            sent = self._turn = await self._side.send(text)
            self._is_sending = False
            if self._interrupts:  # while it was on its way
                self._stop(sent)
            return self._code(await self._until_end(sent))
        finally:
            self._turn, self._is_sending = None, False
            if self.screen is not None:
                self.screen.rest(over=not self._goes_on)

    async def _until_end(self, sent: Sent) -> TurnEnd:
        while True:
            await self._step(sent.done)
            if self._end is not None:
                return self._end

    def _code(self, end: TurnEnd) -> int:
        code = STOPS.get(end.stop_reason, Exit.ERROR)
        if self._asks.denied and not self._interrupts and end.stop_reason in ("end_turn", "cancelled"):
            code = Exit.REFUSED
        if code is Exit.ERROR and not self._agent_ran:
            code = Exit.NO_AGENT
        return int(code)

    async def _step(self, done: asyncio.Future[Any] | None = None) -> None:
        """Read and draw the next batch, and see to what it asks. `done` raises when the log of our own hub fails."""
        reading = self._next()
        waiting: set[asyncio.Future[Any]] = {reading}
        if done is not None and not done.done():
            waiting.add(done)
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            assert done is not None
            done.result()
            return
        entries, self._reading = reading.result(), None
        await self.draw_named(entries)
        if self.seq >= self._live_from:
            self._show_busy()
            await self._asks.see_to(self._side, self.seq)

    def _next(self) -> asyncio.Future[Sequence[Stored]]:
        """The next batch, which is waited for once, whoever gave up waiting."""
        assert self._batches is not None
        if self._reading is None:
            self._reading = asyncio.ensure_future(anext(self._batches))
        return self._reading

    async def draw_named(self, entries: Sequence[Stored]) -> None:
        """`draw`, once it is known what the rules are called that decided."""
        if self.screen is not None and self.find_rules is not None:
            named = {found.decode() for entry in entries for found in NAMED.findall(entry.data)}
            if not named <= self.screen.decisions.rules.keys():
                self.screen.decisions.rules = await self.find_rules()
        self.draw(entries)

    def _show_busy(self) -> None:
        """Somebody else's turn is under way."""
        if self.screen is None or self._turn is not None:
            return
        turn_id = self.screen.session.turn_id
        if turn_id is not None and turn_id != self._busy_with:
            self.screen.begin()
        self._busy_with = turn_id

    def draw(self, entries: Sequence[Stored]) -> None:
        """Show stored events, or print them, and learn what they ask and settle."""
        if self.screen is None:
            sys.stdout.buffer.write(b"".join(entry.data + b"\n" for entry in entries))
            sys.stdout.buffer.flush()
        for entry in entries:
            event = decode_event(entry.data)
            if self.screen is not None:
                self.screen.show(event)
            self._learn(event)
        self.seq = entries[-1].seq
        if self.screen is not None:
            self.screen.flush()

    def _learn(self, event: Event) -> None:
        self._asks.learn(event)
        if event.type in ("session:started", "session:resumed"):
            self._agent_ran = True
        if self._turn is not None and self._end is None:
            self._is_running = self._is_running or begins(event, self._turn.turn_id)
            self._end = end_of(event, self._turn.turn_id)

    # -- signals --

    def watch_signals(self) -> None:
        if os.name != "posix":
            return
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, 128 + number)
        loop.add_signal_handler(signal.SIGQUIT, self._detach)

    def _detach(self) -> None:
        """Ctrl-\\: leave, and let the turn go on, where it can."""
        if self._batches is None:
            return
        if self._side.is_elsewhere:
            self.detached = True
            self._leave(Exit.OK)
        elif self.screen is not None and not self._asks.is_asking and not self._is_idle:
            self.screen.note(NOTHING_TO_DETACH)

    def _interrupt(self) -> None:
        """Ctrl-C: the first one ends the turn, the second one everything. Where there is no turn of ours, it leaves."""
        if self._is_idle and self.keyboard is not None:
            self.keyboard.interrupt()
            return
        self._interrupts += 1
        if self._interrupts > 1 or (self._turn is None and not self._is_sending):
            self._leave(Exit.CANCELLED)
            return
        self._asks.stop()
        if self._turn is not None:
            self._stop(self._turn)
        if self.screen is not None:
            self.screen.stopping()

    def _stop(self, turn: Sent) -> None:
        stop = self._side.cancel() if self._is_running else self._side.withdraw(turn.turn_id)
        self._aside.add(asyncio.ensure_future(stop))

    def _leave(self, code: int) -> None:
        if self.left is None:  # once: whoever is impatient must not keep the hub from ending its agents
            self.left = int(code)
            self._task.cancel()
