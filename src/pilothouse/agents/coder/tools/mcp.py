"""Tools of MCP servers that the client names when a session is opened: over stdio, HTTP or SSE.

The servers are started with the first prompt and run until the session is closed. One that cannot be reached is told
of and left out; one that ends meanwhile is started again by the next call of its tools. What a server says of its own
tools is not trusted: every call is shown and asked about, whatever the server calls it, no name of a tool can be that
of another's, and no result is longer than a conversation can bear.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from typing import Any, Self

import msgspec
from fastmcp.client.transports import ClientTransport, SSETransport, StdioTransport, StreamableHttpTransport
from pydantic_ai import BinaryContent, RunContext, ToolFailed
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import ValidationError

from ....acp import (
    ContentBlock,
    HttpMcpServer,
    McpServer,
    McpServerStdio,
    SseMcpServer,
    audio_block,
    image_block,
    text_block,
    tool_content,
)
from ....acp.errors import METHOD_NOT_FOUND
from ....acp.process import default_environment
from ...commands import Failure
from ..content import about
from ..host import Grant
from ..work import Work
from .texts import cut

START = 30.0
"""Seconds that a server has to start."""
STOP = 5.0
PING = 5.0
"""Seconds in which a server that is not busy says that it is there."""
CALL = 600.0
"""Seconds that a call may take."""
ODD = re.compile(r"[^A-Za-z0-9_-]")
"""What is not in the names of tools that models take."""
LONGEST = 64
PREFIX = 24
CHARACTERS = 50_000
"""Of a result; one that is longer is cut."""
TITLE = 200
logger = logging.getLogger(__name__)


class Servers:
    """The servers of a session, connected for as long as it is open. `problems` says why others are not here."""

    def __init__(self) -> None:
        self.toolsets: list[AbstractToolset[Work]] = []
        self.problems: list[str] = []
        self._connections: list[_Connection] = []

    @classmethod
    async def start(cls, servers: Sequence[McpServer], cwd: str) -> Servers:
        """Start them all, side by side. Never raises for one that cannot be."""
        started = cls()
        prefixes = _prefixes([server.name for server in servers])
        try:
            await asyncio.gather(*map(started._enter, servers, prefixes, repeat(cwd)))
        except BaseException:
            await started.close()
            raise
        return started

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self._connections))

    async def _enter(self, server: McpServer, prefix: str, cwd: str) -> None:
        connection = _Connection(server, prefix, cwd)
        self._connections.append(connection)
        try:
            await connection.open()
        except Failure as exc:
            self.problems.append(str(exc))
        else:
            self.toolsets.append(_Asked(connection.tools, connection))


class _Connection:
    """One server: started, and started again when it is needed after it has ended."""

    def __init__(self, server: McpServer, prefix: str, cwd: str) -> None:
        self.name = server.name
        self.prefix = prefix
        self._server = server
        self._cwd = cwd
        self.names: dict[str, str] = {}
        """What the model calls its tools, and what the server does."""
        self._toolset: MCPToolset[Work] | None = None
        self._calls = 0
        self._reviving = asyncio.Lock()
        # a process on this machine is asked at once; one elsewhere is a journey away
        self._is_doubtful = self._is_process = isinstance(server, McpServerStdio)

    @property
    def tools(self) -> AbstractToolset[Work]:
        if self._toolset is None:
            raise Failure("The session is closed.")
        return self._toolset.renamed(self.names)

    async def look(self, ctx: RunContext[Work]) -> None:
        """Learn which tools there are."""
        if self._toolset is not None:
            self.names = _names(self.prefix, await self._toolset.get_tools(ctx))

    async def open(self) -> None:
        """Raises Failure when the server cannot be started."""
        try:
            toolset: MCPToolset[Work] = MCPToolset(
                _transport(self._server, self._cwd),
                id=self.prefix,
                init_timeout=START,
                tool_error_behavior="failed",
                log_handler=self._overhear,
            )
            async with asyncio.timeout(START):
                await toolset.__aenter__()
        except Exception as exc:
            raise Failure(f"The MCP server {self.name!r} could not be started: {_reason(exc)}") from exc
        self._toolset = toolset

    async def _overhear(self, message: Any) -> None:
        """What a server logs. The library would print it so richly that a server which says much holds the agent."""
        logger.debug("the MCP server %r says: %s", self.name, message.data)

    async def close(self) -> None:
        toolset, self._toolset = self._toolset, None
        if toolset is not None:
            await _ended(toolset)

    async def revive(self) -> None:
        """Start the server again if it has ended. Raises Failure when that cannot be."""
        if self._calls:
            return  # one that works on something else has not ended, and may be too busy to say so
        async with self._reviving:
            old = self._toolset
            if old is not None and self._is_doubtful and await _has_ended(old):
                logger.warning("the MCP server %r has ended and is started again", self.name)
                await self.open()
                await _ended(old)
            self._is_doubtful = self._is_process

    @asynccontextmanager
    async def calling(self) -> AsyncIterator[None]:
        """The length of a call. A server that ends in it is not called again: it may have done a part of the work."""
        self._calls += 1
        try:
            async with asyncio.timeout(CALL):
                yield
        except TimeoutError:
            raise Failure(f"The server did not answer within {CALL:.0f} seconds.") from None
        except ToolFailed:
            raise  # the tool's own words
        except ValidationError as exc:
            raise Failure(f"The server answered, but not as the protocol has it: {_reason(exc)}") from exc
        except Exception as exc:
            self._is_doubtful = True
            if self._toolset is None or not await _has_ended(self._toolset):
                raise
            raise Failure("The server ended before it answered. The next call starts it again.") from exc
        finally:
            self._calls -= 1


async def _has_ended(toolset: MCPToolset[Work]) -> bool:
    try:
        async with asyncio.timeout(PING):
            await toolset.client.ping()
    except TimeoutError:
        return False  # it is there, and busy
    except Exception as exc:
        # an answer is one, also that there is nothing of that name
        return getattr(getattr(exc, "error", None), "code", None) != METHOD_NOT_FOUND
    return False


async def _ended(toolset: MCPToolset[Work]) -> None:
    try:
        async with asyncio.timeout(STOP):
            # a request that was cancelled may have left it entered once more
            while toolset.is_running:
                await toolset.__aexit__(None, None, None)
    except Exception as exc:
        logger.warning("an MCP server did not end well: %r", exc)


def _prefixes(names: Sequence[str]) -> list[str]:
    """What each server's tools begin with, in the letters that models take, no two the same.

    Two underscores follow, which no prefix and none of our own tools has, so that no names of two tools are the same.
    """
    made: list[str] = []
    for name in names:
        plain = re.sub(r"[\W_]+", "_", name, flags=re.ASCII)[:PREFIX].strip("_") or "mcp"
        made.append(_told_apart(plain, made))
    return made


def _names(prefix: str, own: Iterable[str]) -> dict[str, str]:
    """The names by which the model knows a server's tools, with the server's own. None is left out for its letters."""
    names: dict[str, str] = {}
    spelled = {name: ODD.sub("_", f"{prefix}__{name}")[:LONGEST] for name in own}
    # those that can stay as they are come first, so that none of them makes way for another
    for name in sorted(spelled, key=lambda name: (spelled[name] != f"{prefix}__{name}", name)):
        names[_told_apart(spelled[name], names)] = name
    return names


def _told_apart(name: str, taken: Collection[str]) -> str:
    numbered = (f"{name[: LONGEST - 4]}_{number}" for number in count(1))
    return next(one for one in chain([name], numbered) if one not in taken)


def _transport(server: McpServer, cwd: str) -> ClientTransport:
    if isinstance(server, McpServerStdio):
        env = {**default_environment(), **{variable.name: variable.value for variable in server.env}}
        # its words go to stderr, as ours do: stdout is the protocol's
        return StdioTransport(server.command, list(server.args), env=env, cwd=cwd, keep_alive=False)
    if isinstance(server, HttpMcpServer):
        return StreamableHttpTransport(server.url, headers={one.name: one.value for one in server.headers})
    if isinstance(server, SseMcpServer):
        return SSETransport(server.url, headers={one.name: one.value for one in server.headers})
    raise Failure("only servers over stdio, HTTP and SSE can be used")


def _reason(exc: BaseException) -> str:
    if isinstance(exc, TimeoutError):
        return f"it did not answer within {START:.0f} seconds"
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    if isinstance(exc, ValidationError):
        first = exc.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(exc) or type(exc).__name__


@dataclass
class _Asked(WrapperToolset[Work]):
    """A server's tools, each call of them shown and asked about."""

    connection: _Connection
    is_gone: bool = False
    is_told: bool = False
    """Whether the user knows that its tools are not there."""

    async def __aenter__(self) -> Self:
        return self  # the connection is the session's, and outlives the turn that enters this

    async def __aexit__(self, *args: Any) -> None:
        """Nothing, for the same reason."""

    async def get_tools(self, ctx: RunContext[Work]) -> dict[str, ToolsetTool[Work]]:
        if self.is_gone:
            return {}
        try:
            async with asyncio.timeout(START):
                await self.connection.look(ctx)
                self.wrapped = self.connection.tools
                tools = await super().get_tools(ctx)
        except Exception as exc:  # a server that has gone takes its tools along, not the turn
            logger.info("the MCP server %r has no tools any more: %r", self.connection.name, exc)
            self.is_gone = isinstance(exc, TimeoutError)  # not waited for again with each request
            if not self.is_told:
                self.is_told = True
                name = self.connection.name
                await ctx.deps.speech.notice(f"The tools of the MCP server {name!r} cannot be used: {_reason(exc)}")
            return {}
        self.is_told = False
        return {name: _in_order(tool) for name, tool in tools.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Work], tool: ToolsetTool[Work]
    ) -> Any:
        server, prefix = self.connection.name, self.connection.prefix
        own = self.connection.names.get(name, name)
        given = msgspec.json.encode(tool_args, enc_hook=repr).decode()
        title = f"{server}: {own} {given if len(given) <= TITLE else given[:TITLE] + '…'}"
        async with ctx.deps.call(name, title, "other", of=ctx.tool_call_id, raw_input=tool_args) as call:
            await call.permit(Grant(("mcp", prefix, own), f"{own} of {server}"))
            await call.start()
            await self.connection.revive()
            self.wrapped = self.connection.tools
            async with self.connection.calling():
                result = _bearable(await super().call_tool(name, tool_args, ctx, tool))
            await call.end(content=[tool_content(block) for block in _shown(result)])
            return result


