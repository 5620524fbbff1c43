"""A file of lines that another program writes, read incrementally, and the index of a store's files.

Rules a change must not break: reading never waits (no pipe, no device is opened) and takes bounded memory, whatever the
file holds; a line is returned once, when it is complete, or when it only lacks its newline and nothing follows; a file
that was cut or replaced is read from its beginning, and this is reported. A file is recognised by its content, not by
its number, which a new file may reuse.

The index on disk is only a shortcut. A missing, torn or foreign one, or one of another version, counts as empty, and a
failure to write it is ignored; no session goes missing for either. It contains titles and last words, so only the user
may read it. Processes that use it at once each replace it as a whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from ... import __version__
from ...model.discovery import DiscoveredSession
from ...plain_files import Stamp, Unreadable, opened, stamp_of

LIMIT = 32 * 2**20
"""Bytes of the longest line that is read."""
STEP = 4 * 2**20
"""Bytes that are read at a time."""
RESTED = 3.0
"""Seconds after which a line without an end may be the last one."""
MARK = 512
"""Bytes at the beginning, and before the place of the last look, by which a file is recognised."""


class Line(NamedTuple):
    """A whole line without its newline, and which one of the file it is, counted from 1."""

    number: int
    data: bytes


class Look(Struct, frozen=True, kw_only=True):
    """What a file has more than at the last look. `restarted`: it was cut or replaced; this is its beginning. `failed`:
    it could not be opened or read; what it has is not known."""

    lines: list[Line] = []
    problems: list[str] = []
    restarted: bool = False
    failed: bool = False


class Lines:
    """One file, look by look. It holds nothing open in between."""

    def __init__(self, path: Path, *, limit: int = LIMIT, step: int = STEP) -> None:
        self.path = path
        self._limit = limit
        self._step = step
        self._stamp: Stamp | None = None
        self._begin()

    def _begin(self) -> None:
        self._offset = self._number = 0
        self._head = self._mark = b""
        self._rest = bytearray()
        self._taken = b""
        self._offered: Stamp | None = None
        self._skipping = False

    def read(self) -> Look:
        """At least one line, if there is one; with no lines the end has been reached."""
        try:
            stamp = stamp_of(self.path.stat())
            if stamp == self._stamp and self._offset >= stamp.size:
                return Look()
            with opened(self.path) as file:
                return self._on(file)
        except Unreadable as exc:
            return Look(problems=[str(exc)], failed=True)
        except OSError as exc:
            gone = isinstance(exc, FileNotFoundError)
            return Look(problems=["it is gone" if gone else f"it cannot be read: {exc.strerror or exc}"], failed=True)

    def rest(self) -> Line | None:
        """What follows the last newline, if nobody has written for a while; once. It may be a line that is not whole.
        Who can tell that it is takes it by `take_rest`."""
        stamp = self._stamp
        if not self._rest or self._taken or stamp is None or stamp == self._offered or stamp.size != self._offset:
            return None
        if time.time_ns() - stamp.mtime_ns < RESTED * 1e9:
            return None
        self._offered = stamp
        return Line(self._number + 1, bytes(self._rest))

    def take_rest(self) -> None:
        """It is a line: when its newline comes, that is no other one."""
        self._taken = bytes(self._rest.rstrip())

    def _on(self, file: BinaryIO) -> Look:
        self._stamp = stamp_of(os.fstat(file.fileno()))
        restarted = not self._goes_on(file)
        if restarted:
            self._begin()
        file.seek(self._offset)
        lines: list[Line] = []
        problems: list[str] = []
        while not lines:
            chunk = file.read(self._step)
            if not chunk:
                break
            self._offset += len(chunk)
            if len(self._head) < MARK:
                self._head += chunk[: MARK - len(self._head)]
            self._mark = (self._mark + chunk[-MARK:])[-MARK:]
            self._split(chunk, lines, problems)
        return Look(lines=lines, problems=problems, restarted=restarted)

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the file still holds what was read of it."""
        if self._stamp is None or self._stamp.size < self._offset:
            return False
        if file.read(len(self._head)) != self._head:
            return False
        file.seek(self._offset - len(self._mark))
        return file.read(len(self._mark)) == self._mark

    def _split(self, chunk: bytes, lines: list[Line], problems: list[str]) -> None:
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            self._number += 1
            fits = self._add(part, problems)
            if fits and self._rest and self._rest.rstrip() != self._taken:
                lines.append(Line(self._number, bytes(self._rest)))
            self._rest.clear()
            self._taken = b""
            self._skipping = False
        self._add(rest, problems, self._number + 1)

    def _add(self, part: bytes, problems: list[str], number: int = 0) -> bool:
        """Take in a piece of a line; False for a line that is too long, of which nothing is kept."""
        if self._skipping:
            return False
        if len(self._rest) + len(part) > self._limit:
            self._skipping = True
            self._rest.clear()
            problems.append(f"line {number or self._number} is longer than {self._limit:,} bytes and is left out")
            return False
        self._rest += part
        return True


