"""The sessions of Goose: rows of a SQLite database, and their messages, one row each, as updates.

A message is recognised by its own id if it has one, because its row may get another number. Messages are written when
they are complete, except the last one. A compaction writes them all again under new numbers, so importing is
idempotent: only new text is added, and calls are recognised by their id.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ...model.discovery import DiscoveredSession, DiscoveredStatus
from ...model.loose_json import count, items, mapping, text
from ...model.tools import canonical_name
from ...plain_files import Unreadable
from .calls import Calls, Growing, blocks_text, diff, notice, plan, said, text_content, thought
from .databases import Columns, MessageReader, State, Unready, is_begun, look_up, state_of
from .store import Problem, Reader, Scan, Store, Update, iso, listed

_UNTOLD = "The turn ended before the record told how the tool call ended."

Json = dict[str, Any]


class Conversation:
    """What was told of one session."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._names: dict[str, str] = {}
        self._texts = Growing()
        self.status: DiscoveredStatus = "idle"

    def take(self, message_id: str, role: str, blocks: list[Json]) -> Iterator[Update]:
        """A message, new, longer, or the same again."""
        if blocks:
            self.status = status_after(role, blocks)
        is_new = message_id not in self._texts
        self._texts.know(message_id)
        for number, block in enumerate(blocks):
            kind = text(block.get("type"))
            if kind == "text":
                key = message_id if number == 0 else f"{message_id}#{number}"
                yield from self._said(
                    "agent" if role == "assistant" else "user", message_id, key, text(block.get("text"))
                )
            elif kind in _BLOCKS and (is_new or kind in ("toolRequest", "toolResponse")):
                yield from _BLOCKS[kind](self, message_id, block)

    def _said(self, who: str, message_id: str, key: str, words: str) -> Iterator[Update]:
        rest, _ = self._texts.more(key, words)
        if rest:
            yield from self._calls.close(_UNTOLD) if who == "user" else ()
            yield said(who, rest, message_id)

    def _thought(self, message_id: str, block: Json) -> Iterator[Update]:
        words = text(block.get("thinking")) or text(block.get("text"))
        if words:
            yield thought(words, message_id)

    def _image(self, message_id: str, block: Json) -> Iterator[Update]:
        data, kind = text(block.get("data")), text(block.get("mimeType"))
        if data and kind:
            yield said("user", {"type": "image", "data": data, "mimeType": kind}, message_id)

    def _notice(self, message_id: str, block: Json) -> Iterator[Update]:
        words = text(block.get("msg"))
        if words:
            yield notice("info", words)

    def _request(self, message_id: str, block: Json) -> Iterator[Update]:
        call_id, told = text(block.get("id")), mapping(block.get("toolCall"))
        if not call_id or self._calls.is_known(call_id):
            return
        value = mapping(told.get("value"))
        name, given = text(value.get("name")) or "tool", mapping(value.get("arguments"))
        todos = plan(given) if canonical_name(name) == "TodoWrite" else None
        yield from [todos] if todos is not None else []
        changes = _changes(name, given)
        self._names[call_id] = name
        yield from self._calls.begin(call_id, name, given, **({"content": changes} if changes else {}))
        if told.get("status") == "error":
            yield from self._calls.end(call_id, name, failed=True, content=text_content(text(told.get("error"))))

    def _response(self, message_id: str, block: Json) -> Iterator[Update]:
        call_id, result = text(block.get("id")), mapping(block.get("toolResult"))
        value = mapping(result.get("value"))
        failed = result.get("status") == "error" or value.get("isError") is True
        words = blocks_text(items(value.get("content")) or items(result.get("value"))) or text(result.get("error"))
        name = self._names.pop(call_id, "")
        # a change stays shown as it was announced
        shown = text_content(words) if failed or canonical_name(name) not in ("Write", "Edit") else None
        raw = mapping(value.get("structuredContent"))
        yield from self._calls.end(call_id, name, failed=failed, content=shown, rawOutput=raw)


_BLOCKS: dict[str, Callable[[Conversation, str, Json], Iterator[Update]]] = {
    "thinking": Conversation._thought,
    "reasoning": Conversation._thought,
    "image": Conversation._image,
    "toolRequest": Conversation._request,
    "frontendToolRequest": Conversation._request,
    "toolResponse": Conversation._response,
    "systemNotification": Conversation._notice,
}


def _changes(name: str, given: Json) -> list[Json]:
    path, tool = text(given.get("path")), canonical_name(name)
    if tool == "Write" and path and isinstance(given.get("content"), str):
        return [diff(path, None, given["content"])]
    old, new = given.get("before"), given.get("after")
    is_edit = tool == "Edit" and path and isinstance(old, str) and isinstance(new, str)
    return [diff(path, text(old), text(new))] if is_edit else []


def status_after(role: str, blocks: list[Json]) -> DiscoveredStatus:
    """What the agent does after a message."""
    kinds = {text(block.get("type")) for block in blocks}
    if kinds & {"toolConfirmationRequest", "actionRequired"}:
        return "waiting"
    return "idle" if role == "assistant" and not kinds & {"toolRequest", "frontendToolRequest"} else "running"


def decoded_value(data: Any) -> Any:
    try:
        return msgspec.json.decode(data) if isinstance(data, (str, bytes)) else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def blocks_of(data: Any) -> list[Json]:
    return [block for block in items(decoded_value(data)) if isinstance(block, dict)]


PAGE = 200
LISTED = ("user", "acp")
"""The kinds of sessions that are a user's own; the others are of sub-agents, recipes and schedules."""


