"""Editors on the official SDKs that start `pilothouse acp`: the Python one in this process, the TypeScript one in node.

async with foreign_client("typescript", home, "-a", "demo") as client:     # initialized, with files and terminals
    session = (await client.ask("session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
    answer = await client.prompt(session, "edit notes.txt")
    client.texts(session), client.asked, client.served

Both are told the same and tell the same, in the words of the protocol. Commands in their terminals have WHERE=editor
in their environment, so that it shows where one ran.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import acp
from acp import schema as sdk

from tests.interop.sdk_client import CALLS, Terminal
from tests.support.editors import PATIENCE, Home, Refused, gone, home_for_editors
from tests.support.hubs import processes_with

__all__ = ["KINDS", "ForeignClient", "clean_environment", "foreign_client", "home_left_clean", "node_program"]

INTEROP = Path(__file__).parents[1] / "interop"
OFFERED = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
LIMIT = 64 << 20
WHERE = {"WHERE": "editor"}

Json = dict[str, Any]


def node_program(*needed: str) -> str:
    """Where node is. What tests need of `tests/interop/node_modules` must be there: they fail without it."""
    node = shutil.which("node")
    assert node is not None, "node is not on PATH; these tests need it"
    for name in needed:
        found = INTEROP / "node_modules" / name
        assert found.exists(), f"{found} is not there: `make test` gets it with npm"
    return node


def clean_environment(home: Home) -> dict[str, str]:
    """Nothing but what a program needs, and where our home is."""
    given = {name: home.environment[name] for name in ("PILOTHOUSE_HOME", "PILOTHOUSE_PORT")}
    user = home.path.parent / "user"
    user.mkdir(exist_ok=True)
    path = os.pathsep.join((str(Path(node_program()).parent), os.defpath))
    return {**given, "PATH": path, "HOME": str(user), "LANG": "C.UTF-8"}


@contextlib.asynccontextmanager
async def home_left_clean(directory: Path) -> AsyncIterator[Home]:
    """A home for editors. When its hub is gone, nothing of it may be left: no agent, no bridge, no command."""
    async with home_for_editors(directory) as home:
        yield home
    async with asyncio.timeout(PATIENCE):
        while processes_with(f"PILOTHOUSE_HOME={home.path}"):
            await asyncio.sleep(0.02)


class ForeignClient(ABC):
    """One editor. `asked` are the questions it was asked, `withdrawn` the tool calls of those that were taken back,
    `served` the methods by which its files and terminals were used. `bridge` is the pid of its `pilothouse acp`.
    """

    def __init__(self) -> None:
        self.bridge = 0
        self.offer: Json = {}
        self.updates: defaultdict[str, list[Json]] = defaultdict(list)
        self.asked: list[Json] = []
        self.withdrawn: list[str] = []
        self.served: list[str] = []
        self.is_killed = False
        self._changed = asyncio.Event()

    # -- speaking --

    @abstractmethod
    async def _call(self, method: str, params: Json) -> Json:
        """Ask; the answer, or Refused."""

    @abstractmethod
    async def tell(self, method: str, **params: Any) -> None: ...

    @abstractmethod
    def choose(self, kind: str | None) -> None:
        """The kind of option to choose from now on; None leaves questions open."""

    @abstractmethod
    def edit(self, path: Path, text: str) -> None:
        """Have a file open that was changed and not saved."""

    @abstractmethod
    async def _kill(self) -> None: ...

    async def ask(self, method: str, **params: Any) -> Json:
        async with asyncio.timeout(PATIENCE):
            return await self._call(method, params)

    async def new_session(self, cwd: Path) -> str:
        return str((await self.ask("session/new", cwd=str(cwd), mcpServers=[]))["sessionId"])

    async def load(self, session: str, cwd: Path) -> Json:
        """Load it, and wait for all that came with it: an SDK may answer before it has handed out what came first."""
        answer = await self.ask("session/load", sessionId=session, cwd=str(cwd), mcpServers=[])
        await self.ask("session/list")
        return answer

    async def prompt(self, session: str, text: str) -> Json:
        answer = await self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        await self.ask("session/list")
        return answer

    def start_prompt(self, session: str, text: str) -> asyncio.Task[Json]:
        return asyncio.create_task(self.prompt(session, text))

    async def kill(self) -> None:
        """End it with no chance to say anything, and wait until its bridge is gone as well."""
        self.is_killed = True
        await self._kill()
        await gone(self.bridge)

    # -- hearing --

    def texts(self, session: str, kind: str = "agent_message_chunk") -> str:
        return "".join(one["content"]["text"] for one in self.updates[session] if one["sessionUpdate"] == kind)

    def seqs(self, session: str) -> list[int]:
        return [one["_meta"]["pilothouse"]["seq"] for one in self.updates[session]]

    def as_known(self, update: Json) -> Json:
        """An update without what its SDK has no place for."""
        return update

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait for what is to come; the answer is what the condition says."""
        async with asyncio.timeout(PATIENCE):
            while not (found := condition()):
                self._changed.clear()
                await self._changed.wait()
        return found


