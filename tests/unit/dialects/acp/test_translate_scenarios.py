"""What agents really send, and the events that come of it: one table, and a check that no event type is left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilothouse.dialects.acp import to_updates
from pilothouse.model.events import DERIVED, EVENT_TYPES, decode_event, encode_event
from pilothouse.model.session import fold, summary
from tests.support.scenario import Drive, text, types

Scenario = Callable[[Drive], None]
TURN = ["custom", "session:status_changed", "message:start", "message:complete"]
END = ["custom", "session:status_changed"]
SCENARIOS: dict[str, tuple[Scenario, list[str]]] = {}
# session:paused: no agent can say it; a consumer's `pause` command does, and the translator is told (see below)
NOT_FROM_AGENTS = {"session:paused": "ACP has no way to say it; the hub emits it for the command `pause`"}


def scenario(*expected: str) -> Callable[[Scenario], Scenario]:
    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__] = (function, list(expected))
        return function

    return register


@scenario("session:started", "custom", "environment:info")
def a_new_session(drive: Drive) -> None:
    setup = {
        "sessionId": "x",
        "modes": {"currentModeId": "code", "availableModes": [{"id": "code", "name": "Code"}]},
        "models": {"currentModelId": "big-1", "availableModels": [{"modelId": "big-1", "name": "Big"}]},
    }
    info = {"name": "agent", "title": "The Agent", "version": "1.2"}
    drive.keep(drive.translator.started(drive.now(), agent="agent", result=setup, info=info))


@scenario("session:resumed", "custom", "progress:plan_mode")
def a_session_resumed_in_plan_mode(drive: Drive) -> None:
    setup = {"modes": {"currentModeId": "plan", "availableModes": []}}
    drive.keep(drive.translator.resumed(drive.now(), previous="old", result=setup))


@scenario(
    *TURN,
    *["thinking:start", "session:status_changed", "thinking:delta", "thinking:delta"],
    *["thinking:complete", "session:status_changed", "message:start", "message:delta", "message:delta"],
    "message:complete",
    *END,
)
def a_thought_and_an_answer(drive: Drive) -> None:
    drive.prompt()
    drive.say("Let me ", "think.", kind="agent_thought_chunk")
    drive.say("Hello ", "world")
    drive.end()


@scenario(*["message:start", "message:delta", "message:complete", "message:start", "message:delta"])
def a_replayed_conversation(drive: Drive) -> None:
    drive.say("Fix it", kind="user_message_chunk")
    drive.say("Done.")


@scenario(
    *TURN,
    *["message:start", "message:delta", "message:delta", "resource:context_window", "message:delta"],
    *["message:complete", "tool:start", "tool:executing", "tool:result", "message:start", "message:delta"],
    "message:complete",
    *END,
)
def usage_between_chunks_does_not_cut_a_message_and_a_tool_call_does(drive: Drive) -> None:
    drive.prompt()
    drive.say("a", "b", messageId="m")
    drive.update("usage_update", used=10, size=100)
    drive.say("c", messageId="m")
    drive.call("c1", kind="read", status="completed", rawInput={"path": "/work/app/x"})
    drive.say("d", messageId="m")
    drive.end()


@scenario(
    "tool:start",
    "tool:args_delta",
    "progress:update",
    "tool:args_delta",
    "tool:executing",
    "tool:result",
    "file:change",
)
def an_edit_whose_arguments_grow(drive: Drive) -> None:
    drive.call("c1", title="Preparing file…", kind="edit", status="pending", rawInput={})
    drive.progress("c1", rawInput={"file_path": "/work/app/a.py"}, title="Write a.py")
    drive.progress("c1", rawInput={"file_path": "/work/app/a.py", "content": "x = 1\n"})
    diff = {"type": "diff", "path": "/work/app/a.py", "oldText": None, "newText": "x = 1\n"}
    drive.progress("c1", status="completed", content=[diff], rawOutput="File created")


@scenario(
    *["tool:start", "tool:executing", "approval:requested", "session:status_changed"],
    *["approval:resolved", "session:status_changed", "tool:result", "file:change"],
)
def a_call_that_only_its_permission_request_announces(drive: Drive) -> None:
    drive.translator._stream.status = "running"
    diff = {"type": "diff", "path": "/work/app/new.txt", "oldText": "", "newText": "one\n", "_meta": {"kind": "add"}}
    drive.ask("write_file__1", title="Writing to new.txt", kind="edit", status="pending", content=[diff])
    drive.decide(option_id="yes")
    drive.progress("write_file__1", status="completed", content=[diff], kind="edit")


@scenario(*["tool:start", "tool:executing", "progress:update", "progress:update", "tool:result"])
def a_command_with_live_output(drive: Drive) -> None:
    drive.call("c1", kind="execute", status="in_progress", rawInput={"command": "make"})
    drive.progress("c1", content=text("one\n"))
    drive.progress("c1", _meta={"terminal_output_delta": {"data": "two\n", "terminal_id": "c1"}})
    drive.progress("c1", status="completed", rawOutput={"stdout": "one\ntwo\n", "stderr": "", "exit_code": 0})


@scenario("tool:start", "tool:executing", "tool:error")
def a_command_called_completed_that_failed(drive: Drive) -> None:
    output = {"output": "boom", "metadata": {"exit": 2, "output": "boom"}}
    drive.call("c1", kind="execute", status="completed", rawInput={"command": "make"}, rawOutput=output)


@scenario("tool:start", "tool:executing", "tool:result", "file:batch")
def a_patch_of_several_files(drive: Drive) -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** Update File: b.txt\n@@\n-x\n+y\n*** End Patch"
    drive.call("c1", title="apply_patch", status="completed", rawInput={"patchText": patch})


@scenario("tool:start", "tool:executing", "tool:result", "git:operation", "git:operation")
def a_commit_and_a_push(drive: Drive) -> None:
    command = "git add -A && git commit -m 'Fix it' && git push origin main"
    said = "[main 1a2b3c4] Fix it\n 2 files changed, 3 insertions(+)\n"
    drive.call("c1", kind="execute", status="completed", rawInput={"command": command}, content=text(said))


@scenario("tool:start", "tool:executing", "tool:result", "web:operation")
def a_page_fetched(drive: Drive) -> None:
    drive.call("c1", title="fetch", kind="fetch", status="completed", rawInput={"url": "https://example.com/a"})


@scenario(
    *["tool:start", "tool:executing", "subagent:spawned", "tool:start", "subagent:progress", "tool:executing"],
    *["tool:result", "subagent:progress", "tool:result", "subagent:completed"],
)
def a_sub_agent_with_a_call_and_words_of_its_own(drive: Drive) -> None:
    task = {"description": "Sub job", "prompt": "Look", "subagent_type": "general"}
    inside = {"claudeCode": {"parentToolUseId": "c1", "toolName": "Read"}}
    drive.call("c1", title="Task", kind="think", status="in_progress", rawInput=task)
    drive.call("c2", kind="read", status="completed", rawInput={"file_path": "/work/app/x"}, _meta=inside)
    drive.say("I have looked.", _meta=inside)
    drive.progress("c1", status="completed", content=text("Sub agent finished."))


@scenario("subagent:spawned", "subagent:progress", "subagent:completed")
def a_sub_agent_told_by_its_own_update(drive: Drive) -> None:
    drive.update("subagent_update", sessionId="sub", title="Explorer")
    drive.update("subagent_update", sessionId="sub", title="Explorer", description="Half way")
    drive.update("subagent_update", sessionId="sub", state={"state": "idle", "stopReason": "end_turn"})


@scenario("progress:todo_update", "custom", "progress:todo_update")
def a_plan_told_twice_and_then_changed(drive: Drive) -> None:
    entries = [{"content": "Look", "status": "in_progress", "priority": "high"}]
    drive.update("plan", entries=entries)
    drive.update("plan", entries=entries)
    drive.update("plan", entries=[{**entries[0], "status": "completed"}])


@scenario("tool:start", "tool:executing", "progress:todo_update", "tool:result")
def a_todo_list_kept_by_a_tool(drive: Drive) -> None:
    todos = [{"content": "Look", "status": "pending", "activeForm": "Looking"}]
    drive.call("c1", title="todowrite", kind="other", status="completed", rawInput={"todos": todos})


@scenario("progress:plan_mode", "progress:plan_mode", "custom")
def modes_into_a_plan_mode_and_out_of_it(drive: Drive) -> None:
    for mode in ("plan", "code", "ask"):
        drive.update("current_mode_update", currentModeId=mode)


@scenario("tool:start", "tool:executing", "progress:plan_mode", "tool:result")
def a_plan_put_forward_by_a_tool(drive: Drive) -> None:
    plan = {"plan": "1. Look\n2. Edit"}
    drive.call("c1", title="ExitPlanMode", kind="switch_mode", status="completed", rawInput=plan)


@scenario("resource:context_window", "resource:cost", "resource:context_window", "resource:cost")
def usage_with_money(drive: Drive) -> None:
    for used, amount in ((10, 0.5), (20, 0.75)):
        drive.update("usage_update", used=used, size=100, cost={"amount": amount, "currency": "USD"})


@scenario(*TURN, "resource:token_usage", *END)
def tokens_in_the_answer(drive: Drive) -> None:
    drive.prompt()
    drive.end(usage={"inputTokens": 10, "outputTokens": 4, "cachedReadTokens": 2, "totalTokens": 16})


@scenario(*TURN, "resource:rate_limit", "session:error", *END)
def a_prompt_refused_by_a_limit(drive: Drive) -> None:
    drive.prompt()
    error = {"code": 429, "message": "Rate limit reached", "data": {"retryAfter": 30}}
    drive.keep(drive.translator.failed(error, drive.now()))


@scenario("interaction:notification", "interaction:notification", "resource:rate_limit")
def notices(drive: Drive) -> None:
    drive.update("notice", severity="info", title="Model changed")
    drive.update("notice", severity="warning", title="Usage limit", description="Resets at 5pm")


@scenario(
    *TURN,
    *["interaction:question", "session:status_changed", "custom", "session:status_changed"],
    *END,
)
def an_elicitation(drive: Drive) -> None:
    drive.prompt()
    form = {"type": "object", "properties": {"db": {"type": "string", "enum": ["PostgreSQL", "SQLite"]}}}
    params = {"mode": "form", "sessionId": "s1", "message": "Which database?", "requestedSchema": form}
    drive.keep(drive.translator.question(params, drive.now(), question_id="q1"))
    drive.keep(drive.translator.answer("q1", drive.now(), outcome="answered", answer="SQLite"))
    drive.end()


@scenario(
    *TURN,
    *["tool:start", "tool:executing", "interaction:question", "session:status_changed"],
    *["tool:result", "custom", "session:status_changed"],
    *END,
)
def a_tool_that_asks_the_user(drive: Drive) -> None:
    drive.prompt()
    asked = {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}], "multiSelect": False}]}
    drive.call("c1", title="AskUserQuestion", status="in_progress", rawInput=asked)
    drive.progress("c1", status="completed", content=text("A"))
    drive.end()


@scenario("custom", "custom", "custom", "custom", "custom")
def updates_without_a_type_of_their_own(drive: Drive) -> None:
    drive.update("available_commands_update", availableCommands=[{"name": "commit", "description": "Commit"}])
    drive.update("session_info_update", title="Fix the login")
    drive.update("compaction_update", compactionId="k", status="in_progress")
    drive.update("_vendor/heartbeat", beat=1)
    drive.update("tool_call")


@scenario(*TURN, "session:completed", "session:status_changed")
def a_session_that_ends(drive: Drive) -> None:
    drive.prompt()
    drive.keep(drive.translator.completed(summary(fold(drive.events)), drive.now()))


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_gives_its_events(name: str) -> None:
    act, expected = SCENARIOS[name]
    drive = Drive()
    act(drive)
    assert drive.types == expected


def played(name: str) -> Drive:
    drive = Drive()
    SCENARIOS[name][0](drive)
    return drive


def test_every_event_type_is_produced_by_a_scenario() -> None:
    produced = {kind for _, expected in SCENARIOS.values() for kind in expected}
    assert set(EVENT_TYPES) - produced - set(NOT_FROM_AGENTS) == set()
    assert not set(NOT_FROM_AGENTS) & produced


def test_a_pause_is_told_by_the_hub() -> None:
    drive = Drive(status="running")
    events = drive.keep(drive.translator.paused(drive.now(), "lunch"))
    assert types(events) == ["session:paused", "session:status_changed"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_update_rides_on_the_first_of_its_events_and_comes_back_byte_for_byte(name: str) -> None:
    drive = played(name)
    told = [event for event in drive.events if event.source is not None]
    assert [update for update in to_updates(told) if update in drive.updates] == drive.updates


@pytest.mark.parametrize("name", SCENARIOS)
def test_events_survive_their_own_json(name: str) -> None:
    for event in played(name).events:
        assert decode_event(encode_event(event)) == event
        assert event.source == DERIVED or event.source is None or event.source
