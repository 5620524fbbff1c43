"""One writer for each session that an agent keeps on its own disk: a program, another hub, or an agent of this hub.

All hubs of a user share one directory, with a file for each session that an agent of a hub has open. The file names the
process and the boot, so one that was left by a dead hub is recognised and taken over. Rules a change must not break:
reading, deciding and writing happen under the directory's lock; a file that cannot be read, or names a process that
cannot be seen from here, counts as held, and the refusal names the file. No program is ended unless the caller asked
for it, and then exactly the one that was found. After adoption the record's changes trigger one check at a time for
another writer. All of the locking blocks, so it runs in threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from ...locks import lock
from ...log.errors import LogError
from ...log.records import SessionRecord
from ...model.discovery import DiscoveredSession
from ...model.events import utc_now
from ..client.process_tree import LINUX, entry_of
from ..errors import Held, HubError
from ..session.session import HubSession
from .records import Finding, Key, key_of

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


if TYPE_CHECKING:  # a start does not need what looks through processes
    from ...adapters.discovery.processes import Holder


logger = logging.getLogger(__name__)

How = Literal["resume", "fork", "take_over"]
CHOICES: Sequence[str] = ("watch", "fork", "take_over")
LINGER = 3.0
STEP = 0.1
"""Seconds for all of a program to be gone that was ended, and between two looks."""


class Holding:
    """Of one hub. `finder` gives who knows the processes, `is_shared` tells whether others find the sessions of an
    agent; `adopted` are the hub's sessions that were begun elsewhere."""

    def __init__(self, finder: Callable[[], Finding | None], is_shared: Callable[[str], bool]) -> None:
        self._finder = finder
        self.is_shared = is_shared
        self.leases: Leases | None = None
        self.adopted: dict[Key, str] = {}

    async def holder(self, agent: str, session_id: str) -> Holder | None:
        """The process that has a session and is none of this hub's. Raises Held when that cannot be known."""
        finder = self._finder()
        if finder is None:
            raise Held("whether a program has this session cannot be known: this hub does not look", choices=[])
        try:
            return await finder.holder(agent, session_id)
        except Exception as exc:  # whatever a store does, no answer is not "nobody"
            message = f"whether a program has this session cannot be known: {exc or type(exc).__name__}"
            raise Held(f"{message}; watch it, or fork it", choices=list(CHOICES[:2])) from exc

    async def free(self, found: DiscoveredSession, how: How, pid: int | None) -> Holder | None:
        """See to it that nobody has a session; the program that was ended for that, if one was to be. Raises Held."""
        holder = await self.holder(found.agent, found.id)
        if holder is not None and (how != "take_over" or not _may_end(holder, pid)):
            raise held_by(holder)
        if self.leases is not None:  # before a program is ended: it would be for nothing
            lease = await asyncio.to_thread(self.leases.holder, *key_of(found.agent, found.id))
            if lease is not None:
                raise held_by_hub(lease)
        if holder is not None:
            await self._end(holder)
            await self._wait_free(found)
        return holder

    async def _end(self, holder: Holder) -> None:
        """Raises Held when it cannot be ended."""
        finder = self._finder()
        assert finder is not None
        try:
            await finder.end(holder)
        except OSError as exc:
            message = f"process {holder.pid} could not be ended: {exc.strerror or exc}; end it where it was started"
            raise Held(message, choices=list(CHOICES[:2]), pid=holder.pid) from exc

    async def _wait_free(self, found: DiscoveredSession) -> None:
        """What a program was started by may end a moment after it. Raises Held when somebody has the session still."""
        deadline = asyncio.get_running_loop().time() + LINGER
        while (holder := await self.holder(found.agent, found.id)) is not None:
            if asyncio.get_running_loop().time() > deadline:
                raise held_by(holder)
            await asyncio.sleep(STEP)

    # -- agents of this hub --

    def claim(self, record: SessionRecord) -> SessionClaim:
        if "adopted" in record.meta and record.agent_session_id is not None:
            self.adopted[key_of(record.agent, record.agent_session_id)] = record.id
        return SessionClaim(self, record.id)


