"""Directories held open by handle, so that a path that was checked cannot be bent before it is used.

A folder is entered one name at a time and never through a symbolic link; everything in it is then reached by its
handle. Whoever swaps a directory for a link meanwhile gains nothing: the link is met, not followed, and `Moved` says
so. Windows has no such handles in Python; there each step looks first and opens by path, and a swap between the two
is not noticed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

HANDLES = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# O_PATH asks for no permission to list the directory, only to pass through it
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | _COMMON
# never the terminal of this process, never a wait for the other end of a pipe
_CAREFUL = _NOFOLLOW | _COMMON | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class Moved(Exception):
    """A symbolic link stands where there was none a moment ago."""


class Folder:
    """An open directory; `with` closes it. Every name given to it is one component, never a path."""

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path = path
        self._handle = handle

    @classmethod
    def open(cls, path: Path) -> Self:
        """The directory at a trusted path without links. Raises OSError."""
        if HANDLES:
            return cls(path, os.open(path, _DIRECTORY))
        if not path.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return cls(path, None)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def enter(self, name: str) -> Self:
        """The directory of that name in this one. Raises Moved, OSError."""
        if HANDLES:
            try:
                return type(self)(self.path / name, os.open(name, _DIRECTORY, dir_fd=self._handle))
            except OSError as exc:
                if exc.errno in (errno.ENOTDIR, errno.ELOOP):
                    self.look(name)  # raises Moved for a link, which some systems report as not a directory
                raise
        found = self.look(name)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return type(self)(self.path / name, None)

    def look(self, name: str) -> os.stat_result:
        """What stands under a name, which is not a link. Raises Moved, OSError."""
        found = self.status(name)
        if stat.S_ISLNK(found.st_mode):
            raise Moved(name)
        return found

    def status(self, name: str) -> os.stat_result:
        """What stands under a name, be it a link. Raises OSError."""
        return os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)

    def names(self) -> list[str]:
        """All that is in this directory, in no order. Raises OSError."""
        if self._handle is None:
            return [place.name for place in self.path.iterdir()]
        handle = os.open(".", os.O_RDONLY | _COMMON, dir_fd=self._handle)
        try:
            return os.listdir(handle)  # noqa: PTH208 - by handle
        finally:
            os.close(handle)

    def open_file(self, name: str, flags: int) -> int:
        """A descriptor of an existing file, never of what a link points to. Raises Moved, OSError."""
        try:
            return os.open(self._at(name), flags | _CAREFUL, dir_fd=self._handle)
        except OSError as exc:
            if exc.errno == errno.ELOOP:
                raise Moved(name) from exc
            raise

    def open_new(self, mode: int) -> tuple[str, int]:
        """A new file with a name of its own, for writing; `mode` is subject to the umask. Raises OSError."""
        name = f".pilothouse-{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _COMMON
        return name, os.open(self._at(name), flags, mode, dir_fd=self._handle)

    def make(self, name: str) -> bool:
        """Make a directory; False if something is there already. Raises OSError."""
        try:
            os.mkdir(self._at(name), dir_fd=self._handle)
        except FileExistsError:
            return False
        return True

    def replace(self, source: str, target: str) -> None:
        """Rename in this directory; a link called `target` is replaced, not followed. Raises OSError."""
        os.replace(self._at(source), self._at(target), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def name_new(self, source: str, target: str) -> None:
        """Rename in this directory, to a name that nothing has. Raises FileExistsError, OSError."""
        try:
            os.link(self._at(source), self._at(target), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except FileExistsError:
            raise
        except OSError:  # no hard links here: look first, which leaves a moment in which another could be as fast
            with contextlib.suppress(FileNotFoundError):
                self.status(target)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
            self.replace(source, target)
        else:
            self.remove(source)

    def remove(self, name: str) -> None:
        """Remove a file, if it can be."""
        with contextlib.suppress(OSError):
            os.unlink(self._at(name), dir_fd=self._handle)

    def remove_empty(self, name: str) -> None:
        """Remove a directory, if it is empty and can be."""
        with contextlib.suppress(OSError):
            os.rmdir(self._at(name), dir_fd=self._handle)

    def sync(self) -> None:
        """Have the names in this directory on disk, where the system can do that for directories."""
        if self._handle is None:
            return
        with contextlib.suppress(OSError):
            handle = os.open(".", os.O_RDONLY | _COMMON, dir_fd=self._handle)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    @property
    def stable_path(self) -> Path:
        """A path to this open directory that stays valid even if its name now leads elsewhere.

        Only Linux has such paths; elsewhere it is the path by which the directory was opened.
        """
        if sys.platform == "linux" and self._handle is not None:
            return Path(f"/proc/self/fd/{self._handle}")
        return self.path

    def is_within(self, root: Path) -> bool:
        """Whether the directory is still below `root`; True where that cannot be told (anything but Linux)."""
        try:
            now = Path(f"/proc/self/fd/{self._handle}").readlink()
        except OSError:
            return True
        return now.is_relative_to(root)

    def _at(self, name: str) -> str:
        return name if self._handle is not None else str(self.path / name)


class Descent:
    """The way down from a root: `with` gives the last folder of it, and closes everything afterwards.

    With `make`, missing directories are made, and removed again if the block fails.
    """

    def __init__(self, root: Path, names: Sequence[str], *, make: bool = False) -> None:
        self._root = root
        self._names = names
        self._make = make
        self._made: list[tuple[Folder, str]] = []
        self._folder: Folder

    def __enter__(self) -> Folder:
        self._folder = Folder.open(self._root)
        try:
            for name in self._names:
                self._down(name)
        except BaseException:
            self._leave(undo=True)
            raise
        return self._folder

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._leave(undo=kind is not None)

    def _down(self, name: str) -> None:
        outer = self._folder
        keep = False
        try:
            self._folder = outer.enter(name)
        except FileNotFoundError:
            if not self._make:
                raise
            if keep := outer.make(name):
                self._made.append((outer, name))
            self._folder = outer.enter(name)
        if not keep:
            outer.close()

    def _leave(self, *, undo: bool) -> None:
        self._folder.close()
        for outer, name in reversed(self._made):
            if undo:
                outer.remove_empty(name)
            outer.close()
        self._made.clear()
