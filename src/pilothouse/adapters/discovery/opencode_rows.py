"""OpenCode's database: its sessions, and one session's messages, read on.

A row is written again when it changes, with the time of it. Rows of the last seconds are always looked at again,
because a time is taken before its row is there; who is given them again notices what is not new. A clock may be set
back: new rows are known by their numbers as well, and the last seconds are those of the row that came last. Versions
differ in their columns: what is not needed may be missing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...model.discovery import DiscoveredSession
from ...model.loose_json import mapping, text
from ...plain_files import Unreadable
from .databases import Columns, State, look_up, state_of
from .opencode_parts import model_of, shown_text, status_of
from .store import Problem, iso, listed

PAGE = 50
"""Messages that are told in a step."""
OVERLAP = 5000
"""Milliseconds of the last look that are looked at again."""
LARGE = 64 * 2**20
"""Bytes of a row beyond which it is not read."""

_LATEST = "select max(time_created) from message where session_id = ?"
_TABLES = ("message", "part")
_NEWEST = [f"select time_updated from {table} where session_id = ? order by rowid desc limit 1" for table in _TABLES]  # noqa: S608
_NUMBERS = [f"select max(rowid) from {table}" for table in _TABLES]  # noqa: S608

Json = dict[str, Any]


class Message(NamedTuple):
    """A message and those of its parts that may be new, in order."""

    id: str
    data: Json
    parts: list[tuple[str, Json]]


def decoded_object(data: Any) -> Json:
    """The object in a column; an empty one when there is none."""
    try:
        return mapping(msgspec.json.decode(data)) if isinstance(data, (str, bytes)) else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


class Rows:
    """The sessions of one database. What has not changed since the last list is not read again."""

    def __init__(self, agent: str, path: Path) -> None:
        self._agent = agent
        self.path = path
        self._state: State | None = None
        self._listed: list[DiscoveredSession] = []
        self._known: dict[str, tuple[Any, DiscoveredSession | None]] = {}
        self._troubles: dict[str, str] = {}

    def sessions(self) -> list[DiscoveredSession]:
        """All of them. Raises Unreadable, and then `last` has those of the last list."""
        now = state_of(self.path)
        if now != self._state:
            self._listed = look_up(self.path, self._list)
            self._state = now
        return self._listed

    @property
    def last(self) -> list[DiscoveredSession]:
        return self._listed

    def has(self, session_id: str) -> bool:
        try:
            return look_up(self.path, lambda db: _found(db, session_id))
        except Unreadable:
            return any(session.id == session_id for session in self._listed)

    def _list(self, db: sqlite3.Connection) -> list[DiscoveredSession]:
        columns = Columns(db, "session")
        columns.require("id", "directory")
        for table in ("message", "part"):
            Columns(db, table).require("id", "session_id", "data")
        wanted = ("id", "directory", "title", "model", "parent_id", "time_archived", "time_created", "time_updated")
        known, self._known = self._known, {}
        self._troubles.clear()
        for row in db.execute(f'select {columns.select(*wanted)} from "session"'):  # noqa: S608
            state = (row, *db.execute(_LATEST, row[:1]).fetchone())
            before = known.get(text(row[0]))
            if before is None or before[0] != state or before[1] is None or before[1].status != "idle":
                before = (state, self._contained(db, row))
            self._known[text(row[0])] = before
        found = (session for _, session in self._known.values() if session is not None)
        return sorted(found, key=lambda session: session.last_activity, reverse=True)

    @property
    def problems(self) -> list[Problem]:
        """Sessions of the last list that were not understood."""
        return [Problem(path=f"{self.path} {name}", message=words) for name, words in self._troubles.items()]

    def _contained(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> DiscoveredSession | None:
        try:
            return self._described(db, row)
        except sqlite3.Error:
            raise
        except Exception as exc:  # a session of a format that nobody foresaw must not hide the others
            self._troubles[text(row[0])] = f"it is not understood: {type(exc).__name__}: {exc}"
            return None

    def _described(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> DiscoveredSession | None:
        session_id, directory, title, model, parent, archived, created, updated = row
        if parent or archived or not session_id:
            return None  # a sub-agent's, or put away
        last = _last(db, text(session_id))
        if last is None:
            return None  # nothing was said in it yet
        message, parts, changed = last
        words = [said for part in parts if (said := shown_text(part))] if message.get("role") == "assistant" else []
        return listed(
            self._agent,
            text(session_id),
            text(directory),
            created_at=iso(_seconds(created)),
            last_activity=iso(max(_seconds(updated or created), changed)),
            name=text(title),
            said=words[-1] if words else "",
            model=model_of(decoded_object(model)) or model_of(message),
            status=status_of(message, parts),
        )


class RowsOf:
    """One session's messages, look by look."""

    def __init__(self, path: Path, session_id: str) -> None:
        self._path = path
        self._session_id = session_id
        self._told: tuple[int, str] = (-1, "")
        self._since: int | None = None
        self._numbers = [0, 0]
        """Of the last rows of both tables that there were."""
        self._state: State | None = None

        self.problems: list[str] = []
        """What could not be read, until somebody takes it."""

    @property
    def path(self) -> Path:
        return self._path

    def news(self) -> tuple[list[Message], bool]:
        """Messages that are new, in order, a page of them, or else those that may have changed; and whether there may
        be more. Raises Unreadable."""
        now = state_of(self._path)
        if now == self._state:
            return [], False
        found, is_all = look_up(self._path, self._look)
        if is_all:
            self._state = now
        return found, not is_all

    def _look(self, db: sqlite3.Connection) -> tuple[list[Message], bool]:
        if self._since is None:
            self._note(db)
        created, message_id = self._told
        rows = db.execute(
            "select id, time_created, data from message where session_id = ? and (time_created, id) > (?, ?)"
            " order by time_created, id limit ?",
            (self._session_id, created, message_id, PAGE),
        ).fetchall()
        if not rows:
            return self._changed(db), True
        found = [Message(text(row[0]), self._object(row[0], row[2]), self._parts(db, row[0])) for row in rows]
        self._told = (rows[-1][1], text(rows[-1][0]))
        return found, False

    def _changed(self, db: sqlite3.Connection) -> list[Message]:
        since = (self._since or 0) - OVERLAP
        messages, latest = self._numbers
        parts: dict[str, list[tuple[str, Json]]] = {}
        query = "select message_id, id, data from part where session_id = ? and (time_updated >= ? or rowid > ?)"
        found = db.execute(f"{query} and length(data) <= {LARGE} order by id", (self._session_id, since, latest))
        for message_id, part_id, data in found:
            parts.setdefault(text(message_id), []).append((text(part_id), self._object(part_id, data)))
        query = "select id from message where session_id = ? and (time_updated >= ? or rowid > ?)"
        changed = db.execute(query, (self._session_id, since, messages))
        names = {text(row[0]) for row in changed} | parts.keys()
        self._note(db)
        return [Message(name, data, parts.get(name, [])) for name, data in self._messages(db, names)]

    def _messages(self, db: sqlite3.Connection, names: Iterable[str]) -> Iterator[tuple[str, Json]]:
        query = "select time_created, id, data from message where id = ?"
        rows = [row for name in names for row in db.execute(query, (name,))]
        for _, name, data in sorted(rows, key=lambda row: (row[0], row[1])):
            yield name, self._object(name, data)

    def _parts(self, db: sqlite3.Connection, message_id: Any) -> list[tuple[str, Json]]:
        return [(text(part_id), self._object(part_id, data)) for part_id, data in _rows_of(db, message_id)]

    def _object(self, row_id: Any, data: Any) -> Json:
        found = decoded_object(data)
        if not found:
            self.problems.append(f"the row {row_id} is no JSON object and is left out")
        return found

    def _note(self, db: sqlite3.Connection) -> None:
        """Remember up to where this look has come."""
        times = [row[0] for query in _NEWEST for row in db.execute(query, (self._session_id,))]
        self._since = min((time for time in times if isinstance(time, int)), default=0)
        self._numbers = [db.execute(query).fetchone()[0] or 0 for query in _NUMBERS]


def _found(db: sqlite3.Connection, session_id: str) -> bool:
    return db.execute("select 1 from session where id = ?", (session_id,)).fetchone() is not None


def _rows_of(db: sqlite3.Connection, message_id: Any) -> list[tuple[Any, Any]]:
    """The parts of a message."""
    query = "select id, data from part where message_id = ? and length(data) <= ? order by id"
    return db.execute(query, (message_id, LARGE)).fetchall()


def _last(db: sqlite3.Connection, session_id: str) -> tuple[Json, list[Json], float] | None:
    """The last message of a session, its parts, and when one of them was written last, in seconds."""
    query = (
        "select id, data, time_updated from message where session_id = ? order by time_created desc, id desc limit 1"
    )
    row = db.execute(query, (session_id,)).fetchone()
    if row is None:
        return None
    parts = [decoded_object(data) for _, data in _rows_of(db, row[0])]
    times = db.execute("select max(time_updated) from part where message_id = ?", row[:1]).fetchone()
    return decoded_object(row[1]), parts, max(_seconds(row[2]), _seconds(times[0]))


def _seconds(milliseconds: Any) -> float:
    return milliseconds / 1000 if isinstance(milliseconds, (int, float)) else 0.0
