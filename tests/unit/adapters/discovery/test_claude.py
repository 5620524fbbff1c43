"""Claude Code's own files: recorded ones are listed and told, and what its records say is read as its adapter reads it.

The recording is `home`, as the CLI keeps it (made by tests/lab/claude_storage.py); `ID.acp.jsonl` is what a session of
it is told as, read by eye once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.adapters.discovery.claude import ClaudeStore
from pilothouse.adapters.discovery.store import Owner, iso
from pilothouse.agents.claude_bridge import records as history
from pilothouse.agents.claude_bridge.actions import Update as Told
from pilothouse.agents.claude_bridge.replay import Replay
from pilothouse.agents.claude_bridge.translate import Translator
from pilothouse.model.events import utc_now
from tests.unit.adapters.discovery.recordings import GOLDEN, is_sound, read_all, recorded

Json = dict[str, Any]
HOME = GOLDEN / "claude" / "home"
WORK = "/work/project"
FIRST, SECOND = (f"00000000-0000-4000-8000-{number:012}" for number in (3, 111))
ID = "11111111-2222-4333-8444-555555555555"
AT = "2026-01-01T00:00:00.000Z"


def store_of(home: Path, *records: Any, name: str = ID, folder: str = "-w") -> ClaudeStore:
    path = home / "projects" / folder / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (each if isinstance(each, bytes) else json.dumps(each).encode() for each in records)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return ClaudeStore(home)


def record(kind: str, content: Any, **fields: Any) -> Json:
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    return {"type": kind, "message": message, "cwd": WORK, "timestamp": AT, "sessionId": ID, **fields}


def user(content: Any, **fields: Any) -> Json:
    return record("user", content, **fields)


def answer(*blocks: Any, stop: str | None = "end_turn", **fields: Any) -> Json:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return record("assistant", content, message={"model": "some-model", "id": "msg_1", "stop_reason": stop}, **fields)


def call(name: str = "Bash", call_id: str = "toolu_1", **given: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given or {"command": "ls"}}


def result(call_id: str = "toolu_1", content: Any = "done") -> Json:
    return user([{"type": "tool_result", "tool_use_id": call_id, "content": content}])


def shown(updates: list[Json]) -> list[tuple[str, str]]:
    """Who says what, and how calls end."""
    names = {"user_message_chunk": "user", "agent_message_chunk": "agent", "agent_thought_chunk": "thought"}
    found = []
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in names:
            found.append((names[kind], update["content"].get("text", update["content"]["type"])))
        elif kind in ("tool_call", "tool_call_update"):
            found.append((kind, update.get("status", "")))
        else:
            found.append((kind, update.get("title", update.get("status", ""))))
    return found


def told(store: ClaudeStore, session_id: str = ID) -> list[Json]:
    reader = store.reader(session_id)
    assert reader is not None
    return read_all(reader)


# -- recordings --


def test_the_recorded_sessions_are_listed_and_sub_agents_are_none_of_them() -> None:
    scan = ClaudeStore(HOME).scan()
    assert list(scan.problems) == []
    found = {one.id: one for one in scan.sessions}
    assert set(found) == {FIRST, SECOND}
    first = found[FIRST]
    assert (first.agent, first.project_path, first.project_name) == ("claude", WORK, "project")
    assert (first.session_name, first.last_message) == ("Mend the pump", "Chosen.")
    assert (first.model, first.status, first.integration_method) == ("claude-sonnet-4-5", "idle", "file-watch")
    assert first.created_at < first.last_activity < "2026-01-01T00:10"
    assert (found[SECOND].last_message, found[SECOND].status) == ("Now to the end.", "running")


@pytest.mark.parametrize("name", [FIRST, SECOND])
def test_a_recorded_session_is_told_as_it_was_when_it_was_read(name: str) -> None:
    expected = (GOLDEN / "claude" / f"{name}.acp.jsonl").read_text(encoding="utf-8").splitlines()
    assert told(ClaudeStore(HOME), name) == [json.loads(line) for line in expected]


def test_the_recorded_updates_make_a_sound_log() -> None:
    is_sound(told(ClaudeStore(HOME), FIRST))


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_recorded_session_that_grows_byte_by_byte_is_told_the_same(tmp_path: Path, size: int) -> None:
    data = (HOME / "projects" / "-work-project" / f"{SECOND}.jsonl").read_bytes()
    store = store_of(tmp_path, name=SECOND)
    path, reader, found = store.files(SECOND)[0], store.reader(SECOND), []
    assert reader is not None
    for at in range(0, len(data), size):
        with path.open("ab") as file:
            file.write(data[at : at + size])
        found += read_all(reader)
    assert found == told(ClaudeStore(HOME), SECOND)


def test_the_editor_that_loads_a_session_is_told_the_same() -> None:
    path = HOME / "projects" / "-work-project" / f"{FIRST}.jsonl"
    replay = Replay(Translator(FIRST, cwd=WORK))
    loaded = [update for each in history.records(path) for update in replay.take(each)]
    titles = [update for update in told(ClaudeStore(HOME), FIRST) if update["sessionUpdate"] != "session_info_update"]
    assert loaded == titles


def test_what_the_cli_told_while_it_ran_is_what_its_records_tell() -> None:
    """The same messages as lines of the stream, which end by a result, and as records, which do not."""
    blocks = [call(), call("Read", "toolu_2", file_path=f"{WORK}/a.py")]
    stored = [user("go"), answer("Look.", *blocks, stop="tool_use"), result(), result("toolu_2"), answer("Done.")]
    lines = [{"type": each["type"], "message": each["message"]} for each in stored[1:]]
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": ID}
    translator, replay = Translator(ID, cwd=WORK), Replay(Translator(ID, cwd=WORK))
    translator.prompt("go")
    live = [
        action.update
        for line in (*lines, end)
        for action in translator.read(msgspec.json.encode(line))
        if isinstance(action, Told)
    ]
    again = [update for each in stored for update in replay.take(each)]
    assert again == [{"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "go"}}, *live]


def test_the_process_of_a_session_is_told_by_the_clis_own_file(tmp_path: Path) -> None:
    home = recorded("claude/home", tmp_path / "home")
    (home / "sessions" / "4243.json").write_text('{"pid": 4243')
    (home / "sessions" / "4244.json").write_text('{"pid": 1, "sessionId": "x", "startedAt": 1}')
    (home / "sessions" / "4242.secret.key").write_text("{}")
    os.mkfifo(home / "sessions" / "4245.json")
    known = Owner(session_id=SECOND, pid=4242, since=1767225600.0, status="waiting")
    assert ClaudeStore(home).owners() == [known]
    assert ClaudeStore(tmp_path / "nowhere").owners() == []


def test_the_directory_of_the_cli_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert ClaudeStore().places[0] == tmp_path / "projects"
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert ClaudeStore().places[0] == tmp_path / "me" / ".claude" / "projects"


# -- what is listed --


def test_the_title_is_the_one_given_then_the_one_made_then_the_first_words(tmp_path: Path) -> None:
    said = [user("Mend the pump\nplease"), answer("Done.")]
    made, given = {"type": "ai-title", "aiTitle": "Pump"}, {"type": "custom-title", "customTitle": "My pump"}
    for records, wanted in (
        (said, "Mend the pump"),
        ([{"type": "summary", "summary": "A pump"}, *said], "A pump"),
        ([made, *said, {"type": "ai-title", "aiTitle": "Pumps"}], "Pumps"),
        ([given, *said, made], "My pump"),
    ):
        (one,) = store_of(tmp_path, *records).scan().sessions
        assert one.session_name == wanted


def test_what_was_put_between_the_users_words_is_not_listed_and_tags_they_wrote_are(tmp_path: Path) -> None:
    words = "<ide_opened_file>a.py is open</ide_opened_file>\nWhy does <system-reminder> not close in <b>a.py</b>?"
    (one,) = store_of(tmp_path, user(words), answer("x" * 300)).scan().sessions
    assert one.session_name == "Why does <system-reminder> not close in <b>a.py</b>?"
    assert len(one.last_message or "") == 200


def test_a_title_begins_with_words_that_say_something(tmp_path: Path) -> None:
    clear = user("<command-name>/clear</command-name><command-args></command-args>")
    caveat = user("<local-command-caveat>Beware</local-command-caveat>", isMeta=True)
    (one,) = store_of(tmp_path, caveat, clear, user("x" * 150), answer("ok")).scan().sessions
    assert len(one.session_name or "") == 100
    assert (one.session_name or "").endswith("x…")


@pytest.mark.parametrize(
    "records",
    [
        [],
        [{"type": "queue-operation", "cwd": WORK}],
        [user("to a sub-agent", isSidechain=True), answer("from it", isSidechain=True)],
        [{"type": "summary", "summary": "Of another session"}],
        [user("hello", cwd=None)],
    ],
)
def test_a_file_in_which_nobody_spoke_is_no_session(tmp_path: Path, records: list[Json]) -> None:
    assert store_of(tmp_path, *records).scan().sessions == []


def test_only_files_with_the_name_of_a_session_are_read(tmp_path: Path) -> None:
    for name in ("agent-0123", "notes", ID.replace("-", ""), f"{ID}x"):
        store = store_of(tmp_path, user("hello"), name=name)
    assert store.scan().sessions == []


def test_messages_are_found_beyond_long_records_of_the_cli(tmp_path: Path) -> None:
    long = {"type": "attachment", "attachment": {"type": "prompt_snapshot", "text": "x" * 200_000}}
    (one,) = store_of(tmp_path, user("hello"), long, answer("well"), long, {"type": "mode"}).scan().sessions
    assert (one.session_name, one.last_message, one.status) == ("hello", "well", "idle")


def test_of_a_last_record_that_is_longer_than_what_is_looked_at_nothing_is_made_up(tmp_path: Path) -> None:
    long = {**result(), "toolUseResult": "x" * 3_000_000}
    store = store_of(tmp_path, user("hello"), answer("well"), user("go on"), answer(call()), long, {"type": "mode"})
    (one,) = store.scan().sessions
    assert (one.session_name, one.last_message, one.status) == ("hello", None, None)
    (path,) = store.files(ID)
    assert one.last_activity == iso(path.stat().st_mtime)


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ([user("go")], "running"),
        ([user("go"), answer("Look.", stop=None)], "running"),
        ([user("go"), answer(call(), stop="tool_use")], "running"),
        ([user("go"), answer(call("AskUserQuestion"), stop="tool_use")], "waiting"),
        ([user("go"), answer(call("ExitPlanMode", plan="x"), stop="tool_use")], "waiting"),
        ([user("go"), answer(call(), stop="tool_use"), result()], "running"),
        ([user("go"), answer("Done.")], "idle"),
        ([user("go"), answer("Cut", stop="max_tokens")], "idle"),
        ([user("go"), answer("API Error", stop=None, isApiErrorMessage=True)], "idle"),
        ([user("go"), answer("Look.", stop=None), {"type": "system", "subtype": "turn_duration"}], "idle"),
        ([user("go"), answer(call()), result(), user("[Request interrupted by user for tool use]")], "idle"),
        ([user("go"), answer("Done."), user("And now this")], "running"),
        ([user("go"), answer("Done."), user("<system-reminder>x</system-reminder>", isMeta=True)], "idle"),
        ([user("go"), answer("Done."), user("to a sub-agent", isSidechain=True)], "idle"),
        ([user("<bash-input>ls</bash-input>"), user("<bash-stdout>a</bash-stdout>")], "idle"),
        (
            [user("go"), answer(call(), stop="tool_use"), user("<local-command-stdout>x</local-command-stdout>")],
            "running",
        ),
    ],
)
def test_what_the_agent_does_is_inferred_from_its_last_records(
    tmp_path: Path, records: list[Json], status: str
) -> None:
    store = store_of(tmp_path, *records)
    assert [one.status for one in store.scan().sessions] == [status]
    reader = store.reader(ID)
    assert reader is not None
    assert reader.read().status == status


def test_a_session_that_begins_with_a_picture_larger_than_what_is_looked_at_is_listed(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 3_000_000}}
    name = "00000000-0000-4000-8000-000000000001"
    about = {"cwd": "/w", "sessionId": name, "timestamp": "2026-01-01T00:00:00Z"}
    prompt = {"type": "user", "message": {"role": "user", "content": [picture]}, **about}
    said = {"role": "assistant", "model": "m", "id": "a", "content": [{"type": "text", "text": "A cat."}]}
    path = tmp_path / "projects" / "-w" / f"{name}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in (prompt, {"type": "assistant", "message": said, **about}))
    )
    (one,) = ClaudeStore(tmp_path).scan().sessions
    assert (one.id, one.session_name, one.last_message) == (name, None, "A cat.")


def test_a_pipe_with_the_name_of_a_session_holds_up_nobody(tmp_path: Path) -> None:
    other = ID.replace("1", "2")
    store = store_of(tmp_path, user("hello"), answer("well"))
    os.mkfifo(tmp_path / "projects" / "-w" / f"{other}.jsonl")
    assert [one.id for one in store.scan().sessions] == [ID]
    assert [one["sessionId"] for one in history.listing(tmp_path)] == [ID]
    assert not history.has_turns(tmp_path / "projects" / "-w" / f"{other}.jsonl")


# -- what is told --


def test_a_call_without_an_end_is_closed_by_the_next_prompt(tmp_path: Path) -> None:
    store = store_of(tmp_path, user("go"), answer(call(), stop="tool_use"), user("Are you there?"), answer("Yes."))
    assert shown(told(store)) == [
        ("user", "go"),
        ("tool_call", "pending"),
        ("tool_call_update", "failed"),
        ("user", "Are you there?"),
        ("agent", "Yes."),
    ]


def below(home: Path, agent: str, *records: Json, **meta: Any) -> None:
    """The file of a sub-agent, and what the CLI says of it beside."""
    folder = home / "projects" / "-w" / ID / "subagents"
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({**each, "isSidechain": True, "agentId": agent}) for each in records)
    (folder / f"agent-{agent}.jsonl").write_text("\n".join(lines))
    if meta:
        (folder / f"agent-{agent}.meta.json").write_text(json.dumps(meta))


def lineage(updates: list[Json]) -> list[tuple[str, str | None, str | None]]:
    """Each call with the call it is under, and its status."""
    calls = [update for update in updates if update["sessionUpdate"].startswith("tool_call")]
    return [
        (update["toolCallId"], update["_meta"]["claudeCode"].get("parentToolUseId"), update.get("status"))
        for update in calls
    ]


def test_what_sub_agents_did_is_told_below_their_calls(tmp_path: Path) -> None:
    """By the id that the result tells, else by what the CLI says beside their file; also of their own sub-agents."""
    inner = [user("Look."), answer("I look.", call(call_id="c1")), result("c1")]
    below(tmp_path, "a1", *inner, answer(call("Agent", "c2")), result("c2"), answer("Seen."))
    below(tmp_path, "a2", user("Deeper."), answer(call("Read", "c3")), result("c3"), toolUseId="c2")
    below(tmp_path, "a3", user("Never heard of."), answer(call("Read", "c4")), result("c4"), toolUseId="c9")
    ended = {**result("t1"), "toolUseResult": {"status": "completed", "agentId": "a1"}}
    store = store_of(tmp_path, user("go"), answer(call("Agent", "t1"), stop="tool_use"), ended, answer("Done."))
    updates = told(store)
    assert lineage(updates) == [
        ("t1", None, "pending"),
        ("c1", "t1", "pending"),
        ("c1", "t1", "completed"),
        ("c2", "t1", "pending"),
        ("c3", "c2", "pending"),
        ("c3", "c2", "completed"),
        ("c2", "t1", "completed"),
        ("t1", None, "completed"),
    ]
    assert [words for who, words in shown(updates) if who == "agent"] == ["Done."]
    is_sound(updates)


def test_a_sub_agent_in_the_background_is_told_when_it_has_ended(tmp_path: Path) -> None:
    below(tmp_path, "a1", user("Look."), answer(call(call_id="c1")), result("c1"))
    launched = {**result("t1"), "toolUseResult": {"status": "async_launched", "agentId": "a1"}}
    over = "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>t1</tool-use-id>\n<status>completed</status>\n"
    begun = [user("go"), answer(call("Agent", "t1"), stop="tool_use"), launched, answer("Started.")]
    assert ("c1", "t1", "completed") not in lineage(told(store_of(tmp_path, *begun)))
    updates = told(store_of(tmp_path, *begun, user(f"{over}</task-notification>"), answer("Done.")))
    assert [each for each in lineage(updates) if each[0] == "c1"] == [
        ("c1", "t1", "pending"),
        ("c1", "t1", "completed"),
    ]
    is_sound(updates)


def test_a_model_that_a_program_asked_for_is_nobodys_words(tmp_path: Path) -> None:
    """The CLI records it as a command; one that was typed says whose turn it is, and has been typed in a terminal."""
    asked = [
        "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>haiku</command-args>",
        "<local-command-stdout>Set model to `haiku`</local-command-stdout>",
    ]
    typed = {"entrypoint": "sdk-cli", "turnAttributionKey": "x"}
    by_program = [user(words, entrypoint="sdk-cli") for words in asked]
    expected = [("user", "/model haiku"), ("agent", "Set model to `haiku`")]
    assert shown(told(store_of(tmp_path, *by_program, user("go", entrypoint="sdk-cli")))) == [("user", "go")]
    assert shown(told(store_of(tmp_path, *[user(words, **typed) for words in asked]))) == expected
    assert shown(told(store_of(tmp_path, *[user(words, entrypoint="cli") for words in asked]))) == expected


def test_commands_and_what_they_print_are_told(tmp_path: Path) -> None:
    command = "<command-name>/review</command-name><command-args>a.py</command-args>"
    local = {"type": "system", "subtype": "local_command", "cwd": WORK, "timestamp": AT}
    store = store_of(
        tmp_path,
        user(command),
        user("<local-command-stdout>\x1b[2mNothing found\x1b[22m</local-command-stdout>"),
        {**local, "content": "<command-name>/rename</command-name><command-args>Pump</command-args>"},
        {**local, "content": "<local-command-stdout></local-command-stdout>"},
        user("<bash-input>ls</bash-input>"),
        user("<bash-stdout>a.py</bash-stdout><bash-stderr>b.py is not there</bash-stderr>"),
    )
    assert shown(told(store)) == [
        ("user", "/review a.py"),
        ("agent", "Nothing found"),
        ("user", "/rename Pump"),
        ("user", "! ls"),
        ("agent", "a.py\nb.py is not there"),
    ]


def test_a_prompt_that_was_taken_into_a_turn_is_told_and_closes_nothing(tmp_path: Path) -> None:
    queued = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "Also b.py"}, "cwd": WORK}
    store = store_of(tmp_path, user("go"), answer(call(), stop="tool_use"), queued, result(), answer("Both done."))
    assert shown(told(store)) == [
        ("user", "go"),
        ("tool_call", "pending"),
        ("user", "Also b.py"),
        ("tool_call_update", "completed"),
        ("agent", "Both done."),
    ]


def test_a_title_is_told_when_it_changes(tmp_path: Path) -> None:
    title = {"type": "custom-title", "customTitle": "Pump"}
    store = store_of(tmp_path, user("go"), answer("Done."), title, title, {**title, "customTitle": "Pumps"})
    assert shown(told(store))[2:] == [("session_info_update", "Pump"), ("session_info_update", "Pumps")]


def test_paths_in_titles_are_seen_from_the_workspace(tmp_path: Path) -> None:
    store = store_of(tmp_path, user("go"), answer(call("Read", file_path=f"{WORK}/src/a.py"), stop="tool_use"))
    assert told(store)[1]["title"] == "Read src/a.py"


@pytest.mark.parametrize("odd", [None, 7, "x", [], [1], {"a": 1}, True, "\ud800"])
def test_values_of_any_kind_in_known_fields_are_survived(tmp_path: Path, odd: Any) -> None:
    keys = ("type", "message", "cwd", "timestamp", "attachment", "content", "subtype", "toolUseResult", "customTitle")
    odd_records = [{**user("go"), key: odd} for key in keys]
    odd_records += [{**answer(call()), "message": {"role": "assistant", "content": [odd, {"type": odd, "id": odd}]}}]
    odd_records += [{"type": kind, "cwd": WORK, "subtype": odd, "attachment": odd} for kind in ("system", "attachment")]
    lines = (msgspec.json.encode(each) if odd != "\ud800" else json.dumps(each).encode() for each in odd_records)
    store = store_of(tmp_path, user("before"), *lines, user("after"))
    assert [one.id for one in store.scan().sessions] == [ID]
    said = shown(told(store))
    assert said[0] == ("user", "before")
    assert said[-1] == ("user", "after")


@pytest.mark.parametrize("told", ["2999-01-01T00:00:00.000Z", "99999999-01-01T00:00:00Z", "soon", 7])
def test_a_clock_that_was_wrong_keeps_no_session_in_the_first_place(tmp_path: Path, told: Any) -> None:
    store = store_of(tmp_path, user("Hello", timestamp=told), answer("Hi", timestamp=told))
    (found,) = store.scan().sessions
    assert found.last_activity <= utc_now()
    assert found.created_at <= utc_now()


def test_half_a_character_does_not_cost_the_record_that_has_it(tmp_path: Path) -> None:
    store = store_of(tmp_path, user("Hello"), answer("cut \ud83d here"))
    assert store.scan().problems == []
    assert shown(told(store))[1] == ("agent", "cut \ufffd here")


def test_each_update_says_when_it_happened(tmp_path: Path) -> None:
    late = "2026-01-02T01:00:00+01:00"
    store = store_of(tmp_path, user("Hello"), answer("Hi", timestamp=late), answer("Ho", timestamp="never"))
    reader = store.reader(ID)
    assert reader is not None
    step = reader.read()
    assert list(step.times) == [AT, "2026-01-02T00:00:00.000Z", ""]
    assert len(step.updates) == 3


@pytest.mark.parametrize(
    "words",
    [
        "explain why <command-name>/init</command-name> appears in my log",
        "<command-name>/init</command-name> appears in my log, why?",
        "<command-name>/init</command-name>\n<command-args>x</command-args> appears in my log",
        "<bash-stdout> what does this tag mean?",
        "<bash-stdout>a</bash-stdout> is what I saw",
        "<local-command-stdout>a</local-command-stdout> and <bash-stderr>b</bash-stderr>",
        "<task-notification> is a tag of which program?",
        "[Request interrupted by user] is what it says, why?",
    ],
)
def test_words_about_the_tags_of_the_cli_are_the_users_own(tmp_path: Path, words: str) -> None:
    store = store_of(tmp_path, user(words), answer("Well."))
    assert shown(told(store)) == [("user", words), ("agent", "Well.")]
    [listed] = store_of(tmp_path, user(words)).scan().sessions
    assert listed.last_message == " ".join(words.split())


@pytest.mark.parametrize(
    ("recorded_as", "typed"),
    [
        (
            "<command-name>/x</command-name>\n  <command-message>x</command-message>\n  <command-args></command-args>",
            "/x",
        ),
        ("<command-message>x is running…</command-message>\n<command-name>/x</command-name>", "/x"),
        ("<command-name>/x</command-name><command-args>a </command-args> b</command-args>", "/x a </command-args> b"),
        ("<command-name>/x</command-name>\n<command-args>a</command-args>\n<skill-format>true</skill-format>", "/x a"),
    ],
)
def test_a_command_is_told_as_it_was_typed(tmp_path: Path, recorded_as: str, typed: str) -> None:
    assert shown(told(store_of(tmp_path, user(recorded_as)))) == [("user", typed)]


def test_an_end_among_what_a_command_printed_is_part_of_it(tmp_path: Path) -> None:
    printed = "<bash-stdout>a </bash-stdout> b</bash-stdout><bash-stderr></bash-stderr>"
    said = shown(told(store_of(tmp_path, user("<bash-input>cat x</bash-input>"), user(printed))))
    assert ("user", "! cat x") in said
    assert [words for who, words in said if who == "agent"] == ["a </bash-stdout> b"]


def test_what_was_said_beside_results_is_told_and_ends_no_call(tmp_path: Path) -> None:
    beside = user(
        [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
            {"type": "text", "text": "<system-reminder>be brief</system-reminder>"},
            {"type": "text", "text": "Rather in Rust"},
        ]
    )
    store = store_of(tmp_path, user("go"), answer(call(), call(call_id="toolu_2"), stop="tool_use"), beside)
    updates = told(store)
    assert [words for who, words in shown(updates) if who == "user"] == ["go", "Rather in Rust"]
    ended = {one["toolCallId"]: one["status"] for one in updates if one.get("status") in ("completed", "failed")}
    assert ended == {"toolu_1": "completed"}
