"""A session as a conversation in the terminal sees it: one of this process's own hub, or one of a hub elsewhere.

`Side` is all that a conversation needs. A session of a hub elsewhere (`RemoteSession`) fits as it is, but for taking
a prompt back; `Here` and `There` make both the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ...hub.errors import DecidedOtherwise, IllegalCommand, UnknownApproval, Unsupported
from ...hub.session.session import HubSession
from ...model.commands import OfferId, Remember
from ...model.events import ApprovalResolvedEvent, CustomEvent, Event
from ...remote.errors import Conflict, NotFound, Refused
from ...remote.session import RemoteSession

REFUSALS = frozenset({IllegalCommand.code, Unsupported.code, "invalid"})
"""Codes of the hub for a decision that it does not accept."""
PATIENCE = 10.0
"""Seconds that a terminal waits for a hub that went away without a word; long enough to start it again by hand."""


class Stored(Protocol):
    """An event as the log has it."""

    @property
    def seq(self) -> int: ...
    @property
    def data(self) -> bytes: ...


class Sent(NamedTuple):
    """A prompt that was accepted. `done` is there in this process's own hub: it fails when the log does."""

    turn_id: str
    done: asyncio.Future[Any] | None = None


class DecisionRefused(Exception):
    """The hub did not accept a decision or an answer; the message says why. The request is still pending."""


class Side(Protocol):
    """One session. Decisions and cancellations that come too late are no errors: the events say what happened."""

    id: str
    agent_name: str
    cwd: str
    is_elsewhere: bool

    def follow(self, after: int, lost: Callable[[], None] | None = None) -> AsyncGenerator[Sequence[Stored], None]: ...
    async def start(self) -> None: ...
    async def send(self, text: str) -> Sent: ...
    async def withdraw(self, turn_id: str) -> None: ...
    async def cancel(self) -> None: ...
    async def decide(
        self,
        request_id: str,
        *,
        approved: bool | None,
        option_id: str | None,
        reason: str | None,
        by: str | None,
        remember: Remember,
        rule: OfferId | None = None,
        answers: Mapping[str, str | list[str]] | None = None,
    ) -> dict[str, Any]:
        """The decision as it is stored, with the `rule` that was made or the `ruleRefusal`; empty if it came too late.

        Raises DecisionRefused.
        """
        ...

    async def answer(self, question_id: str, answer: Any) -> None: ...
    async def rename(self, title: str | None) -> None: ...


def settled_by(event: Event) -> str | None:
    """The approval or question that an event settles."""
    if isinstance(event, ApprovalResolvedEvent):
        return event.request_id
    if isinstance(event, CustomEvent) and event.event_name == "question_answered":
        return str(event.data.get("questionId"))
    return None


def begins(event: Event, turn_id: str) -> bool:
    """Whether an event begins that turn."""
    if not isinstance(event, CustomEvent) or event.event_name != "turn_started":
        return False
    return bool(event.data.get("turnId") == turn_id)


class Here:
    """A session of this process's own hub."""

    is_elsewhere = False

    def __init__(self, session: HubSession) -> None:
        self._session = session
        self.id, self.agent_name, self.cwd = session.id, session.agent_name, session.cwd

    async def follow(
        self, after: int, lost: Callable[[], None] | None = None
    ) -> AsyncGenerator[Sequence[Stored], None]:
        async for batch in self._session.follow(after):
            yield batch

    async def start(self) -> None:
        """Raises AgentFailed."""
        await self._session.start()

    async def send(self, text: str) -> Sent:
        """Raises HubError."""
        prompt = await self._session.send(text)
        return Sent(prompt.turn_id, prompt.done)

    async def withdraw(self, turn_id: str) -> None:
        try:
            self._session.cancel_queued(turn_id)
        except IllegalCommand:  # it has its turn by now
            await self._session.cancel()

    async def cancel(self) -> None:
        await self._session.cancel()

    async def decide(self, request_id: str, *, by: str | None, **decision: Any) -> dict[str, Any]:
        try:
            return (await self._session.decide(request_id, by=by or "user", **decision)).decision or {}
        except (UnknownApproval, DecidedOtherwise):
            return {}
        except (IllegalCommand, Unsupported) as exc:
            raise DecisionRefused(str(exc)) from exc

    async def answer(self, question_id: str, answer: Any) -> None:
        """Raises DecisionRefused."""
        try:
            self._session.answer(question_id, answer)
        except (UnknownApproval, DecidedOtherwise):
            pass
        except (IllegalCommand, Unsupported) as exc:
            raise DecisionRefused(str(exc)) from exc

    async def rename(self, title: str | None) -> None:
        self._session.rename(title)


def _raise_unless_late(exc: Refused) -> None:
    """Let a decision that came too late pass. Raises DecisionRefused for one that the hub does not accept."""
    if exc.code in REFUSALS:
        raise DecisionRefused(str(exc)) from exc
    if not isinstance(exc, NotFound | Conflict):
        raise exc


class There:
    """A session of a hub in another process."""

    is_elsewhere = True

    def __init__(self, session: RemoteSession) -> None:
        self._session = session
        self.id, self.agent_name, self.cwd = session.id, session.agent_name, session.cwd

    def follow(self, after: int, lost: Callable[[], None] | None = None) -> AsyncGenerator[Sequence[Stored], None]:
        """Raises ConnectionLost. `lost` is called when the hub went away and is waited for."""
        return self._session.follow(after, patience=PATIENCE, lost=lost)

    async def start(self) -> None:
        """The first prompt does it."""

    async def send(self, text: str) -> Sent:
        """Raises Refused."""
        return Sent((await self._session.send(text)).turn_id)

    async def withdraw(self, turn_id: str) -> None:
        try:
            await self._session.command({"command": "cancel_queued", "promptId": turn_id})
        except Conflict:  # it has its turn by now
            await self._session.cancel()

    async def cancel(self) -> None:
        await self._session.cancel()

    async def decide(self, request_id: str, **decision: Any) -> dict[str, Any]:
        try:
            return (await self._session.decide(request_id, **decision)).get("decision") or {}
        except Refused as exc:
            _raise_unless_late(exc)
            return {}

    async def answer(self, question_id: str, answer: Any) -> None:
        """Raises DecisionRefused."""
        try:
            await self._session.answer(question_id, answer)
        except Refused as exc:
            _raise_unless_late(exc)

    async def rename(self, title: str | None) -> None:
        await self._session.rename(title)
