"""The hub as an ACP agent over one link: each method of the protocol, done by the hub, for one client among many.

A session here is a session of the hub, under the hub's id. A client that opens one is attached to it: it gets the
updates of every turn, whoever prompted, and the agent's questions; one that may prompt and approve is an editor of it,
whose files and terminals its agent uses as far as it offers them. Leaving ends nothing but that. Rules a change must
not break: nothing of a session is sent before the answer that names it; a replay is sent before its answer; a prompt
is answered after all updates of its turn; who may not read has no session open, and so may not begin or prompt one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

from ...acp import schema
from ...acp.agent.connection import AgentSideConnection
from ...acp.connection import Diagnostic
from ...acp.errors import ConnectionClosed, RequestError
from ...acp.transport import Link
from ...hub.agent.inputs import without_ours
from ...hub.errors import HubClosing
from ...hub.hub import Hub
from ...hub.session.session import HubSession
from ...log.records import SessionRecord
from ..auth import audit
from ..auth.callers import Caller, Scope
from ..frame_cache import FrameCache
from ..session_options import checked_title, may_work_in
from .answers import forbidden, refusing, request_error, setup, wire
from .attachments import Attachments
from .entrance import Authenticate, Entrance, Given, cursor_in, given_by, ours, own_requests
from .feed import Outlet
from .prompts import Prompts
from .questions import Asking

logger = logging.getLogger(__name__)

PAGE = 50
REPORTS = 10
"""Oddities of one client that are written down."""


class AcpFace:
    """Serves one ACP client. Make it inside a running loop, await `wait_closed`, and `close` it.

    `caller` is who the client is; without one it must authenticate, and `authenticate` says who has a token. An agent
    that the client does not name is `default_agent`, else the first. `authenticated` is done when the caller is known.
    Servers that are given the same `runs` make updates only once. `alone`: there is no other client, so what this one
    cannot be asked nobody can.
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
        cache: FrameCache | None = None,
        alone: bool = False,
    ) -> None:
        self._hub = hub
        self._alone = alone
        self._default_agent = default_agent
        self._policy = policy
        self._entrance = Entrance(caller, authenticate, lambda: self._side.connection)
        self.authenticated = self._entrance.authenticated
        outlet = Outlet(link, cache or FrameCache())
        self._attachments = Attachments(hub, outlet, self._asking, lambda: self._entrance.editor, limit)
        self._prompts = Prompts(self._attachments)
        self._reports = REPORTS
        self._side = AgentSideConnection(self, link, on_diagnostic=self._odd)  # type: ignore[arg-type]  # not all is done

    # -- life --

    async def wait_closed(self) -> ConnectionClosed:
        """Until the client is gone."""
        return await self._side.connection.wait_closed()

    async def close(self) -> None:
        """Let the client go. Its turns go on; its questions stay open for others."""
        self._prompts.close()
        await self._side.close()
        await self._attachments.leave_all()
        await self._prompts.finish()
        self.authenticated.cancel()

    def _odd(self, diagnostic: Diagnostic) -> None:
        """What a client sends that is no ACP must not fill our log, nor get into it: it may hold a token."""
        if self._reports:
            self._reports -= 1
            logger.info("an ACP client: %s: %s", diagnostic.kind, diagnostic.message)

    # -- the connection --

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **kwargs: Any,
    ) -> schema.InitializeResponse:
        facts = {"agents": sorted(self._hub.agents), "agent": self._agent(None)}
        return self._entrance.initialize(client_capabilities, client_info, facts)

    async def authenticate(
        self, method_id: str, field_meta: dict[str, Any] | None = None
    ) -> schema.AuthenticateResponse:
        await self._entrance.authenticate(method_id, field_meta)
        return schema.AuthenticateResponse()

    # -- sessions --

    async def new_session(
        self,
        cwd: str,
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        field_meta: dict[str, Any] | None = None,
    ) -> schema.NewSessionResponse:
        caller = self._allowed("prompt", "read")
        self._attachments.check_room()
        await self._check_place(caller, cwd)
        given = given_by(caller, mcp_servers, additional_directories, field_meta)
        named = ours(field_meta).get("agent")
        name, choosable = self._agent(named), not isinstance(named, str)
        session = await refusing(self._hub.start_session(name, cwd, policy=self._policy, choosable=choosable))
        session.provide(given.provisions)
        try:
            await refusing(session.start())
        except BaseException:  # also when the client goes away meanwhile
            await refusing(self._hub.delete_session(session.id))  # nobody has heard of it
            raise
        self._write_down("session/new", session.id)
        self._attachments.begin(session)
        answer: schema.NewSessionResponse = self._setup(schema.NewSessionResponse, session, session.state.seq, given)
        return answer

    async def load_session(
        self,
        session_id: str,
        cwd: str = "",
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        field_meta: dict[str, Any] | None = None,
    ) -> schema.LoadSessionResponse:
        """All that was, then the answer, then what comes."""
        given = given_by(self._allowed("read"), mcp_servers, additional_directories, field_meta)
        answer: schema.LoadSessionResponse = await self._open(schema.LoadSessionResponse, session_id, 0, given)
        return answer

    async def resume_session(
        self,
        session_id: str,
        cwd: str = "",
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        field_meta: dict[str, Any] | None = None,
    ) -> schema.ResumeSessionResponse:
        """What comes; with `_meta.pilothouse.after` first what came after that seq.

        The prompts that `_meta.pilothouse.own` names by their `clientRequestId` are not said back.
        """
        given = given_by(self._allowed("read"), mcp_servers, additional_directories, field_meta)
        after, own = cursor_in(field_meta), own_requests(field_meta)
        answer: schema.ResumeSessionResponse = await self._open(
            schema.ResumeSessionResponse, session_id, after, given, own
        )
        return answer

    async def fork_session(
        self,
        session_id: str,
        cwd: str = "",
        mcp_servers: list[Any] | None = None,
        additional_directories: list[str] | None = None,
        field_meta: dict[str, Any] | None = None,
    ) -> schema.ForkSessionResponse:
        """A session of its own with the history of this one; what comes of it from now on."""
        caller = self._allowed("prompt", "read")
        given = given_by(caller, mcp_servers, additional_directories, field_meta)
        self._attachments.check_room()
        await self._check_place(caller, cwd)
        forking = self._hub.fork_session(session_id, cwd=cwd or None, provisions=given.provisions)
        fork, inherited = await refusing(forking)
        self._write_down("session/fork", fork.id)
        self._attachments.begin(fork, inherited)  # whoever forks a session has it, and is not told it again
        answer: schema.ForkSessionResponse = self._setup(schema.ForkSessionResponse, fork, fork.state.seq, given)
        return answer

    async def _open(
        self, kind: Any, session_id: str, after: int | None, given: Given, own: list[str] | None = None
    ) -> Any:
        session = await refusing(self._hub.session(session_id))
        has_all = session.provide(given.provisions)
        feed = await self._attachments.open(session, after, own or ())
        feed.start()
        is_given = any(given.provisions.means)
        return self._setup(kind, session, feed.cursor, given, later=is_given and not has_all)

    def _setup(self, kind: Any, session: HubSession, seq: int, given: Given, *, later: bool = False) -> Any:
        """How a session is set up, for this client. `later`: its agent runs with something else than was given."""
        ignored = [*given.refused, *session.ignored]
        if later:
            ignored.append({"field": "mcpServers", "reason": "the agent runs; it gets this when it is started anew"})
        state = session.state
        return setup(
            kind,
            state,
            options=self._attachments.dressing(session.id).options(state.config_options),
            agent_meta=session.agent_meta,
            agent=session.agent_name,
            cwd=session.cwd,
            seq=seq,
            ignored=ignored or None,
        )

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
        self._write_down("session/close", session_id)
        await self._prompts.cancel_own(session)
        await self._attachments.leave(session_id)
        if session.is_idle and session.watched is None:  # one that is watched has no agent, and others look on
            await refusing(self._hub.release(session_id))
        return schema.CloseSessionResponse()

    async def delete_session(self, session_id: str, **kwargs: Any) -> schema.DeleteSessionResponse:
        self._allowed("admin")
        await self._attachments.leave(session_id)
        await refusing(self._hub.delete_session(session_id))
        self._write_down("session/delete", session_id)
        return schema.DeleteSessionResponse()

    async def set_session_mode(
        self, session_id: str, mode_id: str, field_meta: dict[str, Any] | None = None
    ) -> schema.SetSessionModeResponse:
        self._allowed("prompt")
        session = await refusing(self._hub.session(session_id))
        answer = await refusing(_stored(session, session.set_mode(mode_id, without_ours(field_meta))))
        self._write_down("session/set_mode", session_id)
        return schema.SetSessionModeResponse(field_meta=_meta(answer))

    async def set_session_model(
        self, session_id: str, model_id: str, field_meta: dict[str, Any] | None = None
    ) -> schema.SetSessionModelResponse:
        self._allowed("prompt")
        session = await refusing(self._hub.session(session_id))
        meta = without_ours(field_meta)
        params: dict[str, Any] = {"modelId": model_id, **({"_meta": meta} if meta else {})}
        answer = await refusing(_stored(session, session.call("session/set_model", params)))
        self._write_down("session/set_model", session_id)
        return schema.SetSessionModelResponse(field_meta=_meta(answer))

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, field_meta: dict[str, Any] | None = None
    ) -> schema.SetSessionConfigOptionResponse:
        self._allowed("prompt")
        session = await refusing(self._hub.session(session_id))
        told = await refusing(_stored(session, session.set_config_option(config_id, value, without_ours(field_meta))))
        self._write_down("session/set_config_option", session_id)
        state = session.state
        options = self._attachments.dressing(session_id).options(state.config_options)
        answer: schema.SetSessionConfigOptionResponse = setup(
            schema.SetSessionConfigOptionResponse, state, options=options, agent_meta=_meta(told)
        )
        return answer

    async def set_session_title(self, session_id: str, title: str | None = None, **kwargs: Any) -> dict[str, Any]:
        self._allowed("prompt")
        session = await refusing(self._hub.session(session_id))

        async def rename() -> None:
            session.rename(checked_title(title))
            await session.committed()

        await refusing(rename())
        self._write_down("session/set_title", session_id)
        return {}

    # -- turns --

    async def prompt(
        self, session_id: str, prompt: list[Any], field_meta: dict[str, Any] | None = None
    ) -> schema.PromptResponse:
        """Wait in the hub's queue, then for the turn, then until all of it has been sent to this client."""
        self._allowed("prompt", "read")
        with self._prompts.coming(session_id) as cancelled:
            session = await refusing(self._hub.session(session_id))
            self._write_down("session/prompt", session_id)
            return await self._prompts.prompt(session, prompt, field_meta, cancelled)

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """End the running turn, and take back what this client has waiting."""
        try:
            self._allowed("prompt")
            self._prompts.cancel_coming(session_id)
            session = await refusing(self._hub.session(session_id))
        except RequestError as exc:  # nobody waits for an answer to this
            logger.info("session/cancel of %s was refused: %s", session_id, exc)
            return
        self._write_down("session/cancel", session_id)
        self._prompts.cancel_all(session)

    # -- everything else --

    async def ext_method(self, method: str, params: dict[str, Any]) -> Any:
        """An extension is the agent's: it is asked, if the params name a session."""
        self._allowed("prompt")
        session = await self._addressed(params)
        if session is None:
            raise RequestError.method_not_found(f"_{method}")
        self._write_down(f"_{method}"[:100], session.id)
        return await refusing(session.extension(f"_{method}", params))

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """The same for what needs no answer; what nobody knows is to be ignored."""
        try:
            self._allowed("prompt")
            session = await self._addressed(params)
            if session is not None:
                self._write_down(f"_{method}"[:100], session.id)
                await refusing(session.tell(f"_{method}", params))
        except RequestError as exc:  # nobody waits for an answer to this
            logger.info("_%s was refused: %s", method[:100], exc)

    def _allowed(self, *scopes: Scope) -> Caller:
        """The caller. Raises RequestError for one that is not known, or may not, or comes when nothing is done now."""
        caller = self._entrance.allowed(*scopes)
        try:
            self._hub.check_open()
        except HubClosing as exc:
            raise request_error(exc) or exc from None
        return caller

    async def _check_place(self, caller: Caller, cwd: str) -> None:
        """Raises RequestError for who may not have a session there."""
        if not await may_work_in(self._hub, caller, cwd):
            raise forbidden(caller.name, "admin")

    def _write_down(self, method: str, session_id: str) -> None:
        """What a client changes is written down as requests are, with who it is."""
        audit.record("acp", self.authenticated.result(), method=method, sessionId=session_id)

    async def _addressed(self, params: dict[str, Any]) -> HubSession | None:
        session_id = params.get("sessionId")
        return await refusing(self._hub.session(session_id)) if isinstance(session_id, str) else None

    def _agent(self, wanted: Any) -> str:
        if isinstance(wanted, str):
            return wanted
        return self._default_agent or next(iter(self._hub.agents), "")

    def _asking(self, session_id: str) -> Asking:
        return Asking(
            self._hub,
            session_id,
            self._side.connection.request,
            caller=self.authenticated.result(),
            capabilities=self._entrance.capabilities,
            alone=self._alone,
        )


async def _stored(session: HubSession, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Do it, and wait until the log has what it changed."""
    answer = await work
    await session.committed()
    return answer


def _meta(answer: dict[str, Any]) -> dict[str, Any] | None:
    """What an agent says beside its answer."""
    meta = answer.get("_meta")
    return without_ours(meta) or None if isinstance(meta, dict) else None


def _info(record: SessionRecord) -> schema.SessionInfo:
    return schema.SessionInfo(
        session_id=record.id,
        cwd=record.cwd,
        title=record.title,
        updated_at=record.updated,
        field_meta=wire(agent=record.agent, status=record.status, seq=record.last_seq),
    )
