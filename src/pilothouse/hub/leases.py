"""One writer: who may let an agent go on with a session that the agent keeps on its own disk.

All hubs of a user share one directory, with a file for each session that an agent of a hub has open. The file says
which process of which boot that is, so one that was left by a dead hub is recognised and taken. Rules a change must
not break: whoever looks, decides and writes holds the directory's lock; what cannot be read, or tells of a process
that cannot be seen from here, is somebody's, and the refusal names the file. All of it blocks, so it runs in threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ..locks import lock
from ..model.events import utc_now
from .errors import Held
from .families import LINUX, entry_of

__all__ = ["Lease", "Leases", "NoLeases", "held_by_hub", "leases_directory"]

VARIABLE = "PILOTHOUSE_LEASES"
LOCK = ".lock"
DRAFT = ".lease-"
PATIENCE = 5.0
"""Seconds for the directory's lock, which is held for as long as a small file takes. Windows has none: there two hubs
that find the lease of a dead one in the same moment may both take it."""
LARGEST = 64 * 1024
State = Literal["ours", "theirs", "stale", "unknown"]


class NoLeases(Held):
    """Nothing can be written where leases are, so nobody can know who has what."""


def leases_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where leases are: `PILOTHOUSE_LEASES`, else in the platform's directory for a user's state."""
    given = environ.get(VARIABLE, "").strip()
    if given:
        return Path(given).expanduser().absolute()
    from platformdirs import user_state_path

    return user_state_path("pilothouse", appauthor=False) / "leases"


class Process(Struct, frozen=True, rename="camel"):
    """A process that is no other one: ids are given away again, so its start counts, and the boot in which it was.

    `namespace` tells in which set of ids it has its own, `host` on which machine; both may share a disk.
    """

    pid: int
    started: int
    boot: str
    namespace: str
    host: str


