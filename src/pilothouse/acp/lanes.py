"""The order of work: one lane per session.

Updates of a session are handled one at a time in the order they were received. What must not overtake them (the
answer to a prompt, a permission request about a tool call just announced) queues in the same lane. Lanes of
different sessions do not wait for each other, and a lane exists only while it has work.

Two things must never wait behind a handler, or both sides would wait for ever: the answer to a call that this very
handler made, and requests of the peer that arrive meanwhile. `nested` counts such calls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

__all__ = ["Backlog", "Call", "Lane", "Updates", "handling"]

Handler = Callable[..., Awaitable[Any]]

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

    __slots__ = ("fn", "meta_arguments", "notifications", "weight")

    def __init__(self, fn: Handler, meta_arguments: Callable[[Any], dict[str, Any]]) -> None:
        self.fn = fn
        self.meta_arguments = meta_arguments
        self.notifications: list[Any] = []
        self.weight = 0


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

    __slots__ = ("_backlog", "_current", "_failed", "_items", "_on_empty", "key", "nested", "task")

    def __init__(
        self,
        key: str,
        backlog: Backlog,
        failed: Callable[[Handler, Exception], None],
        on_empty: Callable[[Lane], None],
    ) -> None:
        self.key = key
        self.nested = 0
        self.task: asyncio.Task[None] | None = None
        self._items: deque[Call | Updates | Callable[[], Any]] = deque()
        self._backlog = backlog
        self._current: Any = None
        self._failed = failed
        self._on_empty = on_empty

    @property
    def busy(self) -> bool:
        """Whether something is being handled that later arrivals have to wait for."""
        return self.task is not None and not self.nested

    def put(self, item: Call | Updates | Callable[[], Any]) -> None:
        """Queue notifications, or an action to be done when everything before it has been handled.

        An action that answers true has started a task, which gets to take its first step.
        """
        self._items.append(item)
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._run(), name=f"acp lane {self.key}")

    def is_handling(self, notification: Any) -> bool:
        return notification is not None and notification is self._current

    async def _run(self) -> None:
        items = self._items
        try:
            while items:
                item = items.popleft()
                if isinstance(item, Updates):
                    await self._run_updates(item)
                elif isinstance(item, Call):
                    self._current = item
                    handling.set(item)
                    try:
                        await item.fn(**item.kwargs)
                    except Exception as exc:
                        self._failed(item.fn, exc)
                    self._current = None
                    self._backlog.shrink(item.weight)
                elif item():
                    await asyncio.sleep(0)
        finally:
            self._current = None
            self.task = None
            self._on_empty(self)

    async def _run_updates(self, run: Updates) -> None:
        fn = run.fn
        set_handling = handling.set
        for notification in run.notifications:
            self._current = notification
            set_handling(notification)
            try:
                if notification.field_meta is None:
                    await fn(session_id=notification.session_id, update=notification.update)
                else:
                    await fn(**run.meta_arguments(notification))
            except Exception as exc:
                self._failed(fn, exc)
        self._current = None
        self._backlog.shrink(run.weight)
