"""The context of a tool: the session, its client, files, and calls that are announced, permitted and always ended.

Every update to the client goes through `Speech`, which keeps it for `session/load`. Text files are read through the
client, which may hold unsaved buffers, where it offers that; else from disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, cast

from pydantic_ai import ModelRetry, ToolFailed, ToolReturnPart

from ...acp import (
    AgentMessageChunk,
    AgentSideConnection,
    AgentThoughtChunk,
    ConnectionClosed,
    Notice,
    RequestError,
    SessionUpdate,
    ToolCallLocation,
    ToolKind,
    text_block,
    tool_content,
)
from ...acp.contrib import PermissionBroker, ToolCallTracker
from ..commands import Failure
from ..toolcall import ToolCall
from . import modes, workspace
from .host import Decision, Grant, Host, decide, options_for
from .memory import clean, sendable
from .session import Session
from .workspace import Workspace


class Speech:
    """The voice of a turn."""

    def __init__(self, host: Host, session: Session) -> None:
        self._host = host
        self._session = session
        self._message: tuple[type, str] | None = None

    async def send(self, update: SessionUpdate, *, replay: SessionUpdate | None = None, passing: bool = False) -> None:
        """Send an update and remember it, or `replay` in its place; one that is `passing` is not remembered."""
        if not isinstance(update, (AgentMessageChunk, AgentThoughtChunk)):
            self._message = None
            update, replay = sendable(update), replay and sendable(replay)
        if not passing:
            self._session.journal.add(replay or update)
        await self._host.client.session_update(session_id=self._session.id, update=update)

    async def say(self, text: str | None) -> None:
        """A piece of the answer."""
        if text:
            await self.send(AgentMessageChunk(content=text_block(clean(text)), message_id=self._id(AgentMessageChunk)))

    async def think(self, text: str | None) -> None:
        """A piece of what the model thinks."""
        if text:
            await self.send(AgentThoughtChunk(content=text_block(clean(text)), message_id=self._id(AgentThoughtChunk)))

    async def notice(self, text: str) -> None:
        """Something about the turn itself: as a notice, or aside for a client that knows none."""
        if self._host.takes_notices:
            await self.send(Notice(severity="warning", title=text))
        else:
            await self.think(f"{text}\n")

    def _id(self, kind: type) -> str:
        """The id of the message that is being said; another one begins when something else came between."""
        if self._message is None or self._message[0] is not kind:
            self._message = (kind, f"message-{uuid.uuid4().hex[:12]}")
        return self._message[1]


GRACE = 2.0
"""Seconds that the end of a call has to be told while everything is being cancelled."""
KINDS: dict[str, ToolKind] = {
    "read": "read",
    "write": "edit",
    "edit": "edit",
    "apply_patch": "edit",
    "glob": "search",
    "grep": "search",
    "bash": "execute",
    "web_fetch": "fetch",
    "todo": "think",
    "task": "think",
}
"""What a call is shown as before more is known of it than the tool's name."""
UNNAMED = "A tool without a name"
logger = logging.getLogger(__name__)


class Boss(Protocol):
    """The turn, as a tool knows it."""

    @property
    def cancel(self) -> Callable[[], None]:
        """Ends the turn."""

    async def delegate(self, prompt: str, call: Call) -> str:
        """Let a sub-agent do something on behalf of a call; the answer is what it reports."""


