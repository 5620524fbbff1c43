"""Stores whose sessions are files of JSON lines, one each: the index of them, and one of them read on.

A subclass says which file is which session, what the first and last records of a file tell of it, and what records
become. Everything that can be wrong with files is handled here. A file is looked into again only when its stamp has
changed, in whichever process, and of a long one only its two ends; so a list costs a look at each directory entry.
"""

from __future__ import annotations

import json
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...model.discovery import DiscoveredSession, DiscoveredStatus
from ...model.session import sound
from ...plain_files import Stamp, Unreadable, opened, stamp_of
from .lines import LIMIT, Entry, Index, Line, Lines, index_path
from .store import Problem, Reader, Scan, Step, Store, Update, iso

HEAD = 64 * 1024
TAIL = 64 * 1024
WIDE = 2**20
"""As much is read of both ends when that does not say enough."""
SETTLED = 60.0
"""Seconds after which nobody writes the rest of a line any more."""

Json = dict[str, Any]
_decode = msgspec.json.Decoder().decode


def decoded(line: bytes) -> Json | None:
    """The object that a line is; None when it is none."""
    try:
        record = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        record = _with_halves(line) if b"\\u" in line else None
    return record if isinstance(record, dict) else None


def _with_halves(line: bytes) -> Any:
    """The value of a line in which there is half a character: programs cut texts there, and write it all the same."""
    try:
        return sound(json.loads(line))
    except (ValueError, RecursionError):
        return None


class Glance(Struct, kw_only=True):
    """The two ends of a session's file. `tail` has what `head` has not; between them records may be missing."""

    path: Path
    session_id: str
    changed: float
    """When the file was last written, in seconds."""
    head: list[Json] = []
    tail: list[Json] = []
    problem: str | None = None
    """The first line of them that is no record, in words."""
    is_cut: bool = False
    """Whether its last line has no end."""

    @property
    def records(self) -> list[Json]:
        return [*self.head, *self.tail]


class Translation(ABC):
    """What the records of one session become, in order. It must not depend on how they are cut into steps."""

    status: DiscoveredStatus | None = None
    """What the records so far say that the agent does."""

    @abstractmethod
    def take(self, record: Json) -> Iterable[Update]:
        """The updates of one more record."""

    def when(self, record: Json) -> str:
        """When a record says that it happened, in the form of `texts.iso`; nothing when it does not."""
        return ""


