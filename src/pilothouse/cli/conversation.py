"""A conversation with an agent in this process's own hub: prompts, what comes of them, and what is decided here.

Events are drawn from the log's follower, so the screen never shows what is not stored. While a person is asked,
drawing waits; the follower is a cursor, and nothing is lost or piled up by that.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any, cast

import click
from msgspec import Struct

from ..acp.errors import RequestError
from ..adapters.known import DEMO
from ..adapters.registry import Registry
from ..app import open_archive, open_hub, registry
from ..config import Config, load_config
from ..hub.errors import AgentFailed, DecidedOtherwise, UnknownApproval
from ..hub.hub import Hub
from ..hub.session import HubSession
from ..hub.turns import Prompt, TurnResult
from ..log.entries import Entry
from ..log.records import SessionRecord
from ..model.events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CustomEvent,
    Event,
    UserQuestionEvent,
    decode_event,
)
from ..model.policy import decide
from ..model.session import dump, load
from ..terminal.asking import Verdict, ask_approval, ask_question
from ..terminal.keyboard import Keyboard
from ..terminal.screen import Screen
from .exits import Exit, Failure
from .output import console, short_path

__all__ = ["Options", "start"]

PACE = "0.02"
"""Seconds between two pieces of the scripted agent's text, for people to read along."""
AUTH_REQUIRED = -32000
READS = {"autoApprove": {"reads": True, "searches": True}}
NOBODY = "There is no terminal to ask on, and no option or rule allows it."
STOPS = {
    "end_turn": Exit.OK,
    "cancelled": Exit.CANCELLED,
    "refusal": Exit.REFUSED,
    "max_tokens": Exit.LIMIT,
    "max_turn_requests": Exit.LIMIT,
}


class Options(Struct, frozen=True, kw_only=True):
    """What was asked for."""

    prompt: str
    agent: str | None = None
    cwd: Path | None = None
    session: str | None = None
    approve_all: bool = False
    approve_reads: bool = False
    as_json: bool = False


def start(options: Options) -> int:
    """Run it; the answer is an exit code. Raises what `exits.reported` explains."""
    return asyncio.run(_start(load_config(), options))


async def _start(config: Config, options: Options) -> int:
    record = await _stored(config, options.session) if options.session is not None else None
    agents = registry(config)
    name = _agent_name(config, agents, options, record)
    launch = _usable(agents, name)
    screen = None if options.as_json else Screen(console())
    keyboard = Keyboard() if screen is not None and sys.stdin.isatty() and not screen.plain else None
    if name == DEMO and keyboard is not None:
        os.environ.setdefault("PILOTHOUSE_DEMO_PACE", PACE)
    conversation = Conversation(options, screen, keyboard)
    conversation.watch_signals()
    try:
        async with open_hub(config, [name]) as hub:
            for notice in hub.notices:
                if notice not in hub.log.notices:  # those are what this machine cannot do; `doctor` tells them
                    click.echo(notice, err=True)
            if record is not None:
                session = await hub.session(record.id)
            else:
                cwd = options.cwd or (Path(launch.cwd) if launch.cwd else Path.cwd())
                session = await hub.start_session(name, cwd, title=_title(options.prompt), policy=config.policy)
            try:
                return await conversation.hold(hub, session)
            except AgentFailed as exc:
                if record is None:  # nothing ever happened in it
                    await hub.delete_session(session.id)
                raise Failure(_why(exc, agents, name), Exit.NO_AGENT) from exc
    except asyncio.CancelledError:
        if conversation.left is None:
            raise
        return conversation.left
    finally:
        conversation.close()


def _title(prompt: str) -> str | None:
    """What a session is called until its agent finds something better."""
    words = " ".join(prompt.split())
    return (words if len(words) <= 80 else words[:79] + "…") or None


async def _stored(config: Config, beginning: str) -> SessionRecord:
    async with open_archive(config) as archive:
        return await archive.match(beginning)


