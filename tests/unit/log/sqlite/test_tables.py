"""How entries lie in rows."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilothouse.log import Entry, UnknownSession
from pilothouse.log.entries import SLICE_BYTES
from pilothouse.log.records import Insert, SessionRecord
from pilothouse.log.sqlite.database import open_for_writing
from pilothouse.log.sqlite.tables import (
    BLOB_BYTES,
    ROW_BYTES,
    ROW_COUNT,
    head,
    make,
    read_all,
    read_session,
    split,
    type_of,
    types_of,
    write_rows,
)
from pilothouse.model.events import EVENT_TYPES, CustomEvent, MessageStartEvent, encode_event

EVERYTHING = (10_000, 1 << 40)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    made = open_for_writing(tmp_path / "x.db", synchronous="NORMAL", max_bytes=None)
    make(made, Insert(SessionRecord(id="s", agent="a", cwd="/", created="t", updated="t")))
    yield made
    made.close()


def entry(seq: int, size: int = 20, source: bytes | None = None, kind: str = "message:delta") -> Entry:
    data = b'{"type":"%s","seq":%d,"x":"%s"}' % (kind.encode(), seq, b"x" * size)
    return Entry("s", seq, seq + 100, kind, data, source)


def store(db: sqlite3.Connection, entries: list[Entry]) -> None:
    write_rows(db, head(db, "s")[0], entries, sum(entry.size for entry in entries))
    db.execute("UPDATE sessions SET last_seq = ?", (entries[-1].seq,))


def test_entries_of_any_size_and_source_come_back_from_any_cursor(db: sqlite3.Connection) -> None:
    chooser = random.Random(3)
    sizes = [0, 10, 300, 5_000, ROW_BYTES, BLOB_BYTES - 100, BLOB_BYTES + 1, SLICE_BYTES - 50, SLICE_BYTES * 2 + 1]
    sources = [None, b"", b"{}", b"a\nb\n", b"s" * (BLOB_BYTES + 1), b"s" * (SLICE_BYTES + 1)]
    kinds = sorted(EVENT_TYPES)[:4]
    stored: list[Entry] = []
    while len(stored) < 400:
        first = len(stored) + 1
        batch = [
            entry(
                first + index,
                chooser.choices(sizes, [20, 40, 20, 10, 1, 1, 1, 1, 1])[0],
                chooser.choices(sources, [40, 20, 30, 9, 1, 1])[0],
                chooser.choice(kinds),
            )
            for index in range(chooser.randint(1, 60))
        ]
        store(db, batch)
        stored += batch
    last = len(stored)
    assert read_session(db, "s", 0, *EVERYTHING) == (stored, last)
    assert read_all(db, 0, *EVERYTHING) == stored
    for after in range(0, last, 17):
        assert read_session(db, "s", after, 5, 1 << 40)[0] == stored[after : after + 5]
        assert read_all(db, after + 100, 5, 1 << 40) == stored[after : after + 5]
        assert read_session(db, "s", after, 5, 1)[0] == stored[after : after + 1]


def test_rows_are_bounded_by_count_and_bytes_and_a_large_event_is_alone() -> None:
    small = [entry(seq) for seq in range(1, 3 * ROW_COUNT + 8)]
    assert [len(row) for row in split(small)] == [ROW_COUNT, ROW_COUNT, ROW_COUNT, 7]
    mixed = [entry(1), entry(2, BLOB_BYTES * 2), entry(3), entry(4, 0, b"s" * BLOB_BYTES * 2), entry(5)]
    assert [len(row) for row in split(mixed)] == [1, 1, 1, 1, 1]
    half = [entry(seq, ROW_BYTES // 2) for seq in range(1, 6)]
    assert all(len(row) == 1 for row in split(half))


def test_the_type_is_read_from_the_beginning_of_an_event_or_else_decoded() -> None:
    start = encode_event(MessageStartEvent(seq=1, session_id="s", timestamp="t", message_id="m", role="user"))
    custom = encode_event(CustomEvent(seq=2, session_id="s", timestamp="t", namespace="n", event_name="e", data={}))
    later = b'{"type":"later:kind","seq":3}'
    turned = b'{"seq":4,"type":"custom"}'
    for lines, types in (
        ([start, start], ["message:start", "message:start"]),
        ([start, custom, start], ["message:start", "custom", "message:start"]),
        ([custom, later, turned], ["custom", "later:kind", "custom"]),
        ([later, later], ["later:kind", "later:kind"]),
    ):
        assert types_of(b"\n".join(lines), lines) == types
        assert [type_of(line) for line in lines] == types


def test_every_encoded_event_is_one_line_that_begins_with_its_type() -> None:
    text = "line\nline\r\n\u2028" + "".join(map(chr, range(32)))
    data = encode_event(
        CustomEvent(seq=2, session_id="s", timestamp="t", namespace=text, event_name="e", data={"a\nb": text})
    )
    assert b"\n" not in data
    assert data.startswith(b'{"type":"custom",')


@pytest.mark.parametrize("size", [BLOB_BYTES + 1, SLICE_BYTES + 1])
def test_a_missing_blob_is_damage(db: sqlite3.Connection, size: int) -> None:
    store(db, [entry(1, size)])
    assert [found.seq for found in read_session(db, "s", 0, *EVERYTHING)[0]] == [1]
    db.execute("DELETE FROM blobs")
    db.execute("DELETE FROM slices")
    with pytest.raises(sqlite3.DatabaseError, match="missing"):
        read_session(db, "s", 0, *EVERYTHING)


def test_an_unknown_session_has_no_rows(db: sqlite3.Connection) -> None:
    with pytest.raises(UnknownSession):
        read_session(db, "t", 0, *EVERYTHING)