class PythonClient(ForeignClient):
    """On the official Python SDK."""

    def __init__(self) -> None:
        super().__init__()
        self.connection: Any = None
        self._chosen: str | None = None
        self._buffers: dict[str, str] = {}
        self._terminals: dict[str, Terminal] = {}

    async def _call(self, method: str, params: Json) -> Json:
        request_type, call = CALLS[method]
        request: Any = request_type.model_validate(params)
        fields = {name: getattr(request, name) for name in request.model_fields_set - {"field_meta"}}
        try:
            return _wire(await call(self.connection, **fields)) or {}
        except acp.RequestError as exc:
            raise Refused({"code": exc.code, "message": str(exc), "data": exc.data}) from exc

    async def tell(self, method: str, **params: Any) -> None:
        await self._call(method, params)

    def choose(self, kind: str | None) -> None:
        self._chosen = kind

    def edit(self, path: Path, text: str) -> None:
        self._buffers[str(path)] = text

    def as_known(self, update: Json) -> Json:
        known: Json = _wire(sdk.SessionNotification.model_validate({"sessionId": "", "update": update}).update)
        return known

    async def _kill(self) -> None:
        os.kill(self.bridge, signal.SIGKILL)  # the editor itself is this process

    # -- what the SDK calls --

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        # no await before this: the SDK runs each update as a task of its own, and only the start is in order
        self.updates[session_id].append(_wire(update))
        self._changed.set()

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        kinds = [option.kind for option in options]
        self.asked.append({"toolCallId": tool_call.tool_call_id, "title": tool_call.title, "kinds": kinds})
        self._changed.set()
        if self._chosen not in kinds:
            await asyncio.Event().wait()  # this SDK does not know `$/cancel_request`
        chosen = options[kinds.index(self._chosen)].option_id
        return acp.RequestPermissionResponse(outcome=sdk.AllowedOutcome(outcome="selected", option_id=chosen))

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> Any:
        self.served.append("fs/read_text_file")
        try:
            text = self._buffers[path] if path in self._buffers else Path(path).read_text()
        except FileNotFoundError:
            raise acp.RequestError.resource_not_found(path) from None
        start = (line or 1) - 1
        lines = text.splitlines(keepends=True)[start : None if limit is None else start + limit]
        return acp.ReadTextFileResponse(content="".join(lines))

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> Any:
        self.served.append("fs/write_text_file")
        self._buffers.pop(path, None)
        Path(path).write_text(content)
        return acp.WriteTextFileResponse()

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[Any] | None = None,
        cwd: str | None = None,
        **_: Any,
    ) -> Any:
        self.served.append("terminal/create")
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            env={**os.environ, **WHERE, **{variable.name: variable.value for variable in env or []}},
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        terminal_id = f"terminal-{process.pid}"
        self._terminals[terminal_id] = Terminal(process)
        return acp.CreateTerminalResponse(terminal_id=terminal_id)

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        terminal = self._terminals[terminal_id]
        status = None
        if terminal.process.returncode is not None:
            code, name = terminal.exit
            status = sdk.TerminalExitStatus(exit_code=code, signal=name)
        return acp.TerminalOutputResponse(output=terminal.output.decode(), truncated=False, exit_status=status)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> Any:
        code, name = await self._terminals[terminal_id].wait()
        return acp.WaitForTerminalExitResponse(exit_code=code, signal=name)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self._terminals[terminal_id].process.kill()

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        terminal = self._terminals.pop(terminal_id)
        with contextlib.suppress(ProcessLookupError):
            terminal.process.kill()
        await terminal.wait()


