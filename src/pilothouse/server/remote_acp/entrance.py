"""How a client comes in: what it says of itself, what it is told, who it is, and what it may therefore be.

Who has shown nothing authenticates by a token. Rules a change must not break: until the caller is known nothing but
`initialize` and `authenticate` is answered; who may both prompt and approve, and nobody else, is an editor, because
what an editor answers, an agent believes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ... import __version__
from ...acp import lenient, schema
from ...acp.connection import Connection
from ...acp.errors import RequestError
from ...hub.client.editors import Editor
from ...offer import TOKEN_METHOD, TOKEN_WAY, offer
from ..callers import Caller, Scope
from .answers import forbidden
from .opening import ours

__all__ = ["Authenticate", "Entrance"]

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
