"""A running agent that speaks ACP: its process, its connection, and the owner who is told what it says.

Updates are passed on as the bytes they came in; nothing here decodes them. Requests of the agent go to the owner with
their raw params. The process group is the agent's own and ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from ..acp.connection import Connection
from ..acp.dispatch import Diagnostic, session_of
from ..acp.errors import ConnectionClosed, RequestError
from ..acp.lanes import Handler, Updates
from ..acp.process import CommandNotFound, StderrTail, describe_end, kill, kin, spawn, stop
from ..acp.routing import LEGACY_UPDATE
from ..acp.transport import PipeLink
from ..model.marks import HUB
from .fetching import FETCH_TIMEOUT, PATIENCE, fetch_of

__all__ = ["HUB", "AgentSilent", "AgentUnfit", "FetchFailed", "Owner", "RawUpdate", "RunningAgent", "start_agent"]

PROTOCOL_VERSION = 1
AUTH_REQUIRED = -32000
INITIALIZE_TIMEOUT = 60.0
"""Seconds for the answer to `initialize`: some agents load for ten."""

LAST_WORDS = 0.2
"""Seconds for what an agent had still written to stderr when it ended; it is there at once, unless somebody else holds
the pipe."""

_decode = msgspec.json.Decoder().decode


class FetchFailed(ConnectionClosed):
    """A program that is fetched when it is started ended before it answered; `reason` says what may be wrong."""


class AgentSilent(TimeoutError):
    """An agent did not answer in time; `stderr_tail` is the last that it said there."""

    def __init__(self, message: str, stderr_tail: str) -> None:
        super().__init__(message)
        self.stderr_tail = stderr_tail


class AgentUnfit(AgentSilent):
    """What an agent answered to `initialize` is an error, or no answer at all: it is no agent, or broken."""


class Owner(Protocol):
    """Who is told what an agent says."""

    async def updated(self, session_id: str, update: Raw) -> None:
        """A `session/update`: the JSON of its `update`. Called one at a time and in order for each session."""
        ...

    def several_updated(self, updates: list[RawUpdate]) -> int:
        """Consecutive updates of a session: how many of them, from the first on, were taken without waiting.

        The one that follows those goes to `updated`.
        """
        ...

    async def requested(self, method: str, params: Any, raw: bytes) -> Any:
        """A request of the agent to its client; the value is its result. Raises RequestError."""
        ...

    def notified(self, method: str, params: Any) -> None:
        """A notification that is no update."""
        ...

    def diagnosed(self, diagnostic: Diagnostic) -> None:
        """Something the agent sent had to be mended, skipped or refused."""
        ...


class RawUpdate(Struct, gc=False):
    """The params of a `session/update`, its update left as it is."""

    session_id: str = field(name="sessionId")
    update: Raw
    field_meta: Raw | None = field(default=None, name="_meta")


class UpdateMessage(Struct, tag_field="method", tag="session/update", gc=False):
    """A whole `session/update` message; no id fits, so that one sent as a request is not taken for it."""

    params: RawUpdate
    id: Literal["\0"] | UnsetType = UNSET


class Dispatch:
    """Hands what is received to the owner."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.decode_update: Callable[[bytes], Any] | None = msgspec.json.Decoder(UpdateMessage).decode
        self.decode_updates: Callable[[bytes], list[Any]] = msgspec.json.Decoder(list[UpdateMessage]).decode

    def updates(self) -> Updates:
        return Updates(self._owner.updated, _without_meta, self._owner.several_updated)

    def notification(self, method: str, params: Raw | None) -> tuple[str | None, Handler, dict[str, Any]]:
        if method in ("session/update", LEGACY_UPDATE):
            # not what the fast decoder takes; whatever it is, the translator makes something of it
            values = _values(params)
            update = values.get("update") if isinstance(values, dict) else values
            session = session_of(values) or ""
            return session, self._owner.updated, {"session_id": session, "update": Raw(msgspec.json.encode(update))}
        values = _values(params)
        return session_of(values), self._notified, {"method": method, "params": values}

    async def _notified(self, method: str, params: Any) -> None:
        self._owner.notified(method, params)

    def request(
        self, method: str, params: Raw | None
    ) -> tuple[str | None, Handler, dict[str, Any], Callable[[Any], Any]]:
        values = _values(params)
        kwargs = {"method": method, "params": values, "raw": b"{}" if params is None else bytes(params)}
        return session_of(values), self._owner.requested, kwargs, lambda value: value


def _without_meta(notification: RawUpdate) -> dict[str, Any]:
    return {"session_id": notification.session_id, "update": notification.update}


def _values(params: Raw | None) -> Any:
    try:
        return None if params is None else _decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RequestError.invalid_params({"reason": str(exc)}) from None


