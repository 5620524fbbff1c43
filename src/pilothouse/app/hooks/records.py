"""What was done to which settings, kept in the home: with it they are given back to the byte.

Only hashes and names are kept; the text itself is in the copy beside the settings. A record that is gone or cannot be
read costs nothing but that: entries are then taken out by what they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ...acp.naming import camel
from ...config import ConfigError
from ...locks import lock

__all__ = ["Record", "alone", "forget", "keep", "mark", "recall"]

FILE = "hooks.json"
LOCK = "hooks.lock"
PATIENCE = 10.0
"""Seconds that somebody else has for the settings."""


class Record(Struct, frozen=True, kw_only=True, rename=camel):
    """One file: `before` and `after` are marks of its text, None where there was no file; `backup` is the copy of the
    old one, `made` the directories that were made for it, the innermost first; `own` is how deep its user's settings
    went before there was an entry of ours."""

    before: str | None
    after: str
    backup: str | None = None
    made: list[str] = []
    own: int = 0


@contextlib.contextmanager
def alone(home: Path) -> Iterator[None]:
    """One at a time changes settings and their records. Raises ConfigError when another does not come to an end."""
    descriptor = None
    with contextlib.suppress(OSError):  # a home that cannot be written to has no records either
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if descriptor is not None:
            _wait_for(home / LOCK, descriptor)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _wait_for(path: Path, descriptor: int) -> None:
    with contextlib.suppress(OSError):  # a file system without locks
        try:
            lock(descriptor, PATIENCE)
        except TimeoutError:
            raise ConfigError(path, "another `pilothouse hooks` has it, and does not end") from None


def mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def recall(home: Path, path: Path) -> Record | None:
    known = _read(home)
    return known.get(_name(path)) or known.get(str(path))


def keep(home: Path, path: Path, record: Record) -> None:
    """Raises OSError, and UnicodeError for a path that is no text."""
    _write(home, {**_read(home), _name(path): record})


def forget(home: Path, path: Path) -> None:
    """Raises OSError."""
    known = _read(home)
    if not [name for name in {_name(path), str(path)} if known.pop(name, None) is not None]:
        return
    if known:
        _write(home, known)
    else:
        (home / FILE).unlink(missing_ok=True)


def _name(path: Path) -> str:
    """One file has one record, by whichever link it is reached."""
    return os.path.realpath(path)


def _read(home: Path) -> dict[str, Record]:
    with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode((home / FILE).read_bytes(), type=dict[str, Record])
    return {}


def _write(home: Path, known: dict[str, Record]) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft, data = home / f"{FILE}.{os.getpid()}.new", msgspec.json.encode(known)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    draft.replace(home / FILE)
