"""The conversation: an agent is started, prompts are read or given, turns are run and cancelled."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import cast

from ...acp import Client, ClientSideConnection, ConnectionClosed, RequestError, spawn_agent_process, text_block
from .client import ConsoleClient
from .keyboard import Keyboard
from .screen import Screen
from .workspace import Workspace

__all__ = ["Conversation"]

PACE = "0.03"
"""Seconds between two pieces of text, for people to read along."""


class Conversation:
    """Everything between a person and the scripted agent."""

    def __init__(
        self, screen: Screen, workspace: Workspace, keyboard: Keyboard | None, *, approve_all: bool = False
    ) -> None:
        self._screen = screen
        self._workspace = workspace
        self._keyboard = keyboard
        self._client = ConsoleClient(screen, workspace, keyboard, approve_all=approve_all)
        self._connection: ClientSideConnection
        self._session = ""
        self._busy = False
        self._interrupts = 0
        self._failed = False
        self._task: asyncio.Task[int]
        self._cancelling: asyncio.Future[None]

    async def run(self, prompt: str) -> int:
        """Run `prompt` alone, or talk until the user leaves. The answer is an exit code."""
        self._task = cast("asyncio.Task[int]", asyncio.current_task())
        if self._keyboard is not None and os.name == "posix":
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._interrupt)
        if self._keyboard is not None and not prompt:
            self._screen.introduce(str(self._workspace.root))
        try:
            while True:
                self._session = ""
                lost = await self._with_agent(prompt)
                # An agent that dies in a conversation is followed by another; one that cannot start is not.
                if lost is None or not self._session or prompt or self._keyboard is None:
                    return 130 if self._interrupts and prompt else int(lost is not None or self._failed)
                self._screen.note("The next agent is ready.")
        except asyncio.CancelledError:
            if not self._interrupts:
                raise
            return 130
        finally:
            self._screen.close()
            if self._keyboard is not None:
                self._keyboard.close()
            await self._workspace.close()

    async def _with_agent(self, prompt: str) -> ConnectionClosed | None:
        """Talk to one agent process; the answer is how it was lost, if it was."""
        environment = {} if self._keyboard is None else {"PILOTHOUSE_DEMO_PACE": PACE}
        async with spawn_agent_process(
            cast(Client, self._client),
            sys.executable,
            "-m",
            "pilothouse.cli",
            "demo-agent",
            cwd=self._workspace.root,
            env=environment,
            on_diagnostic=self._screen.diagnostic,
        ) as (connection, _):
            self._connection = connection
            try:
                await connection.initialize(client_capabilities=self._client.capabilities)
                self._session = (await connection.new_session(cwd=str(self._workspace.root))).session_id
                if prompt:
                    await self._turn(prompt)
                elif self._keyboard is None:
                    await self._turn("tour")
                else:
                    await self._talk(self._keyboard)
            except ConnectionClosed as exc:
                self._screen.end(str(exc))
                return exc
        return None

    async def _talk(self, keyboard: Keyboard) -> None:
        while True:
            self._screen.console.print()
            self._screen.ask("›")
            line = await keyboard.line()
            if line is None or line.strip().lower() in ("quit", "exit"):
                return
            self._interrupts = 0
            self._failed = False
            await self._turn(line.strip() or "tour")

    async def _turn(self, text: str) -> None:
        self._busy = True
        if self._keyboard is not None:
            self._keyboard.quiet()
        self._screen.begin()
        try:
            self._screen.end(await self._connection.prompt(session_id=self._session, prompt=[text_block(text)]))
        except RequestError as exc:
            self._failed = True
            self._screen.end(f"error {exc.code}: {exc}")
        finally:
            self._busy = False

    def _interrupt(self) -> None:
        """Ctrl-C: the first one ends the turn, the second one everything."""
        self._interrupts += 1
        if self._interrupts > 1:
            self._task.cancel()
        elif self._busy:
            self._screen.interrupted()
            self._client.cancel_question()
            self._cancelling = asyncio.ensure_future(self._connection.cancel(session_id=self._session))
        else:
            self._screen.note("Ctrl-C again leaves.")
            self._screen.ask("›")
