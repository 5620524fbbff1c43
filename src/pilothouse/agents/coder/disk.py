"""Files of the workspace on disk, for a client that does not lend its own.

A path that was found to be inside may lead elsewhere a moment later, when a command that runs beside puts a link in its
way. So a file is opened by its name in its real directory, held open, without following a link, and that directory is
looked at again. A pipe or a device is never opened for good: a read of one may take for ever.

All of it blocks, so it runs in threads.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .workspace import Workspace

__all__ = ["read", "write"]

HANDLES = os.open in os.supports_dir_fd
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
BINARY = getattr(os, "O_BINARY", 0)
DIRECTORY = "it is a directory; use glob to see what is in it."


def read(workspace: Workspace, path: Path, limit: int) -> bytes:
    """The beginning of a file, a byte more than `limit` of one that is longer. Raises OSError, ValueError, Failure."""
    with _held(workspace, path, os.O_RDONLY) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(limit + 1)


def write(workspace: Workspace, path: Path, data: bytes) -> None:
    """Replace what is in a file, or make it, with the directories above it. Raises OSError, ValueError, Failure."""
    _real(workspace, path).parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT
    with _held(workspace, path, flags) as descriptor, os.fdopen(descriptor, "wb", closefd=False) as file:
        _reserve(descriptor, len(data))
        file.write(data)
        file.truncate()


def _reserve(descriptor: int, size: int) -> None:
    """Have room for a file before anything of it is overwritten: a disk that is full must not cost what is there."""
    before = os.fstat(descriptor).st_size
    try:
        if size > before:
            os.posix_fallocate(descriptor, 0, size)
    except AttributeError:
        return  # this system has no such thing
    except OSError as exc:
        if exc.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            return  # and this file system has not
        os.ftruncate(descriptor, before)
        raise


@contextmanager
def _held(workspace: Workspace, path: Path, flags: int) -> Iterator[int]:
    """A file of the workspace, open."""
    real = _real(workspace, path)
    if real.is_dir():  # what it is in may be outside, as that of the workspace itself is
        raise ValueError(DIRECTORY)
    if not HANDLES:
        descriptor = os.open(real, flags | PLAIN | BINARY)
    else:
        folder = os.open(real.parent, os.O_RDONLY | os.O_DIRECTORY | PLAIN)
        try:
            if not os.path.samestat(os.fstat(folder), _real(workspace, real.parent).lstat()):
                raise ValueError("its directory is another one by now.")
            descriptor = os.open(real.name, flags | PLAIN, 0o666, dir_fd=folder)
        finally:
            os.close(folder)
    try:
        _check(os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def _real(workspace: Workspace, path: Path) -> Path:
    return workspace.locate(str(path)).resolve()


def _check(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ValueError(DIRECTORY)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no file but a pipe, a socket or a device.")
