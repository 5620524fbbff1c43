"""Questions of agents that somebody else runs, put to whoever is here: by Claude Code's hooks.

The question is an approval of the session that watches the one it comes from, and is answered as any other: by the
rules, or by a person. Its answer is given once that is decided. Who hangs up withdraws it. Only a decision is told as
one: what was cancelled, or not decided in time, is none, and then Claude Code asks its user itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import PurePath
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.json import encode

from ...acp.errors import RequestError
from ...acp.naming import camel
from ...agents.claude_bridge.permissions import OPTIONS, allows, denies, tool_call
from ...hub.errors import HubError, NotFound
from ...hub.session.session import HubSession
from ...log.errors import UnknownRecord
from ...model.discovery import DiscoveredSession
from ..errors import HttpError
from ..http.operations import Body, Call, Operation

AGENT = "claude"
TOLD = 1.0
"""Seconds that a question waits for what led to it."""
Name = Annotated[str, Meta(min_length=1, max_length=500)]
Directory = Annotated[str, Meta(min_length=1, max_length=4096, pattern="^/")]


class Question(Body):
    """What Claude Code wants to do. `toolCallId` is its own name of the call, where that is known; `oldText` what is
    in the file that a `Write` would write."""

    session_id: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[\w.-]+\Z")]
    cwd: Directory
    tool_name: Name
    tool_input: dict[str, Any] = field(default_factory=dict)
    tool_call_id: Name | None = None
    old_text: str | None = None
    permission_mode: Annotated[str, Meta(max_length=100)] | None = None


class Answer(Struct, kw_only=True, rename=camel):
    """What was decided, or `none`; `reason` is for the agent, `approvalId` says where it was decided."""

    decision: Literal["allow", "deny", "none"]
    reason: str | None
    session_id: str
    approval_id: str | None


class _Asked:
    """A question that waits, and how many wait for its answer; it is withdrawn when nobody does."""

    def __init__(self, session: HubSession, tool_call: dict[str, Any]) -> None:
        self.id = f"apr_{secrets.token_hex(8)}"
        self.waiting = 0
        self.answer = asyncio.ensure_future(session.park(tool_call, OPTIONS, request_id=self.id))


async def claude(call: Call) -> Answer:
    question: Question = call.body
    with call.server.connections.hold(call.caller):
        session = await _watching(call, question)
        await _told(call, session)
        asked = _asked(call, session, question)
        try:
            answer = await _while_wanted(call, asked)
        except RequestError as exc:
            raise HttpError(507, "not_stored", f"nobody can be asked: {exc.message}") from exc
    return await _decided(call, session, asked.id, answer)


def _asked(call: Call, session: HubSession, question: Question) -> _Asked:
    """The question as it is put. Two hooks that ask the same about one call, in all its words, ask once."""
    questions: dict[Any, _Asked] = call.server.questions
    key = (session.id, encode(question)) if question.tool_call_id is not None else object()
    if (found := questions.get(key)) is not None and found.waiting:
        return found
    tool = tool_call(
        question.tool_call_id or f"hook_{secrets.token_hex(8)}",
        question.tool_name,
        question.tool_input,
        cwd=question.cwd,
        old_text=question.old_text,
        mode=question.permission_mode,
    )
    asked = questions[key] = _Asked(session, tool)
    asked.answer.add_done_callback(lambda _: questions.pop(key, None) if questions.get(key) is asked else None)
    return asked


async def _watching(call: Call, question: Question) -> HubSession:
    """The session that watches the one of the question; made if there is none."""
    hub = call.server.hub
    try:
        found = await hub.discovery.find(AGENT, question.session_id)
    except NotFound:  # it has only just begun, and has no record yet
        now = hub.log.now()
        found = DiscoveredSession(
            id=question.session_id,
            agent=AGENT,
            project_path=question.cwd,
            project_name=PurePath(question.cwd).name,
            created_at=now,
            last_activity=now,
        )
    return await hub.watch_session(found, policy=call.server.default_policy)


async def _told(call: Call, session: HubSession) -> None:
    """Wait a moment for the record to be told as it is by now, so that the question comes after what led to it."""
    with contextlib.suppress(HubError):
        await call.server.hub.discovery.told(session.id, timeout=TOLD)


async def _while_wanted(call: Call, asked: _Asked) -> dict[str, Any]:
    """What is answered, or nothing once the caller is gone; when all are gone nobody is asked any more."""
    leaving = asyncio.ensure_future(_left(call))
    asked.waiting += 1
    try:
        await asyncio.wait((asked.answer, leaving), return_when=asyncio.FIRST_COMPLETED)
        return asked.answer.result() if asked.answer.done() and not asked.answer.cancelled() else {}
    finally:
        asked.waiting -= 1
        unwanted = (leaving, asked.answer)[: 1 if asked.waiting else 2]
        for task in unwanted:
            task.cancel()
        await asyncio.gather(*unwanted, return_exceptions=True)


async def _left(call: Call) -> None:
    while (await call.request.receive())["type"] != "http.disconnect":
        pass


async def _decided(call: Call, session: HubSession, request_id: str, answer: dict[str, Any]) -> Answer:
    """What was decided, by the record of it as well as by the answer."""
    try:
        approval = await call.server.hub.log.approvals.get(request_id)
    except UnknownRecord:  # it came to nothing
        approval = None
    decision = (approval.decision if approval is not None else None) or {}
    is_decided = decision.get("resolvedBy") in ("user", "policy")
    outcome: Literal["allow", "deny", "none"] = "none"
    if is_decided and decision.get("approved") is True and allows(answer):
        outcome = "allow"
    elif is_decided and denies(answer):
        outcome = "deny"
    reason = decision.get("reason") if outcome != "none" else None
    return Answer(
        decision=outcome,
        reason=reason,
        session_id=session.id,
        approval_id=approval.id if approval is not None else None,
    )


OPERATIONS = (
    Operation(
        method="POST",
        path="/hooks/claude",
        handler=claude,
        scope="prompt",
        body=Question,
        answer=Answer,
        errors=(404, 409, 507),
        summary="Put a question of Claude Code's hook to the hub; the answer comes when it is decided",
        tag="approvals",
    ),
)
