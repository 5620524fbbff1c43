"""The hub as an ACP agent over one link: each method of the protocol, done by the hub, for one client among many.

A session here is a session of the hub, under the hub's id. A client that opens one is attached to it: it gets the
updates of every turn, whoever prompted, and the agent's questions. Leaving ends nothing but that. Rules a change must
not break: nothing of a session is sent before the answer that names it; a replay is sent before its answer; a prompt
is answered after all updates of its turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ... import __version__
from ...acp import schema
from ...acp.agent.connection import AgentSideConnection
from ...acp.connection import Diagnostic
from ...acp.errors import ConnectionClosed, RequestError
from ...acp.methods import PROTOCOL_VERSION
from ...acp.transport import Link
from ...hub.hub import Hub
from ...hub.session import HubSession
from ...hub.turns import Prompt
from ...log.records import SessionRecord
from ..callers import Caller, Scope
from ..titles import checked_title
from .answers import forbidden, prompt_answer, refusing, setup, wire
from .asking import Asking
from .attachments import Attachments
from .feed import Outlet
from .runs import Runs

__all__ = ["TOKEN_METHOD", "AcpFace"]

logger = logging.getLogger(__name__)

TOKEN_METHOD = "pilothouse-token"  # noqa: S105
"""The id of the way to authenticate: the token, or a device's credential, as `token` in `_meta`."""
PAGE = 50
REPORTS = 10
"""Oddities of one client that are written down."""

Authenticate = Callable[[str], Awaitable[Caller | None]]