class GooseStore(Store):
    """`data` is Goose's directory for data: `goose` in `XDG_DATA_HOME`, or in `.local/share`."""

    agent = "goose"

    def __init__(self, data: Path | None = None, environ: Mapping[str, str] = os.environ) -> None:
        root, known = environ.get("GOOSE_PATH_ROOT"), environ.get("XDG_DATA_HOME")
        shared = Path(known) if known else Path(environ.get("HOME") or Path.home()) / ".local" / "share"
        self._data = data or (Path(root) / "data" if root else shared / "goose")
        self._path = self._data / "sessions" / "sessions.db"
        self._state: State | None = None
        self._known: dict[str, tuple[Any, DiscoveredSession | None]] = {}
        self._listed: list[DiscoveredSession] = []
        self._lock = threading.Lock()

    @property
    def places(self) -> Sequence[Path]:
        return [self._data / "sessions"]

    @property
    def programs(self) -> Collection[str]:
        return ("goose", "goosed")

    def scan(self) -> Scan:
        with self._lock:
            now = state_of(self._path)
            if now == self._state or now.file is None:
                return Scan(sessions=self._listed if now.file is not None else [])
            try:
                self._listed = look_up(self._path, self._list)
            except Unreadable as exc:
                if isinstance(exc, Unready) and not is_begun(self._path):
                    return Scan()
                return Scan(sessions=self._listed, problems=[Problem(path=str(self._path), message=str(exc))])
            self._state = now
            return Scan(sessions=self._listed)

    def reader(self, session_id: str) -> Reader | None:
        return GooseReader(self._path, session_id) if self._has(session_id) else None

    def touched(self, path: Path) -> str | None:
        """The database is one for all sessions."""
        return None

    def files(self, session_id: str) -> Sequence[Path]:
        if not self._has(session_id):
            return []
        return [self._path, *(self._path.with_name(f"{self._path.name}-{kind}") for kind in ("wal", "shm"))]

    def _has(self, session_id: str) -> bool:
        query = "select 1 from sessions where id = ?"
        try:
            return look_up(self._path, lambda db: db.execute(query, (session_id,)).fetchone()) is not None
        except Unreadable:
            return any(session.id == session_id for session in self._listed)
        except UnicodeError:  # no id of anything that is stored
            return False

    def _list(self, db: sqlite3.Connection) -> list[DiscoveredSession]:
        columns = Columns(db, "sessions")
        columns.require("id", "working_dir")
        Columns(db, "messages").require("id", "session_id", "role", "content_json")
        wanted = ("id", "working_dir", "name", "description", "session_type", "archived_at", "created_at", "updated_at",
                  "model_config_json")  # fmt: skip
        known, self._known = self._known, {}
        for row in db.execute(f"select {columns.select(*wanted)} from sessions"):  # noqa: S608
            last = db.execute("select max(id) from messages where session_id = ?", (row[0],)).fetchone()[0]
            before = known.get(text(row[0]))
            if before is None or before[0] != (row, last):
                before = ((row, last), self._described(db, row))
            self._known[text(row[0])] = before
        found = (session for _, session in self._known.values() if session is not None)
        return sorted(found, key=lambda session: session.last_activity, reverse=True)

    def _described(self, db: sqlite3.Connection, row: tuple[Any, ...]) -> DiscoveredSession | None:
        session_id, cwd, name, description, kind, archived, created, updated, model = row
        if archived or kind not in (None, *LISTED):
            return None
        query = "select role, content_json from messages where session_id = ? order by id desc limit 20"
        messages = [(text(role), blocks_of(content)) for role, content in db.execute(query, (session_id,))]
        if not messages:
            return None
        answers = (blocks_text(blocks) for role, blocks in messages if role == "assistant")
        return listed(
            self.agent,
            text(session_id),
            text(cwd),
            created_at=_time(created),
            last_activity=_time(updated or created),
            name=text(name) or text(description),
            said=next((words for words in answers if words), ""),
            model=text(mapping(decoded_value(model)).get("model_name")),
            status=status_after(*messages[0]),
        )


class GooseReader(MessageReader):
    """One session's messages."""

    def __init__(self, path: Path, session_id: str) -> None:
        super().__init__(path)
        self._session_id = session_id
        self._conversation = Conversation()
        self._last = 0
        self._state: State | None = None

    @property
    def _status(self) -> DiscoveredStatus | None:
        return self._conversation.status

    def _look(self) -> bool:
        now = state_of(self._path)
        if now == self._state:
            return False
        rows = look_up(self._path, self._rows)
        for row_id, message_id, role, content, metadata in rows:
            blocks = blocks_of(content)
            if not blocks:
                self._tell(f"the message {row_id} has no content that can be read")
            is_shown = mapping(decoded_value(metadata)).get("userVisible") is not False
            message = text(message_id) or str(row_id), text(role), blocks if is_shown else []
            self._take(row_id, partial(self._conversation.take, *message))
        is_more = len(rows) == PAGE
        self._last = rows[-1][0] if rows else self._last
        self._state = None if is_more else now
        return is_more

    def _rows(self, db: sqlite3.Connection) -> list[tuple[Any, ...]]:
        columns = Columns(db, "messages")
        columns.require("id", "session_id", "role", "content_json")
        wanted = columns.select("id", "message_id", "role", "content_json", "metadata_json")
        query = f"select {wanted} from messages where session_id = ? and id >= ? order by id limit ?"  # noqa: S608
        return db.execute(query, (self._session_id, self._last, PAGE)).fetchall()


def _time(value: Any) -> str:
    """A time that is text in UTC, or seconds."""
    seconds = count(value)
    if seconds is not None:
        return iso(seconds)
    try:
        moment = datetime.fromisoformat(text(value))
    except ValueError:
        return iso(0)
    return iso((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
