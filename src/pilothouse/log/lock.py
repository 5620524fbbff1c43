"""One hub per log: a lock on a file beside it, which the system drops when the process ends, however it ends."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from .errors import LogLocked, LogReadOnly, LogUnusable

try:
    import fcntl

    LOCKS = True
except ImportError:  # Windows
    LOCKS = False

NO_LOCK = "this platform has no file locks (fcntl): nothing keeps a second hub from the same log; run only one"

PF_EXITING = 0x4
"""The flag of Linux for a process on its way out."""
LINGER = 2.0
STEP = 0.01
"""Seconds in which the lock of a process that is gone is waited for, and between two tries: a child that it was just
starting holds the lock until it is a program of its own."""


class FileLock:
    """The lock of one log. The file stays when the lock goes; removing it would let two processes lock two files."""

    def __init__(self, log_path: Path) -> None:
        self._log_path = log_path
        self.path = log_path.with_name(log_path.name + ".lock")
        self._fd: int | None = None

    def acquire(self) -> str | None:
        """Take it or raise LogLocked. Returns a notice where it cannot be taken at all."""
        if not LOCKS:
            return NO_LOCK
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError as exc:
            raise LogReadOnly(self.path, exc.strerror or str(exc)) from exc
        except OSError as exc:
            kind = LogReadOnly if exc.errno == errno.EROFS else LogUnusable
            raise kind(self.path, exc.strerror or str(exc)) from exc
        try:
            self._lock(fd)
        except LogLocked:
            os.close(fd)
            raise
        except OSError as exc:
            os.close(fd)
            advice = "put the log on a local disk"
            raise LogUnusable(self.path, f"the file system has no locks: {exc.strerror}", advice) from exc
        self._fd = fd
        self._write(f"{os.getpid()}\n".encode())
        return None

    def _lock(self, fd: int) -> None:
        """Raises LogLocked when somebody who runs has it, OSError where there are no locks."""
        deadline = time.monotonic() + LINGER
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = os.pread(fd, 32, 0).strip()
                holder = int(text) if text.isdigit() else None
                if _runs(holder) or time.monotonic() > deadline:
                    raise LogLocked(self._log_path, holder) from None
                time.sleep(STEP)
            else:
                return

    def release(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def _write(self, text: bytes) -> None:
        """The holder's pid, for whoever is refused. A full disk must not matter: the lock is held without it."""
        assert self._fd is not None
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, text, 0)
        except OSError:
            pass


def _runs(pid: int | None) -> bool:
    """Whether the process is there; one that does not say who it is gets the time to do so."""
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return not _is_exiting(pid)


def _is_exiting(pid: int) -> bool:
    """Whether the process is just being taken down, where the system tells; its locks go on the way."""
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
        fields = data[data.rindex(b")") + 2 :].split()  # the name before it may hold anything
        return fields[0] in (b"Z", b"X") or bool(int(fields[6]) & PF_EXITING)
    except (OSError, ValueError, IndexError):
        return False