class LineStore(Store):
    """The base of such stores."""

    depth = 0
    """Directories between a place and its files."""
    edition = 1
    """Raise it when `describe` tells something else of the same file: what was kept before does not count then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._index = Index()

    # -- what a subclass says --

    @abstractmethod
    def session_of(self, name: str) -> str | None:
        """The id of the session that a file of this name has; None for any other file."""

    @abstractmethod
    def describe(self, glance: Glance) -> DiscoveredSession | None:
        """The session as it is listed; None when nothing was said in it, or it is no session of its own."""

    @abstractmethod
    def translation(self, session_id: str) -> Translation:
        """Who translates the records of a session, from the first one on."""

    @property
    def folders(self) -> Sequence[Path]:
        """The directories that hold the files; all places, unless some of them tell something else."""
        return self.places

    def is_enough(self, glance: Glance) -> bool:
        """Whether the two ends of a long file say what a list needs; if not, more is read of both, once."""
        return bool(glance.head and glance.tail)

    def sees_end(self, glance: Glance) -> bool:
        """Whether the last records of a long file are among those that were looked at: one may be longer than that."""
        return bool(glance.tail)

    # -- the store --

    def keep(self, folder: Path) -> None:
        maker = type(self)
        where = [str(place.absolute()) for place in self.folders]
        self._index.keep(index_path(folder, self.agent, maker.__module__, maker.__qualname__, self.edition, where))

    def scan(self) -> Scan:
        with self._lock:
            problems: dict[str, str] = {}
            self._index.recall()
            self._index.replace(
                {path: self._looked_into(path, session_id, stamp) for path, session_id, stamp in self._walk(problems)}
            )
            return self._told(problems)

    def _told(self, problems: dict[str, str]) -> Scan:
        """The sessions of the index: of those under one id the one last written."""
        sessions: dict[str, tuple[int, DiscoveredSession]] = {}
        now = time.time_ns()
        for path, entry in self._index.entries.items():
            written = entry.stamp.mtime_ns
            if entry.problem is not None:
                problems[path] = entry.problem
            elif entry.is_cut and now - written > SETTLED * 1e9:
                problems[path] = "its last line is cut off"
            if entry.session is not None:
                known = sessions.get(entry.session_id)
                if known is None or known[0] < written:
                    sessions[entry.session_id] = (written, entry.session)
        found = sorted(sessions.values(), key=lambda each: each[0], reverse=True)
        return Scan(
            sessions=[session for _, session in found],
            problems=[Problem(path=path, message=message) for path, message in problems.items()],
        )

    def reader(self, session_id: str) -> Reader | None:
        paths = self.files(session_id)
        return LineReader(paths[0], lambda: self.translation(session_id)) if paths else None

    def touched(self, path: Path) -> str | None:
        return self.session_of(path.name) if any(map(path.is_relative_to, self.folders)) else None

    def files(self, session_id: str) -> Sequence[Path]:
        """The files of a session, the one last written first."""
        with self._lock:
            known = self._known(session_id)
            if not known or not all(map(os.path.exists, known)):
                found = [(stamp.mtime_ns, path) for path, named, stamp in self._walk({}) if named == session_id]
                known = [path for _, path in sorted(found, reverse=True)]
        return [Path(path) for path in known]

    def _known(self, session_id: str) -> list[str]:
        known = self._index.entries.items()
        found = [(entry.stamp.mtime_ns, path) for path, entry in known if entry.session_id == session_id]
        return [path for _, path in sorted(found, reverse=True)]

    # -- directories --

    def _walk(self, problems: dict[str, str]) -> Iterator[tuple[str, str, Stamp]]:
        """Every file of a session: its path, the id and the stamp."""
        seen: set[tuple[int, int]] = set()
        for place in self.folders:
            yield from self._below(str(place), self.depth, problems, seen)

    def _below(
        self, folder: str, depth: int, problems: dict[str, str], seen: set[tuple[int, int]]
    ) -> Iterator[tuple[str, str, Stamp]]:
        for entry in _entries(folder, problems, seen):
            session_id = self.session_of(entry.name) if depth == 0 else None
            try:
                if depth > 0 and entry.is_dir():
                    yield from self._below(entry.path, depth - 1, problems, seen)
                elif session_id is not None:
                    yield entry.path, session_id, stamp_of(entry.stat())
            except (OSError, Unreadable) as exc:
                problems[entry.path] = _reason(exc)

    # -- files --

    def _looked_into(self, path: str, session_id: str, stamp: Stamp) -> Entry:
        known = self._index.entries.get(path)
        if known is not None and known.is_of(stamp):
            return known
        try:
            glance, is_whole = _glance(path, session_id, stamp, HEAD, TAIL)
            if not is_whole and not self.is_enough(glance):
                glance, is_whole = _glance(path, session_id, stamp, WIDE, WIDE)
            session = self.describe(glance)
            if session is not None and not is_whole and not self.sees_end(glance):
                session = _without_end(session, glance.changed)
        except Unreadable as exc:
            return Entry(stamp, session_id, problem=str(exc), again=True)
        except Exception as exc:  # a format that nobody foresaw must not hide the other sessions
            return Entry(stamp, session_id, problem=f"it is not understood: {type(exc).__name__}: {exc}")
        return Entry(stamp, session_id, session, glance.problem, glance.is_cut)


def _entries(folder: str, problems: dict[str, str], seen: set[tuple[int, int]]) -> list[os.DirEntry[str]]:
    """What is in a directory, each directory once: a link may lead back."""
    try:
        state = Path(folder).stat()
        if (state.st_dev, state.st_ino) in seen:
            return []
        seen.add((state.st_dev, state.st_ino))
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []  # an agent that was never used, or a directory that was just removed
    except OSError as exc:
        problems[folder] = _reason(exc)
        return []


def _reason(exc: OSError | Unreadable) -> str:
    if isinstance(exc, Unreadable):
        return str(exc)
    return "it is gone" if isinstance(exc, FileNotFoundError) else f"it cannot be read: {exc.strerror or exc}"


def _glance(path: str, session_id: str, stamp: Stamp, head: int, tail: int) -> tuple[Glance, bool]:
    """The ends of a file, and whether they are all of it."""
    glance = Glance(path=Path(path), session_id=session_id, changed=stamp.mtime_ns / 1e9)
    first, last = _ends(path, head, tail)
    if last is not None:  # something lies between, which the last line of one and the first of the other are parts of
        glance.head = _records(first.rpartition(b"\n")[0], glance)
    ending = first if last is None else last.partition(b"\n")[2]
    whole, _, rest = ending.rpartition(b"\n")
    glance.is_cut = bool(rest.strip()) and decoded(rest) is None
    records = _records(whole if glance.is_cut else ending, glance)
    if last is None:
        glance.head = records
    else:
        glance.tail = records
    if first and not (glance.head or glance.tail or glance.is_cut or glance.problem):
        glance.problem = "no record can be read in it"
    return glance, last is None


def _without_end(session: DiscoveredSession, changed: float) -> DiscoveredSession:
    """A session of which only the beginning was seen: that says nothing of what it does now, or said last."""
    active = max(session.last_activity, iso(min(changed, time.time())))
    return msgspec.structs.replace(session, last_activity=active, last_message=None, status=None)


def _ends(path: str, head: int, tail: int) -> tuple[bytes, bytes | None]:
    """The two ends of a file; None in place of the second when the first is all there is."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= head + tail:
            return file.read(head + tail), None
        first = file.read(head)
        file.seek(size - tail)
        return first, file.read(tail)


