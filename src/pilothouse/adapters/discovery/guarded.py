"""A session of a package's adapter, behind a guard: what it raises in mid-stream is heard of and disturbs nobody.

Whatever an adapter does is done in threads of its own. The rule a change must not break: one that blocks there holds up
nobody but those who want something of it, and these not for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from ...model.capabilities import ACPCapabilities
from ...model.commands import Command
from ...model.events import Event
from ..contract import AdapterError, AgentSession, OnEvent, Stop

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds that an adapter has to tell what was, and to let go."""
BRIEF = 1.0
"""The same to take a listener, for which a loop waits."""


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


class OwnLoop:
    """A loop in a thread of its own, for what an adapter does for as long as something of it is in use. `end` it."""

    def __init__(self) -> None:
        begun: list[asyncio.AbstractEventLoop] = []
        is_begun, self._is_over = threading.Event(), asyncio.Event()

        async def live() -> None:
            begun.append(asyncio.get_running_loop())
            is_begun.set()
            await self._is_over.wait()

        self._thread = threading.Thread(target=lambda: asyncio.run(live()), daemon=True, name="an adapter of a package")
        self._thread.start()
        is_begun.wait()
        self._loop = begun[0]

    @property
    def is_alive(self) -> bool:
        """Whether something is done there, though it may have been told to end."""
        return self._thread.is_alive()

    def begin(self, work: Callable[[], Any]) -> Future[Any]:
        """Do work there, which may be awaited; its outcome."""

        async def run() -> Any:
            try:
                outcome = work()
                return await outcome if inspect.isawaitable(outcome) else outcome
            except SystemExit as exc:  # as such it would end the loop
                raise RuntimeError(reason_of(exc)) from None

        return asyncio.run_coroutine_threadsafe(run(), self._loop)

    async def do(self, work: Callable[[], Any], patience: float = PATIENCE) -> Any:
        """The same, awaited here. Raises what it raises, and TimeoutError."""
        async with asyncio.timeout(patience):
            return await asyncio.wrap_future(self.begin(work))

    def end(self) -> None:
        """What is under way there is cancelled, and what blocks there is left alone. Again is no harm."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._is_over.set)


class GuardedSession(AgentSession):
    """The same session, which lives in a loop of its own; of all that goes wrong only AdapterError comes out, and from
    callbacks nothing."""

    def __init__(self, agent: str, session: AgentSession, own: OwnLoop) -> None:
        self._agent = agent
        self._own = own
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
            stop = self._own.begin(lambda: self._session.on_event(heard)).result(BRIEF)
        except Exception as exc:
            raise AdapterError(self._said("cannot be followed", exc)) from exc
        return guarded_stop(stop, self._agent, self._own)

    async def execute(self, command: Command) -> None:
        try:
            await asyncio.wrap_future(self._own.begin(lambda: self._session.execute(command)))
        except AdapterError:
            raise
        except Exception as exc:
            raise AdapterError(self._said("did not carry out the command", exc)) from exc

    async def get_history(self) -> list[Event]:
        try:
            history = await self._own.do(self._session.get_history)
            return [event for event in history if isinstance(event, Event)]
        except Exception as exc:
            raise AdapterError(self._said("has no history", exc)) from exc

    async def detach(self) -> None:
        try:
            await self._own.do(self._session.detach)
        except Exception as exc:
            logger.warning("%s", self._said("could not be detached", exc))
        finally:
            self._own.end()

    def _said(self, what: str, exc: BaseException) -> str:
        return f"session {self._id!r} of {self._agent} {what}: {reason_of(exc)}"


def guarded_stop(stop: Stop, agent: str, own: OwnLoop) -> Stop:
    """The end of a subscription that was made in a loop of its own: it neither raises nor waits."""

    def stopped() -> None:
        try:
            stop()
        except (Exception, SystemExit) as exc:
            logger.warning("a subscription to %s could not be ended: %s", agent, reason_of(exc))

    def told() -> None:
        with contextlib.suppress(RuntimeError):  # that loop has ended
            own.begin(stopped)

    return told
