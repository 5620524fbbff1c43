"""What the hub does for an agent as its client: files, terminals, permissions, questions.

Everything that the hub says it can do is served here, after the rules were asked (see `conduct`) and the paths were
found to be inside of the workspace; then by an editor that has the session open and offers it, else by the hub itself
(see `editors`). Extensions are the editors'. Anything else is answered with "method not found", and only that: an
agent is never told that something was done which was not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from ..acp import lenient, schema
from ..acp.errors import RequestError, ValidationError
from ..acp.model import to_wire
from .approvals import Approvals
from .conduct import Conduct
from .editor_terminals import EditorTerminals
from .editors import Editor, Editors, Unable
from .questions import Questions
from .refusals import Refusal, request_error
from .terminals import Ending, Terminals
from .workspace import Workspace

__all__ = ["CLIENT_CAPABILITIES", "Serving"]

CLIENT_CAPABILITIES: Mapping[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
}


class Serving:
    """Answers one session's agent. `mark` is put into the environment of what runs in its terminals; `on_output` and
    `on_end` are told what these print and how they end."""

    def __init__(
        self,
        workspace: Workspace,
        approvals: Approvals,
        questions: Questions,
        conduct: Conduct,
        editors: Editors,
        *,
        cwd: str,
        mark: tuple[str, str] | None = None,
        on_output: Callable[[str, str], None] | None = None,
        on_end: Callable[[str, Ending], None] | None = None,
    ) -> None:
        self._workspace = workspace
        self._approvals = approvals
        self._questions = questions
        self._conduct = conduct
        self._editors = editors
        self._cwd = cwd
        self._mark = mark
        self._on_output = on_output
        self._on_end = on_end
        self._terminals, self._lent = self._new_terminals()

    def _new_terminals(self) -> tuple[Terminals, EditorTerminals]:
        """The hub's own, and those in editors."""
        told: dict[str, Any] = {"on_output": self._on_output, "on_end": self._on_end}
        own = Terminals(self._workspace, **told)
        return own, EditorTerminals(self._editors.session_id, is_taken=own.__contains__, **told)

    @property
    def has_programs(self) -> bool:
        """Whether something runs in a terminal."""
        return self._terminals.are_busy or self._lent.are_busy

    async def end_terminals(self, *, for_good: bool = False) -> None:
        """Their agent is gone, and they go with it; the next agent gets its own."""
        own, lent = self._terminals, self._lent
        if not for_good:
            self._terminals, self._lent = self._new_terminals()
        await asyncio.gather(own.close(), lent.close())

    def lose(self, editor: Editor) -> None:
        """An editor leaves the session, and its terminals end."""
        self._lent.lose(editor)

    async def answer(self, method: str, params: Any, raw: bytes) -> Any:
        """The result of a request of the agent. Raises RequestError."""
        if method == "session/request_permission":
            return await self._approvals.ask(raw)
        if method == "elicitation/create":
            return await self._questions.ask(raw)
        if method.startswith("_"):
            return await self._extension(method, params)
        route = _ROUTES.get(method)
        if route is None:
            raise RequestError.method_not_found(method)
        kind, serve = route
        try:
            request, _ = lenient.repair(kind, params if params is not None else {}, "params")
        except ValidationError as exc:
            raise RequestError.invalid_params({"field": exc.path, "reason": exc.reason}) from None
        try:
            return await serve(self, request)
        except Refusal as refusal:
            raise request_error(refusal) from None

    # -- files --

    async def _read(self, request: Any) -> Any:
        await self._conduct.check_read(request.path)
        try:
            return await self._editors.read(await self._absolute(request, "path"))
        except Unable:
            content = await self._workspace.read_text(request.path, request.line, request.limit)
        self._editors.serving(None)
        return {"content": content}

    async def _write(self, request: Any) -> Any:
        await self._conduct.check_write(request.path)
        try:
            return await self._editors.write(await self._absolute(request, "path"))
        except Unable:
            await self._workspace.write_text(request.path, request.content)
        self._editors.serving(None)
        return {}

    async def _absolute(self, request: Any, field: str) -> dict[str, Any]:
        """A request as an editor gets it: with the path as it was given, which is how the editor knows its file.

        One that goes back up is given as where it leads: what is before a `..` may be a link. Raises WorkspaceError.
        """
        params: dict[str, Any] = to_wire(request)
        given = Path(self._cwd) / (params.get(field) or "")
        if ".." in given.parts:
            given = await asyncio.to_thread(self._workspace.resolve, str(given))
        return {**params, field: str(given)}

    # -- terminals --

    async def _create(self, request: Any) -> Any:
        await self._conduct.check_program(request.command, request.args or ())
        editor = self._editors.first("terminals")
        if editor is not None:
            await self._workspace.directory(request.cwd)
            try:
                terminal_id = await self._lent.create(editor, await self._absolute(request, "cwd"))
            except Unable:
                pass
            else:
                self._editors.serving(editor)
                return {"terminalId": terminal_id}
        env = [*(request.env or ()), self._mark] if self._mark else request.env or ()
        terminal_id = await self._terminals.create(
            request.command, request.args or (), env, request.cwd, request.output_byte_limit
        )
        self._editors.serving(None)
        return {"terminalId": terminal_id}

    async def _output(self, request: Any) -> Any:
        terminal_id = request.terminal_id
        lent = terminal_id in self._lent
        output = await self._lent.output(terminal_id) if lent else self._terminals.output(terminal_id)
        answer: dict[str, Any] = {"output": output.text, "truncated": output.truncated}
        if output.exit_status is not None:
            answer["exitStatus"] = _status(output.exit_status)
        return answer

    async def _wait(self, request: Any) -> Any:
        return _status(await self._holding(request).wait(request.terminal_id))

    async def _kill(self, request: Any) -> Any:
        await self._holding(request).kill(request.terminal_id)
        return {}

    async def _release(self, request: Any) -> Any:
        await self._holding(request).release(request.terminal_id)
        return {}

    def _holding(self, request: Any) -> Terminals | EditorTerminals:
        return self._lent if request.terminal_id in self._lent else self._terminals

    # -- extensions --

    async def _extension(self, method: str, params: Any) -> Any:
        """What clients know and the hub does not; the ids of the session are exchanged in both directions."""
        told = {**params, "sessionId": self._editors.session_id} if _names_session(params) else params
        answer = await self._editors.extension(method, told)
        return {**answer, "sessionId": params["sessionId"]} if _names_session(answer, params) else answer


def _names_session(*values: Any) -> bool:
    return all(isinstance(value, dict) and isinstance(value.get("sessionId"), str) for value in values)


def _status(status: Any) -> dict[str, Any]:
    return {"exitCode": status.exit_code, "signal": status.signal}


_ROUTES: dict[str, tuple[Any, Callable[[Serving, Any], Awaitable[Any]]]] = {
    "fs/read_text_file": (schema.ReadTextFileRequest, Serving._read),
    "fs/write_text_file": (schema.WriteTextFileRequest, Serving._write),
    "terminal/create": (schema.CreateTerminalRequest, Serving._create),
    "terminal/output": (schema.TerminalOutputRequest, Serving._output),
    "terminal/wait_for_exit": (schema.WaitForTerminalExitRequest, Serving._wait),
    "terminal/kill": (schema.KillTerminalRequest, Serving._kill),
    "terminal/release": (schema.ReleaseTerminalRequest, Serving._release),
}