def _records(data: bytes, glance: Glance) -> list[Json]:
    found = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        record = decoded(line)
        if record is not None:
            found.append(record)
        elif glance.problem is None:
            glance.problem = f"a line is no JSON object: {line[:40].decode(errors='replace')!r}"
    return found


class LineReader(Reader):
    """One session's file. A restart of it is a restart of its translation."""

    def __init__(self, path: Path, translation: Callable[[], Translation], *, limit: int = LIMIT) -> None:
        self._lines = Lines(path, limit=limit)
        self._make = translation
        self._translation = translation()
        self._told: set[str] = set()

    def read(self) -> Step:
        updates: list[Update] = []
        times: list[str] = []
        problems: list[Problem] = []
        restarted = False
        while not updates:
            look = self._lines.read()
            if look.restarted:
                restarted, self._translation = True, self._make()
                self._told.clear()
            for words in look.problems:
                self._tell(words, words, problems)
            for line in look.lines:
                when = self._take(line, updates, problems)
                times += [when] * (len(updates) - len(times))
            if not look.lines:
                times += self._last_line(updates, problems) if not look.problems else []
                break
        status, failed = self._translation.status, look.failed
        return Step(updates=updates, times=times, status=status, problems=problems, restarted=restarted, failed=failed)

    def _last_line(self, updates: list[Update], problems: list[Problem]) -> list[str]:
        """Take in a record that has no newline yet, if it is whole; the times of its updates."""
        line = self._lines.rest()
        if line is None or decoded(line.data) is None:
            return []
        self._lines.take_rest()
        before = len(updates)
        when = self._take(line, updates, problems)
        return [when] * (len(updates) - before)

    def _take(self, line: Line, updates: list[Update], problems: list[Problem]) -> str:
        """Take in a line; when it happened."""
        if not line.data.strip():
            return ""
        record = decoded(line.data)
        if record is None:
            self._tell("json", f"line {line.number} is no JSON object and is left out", problems)
            return ""
        try:
            updates.extend(self._translation.take(record))
        except Exception as exc:  # one record of a format that nobody foresaw must not cost the rest
            self._tell("record", f"line {line.number} is not understood: {type(exc).__name__}: {exc}", problems)
        return self._translation.when(record)

    def _tell(self, kind: str, words: str, problems: list[Problem]) -> None:
        """A problem, once of its kind: a file of junk has a million lines."""
        if kind not in self._told:
            self._told.add(kind)
            problems.append(Problem(path=str(self._lines.path), message=words))

    def close(self) -> None:
        """Nothing is held open between looks."""