logger = logging.getLogger(__name__)

FORMAT = 2
"""Of the file; raise it when an entry, or what is told in it of the same session file, becomes another."""
LARGEST = 64 * 2**20
"""Bytes of the file: of more sessions than that the newest are kept."""
FEW = 20
"""Entries that are as quickly made again as the file is written."""
DRAFT = ".draft-"
ABANDONED = 3600.0
"""Seconds after which nobody finishes a draft any more."""


class Entry(Struct, frozen=True):
    """What is known of a file."""

    stamp: Stamp
    session_id: str
    session: DiscoveredSession | None = None
    problem: str | None = None
    is_cut: bool = False
    again: bool = False
    """Whether it is to be looked into again although it has not changed: it could not be opened."""

    def is_of(self, stamp: Stamp) -> bool:
        """Whether it tells of a file as it is now. Devices are numbered anew by every boot."""
        return not self.again and self.stamp[1:] == stamp[1:]

    @property
    def is_lasting(self) -> bool:
        """Whether the file alone tells all of it: where a session worked may be written down elsewhere, later."""
        return not self.again and (self.session is None or bool(self.session.project_path))


class _Kept(Struct, frozen=True, array_like=True):
    """The content of the file."""

    format: int
    version: str
    entries: list[tuple[str, Entry]]


class _Head(Struct, frozen=True, array_like=True):
    """The beginning of it, which every version can read."""

    format: int
    version: str


def index_path(folder: Path, agent: str, *about: object) -> Path:
    """The file for an agent's sessions; `about` is what else tells one index from another, such as where they are."""
    digest = hashlib.blake2b(repr((agent, about)).encode(errors="surrogatepass"), digest_size=6).hexdigest()
    return folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', agent)[:40]}-{digest}.index"


class Index:
    """The entries of a store, by path; with a `path` they are kept there. It blocks, and never raises."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._kept: dict[str, Entry] = {}
        self._path: Path | None = None
        self._is_read = True

    def keep(self, path: Path) -> None:
        """Keep the entries in this file from now on; what it has is read when entries are first wanted."""
        self._path, self._is_read = path, False

    def recall(self) -> None:
        """Take in what was kept, once. What is known already counts."""
        if self._is_read or self._path is None:
            return
        self._is_read = True
        self._kept = _read(self._path)
        self.entries = {**self._kept, **self.entries}

    def replace(self, entries: dict[str, Entry]) -> None:
        """These are all there are; they are kept if enough of them is new, or one has gone."""
        self.entries = entries
        if self._path is None:
            return
        lasting = {path: entry for path, entry in entries.items() if entry.is_lasting}
        new = sum(self._kept.get(path) is not entry for path, entry in lasting.items())
        if new >= FEW or not self._kept.keys() <= entries.keys():
            self._kept = lasting  # also if it cannot be written: it could not be either the next time
            _write(self._path, lasting)


def _read(path: Path) -> dict[str, Entry]:
    try:
        with opened(path) as file:
            data = file.read(LARGEST + 1) if os.fstat(file.fileno()).st_size <= LARGEST else b""
        body = data[_DIGEST:]
        if _digest(body) != data[:_DIGEST]:
            return {}
        head = msgspec.msgpack.decode(body, type=_Head)
        if (head.format, head.version) != (FORMAT, __version__):
            return {}
        return dict(msgspec.msgpack.decode(body, type=_Kept).entries)
    except (Unreadable, OSError, MemoryError, msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        logger.debug("%s is made anew: %s", path, exc)
        return {}


_DIGEST = 16


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def _write(path: Path, entries: Mapping[str, Entry]) -> None:
    body = msgspec.msgpack.encode((FORMAT, __version__, list(_encoded(entries))))
    try:
        for place in (path.parent.parent, path.parent):  # a home that is made here is its owner's alone, as any other
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _clear(path.parent)
        fd, draft = tempfile.mkstemp(dir=path.parent, prefix=DRAFT)  # which nobody else may read
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(_digest(body) + body)
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as exc:
        logger.debug("%s is not kept: %s", path, exc)


def _encoded(entries: Mapping[str, Entry]) -> Iterator[msgspec.Raw]:
    """As many as fit, the newest first."""
    size = 0
    for path, entry in sorted(entries.items(), key=lambda each: each[1].stamp.mtime_ns, reverse=True):
        try:
            data = msgspec.msgpack.encode((path, entry))
        except (UnicodeError, OverflowError):  # a name that is no text, or a time that is none
            continue
        size += len(data)
        if size > LARGEST - 1024:
            return
        yield msgspec.Raw(data)


def _clear(folder: Path) -> None:
    """Take away what processes left that were killed while they wrote."""
    for draft in folder.glob(f"{DRAFT}*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > ABANDONED:
                draft.unlink()
