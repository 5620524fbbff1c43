"""Regular files of other programs, opened for reading only: no pipe, socket or device is opened, and nothing waits."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
