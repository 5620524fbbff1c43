"""The terminals that a client lends to its agent: real programs without a screen, by `terminal/*` of the protocol.

A command with arguments is run as it stands. A command alone that is a whole line, with spaces or shell signs in it,
and that names no program, goes to a shell (bash, else sh), as agents expect: `npm test && ls` works. Programs start
inside of the workspace, though what they do there is theirs; that is what approvals are for. Their environment is the
hub's own with what the agent adds, without anything of Pilothouse: no token, no home. They have nothing to read, and
stdout and stderr come in the order of arrival.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

from ...acp.process import MARK, default_environment
from ...acp.schema import EnvVariable
from ...model.acts import SHELLS
from .programs import ExitStatus, Program
from .refusals import CannotStart, ProgramNotFound, TerminalsClosed, TooManyTerminals, UnknownTerminal, shown
from .workspace import Workspace

OUTPUT_LIMIT = 1024 * 1024
OUTPUT_MOST = 8 * 1024 * 1024
"""Bytes of output that an agent can have kept; written as JSON, where a byte may take six, it still fits a message."""
MOST = 64
"""Terminals at once."""
GRACE = 1.0
"""Seconds that a program gets to end by itself when it is told to, before that is said once more and then enforced."""
OURS = "PILOTHOUSE_"
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_@%+:,./=-]+")
_A_LINE = re.compile(r"[\s|&;<>$`(]")

Variables = Mapping[str, str] | Iterable[EnvVariable | tuple[str, str]]


@dataclass(frozen=True)
class Output:
    """The end of what a program printed; `truncated` if there was more before. No status while it runs."""

    text: str
    truncated: bool
    exit_status: ExitStatus | None


class Ending(NamedTuple):
    """How a program ended, the end of what it printed, and how many bytes of output were before that."""

    status: ExitStatus
    output: str
    left_out: int


class PreparedProgram(NamedTuple):
    """A program and its arguments, where it starts, and all of its environment."""

    words: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]


class Terminals:
    """The terminals of one session. `close` ends them all, as does leaving `async with`."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        on_output: Callable[[str, str], None] | None = None,
        on_end: Callable[[str, Ending], None] | None = None,
        most: int = MOST,
        output_limit: int = OUTPUT_LIMIT,
        grace: float = GRACE,
    ) -> None:
        """`on_output` is called with an id and text as it comes, in pieces put together over some 100 ms, and `on_end`
        when a program has ended, before anyone who waits for that.

        They must not block. A flood is thinned out, and it says so in its place; `output` has the true end.
        """
        self._workspace = workspace
        self._on_output = on_output
        self._on_end = on_end
        self._most = most
        self._output_limit = output_limit
        self._grace = grace
        self._programs: dict[str, Program] = {}
        self._starting = 0
        self._closed = False

    def __len__(self) -> int:
        return len(self._programs)

    def __contains__(self, terminal_id: object) -> bool:
        return terminal_id in self._programs

    @property
    def are_busy(self) -> bool:
        """Whether a program runs in one of them, or is being started."""
        return self._starting > 0 or any(program.status is None for program in self._programs.values())

    async def create(
        self,
        command: str,
        args: Sequence[str] | None = (),
        env: Variables | None = (),
        cwd: str | None = None,
        output_byte_limit: int | None = None,
    ) -> str:
        """Start a program and give the id of its terminal, which must be released. Raises TerminalError, and
        WorkspaceError for a directory that is not there or not inside."""
        return await self.start(await self.prepare(command, args, env, cwd), output_byte_limit)

    async def prepare(
        self,
        command: str,
        args: Sequence[str] | None = (),
        env: Variables | None = (),
        cwd: str | None = None,
    ) -> PreparedProgram:
        """Resolve the program, directory and environment without starting anything. Raises as `create` does."""
        self._check_room()
        directory = await self._workspace.directory(cwd)
        environment = _environment(env or ())
        words = await asyncio.to_thread(_line, command, list(args or ()), directory, environment.get("PATH", ""))
        return PreparedProgram(tuple(words), directory, environment)

    async def start(self, prepared: PreparedProgram, output_byte_limit: int | None = None) -> str:
        """Start a prepared program and return the id of its terminal. Raises TerminalError."""
        self._check_room()
        self._starting += 1
        try:
            terminal_id = f"term_{secrets.token_hex(8)}"
            program = await self._start(terminal_id, prepared, output_byte_limit)
        finally:
            self._starting -= 1
        if self._closed:  # meanwhile
            await program.close()
            self._check_room()
        self._programs[terminal_id] = program
        return terminal_id

    def output(self, terminal_id: str) -> Output:
        """What it printed so far. Raises UnknownTerminal."""
        program = self._program(terminal_id)
        status = program.status
        return Output(*program.output(), status)

    async def wait(self, terminal_id: str) -> ExitStatus:
        """Wait until the program has ended, also by being killed or released. Raises UnknownTerminal."""
        return await self._program(terminal_id).wait()

    async def kill(self, terminal_id: str) -> None:
        """End the program and all it started; its output can still be read. Raises UnknownTerminal."""
        await self._program(terminal_id).stop()

    async def release(self, terminal_id: str) -> None:
        """End the program, if it runs, with all it started or left behind, and forget it. Raises UnknownTerminal."""
        program = self._program(terminal_id)
        del self._programs[terminal_id]
        await program.close()

    async def close(self) -> None:
        """Release all, and take no more."""
        self._closed = True
        programs = list(self._programs.values())
        self._programs.clear()
        await asyncio.gather(*(program.close() for program in programs))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- parts --

    def _program(self, terminal_id: str) -> Program:
        try:
            return self._programs[terminal_id]
        except KeyError:
            raise UnknownTerminal(terminal_id) from None

    def _check_room(self) -> None:
        if self._closed:
            raise TerminalsClosed("no new terminal: the session is ending")
        if len(self._programs) + self._starting >= self._most:
            raise TooManyTerminals(f"no new terminal: there are {self._most} already, the most allowed; release some")

    async def _start(self, terminal_id: str, prepared: PreparedProgram, limit: int | None) -> Program:
        line, cwd, env = prepared
        on_output, on_end = self._on_output, self._on_end
        folder = await asyncio.to_thread(self._workspace.open_directory, cwd)
        try:
            return await Program.start(
                line,
                cwd=folder.stable_path,
                env=env,
                limit=self._output_limit if limit is None else min(max(limit, 0), OUTPUT_MOST),
                grace=self._grace,
                on_text=None if on_output is None else lambda text: on_output(terminal_id, text),
                on_end=None if on_end is None else lambda *ending: on_end(terminal_id, Ending(*ending)),
            )
        except FileNotFoundError as exc:
            raise _missing(line[0], cwd, env.get("PATH", "")) from exc
        except (OSError, ValueError) as exc:
            raise _unstartable(line[0], exc) from exc
        finally:
            folder.close()


