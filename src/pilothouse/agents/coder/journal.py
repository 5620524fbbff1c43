"""What was said and done in one session, as `session/load` replays it, and where it is kept.

A journal is two files: `ID.jsonl`, to which each update is appended in its wire form, and `ID.json`, the session's
settings and the model's memory, which is replaced as a whole. Both are for the owner only. A line that a killed process
left unfinished is skipped.

Another process may use the same session: only one has a turn in it at a time, and what the other one wrote is read
before anything is written over it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

try:
    import fcntl
except ImportError:  # not on Windows, where nothing keeps two processes apart
    fcntl = None  # type: ignore[assignment]

from ..transcript import Transcript

__all__ = ["Journal"]

REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class Journal(Transcript):
    """The updates of one session. Without a `path` (that of its settings) nothing is kept on disk."""

    def __init__(self, path: Path | None, updates: Sequence[bytes] = ()) -> None:
        super().__init__(updates)
        self.path = path
        self.problem: str | None = None
        """Why it was not kept on disk, if it was not; whoever has told the user sets it to None."""
        self._stamp = self._look()

    @classmethod
    def read(cls, path: Path) -> Journal:
        """The journal that a process before this one wrote. A file that cannot be read is an empty journal."""
        journal = cls(path)
        with journal._watched(), suppress(FileNotFoundError):
            data = _lines(path).read_bytes()
            journal.updates = [line for line in data.splitlines() if _is_update(line)]
            if data and not data.endswith(b"\n"):
                journal._write(b"")  # what follows begins a line of its own
        return journal

    def keep(self, settings: bytes) -> None:
        """Replace the settings: whoever reads them sees the old ones or the new ones, whole."""
        if self.path is None:
            return
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with self._watched(), os.fdopen(os.open(draft, REPLACE, 0o600), "wb") as file:
            file.write(settings)
            file.flush()
            os.fsync(file.fileno())
            draft.replace(self.path)
            self._stamp = self._look()

    @property
    def is_behind(self) -> bool:
        """Whether another process has written to the session, or deleted it."""
        # a directory that is gone is a trouble of the disk, and no reason to forget what was said
        is_known = self._stamp is not None and self.path is not None and self.path.parent.is_dir()
        return is_known and self._look() != self._stamp

    def catch_up(self) -> None:
        """Read what another process wrote."""
        if self.path is not None:
            self._stamp = self._look()
            self.updates = Journal.read(self.path).updates

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Have the session for this process alone. Raises BlockingIOError while another one has it."""
        if self.path is None or fcntl is None:
            yield
            return
        descriptor = -1
        try:
            with self._watched():
                descriptor = os.open(_lines(self.path), APPEND, 0o600)
            if descriptor >= 0:
                _lock(descriptor)
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def save_all(self) -> None:
        """Write every update, for a journal that begins with those of another."""
        if self.updates:
            self._write(b"\n".join(self.updates))

    def delete(self) -> None:
        """Remove the files. What is still said must not bring them back."""
        path, self.path = self.path, None
        if path is not None:
            path.unlink(missing_ok=True)
            _lines(path).unlink(missing_ok=True)

    def store(self, update: bytes) -> None:
        self._write(update)

    def _write(self, line: bytes) -> None:
        if self.path is not None:
            with self._watched(), os.fdopen(os.open(_lines(self.path), APPEND, 0o600), "ab") as file:
                file.write(line + b"\n")

    def _look(self) -> tuple[int, int] | None:
        """What tells one version of the settings from another; None where there are none."""
        try:
            found = self.path.stat() if self.path is not None else None
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns) if found is not None else None

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """A disk that is full ends no turn; it is told of."""
        try:
            yield
        except OSError as exc:
            self.problem = f"This session could not be read or kept on disk: {exc}"


def _lines(path: Path) -> Path:
    return path.with_suffix(".jsonl")


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return  # a file system without locks


class _Line(msgspec.Struct):
    """All that must be in a line of ours."""

    session_update: str = msgspec.field(name="sessionUpdate")


def _is_update(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=_Line)
    except msgspec.MsgspecError:
        return False
    return True
