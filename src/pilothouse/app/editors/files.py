"""An editor's file: read whole, and replaced in one step with a copy of the old one beside it.

The file that a link leads to is replaced, not the link; its mode and owner are kept. A file that was changed by
somebody else after it was read is left alone.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from datetime import datetime
from itertools import count
from pathlib import Path

from ...config import ConfigError

__all__ = ["read", "replace"]

NEW_MODE = 0o600
"""Of a file that was not there: entries of others that come later may hold secrets."""


def read(path: Path) -> str | None:
    """The text, None where there is no file. Raises ConfigError."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(path, "is no file")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as exc:
        raise ConfigError(path, f"is not in UTF-8: {exc.reason} at byte {exc.start}") from None
    except OSError as exc:
        raise ConfigError(path, f"cannot be read: {exc.strerror or exc}") from exc


def replace(path: Path, old: str | None, new: str, now: datetime) -> Path | None:
    """Put `new` in the place of `old`. The answer is the copy of the old file, if there was one. Raises ConfigError."""
    try:
        return _replace(path, old, new.encode("utf-8"), now)
    except UnicodeEncodeError:
        raise ConfigError(path, "cannot be written: a path in it is not in UTF-8") from None
    except OSError as exc:
        raise ConfigError(path, f"cannot be written: {exc.strerror or exc}") from exc


def _replace(path: Path, old: str | None, new: bytes, now: datetime) -> Path | None:
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    before = real.stat() if old is not None else None
    # root may write everything; a file that nobody is to write is left alone by it too
    if before is not None and not (os.access(real, os.W_OK) and before.st_mode & 0o222):
        raise ConfigError(path, "is read-only; something else may write it, and the entry belongs there")
    descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
            _make_alike(file.fileno(), before)
        if read(path) != old:
            raise ConfigError(path, "was changed by somebody else just now; nothing was written")
        backup = _copy(path, old.encode("utf-8"), before, now) if old is not None else None
        draft.replace(real)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return backup


def _make_alike(descriptor: int, like: os.stat_result | None) -> None:
    if like is not None:
        with contextlib.suppress(OSError):  # only root may give a file away
            os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, like.st_mode & 0o7777 if like is not None else NEW_MODE)


def _copy(path: Path, data: bytes, like: os.stat_result | None, now: datetime) -> Path:
    """A copy under a name of its own, beside the file that was named."""
    stem = f"{path.name}.{now:%Y%m%d-%H%M%S}"
    for number in count(1):
        backup = path.with_name(f"{stem}{f'-{number}' if number > 1 else ''}.bak")
        try:
            descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            _make_alike(file.fileno(), like)
        return backup
    raise AssertionError("can't happen: counting ends")