def is_plain_word(word: str) -> bool:
    """Whether every shell reads a word as itself."""
    return _PLAIN_WORD.fullmatch(word) is not None


def base_environment() -> dict[str, str]:
    """The environment of every program in a terminal: the hub's own without the variables of Pilothouse."""
    return {key: value for key, value in default_environment().items() if not key.upper().startswith(OURS)}


def _environment(env: Variables) -> dict[str, str]:
    """The base environment with the variables that the agent adds."""
    environment = base_environment()
    pairs = env.items() if isinstance(env, Mapping) else (v if isinstance(v, tuple) else (v.name, v.value) for v in env)
    for name, value in pairs:
        if not name or "=" in name or "\0" in name + value:
            raise CannotStart(f"{shown(name)} refused: not the name and value of an environment variable")
        if name.upper() != MARK:
            environment[name] = value
    return environment


def _line(command: str, args: list[str], cwd: Path, path: str) -> list[str]:
    """The program to start and its arguments; looks for it, so it blocks. Raises CannotStart."""
    if not command.strip() or any("\0" in part for part in (command, *args)):
        raise CannotStart(f"{shown(command)} refused: an empty command, or a NUL in it", command=command[:1000])
    if args or not _A_LINE.search(command) or _find(command, cwd, path):
        return [command, *args]
    if os.name != "posix":
        return ["cmd", "/c", command]
    return [shutil.which("bash", path=path) or shutil.which("sh", path=path) or "/bin/sh", "-c", command]


def _find(command: str, cwd: Path, path: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return (cwd / command).is_file() if os.sep in command else shutil.which(command, path=path) is not None
    return False


def _missing(program: str, cwd: Path, path: str) -> ProgramNotFound | CannotStart:
    if not cwd.is_dir():
        return CannotStart(f"cannot start {shown(program)}: its directory {str(cwd)!r} is gone", command=program[:1000])
    if _find(program, cwd, path):
        return CannotStart(
            f"cannot start {shown(program)}: it is there, but the interpreter that it names is not; check its #! line",
            command=program[:1000],
        )
    return ProgramNotFound(
        f"no such program: {shown(program)} is not on PATH={path}; install it, or give its full path",
        command=program[:1000],
    )


def _unstartable(program: str, exc: OSError | ValueError) -> CannotStart:
    advice = {
        errno.EACCES: "it may not be executed; check its permissions",
        errno.ENOEXEC: "it is no program for this machine, or a script without a #! line",
        errno.E2BIG: "its arguments and environment are too long",
    }.get(exc.errno or 0 if isinstance(exc, OSError) else 0, str(exc))
    return CannotStart(f"cannot start {shown(program)}: {advice}", command=program[:1000])


@cache
def find_shells() -> tuple[str, ...]:
    """The names of the hub's own shells: bare, by their path, and by /bin or /usr/bin if that is the same file."""
    names = list(SHELLS)
    for shell in SHELLS:
        found = shutil.which(shell)
        if found is None:
            continue
        names.append(found)
        for place in (f"/bin/{shell}", f"/usr/bin/{shell}"):
            try:
                if Path(place).samefile(found):
                    names.append(place)
            except OSError:
                continue
    return tuple(dict.fromkeys(names))
