"""Codex: a recording of the real program, growth, and what older versions wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.discovery.codex import CodexStore
from pilothouse.adapters.discovery.codex_rollout import Rollout, status_of
from pilothouse.adapters.discovery.store import Problem, Update
from tests.unit.adapters.discovery.recordings import (
    GOLDEN,
    damage,
    ends,
    is_sound,
    is_valid,
    read_all,
    recorded,
    told,
)

ID = "01a1e432-ae9f-7ed0-b83c-d9fd12a3302e"
FILE = f"sessions/2026/11/16/rollout-2026-11-16T11-51-29-{ID}.jsonl"


@pytest.fixture
def store(tmp_path: Path) -> CodexStore:
    return CodexStore(recorded("codex", tmp_path / "codex"))


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-16T12:00:00.000Z", "type": kind, "payload": payload}


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return line("response_item", type=kind, **payload)


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return line("event_msg", type=kind, **payload)


def prompt(words: str) -> dict[str, Any]:
    return item("message", role="user", content=[{"type": "input_text", "text": words}])


def answer(words: str) -> dict[str, Any]:
    return item("message", role="assistant", content=[{"type": "output_text", "text": words}])


def taken(*lines: dict[str, Any]) -> list[Update]:
    rollout = Rollout()
    return [update for each in lines for update in rollout.take(each)]


def written(place: Path, *lines: dict[str, Any], name: str = FILE) -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


SUB_AGENT = "01a1e454-4c0a-7770-98d3-bc30225c1101"


def test_the_recorded_thread_of_a_sub_agent_can_be_read(store: CodexStore) -> None:
    reader = store.reader(SUB_AGENT)
    assert reader is not None
    updates = read_all(reader)
    is_sound(updates)
    assert told(updates, "agent_message_chunk") == "Sub done"


def test_a_recorded_session_is_listed_and_the_thread_of_a_sub_agent_is_not(store: CodexStore) -> None:
    scan = store.scan()
    assert scan.problems == []
    (found,) = scan.sessions
    assert (found.id, found.agent, found.project_path, found.project_name) == (ID, "codex", "/work/project", "project")
    assert (found.session_name, found.last_message, found.model) == ("Say hello", "Second answer", "gpt-5.5")
    assert (found.created_at, found.last_activity) == ("2026-11-16T11:51:29.195Z", "2026-11-16T11:51:42.286Z")
    assert (found.status, found.integration_method) == ("idle", "file-watch")


def test_a_recorded_session_is_told_as_the_live_agent_would(store: CodexStore) -> None:
    reader = store.reader(ID)
    assert reader is not None
    updates = read_all(reader)
    is_sound(updates)
    assert updates == [json.loads(each) for each in (GOLDEN / "codex/updates.jsonl").read_text().splitlines()]
    said = ["Hello from the lab, ä 漢 🛳", "Reading.", "Writing.", "All done.", "Will run.", "Second answer"]
    assert told(updates, "agent_message_chunk").splitlines() == said
    assert told(updates, "user_message_chunk").splitlines() == [
        "Say hello", "Read, write, edit, run, plan", "Touch a file that I will refuse", "Run something long",
        "Say something long", "Fail", "Once more",
    ]  # fmt: skip
    assert ends(updates) == [
        ("exec_command", "completed"), ("apply_patch", "completed"), ("apply_patch", "completed"),
        ("exec_command", "failed"), ("exec_command", "failed"), ("exec_command", "completed"),
        ("spawn_agent", "failed"), ("exec_command", "failed"), ("exec_command", "failed"),
    ]  # fmt: skip
    assert reader.read().status == "idle"


def test_changes_to_files_are_told_as_diffs(store: CodexStore) -> None:
    reader = store.reader(ID)
    assert reader is not None
    shown = [block for update in read_all(reader) for block in update.get("content", ()) if "toolCallId" in update]
    diffs = [(block["path"], block["oldText"], block["newText"]) for block in shown if block["type"] == "diff"]
    assert ("/work/project/new.txt", None, "one\ntwo\n") in diffs
    assert ("/work/project/hello.txt", "hello world\nsecond line\n", "hello world\n2nd line\n") in diffs


def test_files_of_a_session_tell_whose_they_are(store: CodexStore) -> None:
    record, lock = store.files(ID)
    assert record.name == Path(FILE).name
    assert store.touched(record) == store.touched(lock) == ID
    assert store.touched(record.with_name("notes.txt")) is None
    assert store.touched(lock.with_name(".coordination.lock")) is None
    assert store.files("../../etc/passwd") == []
    assert store.reader("../../etc/passwd") is None


def test_each_update_is_told_once_wherever_the_file_is_cut(tmp_path: Path) -> None:
    lines = (prompt("Go ä"), item("function_call", name="shell", call_id="c", arguments='{"command": ["ls"]}'),
             item("function_call_output", call_id="c", output="a"), answer("Done 🛳"))  # fmt: skip
    path = written(tmp_path, *lines)
    data, store = path.read_bytes(), CodexStore(tmp_path)
    whole = taken(*lines)
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        reader = store.reader(ID)
        assert reader is not None
        updates = read_all(reader)
        with path.open("ab") as file:
            file.write(data[cut:])
        assert updates + read_all(reader) == whole
    path.write_bytes(b"")
    reader = store.reader(ID)
    assert reader is not None
    updates = []
    for at in range(len(data)):
        with path.open("ab") as file:
            file.write(data[at : at + 1])
        updates += reader.read().updates
    assert updates == whole


def test_a_turn_is_running_until_it_ends(tmp_path: Path) -> None:
    path = written(tmp_path, prompt("Go"), event("task_started"), answer("I begin"))
    store = CodexStore(tmp_path)
    reader = store.reader(ID)
    assert reader is not None
    assert reader.read().status == "running"
    assert [session.status for session in store.scan().sessions] == ["running"]
    with path.open("a") as file:
        file.write(json.dumps(event("turn_aborted", reason="interrupted")) + "\n")
    assert reader.read().status == "idle"
    assert [session.status for session in store.scan().sessions] == ["idle"]


def test_without_events_of_turns_the_last_word_tells() -> None:
    assert status_of([prompt("Go")]) == "running"
    assert status_of([prompt("Go"), answer("Done")]) == "idle"
    assert status_of([]) == "idle"


def test_a_question_to_the_user_is_waited_for() -> None:
    rollout = Rollout()
    asked = item("function_call", name="request_user_input", call_id="q", arguments="{}")
    begun = [update for each in (event("task_started"), asked) for update in rollout.take(each)]
    assert [update["sessionUpdate"] for update in begun] == ["tool_call"]
    assert rollout.status == "waiting"
    assert [update["status"] for update in rollout.take(item("function_call_output", call_id="q", output="{}"))] == [
        "completed"
    ]
    assert rollout.status == "running"


@pytest.mark.parametrize(
    "words",
    [
        "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
        "<user_shell_command>\nls\n</user_shell_command>",
    ],
)
def test_what_codex_wrote_in_the_users_name_is_left_out(words: str) -> None:
    assert taken(prompt(words)) == []


def test_words_about_tags_are_the_users_own() -> None:
    words = "What does <environment_context> mean, and <turn_aborted>?"
    assert told(taken(prompt(words)), "user_message_chunk") == words


def test_the_request_is_taken_out_of_what_an_editor_tells_of_itself() -> None:
    words = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix it\n"
    assert told(taken(prompt(words)), "user_message_chunk") == "Fix it"


def test_pictures_are_told_as_pictures() -> None:
    content = [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}, {"type": "input_text", "text": "?"}]
    first, _ = taken(item("message", role="user", content=content))
    assert first["content"] == {"type": "image", "mimeType": "image/png", "data": "AAAA"}


def test_thinking_is_told_where_it_can_be_read() -> None:
    summary = [{"type": "summary_text", "text": "**Plan**"}, {"type": "summary_text", "text": "Look"}]
    updates = taken(item("reasoning", summary=summary), item("reasoning", summary=[], encrypted_content="gAAA"))
    assert told(updates, "agent_thought_chunk") == "**Plan**\n\nLook"
    assert len(updates) == 1


OUTPUTS = {
    "json in a string": ('{"output":"a\\n","metadata":{"exit_code":2}}', "failed", "a\n", {"exit_code": 2}),
    "an exit code of 0": ('{"output":"a","metadata":{"exit_code":0}}', "completed", "a", {"exit_code": 0}),
    "lines before it": ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nok\n", "completed", "ok\n", {"exit_code": 0}),
    "a chunk": (
        "Chunk ID: 1\nWall time: 1.0 seconds\nProcess exited with code 1\nOutput:\n",
        "failed",
        "",
        {"exit_code": 1},
    ),
    "blocks": ([{"type": "input_text", "text": "seen"}], "completed", "seen", None),
    "an object": ({"content": "no", "success": False}, "failed", "no", None),
    "words": ("Plan updated", "completed", "Plan updated", None),
    "a refusal": ("Wall time: 1.0 seconds\naborted by user", "failed", "Wall time: 1.0 seconds\naborted by user", None),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_outputs_are_read_in_every_shape(case: str) -> None:
    output, status, words, raw = OUTPUTS[case]
    call = item("function_call", name="shell", call_id="c", arguments='{"command":["bash","-lc","ls -l"]}')
    begun, ended = taken(call, item("function_call_output", call_id="c", output=output))
    assert (begun["title"], begun["rawInput"]["command"], begun["kind"]) == ("ls -l", "ls -l", "execute")
    assert (ended["status"], ended.get("rawOutput")) == (status, raw)
    assert "".join(block["content"]["text"] for block in ended.get("content", ())) == words


def test_what_older_versions_wrote_of_ends_wins_over_the_output() -> None:
    call = item("function_call", name="shell", call_id="c", arguments='{"command":["ls"]}')
    end = event("exec_command_end", call_id="c", exit_code=3, aggregated_output="out", stdout="out", stderr="")
    patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"
    change = {"a.txt": {"type": "delete", "content": "old\n"}}
    updates = taken(
        call, end, item("function_call_output", call_id="c", output="again"),
        item("custom_tool_call", name="apply_patch", call_id="p", input=patch),
        event("patch_apply_end", call_id="p", success=True, changes=change),
        item("custom_tool_call_output", call_id="p", output="again"),
    )  # fmt: skip
    is_sound(updates)
    assert ends(updates) == [("shell", "failed"), ("apply_patch", "completed")]
    assert updates[-1]["content"] == [
        {"type": "diff", "path": "a.txt", "oldText": "old\n", "newText": "", "_meta": {"kind": "delete"}}
    ]


def test_a_command_in_the_background_ends_with_its_turn_or_when_it_is_told() -> None:
    call = item("function_call", name="exec_command", call_id="c", arguments='{"cmd":"serve"}')
    running = "Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\nup\n"
    output = item("function_call_output", call_id="c", output=running)
    updates = taken(call, output, event("task_complete"))
    is_sound(updates)
    assert [update.get("status") for update in updates] == ["in_progress", None, "completed"]
    done = {
        "type": "CommandExecution",
        "id": "c",
        "status": "completed",
        "exit_code": 0,
        "aggregated_output": "up\nbye",
    }
    updates = taken(call, output, event("item_completed", item=done), event("task_complete"))
    assert updates[-1]["content"][0]["content"]["text"] == "up\nbye"


def test_calls_that_a_killed_turn_left_open_end_when_the_next_begins() -> None:
    call = item("function_call", name="exec_command", call_id="c", arguments='{"cmd":"x"}')
    updates = taken(event("task_started"), call, event("task_started"))
    is_sound(updates)
    assert ends(updates) == [("exec_command", "failed")]


def test_a_plan_is_told_as_a_plan() -> None:
    given = json.dumps({"plan": [{"step": "One", "status": "in_progress"}]})
    call = item("function_call", name="update_plan", call_id="c", arguments=given)
    updates = taken(call, item("function_call_output", call_id="c", output="Plan updated"))
    entries = [{"priority": "medium", "content": "One", "status": "in_progress"}]
    assert updates == [{"sessionUpdate": "plan", "entries": entries}]


def test_other_lines_become_what_the_protocol_has_for_them() -> None:
    updates = taken(
        line("compacted", message="So far: nothing"),
        event("thread_name_updated", thread_name="A name"),
        event("thread_rolled_back", num_turns=2),
        event("error", message="Lost"),
        item("web_search_call", status="completed", action={"type": "search", "query": "acp"}),
        item("ghost_snapshot"), event("no_such_event"), line("no_such_line"), {"record_type": "state"},
    )  # fmt: skip
    is_sound(updates)
    assert [update["sessionUpdate"] for update in updates] == [
        "compaction_update", "session_info_update", "notice", "notice", "tool_call", "tool_call_update",
    ]  # fmt: skip


def test_the_oldest_files_have_items_as_lines(tmp_path: Path) -> None:
    meta = {"id": ID, "timestamp": "2025-05-01T00:00:00Z", "instructions": None}
    written(tmp_path, meta, {"record_type": "state"}, prompt("Hi")["payload"], answer("Ho")["payload"])
    store = CodexStore(tmp_path)
    (found,) = store.scan().sessions
    assert (found.session_name, found.last_message, found.created_at) == ("Hi", "Ho", "2025-05-01T00:00:00.000Z")
    reader = store.reader(ID)
    assert reader is not None
    assert told(read_all(reader), "agent_message_chunk") == "Ho"


def test_sub_agents_and_sessions_without_words_are_not_listed(tmp_path: Path) -> None:
    other = FILE.replace("01a1e432", "01a1e433")
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": ID, "depth": 1}}}
    written(tmp_path, line("session_meta", id=ID, cwd="/x", source=spawned), prompt("Go"))
    written(tmp_path, line("session_meta", id=ID, cwd="/x", source="cli"), name=other)
    assert CodexStore(tmp_path).scan().sessions == []


def test_the_title_is_the_first_prompt_however_long_the_instructions_are(tmp_path: Path) -> None:
    long = [item("message", role="developer", content=[{"type": "input_text", "text": "x" * 50_000}])] * 4
    written(
        tmp_path, line("session_meta", id=ID, cwd="/x"), *long, prompt("First"), *long, prompt("Second"), answer("Ok")
    )
    (found,) = CodexStore(tmp_path).scan().sessions
    assert (found.session_name, found.last_message) == ("First", "Ok")


def test_a_name_that_the_user_gave_is_the_title(tmp_path: Path) -> None:
    written(tmp_path, prompt("Go"), event("thread_name_updated", thread_name="My name"))
    (found,) = CodexStore(tmp_path).scan().sessions
    assert found.session_name == "My name"


def test_lines_that_cannot_be_read_are_told_once_and_the_rest_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, prompt("Go"))
    with path.open("ab") as file:
        file.write(b"\x00\xff junk\nnull\n[1]\n" + json.dumps(answer("Done")).encode() + b"\n")
    written(tmp_path, prompt("Fine"), name=FILE.replace("01a1e432", "01a1e433"))
    store = CodexStore(tmp_path)
    scan = store.scan()
    assert len(scan.sessions) == 2
    assert [problem.path for problem in scan.problems] == [str(path)]
    reader = store.reader(ID)
    assert reader is not None
    problems: list[Any] = []
    assert told(read_all(reader, problems), "agent_message_chunk") == "Done"
    assert len(problems) == 1


@pytest.mark.parametrize("odd", [None, 7, "x", [], [1], {"a": 1}, True])
def test_values_of_any_kind_in_known_fields_are_survived(odd: Any) -> None:
    keys = ("role", "content", "call_id", "name", "arguments", "input", "output", "summary", "action", "item",
            "changes", "info", "error", "message", "exit_code", "aggregated_output", "status")  # fmt: skip
    kinds = ("message", "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call",
             "function_call_output", "custom_tool_call_output", "tool_search_output")  # fmt: skip
    events = ("item_completed", "exec_command_end", "patch_apply_end", "task_complete", "token_count", "error",
              "thread_rolled_back", "turn_aborted")  # fmt: skip
    fields = dict.fromkeys(keys, odd)
    updates = taken(*(item(kind, **fields) for kind in kinds), *(event(kind, **fields) for kind in events))
    is_valid(updates)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_recording_is_survived(tmp_path: Path, seed: int) -> None:
    home = recorded("codex", tmp_path / "codex")
    damage(home / FILE, seed)
    store = CodexStore(home)
    store.scan()
    reader = store.reader(ID)
    assert reader is not None
    problems: list[Problem] = []
    is_valid(read_all(reader, problems))
    assert problems


def test_the_home_is_where_the_environment_says(tmp_path: Path) -> None:
    assert CodexStore(environ={"CODEX_HOME": str(tmp_path), "HOME": "/x"}).places == [tmp_path / "sessions"]
    assert CodexStore(environ={"HOME": "/x"}).places == [Path("/x/.codex/sessions")]
