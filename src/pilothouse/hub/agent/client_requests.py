"""What the hub does for an agent as its client: files, terminals, permissions, questions.

Every request that the hub declares support for is served here if it is permitted (see `authorization`) and its paths
are inside the workspace: by an editor that has the session open and offers it, else by the hub itself (see `editors`).
Extensions are forwarded to editors. Anything else is answered with "method not found": an agent never gets a success
for something that was not done.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from ...acp import lenient, schema
from ...acp.errors import RequestError, ValidationError
from ...acp.model import to_wire
from ...model.acts import CommandAct, command_from_words
from ..approvals.approvals import Approvals
from ..approvals.authorization import Authorization, environment_of
from ..approvals.questions import Questions
from ..client.editor_terminals import EditorTerminals
from ..client.editors import Editor, Editors, Unable
from ..client.refusals import Changed, Forbidden, Refusal, request_error, shown
from ..client.terminals import Ending, PreparedProgram, Terminals, find_shells, is_plain_word
from ..client.workspace import Workspace

CLIENT_CAPABILITIES: Mapping[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
}

LAST_ACTS = 2.0
"""Seconds for a write or a start in progress to finish, or for an editor to end a program, when a turn is cancelled."""


class Serving:
    """Answers one session's agent. `mark` is put into the environment of the programs in its terminals; `on_output`
    gets what they print, `on_end` how they end."""

    def __init__(
        self,
        workspace: Workspace,
        approvals: Approvals,
        questions: Questions,
        authorization: Authorization,
        editors: Editors,
        *,
        mark: tuple[str, str] | None = None,
        on_output: Callable[[str, str], None] | None = None,
        on_end: Callable[[str, Ending], None] | None = None,
    ) -> None:
        self._workspace = workspace
        self._approvals = approvals
        self._questions = questions
        self._authorization = authorization
        self._editors = editors
        self._mark = mark
        self._on_output = on_output
        self._on_end = on_end
        self._terminals, self._lent = self._new_terminals()
        self._acting: list[asyncio.Task[Any]] = []
        self._extensions: list[asyncio.Task[Any]] = []
        self._started_in_turn: list[str] = []
        self._entries: dict[str, str] = {}

    def _new_terminals(self) -> tuple[Terminals, EditorTerminals]:
        """The hub's own, and those in editors."""
        callbacks: dict[str, Any] = {"on_output": self._on_output, "on_end": self._terminal_ended}
        own = Terminals(self._workspace, **callbacks)
        return own, EditorTerminals(self._editors.session_id, is_taken=own.__contains__, **callbacks)

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

    def _terminal_ended(self, terminal_id: str, ending: Ending) -> None:
        if self._on_end is not None:
            self._on_end(terminal_id, ending)
        entry = self._entries.pop(terminal_id, None)
        if entry is not None:
            self._authorization.end_entry(entry, "completed" if ending.status.exit_code == 0 else "failed")

    # -- turns --

    def begin_turn(self) -> None:
        """Serve the agent again after a cancelled turn."""
        self._authorization.stopped = None
        self._started_in_turn.clear()

    async def stop_turn(self, reason: str) -> None:
        """Refuse new acts, end the programs that the turn started with all children, and wait for acts in progress."""
        self._authorization.stopped = reason
        for task in self._extensions:
            task.cancel()
        await asyncio.gather(*map(self._end_terminal, tuple(self._started_in_turn)))
        if self._acting:
            _, late = await asyncio.wait(tuple(self._acting), timeout=LAST_ACTS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=LAST_ACTS)

    async def _end_terminal(self, terminal_id: str) -> None:
        with contextlib.suppress(Refusal, RequestError, TimeoutError):  # it is gone, or its editor is, or is silent
            if terminal_id not in self._lent:
                await self._terminals.kill(terminal_id)
                return
            async with asyncio.timeout(LAST_ACTS):
                await self._lent.kill(terminal_id)

    def lose(self, editor: Editor) -> None:
        """An editor leaves the session, and its terminals end."""
        self._lent.lose(editor)

    async def answer(self, method: str, params: Any, raw: bytes) -> Any:
        """The result of a request of the agent. Raises RequestError."""
        if method == "session/request_permission":
            _check_object(params, "params")
            _check_object(params.get("toolCall"), "params.toolCall")
            return await self._approvals.ask(raw)
        if method == "elicitation/create":
            _check_object(params, "params")
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

    @contextlib.contextmanager
    def _track_act(self) -> Iterator[None]:
        """Register the current task as an act in progress; `stop_turn` waits for it."""
        task = asyncio.current_task()
        assert task is not None
        self._acting.append(task)
        try:
            yield
        finally:
            self._acting.remove(task)

    # -- files --

    async def _read(self, request: Any) -> Any:
        permitted = await self._authorization.permit_read(request.path)
        try:
            return await self._editors.read({**to_wire(request), "path": permitted.editor_path})
        except Unable:
            content = await self._workspace.read_text(permitted.target, request.line, request.limit, is_resolved=True)
        self._editors.serving(None)
        return {"content": content}

    async def _write(self, request: Any) -> Any:
        with self._track_act():
            async with self._authorization.permit_write(request.path, request.content) as permitted:
                if not permitted.is_needed:
                    return {}
                try:
                    if permitted.check is not None and self._editors.first("writes") is not None:
                        now = await self._authorization.read_current(permitted.target)
                        if not permitted.check(now):
                            raise Changed(
                                f"{shown(request.path)} has changed in the meantime; read it again", path=request.path
                            )
                    self._authorization.check_not_stopped()
                    return await self._editors.write({"path": permitted.editor_path, "content": request.content})
                except Unable:
                    await self._workspace.write_text(
                        permitted.target,
                        request.content,
                        check=permitted.check,
                        before_effect=self._authorization.check_not_stopped,
                        is_resolved=True,
                    )
        self._editors.serving(None)
        return {}

    # -- terminals --

    async def _create(self, request: Any) -> Any:
        given = [(one.name, one.value) for one in request.env or ()]
        env = [*given, self._mark] if self._mark else given
        program = await self._terminals.prepare(request.command, request.args, env, request.cwd)
        line = command_from_words(program.words, find_shells())
        act = CommandAct(line, str(program.directory), environment_of(given))
        with self._track_act():
            async with self._authorization.permit_command(act) as entry:
                if await self._workspace.directory(request.cwd) != program.directory:
                    reason = "its working directory now leads elsewhere; try again"
                    raise Forbidden(f"Bash of {shown(request.command)} refused: {reason}")
                terminal_id = await self._start(request, program)
        self._started_in_turn.append(terminal_id)
        if entry is not None:
            self._entries[terminal_id] = entry
            self._authorization.show_terminal(entry, terminal_id)
        if self._authorization.stopped is not None:  # cancelled while it was being started
            await self._end_terminal(terminal_id)
        return {"terminalId": terminal_id}

    async def _start(self, request: Any, program: PreparedProgram) -> str:
        self._authorization.check_not_stopped()
        editor = self._editors.first("terminals")
        # an editor may give the name of a program to a shell, which reads an unusual one in another way
        is_odd_program = len(program.words) == 1 and not is_plain_word(request.command)
        if editor is not None and not is_odd_program:
            try:
                terminal_id = await self._lent.create(editor, _editor_params(request, program))
            except Unable:
                pass
            else:
                self._editors.serving(editor)
                return terminal_id
        self._authorization.check_not_stopped()
        terminal_id = await self._terminals.start(program, request.output_byte_limit)
        self._editors.serving(None)
        return terminal_id

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
        """Methods of clients that the hub does not know; session ids are exchanged in both directions.

        They are not checked like acts of the hub, but a cancelled turn has none.
        """
        if self._authorization.stopped is not None:
            raise RequestError.internal_error({"details": f"{method} refused: {self._authorization.stopped}"})
        forwarded = {**params, "sessionId": self._editors.session_id} if _names_session(params) else params
        task = asyncio.current_task()
        assert task is not None
        self._extensions.append(task)
        try:
            answer = await self._editors.extension(method, forwarded)
        finally:
            self._extensions.remove(task)
        return {**answer, "sessionId": params["sessionId"]} if _names_session(answer, params) else answer


def _editor_params(request: Any, program: PreparedProgram) -> dict[str, Any]:
    """A start as an editor gets it: only the command, directory and variables that were permitted."""
    params: dict[str, Any] = {"command": request.command, "cwd": str(program.directory)}
    if request.args:
        params["args"] = list(request.args)
    if request.env:  # if a name is given twice, the last value counts, as it was shown
        values = {one.name: one.value for one in request.env}
        params["env"] = [{"name": name, "value": value} for name, value in values.items()]
    if request.output_byte_limit is not None:
        params["outputByteLimit"] = request.output_byte_limit
    return params


def _check_object(value: Any, field: str) -> None:
    """Raises RequestError for anything but an object: the user would be asked about nothing."""
    if not isinstance(value, dict):
        raise RequestError.invalid_params({"field": field, "reason": "expected an object"})


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
