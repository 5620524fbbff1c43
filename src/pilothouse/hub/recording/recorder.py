"""The recorder of a session: what happens becomes events, which go into the log in order, many to a commit.

What is recorded in one turn of the loop, and while the batch before is on its way to the disk, goes into one batch.
Large batches are handed over without waiting, a bounded number at a time, so that an agent that talks fast is written
fast and one that talks faster than the disk is slowed down.

The rule a change must not break: `session` is what has been committed, and nothing else; of finished items it has the
newest. When the log refuses a batch,
nothing more is taken until `mend` has taken up the session from the log again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal

from ...dialects.acp import Translator
from ...log.contract import EventLog
from ...log.errors import LogError
from ...log.records import Change, SessionRecord
from ...model.events import ACPEvent, Event, NotificationEvent, SessionStatusChangedEvent, utc_now
from ...model.session import ACTIVE, Session, shed
from ..errors import NotStored
from .recovery import end_open

logger = logging.getLogger(__name__)

BATCH = 256
"""Events after which a batch is handed over at once: a row of the log. Neighbours wait for a batch, on the loop and at
the writer, so it is small."""
SHED = 200
NEWEST = 20
"""New items after which a session at work lets go of finished ones, and how many of the newest it keeps: later events
of a tool call may still look for it."""
UNDER_WAY = 2
"""Batches that may be on their way to the disk before the agent has to wait."""

Then = Callable[[], None]


class Recorder:
    """Appends a session's events and folds them, in the same order.

    `translator` makes the events; `failed` is called once, with the reason, when the log has refused a batch.
    """

    def __init__(
        self,
        log: EventLog,
        record: SessionRecord,
        session: Session,
        failed: Callable[[BaseException], None],
        shells: Sequence[str] = (),
    ) -> None:
        self._log = log
        self._id = record.id
        self._workspace = record.cwd
        self._failed = failed
        self._shells = tuple(shells)
        self.failure: BaseException | None = None
        self.waiting: Callable[[], Collection[str]] = tuple
        """The prompts whose turn will still come, whatever happens to the log."""
        self._batch: list[Event] = []
        self._also: list[Change] = []
        self._then: list[Then] = []
        self._scheduled = False
        self._under_way: list[asyncio.Future[None]] = []  # a few at most; an empty deque takes 600 bytes
        self._mending = asyncio.Lock()
        self._now: str | None = None
        self.touch()
        self._take_up(session, record.last_seq)

    def _take_up(self, session: Session, seq: int, period: int = 0) -> None:
        self.session = session
        self._shed_at = 0
        self._shed()
        self._expected = seq
        self.translator = Translator(
            self._id,
            workspace=self._workspace,
            status=session.status,
            usage=session.usage,
            cost=session.cost,
            plan_mode=session.plan_mode,
            prefix=f"{seq}." if seq else "",
            shells=self._shells,
        )
        self.translator.period = period

    def now(self) -> str:
        """The time, looked up once for all that happens in one turn of the loop."""
        if self._now is None:
            self._now = utc_now()
            self._schedule()
        return self._now

    def touch(self) -> None:
        """Something was done, whether or not there is an event of it."""
        self.touched = asyncio.get_running_loop().time()

    def record(self, events: Sequence[Event], *, also: Sequence[Change] = (), then: Then | None = None) -> None:
        """Take events; they are committed soon and in order, `also` with them, and then `then` is called.

        After a failure nothing is taken, and `then` is not called: whoever waits for it is told by `failed`.
        """
        if self.failure is not None:
            return
        self._batch += events
        self._also += also
        if then is not None:
            self._then.append(then)
        for event in events:
            if type(event) is SessionStatusChangedEvent:
                self._also.append(self._log.sessions.updating(self._id, status=event.to))
        if len(self._batch) >= BATCH:
            self._flush()
        else:
            self._schedule()

    def note(self, name: str, data: dict[str, Any], *, also: Sequence[Change] = ()) -> list[ACPEvent]:
        """Record something that only the hub knows."""
        events = self.translator.fact(name, data, self.now())
        self.record(events, also=also)
        return events

    def notify(self, level: Literal["info", "warning", "error", "success"], title: str, message: str) -> None:
        """Tell whoever follows the session something that no agent said."""
        session_id = self.session.id
        event = NotificationEvent(
            seq=0, session_id=session_id, timestamp=self.now(), level=level, title=title, message=message
        )
        self.record([event])

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._due)

    def _due(self) -> None:
        """Hand the batch over, unless one is on its way: the disk takes one after another, so this one may grow."""
        self._scheduled, self._now = False, None
        if not self._under_way:
            self._flush()

    def _flush(self) -> None:
        self._scheduled, self._now = False, None
        self.touch()  # here, and not for each event: a look at the clock can cost as much as all else
        batch, self._batch = self._batch, []
        also, self._also = self._also, []
        then, self._then = self._then, []
        if self.failure is not None or not (batch or also or then):
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            future = self._log.append_nowait(self._id, self._expected, batch, also=also)
        except Exception as exc:  # the log is closed, or an event cannot be written at all
            self._break(exc)
            return
        self._expected += len(batch)
        self._under_way.append(done)
        future.add_done_callback(partial(self._committed, done, batch, then))

    def _committed(
        self, done: asyncio.Future[None], batch: list[Event], then: list[Then], future: asyncio.Future[int]
    ) -> None:
        self._under_way.remove(done)
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self._break(error)
        else:
            self._apply(batch, then)
        if not self._under_way:
            self._flush()
        done.set_result(None)

    def _apply(self, batch: list[Event], then: list[Then]) -> None:
        """It is stored: fold it, and tell those who wait. A defect in one of these must not leave others waiting."""
        done = 0
        while done < len(batch):
            try:
                done += self.session.apply_next(batch, done)
            except Exception:
                logger.exception("session %s: event %d could not be folded", self._id, batch[done].seq)
                done += 1
        self._shed()
        for call in then:
            try:
                call()
            except Exception:
                logger.exception("session %s: whoever waited for the log failed", self._id)

    def _shed(self) -> None:
        """Keep what may still change and a little of what was last: the log has the rest."""
        session = self.session
        if session.status not in ACTIVE:
            shed(session)
        elif len(session.items) > self._shed_at:
            shed(session, newest=NEWEST)
        else:
            return
        self._shed_at = len(session.items) + SHED

    def _break(self, error: BaseException) -> None:
        if self.failure is None:
            if isinstance(error, LogError):  # it says all by its message, and whoever waits is told
                logger.info("session %s: the log refused a batch: %s", self._id, error)
            else:
                logger.error("session %s: the log refused a batch", self._id, exc_info=error)
            self.failure = error
            self._failed(error)

    @property
    def is_behind(self) -> bool:
        """Whether whoever records should `catch_up` first."""
        return len(self._under_way) > UNDER_WAY

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing waits to be stored, and nothing could not be."""
        return not (self._batch or self._also or self._then or self._under_way) and self.failure is None

    async def catch_up(self) -> None:
        """Wait until there is room for more."""
        while self.is_behind:
            await asyncio.wait((self._under_way[0],))

    async def settle(self) -> None:
        """Wait until what was recorded so far is committed, or refused."""
        self._flush()
        if self._under_way:
            await asyncio.wait((self._under_way[-1],))

    async def commit(self) -> int:
        """Wait until everything recorded so far is committed; the last seq. Raises NotStored."""
        self._flush()
        seq = self._expected
        if self._under_way:
            await asyncio.wait((self._under_way[-1],))
        if self.failure is not None:
            message = f"what happened could not be stored: {self.failure}"
            raise NotStored(message, sessionId=self._id) from self.failure
        return seq

    async def mend(self) -> None:
        """After a failure, take up the session from the log again; without one do nothing. Raises NotStored.

        What was open is ended by events, as after a restart of the hub, and the failure is told by one.
        """
        async with self._mending:
            if self.failure is None:
                return
            while self._under_way:
                await asyncio.wait((self._under_way[-1],))
            try:
                record = await self._log.sessions.get(self._id)
                session = await end_open(self._log, record, failure=self.failure, waiting=self.waiting())
            except Exception as exc:
                raise NotStored(f"the session cannot be taken up again: {exc}", sessionId=self._id) from exc
            self._take_up(session, session.seq, self.translator.period + 1)  # the decisions of the old one are over
            self.failure = None
