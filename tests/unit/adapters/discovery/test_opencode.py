"""OpenCode: a recording of the real program's database, parts that grow, and the older files."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.discovery import opencode_files, opencode_rows
from pilothouse.adapters.discovery.opencode import Catalogue, OpenCodeStore
from pilothouse.adapters.discovery.opencode_parts import Conversation, status_of
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

ID = "ses_e1bccf051ffe4Bud8RfjMRJz4l"
TABLES, ROWS = rows_of("opencode/opencode.rows.jsonl")
WHOLE = [json.loads(line) for line in (GOLDEN / "opencode/updates.jsonl").read_text().splitlines()]
Parts = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """The recorded database, which its program has open."""
    db = database(tmp_path / "opencode.db", TABLES, ROWS)
    yield db
    db.close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    db = database(tmp_path / "opencode.db", TABLES)
    yield db
    db.close()


def session(db: sqlite3.Connection, name: str = ID, **more: Any) -> None:
    row = {"id": name, "project_id": "p", "slug": "s", "directory": "/x", "title": "T", "version": "1"}
    put(db, "session", {**row, "time_created": 1000, "time_updated": 2000, **more})


def message(db: sqlite3.Connection, name: str, at: int, of: str = ID, **data: Any) -> None:
    row = {"id": name, "session_id": of, "time_created": at, "time_updated": at}
    put(db, "message", {**row, "data": json.dumps({"time": {"created": at}, **data})})


def part(db: sqlite3.Connection, name: str, of: str, at: int, **data: Any) -> None:
    row = {"id": name, "message_id": of, "session_id": ID, "time_created": at, "time_updated": at}
    put(db, "part", {**row, "data": json.dumps(data)})


def test_a_recorded_session_is_listed_and_its_sub_agent_is_not(live: sqlite3.Connection, tmp_path: Path) -> None:
    scan = OpenCodeStore(tmp_path).scan()
    assert scan.problems == []
    (found,) = scan.sessions
    assert (found.id, found.agent, found.project_path) == (ID, "opencode", "/work/project")
    assert (found.session_name, found.last_message, found.model) == ("A short title", "Second answer", "lab/large")
    assert (found.created_at, found.last_activity) == ("2026-11-16T11:51:54.030Z", "2026-11-16T11:52:18.867Z")
    assert found.status == "idle"


def test_a_recorded_session_is_told_as_the_live_agent_would(live: sqlite3.Connection, tmp_path: Path) -> None:
    reader = OpenCodeStore(tmp_path).reader(ID)
    assert reader is not None
    updates = read_all(reader)
    is_sound(updates)
    assert updates == WHOLE
    assert told(updates, "agent_message_chunk").splitlines() == [
        "Hello from the lab, ä 漢 🛳", "Reading.", "Writing.", "All done.", "Will run.",
        "A long text that is cut in the middle of it all. A long text that is cut", "Second answer",
    ]  # fmt: skip
    assert ends(updates) == [
        ("read", "completed"), ("write", "completed"), ("edit", "completed"), ("bash", "completed"),
        ("bash", "completed"), ("read", "failed"), ("todowrite", "completed"), ("task", "completed"),
        ("glob", "failed"), ("grep", "failed"), ("invalid", "completed"), ("bash", "failed"), ("bash", "completed"),
    ]  # fmt: skip
    assert (reader.read().updates, reader.read().status) == ([], "idle")
    reader.close()


def test_rows_that_come_one_by_one_are_told_once_each(empty: sqlite3.Connection, tmp_path: Path) -> None:
    order = {"session": 0, "message": 1, "part": 2}
    for table, row in ROWS:
        if table == "session":
            put(empty, table, row)
    reader = OpenCodeStore(tmp_path).reader(ID)
    assert reader is not None
    rows = [(table, row) for table, row in ROWS if table != "session"]
    rows.sort(key=lambda each: (each[1].get("message_id", each[1]["id"]), order[each[0]], each[1]["id"]))
    updates: list[Update] = []
    for table, row in rows:
        put(empty, table, row)
        updates += read_all(reader)
    assert updates == WHOLE


def test_rows_of_a_clock_that_was_set_back_are_told(empty: sqlite3.Connection, tmp_path: Path) -> None:
    session(empty)
    message(empty, "msg_1", 900_000, role="user")
    part(empty, "prt_1", "msg_1", 900_000, type="text", text="Before")
    reader = OpenCodeStore(tmp_path).reader(ID)
    assert reader is not None
    assert len(read_all(reader)) == 1
    message(empty, "msg_2", 600_000, role="assistant")
    part(empty, "prt_2", "msg_2", 600_000, type="text", text="An hour")
    (update,) = read_all(reader)
    assert update["content"]["text"] == "An hour"
    grown = json.dumps({"type": "text", "text": "An hour earlier"})
    empty.execute("update part set data = ?, time_updated = 601000 where id = 'prt_2'", [grown])
    (update,) = read_all(reader)
    assert update["content"]["text"] == " earlier"
    assert read_all(reader) == []


def test_a_text_that_grows_yields_the_rest(empty: sqlite3.Connection, tmp_path: Path) -> None:
    session(empty)
    message(empty, "msg_1", 1000, role="assistant")
    reader = OpenCodeStore(tmp_path).reader(ID)
    assert reader is not None
    words = "Ein Text, der wächst 🛳"
    pieces = []
    for end in range(len(words) + 1):
        part(empty, "prt_1", "msg_1", 1000 + end, type="text", text=words[:end])
        pieces += [update["content"]["text"] for update in read_all(reader)]
    assert pieces == list(words)
    part(empty, "prt_1", "msg_1", 9000, type="text", text=words)
    assert read_all(reader) == []


def test_a_text_that_loses_white_space_at_its_end_is_not_told_again() -> None:
    conversation, data = Conversation(), {"role": "assistant"}
    assert len([*conversation.take("m", data, [("p", {"type": "text", "text": "Hi  \n"})])]) == 1
    assert [*conversation.take("m", data, [("p", {"type": "text", "text": "Hi"})])] == []


def test_a_text_that_became_another_is_told_as_its_own_message() -> None:
    conversation, data = Conversation(), {"role": "assistant"}
    assert len([*conversation.take("m", data, [("p", {"type": "text", "text": "Draft"})])]) == 1
    (update,) = conversation.take("m", data, [("p", {"type": "text", "text": "The final words"})])
    assert (update["messageId"], update["content"]["text"]) == ("p", "The final words")


def test_a_tool_is_told_from_its_beginning_to_its_end(empty: sqlite3.Connection, tmp_path: Path) -> None:
    session(empty)
    message(empty, "msg_1", 1000, role="assistant")
    reader = OpenCodeStore(tmp_path).reader(ID)
    assert reader is not None
    given = {"command": "make"}
    states: list[dict[str, Any]] = [
        {"status": "pending", "input": {}},
        {"status": "running", "input": given},
        {"status": "running", "input": given, "metadata": {"output": ""}},
        {"status": "running", "input": given, "metadata": {"output": "a\n"}},
        {"status": "running", "input": given, "metadata": {"output": "a\nb\n"}},
        {"status": "completed", "input": given, "output": "a\nb\n", "metadata": {"exit": 0}, "title": "make"},
    ]
    updates: list[Update] = []
    seen = []
    for at, state in enumerate(states):
        part(empty, "prt_1", "msg_1", 1001 + at, type="tool", tool="bash", callID="c", state=state)
        step = reader.read()
        updates += step.updates
        seen.append(step.status)
    assert seen[:4] == ["running", "waiting", "running", "running"]
    is_sound(updates)
    kinds = [(update["sessionUpdate"], update.get("status")) for update in updates]
    assert kinds == [
        ("tool_call", "pending"), ("tool_call_update", "in_progress"), ("tool_call_update", None),
        ("tool_call_update", None), ("tool_call_update", "completed"),
    ]  # fmt: skip
    assert updates[1]["rawInput"] == given
    assert [update["content"][0]["content"]["text"] for update in updates[2:]] == ["a\n", "a\nb\n", "a\nb\n"]


def test_parts_of_the_user_are_told_and_what_was_put_in_is_not() -> None:
    parts: Parts = [
        ("1", {"type": "text", "text": "Look"}),
        ("2", {"type": "text", "text": "Called the Read tool", "synthetic": True}),
        ("3", {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}),
        ("4", {"type": "file", "mime": "text/plain", "filename": "a.txt", "url": "file:///x/a.txt"}),
        ("5", {"type": "subtask", "prompt": "Help"}),
        ("6", {"type": "unknown"}),
    ]
    updates = [*Conversation().take("m", {"role": "user"}, parts)]
    is_sound(updates)
    assert [update["content"]["type"] for update in updates] == ["text", "image", "resource_link", "text"]


def test_thinking_retries_and_compactions_are_told_once() -> None:
    parts: Parts = [
        ("1", {"type": "reasoning", "text": "Hm"}),
        ("2", {"type": "retry", "attempt": 1, "error": {"name": "APIError", "data": {"message": "busy"}}}),
        ("3", {"type": "compaction"}),
    ]
    conversation = Conversation()
    updates = [*conversation.take("m", {"role": "assistant"}, parts)]
    is_sound(updates)
    kinds = ["agent_thought_chunk", "notice", "compaction_update"]
    assert [update["sessionUpdate"] for update in updates] == kinds
    assert [*conversation.take("m", {"role": "assistant"}, parts)] == []


def test_calls_that_were_left_open_end_with_the_next_answer() -> None:
    conversation = Conversation()
    running: Parts = [
        ("1", {"type": "tool", "tool": "bash", "callID": "c", "state": {"status": "running", "input": {}}})
    ]
    updates = [*conversation.take("m1", {"role": "assistant", "time": {"created": 1}}, running)]
    updates += conversation.take("m2", {"role": "user", "time": {"created": 2}}, [("2", {"type": "text", "text": "?"})])
    assert ends(updates) == []
    updates += conversation.take("m3", {"role": "assistant", "time": {"created": 3}}, [])
    is_sound(updates)
    assert ends(updates) == [("bash", "failed")]


def test_how_full_the_model_is_and_the_cost_are_told_where_it_is_known(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"lab": {"models": {"large": {"limit": {"context": 1000, "output": 10}}}}}))
    catalogue = Catalogue(path)
    assert [catalogue.window(model) for model in ("lab/large", "lab/none", "none/large", "")] == [1000, 0, 0, 0]
    data = {"role": "assistant", "providerID": "lab", "modelID": "large"}
    step = {"type": "step-finish", "tokens": {"input": 10, "cache": {"read": 5, "write": 1}}, "cost": 0.25}
    conversation = Conversation(catalogue.window)
    updates = [update for name in ("1", "2", "2") for update in conversation.take("m", data, [(name, step)])]
    told_of = {"sessionUpdate": "usage_update", "used": 16, "size": 1000}
    assert updates == [{**told_of, "cost": {"amount": cost, "currency": "USD"}} for cost in (0.25, 0.5)]
    path.write_text("{")
    assert Catalogue(path).window("lab/large") == 0


def test_the_status_is_read_from_the_last_message() -> None:
    begun, done = {"role": "assistant", "time": {"created": 1}}, {"role": "assistant", "time": {"completed": 2}}
    refused = {"type": "tool", "tool": "bash", "state": {"status": "error", "error": "The user rejected permission to"}}
    asked = {"type": "tool", "tool": "question", "state": {"status": "running", "input": {}}}
    assert status_of({"role": "user"}, []) == "running"
    assert status_of(begun, []) == "running"
    assert status_of(begun, [asked]) == "waiting"
    assert status_of({**done, "finish": "stop"}, []) == "idle"
    assert status_of({**done, "finish": "tool-calls"}, []) == "running"
    assert status_of({**done, "finish": "tool-calls"}, [refused]) == "idle"
    assert status_of({**begun, "error": {"name": "MessageAbortedError"}}, []) == "idle"


@pytest.mark.parametrize("odd", [None, 7, "x", [], [1], {"a": 1}, True])
def test_values_of_any_kind_in_known_fields_are_survived(odd: Any) -> None:
    keys = (
        "text",
        "tool",
        "callID",
        "state",
        "tokens",
        "cost",
        "error",
        "url",
        "mime",
        "filename",
        "prompt",
        "synthetic",
    )
    state = dict.fromkeys(("status", "input", "output", "error", "metadata", "title", "time"), odd)
    kinds = ("text", "reasoning", "tool", "step-finish", "file", "subtask", "retry", "compaction", odd)
    for role in ("user", "assistant", odd):
        conversation = Conversation(lambda model: 100)
        parts: Parts = [(str(number), {"type": kind, **dict.fromkeys(keys, odd)}) for number, kind in enumerate(kinds)]
        parts += [
            (tool, {"type": "tool", "tool": tool, "callID": tool, "state": state}) for tool in ("write", "edit", "x")
        ]
        is_valid([*conversation.take("m", {"role": role, "time": odd, "error": odd, "model": odd}, parts)])
        assert conversation.status in ("running", "waiting", "idle")


def test_sessions_that_did_not_change_are_not_looked_into_again(
    empty: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty.execute("begin")
    for number in range(300):
        session(empty, f"ses_{number}")
        message(empty, f"msg_{number}", 1000, f"ses_{number}", role="assistant", finish="stop", error={})
        put(empty, "message", {"id": f"msg_{number}", "session_id": f"ses_{number}", "time_created": 1,
                               "time_updated": 1, "data": '{"role":"assistant","time":{"completed":1}}'})  # fmt: skip
    empty.execute("commit")
    looked: list[str] = []
    last = opencode_rows._last
    monkeypatch.setattr(opencode_rows, "_last", lambda db, name: looked.append(name) or last(db, name))
    store = OpenCodeStore(tmp_path)
    assert len(store.scan().sessions) == 300
    assert len(looked) == 300
    empty.execute("update session set time_updated = 9000 where id = 'ses_7'")
    assert store.scan().sessions[0].id == "ses_7"
    assert looked[300:] == ["ses_7"]
    for kind in ("", "-wal"):
        os.utime(tmp_path / f"opencode.db{kind}", (1, 1))
    assert len(store.scan().sessions) == 300
    monkeypatch.setattr(opencode_rows, "look_up", None)
    assert len(store.scan().sessions) == 300  # the database was not even opened


def test_a_part_that_changes_is_activity_of_its_session(empty: sqlite3.Connection, tmp_path: Path) -> None:
    session(empty)
    message(empty, "msg_1", 1000, role="assistant")
    store = OpenCodeStore(tmp_path)
    times = []
    for at in (3000, 4000):
        part(empty, "prt_1", "msg_1", at, type="text", text="x")
        times += [found.last_activity for found in store.scan().sessions]
    assert times == ["1970-01-01T00:00:03.000Z", "1970-01-01T00:00:04.000Z"]


def test_a_first_message_lists_a_session_that_had_none(empty: sqlite3.Connection, tmp_path: Path) -> None:
    session(empty)
    store = OpenCodeStore(tmp_path)
    assert store.scan().sessions == []
    message(empty, "msg_1", 1000, role="assistant", finish="stop")
    assert [found.status for found in store.scan().sessions] == ["running"]
    message(empty, "msg_1", 1000, role="assistant", finish="stop", error={"name": "x"})
    assert [found.status for found in store.scan().sessions] == ["idle"]
    message(empty, "msg_2", 2000, role="user")
    assert [found.status for found in store.scan().sessions] == ["running"]


def test_a_long_session_is_told_in_steps_of_bounded_size(empty: sqlite3.Connection, tmp_path: Path) -> None:
    session(empty)
    empty.execute("begin")
    for number in range(180):
        message(empty, f"msg_{number:03}", 1000 + number, role="user")
        if number not in range(10, 130):  # what has no updates must not look like the end
            part(empty, f"prt_{number:03}", f"msg_{number:03}", 1000, type="text", text=str(number))
    empty.execute("commit")
    reader = OpenCodeStore(tmp_path).reader(ID)
    assert reader is not None
    assert 0 < len(reader.read().updates) <= 50
    assert [update["content"]["text"] for update in read_all(reader)] == [str(number) for number in range(130, 180)]


def test_rows_that_are_no_json_are_told_once_and_the_rest_is_told(live: sqlite3.Connection, tmp_path: Path) -> None:
    part(live, "prt_zzz", "msg_1e4336cf4001O0OYDaTpB5lj3x", 1)
    live.execute("update part set data = x'00ff7b' where id = 'prt_zzz'")
    reader = OpenCodeStore(tmp_path).reader(ID)
    assert reader is not None
    problems: list[Problem] = []
    assert read_all(reader, problems) == WHOLE
    assert [(problem.path, "prt_zzz" in problem.message) for problem in problems] == [
        (str(tmp_path / "opencode.db"), True)
    ]


# -- files --------------------------------------------------------------------------------------------------------


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """The recorded session in the older storage."""
    root = tmp_path / "storage"
    for table, row in ROWS:
        data = json.loads(row.get("data", "{}"))
        if table == "session":
            time = {"created": row["time_created"], "updated": row["time_updated"]}
            parent = {"parentID": row["parent_id"]} if "parent_id" in row else {}
            told_of = {"id": row["id"], "directory": row["directory"], "title": row["title"], "time": time, **parent}
            place = root / "session" / "project" / f"{row['id']}.json"
        elif table == "message":
            place, told_of = root / "message" / row["session_id"] / f"{row['id']}.json", data
        else:
            place, told_of = root / "part" / row["message_id"] / f"{row['id']}.json", data
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(told_of))
    return root


def test_the_older_storage_tells_the_same(storage: Path) -> None:
    store = OpenCodeStore(storage.parent)
    scan = store.scan()
    assert scan.problems == []
    (found,) = scan.sessions
    assert (found.id, found.session_name, found.last_message) == (ID, "A short title", "Second answer")
    assert (found.model, found.status, found.project_path) == ("lab/large", "idle", "/work/project")
    reader = store.reader(ID)
    assert reader is not None
    updates = read_all(reader)
    is_sound(updates)
    assert updates == WHOLE
    assert read_all(reader) == []


def test_a_file_that_is_written_again_yields_what_is_new(storage: Path) -> None:
    reader = OpenCodeStore(storage.parent).reader(ID)
    assert reader is not None
    assert read_all(reader) == WHOLE
    path = storage / "part/msg_1e4336cf4001O0OYDaTpB5lj3x/prt_1e4337023001QueSWIAIRp0IAA.json"
    path.write_text('{"type": "te')
    problems: list[Problem] = []
    assert read_all(reader, problems) == read_all(reader, problems) == []
    assert len(problems) == 1
    path.write_text(json.dumps({"type": "text", "text": "Second answer, and more"}))
    (update,) = read_all(reader)
    assert update["content"]["text"] == ", and more"


def test_a_session_in_both_storages_is_the_databases(live: sqlite3.Connection, storage: Path) -> None:
    put(live, "session", {**ROWS[0][1], "title": "From the database"})
    store = OpenCodeStore(storage.parent)
    assert [(found.id, found.session_name) for found in store.scan().sessions] == [(ID, "From the database")]
    assert store.files(ID)[0].name == "opencode.db"


def test_files_that_cannot_be_read_hide_no_others(storage: Path) -> None:
    folder = storage / "session" / "project"
    (folder / "ses_bad.json").write_bytes(b"\x00\x01")
    (folder / "ses_cut.json").write_text('{"id": "ses_cut"')
    (folder / "ses_dir.json").mkdir()
    (folder / "ses_gone.json").symlink_to(folder / "nowhere")
    scan = OpenCodeStore(storage.parent).scan()
    assert [found.id for found in scan.sessions] == [ID]
    assert sorted(Path(problem.path).name for problem in scan.problems) == [
        "ses_bad.json", "ses_cut.json", "ses_dir.json", "ses_gone.json",
    ]  # fmt: skip


def test_messages_that_cannot_be_read_hold_up_no_others_and_their_parts_are_nobodys_words(storage: Path) -> None:
    for number in range(2 * opencode_files.PAGE):  # as a disk that was full leaves them, before all others
        (storage / "message" / ID / f"msg_0{number:03}.json").write_bytes(b"")
    first = next(path for path in sorted((storage / "message" / ID).iterdir()) if path.stat().st_size)
    data = first.read_bytes()
    first.write_bytes(data[:20])
    reader = OpenCodeStore(storage.parent).reader(ID)
    assert reader is not None
    lost = [update for update in WHOLE if update.get("messageId") == first.stem]
    assert lost
    assert read_all(reader) == [update for update in WHOLE if update not in lost]
    first.write_bytes(data)
    assert read_all(reader) == lost


def test_a_message_of_a_user_names_no_model(storage: Path) -> None:
    place = storage / "message" / ID / "msg_zzz.json"
    place.write_text(json.dumps({"id": "msg_zzz", "role": "user", "time": {"created": 1}}))
    (found,) = OpenCodeStore(storage.parent).scan().sessions
    assert (found.status, found.model) == ("running", None)


def test_a_changed_file_tells_whose_it_is_where_it_can(storage: Path) -> None:
    store = OpenCodeStore(storage.parent)
    assert store.touched(storage / "session" / "project" / f"{ID}.json") == ID
    assert store.touched(storage / "message" / ID / "msg_1.json") == ID
    for path in (storage / "part" / "msg_1" / "p.json", storage.parent / "opencode.db-wal", Path("/etc/passwd")):
        assert store.touched(path) is None
    assert [path.name for path in store.files(ID)] == [f"{ID}.json", ID]
    for name in ("../../x", "ses_none", "", "*"):
        assert store.reader(name) is None
        assert store.files(name) == []


def test_the_places_are_where_the_environment_says() -> None:
    names = ("opencode.db", "opencode.db-wal", "storage/session")
    assert OpenCodeStore(environ={"XDG_DATA_HOME": "/d", "HOME": "/x"}).places == [
        Path("/d/opencode", n) for n in names
    ]
    home = Path("/x/.local/share/opencode")
    assert OpenCodeStore(environ={"HOME": "/x"}).places == [home / name for name in names]
    named = OpenCodeStore(environ={"HOME": "/x", "OPENCODE_DB": "/db/mine.db"})
    assert named.places[0] == Path("/db/mine.db")
