"""One hub per log: a lock on a file beside it, which the system drops when the process ends, however it ends."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from .errors import LogLocked, LogReadOnly, LogUnusable

try:
    import fcntl

    LOCKS = True
except ImportError:  # Windows
    LOCKS = False

NO_LOCK = "this platform has no file locks (fcntl): nothing keeps a second hub from the same log; run only one"


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
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).strip()
            os.close(fd)
            raise LogLocked(self._log_path, int(holder) if holder.isdigit() else None) from None
        except OSError as exc:
            os.close(fd)
            advice = "put the log on a local disk"
            raise LogUnusable(self.path, f"the file system has no locks: {exc.strerror}", advice) from exc
        self._fd = fd
        self._write(f"{os.getpid()}\n".encode())
        return None

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