class Work:
    """The side of a turn that tools see. That of a sub-agent has the call that it works for as its `parent`."""

    def __init__(self, host: Host, session: Session, speech: Speech, turn: Boss, parent: Call | None = None) -> None:
        self.host = host
        self.session = session
        self.speech = speech
        self.turn = turn
        self.parent = parent
        self.tracker = ToolCallTracker(id_factory=lambda: f"call-{uuid.uuid4().hex}")
        self._shown: dict[str, Call] = {}
        """Calls by the model's own ids of them, as soon as the client knows of them. A server may use an id again."""
        self._taken: Counter[str | None] = Counter()
        """How many calls with this id a tool has taken of which the model has no result yet."""

    @property
    def client(self) -> AgentSideConnection:
        return self.host.client

    @property
    def workspace(self) -> Workspace:
        return self.session.workspace

    def call(
        self,
        name: str,
        title: str,
        kind: ToolKind,
        *,
        of: str | None,
        raw_input: Any,
        paths: Sequence[Path | tuple[Path, int]] = (),
        content: Sequence[Any] | None = None,
    ) -> Call:
        """A tool call for the length of an `async with` block. `of` is the model's id of it."""
        places = [path if isinstance(path, tuple) else (path, None) for path in paths]
        fields = {
            "title": title,
            "kind": kind,
            "content": content,
            "locations": [ToolCallLocation(path=str(path), line=line) for path, line in places] or None,
            "raw_input": raw_input,
        }
        call = self._shown.get(of) if of is not None else None
        if call is None or call.is_begun:
            call = Call(self, name)
            if of is not None:
                self._shown[of] = call
        call.fields = fields
        self._taken[of] += 1
        return call

    async def foresee(self, of: str, name: str) -> None:
        """The model has begun to write a call, which may take long: show it before its arguments are known."""
        if of not in self._shown or self._shown[of].is_begun:
            call = self._shown[of] = Call(self, name)
            await call.announce({"title": name or UNNAMED, "kind": KINDS.get(name, "other")})

    async def show_refused(self, result: ToolReturnPart) -> None:
        """End a call that no tool took: there is no such tool, or its arguments do not fit."""
        name, of = result.tool_name, result.tool_call_id
        if not self._taken[of]:
            reason = _refusal(result)
            title, kind = name or UNNAMED, KINDS.get(name, "other")
            async with self.call(name, title, kind, of=of, raw_input={"tool": name}) as call:
                await call.end("failed", content=[tool_content(text_block(reason))], raw_output={"error": reason})
        self._taken[of] -= 1

    async def settle(self) -> None:
        """End what the model began to write and never finished."""
        for call in self._shown.values():
            if call.id and call.is_open:
                await call.give_up("The turn ended before this was called.")