class TypeScriptClient(ForeignClient):
    """On the official TypeScript SDK: `tests/interop/editor_client.mjs`, spoken to by lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__()
        self.process = process
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._reading = asyncio.create_task(self._read())

    def _say(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _call(self, method: str, params: Json) -> Json:
        number = len(self._answers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._say(id=number, method=method, params=params)
        return await answer

    async def tell(self, method: str, **params: Any) -> None:
        self._say(method=method, params=params)

    def choose(self, kind: str | None) -> None:
        self._say(choose=kind)

    def edit(self, path: Path, text: str) -> None:
        self._say(buffer=[str(path), text])

    async def _kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self._take(json.loads(line))
            self._changed.set()
        for answer in self._answers.values():
            answer.cancel()

    def _take(self, told: Json) -> None:
        match told:
            case {"sessionId": session, "update": update}:
                self.updates[session].append(update)
            case {"id": number, "result": result}:
                self._answers[number].set_result(result or {})
            case {"id": number, "error": error}:
                self._answers[number].set_exception(Refused(error))
            case {"asked": asked}:
                self.asked.append(asked)
            case {"withdrawn": call}:
                self.withdrawn.append(call)
            case {"served": method}:
                self.served.append(method)
            case {"bridge": pid}:
                self.bridge = pid
            case _:
                raise AssertionError(f"the client said {told}")

    async def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
            await self._reading
        return code


def _wire(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)


@contextlib.asynccontextmanager
async def _python(environment: dict[str, str], command: list[str], stderr: Any) -> AsyncIterator[ForeignClient]:
    client = PythonClient()
    transport = {"stderr": stderr, "limit": LIMIT, "shutdown_timeout": PATIENCE}
    async with acp.spawn_agent_process(
        client,  # type: ignore[arg-type]
        *command,
        env=environment,
        transport_kwargs=transport,
        use_unstable_protocol=True,
    ) as (connection, process):
        client.connection, client.bridge = connection, process.pid
        yield client
    assert process.returncode == (-signal.SIGKILL if client.is_killed else 0)


@contextlib.asynccontextmanager
async def _typescript(environment: dict[str, str], command: list[str], stderr: Any) -> AsyncIterator[ForeignClient]:
    process = await asyncio.create_subprocess_exec(
        *(node_program("@agentclientprotocol/sdk"), str(INTEROP / "editor_client.mjs"), *command),
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        limit=LIMIT,
    )
    client = TypeScriptClient(process)
    try:
        await client.until(lambda: client.bridge)
        yield client
        assert await client.close() == (-signal.SIGKILL if client.is_killed else 0)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await client._reading


KINDS = {"python": _python, "typescript": _typescript}


@contextlib.asynccontextmanager
async def foreign_client(kind: str, home: Home, *options: str) -> AsyncIterator[ForeignClient]:
    """A client that starts `pilothouse acp` with these options in a clean environment, and ends it with the block."""
    with (home.path.parent / "stderr").open("w+") as stderr:
        async with KINDS[kind](clean_environment(home), home.command(*options), stderr) as client:
            client.offer = await client.ask("initialize", protocolVersion=1, clientCapabilities=OFFERED)
            yield client
        stderr.seek(0)
        assert stderr.read() == ""
