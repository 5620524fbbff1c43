"""Gemini CLI: a recording of the real program, growth, and the older files that are one object."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.discovery.gemini import Chat, GeminiStore
from pilothouse.adapters.discovery.store import Problem, Reader, Update
from tests.unit.adapters.discovery.recordings import GOLDEN, damage, ends, is_sound, is_valid, read_all, recorded, told

ID = "0cd06cbd-856f-44de-be28-66d2d0200957"
FILE = "tmp/work/chats/session-2026-11-16T11-52-0cd06cbd.jsonl"
WHOLE = [json.loads(line) for line in (GOLDEN / "gemini/updates.jsonl").read_text().splitlines()]
META = {"sessionId": ID, "projectHash": "h", "startTime": "2026-11-16T11:00:00.000Z", "kind": "main"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return recorded("gemini", tmp_path / "gemini")


def said(kind: str, words: Any, name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-11-16T11:00:00.000Z", "type": kind, "content": words, **more}


def prompt(words: str, name: str = "u") -> dict[str, Any]:
    return said("user", [{"text": words}], name)


def call(name: str, status: str, output: str = "", **more: Any) -> dict[str, Any]:
    answer = {"functionResponse": {"id": name, "name": "read_file", "response": {"output": output}}}
    result = [answer] if status in ("success", "error") else []
    return {"id": name, "name": "read_file", "args": {"file_path": "/x"}, "status": status, "result": result, **more}


def taken(*records: dict[str, Any]) -> list[Update]:
    chat = Chat()
    return [update for record in records for update in chat.take(record)]


def reader_of(place: Path) -> Reader:
    reader = GeminiStore(place).reader(ID)
    assert reader is not None
    return reader


def written(place: Path, *records: dict[str, Any], name: str = FILE) -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_recorded_session_is_listed_with_what_it_is_about(home: Path) -> None:
    scan = GeminiStore(home).scan()
    assert scan.problems == []
    (found,) = scan.sessions
    assert (found.id, found.agent, found.project_path) == (ID, "gemini", "/work/project")
    assert (found.session_name, found.last_message) == ("Say hello", "Second answer")
    assert (found.model, found.status) == ("gemini-2.5-pro", "idle")
    assert (found.created_at, found.last_activity) == ("2026-11-16T11:52:35.385Z", "2026-11-16T11:53:03.253Z")


def test_a_recorded_session_is_told_as_the_live_agent_would(home: Path) -> None:
    reader = reader_of(home)
    updates = read_all(reader)
    is_sound(updates)
    assert updates == WHOLE
    assert told(updates, "agent_message_chunk").splitlines() == [
        "Hello from the lab, ä 漢 🛳", "Reading.", "Writing.", "All done.", "After rejection.", "Will run.",
        "Second answer",
    ]  # fmt: skip
    assert ends(updates) == [
        ("read_file", "completed"), ("write_file", "completed"), ("replace", "completed"),
        ("run_shell_command", "failed"), ("run_shell_command", "completed"), ("read_file", "failed"),
        ("write_todos", "completed"), ("glob", "completed"), ("grep_search", "completed"),
        ("list_directory", "completed"), ("run_shell_command", "failed"), ("run_shell_command", "completed"),
    ]  # fmt: skip
    assert reader.read().status == "idle"


def test_changes_to_files_are_told_as_diffs() -> None:
    shown = [block for update in WHOLE if "toolCallId" in update for block in update.get("content", ())]
    diffs = [(block["path"], block["oldText"], block["newText"]) for block in shown if block["type"] == "diff"]
    assert diffs == [
        ("/work/project/new.txt", None, "one\ntwo\n"),
        ("/work/project/hello.txt", "hello world\nsecond line\n", "hello world\n2nd line\n"),
    ]


def test_a_recording_that_grows_line_by_line_tells_each_update_once(home: Path) -> None:
    path = home / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]))
    reader = reader_of(home)
    updates = read_all(reader)
    for line in lines[5:]:
        with path.open("ab") as file:
            file.write(line)
        updates += read_all(reader)
    assert updates == WHOLE


def test_each_update_is_told_once_wherever_the_file_is_cut(tmp_path: Path) -> None:
    records = (META, prompt("Go ä"), said("gemini", "On it", "g"),
               said("gemini", "On it 🛳", "g", toolCalls=[call("c", "success", "a")]))  # fmt: skip
    path = written(tmp_path, *records)
    data, store = path.read_bytes(), GeminiStore(tmp_path)
    assert len(store.scan().sessions) == 1
    whole = taken(*records)
    is_sound(whole)
    for cut in range(len(data)):
        path.write_bytes(data)
        reader = store.reader(ID)
        assert reader is not None
        path.write_bytes(data[:cut])
        updates = read_all(reader)
        with path.open("ab") as file:
            file.write(data[cut:])
        assert updates + read_all(reader) == whole


def test_files_of_a_session_tell_whose_they_are(home: Path) -> None:
    store = GeminiStore(home)
    (path,) = store.files(ID)
    assert path == home / FILE
    assert store.touched(path) == ID
    assert store.touched(home / "projects.json") is None
    assert store.files("../../etc/passwd") == []
    assert store.reader("../../etc/passwd") is None


def test_a_message_that_is_written_again_tells_what_it_has_more() -> None:
    updates = taken(
        prompt("Go"), said("gemini", "A", "g"), said("gemini", "A and B", "g"),
        said("gemini", [{"text": "A and B "}], "g"),
        said("gemini", "A and B", "g", toolCalls=[call("c", "executing")]),
        said("gemini", "A and B", "g", toolCalls=[call("c", "success", "out")]),
        said("gemini", "A and B", "g", toolCalls=[call("c", "success", "out")]),
    )  # fmt: skip
    is_sound(updates)
    assert told(updates, "agent_message_chunk") == "A and B"
    assert ends(updates) == [("read_file", "completed")]
    assert len(updates) == 5


def test_messages_that_were_put_in_the_place_of_others_are_not_told() -> None:
    kept = [prompt("Go"), said("gemini", "Done", "g")]
    summary = [prompt("<state_snapshot>all</state_snapshot>", "s1"), said("gemini", "Got it.", "s2")]
    updates = taken(
        *kept, {"$set": {"messages": [*summary, *kept]}}, {"$set": {"messages": summary}}, prompt("On", "u2")
    )
    is_sound(updates)
    assert [update["sessionUpdate"] for update in updates] == [
        "user_message_chunk", "agent_message_chunk", "compaction_update", "user_message_chunk",
    ]  # fmt: skip


def test_thoughts_pictures_notices_and_titles_are_told_once() -> None:
    thoughts = [{"subject": "Plan", "description": "Look"}]
    picture = said("user", [{"text": "See"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}], "u")
    records = (picture, said("gemini", "", "g", thoughts=thoughts), said("error", "Lost", "e"), {"$rewindTo": "u"})
    updates = taken({"$set": {"summary": "A title"}}, *records, *records[:3])
    is_sound(updates)
    assert [update["sessionUpdate"] for update in updates] == [
        "session_info_update", "user_message_chunk", "user_message_chunk", "agent_thought_chunk", "notice", "notice",
    ]  # fmt: skip
    assert told(updates, "agent_thought_chunk") == "**Plan**\nLook"


def test_a_call_that_was_left_open_ends_with_the_next_prompt() -> None:
    updates = taken(said("gemini", "", "g", toolCalls=[call("c", "executing")]), prompt("Next"))
    is_sound(updates)
    assert ends(updates) == [("read_file", "failed")]


def test_the_status_is_read_from_the_last_record(tmp_path: Path) -> None:
    path = written(tmp_path, META, prompt("Go"))
    store = GeminiStore(tmp_path)
    reader = store.reader(ID)
    assert reader is not None
    for record, status in (
        (said("gemini", "", "g"), "running"),
        (said("gemini", "Done", "g2"), "idle"),
        (prompt("Again", "u2"), "running"),
        ({"$set": {"messages": [prompt("Go")]}}, "idle"),
    ):
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        read_all(reader)
        assert reader.read().status == status
        assert [session.status for session in store.scan().sessions] == [status]


def test_the_older_files_are_read_and_only_what_is_new_is_told(tmp_path: Path) -> None:
    path = tmp_path / "tmp" / hashlib.sha256(b"/work/old").hexdigest() / "chats/session-2025-09-01T10-00-0cd06cbd.json"
    path.parent.mkdir(parents=True)
    whole = {**META, "projectHash": path.parent.parent.name, "lastUpdated": "2025-09-01T10:00:00.000Z"}
    messages = [prompt("Go"), said("gemini", "Done", "g", model="gemini-2.0")]
    path.write_text(json.dumps({**whole, "messages": messages}, indent=2))
    (tmp_path / "projects.json").write_text('{"projects": {"/work/old": "old"}}')
    store = GeminiStore(tmp_path)
    (found,) = store.scan().sessions
    assert (found.id, found.project_path, found.session_name) == (ID, "/work/old", "Go")
    assert (found.last_message, found.model, found.last_activity) == ("Done", "gemini-2.0", "2025-09-01T10:00:00.000Z")
    reader = store.reader(ID)
    assert reader is not None
    assert told(read_all(reader), "agent_message_chunk") == "Done"
    path.write_text(json.dumps({**whole, "messages": [*messages, prompt("More", "u2")]}, indent=2))
    assert told(read_all(reader), "user_message_chunk") == "More"
    assert (read_all(reader), reader.read().status) == ([], "running")
    path.write_text('{"sessionId"')
    problems: list[Problem] = []
    for _ in range(4):
        read_all(reader, problems)
    assert [problem.path for problem in problems] == [str(path)]
    assert [problem.path for problem in store.scan().problems] == [str(path)]


def test_a_session_that_was_taken_over_from_the_older_format_is_the_newer_file(tmp_path: Path) -> None:
    path = written(tmp_path, META, prompt("Go"), prompt("On", "u2"))
    older = path.with_suffix(".json")
    older.write_text(json.dumps({**META, "messages": [prompt("Go")]}))
    store = GeminiStore(tmp_path)
    path.touch()
    assert [found.id for found in store.scan().sessions] == [ID]
    assert store.files(ID)[0] == path


def test_who_reads_the_older_file_goes_on_in_the_newer_one(tmp_path: Path) -> None:
    path = (tmp_path / FILE).with_suffix(".json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**META, "messages": [prompt("Go"), said("gemini", "Done", "g")]}))
    reader = reader_of(tmp_path)
    assert len(read_all(reader)) == 2
    written(tmp_path, META, prompt("Go"), said("gemini", "Done", "g"), prompt("On", "u2"))
    assert told(read_all(reader), "user_message_chunk") == "On"


def test_sub_agents_and_sessions_without_words_are_not_listed(tmp_path: Path) -> None:
    written(tmp_path, {**META, "kind": "subagent"}, prompt("Go"))
    context = prompt("<session_context>\nhello\n</session_context>")
    written(tmp_path, META, {"$set": {"messages": [context]}}, name=FILE.replace("0cd0", "0cd1"))
    written(tmp_path, prompt("No meta"), name=FILE.replace("0cd0", "0cd2"))
    assert GeminiStore(tmp_path).scan().sessions == []


def test_lines_that_cannot_be_read_are_told_once_and_the_rest_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, META, prompt("Go"))
    with path.open("ab") as file:
        file.write(b"\x00\xff junk\n[1]\n" + json.dumps(said("gemini", "Done", "g")).encode() + b"\n")
    store = GeminiStore(tmp_path)
    scan = store.scan()
    assert (len(scan.sessions), [problem.path for problem in scan.problems]) == (1, [str(path)])
    problems: list[Problem] = []
    reader = store.reader(ID)
    assert reader is not None
    assert told(read_all(reader, problems), "agent_message_chunk") == "Done"
    assert len(problems) == 1


@pytest.mark.parametrize("odd", [None, 7, "x", [], [1], {"a": 1}, True])
def test_values_of_any_kind_in_known_fields_are_survived(odd: Any) -> None:
    keys = ("content", "displayContent", "thoughts", "toolCalls", "tokens")
    fields = dict.fromkeys(keys, odd)
    calls = [dict.fromkeys(("args", "result", "resultDisplay", "description", "name", "status"), odd) | {"id": "c"}]
    for kind in ("user", "gemini", "info", "error", "x"):
        records = ({"id": "m", "type": kind, **fields}, {"id": "n", "type": kind, "toolCalls": calls}, {"$set": odd})
        is_valid(taken(*records, {"$set": {"messages": odd}}, {"messages": odd}))


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_recording_is_survived(home: Path, seed: int) -> None:
    store = GeminiStore(home)
    reader = store.reader(ID)
    assert reader is not None
    damage(home / FILE, seed)
    store.scan()
    problems: list[Problem] = []
    is_valid(read_all(reader, problems))
    assert problems


def test_the_home_is_where_the_environment_says() -> None:
    assert GeminiStore(environ={"GEMINI_CLI_HOME": "/g", "HOME": "/x"}).places == [Path("/g/.gemini/tmp")]
    assert GeminiStore(environ={"HOME": "/x"}).places == [Path("/x/.gemini/tmp")]
