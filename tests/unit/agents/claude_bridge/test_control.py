"""What goes to the CLI: prompts, requests of our own, and answers to what it asks of its host."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.acp import schema
from pilothouse.agents.claude_bridge.actions import Action, Answered, Note, Send, Update
from pilothouse.agents.claude_bridge.translate import Translator
from tests.support.schema_check import FrameChecker
from tests.unit.agents.claude_bridge.lines import init
from tests.unit.agents.claude_bridge.playing import play

MODELS = [
    {"value": "default", "resolvedModel": "opus-5", "displayName": "Default", "description": "The best"},
    {"value": "haiku", "resolvedModel": "haiku-5", "displayName": "Haiku", "supportsAutoMode": True},
]
INITIALIZED = {
    "commands": [{"name": "review", "description": "Look", "argumentHint": "<pr>"}, {"name": ""}],
    "models": MODELS,
    "current_permission_mode": "plan",
}


def line_of(actions: list[Action]) -> dict[str, Any]:
    (line,) = [json.loads(action.line) for action in actions if isinstance(action, Send)]
    assert isinstance(line, dict)
    return line


def answered(translator: Translator, actions: list[Action], response: Any, **fields: Any) -> list[Action]:
    """The CLI answers the request that the actions send."""
    request_id = line_of(actions)["request_id"]
    told = {"subtype": "success", "request_id": request_id, "response": response, **fields}
    return translator.read(json.dumps({"type": "control_response", "response": told}))


# -- prompts --


@pytest.mark.parametrize(
    ("prompt", "content"),
    [
        ("hi", "hi"),
        ([{"type": "text", "text": "/compact"}], "/compact"),
        ([schema.TextContentBlock(text="hi")], "hi"),
        (
            [
                {"type": "text", "text": "see"},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "image", "data": "", "mimeType": "image/png", "uri": "https://example.com/a.png"},
            ],
            [
                {"type": "text", "text": "see"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            ],
        ),
        (
            [
                {"type": "resource_link", "name": "a b.py", "uri": "file:///work/a%20b.py"},
                {"type": "resource_link", "name": "page", "uri": "https://example.com"},
                {"type": "resource_link", "name": "plain", "uri": "/work/c.py"},
            ],
            [
                {"type": "text", "text": "@/work/a b.py"},
                {"type": "text", "text": "[page](https://example.com)"},
                {"type": "text", "text": "@/work/c.py"},
            ],
        ),
        (
            [{"type": "resource", "resource": {"uri": "file:///work/a", "text": "x = 1"}}],
            [
                {"type": "text", "text": "@/work/a"},
                {"type": "text", "text": '<context ref="file:///work/a">\nx = 1\n</context>'},
            ],
        ),
        (
            [
                {"type": "resource", "resource": {"uri": "u", "mimeType": "image/png", "blob": "aGk="}},
                {"type": "resource", "resource": {"uri": "u", "mimeType": "application/pdf", "blob": "aGk="}},
                {"type": "resource", "resource": {"uri": "u", "mimeType": "x/y", "blob": "aGk="}},
            ],
            [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}},
                {"type": "text", "text": "u"},
            ],
        ),
        ([{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}], "[audio content left out]"),
    ],
)
def test_a_prompt_is_a_user_line(prompt: Any, content: Any) -> None:
    assert line_of(Translator("s").prompt(prompt)) == {"type": "user", "message": {"role": "user", "content": content}}


def test_a_prompt_may_have_an_id() -> None:
    assert line_of(Translator("s").prompt("hi", uuid="u1"))["uuid"] == "u1"


# -- requests of ours --


def test_requests_have_ids_of_their_own_and_their_answers_come_back() -> None:
    translator = Translator("s")
    first, second = translator.control("mcp_status"), translator.interrupt()
    assert line_of(first)["request_id"] != line_of(second)["request_id"]
    assert line_of(second) == {
        "type": "control_request",
        "request_id": "pilothouse-2",
        "request": {"subtype": "interrupt"},
    }
    assert answered(translator, second, {"still_queued": []}) == [Answered("pilothouse-2", {"still_queued": []})]
    assert answered(translator, first, None) == [Answered("pilothouse-1", {})]


def test_a_refusal_comes_back_with_its_reason() -> None:
    translator = Translator("s")
    (answer,) = answered(translator, translator.control("x"), None, subtype="error", error="Unsupported")
    assert answer == Answered("pilothouse-1", {}, "Unsupported")


def test_an_answer_to_nothing_is_kept() -> None:
    line = {"type": "control_response", "response": {"subtype": "success", "request_id": "?"}}
    assert [type(action).__name__ for action in Translator("s").read(json.dumps(line))] == ["Note"]


def test_our_own_answers_repeated_to_us_are_not_news() -> None:
    played = play({"type": "control_request", "request_id": "r1", "request": {"subtype": "hook_callback"}})
    echo = json.dumps(played.sent[-1])
    assert played.translator.read(echo) == []
    assert [type(action).__name__ for action in played.translator.read(echo)] == ["Note"]


def test_what_a_session_offers_is_known_after_initialize() -> None:
    translator = Translator("s")
    actions = answered(translator, translator.control("initialize", hooks=None), INITIALIZED)
    command = {"name": "review", "description": "Look", "input": {"hint": "<pr>"}}
    update = {"sessionUpdate": "available_commands_update", "availableCommands": [command]}
    assert [action.update for action in actions if isinstance(action, Update)] == [update]
    setup = translator.setup()
    assert setup["modes"]["currentModeId"] == "plan"
    assert [mode["id"] for mode in setup["modes"]["availableModes"]] == ["default", "acceptEdits", "plan", "dontAsk"]
    (option,) = setup["configOptions"]
    assert (option["currentValue"], [choice["value"] for choice in option["options"]]) == (
        "default",
        ["default", "haiku"],
    )
    checker = FrameChecker("agent")
    checker.received({"id": 1, "method": "session/new"})
    checker.sent({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s", **setup}})


def test_a_model_that_can_judge_by_itself_may() -> None:
    translator = Translator("s")
    answered(translator, translator.control("initialize"), INITIALIZED)
    able = next(model["resolvedModel"] for model in MODELS if model.get("supportsAutoMode"))
    answered(translator, translator.control("get_settings"), {"applied": {"model": able}})
    setup = translator.setup()
    assert "auto" in [mode["id"] for mode in setup["modes"]["availableModes"]]
    answered(translator, translator.control("get_settings"), {"applied": {"model": "of somebody else"}})
    assert "auto" not in [mode["id"] for mode in translator.setup()["modes"]["availableModes"]]


def test_the_name_that_was_chosen_stays_the_name_of_the_model() -> None:
    models = [{"value": name, "displayName": name, "resolvedModel": "large-1"} for name in ("default", "large")]
    translator = Translator("s")
    answered(translator, translator.control("initialize"), {**INITIALIZED, "models": models})
    translator.setup()
    answered(translator, translator.control("set_model", model="large"), {"model": "large-1"})
    assert translator.setup()["configOptions"][0]["currentValue"] == "large"
    assert updates(translator.read(json.dumps(init(model="large-1", permissionMode="plan")))) == []


def test_what_a_request_makes_the_cli_say_is_no_answer_of_the_model() -> None:
    translator = Translator("s")
    words = "<local-command-stdout>Set model to large</local-command-stdout>"
    line = {"type": "user", "message": {"role": "user", "content": words}}
    (note,) = translator.read(json.dumps(line))
    assert isinstance(note, Note)
    assert note.params == {"text": "Set model to large"}


def updates(actions: list[Action]) -> list[Any]:
    return [action.update for action in actions if isinstance(action, Update)]


def test_the_riskiest_mode_is_offered_only_where_it_is_allowed() -> None:
    def offered(**options: Any) -> list[str]:
        return [mode["id"] for mode in Translator("s", **options).setup()["modes"]["availableModes"]]

    assert "bypassPermissions" not in offered()
    assert "bypassPermissions" in offered(bypass=True)


def test_mode_and_model_are_switched_in_place() -> None:
    translator = Translator("s")
    answered(translator, translator.control("initialize"), INITIALIZED)
    translator.setup()
    mode = answered(translator, translator.control("set_permission_mode", mode="default"), {"mode": "default"})
    assert mode[1] == Update({"sessionUpdate": "current_mode_update", "currentModeId": "default"})
    model = answered(translator, translator.control("set_model", model="haiku"), {"model": "haiku-5"})
    assert isinstance(model[1], Update)
    assert model[1].update["configOptions"][0]["currentValue"] == "haiku"
    again = translator.read(json.dumps(init(model="haiku-5", permissionMode="default")))
    assert again == []


def test_a_model_that_is_not_offered_is_shown_all_the_same() -> None:
    translator = Translator("s")
    answered(translator, translator.control("initialize"), INITIALIZED)
    translator.setup()
    translator.read(json.dumps(init(model="opus-5", permissionMode="plan")))
    (update,) = translator.read(json.dumps(init(model="private-1", permissionMode="plan")))
    assert isinstance(update, Update)
    option = update.update["configOptions"][0]
    assert option["currentValue"] == "private-1"
    assert option["options"][-1] == {"value": "private-1", "name": "private-1"}


def test_a_refused_switch_changes_nothing() -> None:
    translator = Translator("s")
    translator.setup()
    actions = answered(translator, translator.control("set_permission_mode", mode="plan"), None, subtype="error")
    assert [type(action) for action in actions] == [Answered]


# -- requests of the CLI --


def response_to(request: dict[str, Any]) -> dict[str, Any]:
    line = {"type": "control_request", "request_id": "r1", "request": request}
    (sent,) = play(line).sent
    assert (sent["type"], sent["response"]["request_id"]) == ("control_response", "r1")
    response = sent["response"]
    assert isinstance(response, dict)
    return response


def test_a_hook_callback_gets_an_answer_that_decides_nothing() -> None:
    assert response_to({"subtype": "hook_callback", "callback_id": "h", "input": {}})["response"] == {}


def test_a_message_for_a_server_that_is_not_here_gets_an_error() -> None:
    asked = {"subtype": "mcp_message", "server_name": "calc", "message": {"jsonrpc": "2.0", "id": 0, "method": "x"}}
    answer = response_to(asked)["response"]["mcp_response"]
    assert (answer["id"], answer["error"]["code"]) == (0, -32601)
    told = {"subtype": "mcp_message", "server_name": "calc", "message": {"jsonrpc": "2.0", "method": "x"}}
    assert response_to(told)["response"]["mcp_response"]["result"] == {}


@pytest.mark.parametrize("request_", [{"subtype": "from_tomorrow"}, {}, {"subtype": 5}])
def test_an_unknown_request_is_refused_and_never_ignored(request_: dict[str, Any]) -> None:
    response = response_to(request_)
    assert response["subtype"] == "error"
    assert response["error"].startswith("Unsupported control request subtype")


def test_a_request_that_cannot_be_read_is_refused() -> None:
    (sent,) = play({"type": "control_request", "request_id": "r1", "request": "?"}).sent
    assert sent["response"]["subtype"] == "error"


def test_what_the_cli_calls_its_session_is_known() -> None:
    played = play(init(session_id="one"), init(session_id="two"))
    assert played.translator.cli_session_id == "two"


def test_a_request_that_is_too_long_to_be_read_is_refused() -> None:
    translator = play("go", init()).translator
    head = b'{"type":"control_request","request_id":"r9","request":{"subtype":"can_use_tool","input":{"content":"xxx'
    note, sent = translator.oversize(head, 10**8)
    assert isinstance(note, Note)
    assert (note.params["length"], translator.unknown["unreadable"]) == (10**8, 1)
    assert isinstance(sent, Send)
    assert json.loads(sent.line)["response"] == {
        "subtype": "error",
        "request_id": "r9",
        "error": "The request could not be read: it is longer than any line may be",
    }
    assert len(translator.oversize(b'{"type":"user","message":"' + b"x" * 100, 10**8)) == 1
