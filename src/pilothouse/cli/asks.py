"""What a session asks of the person at the terminal: approvals and questions, decided here by options, by that person,
or by nobody; somebody elsewhere may be quicker.

While a person is asked, drawing waits; a second follower looks meanwhile whether somebody else decides. Whatever is
not allowed by an option or a person is denied, never allowed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, cast

from ..model.events import ApprovalRequestedEvent, Event, UserQuestionEvent, decode_event
from ..model.policy import decide
from ..terminal.asking import Verdict, ask_approval, ask_question
from ..terminal.keyboard import Keyboard
from ..terminal.screen import Screen
from ..terminal.texts import title_of
from .manners import Manners
from .output import say
from .sides import Remember, Side, settled_by

__all__ = ["Asks", "ended"]

READS = {"autoApprove": {"reads": True, "searches": True}}
NOBODY = "There is no terminal to ask on, and no option or rule allows it."
Ask = ApprovalRequestedEvent | UserQuestionEvent


class Asks:
    """What waits for a decision in one conversation. Without a keyboard nobody is asked."""

    denied = False
    """Whether something was denied because there was nobody to ask."""

    def __init__(
        self, manners: Manners, screen: Screen | None, keyboard: Keyboard | None, is_stopped: Callable[[], bool]
    ) -> None:
        """`is_stopped`: whether the turn is being stopped; then what was decided meanwhile is not sent."""
        self._manners = manners
        self._is_stopped = is_stopped
        self._screen = screen
        self._keyboard = keyboard
        self._waiting: dict[str, Ask] = {}
        self._asking: asyncio.Task[Any] | None = None
        self._side: Side
        self._seq = 0

    @property
    def is_asking(self) -> bool:
        """Whether a person is asked right now."""
        return self._asking is not None

    @property
    def are_seen_to(self) -> bool:
        return not self._waiting

    def stop(self) -> None:
        """Ask no longer."""
        if self._asking is not None:
            self._asking.cancel()

    def learn(self, event: Event) -> None:
        """What an event asks, or settles."""
        if isinstance(event, ApprovalRequestedEvent):
            self._waiting[event.request_id] = event
        elif isinstance(event, UserQuestionEvent):
            self._waiting[event.question_id] = event
        elif (settled := settled_by(event)) is not None:
            self._waiting.pop(settled, None)

    async def see_to(self, side: Side, seq: int) -> None:
        """Have all decided that waits; `seq` is the last event that was drawn."""
        self._side, self._seq = side, seq
        for ask_id, event in tuple(self._waiting.items()):
            del self._waiting[ask_id]
            if isinstance(event, ApprovalRequestedEvent):
                await self._approve(event)
            else:
                await self._answer(event)

    async def _approve(self, event: ApprovalRequestedEvent) -> None:
        by: str | None = None
        verdict: Verdict | None
        if self._manners.approve_all:
            verdict, by = Verdict(approved=True), "--approve-all"
        elif self._manners.approve_reads and self._only_reads(event):
            verdict, by = Verdict(approved=True), "--approve-reads"
        elif self._screen is not None and self._keyboard is not None:
            verdict = await self._asked(ask_approval(self._screen, self._keyboard, event), event.request_id)
        elif self._manners.parks and self._side.is_elsewhere:
            ways = f"`pilothouse approve {event.request_id}` or `pilothouse deny {event.request_id}`"
            say(f"Waiting for a decision: {title_of(event.description or event.tool_name)}. {ways} decides.", err=True)
            return
        else:
            self.denied = True
            verdict, by = Verdict(approved=False, reason=NOBODY), "pilothouse run"
        if verdict is not None and not self._is_stopped():
            await self._side.decide(
                event.request_id,
                approved=verdict.approved if verdict.option_id is None else None,
                option_id=verdict.option_id,
                reason=verdict.reason,
                by=by,
                remember=cast(Remember, verdict.remember),
            )

    def _only_reads(self, event: ApprovalRequestedEvent) -> bool:
        return decide(READS, event.tool_name, event.tool_input, self._side.cwd).allowed

    async def _answer(self, event: UserQuestionEvent) -> None:
        answer: Any = None
        if self._screen is not None and self._keyboard is not None:
            found = await self._asked(_boxed(ask_question(self._screen, self._keyboard, event)), event.question_id)
            if found is None:
                return
            (answer,) = found
        elif self._manners.parks and self._side.is_elsewhere:
            what = title_of(event.question)
            say(f"Waiting for an answer: {what} `pilothouse attach {self._side.id}` at a terminal asks it.", err=True)
            return
        if not self._is_stopped():
            await self._side.answer(event.question_id, answer)

    async def _asked(self, question: Coroutine[Any, Any, Any], ask_id: str) -> Any:
        """Ask with the region out of the way; None when it is settled elsewhere, or cancelled, meanwhile."""
        assert self._screen is not None
        self._screen.pause()
        asking = self._asking = asyncio.ensure_future(question)
        settled = asyncio.ensure_future(self._settled_elsewhere(ask_id))
        try:
            await asyncio.wait({asking, settled}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done() or asking.cancelled():
                self._screen.say("")  # the region must not begin where an answer would have stood
            return asking.result() if asking.done() and not asking.cancelled() else None
        finally:
            self._asking = None
            await ended(asking)
            await ended(settled)
            self._screen.resume()

    async def _settled_elsewhere(self, ask_id: str) -> None:
        mark = ask_id.encode()
        async with contextlib.aclosing(self._side.follow(self._seq)) as batches:
            async for batch in batches:
                for entry in batch:
                    if mark in entry.data and settled_by(decode_event(entry.data)) == ask_id:
                        return


async def ended(task: asyncio.Future[Any]) -> None:
    """End a task. What it failed with matters to nobody any more: the session's events say what happened."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()


async def _boxed(question: Coroutine[Any, Any, Any]) -> tuple[Any]:
    """An answer that may be None, told from no answer at all."""
    return (await question,)
