"""Goose: a recording of the real program's database, and messages that come one by one."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.discovery.goose import Conversation, GooseStore, status_after
from pilothouse.adapters.discovery.store import Problem, Update
from tests.unit.adapters.discovery.recordings import (
    GOLDEN,
    database,
    ends,
    is_sound,
    is_valid,
    put,
    read_all,
    rows_of,
    told,
)

ID = "20261116_1"
TABLES, ROWS = rows_of("goose/sessions.rows.jsonl")
WHOLE = [json.loads(line) for line in (GOLDEN / "goose/updates.jsonl").read_text().splitlines()]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """The recorded database, which its program has open."""
    tables = [sql for sql in TABLES if "sqlite_sequence" not in sql]
    db = database(tmp_path / "sessions" / "sessions.db", tables, ROWS)
    yield db
    db.close()


def message(number: int, role: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    row = {
        "id": number,
        "session_id": ID,
        "role": role,
        "content_json": json.dumps(blocks),
        "created_timestamp": number,
    }
    return {**row, "message_id": f"m{number}", **more}


def test_a_recorded_session_is_listed_with_what_it_is_about(live: sqlite3.Connection, tmp_path: Path) -> None:
    scan = GooseStore(tmp_path).scan()
    assert list(scan.problems) == []
    (found,) = scan.sessions
    assert (found.id, found.agent, found.project_path) == (ID, "goose", "/work/project")
    assert (found.session_name, found.last_message, found.model) == ("A short title", "Second answer", "fake-model")
    assert (found.created_at, found.last_activity) == ("2026-11-16T11:53:06.000Z", "2026-11-16T11:53:25.000Z")
    assert found.status == "idle"


def test_a_recorded_session_is_told_as_the_live_agent_would(live: sqlite3.Connection, tmp_path: Path) -> None:
    reader = GooseStore(tmp_path).reader(ID)
    assert reader is not None
    updates = read_all(reader)
    is_sound(updates)
    assert updates == WHOLE
    assert told(updates, "agent_message_chunk").splitlines() == [
        "Hello from the lab, ä 漢 🛳", "Reading.", "Writing.", "All done.", "After rejection.",
        "A long text that is cut in the middle of it all.", "Second answer",
    ]  # fmt: skip
    assert ends(updates) == [
        ("shell", "completed"), ("write", "completed"), ("edit", "completed"), ("shell", "failed"),
        ("shell", "completed"), ("shell", "failed"), ("todo__todo_write", "completed"), ("shell", "failed"),
    ]  # fmt: skip
    assert (read_all(reader), reader.read().status) == ([], "idle")
    reader.close()


def test_messages_that_come_one_by_one_are_told_once_each(live: sqlite3.Connection, tmp_path: Path) -> None:
    live.execute("delete from messages")
    reader = GooseStore(tmp_path).reader(ID)
    assert reader is not None
    updates: list[Update] = []
    for table, row in ROWS:
        if table == "messages":
            put(live, table, row)
            updates += read_all(reader)
    assert updates == WHOLE


def test_messages_that_are_written_again_under_new_numbers_are_not_told_again(
    live: sqlite3.Connection, tmp_path: Path
) -> None:
    reader = GooseStore(tmp_path).reader(ID)
    assert reader is not None
    assert read_all(reader) == WHOLE
    live.execute("update messages set id = id + 1000")
    assert read_all(reader) == []
    put(live, "messages", message(3000, "assistant", {"type": "text", "text": "New"}))
    assert told(read_all(reader), "agent_message_chunk") == "New"


def test_a_message_that_grows_yields_the_rest(live: sqlite3.Connection, tmp_path: Path) -> None:
    reader = GooseStore(tmp_path).reader(ID)
    assert reader is not None
    assert read_all(reader) == WHOLE
    pieces = []
    for end in range(1, 6):
        put(live, "messages", message(500, "assistant", {"type": "text", "text": "Hello"[:end]}))
        pieces += [update["content"]["text"] for update in read_all(reader)]
    assert pieces == list("Hello")


def test_blocks_of_every_kind_are_told() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm", "signature": ""},
        {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compacted"},
        {"type": "toolRequest", "id": "c", "toolCall": {"status": "error", "error": "no such tool"}},
        {"type": "nobody knows"},
    ]
    picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    conversation = Conversation()
    updates = [*conversation.take("1", "user", [picture]), *conversation.take("2", "assistant", blocks)]
    is_sound(updates)
    assert [update["sessionUpdate"] for update in updates] == [
        "user_message_chunk", "agent_thought_chunk", "notice", "tool_call", "tool_call_update",
    ]  # fmt: skip
    assert [*conversation.take("2", "assistant", blocks)] == []


def test_a_call_that_was_left_open_ends_with_the_next_prompt() -> None:
    conversation = Conversation()
    request = {
        "type": "toolRequest",
        "id": "c",
        "toolCall": {"value": {"name": "shell", "arguments": {"command": "x"}}},
    }
    updates = [*conversation.take("1", "assistant", [request])]
    assert conversation.status == "running"
    updates += conversation.take("2", "user", [{"type": "text", "text": "?"}])
    is_sound(updates)
    assert ends(updates) == [("shell", "failed")]


def test_the_status_is_read_from_the_last_message() -> None:
    assert status_after("user", [{"type": "text"}]) == "running"
    assert status_after("assistant", [{"type": "text"}]) == "idle"
    assert status_after("assistant", [{"type": "text"}, {"type": "toolRequest"}]) == "running"
    assert status_after("assistant", [{"type": "toolConfirmationRequest"}]) == "waiting"


def test_what_is_not_a_users_own_is_left_out(live: sqlite3.Connection, tmp_path: Path) -> None:
    hidden = json.dumps({"userVisible": False, "agentVisible": True})
    put(live, "messages", message(900, "user", {"type": "text", "text": "For the model"}, metadata_json=hidden))
    session = next(row for table, row in ROWS if table == "sessions")
    for number, more in enumerate(({"session_type": "sub_agent"}, {"archived_at": "2026-11-16 12:00:00"}, {})):
        put(live, "sessions", {**session, **more, "id": f"other_{number}"})
    store = GooseStore(tmp_path)
    assert [found.id for found in store.scan().sessions] == [ID]
    reader = store.reader(ID)
    assert reader is not None
    assert read_all(reader) == WHOLE


def test_a_row_that_is_no_json_is_told_once_and_the_rest_is_told(live: sqlite3.Connection, tmp_path: Path) -> None:
    live.execute("update messages set content_json = '{' where id = 2")
    reader = GooseStore(tmp_path).reader(ID)
    assert reader is not None
    problems: list[Problem] = []
    assert len(read_all(reader, problems)) == len(WHOLE) - 1
    assert [problem.message for problem in problems] == ["the message 2 has no content that can be read"]


@pytest.mark.parametrize("odd", [None, 7, "x", [], [1], {"a": 1}, True])
def test_values_of_any_kind_in_known_fields_are_survived(odd: Any) -> None:
    kinds = ("text", "thinking", "image", "toolRequest", "toolResponse", "systemNotification", odd)
    keys = ("id", "text", "thinking", "data", "mimeType", "msg", "toolCall", "toolResult")
    blocks = [{"type": kind, **dict.fromkeys(keys, odd)} for kind in kinds]
    blocks.append({"type": "toolRequest", "id": "c", "toolCall": {"value": {"name": odd, "arguments": odd}}})
    blocks.append(
        {"type": "toolResponse", "id": "c", "toolResult": {"value": {"content": odd, "structuredContent": odd}}}
    )
    is_valid([*Conversation().take("m", "assistant", blocks)])


def test_a_list_that_did_not_change_is_not_read_again(live: sqlite3.Connection, tmp_path: Path) -> None:
    store = GooseStore(tmp_path)
    path = store.files(ID)[0]
    for place in (path, Path(f"{path}-wal")):
        os.utime(place, (1, 1))
    listed = store.scan().sessions
    assert store.scan().sessions is listed
    put(live, "messages", message(500, "user", {"type": "text", "text": "More"}))
    assert [found.status for found in store.scan().sessions] == ["running"]


def test_an_id_that_no_database_can_have_is_that_of_no_session(live: sqlite3.Connection, tmp_path: Path) -> None:
    store = GooseStore(tmp_path)
    for session_id in ("\ud800", "\0", "' or 1=1 --", "../../etc/passwd", "a" * 100_000):
        assert (store.reader(session_id), store.files(session_id)) == (None, [])


def test_what_is_no_database_is_a_problem_and_none_is_no_problem(tmp_path: Path) -> None:
    store = GooseStore(tmp_path)
    assert (list(store.scan().sessions), list(store.scan().problems)) == ([], [])
    path = tmp_path / "sessions" / "sessions.db"
    path.parent.mkdir()
    path.write_bytes(b"junk" * 100)
    assert [(problem.path, problem.message) for problem in store.scan().problems] == [
        (str(path), "it is no SQLite database")
    ]
    assert store.reader(ID) is None
    assert store.files(ID) == []
    assert store.touched(path) is None


def test_the_place_is_where_the_environment_says() -> None:
    assert GooseStore(environ={"GOOSE_PATH_ROOT": "/g"}).places == [Path("/g/data/sessions")]
    assert GooseStore(environ={"XDG_DATA_HOME": "/d"}).places == [Path("/d/goose/sessions")]
    assert GooseStore(environ={"HOME": "/x"}).places == [Path("/x/.local/share/goose/sessions")]