def _in_order(tool: ToolsetTool[Work]) -> ToolsetTool[Work]:
    """A tool that waits for what was called before it, unless its server says that it only reads."""
    said = (tool.tool_def.metadata or {}).get("annotations") or {}
    return replace(tool, tool_def=replace(tool.tool_def, sequential=not said.get("readOnlyHint")))


def _bearable(result: Any) -> Any:
    """A result as it is, or one whose text is cut: all of it goes to the model with every request from now on."""
    attached, rest = _parted(result)
    text = _text(rest)
    if len(text) <= CHARACTERS:
        return result
    return [cut(text, CHARACTERS), *attached] if attached else cut(text, CHARACTERS)


def _shown(result: Any) -> list[ContentBlock]:
    attached, rest = _parted(result)
    blocks: list[ContentBlock] = [text_block(_text(rest))] if rest or not attached else []
    return blocks + [_block(one) for one in attached]


def _block(attached: BinaryContent) -> ContentBlock:
    if attached.is_image:
        return image_block(attached.base64, attached.media_type)
    if attached.is_audio:
        return audio_block(attached.base64, attached.media_type)
    return text_block(f"[{about(attached)}]")


def _parted(result: Any) -> tuple[list[BinaryContent], list[Any]]:
    """What is attached to a result, and its words."""
    parts = result if isinstance(result, list) else [result]
    attached = [part for part in parts if isinstance(part, BinaryContent)]
    return attached, [part for part in parts if not isinstance(part, BinaryContent)]


def _text(result: Any) -> str:
    if isinstance(result, str):
        return result
    if isinstance(result, list):
        return "\n".join(map(_text, result))
    with suppress(TypeError, ValueError, OverflowError):
        return msgspec.json.format(msgspec.json.encode(result)).decode()
    return f"[{type(result).__name__}]"
