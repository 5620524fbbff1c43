"""Claude Code's own CLI as an ACP agent: each session is a process of the CLI, started when the session is opened.

The id of a session is the CLI's own, so that a session can be continued in a terminal, and the other way round. History
is read from the CLI's files. `/clear` starts another conversation under an id of its own, and the CLI's files do not
say which one it followed. So the successor is stored in a small file per session in Pilothouse's own directory:
resuming the session must not bring back what was cleared. A failure to store it is logged and never fails a turn.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from ... import __version__
from ...acp import schema
from ...acp.connection import Connection
from ...acp.errors import RESOURCE_NOT_FOUND, RequestError
from ...acp.interfaces import Agent
from ...acp.model import Model, to_wire
from . import records
from .actions import META
from .process import Options, options_from, program, server_config
from .records import is_id
from .replay import Replay
from .session import ClaudeSession, Origin
from .translate import Translator

logger = logging.getLogger("pilothouse.agents.claude_bridge")

LENGTH = 100
"""Bytes of a file that are read; an id is shorter."""


def own_place(environ: Mapping[str, str] | None = None) -> Path:
    """Where these files are: in PILOTHOUSE_HOME, else in the platform's directory for user data."""
    given = (os.environ if environ is None else environ).get("PILOTHOUSE_HOME", "").strip()
    if given:
        return Path(given).expanduser() / "claude"
    from platformdirs import user_data_path

    return user_data_path("pilothouse", appauthor=False) / "claude"


