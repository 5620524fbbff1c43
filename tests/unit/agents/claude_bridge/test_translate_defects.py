"""Defects seen in a bridge of this kind; none of them may be here."""

from __future__ import annotations

import json

from pilothouse.agents.claude_bridge.actions import Ask, Send
from pilothouse.dialects.acp import Translator as Events
from pilothouse.model.events import FileChangeEvent
from tests.unit.agents.claude_bridge.lines import (
    ask,
    assistant,
    block_start,
    delta,
    init,
    message_start,
    result,
    system,
    text,
    tool_result,
    use,
    user,
)
from tests.unit.agents.claude_bridge.playing import checked, play

WRITE = {"file_path": "/work/a", "content": "x\n"}
NOW = "2026-01-01T00:00:00.000Z"
CLIENT_METHODS = {"session/request_permission", "elicitation/create"}


def test_an_edit_is_shown_before_approval_and_nothing_is_written() -> None:
    played = play("go", init(), assistant(use("Write", **WRITE)), ask("Write", given=WRITE))
    assert {request.method for request in played.of(Ask)} <= CLIENT_METHODS
    assert played.call("t1")["status"] == "pending"
    assert played.call("t1")["content"][0]["type"] == "diff"


def test_text_and_thoughts_are_streamed_by_token() -> None:
    lines = [
        message_start(),
        block_start("thinking"),
        delta("Hm", kind="thinking"),
        block_start("text", 1),
        delta("He", 1),
        delta("llo", 1),
    ]
    played = play("go", init(), *lines)
    assert played.kinds() == ["agent_thought_chunk", "agent_message_chunk", "agent_message_chunk"]


def test_thinking_of_whole_messages_is_shown() -> None:
    assert play("go", init(), assistant({"type": "thinking", "thinking": "Hm"})).text("agent_thought_chunk") == "Hm"


def test_parallel_calls_all_end() -> None:
    blocks = [{"type": "tool_result", "tool_use_id": name, "content": "x"} for name in ("t1", "t2")]
    played = play("go", init(), assistant(use("Read", "t1"), use("Read", "t2")), user(blocks))
    assert [played.call(name)["status"] for name in ("t1", "t2")] == ["completed", "completed"]


def test_a_user_message_with_a_string_in_it_ends_nothing() -> None:
    odd = [user("a string"), user(None), user(5), {"type": "user"}, {"type": "user", "message": []}]
    assert play("go", init(), *odd, assistant(text("Still here.")), result()).text() == "Still here."


def test_no_tool_is_quiet_and_todos_are_a_plan() -> None:
    todos = [{"content": "Look", "status": "pending"}]
    for name, given in (("Read", {}), ("Write", WRITE), ("Edit", WRITE), ("TodoWrite", {"todos": todos})):
        assert play("go", init(), assistant(use(name, **given))).kinds() == ["tool_call"]
    played = play("go", init(), assistant(use("TodoWrite", todos=todos)), tool_result("ok"))
    assert played.updates[-1]["entries"] == [{"content": "Look", "priority": "medium", "status": "pending"}]


def test_a_permission_has_the_id_of_its_call_and_waits_without_a_limit() -> None:
    played = play("go", init(), assistant(use("Bash", "toolu_1")), ask("Bash", "toolu_1"))
    assert played.of(Ask)[0].params["toolCall"]["toolCallId"] == "toolu_1"
    assert [line["type"] for line in played.sent] == ["user"]


def test_mode_and_model_are_switched_in_the_running_cli() -> None:
    translator = play("go", init()).translator
    for subtype, fields in (("set_permission_mode", {"mode": "dontAsk"}), ("set_model", {"model": "haiku"})):
        (sent,) = translator.control(subtype, **fields)
        assert isinstance(sent, Send)
        assert json.loads(sent.line)["request"] == {"subtype": subtype, **fields}
    assert "dontAsk" in [mode["id"] for mode in translator.setup()["modes"]["availableModes"]]


def test_every_model_that_is_offered_is_one_that_the_cli_named() -> None:
    translator = play("go", init()).translator
    assert translator.setup()["configOptions"] == []
    (sent,) = translator.control("initialize")
    assert isinstance(sent, Send)
    told = {"subtype": "success", "request_id": sent.request_id, "response": {"models": [{"value": "haiku"}]}}
    translator.read(json.dumps({"type": "control_response", "response": told}))
    values = [choice["value"] for choice in translator.setup()["configOptions"][0]["options"]]
    assert values == ["haiku", "opus"]  # opus is in use, as the CLI said


def test_a_cancel_answers_every_prompt_that_was_sent() -> None:
    played = play("one", init(), "two", "three")
    played.take(played.translator.interrupt())
    played.take(played.translator.abandon())
    assert sum(ended.prompts for ended in checked(played).ended) == 3


def test_a_tool_that_was_refused_by_settings_is_shown_as_refused() -> None:
    denied = system("permission_denied", tool_name="Write", tool_use_id="t1", message="Denied by settings")
    lines = [assistant(use("Write", **WRITE)), denied, tool_result("Denied by settings", error=True)]
    played = play("go", init(), *lines)
    assert (played.call("t1")["status"], played.notices()) == ("failed", ["Write was not permitted"])


def test_all_questions_are_asked_and_answered_with_the_questions_kept() -> None:
    questions = [
        {"question": f"Q{n}?", "multiSelect": n == 2, "options": [{"label": f"L{m}"} for m in range(6)]} for n in (1, 2)
    ]
    given = {"questions": questions}
    played = play("go", init(), assistant(use("AskUserQuestion", **given)), ask("AskUserQuestion", given=given))
    fields = played.of(Ask)[0].params["requestedSchema"]["properties"]
    assert len(fields["q1"]["oneOf"]) == 6
    content = {"q1": 'L"1', "q2": ["L0", "L5"]}
    (sent,) = played.translator.answer("r1", {"action": "accept", "content": content})
    assert isinstance(sent, Send)
    told = json.loads(sent.line)["response"]["response"]
    assert told["updatedInput"] == {**given, "answers": {"Q1?": 'L"1', "Q2?": "L0, L5"}}


def test_the_reason_of_a_denial_arrives_as_it_was_written() -> None:
    reason = 'Say "no" \\ and\nstop'
    played = play("go", init(), ask("Bash"))
    answer = {"outcome": {"outcome": "selected", "optionId": "reject"}, "_meta": {"reason": reason}}
    (sent,) = played.translator.answer("r1", answer)
    assert isinstance(sent, Send)
    assert b"\n" not in sent.line
    assert json.loads(sent.line)["response"]["response"]["message"] == reason


def test_a_file_that_codex_changes_is_seen_as_a_call_and_as_a_change() -> None:
    events = Events("s", workspace="/work")
    events.started(NOW, agent="codex", result={})
    events.prompt("go", NOW, turn_id="t")
    diff = {"type": "diff", "path": "/work/a.py", "oldText": None, "newText": "x\n", "_meta": {"kind": "add"}}
    told = {"toolCallId": "c1", "kind": "edit", "title": "Editing files", "status": "in_progress", "content": [diff]}
    seen = events.update(json.dumps({"sessionUpdate": "tool_call", **told}).encode(), NOW)
    end = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"}
    seen += events.update(json.dumps(end).encode(), NOW)
    assert [event.type for event in seen if event.type in ("tool:start", "tool:result", "file:change")] == [
        "tool:start",
        "tool:result",
        "file:change",
    ]
    assert [event.path for event in seen if isinstance(event, FileChangeEvent)] == ["/work/a.py"]