class RunningAgent:
    """An agent that has answered `initialize`."""

    def __init__(self, name: str, connection: Connection, process: Any, tail: StderrTail) -> None:
        self._name = name
        self._connection = connection
        self._process = process
        self._tail = tail
        self._stopping: asyncio.Task[None] | None = None
        self.initialized: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        pid: int = self._process.pid
        return pid

    @property
    def is_running(self) -> bool:
        return not self._connection.is_closed

    @property
    def capabilities(self) -> dict[str, Any]:
        found = self.initialized.get("agentCapabilities")
        return found if isinstance(found, dict) else {}

    async def request(self, method: str, params: Any, *, session: str | None = None) -> bytes:
        """Call the agent; the result as JSON. With `session`, all its updates before the answer are handled first.

        Raises RequestError, ConnectionClosed.
        """
        raw = await self._connection.request(method, params, session=session)
        return b"null" if raw is None else bytes(raw)

    async def notify(self, method: str, params: Any) -> None:
        """Raises ConnectionClosed."""
        await self._connection.send_notification(method, params)

    async def wait_ended(self) -> ConnectionClosed:
        """Wait until the agent is gone; the answer has its exit code and its last words."""
        return await self._connection.wait_closed()

    def silent(self, method: str, seconds: float) -> AgentSilent:
        """The error of a call that was not answered in time."""
        return AgentSilent(
            f"{self._name!r} did not answer `{method}` within {seconds:g} s{self._words}", self._tail.text
        )

    def unfit(self, what: str) -> AgentUnfit:
        """The error of an `initialize` that was answered so that nothing can follow."""
        return AgentUnfit(
            f"{self._name!r} answered `initialize` with {what}; see that it speaks ACP{self._words}", self._tail.text
        )

    @property
    def _words(self) -> str:
        text = self._tail.text.strip()
        return f"; it said: {text[-500:]}" if text else ""

    async def stop(self, *, timeout: float = 2.0) -> None:
        """End the agent and its whole process tree; always ends, and goes on when its caller is cancelled."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop(timeout), name="ending an agent")
        await asyncio.shield(self._stopping)

    async def _stop(self, timeout: float) -> None:
        known = kin(self._process)  # before its input is closed, which ends most agents
        await self._connection.close()
        await stop(self._process, timeout=timeout, known=known)
        await asyncio.wait((self._tail.task,), timeout=LAST_WORDS)
        self._tail.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._tail.task

    def kill(self) -> None:
        """End it at once, without waiting."""
        kill(self._process)


async def start_agent(
    command: Sequence[str],
    owner: Owner,
    *,
    cwd: str | Path,
    env: Mapping[str, str] | None = None,
    client_capabilities: Mapping[str, Any] | None = None,
    timeout: float = INITIALIZE_TIMEOUT,
    told: Callable[[str], None] | None = None,
) -> RunningAgent:
    """Start a program and shake hands. Raises SpawnError, ConnectionClosed, RequestError, AgentSilent, AgentUnfit.

    A program that does not answer is not left behind. One that is fetched first has `FETCH_TIMEOUT` at least, and
    `told` is called with what is being waited for when that takes its time.
    """
    fetch = fetch_of(command)
    if fetch is None:
        return await _started(command, owner, cwd, env, client_capabilities, timeout)
    waiting = asyncio.get_running_loop().call_later(PATIENCE, told, fetch.waiting) if told is not None else None
    try:
        return await _started(command, owner, cwd, env, client_capabilities, max(timeout, FETCH_TIMEOUT))
    except CommandNotFound as exc:
        raise CommandNotFound(f"{exc}; {fetch.missing}") from exc
    except ConnectionClosed as exc:
        raise FetchFailed(fetch.failed, exit_code=exc.exit_code, stderr_tail=exc.stderr_tail) from exc
    except AgentUnfit:
        raise
    except AgentSilent as exc:
        raise AgentSilent(f"{fetch.failed}; {exc}", exc.stderr_tail) from exc
    finally:
        if waiting is not None:
            waiting.cancel()


async def _started(
    command: Sequence[str],
    owner: Owner,
    cwd: str | Path,
    env: Mapping[str, str] | None,
    client_capabilities: Mapping[str, Any] | None,
    timeout: float,
) -> RunningAgent:
    link = PipeLink()
    process = await spawn(command[0], *command[1:], env=env, cwd=cwd, link=link)
    tail = StderrTail(process)
    connection = Connection(
        Dispatch(owner),
        link,
        on_diagnostic=owner.diagnosed,
        describe_end=lambda: describe_end(process, tail),
    )
    agent = RunningAgent(command[0], connection, process, tail)
    params = {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": dict(client_capabilities or {}),
        "clientInfo": {"name": "pilothouse", "title": "Pilothouse", "version": _version()},
    }
    try:
        async with asyncio.timeout(timeout):
            raw = await agent.request("initialize", params)
        answer = _decode(raw)
    except RequestError as exc:
        await agent.stop(timeout=0.5)  # before it is told, so that its last words are in that
        raise exc if exc.code == AUTH_REQUIRED else agent.unfit(f"the error {exc.message!r}") from None
    except TimeoutError:
        await agent.stop(timeout=0.5)
        raise agent.silent("initialize", timeout) from None
    except BaseException:
        await agent.stop(timeout=0.5)
        raise
    if not isinstance(answer, dict):
        await agent.stop(timeout=0.5)
        raise agent.unfit(raw[:100].decode(errors="replace"))
    agent.initialized = answer
    return agent


def _version() -> str:
    from .. import __version__

    return __version__
