"""The tables: batches of events as rows, and records with one column per field.

One row holds up to ROW_COUNT events, as lines: writing and reading cost a step of SQLite per row, not per event. Every
statement about records is made here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import count, repeat
from typing import Any, TypeVar, cast

import msgspec

from ...model.events import EVENT_TYPES
from ...model.session import sound
from ..entries import SLICE_BYTES, Entry, cut, is_large, read_slices, slices, write_slice
from ..errors import RecordChanged, RecordExists, UnknownRecord, UnknownSession
from ..records import (
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
from ..search import like_pattern
from ..stores import page_key, read_page_key

ROW_COUNT = 512
ROW_BYTES = 192 << 10
"""What a row holds at most; a reader that wants one event of it reads all. A larger event has a row to itself."""

BLOB_BYTES = 256 << 10
"""An event or source beyond this lies in `blobs`, or in `slices`, so that scans of `batches` pass it by."""

_TYPES = {name.encode(): name for name in EVENT_TYPES}
_START = len(b'{"type":"')

_encode_sources = msgspec.msgpack.Encoder().encode
_decode_sources = msgspec.msgpack.Decoder(list[bytes | bool | None]).decode


def write_rows(
    db: sqlite3.Connection, session: int, entries: list[Entry], size: int, staged: Collection[tuple[int, int]] = ()
) -> int:
    """Store entries of one session whose seqs and positions go up by one. Returns about how many bytes that took.

    `size` is that of events and sources together. What is large in those whose session and seq are in `staged` was
    written before.
    """
    written = 0
    for row in [entries] if is_one_row(len(entries), size) else split(entries):
        last = row[-1]
        lines = [entry.data for entry in row]
        sources: list[bytes | bool | None] | None = [entry.source for entry in row]
        if len(row) == 1:
            lines = [last.data if len(last.data) <= BLOB_BYTES else b""]
            sources = [_small(last.source)]
        if sources == [None] * len(row):
            sources = None
        values = (last.position, session, last.seq, len(row), b"\n".join(lines), sources and _encode_sources(sources))
        db.execute(
            "INSERT INTO batches (position, session, seq, count, events, sources) VALUES (?, ?, ?, ?, ?, ?)", values
        )
        written += len(values[4]) + len(values[5] or b"")
        if len(row) == 1:  # only an event alone in its row can be that large
            written += _write_blobs(db, session, last)
            if is_large(last) and (session, last.seq) not in staged:
                written += _size(last)
                for piece in slices(row):
                    write_slice(db, session, piece)
    return written


def is_one_row(count: int, size: int) -> bool:
    return count <= ROW_COUNT and size <= ROW_BYTES


def split(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Cut entries into rows."""
    start = size = 0
    for index, entry in enumerate(entries):
        more = _size(entry)
        if index > start and (size + more > ROW_BYTES or index - start == ROW_COUNT):
            yield entries[start:index]
            start, size = index, 0
        size += more
    yield entries[start:]


def read_session(
    db: sqlite3.Connection, session_id: str, after: int, limit: int, max_bytes: int
) -> tuple[list[Entry], int]:
    """Entries beyond a seq, and the session's last seq. Raises UnknownSession."""
    number, last = head(db, session_id)
    if after >= last or limit <= 0:
        return [], last
    sql = "SELECT position, seq, count, events, sources FROM batches WHERE session = ? AND seq > ? ORDER BY seq"
    entries: list[Entry] = []
    size = 0
    for position, seq, amount, events, sources in db.execute(sql, (number, after)):
        skip = max(0, after - (seq - amount))
        entries += unpack(db, number, session_id, seq, position, amount, events, sources, skip)
        size += entries[-1].size if amount == 1 else len(events) + len(sources or b"")
        if len(entries) >= limit or size >= max_bytes:
            break
    return _within(entries, size, limit, max_bytes), last


def read_all(db: sqlite3.Connection, after: int, limit: int, max_bytes: int) -> list[Entry]:
    """Entries of all sessions beyond a position."""
    sql = (
        "SELECT b.position, b.seq, b.count, b.events, b.sources, s.number, s.id FROM batches AS b "
        "JOIN sessions AS s ON s.number = b.session WHERE b.position > ? AND s.deleted IS NULL ORDER BY b.position"
    )
    entries: list[Entry] = []
    size = 0
    for position, seq, amount, events, sources, number, session_id in db.execute(sql, (after,)):
        skip = max(0, after - (position - amount))
        entries += unpack(db, number, session_id, seq, position, amount, events, sources, skip)
        size += entries[-1].size if amount == 1 else len(events) + len(sources or b"")
        if len(entries) >= limit or size >= max_bytes:
            break
    return _within(entries, size, limit, max_bytes)


