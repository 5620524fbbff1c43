"""A session of a package's adapter, behind a guard: what it raises in mid-stream is heard of and disturbs nobody."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from ...model.capabilities import ACPCapabilities
from ...model.commands import Command
from ...model.events import Event
from ..base import AdapterError, AgentSession, OnEvent, Stop

__all__ = ["GuardedSession", "apart", "aside", "guarded_stop", "reason_of"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds that an adapter has to tell what was, and to let go."""


def reason_of(exc: BaseException) -> str:
    """What was raised, in words for a person."""
    if isinstance(exc, TimeoutError):
        return "it takes too long"
    return f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__


async def aside(work: Callable[..., T], *args: Any) -> T:
    """Do work that blocks in a thread of its own: one that never comes back must not keep the process from ending."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_exception(error) if error is not None else outcome.set_result(cast(T, result))

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = work(*args)
        except SystemExit as exc:  # as such it would end the loop
            error = RuntimeError(reason_of(exc))
        except Exception as exc:
            error = exc
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True, name="looking for sessions").start()
    return await outcome


async def apart(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The same for work that awaits, in a loop of that thread: if it blocks, nobody else waits for it.

    Whoever is cancelled here cancels it there.
    """
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    is_wanted = True

    async def run() -> T:
        task = asyncio.current_task()
        assert task is not None
        begun.append((asyncio.get_running_loop(), task))
        if not is_wanted:
            raise asyncio.CancelledError
        return await work()

    def contained() -> T:
        try:
            return asyncio.run(run())
        except asyncio.CancelledError:  # which is no exception for a thread
            raise AdapterError("it was cancelled") from None

    try:
        return await aside(contained)
    except asyncio.CancelledError:
        is_wanted = False
        for loop, task in begun:
            with contextlib.suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(task.cancel)
        raise


class GuardedSession(AgentSession):
    """The same session; of all that goes wrong only AdapterError comes out, and from callbacks nothing."""

    def __init__(self, agent: str, session: AgentSession) -> None:
        self._agent = agent
        self._session = session
        self._id = session.session_id

    @property
    def session_id(self) -> str:
        return self._id

    @property
    def capabilities(self) -> ACPCapabilities:
        return self._session.capabilities

    def on_event(self, callback: OnEvent) -> Stop:
        """Call back in this loop, whichever thread the adapter calls from."""
        loop = asyncio.get_running_loop()

        def tell(event: Event) -> None:
            try:
                callback(event)
            except Exception:  # whoever listens must not break the adapter either
                logger.exception("an event of %s could not be handled", self._agent)

        def heard(event: Any) -> None:
            if not isinstance(event, Event):
                logger.warning("%s told something that is no event: %.100r", self._agent, event)
            elif threading.get_ident() == here:
                tell(event)
            else:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(tell, event)

        here = threading.get_ident()
        try:
            stop = self._session.on_event(heard)
        except (Exception, SystemExit) as exc:
            raise AdapterError(self._said("cannot be followed", exc)) from exc
        return guarded_stop(stop, self._agent)

    async def execute(self, command: Command) -> None:
        try:
            await self._session.execute(command)
        except AdapterError:
            raise
        except (Exception, SystemExit) as exc:
            raise AdapterError(self._said("did not carry out the command", exc)) from exc

    async def get_history(self) -> list[Event]:
        try:
            async with asyncio.timeout(PATIENCE):
                history = await self._session.get_history()
            return [event for event in history if isinstance(event, Event)]
        except (Exception, SystemExit) as exc:
            raise AdapterError(self._said("has no history", exc)) from exc

    async def detach(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._session.detach()
        except (Exception, SystemExit) as exc:
            logger.warning("%s", self._said("could not be detached", exc))

    def _said(self, what: str, exc: BaseException) -> str:
        return f"session {self._id!r} of {self._agent} {what}: {reason_of(exc)}"


def guarded_stop(stop: Stop, agent: str) -> Stop:
    """The end of a subscription that never raises."""

    def stopped() -> None:
        try:
            stop()
        except (Exception, SystemExit) as exc:
            logger.warning("a subscription to %s could not be ended: %s", agent, reason_of(exc))

    return stopped
