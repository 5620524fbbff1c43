"""The directories of a session, which paths are inside them, and their files on disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..commands import Failure


class Workspace:
    """A session's own directory, and those that the client added."""

    def __init__(self, cwd: str, directories: Sequence[str] = ()) -> None:
        self.cwd = Path(cwd)
        self.roots = (self.cwd, *map(Path, directories))

    def point(self, name: str) -> Path:
        """The path that a name stands for, wherever that is."""
        return self.cwd / _plain(name).replace("\0", "")

    def locate(self, name: str) -> Path:
        """The path that a name stands for, as the client would write it. Raises Failure when it is outside."""
        if "\0" in _plain(name):
            raise Failure(f"{name!r} is no path.")
        path = Path(os.path.normpath(self.point(name)))
        # the client gets the path in its own terms; only the check looks through symbolic links
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError) as exc:
            raise Failure(f"`{name}` cannot be followed: {exc}") from exc
        if not any(real.is_relative_to(root.resolve()) for root in self.roots):
            raise Failure(f"`{name}` is outside of the workspace `{self.cwd}`.")
        return path

    def shown(self, path: Path) -> str:
        """A path as a person reads it: relative to the session's directory where it is in there."""
        return path.relative_to(self.cwd).as_posix() if path.is_relative_to(self.cwd) else str(path)


def _plain(name: str) -> str:
    """A name without the marks of a URI, which is how clients name the files that they attach; `~` is the home."""
    if name.startswith("file:///"):
        return unquote(urlsplit(name).path)
    return os.path.expanduser(name) if name == "~" or name.startswith("~/") else name  # noqa: PTH111


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
