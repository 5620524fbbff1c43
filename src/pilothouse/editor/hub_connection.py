"""The hub of a home, reached over its socket for editors, and started in the background if none runs.

Two bridges that start at once start two hubs, of which one gets the home and the other exits; both bridges then connect
to the one that stayed. A hub outlives the bridge that started it: it has no part of an editor's pipes, runs in a
session of its own, and is not a descendant of the bridge, because editors kill whole process trees, and some find by a
mark in the environment which processes left the tree.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from ..acp.errors import INTERNAL_ERROR, RequestError
from ..remote.place import Place, read_place

JOURNAL = "hub.log"
LARGEST = 1 << 20
"""Bytes of the journal before a new one is begun; the one before it is kept."""
TAIL = 4000
KILLED = 128
"""An exit code above this is a signal that ended the hub while it started: somebody's doing, and no fault of it."""

MARKS = frozenset({"PILOTHOUSE_CHILD", "PILOTHOUSE_COMMAND", "PILOTHOUSE_HUB"})
"""Variables by which a program of ours, an editor or another hub, finds all that it has started, and ends it."""


def open_journal(home: Path) -> int:
    """The file of a hub that has no terminal, open for writing at its end. Raises OSError."""
    path = home / JOURNAL
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > LARGEST:
            path.replace(home / f"{JOURNAL}.1")
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class Launch:
    """A hub on its way. The process that is seen here ends when the hub can be reached, or when there will be none."""

    def __init__(self, home: Path) -> None:
        """Raises OSError."""
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.journal = home / JOURNAL
        descriptor = open_journal(home)
        try:
            self._begin = os.fstat(descriptor).st_size
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pilothouse.cli", "serve", "--detach", "--held", "--quiet"],
                stdin=subprocess.PIPE,
                stdout=descriptor,
                stderr=descriptor,
                cwd=home,
                env={**_unmarked(os.environ), "PILOTHOUSE_HOME": str(home)},
                start_new_session=True,
            )
        finally:
            os.close(descriptor)

    def settle(self, reached: int | None = None) -> None:
        """Say which process is used as the hub. This one, if it is not, and nobody else uses it, ends once it is there.

        Of two that are started at once the one that comes too late must not stay when the other is stopped before that.
        """
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):  # it was another one that was reached, or it has died
            if reached is not None and not pipe.closed:
                pipe.write(b"%d" % reached)
            pipe.close()

    @property
    def code(self) -> int | None:
        """How it ended: 0 when a hub can be reached; None while it is not known."""
        return self._process.poll()

    @property
    def was_killed(self) -> bool:
        """Whether, if it cannot be reached, somebody ended it, while it started or when it was there."""
        return self.code == 0 or (self.code or 0) > KILLED

    def words(self) -> str:
        """What the hub has said since it was started, the end of it."""
        try:
            with self.journal.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._begin if size >= self._begin else 0, size - TAIL))
                return file.read(TAIL).decode(errors="replace").strip()
        except OSError:
            return ""


def _unmarked(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in MARKS}


P = TypeVar("P", bound=asyncio.Protocol)

PATIENCE = 60.0
"""Seconds that a hub has to start; recovery after a crash, of a large log on a busy machine, is part of that."""
GRACE = 1.0
"""Seconds in which a hub that said it is there must be reached; else it is gone again."""
TRIES = 3
"""How often a hub is started that is killed before it can be used."""
STEP = 0.01
REAPING = 0.2


class NoHub(Exception):
    """No hub can be had. `words` are its own last ones, from `journal`."""

    def __init__(self, reason: str, journal: Path, words: str = "") -> None:
        super().__init__(reason)
        self.journal = journal
        self.words = words

    def as_error(self) -> RequestError:
        """For the editor, whose user reads the message, or the details in its place, and maybe nothing else."""
        last = self.words.splitlines()[-1].removeprefix("Error: ").strip() if self.words else ""
        told = f"{self}: {last}" if last else str(self)
        message = f"{told.rstrip('.')}. `pilothouse doctor` looks for the cause; {self.journal} has more"
        return RequestError(INTERNAL_ERROR, message, {"details": message, "log": self.words})


class Reaching:
    """How a bridge gets to the hub of a home."""

    def __init__(self, home: Path) -> None:
        self._home = home

    async def find(self, protocol: Callable[[], P]) -> P | None:
        """The connection to a hub that runs; None when there is none. Raises NoHub for one that has no such socket."""
        place = read_place(self._home)
        if place is None:
            return None
        if place.acp is None:
            if not await _is_there(place):
                return None
            reason = f"process {place.pid} runs a hub of an older version on {self._home}; stop it, and try again"
            raise NoHub(reason, self._home / JOURNAL)
        try:
            _, made = await asyncio.get_running_loop().create_unix_connection(protocol, place.acp)
        except OSError:
            return None  # it has died, or is just being replaced
        return made

    async def get(self, protocol: Callable[[], P]) -> P:
        """The connection to a hub, which is started if need be. Raises NoHub."""
        for tries_left in range(TRIES - 1, -1, -1):
            if (found := await self.find(protocol)) is not None:
                return found
            launch = self._start()
            try:
                found = await self._launched(protocol, launch)
                place = read_place(self._home)
                launch.settle(place.pid if place is not None else None)
                return found
            except NoHub:
                if not tries_left or not launch.was_killed or await self._is_cut_off():
                    raise
            finally:
                launch.settle()
                self._reap(launch)
        raise AssertionError("can't happen: the last try has its outcome")

    def _start(self) -> Launch:
        """Raises NoHub."""
        try:
            return Launch(self._home)
        except OSError as exc:
            is_file = self._home.exists() and not self._home.is_dir()
            why = f"its home {self._home} is a file, and must be a directory" if is_file else str(exc)
            raise NoHub(f"The hub can't be started: {why}", self._home / JOURNAL) from exc

    async def _launched(self, protocol: Callable[[], P], launch: Launch) -> P:
        clock = asyncio.get_running_loop().time
        deadline = clock() + PATIENCE
        while clock() < deadline:
            ended = launch.code is not None
            if (found := await self.find(protocol)) is not None:
                return found
            if launch.code:
                raise NoHub(f"The hub can't be started (exit code {launch.code})", launch.journal, launch.words())
            if ended:
                deadline = min(deadline, clock() + GRACE)
            await asyncio.sleep(STEP)
        if await self._is_cut_off():
            raise self.silent()
        raise NoHub("The hub was started and does not answer", launch.journal, launch.words())

    async def _is_cut_off(self) -> bool:
        """Whether a hub runs that cannot be reached by editors: its socket for them was taken away."""
        place = read_place(self._home)
        return place is not None and await _is_there(place)

    def silent(self) -> NoHub:
        """A hub is there and says nothing."""
        place = read_place(self._home)
        who = f" (process {place.pid})" if place is not None else ""
        where = f" on {place.acp}" if place is not None else ""
        return NoHub(f"The hub{who} does not answer{where}; stop it, and try again", self._home / JOURNAL)

    def _reap(self, launch: Launch) -> None:
        """The process that started a hub ends soon after, and is waited for so that nothing is left of it."""
        if launch.code is None:
            asyncio.get_running_loop().call_later(REAPING, self._reap, launch)


async def _is_there(place: Place) -> bool:
    """Whether somebody listens on the socket of a hub's owner, as every hub has it."""
    if place.socket is None:
        return False
    try:
        _, writer = await asyncio.open_unix_connection(place.socket)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