class Lease(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session of an agent, and the hub whose agent has it. `session` is the hub's own id of it."""

    agent: str
    session_id: str
    process: Process
    home: str
    session: str
    since: str


class Leases:
    """The leases of one hub, known by its home, among those of all."""

    def __init__(self, directory: Path, home: str | Path) -> None:
        self.directory = directory
        self._home = str(home)
        self._own: Process | None = None

    def path(self, agent: str, session_id: str) -> Path:
        """The file of a session. An id is anything, so it is no part of the name."""
        name = hashlib.sha256(f"{agent}\0{session_id}".encode(errors="surrogatepass")).hexdigest()[:32]
        return self.directory / f"{name}.json"

    def take(self, agent: str, session_id: str, session: str) -> Lease:
        """Have a session; again is no harm. Raises Held, which says who has it or which file cannot be understood."""
        path = self.path(agent, session_id)
        with self._locked():
            before = self._read(path)
            if before is not None:
                self._check(before, path, session)
            lease = Lease(
                agent=agent,
                session_id=session_id,
                process=self._process(),
                home=self._home,
                session=session,
                since=utc_now(),
            )
            self._write(path, lease)
        return lease

    def give_back(self, agent: str, session_id: str, session: str) -> None:
        """Have it no longer. Nothing happens to a lease of somebody else, or to one that cannot be understood."""
        path = self.path(agent, session_id)
        with contextlib.suppress(Held, OSError), self._locked():
            lease = self._read(path)
            if lease is not None and lease.session == session and self._state(lease) == "ours":
                path.unlink(missing_ok=True)

    def holder(self, agent: str, session_id: str) -> Lease | None:
        """The lease of another hub that runs; None when there is none. Raises Held when that cannot be known, also
        where nothing can be written: whoever has the session could not have said so."""
        self._check_usable()
        path = self.path(agent, session_id)
        lease = self._read(path)
        if lease is None:
            return None
        state = self._state(lease)
        if state == "unknown":
            raise _unknown(path, lease)
        return lease if state == "theirs" else None

    # -- files --

    def _check_usable(self) -> None:
        with self._locked():
            try:
                fd, name = tempfile.mkstemp(dir=self.directory, prefix=DRAFT)
                os.close(fd)
                Path(name).unlink()
            except OSError as exc:
                raise _unusable(self.directory, _why(exc), NoLeases) from exc

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Raises Held where nothing can be written: then nobody can know who has what."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self.directory / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as exc:
            raise _unusable(self.directory, _why(exc), NoLeases) from exc
        try:
            self._wait_for(fd)
            yield
        finally:
            os.close(fd)

    def _wait_for(self, fd: int) -> None:
        try:
            lock(fd, PATIENCE)
        except OSError as exc:
            raise _unusable(self.directory / LOCK, exc.strerror or str(exc), NoLeases) from exc

    def _read(self, path: Path) -> Lease | None:
        """Raises Held for what is no lease."""
        try:
            with path.open("rb") as file:
                return msgspec.json.decode(file.read(LARGEST), type=Lease)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise _unusable(path, exc.strerror or str(exc)) from exc
        except (msgspec.DecodeError, UnicodeError) as exc:
            raise _unusable(path, f"it is no lease ({exc})") from exc

    def _write(self, path: Path, lease: Lease) -> None:
        """As a whole or not at all. Raises Held."""
        try:
            fd, name = tempfile.mkstemp(dir=self.directory, prefix=DRAFT)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(msgspec.json.encode(lease))
                Path(name).replace(path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as exc:
            raise _unusable(path, exc.strerror or str(exc), NoLeases) from exc

    # -- whose it is --

    def _check(self, lease: Lease, path: Path, session: str) -> None:
        """Raises Held unless it may be taken."""
        state = self._state(lease)
        if state == "unknown":
            raise _unknown(path, lease)
        if state == "theirs" or (state == "ours" and lease.session != session):
            raise held_by_hub(lease)

    def _state(self, lease: Lease) -> State:
        own, process = self._process(), lease.process
        if process == own:
            return "ours" if lease.home == self._home else "theirs"
        if process.boot != own.boot:
            return "stale" if process.host == own.host else "unknown"
        if process.namespace != own.namespace:
            return "unknown"
        return "theirs" if _start_of(process.pid) in (process.started, UNSEEN) else "stale"

    def _process(self) -> Process:
        if self._own is None or self._own.pid != os.getpid():
            pid = os.getpid()
            self._own = Process(pid, _start_of(pid) or 0, _boot(), _namespace(), socket.gethostname())
        return self._own


def held_by_hub(lease: Lease) -> Held:
    """What is told who wants a session that a hub has."""
    process = f"process {lease.process.pid}"
    message = f"the hub of {lease.home} ({process}) has this session since {lease.since}; watch it here, or fork it"
    return Held(message, choices=["watch", "fork"], pid=lease.process.pid, since=lease.since, home=lease.home)


def _unknown(path: Path, lease: Lease) -> Held:
    where = f"process {lease.process.pid} on {lease.process.host!r}"
    message = f"{where} has this session, by {path}, and whether that still runs cannot be seen from here"
    return Held(f"{message}; if it does not, delete the file", choices=["watch", "fork"], file=str(path))


def _unusable(path: Path, why: str, kind: type[Held] = Held) -> Held:
    message = f"who has this session cannot be known: {path}: {why}"
    advice = "see that it can be written" if kind is NoLeases else "make sure that nobody has it, then delete the file"
    return kind(f"{message}; {advice}", choices=["watch"], file=str(path))


def _why(exc: OSError) -> str:
    is_file = isinstance(exc, FileExistsError | NotADirectoryError)
    return "a file is where a directory should be" if is_file else exc.strerror or str(exc)


# -- processes ------------------------------------------------------------------------------------------------------

UNSEEN = -1


def _start_of(pid: int) -> int | None:
    """When a process that runs was started, in a unit of its system; None when there is none."""
    if LINUX:
        entry = entry_of(pid)
        return entry.start if entry is not None else None
    psutil: Any = import_module("psutil")  # only where it is needed, and it tells no types
    try:
        return int(psutil.Process(pid).create_time() * 100)
    except psutil.NoSuchProcess:
        return None
    except psutil.Error:
        return UNSEEN


def _boot() -> str:
    """Elsewhere than on Linux the start of a process is a date, which no other boot has again."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() if LINUX else ""
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink()) if LINUX else socket.gethostname()
    except OSError:
        return ""
