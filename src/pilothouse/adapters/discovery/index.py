"""What is known of the files of a store: an entry for each, kept on the disk for the next process.

Rules a change must not break: the kept index is only ever a short cut. One that is missing, torn, of another version
or of somebody else's making counts as empty, and one that cannot be written is not written; neither is a reason for
sessions not to be found. It has titles and last words, so nobody but its owner may read it. Processes that use it at
once each replace it as a whole.
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

import msgspec
from msgspec import Struct

from ... import __version__
from ...model.discovery import DiscoveredSession
from .lines import Stamp, Unreadable, opened

__all__ = ["Entry", "Index", "index_path"]

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
