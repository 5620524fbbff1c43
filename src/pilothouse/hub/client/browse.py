"""The files of a session's directory as users see them: listed, read as bytes, uploaded, and their media types.

The same rules hold as for an agent's own reads and writes, because the code is the same: see `workspace`. One thing
more is refused here: the hub's own directory, whose secrets must not reach the readers of a session's files.
"""

from __future__ import annotations

import asyncio
import mimetypes
import os
import stat
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from msgspec import Struct

from ...acp.naming import camel
from .refusals import AlreadyThere, BadPath, Changed, TooLarge, shown
from .safe_dirs import Descent
from .workspace import DEPTH, Workspace, above, check_kind, replace_file

Kind = Literal["file", "directory", "link", "other"]
_T = TypeVar("_T")


class FileEntry(Struct, kw_only=True, omit_defaults=True, rename=camel):
    """What has a name in a directory. `size` and `etag` are a file's; a link is listed as one, wherever it leads."""

    name: str
    path: str
    kind: Kind
    modified: str
    size: int | None = None
    etag: str | None = None


class Listing(Struct, kw_only=True, rename=camel):
    """What a directory has, by name; `next` is the `after` of the following page, null after the last."""

    path: str
    entries: list[FileEntry]
    next: str | None = None


class OpenFile:
    """A file held open for reading; what takes its name meanwhile changes nothing. Close it."""

    def __init__(self, descriptor: int, name: str, found: os.stat_result) -> None:
        self._descriptor: int | None = descriptor
        self._reading = threading.Lock()  # a descriptor that is closed under a read may be another file's by then
        self.name = name
        self.size = found.st_size
        self.modified = found.st_mtime
        self.etag = etag_of(found)

    def read(self, offset: int, size: int) -> bytes:
        """Blocks. Raises OSError."""
        with self._reading:
            if self._descriptor is None:
                raise ValueError("the file is closed")
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            return os.read(self._descriptor, size)

    def close(self) -> None:
        with self._reading:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None


class WorkspaceFiles(Workspace):
    """`home` is the hub's own directory. A session inside of it is somebody's deliberate choice, and has its files."""

    def __init__(self, root: str, *, home: Path | None = None, file_limit: int) -> None:
        super().__init__(root, private=home, file_limit=file_limit)

    async def list(self, path: str = ".", *, after: str | None = None, limit: int = 1000) -> Listing:
        """What is in a directory, beyond `after`, the `next` of a page before. Raises WorkspaceError."""
        return await self._run(path, "list", lambda: self._list(path, after, limit))

    async def open(self, path: str) -> OpenFile:
        """A plain file, to be read. Raises WorkspaceError."""
        return await self._run(path, "read", lambda: self._open(path))

    def look(self, path: str) -> FileEntry:
        """What stands at a path, which must lead inside; nothing is opened. Blocks. Raises WorkspaceError."""
        return self._guard(path, "find", lambda: self._look(path))

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = False, match: str | None = None
    ) -> tuple[FileEntry, bool]:
        """Make a file with these bytes, with the directories above it; whether it is new.

        One that is there is replaced only with `overwrite`, or if its etag is `match`. Raises WorkspaceError.
        """
        return await self._run(path, "write", lambda: self._put(path, data, overwrite, match))

    # -- steps, all in a thread --

    async def _run(self, path: str, verb: str, act: Callable[[], _T]) -> _T:
        return await asyncio.to_thread(self._guard, path, verb, act)

    def _list(self, path: str, after: str | None, limit: int) -> Listing:
        root, target = self._locate(path)
        names = target.relative_to(root).parts
        if len(names) > DEPTH:
            raise BadPath(f"{shown(path)} refused: it is more than {DEPTH} directories deep", path=path)
        start = unquote_to_bytes(after) if after is not None else b""
        with Descent(root, names) as folder:
            found = sorted(name for name in map(os.fsencode, folder.names()) if name > start)
            place = "/".join(names)
            entries = []
            for name in map(os.fsdecode, found[:limit]):
                try:
                    entries.append(_entry(name, f"{place}/{name}" if place else name, folder.status(name)))
                except FileNotFoundError:  # gone since
                    continue
        more = quote_from_bytes(found[limit - 1]) if len(found) > limit else None
        return Listing(path=_clean(place), entries=entries, next=more)

    def _look(self, path: str) -> FileEntry:
        root, target = self._locate(path)
        if target == root:
            return _entry(root.name, "", root.stat())
        with Descent(root, above(root, target, path)) as folder:
            return _entry(target.name, target.relative_to(root).as_posix(), folder.look(target.name))

    def _open(self, path: str) -> OpenFile:
        root, target = self._locate(path)
        with Descent(root, above(root, target, path)) as folder:
            check_kind(folder.look(target.name), path)
            descriptor = folder.open_file(target.name, os.O_RDONLY)
        try:
            found = os.fstat(descriptor)
            check_kind(found, path)
        except BaseException:
            os.close(descriptor)
            raise
        return OpenFile(descriptor, target.name, found)

    def _put(self, path: str, data: bytes, overwrite: bool, match: str | None) -> tuple[FileEntry, bool]:
        if len(data) > self._file_limit:
            raise TooLarge(f"{shown(path)} refused: a file may have {self._file_limit:,} bytes", path=path)
        root, target = self._locate(path)
        with Descent(root, above(root, target, path), make=True) as folder:
            try:
                before = folder.look(target.name)
                check_kind(before, path)
            except FileNotFoundError:
                before = None
            _check_match(before, overwrite, match, path)
            try:
                is_new = before is None and not overwrite
                replace_file(folder, root, target.name, data, before, is_new=is_new)
            except FileExistsError:
                raise _there(path) from None
            found = folder.look(target.name)
        return _entry(target.name, target.relative_to(root).as_posix(), found), before is None


def _check_match(before: os.stat_result | None, overwrite: bool, match: str | None, path: str) -> None:
    if match is not None:
        if before is None or match not in ("*", etag_of(before)):
            raise Changed(f"{shown(path)} is not the file that was to be replaced; read it again", path=path)
    elif before is not None and not overwrite:
        raise _there(path)


def _there(path: str) -> AlreadyThere:
    return AlreadyThere(f"{shown(path)} is there already; say that it is to be replaced", path=path)


def etag_of(found: os.stat_result) -> str:
    """Changes whenever the content does, as far as the file system's clock can tell."""
    return f'"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"'


def _entry(name: str, path: str, found: os.stat_result) -> FileEntry:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    return FileEntry(
        name=_clean(name),
        path=_clean(path),
        kind=kind,
        modified=_moment(found.st_mtime),
        size=found.st_size if kind == "file" else None,
        etag=etag_of(found) if kind == "file" else None,
    )


_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


def _moment(seconds: float) -> str:
    """A time as events have it; that of the epoch for one that no calendar has."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clean(text: str) -> str:
    """Without halves of characters, which JSON cannot carry; such a name can be seen, not opened."""
    return text.encode("utf-8", "backslashreplace").decode()


BINARY = "application/octet-stream"


def known_type(name: str) -> str:
    """The media type of a file of that name."""
    last = name.replace("\0", "").rpartition("/")[2]  # all of it could be taken for an address, which may be a bad one
    return _types().guess_type(last, strict=False)[0] or BINARY


@cache
def _types() -> mimetypes.MimeTypes:
    """Made when it is first wanted: it reads files."""
    return mimetypes.MimeTypes()
