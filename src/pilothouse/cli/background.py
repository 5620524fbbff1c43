"""A hub without a terminal: the process that was started stays only until the hub can be reached, or will never be.

Its exit code then tells which: 0 when a hub answers on this home, whoever started it. The hub itself is nobody's
descendant, so that no editor ends it with a tree of its own processes. Fork before anything else is loaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from ..editor.hub_connection import KILLED, LARGEST, open_journal
from .exits import Exit, Failure

__all__ = ["Launcher", "detach"]


def detach(home: Path) -> Callable[[], None]:
    """Go on in a process of its own, whose words go to the home's journal. Call the answer when the hub is there.

    Only that process returns. Raises Failure when the journal cannot be written.
    """
    if not hasattr(os, "fork"):
        raise Failure("this platform cannot detach a process; start `pilothouse serve` in a terminal", Exit.USAGE)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        journal = open_journal(home)
    except OSError as exc:
        raise Failure(f"{home} can't be written: {exc.strerror or exc}", Exit.HOME) from exc
    sys.stdout.flush()
    sys.stderr.flush()
    told, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        os._exit(_outcome(told, child))
    os.setsid()
    os.close(told)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, stream in ((null, 0), (journal, 1), (journal, 2)):
        os.dup2(descriptor, stream)
    os.close(journal)
    logging.getLogger().addHandler(Turning(home))

    def ready() -> None:
        with contextlib.suppress(BrokenPipeError):  # who waited for it was ended; the hub is there all the same
            os.write(tell, b"1")
        os.close(tell)

    return ready


class Launcher:
    """Who started this hub in order to use it, as seen by the pipe on its input. Make it before `detach`."""

    def __init__(self) -> None:
        self._pipe = os.dup(0)

    async def wants_it(self) -> bool:
        """Wait until it has reached this hub, or another one, or is gone without."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._pipe, _set, told)
        try:
            await told
            return os.read(self._pipe, 32) == b"%d" % os.getpid()
        finally:
            loop.remove_reader(self._pipe)
            os.close(self._pipe)


def _set(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)


class Turning(logging.Handler):
    """Begins a new journal when this one is large: a hub that runs for months may have much to say."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # the home may be gone; there is nobody to tell
            if os.fstat(2).st_size > LARGEST:
                journal = open_journal(self._home)
                for stream in (1, 2):
                    os.dup2(journal, stream)
                os.close(journal)


def _outcome(told: int, child: int) -> int:
    """How it went: 0 when the hub is there, else how its process ended, as shells tell it."""
    if os.read(told, 1):
        return Exit.OK
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else KILLED - code
