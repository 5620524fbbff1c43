"""The order of work: one lane per session.

Updates of a session are handled one at a time in the order they were received. What must not overtake them (the
answer to a prompt, a permission request about a tool call just announced) queues in the same lane. Lanes of
different sessions do not wait for each other, and a lane exists only while it has work.

Two things must never wait behind a handler that itself waits for the peer, or both sides would wait for ever: the
answer to its call, and requests of the peer. So while a handler has a call open (`nested`), requests are started at
once, those included that were queued before it made the call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Protocol

__all__ = ["Action", "Backlog", "Call", "Lane", "Updates", "handling"]

Handler = Callable[..., Awaitable[Any]]
Several = Callable[[list[Any]], int]
"""Handles as many of consecutive notifications, from the first on, as can be without waiting, and says how many."""

SLICE = 200
"""Updates after which a lane lets others have the loop: a session that floods must not make its neighbours wait."""

handling: ContextVar[Any] = ContextVar("pilothouse_acp_handling", default=None)
"""What is being handled in this context, if anything: a `Call` or a session notification."""


class Call:
    """A notification to be handled: `await fn(**kwargs)`."""

    __slots__ = ("fn", "kwargs", "session_id", "weight")

    def __init__(self, session_id: str, fn: Handler, kwargs: dict[str, Any], weight: int) -> None:
        self.session_id = session_id
        self.fn = fn
        self.kwargs = kwargs
        self.weight = weight


class Updates:
    """Consecutive `session/update` notifications of one session, decoded.

    They are by far the most frequent messages; taking them in runs keeps what is done for each one small.
    """

    __slots__ = ("fn", "meta_arguments", "notifications", "several", "weight")

    def __init__(
        self, fn: Handler, meta_arguments: Callable[[Any], dict[str, Any]], several: Several | None = None
    ) -> None:
        self.fn = fn
        self.meta_arguments = meta_arguments
        self.several = several
        self.notifications: list[Any] = []
        self.weight = 0


class Action(Protocol):
    """Something to be done when everything before it has been handled."""

    overtakes: bool
    """Whether it may go first while a handler waits for the peer."""

    def act(self) -> bool:
        """Do it; true when that has started a task, which then gets to take its first step."""
        ...

    def abandon(self) -> None:
        """The lane ends before its turn."""
        ...


class Backlog:
    """Counts what is received and not yet handled, in bytes.

    Above `limit` the connection stops receiving and sets `waiting`; `on_room` then tells it to go on, at half of
    the limit or as soon as a handler itself waits for an answer.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.nested = 0
        self.waiting = False
        self.on_room: Callable[[], None] = lambda: None

    @property
    def full(self) -> bool:
        return self.size > self.limit and not self.nested

    def shrink(self, weight: int) -> None:
        self.size -= weight
        if self.waiting and self.size * 2 <= self.limit:
            self.release()

    def release(self) -> None:
        if self.waiting:
            self.waiting = False
            self.on_room()


class Lane:
    """The queue of one session and the task that works it off."""

    __slots__ = ("_backlog", "_current", "_failed", "_items", "_on_empty", "_run_now", "key", "nested", "task")

    def __init__(
        self,
        key: str,
        backlog: Backlog,
        failed: Callable[[Handler, BaseException], None],
        on_empty: Callable[[Lane], None],
    ) -> None:
        self.key = key
        self.nested = 0
        self.task: asyncio.Task[None] | None = None
        self._items: deque[Call | Updates | Action] = deque()
        self._backlog = backlog
        self._current: Any = None
        self._run_now: Updates | None = None
        self._failed = failed
        self._on_empty = on_empty

    @property
    def busy(self) -> bool:
        """Whether something is being handled that later arrivals have to wait for."""
        return self.task is not None and not self.nested

    @property
    def current(self) -> Any:
        """What is being handled right now."""
        return self._current

    def put(self, item: Call | Updates | Action) -> None:
        """Queue notifications, or an action."""
        self._items.append(item)
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._run(), name=f"acp lane {self.key}")

    def enter_nested(self) -> None:
        """A handler of this lane has made a call."""
        self.nested += 1
        self._backlog.nested += 1
        self._backlog.release()
        if self.nested == 1:
            waiting, self._items = self._items, deque()
            for item in waiting:
                if isinstance(item, (Call, Updates)) or not item.overtakes:
                    self._items.append(item)
                else:
                    item.act()

    def leave_nested(self) -> None:
        self.nested -= 1
        self._backlog.nested -= 1

    def stop(self, spare: asyncio.Task[Any] | None) -> None:
        """Handle nothing more; what is being handled is cancelled, unless its task is to be spared."""
        self._drop_all()
        if self.task is not None and self.task is not spare:
            self.task.cancel()

    async def _run(self) -> None:
        try:
            while self._items:
                item = self._items.popleft()
                if isinstance(item, Updates):
                    await self._run_updates(item)
                elif isinstance(item, Call):
                    await self._run_call(item)
                elif item.act():
                    await asyncio.sleep(0)
        finally:
            self._current = None
            self.task = None
            self._drop_all()
            self._on_empty(self)

    async def _run_call(self, call: Call) -> None:
        self._current = call
        handling.set(call)
        try:
            await call.fn(**call.kwargs)
        except (Exception, asyncio.CancelledError) as exc:
            self._handler_failed(call.fn, exc)
        finally:
            self._current = None
            self._backlog.shrink(call.weight)

    async def _run_updates(self, run: Updates) -> None:
        self._run_now = run
        fn = run.fn
        notifications = run.notifications
        set_handling = handling.set
        done, pause = 0, SLICE
        try:
            while done < len(notifications):
                if done >= pause:
                    await asyncio.sleep(0)
                    pause = done + SLICE
                if run.several is not None and (taken := self._take_several(run, done, pause)):
                    done += taken
                    continue
                notification = self._current = notifications[done]
                done += 1
                set_handling(notification)
                try:
                    if notification.field_meta is None:
                        await fn(session_id=notification.session_id, update=notification.update)
                    else:
                        await fn(**run.meta_arguments(notification))
                except (Exception, asyncio.CancelledError) as exc:
                    self._handler_failed(fn, exc)
        finally:
            self._current = self._run_now = None
            self._backlog.shrink(run.weight)

    def _take_several(self, run: Updates, start: int, stop: int) -> int:
        assert run.several is not None
        try:
            return run.several(run.notifications[start:stop])
        except Exception as exc:
            self._failed(run.fn, exc)
            run.several = None  # one at a time then
            return 0

    def _handler_failed(self, fn: Handler, exc: BaseException) -> None:
        if isinstance(exc, asyncio.CancelledError) and self.task is not None and self.task.cancelling():
            raise exc  # this lane is being ended, not something that its handler awaited
        self._failed(fn, exc)

    def _drop_all(self) -> None:
        if self._run_now is not None:
            self._run_now.notifications.clear()
        items, self._items = self._items, deque()
        for item in items:
            if isinstance(item, (Call, Updates)):
                self._backlog.shrink(item.weight)
            else:
                item.abandon()
