"""Records in SQLite: one table a kind, one column a field. Every statement about records is made here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from ..model.session import sound
from .errors import RecordChanged, RecordExists, UnknownRecord, UnknownSession
from .records import (
    Change,
    DeleteSession,
    Insert,
    Outcome,
    Put,
    Record,
    Remove,
    SessionFilter,
    SessionPage,
    SessionRecord,
    Update,
)
from .search import like_pattern
from .stores import page_key, read_page_key

R = TypeVar("R", bound=Record)
Db = sqlite3.Connection


@cache
def columns(kind: type[Record]) -> tuple[str, ...]:
    return kind.__struct_fields__


# A session's row is told of its events only now and then; the events themselves are exact.
LAST_SEQ = "coalesce((SELECT max(seq) FROM batches WHERE session = sessions.number), 0)"


@cache
def selected(kind: type[Record]) -> str:
    """The columns of a record as they are read."""
    return ", ".join(LAST_SEQ if (kind.table, name) == ("sessions", "last_seq") else name for name in columns(kind))


def find(db: Db, kind: type[R], where: Mapping[str, Any]) -> list[R]:
    sql = f"SELECT {selected(kind)} FROM {kind.table}{_where(kind, where)} ORDER BY rowid"  # noqa: S608
    try:
        rows = db.execute(sql, _given(kind, where)).fetchall()
    except UnicodeEncodeError:  # half a character: nothing can be stored under it
        return []
    return [_record(kind, row) for row in rows]


def list_sessions(db: Db, chosen: SessionFilter) -> SessionPage:
    equal = {"agent": chosen.agent, "cwd": chosen.cwd, "status": chosen.status}
    tests = ["deleted IS NULL"]
    given: list[Any] = []
    for name, value in equal.items():
        if value is not None:
            tests.append(f"{name} = ?")
            given.append(value)
    if chosen.archived is not None:
        tests.append(f"archived IS {'NOT ' if chosen.archived else ''}NULL")
    if chosen.text is not None:
        tests.append("title LIKE ? ESCAPE '\\'")
        given.append(like_pattern(chosen.text))
    if chosen.before is not None:
        tests.append("(updated, number) < (?, ?)")
        given += read_page_key(chosen.before)
    limit = max(chosen.limit, 0)
    sql = (
        f"SELECT number, {selected(SessionRecord)} FROM sessions WHERE {' AND '.join(tests)} "  # noqa: S608
        "ORDER BY updated DESC, number DESC LIMIT ?"
    )
    rows = db.execute(sql, [*map(sound, given), limit + 1]).fetchall()
    sessions = [_record(SessionRecord, row[1:]) for row in rows[:limit]]
    more = page_key(sessions[-1], rows[limit - 1][0]) if len(rows) > limit > 0 else None
    return SessionPage(sessions, more)


def make(db: Db, change: Change) -> Any:
    """Make one change inside the caller's transaction and return its result."""
    if isinstance(change, Insert):
        return _insert(db, change)
    if isinstance(change, Update):
        return _update(db, change)
    if isinstance(change, Put):
        _write(db, "INSERT OR REPLACE", change.record)
        return change.record
    if isinstance(change, Remove):
        where = dict(zip(change.kind.key, change.key, strict=True))
        sql = f"DELETE FROM {change.kind.table}{_where(change.kind, where)}"  # noqa: S608
        return db.execute(sql, _given(change.kind, where)).rowcount > 0
    return _delete(db, change)


def _insert(db: Db, change: Insert[Any]) -> Record:
    record: Record = change.record
    kind, key = type(record), record.key_values
    session_id = getattr(record, "session_id", None)
    if session_id is not None:
        alive(db, session_id)
    if _write(db, "INSERT", record, " ON CONFLICT DO NOTHING"):
        return record
    if not change.keep:
        raise RecordExists(kind.table, key)
    return _get(db, kind, key)


