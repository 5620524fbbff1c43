"""Claude Code's settings with our hook in them, and without it again.

A file is replaced in one step, with a copy of the old one beside it. Who changed nothing since gets back what was
there, to the byte, and no file where there was none; else only what is ours is taken out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import structs

from ...config import ConfigError
from ..editors.files import read, replace
from ..editors.jsonc import JsoncError
from . import records
from .entries import Found, added, depth, found, switched_off, without
from .records import Record, mark

__all__ = ["Done", "inspect", "install", "is_switched_off", "uninstall"]


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a file; `backup` is the copy that was made of it, `exact` that it is as it was before."""

    changed: bool
    backup: Path | None = None
    exact: bool = False


def inspect(path: Path) -> list[Found] | None:
    """What is there of ours; None where there is no file. Raises ConfigError that names the line."""
    text = read(path)
    return _edited(path, found, text) if text is not None else None


def is_switched_off(path: Path) -> bool:
    """Whether these settings let Claude Code run no hooks at all. Raises ConfigError that names the line."""
    text = read(path)
    return text is not None and bool(_edited(path, switched_off, text))


def install(path: Path, wanted: dict[str, Any], home: Path, now: datetime) -> Done:
    """Let the settings have this entry and no other of ours. Again changes nothing. Raises ConfigError."""
    with records.alone(home):
        return _install(path, wanted, home, now)


def _install(path: Path, wanted: dict[str, Any], home: Path, now: datetime) -> Done:
    old = read(path)
    new = _edited(path, added, old or "", wanted)
    if new == old:
        return Done(False)
    known = _known(home, path, old)
    made = [str(place) for place in Path(os.path.realpath(path)).parents if not place.exists()]
    own = _edited(path, depth, old or "")
    backup = replace(path, old, new, now)
    if known is not None:
        # ours took the place of ours: what was there before both is what it is to become again
        if backup is not None:
            backup.unlink(missing_ok=True)
        record, backup = structs.replace(known, after=mark(new)), None
    else:
        copy = str(backup) if backup is not None else None
        before = mark(old) if old is not None else None
        record = Record(before=before, after=mark(new), backup=copy, made=made, own=own)
    # the entry is there; without the record it is taken out by what it is
    with contextlib.suppress(OSError, UnicodeError):
        records.keep(home, path, record)
    return Done(True, backup)


def _known(home: Path, path: Path, text: str | None) -> Record | None:
    """What was done to a text: by us, or by the installation with another home whose entry it has."""
    there = _edited(path, found, text) if text is not None else []
    homes = [home, *(Path(one.home) for one in there if one.home is not None)]
    known = (records.recall(each, path) for each in homes)
    return next((one for one in known if one is not None and text is not None and one.after == mark(text)), None)


def uninstall(path: Path, home: Path, now: datetime) -> Done:
    """Take out what is ours. Raises ConfigError."""
    with records.alone(home):
        return _uninstall(path, home, now)


def _uninstall(path: Path, home: Path, now: datetime) -> Done:
    old = read(path)
    record = records.recall(home, path)
    if old is None:
        _forget(home, path)
        return Done(False)
    if record is not None and record.after == mark(old) and (done := _restored(path, old, record, now)) is not None:
        _forget(home, path)
        return done
    new = _edited(path, without, old, record.own if record is not None else 0)
    if new == old:
        return Done(False)
    backup = replace(path, old, new, now)
    if record is not None and _before(record) is not None:  # the copy of what was there once is as old as its text
        _drop(record)
    _forget(home, path)
    return Done(True, backup)


def _restored(path: Path, old: str, record: Record, now: datetime) -> Done | None:
    """Put back what was there before us; None when that is not known any more."""
    if record.before is None:
        _remove(path, record)
        return Done(True, exact=True)
    before = _before(record)
    if before is None or _edited(path, found, before):
        return None  # gone, or with an entry that another installation had left there: that has to go as well
    for copy in (replace(path, old, before, now), record.backup):
        if copy:
            Path(copy).unlink(missing_ok=True)
    return Done(True, exact=True)


def _drop(record: Record) -> None:
    if record.backup:
        with contextlib.suppress(OSError):
            Path(record.backup).unlink()


def _before(record: Record) -> str | None:
    """The text that was there before us, by the copy that was made of it; None when that is gone or changed."""
    if record.before == mark(""):
        return ""
    try:
        before = Path(record.backup or "").read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return before if mark(before) == record.before else None


def _remove(path: Path, record: Record) -> None:
    """Raises ConfigError."""
    try:
        Path(os.path.realpath(path)).unlink()
    except OSError as exc:
        raise ConfigError(path, f"cannot be removed: {exc.strerror or exc}") from exc
    with contextlib.suppress(OSError):  # somebody has put something there: then it stays
        for place in record.made:
            Path(place).rmdir()


def _forget(home: Path, path: Path) -> None:
    with contextlib.suppress(OSError):
        records.forget(home, path)


def _edited(path: Path, work: Callable[..., Any], text: str, *more: Any) -> Any:
    """Work on the text; what is wrong with it is told with the file, line and column."""
    try:
        return work(text, *more)
    except JsoncError as exc:
        raise ConfigError(path, f"column {exc.column}: {exc}", line=exc.line) from None
