"""Pending approvals and questions of one conversation, decided by an option of the command or by the user."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...dialects.texts import title_of
from ...model.events import ApprovalRequestedEvent, Event, UserQuestionEvent, decode_event
from ...model.policy import decide
from ...model.records import CommandPreview, DiffPreview
from ...terminal.asking import Verdict, ask_approval, ask_question
from ...terminal.keyboard import Keyboard
from ...terminal.screen import Screen
from ..output import say
from .backends import DecisionRefused, Side, settled_by


class Manners(Struct, frozen=True, kw_only=True):
    """How a conversation is held.

    `parks`: what nobody here can answer is left to others, not denied, if the hub is elsewhere. `echo`: prompts are
    shown. `hint` says what Ctrl-C does.
    """

    as_json: bool = False
    approve_all: bool = False
    approve_reads: bool = False
    parks: bool = False
    echo: bool = False
    hint: str = "Ctrl-C stops"


CLAIM = 0.3
"""Seconds to wait for the approval that a tool's question belongs to."""
UNANSWERED = "This request has questions, and there is no terminal to answer them on."
READS = {"autoApprove": {"reads": True, "searches": True}}
NO_TERMINAL = "There is no terminal to ask on, and no option or rule allows it."
Ask = ApprovalRequestedEvent | UserQuestionEvent