def _within(entries: list[Entry], size: int, limit: int, max_bytes: int) -> list[Entry]:
    return entries[:limit] if size < max_bytes else cut(entries, limit, max_bytes)


def last_position(db: sqlite3.Connection) -> int:
    """The highest position ever given to a committed event, also when that event is deleted."""
    sql = (
        "SELECT max(coalesce((SELECT max(position) FROM batches), 0),"
        " coalesce((SELECT value FROM counters WHERE name = 'position'), 0))"
    )
    return int(db.execute(sql).fetchone()[0])


def unpack(
    db: sqlite3.Connection,
    session: int,
    session_id: str,
    seq: int,
    position: int,
    amount: int,
    events: bytes,
    sources: bytes | None,
    skip: int,
) -> list[Entry]:
    """The entries of a row without the first `skip`. Raises DatabaseError for what was never written so."""
    try:
        lines = events.split(b"\n")
        given: Iterable[Any] = repeat(None)
        if sources is not None:
            given = _decode_sources(sources)
        if len(lines) == 1:
            lines[0] = lines[0] or _blob(db, session, seq, position, "event")
            if sources is not None:
                given = [_blob(db, session, seq, position, "source") if source is True else source for source in given]
            types = types_of(lines[0][:100], lines)  # its beginning is enough, and it may be large
        else:
            types = types_of(events, lines)
    except (msgspec.MsgspecError, UnicodeError, TypeError, AttributeError) as exc:
        raise sqlite3.DatabaseError(f"the events at position {position} cannot be read: {exc}") from exc
    if len(lines) != amount:
        raise sqlite3.DatabaseError(f"there are {len(lines)} events at position {position}, not {amount}")
    # a hundred thousand of these make a replay: let C do the loop
    numbers, places = count(seq - amount + 1), count(position - amount + 1)
    entries = list(map(Entry, repeat(session_id), numbers, places, types, lines, given))
    return entries[skip:] if skip else entries


def types_of(events: bytes, lines: list[bytes]) -> list[str]:
    """The types of all events of a row, without reading more of them than their beginning."""
    try:
        first = events[: events.index(b'"', _START) + 1]
        if events.count(b"\n" + first) == len(lines) - 1:  # all alike, as pieces of a message are
            return [_TYPES[first[_START:-1]]] * len(lines)
        return [_TYPES[line[_START : line.index(b'"', _START)]] for line in lines]
    except (KeyError, ValueError):
        return [type_of(line) for line in lines]


def type_of(line: bytes) -> str:
    """The type of an event from its JSON. What we encode begins with it; a later version may know other types."""
    fields: Any = msgspec.json.decode(line, type=_Typed)
    return str(fields.type)


class _Typed(msgspec.Struct):
    type: str


def _write_blobs(db: sqlite3.Connection, session: int, entry: Entry) -> int:
    size = 0
    for part, body in (("event", entry.data), ("source", entry.source)):
        if body is not None and BLOB_BYTES < len(body) <= SLICE_BYTES:
            sql = "INSERT INTO blobs (position, part, session, body) VALUES (?, ?, ?, ?)"
            db.execute(sql, (entry.position, part, session, body))
            size += len(body)
    return size


def _blob(db: sqlite3.Connection, session: int, seq: int, position: int, part: str) -> bytes:
    row = db.execute("SELECT body FROM blobs WHERE position = ? AND part = ?", (position, part)).fetchone()
    body = bytes(row[0]) if row is not None else read_slices(db, session, seq, part)
    if body is None:
        raise sqlite3.DatabaseError(f"the {part} at position {position} is missing from blobs")
    return body


def _small(source: bytes | None) -> bytes | bool | None:
    return source if source is None or len(source) <= BLOB_BYTES else True


def _size(entry: Entry) -> int:
    source = entry.source
    return len(entry.data) + len(source) if source else len(entry.data)


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