def _update(db: Db, change: Update[Any]) -> Outcome[Any]:
    kind = change.kind
    _check(kind, [*change.values, *change.counts])
    where = {**dict(zip(kind.key, change.key, strict=True)), **change.where}
    sets = [f"{name} = ?" for name in change.values] + [f"{name} = {name} + ?" for name in change.counts]
    sql = f"UPDATE {kind.table} SET {', '.join(sets)}{_where(kind, where)}"  # noqa: S608
    given = [*_stored(kind, change.values.items()), *change.counts.values(), *_given(kind, where)]
    changed = db.execute(sql, given).rowcount > 0
    record = _get(db, kind, change.key)
    if change.strict and not changed:
        raise RecordChanged(record)
    return Outcome(record, changed)


def _delete(db: Db, change: DeleteSession) -> None:
    """Hide the session at once; its rows are purged later, a few at a time."""
    session = alive(db, change.session_id)
    db.execute("UPDATE sessions SET deleted = ? WHERE number = ?", (change.at, session))
    db.execute("DELETE FROM approvals WHERE session_id = ?", (change.session_id,))
    db.execute("DELETE FROM turns WHERE session_id = ?", (change.session_id,))
    # Positions are never given twice, also when the newest events are gone.
    db.execute(
        "INSERT INTO counters (name, value) SELECT 'position', coalesce(max(position), 0) FROM batches WHERE true "
        "ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)"
    )


def alive(db: Db, session_id: str) -> int:
    """The number of a session that is not deleted. Raises UnknownSession."""
    return head(db, session_id)[0]


def head(db: Db, session_id: str) -> tuple[int, int]:
    """Number and last seq of a session that is not deleted. Raises UnknownSession."""
    sql = f"SELECT number, {LAST_SEQ} FROM sessions WHERE id = ? AND deleted IS NULL"  # noqa: S608
    try:
        row = db.execute(sql, (session_id,)).fetchone()
    except UnicodeEncodeError:
        row = None
    if row is None:
        raise UnknownSession(session_id)
    return cast(tuple[int, int], row)


def _get(db: Db, kind: type[R], key: tuple[Any, ...]) -> R:
    found = find(db, kind, dict(zip(kind.key, key, strict=True)))
    if not found:
        raise UnknownRecord(kind.table, key)
    return found[0]


def _write(db: Db, verb: str, record: Record, otherwise: str = "") -> bool:
    kind = type(record)
    names = columns(kind)
    sql = f"{verb} INTO {kind.table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}){otherwise}"
    values = _stored(kind, ((name, getattr(record, name)) for name in names))
    return db.execute(sql, values).rowcount > 0


def _check(kind: type[Record], names: Iterable[str]) -> None:
    unknown = set(names) - set(columns(kind))
    if unknown:
        raise ValueError(f"{kind.table} has no {', '.join(sorted(unknown))}")


def _where(kind: type[Record], where: Mapping[str, Any]) -> str:
    _check(kind, where)
    tests = [f"{name} IS NULL" if value is None else f"{name} = ?" for name, value in where.items()]
    return " WHERE " + " AND ".join(tests) if tests else ""


def _given(kind: type[Record], where: Mapping[str, Any]) -> list[Any]:
    return _stored(kind, ((name, value) for name, value in where.items() if value is not None))


def _stored(kind: type[Record], items: Iterable[tuple[str, Any]]) -> list[Any]:
    """Values as columns have them. Half a character, which no column can have, is not worth a session's events."""
    return [
        msgspec.json.encode(sound(msgspec.to_builtins(value))).decode()
        if name in kind.documents and value is not None
        else sound(value)
        for name, value in items
    ]


def _record(kind: type[R], row: tuple[Any, ...]) -> R:
    """Raises DatabaseError for a row that was never written so."""
    fields = dict(zip(columns(kind), row, strict=True))
    try:
        for name in kind.documents:
            if fields[name] is not None:
                fields[name] = msgspec.json.decode(fields[name])
        return msgspec.convert(fields, kind)
    except (msgspec.MsgspecError, UnicodeError, TypeError) as exc:
        raise sqlite3.DatabaseError(f"a row of {kind.table} cannot be read: {exc}") from exc
