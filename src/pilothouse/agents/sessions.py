"""The sessions of an agent program: find, list, replay, set, close, delete; and their transcripts.

An agent derives from `SessionAgent`, opens sessions and runs prompts itself, and declares its options here. A
transcript is the list of updates that `session/load` replays; a run of text is one update of it, so that a long answer
costs its characters and not its pieces. Calls and compactions that a killed process left open are closed in a replay,
or the client would show them as running for ever.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from ..acp import (
    AgentMessageChunk,
    AgentSideConnection,
    AgentThoughtChunk,
    Client,
    CloseSessionResponse,
    CompactionUpdate,
    ConfigOptionUpdate,
    ConnectionClosed,
    ContentBlock,
    CurrentModeUpdate,
    DeleteSessionResponse,
    ListSessionsResponse,
    RequestError,
    SessionConfigOption,
    SessionInfo,
    SessionUpdate,
    SetSessionConfigOptionResponse,
    SetSessionModelResponse,
    SetSessionModeResponse,
    TextContentBlock,
    ToolCallProgress,
    UserMessageChunk,
    text_block,
    tool_content,
)
from ..acp.model import encode

REASON = "Not finished: the agent was ended, or the session was taken up elsewhere, while this was going on."
OPEN = ("pending", "in_progress")


class _Update(msgspec.Struct):
    """As much of an update as tells whether something is over."""

    kind: str = msgspec.field(name="sessionUpdate", default="")
    call: str | None = msgspec.field(name="toolCallId", default=None)
    compaction: str | None = msgspec.field(name="compactionId", default=None)
    status: str | None = None
    content: Any = None


@dataclass
class _Begun:
    is_compaction: bool
    status: str
    is_empty: bool = True
    """Whether a client has nothing to show of it yet."""


DECODER = msgspec.json.Decoder(_Update)
MARKS = (b'"toolCallId"', b'"compactionId"')


def endings(updates: Iterable[bytes]) -> list[bytes]:
    """The updates that end what the given ones have begun and not ended, in the same order."""
    begun: dict[str, _Begun] = {}
    for line in updates:
        # text and pictures, which are most of a journal, are not looked at
        if any(mark in line for mark in MARKS):
            _follow(begun, line)
    return [_ending(name, one) for name, one in begun.items() if one.status in OPEN]


def _follow(begun: dict[str, _Begun], line: bytes) -> None:
    try:
        update = DECODER.decode(line)
    except msgspec.MsgspecError:
        return
    is_compaction = update.kind == "compaction_update"
    name = update.compaction if is_compaction else update.call
    if name is None or update.kind not in ("tool_call", "tool_call_update", "compaction_update"):
        return
    one = begun.setdefault(name, _Begun(is_compaction, "pending"))
    one.status = update.status or one.status
    one.is_empty = one.is_empty and not update.content


def _ending(name: str, one: _Begun) -> bytes:
    if one.is_compaction:
        return encode(CompactionUpdate(compaction_id=name, status="failed", error=REASON))
    # a diff that was shown stays, as with any call that fails
    content: list[Any] | None = [tool_content(text_block(REASON))] if one.is_empty else None
    return encode(ToolCallProgress(tool_call_id=name, status="failed", content=content, raw_output={"error": REASON}))


Chunk = AgentMessageChunk | AgentThoughtChunk


class Transcript:
    """The updates of one session; `store` is called with each that is new."""

    def __init__(self, updates: Sequence[bytes] = ()) -> None:
        self.updates = list(updates)
        self._run: Chunk | None = None
        self._texts: list[str] = []

    def add(self, update: SessionUpdate) -> None:
        if isinstance(update, Chunk) and isinstance(update.content, TextContentBlock):
            run = self._run
            if run is None or type(run) is not type(update) or run.message_id != update.message_id:
                self.settle()
                self._run = update
            self._texts.append(update.content.text)
            return
        self.settle()
        self.append(encode(update))

    def add_prompt(self, blocks: Sequence[ContentBlock], message_id: str) -> None:
        for block in blocks:
            self.add(UserMessageChunk(content=block, message_id=message_id))

    def settle(self) -> None:
        """Store the run of text that is still open. To be called when a turn ends."""
        run, self._run = self._run, None
        if run is not None:
            texts, self._texts = self._texts, []
            self.append(encode(type(run)(content=text_block("".join(texts)), message_id=run.message_id)))

    def end(self) -> None:
        """End what was begun and not ended. To be called when nothing of it can still be running."""
        self.settle()
        for update in endings(self.updates):
            self.append(update)

    def store(self, update: bytes) -> None:
        """Keep an update where it outlives the process, if there is such a place."""

    def append(self, update: bytes) -> None:
        """Add an update that is in its wire form already."""
        self.updates.append(update)
        self.store(update)


PAGE = 100
CLOSE_TIMEOUT = 5.0
"""Seconds that the turns of a session have to end when it is closed."""


class Session(Protocol):
    """One conversation. `lock` is held by the turn that runs."""

    id: str
    is_open: bool
    lock: asyncio.Lock

    def cancel(self) -> None:
        """End all turns, those that still wait too."""


S = TypeVar("S", bound=Session)


S_co = TypeVar("S_co", bound=Session, covariant=True)


class Store(Protocol[S_co]):
    """All sessions of an agent."""

    def find(self, session_id: str) -> S_co | None: ...

    def delete(self, session_id: str) -> None: ...

    def infos(self) -> Iterable[SessionInfo]:
        """What a list tells of each, the most recently used first."""


class SessionAgent(ABC, Generic[S]):
    """The handlers of the protocol that are the same for every agent which keeps sessions."""

    def __init__(self, store: Store[S]) -> None:
        self._store = store
        self._tasks: set[asyncio.Task[Any]] = set()
        self._client: AgentSideConnection

    def on_connect(self, conn: Client) -> None:
        assert isinstance(conn, AgentSideConnection)
        self._client = conn

    # -- what differs --

    @abstractmethod
    def _set_option(self, session: S, option: str, value: str | bool) -> None:
        """Change one option. Raises RequestError when there is none of that name or value."""

    @abstractmethod
    def _config_options(self, session: S) -> list[SessionConfigOption]:
        """The session's options with their values."""

    # -- handlers --

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        if cursor and cursor != str(start):
            raise RequestError.invalid_params({"field": "cursor", "reason": f"no cursor of this list: {cursor!r}"})
        found = [info for info in self._store.infos() if cwd is None or Path(info.cwd) == Path(cwd)]
        following = str(start + PAGE) if len(found) > start + PAGE else None
        return ListSessionsResponse(sessions=found[start : start + PAGE], next_cursor=following)

    async def close_session(self, session_id: str, **kwargs: Any) -> CloseSessionResponse:
        session = self._known(session_id)
        await self._end_turns(session)
        session.is_open = False
        return CloseSessionResponse()

    async def delete_session(self, session_id: str, **kwargs: Any) -> DeleteSessionResponse:
        """Deleting what does not exist is no error: it is gone either way."""
        session = self._store.find(session_id)
        if session is not None:
            await self._end_turns(session)
        self._store.delete(session_id)
        return DeleteSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> SetSessionModeResponse:
        self._set(session_id, "mode", mode_id)
        return SetSessionModeResponse()

    async def set_session_model(self, session_id: str, model_id: str, **kwargs: Any) -> SetSessionModelResponse:
        self._set(session_id, "model", model_id)
        return SetSessionModelResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> SetSessionConfigOptionResponse:
        session = self._open(session_id)
        self._set_option(session, config_id, value)
        if config_id == "mode":
            self._afterwards(session, CurrentModeUpdate(current_mode_id=str(value)))
        return SetSessionConfigOptionResponse(config_options=self._config_options(session))

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """End everything under way in a session, also the prompts that still wait for their turn."""
        session = self._store.find(session_id)
        if session is not None:
            session.cancel()

    # -- for the handlers of the agent --

    def _known(self, session_id: str) -> S:
        session = self._store.find(session_id)
        if session is None:
            raise RequestError.resource_not_found(session_id)
        return session

    def _open(self, session_id: str) -> S:
        session = self._known(session_id)
        if not session.is_open:
            raise RequestError.resource_not_found(session_id)
        return session

    async def _replay(self, session: S, transcript: Transcript) -> None:
        """Tell the client all that it was told in a session before."""
        transcript.settle()
        updates = tuple(transcript.updates)
        # what runs here will be told to its end; what ran in a process that is gone, or elsewhere, will not
        left = () if session.lock.locked() else endings(updates)
        for update in (*updates, *left):
            # as it was sent, an explicit null included
            params = {"sessionId": session.id, "update": msgspec.Raw(update)}
            await self._client.connection.send_notification("session/update", params)

    def _afterwards(self, session: S, update: SessionUpdate) -> None:
        """Send an update right behind the answer to the request that is being handled.

        A handler's answer is written in the step in which it returns, and this task runs in a later one.
        """
        self._begin(self._send(session.id, update))

    def _begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something beside the request that is being handled; nobody waits for it, or is told of its failure."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _end_turns(self, session: S) -> None:
        session.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT), session.lock:
                pass

    def _set(self, session_id: str, option: str, value: str) -> None:
        """Change an option by a method of its own, whose answer does not tell the options."""
        session = self._open(session_id)
        self._set_option(session, option, value)
        self._afterwards(session, ConfigOptionUpdate(config_options=self._config_options(session)))

    async def _send(self, session_id: str, update: SessionUpdate) -> None:
        with suppress(ConnectionClosed):
            await self._client.session_update(session_id=session_id, update=update)


def absolute(path: str, field: str = "cwd") -> str:
    """A path as it was given. Raises RequestError for one that is relative."""
    if not Path(path).is_absolute():
        raise RequestError.invalid_params({"field": field, "reason": f"expected an absolute path, got {path!r}"})
    return path


def directory(path: str, field: str = "cwd") -> str:
    """The path of a directory, as it was given. Raises RequestError for one that is relative, or is not there."""
    place = Path(absolute(path, field))
    try:
        problem = None if place.is_dir() else "is no directory" if place.exists() else "does not exist"
    except (OSError, ValueError) as exc:
        problem = f"cannot be used: {exc}"
    if problem is not None:
        raise RequestError.invalid_params({"field": field, "reason": f"{path!r} {problem}"})
    return path


def moment(seconds: float) -> str:
    """A time as the protocol tells it."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds")