def _agent_name(config: Config, agents: Registry, options: Options, record: SessionRecord | None) -> str:
    """Raises Failure."""
    if record is not None:
        if options.agent not in (None, record.agent):
            raise Failure(f"session {record.id} is one of {record.agent}, not of {options.agent}", Exit.USAGE)
        return record.agent
    name = options.agent or config.settings.default_agent
    if name is None and len(config.agents) == 1:
        name = next(iter(config.agents))
    if name is None:
        ready = ", ".join(name for name in agents.names if agents.launch(name) is not None)
        raise Failure(f"name an agent with -a; ready on this machine: {ready}", Exit.USAGE)
    if name not in agents:
        close = difflib.get_close_matches(name, agents.names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise Failure(f"no agent {name!r} is known; {hint}`pilothouse agents` lists them", Exit.USAGE)
    return name


def _usable(agents: Registry, name: str) -> Any:
    """How the agent is started. Raises AdapterError, Failure."""
    adapter, launch = agents.get(name), agents.launch(name)
    if launch is None:
        hint = f" To install it: {adapter.install_hint}" if adapter.install_hint else ""
        raise Failure(f"{adapter.title} is not installed.{hint}", Exit.NO_AGENT)
    return launch


def _why(exc: AgentFailed, agents: Registry, name: str) -> str:
    cause = exc.__cause__
    login = getattr(getattr(agents.get(name), "program", None), "login", None)
    if isinstance(cause, RequestError) and cause.code == AUTH_REQUIRED and login:
        return f"{exc}. To log in: {login}"
    return str(exc)


class Conversation:
    """Turns of one session, drawn and decided here."""

    left: int | None = None
    """The exit code, once the user has decided to leave at once."""

    def __init__(self, options: Options, screen: Screen | None, keyboard: Keyboard | None) -> None:
        self._options = options
        self._screen = screen
        self._keyboard = keyboard
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._hub: Hub
        self._session: HubSession
        self._batches: AsyncIterator[Sequence[Entry]]
        self._reading: asyncio.Future[Sequence[Entry]] | None = None
        self._seq = 0
        self._prompt: Prompt | None = None
        self._question: asyncio.Task[Any] | None = None
        self._cancelling: asyncio.Task[bool] | None = None
        self._interrupts = 0
        self._denied = False

    # -- from start to end --

    async def hold(self, hub: Hub, session: HubSession) -> int:
        """Start the agent, then run the prompt, or talk until the user leaves. Raises AgentFailed."""
        self._hub, self._session, self._seq = hub, session, session.state.seq
        self._batches = aiter(session.follow(self._seq))
        if self._screen is not None:
            self._screen.session = load(dump(session.state))
            if self._keyboard is not None:
                self._screen.note(f"{session.agent_name} · {short_path(session.cwd)} · {session.id}")
                self._keyboard.quiet()
            self._screen.begin(f"starting {session.agent_name}")
        await session.start()
        try:
            if self._options.prompt or self._keyboard is None:
                return await self._turn(self._options.prompt)
            return await self._talk(self._keyboard)
        finally:
            if self._reading is not None:
                self._reading.cancel()

    async def _talk(self, keyboard: Keyboard) -> int:
        assert self._screen is not None
        code = int(Exit.OK)
        self._screen.rest()
        self._screen.say("Enter sends, Ctrl-C stops a turn, Ctrl-D leaves.")
        while True:
            self._screen.say("")
            self._screen.ask("›")
            line = await keyboard.line()
            if line is None or line.strip().lower() in ("quit", "exit", "/quit", "/exit"):
                self._screen.say("" if line is None else f"`pilothouse run -s {self._session.id}` goes on with it.")
                return code
            self._interrupts = 0
            if line.strip():
                if not self._session.state.turns and not self._session.state.title:
                    self._session.rename(_title(line))
                code = await self._turn(line.strip())

    def close(self) -> None:
        """Leave the terminal as it was, if it is still there."""
        with contextlib.suppress(OSError):
            if self._screen is not None:
                self._screen.rest()
        if self._keyboard is not None:
            self._keyboard.close()

    # -- a turn --

    async def _turn(self, text: str) -> int:
        if self._screen is not None:
            self._screen.begin()
        prompt = self._prompt = await self._session.send(text)
        try:
            while not (prompt.done.done() and self._seq >= prompt.done.result().seq):
                await self._next_batch(prompt)
        finally:
            self._prompt = None
            if self._screen is not None:
                self._screen.rest()
        result: TurnResult = prompt.done.result()
        code = STOPS.get(result.stop_reason, Exit.ERROR)
        if self._denied and not self._interrupts and result.stop_reason in ("end_turn", "cancelled"):
            code = Exit.REFUSED
        return int(code)

    async def _next_batch(self, prompt: Prompt) -> None:
        if self._reading is None:
            self._reading = asyncio.ensure_future(cast(Coroutine[Any, Any, Sequence[Entry]], anext(self._batches)))
        waiting: set[asyncio.Future[Any]] = {self._reading, prompt.done}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not self._reading.done():
            return
        entries, self._reading = self._reading.result(), None
        self._seq = entries[-1].seq
        if self._screen is None:
            sys.stdout.buffer.write(b"".join(entry.data + b"\n" for entry in entries))
            sys.stdout.buffer.flush()
        events = [decode_event(entry.data) for entry in entries]
        answered = {_answered(event) for event in events}
        for event in events:
            if self._screen is not None:
                self._screen.show(event)
            if isinstance(event, ApprovalRequestedEvent) and event.request_id not in answered:
                await self._approve(event, prompt)
            elif isinstance(event, UserQuestionEvent) and event.question_id not in answered:
                await self._answer(event, prompt)
        if self._screen is not None:
            self._screen.flush()

    # -- decisions --

    async def _approve(self, event: ApprovalRequestedEvent, prompt: Prompt) -> None:
        by = "user"
        verdict: Verdict | None
        if self._options.approve_all:
            verdict, by = Verdict(approved=True), "--approve-all"
        elif self._options.approve_reads and self._only_reads(event):
            verdict, by = Verdict(approved=True), "--approve-reads"
        elif self._screen is not None and self._keyboard is not None:
            verdict = await self._asked(ask_approval(self._screen, self._keyboard, event), prompt)
        else:
            self._denied = True
            verdict, by = Verdict(approved=False, reason=NOBODY), "pilothouse run"
        if verdict is None or prompt.cancelled:
            return
        try:
            await self._session.decide(
                event.request_id,
                approved=verdict.approved if verdict.option_id is None else None,
                option_id=verdict.option_id,
                reason=verdict.reason,
                by=by,
                remember=verdict.remember,
            )
        except (UnknownApproval, DecidedOtherwise):
            pass  # it was withdrawn meanwhile; the events say so

    def _only_reads(self, event: ApprovalRequestedEvent) -> bool:
        return decide(READS, event.tool_name, event.tool_input, self._session.cwd).allowed

    async def _answer(self, event: UserQuestionEvent, prompt: Prompt) -> None:
        answer: Any = None
        if self._screen is not None and self._keyboard is not None:
            answer = await self._asked(ask_question(self._screen, self._keyboard, event), prompt)
        if prompt.cancelled:
            return
        try:
            self._session.answer(event.question_id, answer)
        except UnknownApproval:
            pass

    async def _asked(self, question: Coroutine[Any, Any, Any], prompt: Prompt) -> Any:
        """Ask with the region out of the way; None when the turn ends or is cancelled meanwhile."""
        assert self._screen is not None
        self._screen.pause()
        task = self._question = asyncio.ensure_future(question)
        try:
            waiting: set[asyncio.Future[Any]] = {task, prompt.done}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() and not task.cancelled() else None
        finally:
            task.cancel()
            self._question = None
            self._screen.resume()

    # -- signals --

    def watch_signals(self) -> None:
        if os.name != "posix":
            return
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, 128 + number)

    def _interrupt(self) -> None:
        """Ctrl-C: the first one ends the turn, the second one everything."""
        self._interrupts += 1
        if self._prompt is None or self._interrupts > 1:
            self._leave(Exit.CANCELLED)
            return
        if self._question is not None:
            self._question.cancel()
        self._cancelling = asyncio.ensure_future(self._session.cancel())
        if self._screen is not None:
            self._screen.note("Stopping. Ctrl-C again leaves.")

    def _leave(self, code: int) -> None:
        if self.left is None:  # once: whoever is impatient must not keep the hub from ending its agents
            self.left = int(code)
            self._task.cancel()


def _answered(event: Event) -> str | None:
    """The approval or question that an event settles."""
    if isinstance(event, ApprovalResolvedEvent):
        return event.request_id
    if isinstance(event, CustomEvent) and event.event_name == "question_answered":
        return str(event.data.get("questionId"))
    return None