class AcpFace:
    """Serves one ACP client. Make it inside a running loop, await `wait_closed`, and `close` it.

    `caller` is who the client is; without one it must authenticate, and `authenticate` says who has a token. An agent
    that the client does not name is `default_agent`, else the first. `authenticated` is done when the caller is known.
    Faces that are given the same `runs` make updates only once.
    """

    def __init__(
        self,
        hub: Hub,
        link: Link,
        *,
        caller: Caller | None = None,
        authenticate: Authenticate | None = None,
        default_agent: str | None = None,
        policy: Any = None,
        limit: int = 200,
        runs: Runs | None = None,
    ) -> None:
        self._hub = hub
        self._authenticate = authenticate
        self._default_agent = default_agent
        self._policy = policy
        self._attachments = Attachments(hub, Outlet(link, runs or Runs()), self._asking, limit)
        self._capabilities = schema.ClientCapabilities()
        self._prompts: dict[str, list[Prompt]] = defaultdict(list)
        self._aside: set[asyncio.Task[Any]] = set()
        self._is_closing = False
        self.authenticated: asyncio.Future[Caller] = asyncio.get_running_loop().create_future()
        if caller is not None:
            self.authenticated.set_result(caller)
        self._reports = REPORTS
        self._side = AgentSideConnection(self, link, on_diagnostic=self._odd)  # type: ignore[arg-type]  # not all is done

    # -- life --

    async def wait_closed(self) -> ConnectionClosed:
        """Until the client is gone."""
        return await self._side.connection.wait_closed()

    async def close(self) -> None:
        """Let the client go. Its turns go on; its questions stay open for others."""
        self._is_closing = True
        await self._side.close()
        await self._attachments.leave_all()
        if self._aside:
            await asyncio.wait(set(self._aside))
        self.authenticated.cancel()

    def _odd(self, diagnostic: Diagnostic) -> None:
        """What a client sends that is no ACP must not fill our log, nor get into it: it may hold a token."""
        if self._reports:
            self._reports -= 1
            logger.info("an ACP client: %s: %s", diagnostic.kind, diagnostic.message)

    def _spawn(self, work: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    def _allowed(self, scope: Scope) -> Caller:
        """The caller. Raises RequestError for one that is not known, or may not."""
        if not self.authenticated.done():
            raise RequestError.auth_required({"methodId": TOKEN_METHOD})
        caller = self.authenticated.result()
        if not caller.may(scope):
            raise forbidden(caller.name, scope)
        return caller

    # -- the connection --

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **kwargs: Any,
    ) -> schema.InitializeResponse:
        self._capabilities = client_capabilities or schema.ClientCapabilities()
        description = "The hub's token, or the credential of a paired device, as `token` in `_meta`."
        method = schema.AuthMethodAgent(id=TOKEN_METHOD, name="Pilothouse token", description=description)
        known = self.authenticated.done()
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, audio=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                    delete=schema.SessionDeleteCapabilities(),
                ),
            ),
            auth_methods=[] if known else [method],
            agent_info=schema.Implementation(name="pilothouse", title="Pilothouse", version=__version__),
            field_meta=wire(agents=sorted(self._hub.agents), agent=self._agent(None)) if known else None,
        )

    async def authenticate(
        self, method_id: str, field_meta: dict[str, Any] | None = None
    ) -> schema.AuthenticateResponse:
        if method_id != TOKEN_METHOD:
            raise RequestError.invalid_params({"methodId": method_id, "details": f"expected {TOKEN_METHOD!r}"})
        if self.authenticated.done():
            return schema.AuthenticateResponse()
        token = _ours(field_meta).get("token") or (field_meta or {}).get("token")
        if not isinstance(token, str) or self._authenticate is None:
            raise RequestError.invalid_params({"field": "_meta.token", "details": "the token is needed as text"})
        caller = await self._authenticate(token)
        if caller is None:
            raise RequestError.auth_required({"details": "the token is not valid"})
        if not self.authenticated.done():
            self.authenticated.set_result(caller)
        return schema.AuthenticateResponse()

    # -- sessions --

    async def new_session(
        self,
        cwd: str,
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        field_meta: dict[str, Any] | None = None,
    ) -> schema.NewSessionResponse:
        self._allowed("prompt")
        self._attachments.check_room()
        name = self._agent(_ours(field_meta).get("agent"))
        session = await refusing(self._hub.start_session(name, cwd, policy=self._policy))
        try:
            await refusing(session.start())
        except RequestError:
            await self._hub.delete_session(session.id)  # nobody has heard of it
            raise
        self._attachments.begin(session)
        state, left_out = session.state, _left_out(mcp_servers, additional_directories)
        answer: schema.NewSessionResponse = setup(
            schema.NewSessionResponse, state, agent=name, seq=state.seq, ignored=left_out
        )
        return answer

    async def load_session(
        self, session_id: str, cwd: str = "", mcp_servers: list[Any] | None = None, **kwargs: Any
    ) -> schema.LoadSessionResponse:
        """All that was, then the answer, then what comes."""
        self._allowed("read")
        answer: schema.LoadSessionResponse = await self._open(schema.LoadSessionResponse, session_id, 0)
        return answer

    async def resume_session(
        self,
        session_id: str,
        cwd: str = "",
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        field_meta: dict[str, Any] | None = None,
    ) -> schema.ResumeSessionResponse:
        """What comes; with `_meta.pilothouse.after` first what came after that seq."""
        self._allowed("read")
        after = _ours(field_meta).get("after")
        if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
            reason = f"expected a seq, got {after!r}"
            raise RequestError.invalid_params({"field": "_meta.pilothouse.after", "reason": reason})
        answer: schema.ResumeSessionResponse = await self._open(schema.ResumeSessionResponse, session_id, after)
        return answer

    async def _open(self, kind: Any, session_id: str, after: int | None) -> Any:
        session = await refusing(self._hub.session(session_id))
        feed = await self._attachments.open(session, after)
        feed.start()
        return setup(kind, session.state, agent=session.agent_name, cwd=session.cwd, seq=feed.cursor)

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> schema.ListSessionsResponse:
        self._allowed("read")
        try:
            page = await self._hub.sessions(cwd=cwd, before=cursor, limit=PAGE)
        except ValueError:
            raise RequestError.invalid_params({"field": "cursor", "reason": "not a cursor of this hub"}) from None
        return schema.ListSessionsResponse(sessions=[_info(record) for record in page.sessions], next_cursor=page.next)

    async def close_session(self, session_id: str, **kwargs: Any) -> schema.CloseSessionResponse:
        """Leave it. Its agent is ended when nothing is under way, and started again by the next prompt."""
        self._allowed("prompt")
        session = await refusing(self._hub.session(session_id))
        await self._cancel_own(session)
        await self._attachments.leave(session_id)
        if session.is_idle:
            await refusing(self._hub.release(session_id))
        return schema.CloseSessionResponse()

    async def delete_session(self, session_id: str, **kwargs: Any) -> schema.DeleteSessionResponse:
        self._allowed("admin")
        await self._attachments.leave(session_id)
        await refusing(self._hub.delete_session(session_id))
        return schema.DeleteSessionResponse()

    async def set_session_mode(self, session_id: str, mode_id: str, **kwargs: Any) -> schema.SetSessionModeResponse:
        self._allowed("prompt")
        session = await refusing(self._hub.session(session_id))
        await refusing(_stored(session, session.set_mode(mode_id)))
        return schema.SetSessionModeResponse()

    async def set_session_model(self, session_id: str, model_id: str, **kwargs: Any) -> schema.SetSessionModelResponse:
        self._allowed("prompt")
        session = await refusing(self._hub.session(session_id))
        await refusing(_stored(session, session.call("session/set_model", {"modelId": model_id})))
        return schema.SetSessionModelResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> schema.SetSessionConfigOptionResponse:
        self._allowed("prompt")
        session = await refusing(self._hub.session(session_id))
        await refusing(_stored(session, session.set_config_option(config_id, value)))
        state = session.state
        answer: schema.SetSessionConfigOptionResponse = setup(schema.SetSessionConfigOptionResponse, state)
        return answer

    async def set_session_title(self, session_id: str, title: str | None = None, **kwargs: Any) -> dict[str, Any]:
        self._allowed("prompt")
        session = await refusing(self._hub.session(session_id))

        async def rename() -> None:
            session.rename(checked_title(title))
            await session.committed()

        await refusing(rename())
        return {}

    # -- turns --

    async def prompt(
        self, session_id: str, prompt: list[Any], field_meta: dict[str, Any] | None = None
    ) -> schema.PromptResponse:
        """Wait in the hub's queue, then for the turn, then until all of it has been sent to this client."""
        self._allowed("prompt")
        if not prompt:
            raise RequestError.invalid_params({"field": "prompt", "reason": "expected at least one content block"})
        request_id = _ours(field_meta).get("clientRequestId")
        session = await refusing(self._hub.session(session_id))
        await self._attachments.opened(session)
        sent = await refusing(
            session.send(prompt, client_request_id=request_id if isinstance(request_id, str) else None)
        )
        self._attachments.mine(session_id, sent.turn_id)
        own = self._prompts[session_id]
        own.append(sent)
        try:
            result = await refusing(asyncio.shield(sent.done))
            ending = await self._attachments.told(session_id, sent.turn_id, result.seq)
        except asyncio.CancelledError:
            if not self._is_closing and not sent.done.done():
                self._spawn(self._cancel_prompts(session, [sent]))  # `$/cancel_request`: it is wanted no longer
            raise
        finally:
            own.remove(sent)
        return prompt_answer(result, ending)

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """End the running turn, and take back what this client has waiting."""
        try:
            self._allowed("prompt")
            session = await refusing(self._hub.session(session_id))
        except RequestError as exc:  # nobody waits for an answer to this
            logger.info("session/cancel of %s was refused: %s", session_id, exc)
            return
        # not waited for: what else this client has to say about the session must not wait until the turn is over
        self._spawn(self._cancel_all(session))

    async def _cancel_all(self, session: HubSession) -> None:
        for sent in list(self._prompts[session.id]):
            if sent.phase == "waiting":
                with contextlib.suppress(Exception):
                    session.cancel_queued(sent.turn_id)
        await session.cancel()

    async def _cancel_own(self, session: HubSession) -> None:
        await self._cancel_prompts(session, list(self._prompts[session.id]))

    async def _cancel_prompts(self, session: HubSession, prompts: list[Prompt]) -> None:
        """End these prompts, wherever they are, and no others."""
        for sent in prompts:
            if sent.done.done():
                continue
            if sent.phase == "waiting":
                with contextlib.suppress(Exception):
                    session.cancel_queued(sent.turn_id)
            else:
                await session.cancel()

    # -- everything else --

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """An extension is the agent's: it is asked, if the params name a session."""
        self._allowed("prompt")
        session_id = params.get("sessionId")
        if not isinstance(session_id, str):
            raise RequestError.method_not_found(f"_{method}")
        session = await refusing(self._hub.session(session_id))
        rest = {name: value for name, value in params.items() if name != "sessionId"}
        return await refusing(session.call(f"_{method}", rest))

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """What nobody knows is to be ignored."""

    def _agent(self, wanted: Any) -> str:
        if isinstance(wanted, str):
            return wanted
        return self._default_agent or next(iter(self._hub.agents), "")

    def _asking(self, session_id: str) -> Asking:
        caller = self.authenticated.result()
        return Asking(
            self._hub,
            session_id,
            self._side.connection.request,
            by=caller.name,
            approves=caller.may("approve"),
            capabilities=self._capabilities,
        )


async def _stored(session: HubSession, work: Awaitable[Any]) -> None:
    """Do it, and wait until the log has what it changed."""
    await work
    await session.committed()


def _ours(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    own = (meta or {}).get("pilothouse")
    return own if isinstance(own, dict) else {}


def _left_out(mcp_servers: list[Any] | None, directories: list[str] | None) -> list[str] | None:
    """What a client gave that the hub does not hand on."""
    given = {"mcpServers": mcp_servers, "additionalDirectories": directories}
    return [name for name, value in given.items() if value] or None


def _info(record: SessionRecord) -> schema.SessionInfo:
    return schema.SessionInfo(
        session_id=record.id,
        cwd=record.cwd,
        title=record.title,
        updated_at=record.updated,
        field_meta=wire(agent=record.agent, status=record.status, seq=record.last_seq),
    )