class Asks:
    """The pending approvals and questions of one conversation. Without a keyboard no user is asked."""

    denied = False
    """Whether something was denied because there was no user to ask."""

    def __init__(
        self, manners: Manners, screen: Screen | None, keyboard: Keyboard | None, is_stopped: Callable[[], bool]
    ) -> None:
        """`is_stopped`: whether the turn is being stopped; then a decision that was made meanwhile is not sent."""
        self._manners = manners
        self._is_stopped = is_stopped
        self._screen = screen
        self._keyboard = keyboard
        self._waiting: dict[str, Ask] = {}
        self._questions: dict[str, UserQuestionEvent] = {}
        """All pending questions, including those that the user was already asked."""
        self._asking: asyncio.Task[Any] | None = None
        self._side: Side
        self._seq = 0

    @property
    def is_asking(self) -> bool:
        """Whether the user is being asked now."""
        return self._asking is not None

    @property
    def are_seen_to(self) -> bool:
        return not self._waiting

    def stop(self) -> None:
        """Ask no longer."""
        if self._asking is not None:
            self._asking.cancel()

    def learn(self, event: Event) -> None:
        """Add the approval or question that an event opens, or drop the one that it settles."""
        if isinstance(event, ApprovalRequestedEvent):
            self._waiting[event.request_id] = event
        elif isinstance(event, UserQuestionEvent):
            self._waiting[event.question_id] = self._questions[event.question_id] = event
        elif (settled := settled_by(event)) is not None:
            self._waiting.pop(settled, None)
            self._questions.pop(settled, None)

    async def see_to(self, side: Side, seq: int) -> None:
        """Decide all pending approvals and answer all pending questions; `seq` is the last event that was drawn."""
        self._side, self._seq = side, seq
        approvals = [event for event in self._waiting.values() if isinstance(event, ApprovalRequestedEvent)]
        for approval in approvals:
            del self._waiting[approval.request_id]
            for question_id in approval.question_ids:
                self._waiting.pop(question_id, None)
            questions = [self._questions[one] for one in approval.question_ids if one in self._questions]
            while not await self._approve(approval, questions):
                pass
        for ask_id, event in tuple(self._waiting.items()):
            del self._waiting[ask_id]
            if isinstance(event, UserQuestionEvent):
                await self._answer(event)

    async def _approve(self, event: ApprovalRequestedEvent, questions: Sequence[UserQuestionEvent]) -> bool:
        """Decide one approval; False if the hub refused the user's decision, so that the user must decide again."""
        by: str | None = None
        verdict: Verdict | None
        if self._manners.approve_all and not event.question_ids:
            verdict, by = Verdict(approved=True), "--approve-all"
        elif self._manners.approve_reads and not event.question_ids and self._only_reads(event):
            verdict, by = Verdict(approved=True), "--approve-reads"
        elif self._screen is not None and self._keyboard is not None:
            asking = ask_approval(self._screen, self._keyboard, event, questions)
            verdict = await self._asked(asking, event.request_id)
        elif self._manners.parks and self._side.is_elsewhere:
            self._report_parked(event)
            return True
        else:
            self.denied = self.denied or not (event.question_ids and self._manners.approve_all)
            verdict, by = (
                Verdict(approved=False, reason=UNANSWERED if event.question_ids else NO_TERMINAL),
                "pilothouse run",
            )
        if verdict is None or self._is_stopped():
            return True
        refusal = await self._send(event, verdict, by)
        if refusal is None or not verdict.approved:
            return True
        if by is None:
            return False
        self.denied = True  # an option cannot decide again, and a request must not stay open without a user to ask
        await self._send(event, Verdict(approved=False, reason=refusal), by)
        return True

    async def _send(self, event: ApprovalRequestedEvent, verdict: Verdict, by: str | None) -> str | None:
        """Send a decision and report the rule that it stored; returns why the hub did not accept it, or None."""
        try:
            decision = await self._side.decide(
                event.request_id,
                approved=verdict.approved if verdict.option_id is None else None,
                option_id=verdict.option_id,
                reason=verdict.reason,
                by=by,
                remember=verdict.remember,
                rule=verdict.rule,
                answers=verdict.answers,
            )
        except DecisionRefused as exc:
            self._say(f"The hub did not accept this: {exc}")
            return str(exc)
        if (verdict.remember, verdict.option_id) != ("once", None) and (line := describe_stored_rule(decision)):
            self._say(line)
        return None

    def _report_parked(self, event: ApprovalRequestedEvent) -> None:
        """Print the commands that decide an approval from another terminal."""
        answer = " --answer TEXT" if event.question_ids else ""
        ways = f"`pilothouse approve {event.request_id}{answer}` or `pilothouse deny {event.request_id}`"
        say(f"Waiting for a decision: {title_of(event.description or event.tool_name)}. Decide with: {ways}", err=True)

    def _say(self, text: str) -> None:
        if self._screen is not None:
            self._screen.say(f"  {text}", "yellow")
        else:
            say(title_of(text), err=True)

    def _only_reads(self, event: ApprovalRequestedEvent) -> bool:
        if isinstance(event.preview, CommandPreview | DiffPreview):
            return False  # whatever its input says, the hub shows that it does more
        return decide(READS, event.tool_name, event.tool_input, self._side.cwd).allowed

    async def _answer(self, event: UserQuestionEvent) -> None:
        """Ask a question that belongs to no approval. One that a tool asks may get its approval a moment later."""
        answer: Any = None
        if _is_of_tool(event) and await self._is_claimed(event):
            self._waiting[event.question_id] = event  # it is asked with the approval, once that is drawn
            return
        if self._screen is not None and self._keyboard is not None:
            found = await self._asked(_boxed(ask_question(self._screen, self._keyboard, event)), event.question_id)
            if found is None:  # it is settled, or belongs to an approval by now: an event that follows says which
                self._waiting[event.question_id] = event
                return
            (answer,) = found
        elif self._manners.parks and self._side.is_elsewhere:
            what = title_of(event.question)
            say(f"Waiting for an answer: {what} `pilothouse attach {self._side.id}` at a terminal asks it.", err=True)
            return
        if self._is_stopped():
            return
        try:
            await self._side.answer(event.question_id, answer)
        except DecisionRefused as exc:
            self._say(f"The hub did not accept this: {exc}")

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
        """Return when another client has settled this, or when an approval lists it as a question of its own."""
        await self._watch_for(ask_id, lambda event: settled_by(event) == ask_id or _claims(event, ask_id))

    async def _is_claimed(self, question: UserQuestionEvent) -> bool:
        """Whether an approval follows at once that lists this question as its own."""
        question_id = question.question_id
        try:
            async with asyncio.timeout(CLAIM):
                return await self._watch_for(question_id, lambda event: _claims(event, question_id))
        except TimeoutError:
            return False

    async def _watch_for(self, ask_id: str, is_wanted: Callable[[Event], bool]) -> bool:
        """Wait for an event that names this approval or question and is wanted; False if the events end before."""
        mark = msgspec.json.encode(ask_id)
        async with contextlib.aclosing(self._side.follow(self._seq)) as batches:
            async for batch in batches:
                for entry in batch:
                    if mark in entry.data and is_wanted(decode_event(entry.data)):
                        return True
        return False


async def ended(task: asyncio.Future[Any]) -> None:
    """Stop a task. Its error does not matter any more: the session's events show what happened."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()


def describe_stored_rule(decision: Mapping[str, Any]) -> str:
    """The reach of the rule that a decision stored, or why it stored none; empty if the hub names neither."""
    rule, refusal = decision.get("rule"), decision.get("ruleRefusal")
    if isinstance(rule, Mapping):
        return f"Rule stored: {rule.get('text')}"
    return f"No rule was stored: {refusal}" if refusal else ""


def _claims(event: Event, question_id: str) -> bool:
    return isinstance(event, ApprovalRequestedEvent) and question_id in event.question_ids


def _is_of_tool(event: UserQuestionEvent) -> bool:
    """Whether a tool call asks this by its input, not by a request of its own."""
    return event.tool_call_id is not None and event.question_id.startswith(f"{event.tool_call_id}:")


async def _boxed(question: Coroutine[Any, Any, Any]) -> tuple[Any]:
    """Wrap an answer, so that the answer None differs from no answer."""
    return (await question,)