class Successors:
    """The conversations that took the place of others."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def current(self, session_id: str) -> str:
        """The conversation that a session goes on in; its own, unless another one took its place."""
        return (self._read(self._place / session_id) if is_id(session_id) else "") or session_id

    def all(self) -> set[str]:
        """The conversations that are the continuation of a session, and none of their own."""
        try:
            return {found for path in self._place.iterdir() if (found := self._read(path))}
        except OSError:
            return set()

    def moved(self, session_id: str, conversation: str) -> None:
        """From now on the session goes on in this conversation."""
        if conversation == self.current(session_id) or not (is_id(session_id) and is_id(conversation)):
            return
        path = self._place / session_id
        try:
            self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_suffix(f".{os.getpid()}")
            fresh.write_text(conversation, encoding="ascii")
            fresh.replace(path)
        except OSError as exc:
            logger.warning("cannot write down that %s goes on as %s: %s", session_id, conversation, exc)

    def _read(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                found = file.read(LENGTH).decode("ascii", errors="replace").strip()
        except OSError:
            return ""
        return found if is_id(path.name) and is_id(found) else ""


PROTOCOL_VERSION = 1
LOGIN = "claude-login"
PAGE = 50
"""Sessions in one page of a list."""

T = TypeVar("T", bound=Model)


class ClaudeAgent(Agent):
    """Serves one client. `options` hold for every session that does not ask for others."""

    def __init__(
        self,
        *,
        command: str | None = None,
        options: Options | None = None,
        home: Path | None = None,
        own: Path | None = None,
        session: Callable[..., ClaudeSession] = ClaudeSession,
    ) -> None:
        self._program = command or program()
        self._options = options or Options()
        self._home = home or records.cli_home()
        self._successors = Successors(own or own_place())
        self._make = session
        self._sessions: dict[str, ClaudeSession] = {}
        self._client: Connection | None = None
        self._capabilities: dict[str, Any] = {}

    def on_connect(self, conn: Any) -> None:
        self._client = conn.connection

    async def close(self) -> None:
        """End every session and its process."""
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))

    # -- the handshake --

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **kwargs: Any,
    ) -> schema.InitializeResponse:
        self._capabilities = to_wire(client_capabilities) if client_capabilities is not None else {}
        login = {
            "id": LOGIN,
            "name": "Log in to Claude Code",
            "description": "Run `claude` in a terminal and log in with /login, or set ANTHROPIC_API_KEY",
        }
        told = {
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "claude-code", "title": "Claude Code", "version": __version__},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {
                    name: {} for name in ("list", "resume", "fork", "close", "additionalDirectories")
                },
            },
            "authMethods": [login],
        }
        return _response(schema.InitializeResponse, told)

    async def authenticate(self, method_id: str, **kwargs: Any) -> schema.AuthenticateResponse:
        """The user says to have logged in: idle processes end, so that the next ones see it."""
        if method_id != LOGIN:
            raise RequestError.invalid_params({"field": "methodId", "reason": f"expected {LOGIN!r}, got {method_id!r}"})
        await asyncio.gather(*(session.stop() for session in self._sessions.values() if not session.is_busy))
        return schema.AuthenticateResponse()

    # -- sessions --

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[schema.McpServer] | None = None,
        **kwargs: Any,
    ) -> schema.NewSessionResponse:
        session_id = str(uuid4())
        setup = await self._open(session_id, cwd, additional_directories, mcp_servers, kwargs)
        return _response(schema.NewSessionResponse, {"sessionId": session_id, **setup})

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[schema.McpServer] | None = None,
        additional_directories: list[str] | None = None,
        **kwargs: Any,
    ) -> schema.LoadSessionResponse:
        path = await self._known(session_id)
        for update in await asyncio.to_thread(self._said, session_id, path, cwd):
            await self._connected.send_notification("session/update", {"sessionId": session_id, "update": update})
        setup = await self._open(session_id, cwd, additional_directories, mcp_servers, kwargs)
        return _response(schema.LoadSessionResponse, setup)

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[schema.McpServer] | None = None,
        **kwargs: Any,
    ) -> schema.ResumeSessionResponse:
        await self._known(session_id)
        setup = await self._open(session_id, cwd, additional_directories, mcp_servers, kwargs)
        return _response(schema.ResumeSessionResponse, setup)

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[schema.McpServer] | None = None,
        **kwargs: Any,
    ) -> schema.ForkSessionResponse:
        await self._known(session_id)
        forked = str(uuid4())
        setup = await self._open(forked, cwd, additional_directories, mcp_servers, kwargs, forked_from=session_id)
        return _response(schema.ForkSessionResponse, {"sessionId": forked, **setup})

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> schema.ListSessionsResponse:
        if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
            raise RequestError.invalid_params({"field": "cursor", "reason": f"no cursor of this list: {cursor!r}"})
        start = int(cursor or 0)
        end = start + PAGE
        found = await asyncio.to_thread(lambda: list(islice(self._listing(cwd), start, end + 1)))
        more = {"nextCursor": str(end)} if len(found) > PAGE else {}
        return _response(schema.ListSessionsResponse, {"sessions": found[:PAGE], **more})

    async def close_session(self, session_id: str, **kwargs: Any) -> schema.CloseSessionResponse:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            await session.close()
        return schema.CloseSessionResponse()

    # -- turns --

    async def prompt(self, session_id: str, prompt: list[schema.ContentBlock], **kwargs: Any) -> schema.PromptResponse:
        return _response(schema.PromptResponse, await self._session(session_id).prompt(prompt))

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            session.cancel()

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> schema.SetSessionModeResponse:
        await self._session(session_id).set_mode(mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> schema.SetSessionConfigOptionResponse:
        session = self._session(session_id)
        setters = {"model": session.set_model, "mode": session.set_mode}
        if config_id not in setters or not isinstance(value, str):
            reason = f"expected one of {', '.join(setters)} with a string, got {config_id!r} with {value!r}"
            raise RequestError.invalid_params({"field": "configId", "reason": reason})
        await setters[config_id](value)
        return _response(schema.SetSessionConfigOptionResponse, {"configOptions": session.setup()["configOptions"]})

    # -- behind them --

    @property
    def _connected(self) -> Connection:
        if self._client is None:
            raise RuntimeError("the agent is not connected to a client")
        return self._client

    def _session(self, session_id: str) -> ClaudeSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError.invalid_params({"field": "sessionId", "reason": f"no session {session_id!r} is open"})
        return session

    def _listing(self, cwd: str | None) -> Iterator[dict[str, Any]]:
        return records.listing(self._home, cwd, without=self._successors.all())

    def _find(self, session_id: str) -> Path | None:
        """The file of the conversation that a session goes on in, or, if that is gone, of its first one."""
        return records.find(self._home, self._successors.current(session_id)) or records.find(self._home, session_id)

    async def _known(self, session_id: str) -> Path:
        """The file of a session. Raises RequestError when the CLI has none with anything in it."""
        path = await asyncio.to_thread(self._find, session_id)
        if path is None or not await asyncio.to_thread(records.has_turns, path):
            data = {"sessionId": session_id, "errorKind": "session_not_found"}
            raise RequestError(RESOURCE_NOT_FOUND, f"Claude Code knows no session {session_id!r}", data)
        return path

    async def _open(
        self,
        session_id: str,
        cwd: str,
        directories: Sequence[str] | None,
        servers: Sequence[Any] | None,
        meta: dict[str, Any],
        *,
        forked_from: str | None = None,
    ) -> dict[str, Any]:
        """Open a session; what it offers. It begins to speak when the client has been told of it."""
        if not Path(cwd).is_absolute():
            raise RequestError.invalid_params({"field": "cwd", "reason": f"expected an absolute path, got {cwd!r}"})
        await self.close_session(session_id)
        session = self._make(
            session_id,
            self._connected,
            program=self._program,
            cwd=cwd,
            origin=self._origin(forked_from),
            options=options_from(self._defaults(forked_from), meta.get(META), directories),
            servers=server_config(servers),
            capabilities=self._capabilities,
            moved=self._successors.moved,
        )
        try:
            await session.start()
        except BaseException:
            await session.close()
            raise
        self._sessions[session_id] = session
        # the answer is written before the loop gets to this
        asyncio.get_running_loop().call_soon(session.release)
        return session.setup()

    def _defaults(self, forked_from: str | None) -> Options:
        """The options of a session that asks for none: for a fork, the mode and the model of its parent."""
        parent = self._sessions.get(forked_from) if forked_from is not None else None
        if parent is None:
            return self._options
        now = parent.options
        return msgspec.structs.replace(self._options, model=now.model, permission_mode=now.permission_mode)

    def _origin(self, forked_from: str | None) -> Origin:
        async def origin(session_id: str) -> Sequence[str]:
            path = await asyncio.to_thread(self._find, session_id)
            if path is None:
                fork = ("--resume", (await self._known(forked_from)).stem, "--fork-session") if forked_from else ()
                return (*fork, "--session-id", session_id)
            if await asyncio.to_thread(records.has_turns, path):
                return ("--resume", path.stem)
            return ("--session-id", str(uuid4()))  # the CLI takes no id twice, and takes up no empty session

        return origin

    def _said(self, session_id: str, path: Path, cwd: str) -> list[dict[str, Any]]:
        return list(_replayed(Translator(session_id, capabilities=self._capabilities, cwd=cwd), path))


def _replayed(translator: Translator, path: Path) -> Iterator[dict[str, Any]]:
    """The updates that tell a session again."""
    replay = Replay(translator, records.Subagents(path))
    for record in records.records(path):
        yield from replay.take(record)
    yield from replay.end()


def _response(cls: type[T], told: dict[str, Any]) -> T:
    response: T = cls.model_validate(told)
    return response