class SessionClaim:
    """The lease that a session's agent needs, for as long as it runs."""

    def __init__(self, holding: Holding, session_id: str) -> None:
        self._holding = holding
        self._session_id = session_id
        self._taken: Key | None = None

    async def take(self, agent: str, session_id: str) -> None:
        """Raises Held. Only where a session was begun elsewhere it counts that no lease can be written: of its own
        sessions nobody else knows."""
        holding, key = self._holding, key_of(agent, session_id)
        is_adopted = holding.adopted.get(key) == self._session_id
        if holding.leases is None or not (is_adopted or holding.is_shared(agent)):
            return
        if is_adopted and (holder := await holding.holder(agent, session_id)) is not None:
            raise held_by(holder)
        if self._taken not in (None, key):
            await self.give_back()
        try:
            await asyncio.to_thread(holding.leases.take, *key, self._session_id)
        except NoLeases as exc:
            if is_adopted:
                raise
            logger.warning("session %s goes without a lease: %s", self._session_id, exc)
            return
        self._taken = key

    async def give_back(self) -> None:
        taken, self._taken = self._taken, None
        if taken is not None and self._holding.leases is not None:
            await asyncio.to_thread(self._holding.leases.give_back, *taken, self._session_id)


def _may_end(holder: Holder, pid: int | None) -> bool:
    """Whether a program may be ended by who names this one, or none."""
    if holder.hub is not None:
        return False
    return pid == holder.pid or (pid is None and holder.is_sure)


def held_by(holder: Holder) -> Held:
    """What is told who wants a session that a process has."""
    since = datetime.fromtimestamp(holder.started, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    who = f"process {holder.pid} ({holder.program})" if holder.program else f"process {holder.pid}"
    choices = CHOICES if holder.hub is None and holder.is_sure else CHOICES[:2]
    message = f"{who} has this session since {since}; watch it, fork it, or take it over, which ends that program"
    if holder.hub is not None:
        message = f"{who} of another hub has this session since {since}; watch it, or fork it"
    elif not holder.is_sure:
        message = f"{who} may have this session: it runs in its directory since {since}, and does not tell what it has"
        message += "; look there: if it is another session, say something in that one and try again; if it is this one,"
        message += " end it there, watch or fork the session, or take it over by naming that process"
    about = {"pid": holder.pid, "program": holder.program, "since": since, "sure": holder.is_sure}
    return Held(message, choices=list(choices), **about)


if TYPE_CHECKING:  # a start does not need what looks through processes
    from ...adapters.discovery.processes import Holder


APART = 10.0
"""Seconds between two looks at who has a session."""


class Writers:
    """Of one hub. `open_session` gives a session by its id."""

    def __init__(self, holding: Holding, open_session: Callable[[str], Awaitable[HubSession]]) -> None:
        self._holding = holding
        self._open_session = open_session
        self._checking: dict[str, bool] = {}

    def is_new(self, session_id: str) -> bool:
        """Whether a session that changed has to be checked; one that is being checked is looked at again."""
        is_new = session_id not in self._checking
        self._checking[session_id] = True
        return is_new

    async def check(self, session_id: str, agent: str, foreign_id: str) -> None:
        """Find out who writes to a session that is new, now, and again as long as it changes."""
        try:
            while self._checking[session_id]:
                self._checking[session_id] = False
                await self.look(session_id, agent, foreign_id)
                await asyncio.sleep(APART)
        finally:
            del self._checking[session_id]

    async def look(self, session_id: str, agent: str, foreign_id: str) -> None:
        """If another program than the hub's has the session, it is told."""
        try:
            holder = await self._holding.holder(agent, foreign_id)
            session = await self._open_session(session_id)
            session.warn(_two_writers(holder) if holder is not None else None)
        except (HubError, LogError) as exc:
            logger.info("who has session %s is not known: %s", session_id, exc)


def _two_writers(holder: Holder) -> str:
    what = "writes to it as well" if holder.is_sure else "runs in the same directory and may write to it as well"
    return f"Process {holder.pid} {what}; end that, or what both say gets mixed up."
