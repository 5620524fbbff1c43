"""Exit codes, and what is said when a command cannot do its work. The codes are documented: they do not change."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from .output import say

P = ParamSpec("P")
R = TypeVar("R")


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    ERROR = 1
    USAGE = 2
    REFUSED = 3
    NO_AGENT = 4
    LIMIT = 5
    HOME = 6
    CANCELLED = 130

    @property
    def meaning(self) -> str:
        return MEANINGS[self]


MEANINGS = {
    Exit.OK: "It did what it was asked to; a turn ended by itself.",
    Exit.ERROR: (
        "The turn ended with an error, `doctor` found a problem, or the hub refused: "
        "`deny` after somebody has approved, for one."
    ),
    Exit.USAGE: "The command, its options or the configuration are wrong: unknown agent or session, a taken port.",
    Exit.REFUSED: "The agent refused, or something it asked for was denied because nobody could be asked.",
    Exit.NO_AGENT: "The agent could not be started: not installed, not logged in, or it does not answer.",
    Exit.LIMIT: "The turn ended at a limit of tokens or requests.",
    Exit.HOME: (
        "The home directory cannot be used: another hub has it open, its database is damaged, read-only or full, "
        "no hub runs where one is needed, or it went away."
    ),
    Exit.CANCELLED: "Cancelled by Ctrl-C. (143: ended by SIGTERM, 129: its terminal was closed.)",
}


class Failure(Exception):
    """A command cannot go on: what to say, and the exit code."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code


def reported(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose known failures become one line on stderr and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            if sys.stdin.isatty() and sys.stderr.isatty():
                click.echo(err=True)  # the terminal has written ^C, and the shell's prompt must not stand behind it
            sys.exit(Exit.CANCELLED)
        except Exception as exc:
            if isinstance(exc, OSError) and exc.errno == errno.EIO and _terminal_is_gone():
                _give_up_output()
                sys.exit(HANGUP)  # the terminal is gone, and nobody can be told
            found = _explained(exc)
            if found is None:
                raise
            if isinstance(exc, OSError):
                _give_up_output()
            say(f"{click.style('Error:', fg='red', bold=True)} {found}", err=True)
            sys.exit(found.code)

    return run


HANGUP = 129
"""The exit code of a program whose terminal was closed."""


def _terminal_is_gone() -> bool:
    """Whether one of the standard streams was a terminal and is none any more; disks fail by the same number."""
    if os.name != "posix":
        return False
    import termios

    for number in range(3):
        try:
            termios.tcgetattr(number)
        except termios.error as exc:
            if exc.args[0] == errno.EIO:
                return True
    return False


def _give_up_output() -> None:
    """What is still to be written to standard output never can be; Python would try again at its end."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _explained(exc: Exception) -> Failure | None:
    """What a failure means to whoever typed the command; None for one that is a defect, whose trace is wanted."""
    if isinstance(exc, Failure):
        return exc
    if isinstance(exc, OSError):
        return _failed_call(exc)
    from ..adapters.contract import AdapterError
    from ..app.stored_sessions import Ambiguous
    from ..config import ConfigError
    from ..hub.errors import AgentFailed, HubError, IllegalCommand, NotStored, UnknownAgent
    from ..log.errors import LogError, LogLocked, UnknownSession
    from ..remote.errors import RemoteError
    from ..server.auth.secrets import TokenError

    if isinstance(exc, LogLocked):
        return Failure(_locked(exc), Exit.HOME)
    if isinstance(exc, RemoteError):
        return _remote(exc)
    if isinstance(exc, UnknownSession):
        return Failure(f"{exc}; `pilothouse ls` lists the sessions", Exit.USAGE)
    kinds: tuple[tuple[Any, Exit], ...] = (
        ((ConfigError, Ambiguous, UnknownAgent, IllegalCommand), Exit.USAGE),
        ((AgentFailed, AdapterError), Exit.NO_AGENT),
        ((LogError, NotStored, TokenError), Exit.HOME),
        (HubError, Exit.ERROR),
    )
    return next((Failure(str(exc), code) for kind, code in kinds if isinstance(exc, kind)), None)


def _failed_call(exc: OSError) -> Failure | None:
    """Of what the system refused, what lies with where the command was given: its output, or its directory."""
    if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) and exc.filename is None:
        return Failure(f"the output cannot be written: {exc.strerror}", Exit.ERROR)
    if isinstance(exc, FileNotFoundError) and not _has_directory():
        return Failure("the current directory does not exist any more; go to another one", Exit.USAGE)
    return None


def _has_directory() -> bool:
    try:
        return bool(Path.cwd())
    except FileNotFoundError:
        return False


REFUSALS = {
    "agent_failed": Exit.NO_AGENT,
    "unknown_agent": Exit.USAGE,
    "unknown_session": Exit.USAGE,
    "unknown_approval": Exit.USAGE,
    "not_found": Exit.USAGE,
    "invalid": Exit.USAGE,
    "illegal_command": Exit.USAGE,
    "log_error": Exit.HOME,
    "log_full": Exit.HOME,
    "not_stored": Exit.HOME,
}
"""What a hub elsewhere refuses has the same exit code as if it were here."""


def _remote(exc: Any) -> Failure:
    from ..remote.errors import NoHub

    code = Exit.HOME if isinstance(exc, NoHub) else REFUSALS.get(getattr(exc, "code", ""), Exit.ERROR)
    return Failure(str(exc), code)


def _locked(exc: Any) -> str:
    holder = f"process {exc.pid}" if exc.pid else "another process"
    return (
        f"{holder} is running Pilothouse on {exc.path.parent} and does not answer, and only one can run sessions "
        "there. Wait for it or stop it, or set PILOTHOUSE_HOME to another directory. Meanwhile ls, show, replay and "
        "export work."
    )
