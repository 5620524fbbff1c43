"""How an ACP client connects: its capabilities, the caller it is, and what it may send when it opens a session.

A client without a credential authenticates with a token. Rules a change must not break: until the caller is known, only
`initialize` and `authenticate` are answered; only a caller that may both prompt and approve counts as an editor,
because the agent believes an editor's answers. MCP servers are programs that the agent starts without asking, and
`_meta` can tell some agents to ask for nothing at all, so only such a caller may send them; otherwise they are left
out, and the answer says so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ... import __version__
from ...acp import lenient, schema
from ...acp.connection import Connection
from ...acp.errors import RequestError
from ...acp.model import to_wire
from ...hub.agent.inputs import Provisions, without_ours
from ...hub.client.editors import Editor
from ...offer import TOKEN_METHOD, TOKEN_WAY, offer
from ..auth.callers import Caller, Scope
from .answers import forbidden

MOST_OWN = 100


def ours(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is in `_meta` for the hub."""
    own = (meta or {}).get("pilothouse")
    return own if isinstance(own, dict) else {}


def cursor_in(meta: Mapping[str, Any] | None) -> int | None:
    """The seq after which a client wants to be told what was. Raises RequestError."""
    after = ours(meta).get("after")
    if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
        raise _invalid("_meta.pilothouse.after", f"expected a seq, got {after!r}")
    return after


def own_requests(meta: Mapping[str, Any] | None) -> list[str]:
    """The ids of requests by which a client has prompted before, over another connection. Raises RequestError."""
    own = ours(meta).get("own")
    if own is None:
        return []
    if not isinstance(own, list) or len(own) > MOST_OWN or not all(isinstance(one, str) for one in own):
        raise _invalid("_meta.pilothouse.own", f"expected the ids of at most {MOST_OWN} prompts, got {own!r:.200}")
    return own


class Given:
    """What a client gives for the agent; `refused` is what of it that may not be given by this one."""

    def __init__(self, provisions: Provisions, refused: list[dict[str, Any]]) -> None:
        self.provisions = provisions
        self.refused = refused


def given_by(
    caller: Caller, servers: Sequence[Any] | None, directories: Sequence[str] | None, meta: Mapping[str, Any] | None
) -> Given:
    """Raises RequestError for a directory that is no absolute path."""
    for index, directory in enumerate(directories or ()):
        if not os.path.isabs(directory) or "\0" in directory:  # noqa: PTH117 - a text of the wire
            raise _invalid(f"additionalDirectories[{index}]", f"expected an absolute path, got {directory!r}")
    given = Provisions(
        servers=tuple(to_wire(list(servers or ()))), directories=tuple(directories or ()), meta=without_ours(meta)
    )
    needed: tuple[Scope, ...] = ("prompt", "approve")
    lacking = [scope for scope in needed if not caller.may(scope)]
    if not lacking:
        return Given(given, [])
    named = {"mcpServers": given.servers, "additionalDirectories": given.directories, "_meta": given.meta}
    reason = f"{caller.name} may not give the agent this; it needs `{'` and `'.join(lacking)}`"
    return Given(Provisions(), [{"field": name, "reason": reason} for name, value in named.items() if value])


def _invalid(field: str, reason: str) -> RequestError:
    return RequestError.invalid_params({"field": field, "reason": reason})


LONGEST_NAME = 80

Authenticate = Callable[[str], Awaitable[Caller | None]]
"""Who has this token; None for nobody."""


class Entrance:
    """Of one client. `authenticated` is done when the caller is known; `connection` is by what the client is called."""

    def __init__(
        self, caller: Caller | None, authenticate: Authenticate | None, connection: Callable[[], Connection]
    ) -> None:
        self._authenticate = authenticate
        self._connection = connection
        self._name = ""
        self.capabilities = schema.ClientCapabilities()
        self.editor: Editor | None = None
        """What the client is to the agents of its sessions, if it may be that."""
        self.authenticated: asyncio.Future[Caller] = asyncio.get_running_loop().create_future()
        if caller is not None:
            self.authenticated.set_result(caller)

    def allowed(self, *scopes: Scope) -> Caller:
        """The caller. Raises RequestError for one that is not known, or may not do all of these."""
        if not self.authenticated.done():
            raise RequestError.auth_required({"methodId": TOKEN_METHOD})
        caller = self.authenticated.result()
        for scope in scopes:
            if not caller.may(scope):
                raise forbidden(caller.name, scope)
        return caller

    def initialize(
        self,
        capabilities: schema.ClientCapabilities | None,
        info: schema.Implementation | None,
        facts: dict[str, Any],
    ) -> schema.InitializeResponse:
        """What is offered; `facts` are for those who are known."""
        self.capabilities = capabilities or schema.ClientCapabilities()
        self._name = _plain(info.title or info.name) if info is not None else ""
        self._know_editor()
        known = self.authenticated.done()
        told = offer(version=__version__, auth_methods=() if known else (TOKEN_WAY,), meta=facts if known else None)
        answer: schema.InitializeResponse = lenient.repair(schema.InitializeResponse, told, "result")[0]
        return answer

    async def authenticate(self, method_id: str, meta: dict[str, Any] | None) -> None:
        """Raises RequestError."""
        if method_id != TOKEN_METHOD:
            raise RequestError.invalid_params({"methodId": method_id, "details": f"expected {TOKEN_METHOD!r}"})
        if self.authenticated.done():
            return
        token = ours(meta).get("token") or (meta or {}).get("token")
        if not isinstance(token, str) or self._authenticate is None:
            raise RequestError.invalid_params({"field": "_meta.token", "details": "the token is needed as text"})
        caller = await self._authenticate(token)
        if caller is None:
            raise RequestError.auth_required({"details": "the token is not valid"})
        if not self.authenticated.done():
            self.authenticated.set_result(caller)
            self._know_editor()

    def _know_editor(self) -> None:
        caller = self.authenticated.result() if self.authenticated.done() else None
        if caller is None or not (caller.may("prompt") and caller.may("approve")):
            return
        connection = self._connection()
        editor = self.editor or Editor(caller.name, connection.request, is_closed=lambda: connection.is_closed)
        fs = self.capabilities.fs
        editor.name = self._name or caller.name
        editor.reads = fs is not None and fs.read_text_file
        editor.writes = fs is not None and fs.write_text_file
        editor.terminals = self.capabilities.terminal
        self.editor = editor


def _plain(name: str) -> str:
    """A client's name for itself, as it may stand in the log."""
    return "".join(letter for letter in name[:LONGEST_NAME] if letter.isprintable()).strip()