class Call(ToolCall):
    """A tool call that ends with its block: completed, or failed when an exception leaves it."""

    def __init__(self, work: Work, name: str) -> None:
        super().__init__(work.tracker, work.speech.send, name, work.parent)
        self.work = work
        self.name = name
        self.fields: dict[str, Any] = {}
        self.is_begun = False
        """Whether a tool has taken it."""

    async def __aenter__(self) -> Self:
        self.is_begun = True
        if self.id:
            await self.show(**self.fields)
        else:
            await self.announce(self.fields)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc is None:
            if self.is_open:
                await self.end()
            return
        reason = _reason(exc)
        if self.is_open:
            await self.give_up(reason)
        if isinstance(exc, Exception) and not isinstance(exc, (ConnectionClosed, ModelRetry, ToolFailed)):
            if not isinstance(exc, Failure):
                logger.error("the tool %s failed", self.name, exc_info=exc)
            raise ToolFailed(reason) from exc

    async def permit(self, grant: Grant) -> None:
        """Go on only if the user allows it, now or earlier by "always". Raises Failure when it may not be."""
        self._check_mode(grant)
        allowed = self.work.session.rules.get(grant.key)
        if allowed is None:
            decision = await self._ask(grant)
            self._check_mode(grant)  # it may be another one by now
            if decision.always:
                self.work.session.rules[grant.key] = decision.allowed
            allowed, why = decision.allowed, f": {decision.reason.rstrip('.')}." if decision.reason else "."
        else:
            why = " earlier, for the whole session."
        if not allowed:
            raise Failure(f"The user rejected this{why} Do not try it again in another way; ask what to do instead.")

    async def give_up(self, reason: str) -> None:
        """End the call as failed, also while everything around it is being cancelled."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(GRACE):
                await super().give_up(reason)

    def _check_mode(self, grant: Grant) -> None:
        mode = self.work.session.settings.mode
        if grant.changes and not modes.acts(mode):
            raise Failure(f"In {mode} mode nothing is written or run.")

    async def _ask(self, grant: Grant) -> Decision:
        options = options_for(grant)
        ask, tracker = self.work.client.request_permission, self.work.tracker
        broker = PermissionBroker(self.work.session.id, ask, tracker=tracker, default_options=options)
        try:
            decision = decide(await broker.request_for(self.key), options)
        except RequestError as exc:
            raise Failure(f"The user could not be asked, so it was not done: {exc}") from exc
        if decision.cancelled:
            self.work.turn.cancel()
            raise Failure("The turn was cancelled.")
        return decision


def _refusal(result: ToolReturnPart) -> str:
    """Why a call was refused, for people: the model is told as JSON which of its arguments do not fit."""
    content = result.content
    if isinstance(content, str):
        return content
    with suppress(TypeError, KeyError):
        misfits = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in cast("Any", content))
        return f"The arguments do not fit. {'; '.join(misfits)}."
    return result.model_response_str()


def _reason(exc: BaseException) -> str:
    if isinstance(exc, (Failure, ModelRetry, ToolFailed)):
        return str(exc)
    if isinstance(exc, asyncio.CancelledError):
        return "The turn was cancelled."
    return f"It failed by a defect of the agent: {exc!r}"


LIMIT = 8 * 1024 * 1024
"""Bytes of a file that is read or written."""
NOT_FOUND = -32002


async def read(work: Work, path: Path) -> str:
    """The text of a file. Raises Failure with the reason."""
    shown = work.workspace.shown(path)
    try:
        if work.host.capabilities.fs.read_text_file:
            return (await work.client.read_text_file(session_id=work.session.id, path=str(path))).content
        data = await asyncio.to_thread(workspace.read, work.workspace, path, LIMIT)
        if len(data) > LIMIT:
            raise ValueError(f"it is larger than {LIMIT} bytes.")
        return data.decode("utf-8")
    except RequestError as exc:
        reason = "there is no such file." if exc.code == NOT_FOUND else str(exc)
        raise Failure(f"`{shown}` could not be read: {reason}") from exc
    except (OSError, ValueError) as exc:
        raise Failure(f"`{shown}` could not be read: {_explain_failure(exc)}") from exc


async def read_if_any(work: Work, path: Path) -> str | None:
    """The text of a file that may not exist yet."""
    try:
        return await read(work, path)
    except Failure:
        # clients do not agree on an error for a missing file, so the disk decides whether this is one
        if await asyncio.to_thread(os.path.lexists, path):
            raise
        return None


async def write(work: Work, path: Path, text: str) -> None:
    """Replace the text of a file. Raises Failure with the reason."""
    shown = work.workspace.shown(path)
    work.workspace.locate(str(path))  # a link may have been put in its way since it was asked about
    if len(text) > LIMIT:
        raise Failure(f"`{shown}` was not written: the text is longer than {LIMIT} characters.")
    try:
        if work.host.capabilities.fs.write_text_file:
            # the protocol makes files, not directories; where the disk is shared the agent can help
            with suppress(OSError):
                await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
            await work.client.write_text_file(session_id=work.session.id, path=str(path), content=text)
        else:
            await asyncio.to_thread(workspace.write, work.workspace, path, text.encode("utf-8"))
    except (RequestError, OSError, ValueError) as exc:
        raise Failure(f"`{shown}` could not be written: {_explain_failure(exc)}") from exc


async def delete(work: Work, path: Path) -> None:
    """Remove a file; the protocol has no way to ask a client for that. Raises Failure with the reason."""
    work.workspace.locate(str(path))
    try:
        await asyncio.to_thread(path.unlink)
    except OSError as exc:
        raise Failure(f"`{work.workspace.shown(path)}` could not be deleted: {_explain_failure(exc)}") from exc


def _explain_failure(exc: Exception) -> str:
    if isinstance(exc, FileNotFoundError):
        return "there is no such file."
    if isinstance(exc, UnicodeError):
        return "it is not text in UTF-8."
    return getattr(exc, "strerror", None) or str(exc)
