"""A file of lines that somebody else writes, read on from where the last look ended.

Rules a change must not break: a look never waits (no pipe, no device is opened) and takes bounded memory, whatever the
file holds; a line is told when it is whole, and once, and one that only lacks its newline when nothing follows; a file
that was cut or replaced is read from its beginning, and that is said. What was read is recognised by its content and
not by the file's number, which a new file may have again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec import Struct

__all__ = ["LIMIT", "STEP", "Line", "Lines", "Look", "Stamp", "Unreadable", "opened", "stamp_of"]

LIMIT = 32 * 2**20
"""Bytes of the longest line that is read."""
STEP = 4 * 2**20
"""Bytes that are read at a time."""
RESTED = 3.0
"""Seconds after which a line without an end may be the last one."""
MARK = 512
"""Bytes at the beginning, and before the place of the last look, by which a file is recognised."""

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


class Unreadable(Exception):
    """A file cannot be read; the message is why."""


class Stamp(NamedTuple):
    """What tells that a file has changed."""

    device: int
    inode: int
    size: int
    mtime_ns: int


def stamp_of(state: os.stat_result) -> Stamp:
    """Raises Unreadable for what is no plain file."""
    if not stat.S_ISREG(state.st_mode):
        raise Unreadable("it is no regular file")
    return Stamp(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


@contextmanager
def opened(path: Path | str) -> Iterator[BinaryIO]:
    """A file for reading. Raises Unreadable, also for what goes wrong while it is open."""
    try:
        stamp_of(Path(path).stat())  # before it is opened: to open a device may do something
        with os.fdopen(os.open(path, _FLAGS), "rb", buffering=0) as file:
            stamp_of(os.fstat(file.fileno()))
            yield file
    except FileNotFoundError:
        raise Unreadable("it is gone") from None
    except OSError as exc:
        raise Unreadable(f"it cannot be read: {exc.strerror or exc}") from None


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
