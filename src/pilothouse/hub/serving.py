"""What the hub does for an agent as its client: files, terminals, permissions, questions.

Everything that the hub says it can do is served here, after the rules were asked (see `conduct`); anything else is
answered with "method not found", and only that: an agent is never told that something was done which was not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..acp import lenient, schema
from ..acp.errors import RequestError, ValidationError
from .approvals import Approvals
from .conduct import Conduct
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
        *,
        mark: tuple[str, str] | None = None,
        on_output: Callable[[str, str], None] | None = None,
        on_end: Callable[[str, Ending], None] | None = None,
    ) -> None:
        self._workspace = workspace
        self._approvals = approvals
        self._questions = questions
        self._conduct = conduct
        self._mark = mark
        self._on_output = on_output
        self._on_end = on_end
        self._terminals = self._new_terminals()

    def _new_terminals(self) -> Terminals:
        return Terminals(self._workspace, on_output=self._on_output, on_end=self._on_end)

    @property
    def has_programs(self) -> bool:
        """Whether something runs in a terminal."""
        return self._terminals.are_busy

    async def end_terminals(self, *, for_good: bool = False) -> None:
        """Their agent is gone, and they go with it; the next agent gets its own."""
        terminals = self._terminals
        if not for_good:
            self._terminals = self._new_terminals()
        await terminals.close()

    async def answer(self, method: str, params: Any, raw: bytes) -> Any:
        """The result of a request of the agent. Raises RequestError."""
        if method == "session/request_permission":
            return await self._approvals.ask(raw)
        if method == "elicitation/create":
            return await self._questions.ask(raw)
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

    async def _read(self, request: Any) -> Any:
        await self._conduct.check_read(request.path)
        return {"content": await self._workspace.read_text(request.path, request.line, request.limit)}

    async def _write(self, request: Any) -> Any:
        await self._conduct.check_write(request.path)
        await self._workspace.write_text(request.path, request.content)
        return {}

    async def _create(self, request: Any) -> Any:
        await self._conduct.check_program(request.command, request.args or ())
        env = [*(request.env or ()), self._mark] if self._mark else request.env or ()
        terminal_id = await self._terminals.create(
            request.command, request.args or (), env, request.cwd, request.output_byte_limit
        )
        return {"terminalId": terminal_id}

    async def _output(self, request: Any) -> Any:
        output = self._terminals.output(request.terminal_id)
        answer: dict[str, Any] = {"output": output.text, "truncated": output.truncated}
        if output.exit_status is not None:
            answer["exitStatus"] = _status(output.exit_status)
        return answer

    async def _wait(self, request: Any) -> Any:
        return _status(await self._terminals.wait(request.terminal_id))

    async def _kill(self, request: Any) -> Any:
        await self._terminals.kill(request.terminal_id)
        return {}

    async def _release(self, request: Any) -> Any:
        await self._terminals.release(request.terminal_id)
        return {}


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
