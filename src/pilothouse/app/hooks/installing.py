"""Claude Code's settings with our hook in them, and without it again.

The settings are the user's, a project's, or the user's own copy of a project's. A file is replaced in one step, with a
backup beside it. A record in the home (hashes and names only) allows a removal to restore an unchanged file to the
byte; otherwise, or without the record, only our own entries are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from ...acp.naming import camel
from ...config import ConfigError
from ...locks import lock
from ..editors.files import read, replace
from ..editors.jsonc import JsoncError
from .entries import Found, added, depth, found, switched_off, without

SCOPES = ("user", "project", "local")
"""`project` is what a project's people share, `local` what is only for this machine."""


def settings_file(scope: str, project: Path, user: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The settings of a scope, be they there or not. `CLAUDE_CONFIG_DIR` moves those of the user, as for the CLI."""
    if scope == "user":
        given = environ.get("CLAUDE_CONFIG_DIR", "").strip()
        return (Path(given).expanduser().absolute() if given else user / ".claude") / "settings.json"
    return project / ".claude" / ("settings.json" if scope == "project" else "settings.local.json")


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
    with alone(home):
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
        keep(home, path, record)
    return Done(True, backup)


def _known(home: Path, path: Path, text: str | None) -> Record | None:
    """What was done to a text: by us, or by the installation with another home whose entry it has."""
    there = _edited(path, found, text) if text is not None else []
    homes = [home, *(Path(one.home) for one in there if one.home is not None)]
    known = (recall(each, path) for each in homes)
    return next((one for one in known if one is not None and text is not None and one.after == mark(text)), None)


def uninstall(path: Path, home: Path, now: datetime) -> Done:
    """Take out what is ours. Raises ConfigError."""
    with alone(home):
        return _uninstall(path, home, now)


def _uninstall(path: Path, home: Path, now: datetime) -> Done:
    old = read(path)
    record = recall(home, path)
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
        forget(home, path)


def _edited(path: Path, work: Callable[..., Any], text: str, *more: Any) -> Any:
    """Work on the text; what is wrong with it is told with the file, line and column."""
    try:
        return work(text, *more)
    except JsoncError as exc:
        raise ConfigError(path, f"column {exc.column}: {exc}", line=exc.line) from None
