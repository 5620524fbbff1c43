"""Permissions, questions and plans: what the client is asked, and what its answer tells the CLI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.agents.claude_bridge.actions import Action, Ask, Send, Withdraw
from tests.unit.agents.claude_bridge.lines import ask, assistant, init, result, system, tool_result, use
from tests.unit.agents.claude_bridge.playing import Play, checked, play

GIVEN = {"command": "touch x", "description": "Make x"}
RULE = {
    "type": "addRules",
    "rules": [{"toolName": "Bash", "ruleContent": "touch *"}],
    "behavior": "allow",
    "destination": "localSettings",
}
DIRECTORY = {"type": "addDirectories", "directories": ["/tmp"], "destination": "session"}
EDITS = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
QUESTIONS = {
    "questions": [
        {"question": "Which colour?", "header": "Colour", "options": [{"label": "Blue", "description": "b"}]},
        {
            "question": "Which sizes?",
            "header": "Size",
            "multiSelect": True,
            "options": [{"label": "S"}, {"label": "M"}, {"label": "M"}, {"label": ""}, 5],
        },
        {"question": "Why?", "options": []},
    ],
    "metadata": {"source": "test"},
}


def asked(name: str = "Bash", given: dict[str, Any] | None = None, **fields: Any) -> Play:
    given = GIVEN if given is None else given
    return play("go", init(), assistant(use(name, **given)), ask(name, given=given, **fields))


def reply(played: Play, answer: Any, request_id: str = "r1") -> dict[str, Any]:
    """What the CLI is told when the client answers."""
    actions = played.translator.answer(request_id, answer)
    played.take(actions)
    checked(played)
    line = json.loads(next(action.line for action in actions if isinstance(action, Send)))
    assert line["type"] == "control_response"
    assert (line["response"]["subtype"], line["response"]["request_id"]) == ("success", request_id)
    told: dict[str, Any] = line["response"]["response"]
    return told


def selected(option: str, **fields: Any) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}, **fields}


def options(played: Play) -> list[tuple[str, str]]:
    return [(option["optionId"], option["kind"]) for option in played.of(Ask)[0].params["options"]]


# -- permissions --


def test_a_permission_is_asked_for_the_call_that_was_announced() -> None:
    played = asked()
    request = played.of(Ask)[0]
    assert request.method == "session/request_permission"
    assert request.params["toolCall"]["toolCallId"] == "t1"
    assert request.params["toolCall"]["rawInput"] == GIVEN
    assert list(played.calls()) == ["t1"]


def test_a_permission_for_a_call_that_nobody_announced_announces_it() -> None:
    started = system("task_started", task_id="a1", tool_use_id="t0", task_type="local_agent")
    played = play("go", init(), started, ask("Bash", "t7", given=GIVEN, agent_id="a1"))
    kinds = [type(action).__name__ for action in played.actions]
    assert kinds.index("Update") < kinds.index("Ask")
    assert played.call("t7")["_meta"]["claudeCode"]["parentToolUseId"] == "t0"
    later = assistant(use("Bash", "t7", **GIVEN), parent="t0")
    played.take(played.translator.read(json.dumps(later)))
    assert played.kinds().count("tool_call") == 1


def test_the_change_that_is_asked_for_is_shown() -> None:
    played = asked("Write", {"file_path": "/work/a", "content": "x"})
    assert played.of(Ask)[0].params["toolCall"]["content"][0]["newText"] == "x"


def test_without_suggestions_nothing_can_be_allowed_for_good() -> None:
    assert options(asked()) == [("allow", "allow_once"), ("reject", "reject_once"), ("stop", "reject_once")]


def test_rules_and_a_change_of_mode_are_options_of_their_own() -> None:
    played = asked(permission_suggestions=[RULE, DIRECTORY, EDITS])
    assert options(played) == [
        ("allow", "allow_once"),
        ("allow_always", "allow_always"),
        ("mode:acceptEdits", "allow_always"),
        ("reject", "reject_once"),
        ("stop", "reject_once"),
    ]
    assert played.of(Ask)[0].params["options"][1]["name"] == "Always allow Bash(touch *), access to /tmp"


def test_allowing_once_sends_the_whole_input_back() -> None:
    played = asked(permission_suggestions=[RULE])
    assert reply(played, selected("allow")) == {"behavior": "allow", "updatedInput": GIVEN}
    assert played.statuses("t1") == ["pending", "in_progress"]


def test_allowing_for_good_grants_what_the_option_says_and_no_more() -> None:
    suggested = [RULE, DIRECTORY, EDITS]
    always = reply(asked(permission_suggestions=suggested), selected("allow_always"))
    assert always == {"behavior": "allow", "updatedInput": GIVEN, "updatedPermissions": [RULE, DIRECTORY]}
    edits = reply(asked(permission_suggestions=suggested), selected("mode:acceptEdits"))
    assert edits["updatedPermissions"] == [EDITS]


def test_a_rejection_stops_one_call_and_tells_why() -> None:
    played = asked()
    told = reply(played, selected("reject", _meta={"reason": 'Not "now"\n'}))
    assert told == {"behavior": "deny", "message": 'Not "now"\n'}
    assert played.statuses("t1") == ["pending"]


def test_only_who_chooses_to_stop_ends_the_turn() -> None:
    assert "interrupt" not in reply(asked(), selected("reject"))
    assert reply(asked(), selected("stop"))["interrupt"] is True


@pytest.mark.parametrize(
    "answer",
    [
        {"outcome": {"outcome": "cancelled"}},
        selected("from tomorrow"),
        {"outcome": {"outcome": "cancelled", "optionId": "allow"}},
        {},
        None,
        "allow",
    ],
)
def test_whatever_is_no_choice_allows_nothing(answer: Any) -> None:
    assert reply(asked(), answer)["behavior"] == "deny"


def test_a_client_that_cannot_ask_allows_nothing_and_stops_nothing() -> None:
    played = asked()
    actions = played.translator.refuse("r1", "no such method")
    told = json.loads(actions[0].line)["response"]["response"]  # type: ignore[union-attr]
    assert told == {"behavior": "deny", "message": "The user could not be asked: no such method"}


def test_an_answer_is_given_once() -> None:
    played = asked()
    reply(played, selected("reject"))
    assert played.translator.answer("r1", selected("allow")) == []
    assert played.translator.refuse("r1", "late") == []


def test_what_the_cli_withdraws_is_withdrawn_and_gets_no_answer() -> None:
    played = play("go", init(), assistant(use("Bash")), ask("Bash"))
    cancel = {"type": "control_cancel_request", "request_id": "r1"}
    assert played.translator.read(json.dumps(cancel)) == [Withdraw("r1")]
    assert played.translator.read(json.dumps(cancel)) == []
    assert played.translator.answer("r1", selected("allow")) == []


def test_what_is_open_when_the_turn_is_cancelled_is_withdrawn() -> None:
    aborted = result("error_during_execution", terminal_reason="aborted_tools")
    assert play("go", init(), assistant(use("Bash")), ask("Bash"), aborted).of(Withdraw) == [Withdraw("r1")]


def test_a_request_that_names_no_tool_is_refused() -> None:
    line = {"type": "control_request", "request_id": "r1", "request": {"subtype": "can_use_tool"}}
    sent = play("go", init(), line).sent[-1]
    assert sent["response"]["subtype"] == "error"


# -- plans --


def test_a_plan_is_approved_with_the_mode_to_work_in() -> None:
    plan = {"plan": "# Plan"}
    played = play("go", init(), assistant(use("ExitPlanMode", **plan)), ask("ExitPlanMode", given={}))
    shown = played.of(Ask)[0].params["toolCall"]
    assert (shown["kind"], shown["content"][0]["content"]["text"]) == ("switch_mode", "# Plan")
    assert options(played) == [
        ("default", "allow_once"),
        ("acceptEdits", "allow_always"),
        ("plan", "reject_once"),
        ("stop", "reject_once"),
    ]
    mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    told = reply(played, selected("acceptEdits"))
    assert told == {"behavior": "allow", "updatedInput": {}, "updatedPermissions": [mode]}


def test_who_keeps_planning_stops_nothing() -> None:
    played = play("go", init(), ask("ExitPlanMode", given={"plan": "x"}))
    assert "interrupt" not in reply(played, selected("plan"))


# -- questions --


def questioned(**answers: Any) -> dict[str, Any]:
    return reply(asked("AskUserQuestion", QUESTIONS), {"action": "accept", "content": answers})


def test_all_questions_are_one_form_with_room_for_other_answers() -> None:
    request = asked("AskUserQuestion", QUESTIONS).of(Ask)[0]
    assert (request.method, request.params["toolCallId"]) == ("elicitation/create", "t1")
    fields = request.params["requestedSchema"]["properties"]
    assert list(fields) == ["q1", "q1_other", "q2", "q2_other", "q3"]
    assert fields["q1"]["oneOf"] == [{"const": "Blue", "title": "Blue", "description": "b"}]
    assert [option["const"] for option in fields["q2"]["items"]["anyOf"]] == ["S", "M"]
    assert fields["q3"]["type"] == "string"


def test_answers_go_back_with_the_whole_input() -> None:
    told = questioned(q1="Blue", q2=["S", "M"], q3="Because.")
    answers = {"Which colour?": "Blue", "Which sizes?": "S, M", "Why?": "Because."}
    assert told == {"behavior": "allow", "updatedInput": {**QUESTIONS, "answers": answers}}


def test_an_answer_of_ones_own_replaces_a_choice_and_joins_several() -> None:
    told = questioned(q1="Blue", q1_other="Green ", q2=["S"], q2_other="XL")
    assert told["updatedInput"]["answers"] == {"Which colour?": "Green", "Which sizes?": "S, XL"}


@pytest.mark.parametrize("action", ["decline", "cancel", "from tomorrow"])
def test_who_does_not_answer_stops_nothing(action: str) -> None:
    told = reply(asked("AskUserQuestion", QUESTIONS), {"action": action})
    assert told == {"behavior": "deny", "message": "The user chose not to answer the questions."}


def test_a_client_without_forms_is_not_asked() -> None:
    lines = [assistant(use("AskUserQuestion", **QUESTIONS)), ask("AskUserQuestion", given=QUESTIONS)]
    played = play("go", init(), *lines, capabilities={})
    assert played.of(Ask) == []
    assert played.sent[-1]["response"]["response"]["behavior"] == "deny"


def test_a_question_that_cannot_be_read_is_denied() -> None:
    assert play("go", init(), ask("AskUserQuestion", given={"questions": "?"})).of(Ask) == []


def test_the_call_of_a_question_ends_with_its_result() -> None:
    played = asked("AskUserQuestion", QUESTIONS)
    reply(played, {"action": "accept", "content": {"q1": "Blue"}})
    played.take(played.translator.read(json.dumps(tool_result("answered"))))
    assert played.statuses("t1") == ["pending", "completed"]


# -- MCP servers that ask --


def server_asks(**fields: Any) -> dict[str, Any]:
    request = {"subtype": "elicitation", "mcp_server_name": "calc", "message": "Who?", **fields}
    return {"type": "control_request", "request_id": "r1", "request": request}


def test_a_server_asks_through_the_client() -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    played = play("go", init(), server_asks(mode="form", requested_schema=form))
    assert played.of(Ask)[0].params["requestedSchema"] == form
    assert reply(played, {"action": "accept", "content": {"name": "Ann"}}) == {
        "action": "accept",
        "content": {"name": "Ann"},
    }
    linked = play("go", init(), server_asks(mode="url", url="https://example.com", elicitation_id="e1"))
    assert linked.of(Ask)[0].params["elicitationId"] == "e1"
    assert reply(linked, {"action": "decline"}) == {"action": "decline"}


def test_what_the_protocol_cannot_ask_is_cancelled() -> None:
    for line in (server_asks(mode="form", requested_schema={"properties": 5}), server_asks()):
        played = play("go", init(), line, capabilities={} if line["request"].get("mode") is None else None)
        assert played.of(Ask) == []
        assert played.sent[-1]["response"]["response"] == {"action": "cancel"}


# -- sub-agents in the background --


def in_background() -> Play:
    """A sub-agent waits for a permission when the turn that started it ends."""
    started = system("task_started", task_id="a1", tool_use_id="t0", task_type="local_agent", is_backgrounded=True)
    lines = [
        assistant(use("Agent", "t0")),
        started,
        tool_result("launched", "t0", told={"status": "async_launched"}),
        assistant(use("Bash", "t1", command="x"), parent="t0"),
        ask("Bash", "t1", given={"command": "x"}),
        result(),
    ]
    return play("go", init(), *lines)


def test_a_question_that_the_client_closes_with_the_turn_is_asked_again_for_who_goes_on() -> None:
    played = in_background()
    (again,) = played.translator.answer("r1", {"outcome": {"outcome": "cancelled"}})
    assert again == played.of(Ask)[0]
    *_, allowed = told(played.translator.answer("r1", {"outcome": {"outcome": "selected", "optionId": "allow"}}))
    assert allowed["behavior"] == "allow"


def test_who_cancels_it_again_has_decided() -> None:
    played = in_background()
    played.translator.answer("r1", {"outcome": {"outcome": "cancelled"}})
    (denied,) = told(played.translator.answer("r1", {"outcome": {"outcome": "cancelled"}}))
    assert (denied["behavior"], denied["interrupt"]) == ("deny", True)


def test_what_is_cancelled_in_its_own_turn_is_not_asked_again() -> None:
    played = play("go", init(), assistant(use("Bash", "t1")), ask("Bash", "t1"))
    (denied,) = told(played.translator.answer("r1", {"outcome": {"outcome": "cancelled"}}))
    assert denied["behavior"] == "deny"


def told(actions: list[Action]) -> list[dict[str, Any]]:
    """The answers that go to the CLI."""
    return [json.loads(action.line)["response"]["response"] for action in actions if isinstance(action, Send)]


def test_a_request_that_is_said_again_is_asked_once_and_answered_once() -> None:
    played = play("go", init(), assistant(use("Bash", command="ls")), ask("Bash"), ask("Bash"))
    assert len(played.of(Ask)) == 1
    played.take(played.translator.answer("r1", {"outcome": {"outcome": "selected", "optionId": "allow"}}))
    played.take(played.translator.answer("r1", {"outcome": {"outcome": "selected", "optionId": "reject"}}))
    answers = [line["response"] for line in played.sent if line["type"] == "control_response"]
    assert [answer["response"]["behavior"] for answer in answers] == ["allow"]
