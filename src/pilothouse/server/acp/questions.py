"""An agent's questions, put to one ACP client among others: the first answer, from whomever, wins.

A question goes to every client that may answer it. When it is settled elsewhere the request is withdrawn
(`$/cancel_request`), and an answer that still comes is ignored. A client that goes away, cannot ask or answers
`cancelled` has decided nothing. One that cannot show a form, or answers with something that was not offered, is told,
and only it, that a question waits elsewhere. Where there is no elsewhere, what is not decided is a no.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec import Raw

from ...acp.errors import METHOD_NOT_FOUND, ConnectionClosed, RequestError
from ...acp.schema import ClientCapabilities
from ...dialects.acp.requests import elicitation_mode, elicitation_request, permission_request
from ...dialects.texts import shorten_middle, title_of
from ...hub.errors import HubError
from ...hub.hub import Hub
from ...hub.session.session import HubSession
from ...log.errors import LogError
from ...model.events import ApprovalRequestedEvent, UserQuestionEvent
from ..auth import audit
from ..auth.callers import Caller

logger = logging.getLogger(__name__)

Request = Callable[[str, Any], Awaitable[Raw | None]]
"""Call the client; cancelling the call withdraws it."""

ELSEWHERE = (
    "A question waits for you, and this editor {why}. Answer it in the browser, on your phone, or with "
    "`pilothouse attach {session_id}`"
)
CANNOT = "cannot show it"
DID_NOT = "gave no answer that could be used"
NO_OPTION = "The request has no option that an editor may offer."
DECLINED = "A question was declined, because this editor cannot show it"
LONGEST = 500


class Asking:
    """The questions of one session for one client. Until `go_live` they are only gathered."""

    def __init__(
        self,
        hub: Hub,
        session_id: str,
        request: Request,
        *,
        caller: Caller,
        capabilities: ClientCapabilities,
        alone: bool = False,
    ) -> None:
        """`alone`: nobody else can answer, so what this client cannot show is declined at once."""
        self._hub = hub
        self._session_id = session_id
        self._request = request
        self._caller = caller
        self.capabilities = capabilities
        self._alone = alone
        self.dress: Callable[[dict[str, Any]], dict[str, Any]] = lambda call: call
        """How a tool call is shown to the client."""
        self.hint: Callable[[int, str, str], None] = lambda seq, title, text: None
        """Tell the client something of an event that is in no log."""
        self._open: dict[str, ApprovalRequestedEvent | UserQuestionEvent] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._deciding: set[asyncio.Task[None]] = set()
        self.is_live = False

    def asked(self, event: ApprovalRequestedEvent | UserQuestionEvent) -> None:
        """The agent asks."""
        if not self._caller.may("approve"):
            return
        self._open[_id(event)] = event
        if self.is_live:
            self._ask(event)

    def settled(self, question_id: str) -> None:
        """It has its answer."""
        self._open.pop(question_id, None)
        task = self._waiting.pop(question_id, None)
        if task is not None:
            task.cancel()

    def go_live(self) -> None:
        """What is open now is asked, and from now on whatever comes."""
        self.is_live = True
        for event in list(self._open.values()):
            self._ask(event)

    async def close(self) -> None:
        """The client is gone, or leaves the session: its requests are withdrawn, decisions under way are finished."""
        self.is_live = False
        for task in self._waiting.values():
            task.cancel()
        tasks = {*self._waiting.values(), *self._deciding}
        self._waiting.clear()
        if tasks:
            await asyncio.wait(tasks)

    def _ask(self, event: ApprovalRequestedEvent | UserQuestionEvent) -> None:
        """Put the question, unless this client is being asked already or cannot be."""
        question_id = _id(event)
        if question_id in self._waiting:
            return
        if isinstance(event, ApprovalRequestedEvent):
            params = permission_request(event, self._session_id)
            if params is not None and isinstance(params.get("toolCall"), dict):
                params["toolCall"] = self.dress(params["toolCall"])
            ask = self._permission
            if params is None and self._alone:  # no other client could decide it
                params, ask = {}, self._deny
            elif params is None:
                self._say_where(question_id, CANNOT)
        else:
            params = elicitation_request(event, self._session_id)
            ask = self._elicitation
            if params is not None and not self._can_show(elicitation_mode(params)):
                self._hint(event)
                if not self._alone:
                    return
                ask = self._decline
        if params is not None:
            task = asyncio.get_running_loop().create_task(ask(question_id, params), name=f"asking {question_id}")
            self._waiting[question_id] = task

    def _hint(self, event: UserQuestionEvent) -> None:
        asked = f"The agent asks: {_one_line(event.question)}"
        if self._alone:
            self.hint(event.seq, DECLINED, asked)
        else:
            self.hint(event.seq, ELSEWHERE.format(why=CANNOT, session_id=self._session_id), asked)

    def _can_show(self, mode: str) -> bool:
        return getattr(self.capabilities.elicitation, mode, None) is not None

    async def _permission(self, question_id: str, params: dict[str, Any]) -> None:
        answer = await self._answer("session/request_permission", params)
        if answer is None:
            return
        given = answer.get("outcome")
        outcome: dict[str, Any] = given if isinstance(given, dict) else {}
        option = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
        if isinstance(option, str) and any(option == one["optionId"] for one in params["options"]):
            await self._settle(question_id, partial(self._decide, question_id, option_id=option))
        elif outcome.get("outcome") == "cancelled":
            if self._alone:  # by which the protocol means that the turn is
                await self._settle(question_id, _cancel)
        elif self._alone:
            await self._settle(question_id, partial(self._decide, question_id, approved=False, reason=DID_NOT))
        else:
            self._say_where(question_id, DID_NOT)

    async def _deny(self, question_id: str, params: dict[str, Any]) -> None:
        """Deny a request that has no option to offer."""
        await self._settle(question_id, partial(self._decide, question_id, approved=False, reason=NO_OPTION))

    async def _decide(self, question_id: str, session: HubSession, **decision: Any) -> None:
        who = self._caller
        audit.decided(who, await session.decide(question_id, **decision, by=who.name, device_id=who.device_id))

    def _say_where(self, question_id: str, why: str) -> None:
        """Show the client where to decide an approval that it cannot decide, or did not."""
        event = self._open.get(question_id)
        if isinstance(event, ApprovalRequestedEvent):
            title = ELSEWHERE.format(why=why, session_id=self._session_id)
            with contextlib.suppress(ConnectionClosed):
                self.hint(event.seq, title, f"The agent asks: {_one_line(event.description or event.tool_name)}")

    async def _elicitation(self, question_id: str, params: dict[str, Any]) -> None:
        answer = await self._answer("elicitation/create", params)
        if answer is None:
            return
        action, content = answer.get("action"), answer.get("content")
        if action not in ("accept", "decline"):
            if self._alone:
                await self._decline(question_id, params)
            return

        async def tell(session: HubSession) -> None:
            self._tell(session, question_id, content if action == "accept" else None, action)
            await session.committed()
            audit.record(
                "question_answered",
                self._caller,
                sessionId=self._session_id,
                questionId=question_id,
                answer=action,
            )

        await self._settle(question_id, tell)

    async def _decline(self, question_id: str, params: dict[str, Any]) -> None:
        async def tell(session: HubSession) -> None:
            self._tell(session, question_id, None, "decline")
            await session.committed()

        await self._settle(question_id, tell)

    def _tell(self, session: HubSession, question_id: str, answer: Any, action: Literal["accept", "decline"]) -> None:
        session.answer(question_id, answer, action=action, by=self._caller.name, device_id=self._caller.device_id)

    async def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """What the client says; empty when it says nothing of use, None when it is gone or leaves such to others."""
        try:
            raw = await self._request(method, params)
            value = msgspec.json.decode(raw) if raw is not None else None
        except ConnectionClosed:
            return None
        except (RequestError, msgspec.DecodeError, UnicodeError, RecursionError) as exc:
            if isinstance(exc, RequestError) and exc.code == METHOD_NOT_FOUND:
                return {} if self._alone else None
            logger.info("%s of session %s was not answered: %s", method, self._session_id, exc)
            return {}
        return value if isinstance(value, dict) else {}

    async def _settle(self, question_id: str, decide: Callable[[HubSession], Awaitable[None]]) -> None:
        """Tell the session. From here on it is no longer withdrawn: what was decided is carried through."""
        task = self._waiting.pop(question_id, None)
        if task is None:
            return  # settled elsewhere, or closed, in this very moment
        self._deciding.add(task)
        try:
            await decide(await self._hub.session(self._session_id))
        except (HubError, LogError) as exc:
            logger.info("%s was answered by %s to no effect: %s", question_id, self._caller.name, exc)
        finally:
            self._deciding.discard(task)


def _id(event: ApprovalRequestedEvent | UserQuestionEvent) -> str:
    return event.request_id if isinstance(event, ApprovalRequestedEvent) else event.question_id


async def _cancel(session: HubSession) -> None:
    await session.cancel()


def _one_line(text: str) -> str:
    return shorten_middle(title_of(text), LONGEST)
