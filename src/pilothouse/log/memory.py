"""A log in memory: the same contract, nothing durable. For tests, and for sessions that should leave no trace."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Self, TypeVar

import msgspec

from ..model.events import Event, utc_now
from .contract import EventLog
from .entries import Entry, cut, number, weights_of
from .errors import (
    LogClosed,
    LogConflict,
    LogError,
    RecordChanged,
    RecordExists,
    UnknownRecord,
    UnknownSession,
)
from .follow import BATCH_BYTES, BATCH_COUNT
from .records import (
    KINDS,
    Change,
    DeleteSession,
    Insert,
    Outcome,
    Put,
    Record,
    Remove,
    SearchHit,
    SessionFilter,
    SessionPage,
    SessionRecord,
    Update,
)
from .search import matches, snippet, terms_of, text_of
from .stores import page_key, read_page_key

R = TypeVar("R", bound=Record)
Key = tuple[Any, ...]


class MemoryTables:
    """Records by kind and key. Changes are made at once and undone, newest first, when a transaction fails."""

    def __init__(self) -> None:
        self._rows: dict[type[Record], dict[Key, Record]] = {kind: {} for kind in KINDS}
        self._undo: list[tuple[type[Record], Key, Record | None]] = []

    def begin(self) -> None:
        self._undo.clear()

    def rollback(self) -> None:
        for kind, key, before in reversed(self._undo):
            if before is None:
                del self._rows[kind][key]
            else:
                self._rows[kind][key] = before

    def session(self, session_id: str) -> SessionRecord:
        found = self._rows[SessionRecord].get((session_id,))
        if not isinstance(found, SessionRecord) or found.deleted is not None:
            raise UnknownSession(session_id)
        return found

    def find(self, kind: type[R], where: Mapping[str, Any]) -> list[R]:
        unknown = where.keys() - set(kind.__struct_fields__)
        if unknown:
            raise ValueError(f"{kind.table} has no {', '.join(sorted(unknown))}")
        rows = [row for row in self._rows[kind].values() if isinstance(row, kind)]
        return [row for row in rows if all(getattr(row, name) == value for name, value in where.items())]

    def change(self, change: Change) -> Any:
        if isinstance(change, Insert):
            return self._insert(change)
        if isinstance(change, Update):
            return self._update(change)
        if isinstance(change, Put):
            self._set(type(change.record), change.record.key_values, change.record)
            return change.record
        if isinstance(change, Remove):
            return self._remove(change.kind, change.key)
        return self._delete(change)

    def _insert(self, change: Insert[Any]) -> Record:
        kind, key = type(change.record), change.record.key_values
        session_id = getattr(change.record, "session_id", None)
        if session_id is not None:
            self.session(session_id)
        before = self._rows[kind].get(key)
        if before is not None:
            if change.keep:
                return before
            raise RecordExists(kind.table, key)
        self._set(kind, key, change.record)
        return self._rows[kind][key]

    def _update(self, change: Update[Any]) -> Outcome[Any]:
        before = self._rows[change.kind].get(change.key)
        if before is None:
            raise UnknownRecord(change.kind.table, change.key)
        if any(getattr(before, name) != value for name, value in change.where.items()):
            if change.strict:
                raise RecordChanged(before)
            return Outcome(before, False)
        counts = {name: getattr(before, name) + more for name, more in change.counts.items()}
        after = msgspec.structs.replace(before, **change.values, **counts)
        self._set(change.kind, change.key, after)
        return Outcome(after, True)

    def _remove(self, kind: type[Record], key: Key) -> bool:
        before = self._rows[kind].pop(key, None)
        if before is not None:
            self._undo.append((kind, key, before))
        return before is not None

    def _delete(self, change: DeleteSession) -> None:
        session = self.session(change.session_id)
        self._set(SessionRecord, (session.id,), msgspec.structs.replace(session, deleted=change.at))
        for kind, rows in self._rows.items():
            for key in [key for key, row in rows.items() if getattr(row, "session_id", None) == session.id]:
                self._remove(kind, key)

    def _set(self, kind: type[Record], key: Key, record: Record) -> None:
        self._undo.append((kind, key, self._rows[kind].get(key)))
        self._rows[kind][key] = record


class MemoryLog(EventLog):
    """An EventLog without a file."""

    def __init__(self, *, now: Callable[[], str] = utc_now) -> None:
        super().__init__(now=now)
        self._tables = MemoryTables()
        self._entries: dict[str, list[Entry]] = {}
        self._all: list[Entry] = []
        self._texts: dict[int, tuple[Entry, str]] = {}
        self._position = 0
        self._is_open = False
        self._commits = 0
        self._events = 0

    async def open(self) -> Self:
        if self._is_open:
            raise LogError("the log is already open")
        self._is_open = True
        self._tails.start(0)
        return self

    async def close(self) -> None:
        self._is_open = False
        self._tails.close()

    def append_nowait(
        self, session_id: str, expected: int, events: Sequence[Event], *, also: Sequence[Change] = ()
    ) -> asyncio.Future[int]:
        self._check_open()
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        entries = number(session_id, expected, events, self._position)
        self._tables.begin()
        try:
            for change in also:
                self._tables.change(change)
            actual = self._tables.session(session_id).last_seq
            if actual != expected:
                raise LogConflict(session_id, expected, actual)
            if entries:
                progress = {"last_seq": entries[-1].seq, "updated": self.now()}
                self._tables.change(Update(SessionRecord, (session_id,), progress))
        except Exception as exc:
            self._tables.rollback()
            done.set_exception(exc)
        else:
            self._store(session_id, entries, events)
            self._forget(also)
            done.set_result(expected + len(entries))
        return done

    async def read(
        self, session_id: str, after: int = 0, limit: int = BATCH_COUNT, *, max_bytes: int = BATCH_BYTES
    ) -> list[Entry]:
        self._check_open()
        self._tables.session(session_id)
        start = max(after, 0)
        return cut(self._entries.get(session_id, [])[start : start + max(limit, 0)], limit, max_bytes)

    async def read_all(self, after: int = 0, limit: int = BATCH_COUNT, *, max_bytes: int = BATCH_BYTES) -> list[Entry]:
        self._check_open()
        start = bisect_right(self._all, after, key=attrgetter("position"))
        return cut(self._all[start : start + max(limit, 0)], limit, max_bytes)

    async def last_seq(self, session_id: str) -> int:
        self._check_open()
        return self._tables.session(session_id).last_seq

    async def last_position(self) -> int:
        self._check_open()
        return self._position

    async def apply(self, *changes: Change) -> list[Any]:
        self._check_open()
        self._tables.begin()
        try:
            results = [self._tables.change(change) for change in changes]
        except BaseException:
            self._tables.rollback()
            raise
        self._forget(changes)
        self._commits += 1
        return results

    async def find(self, kind: type[R], where: Mapping[str, Any]) -> list[R]:
        self._check_open()
        return self._tables.find(kind, where)

    async def list_sessions(self, chosen: SessionFilter) -> SessionPage:
        self._check_open()
        found = [
            (session.updated, index, session)
            for index, session in enumerate(self._tables.find(SessionRecord, {}))
            if _chosen(session, chosen)
        ]
        found.sort(key=lambda item: item[:2], reverse=True)
        if chosen.before is not None:
            place = read_page_key(chosen.before)
            found = [item for item in found if item[:2] < place]
        page = found[: max(chosen.limit, 0)]
        more = page_key(page[-1][2], page[-1][1]) if len(found) > len(page) > 0 else None
        return SessionPage([session for _, _, session in page], more)

    async def search(self, query: str, limit: int = 20, *, session_id: str | None = None) -> list[SearchHit]:
        self._check_open()
        terms = terms_of(query)
        hits = (
            SearchHit(entry.session_id, entry.seq, entry.position, entry.type, snippet(text, terms))
            for entry, text in reversed(self._texts.values())
            if terms and session_id in (None, entry.session_id) and matches(text, terms)
        )
        return list(islice(hits, max(limit, 0)))

    async def integrity_check(self) -> list[str]:
        self._check_open()
        return []

    def statistics(self) -> dict[str, int]:
        return {
            "commits": self._commits,
            "events": self._events,
            "queued": 0,
            "followers": self._tails.followers,
            "tail_bytes": self._tails.used,
        }

    def _check_open(self) -> None:
        if not self._is_open:
            raise LogClosed

    def _store(self, session_id: str, entries: list[Entry], events: Sequence[Event]) -> None:
        self._commits += 1
        if not entries:
            return
        self._events += len(entries)
        self._position = entries[-1].position
        self._entries.setdefault(session_id, []).extend(entries)
        self._all += entries
        for entry, event in zip(entries, events, strict=True):
            if text := text_of(event):
                self._texts[entry.position] = (entry, text)
        self._tails.committed(session_id, entries, weights_of(entries)).wake()
        self._tails.all.wake()

    def _forget(self, changes: Sequence[Change]) -> None:
        gone = {change.session_id for change in changes if isinstance(change, DeleteSession)}
        if not gone:
            return
        self._all = [entry for entry in self._all if entry.session_id not in gone]
        self._texts = {place: item for place, item in self._texts.items() if item[0].session_id not in gone}
        for session_id in gone:
            self._entries.pop(session_id, None)
            self._tails.forget(session_id)


def _chosen(session: SessionRecord, chosen: SessionFilter) -> bool:
    equal = all(
        wanted is None or wanted == actual
        for wanted, actual in (
            (chosen.agent, session.agent),
            (chosen.cwd, session.cwd),
            (chosen.status, session.status),
            (chosen.archived, session.archived is not None),
        )
    )
    titled = chosen.text is None or chosen.text.casefold() in (session.title or "").casefold()
    return equal and titled and session.deleted is None
