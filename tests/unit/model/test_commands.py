"""Commands: what is read, what is refused, and by which name."""

from __future__ import annotations

import json
import random
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from pilothouse.acp.schema import EmbeddedResourceContentBlock, ImageContentBlock, TextContentBlock
from pilothouse.model.commands import (
    COMMANDS,
    AnswerQuestionCommand,
    ApproveToolCallCommand,
    CancelCommand,
    Command,
    DenyToolCallCommand,
    ImageAttachment,
    ResumeCommand,
    SendMessageCommand,
    SetConfigOptionCommand,
    SetPermissionPolicyCommand,
    encode_command,
    parse_command,
)
from pilothouse.model.errors import ValidationError

IDS = {"requestId": "req-1", "toolCallId": "tc-1"}
POLICY = {"autoApprove": {"reads": True, "writes": ["src/**/*.ts"], "commands": ["npm test"], "searches": True}}
VALID: dict[str, dict[str, Any]] = {
    "send_message": {
        "message": "Fix the login bug",
        "attachments": [{"type": "image", "url": "https://example.org/a.png", "mimeType": "image/png"}],
        "clientRequestId": "c-1",
    },
    "approve_tool_call": {**IDS, "optionId": "allow", "remember": "session"},
    "deny_tool_call": {**IDS, "reason": "Too risky", "optionId": "reject", "remember": "everywhere"},
    "cancel": {},
    "pause": {},
    "resume": {"prompt": "Continue"},
    "terminate": {},
    "answer_question": {"questionId": "q-1", "answer": {"database": "PostgreSQL", "size": 3}},
    "set_permission_policy": {"policy": POLICY},
    "edit_queued": {"promptId": "p-1", "message": [{"type": "text", "text": "Fix the other bug"}]},
    "cancel_queued": {"promptId": "p-1"},
    "move_queued": {"promptId": "p-1", "position": 0},
    "set_mode": {"modeId": "plan"},
    "set_model": {"modelId": "opus"},
    "set_config_option": {"optionId": "thinking", "value": True},
    "rename": {"title": "The login bug"},
}
ALL = [{"command": name, **fields} for name, fields in VALID.items()]


def refused(command: Any) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        parse_command(command)
    return caught.value


# -- reading and writing ------------------------------------------------------------------------------------------


def test_the_nine_commands_of_the_stream_come_first_and_ours_follow() -> None:
    assert list(COMMANDS)[:9] == [
        "send_message",
        "approve_tool_call",
        "deny_tool_call",
        "cancel",
        "pause",
        "resume",
        "terminate",
        "answer_question",
        "set_permission_policy",
    ]
    assert set(COMMANDS) == set(VALID)
    assert all(cls.command == name for name, cls in COMMANDS.items())


@pytest.mark.parametrize("command", ALL, ids=VALID)
def test_a_command_survives_the_wire(command: dict[str, Any]) -> None:
    parsed = parse_command(command)
    assert type(parsed) is COMMANDS[command["command"]]
    assert json.loads(encode_command(parsed)) == command
    data = json.dumps(command)
    assert parse_command(data) == parse_command(data.encode()) == parse_command(encode_command(parsed)) == parsed
    assert parse_command(MappingProxyType(command)) == parsed


@pytest.mark.parametrize("command", ALL, ids=VALID)
def test_only_what_a_command_requires_is_enough(command: dict[str, Any]) -> None:
    cls = COMMANDS[command["command"]]
    required = {item.encode_name for item in msgspec.structs.fields(cls) if item.required}
    smallest = {key: value for key, value in command.items() if key in {"command", *required}}
    assert json.loads(encode_command(parse_command(smallest))) == smallest


def test_a_message_is_text_or_blocks_and_may_be_a_picture_only() -> None:
    assert parse_command({"command": "send_message", "message": "hi"}) == SendMessageCommand(message="hi")
    blocks = [
        {"type": "text", "text": "look"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "a"}},
    ]
    parsed = parse_command({"command": "send_message", "message": blocks})
    assert isinstance(parsed, SendMessageCommand)
    kinds = (TextContentBlock, ImageContentBlock, EmbeddedResourceContentBlock)
    assert [type(block) for block in parsed.message] == list(kinds)
    only = {"command": "send_message", "message": "", "attachments": [{"type": "image", "url": "data:,x"}]}
    assert parse_command(only) == SendMessageCommand(message="", attachments=[ImageAttachment(url="data:,x")])
    assert parse_command({"command": "send_message", "message": blocks[1:2]})


@pytest.mark.parametrize("answer", ["Use PostgreSQL", "", ["a", "b"], {"x": [1]}, None])
def test_an_answer_is_text_a_choice_of_several_a_form_or_a_refusal(answer: Any) -> None:
    parsed = parse_command({"command": "answer_question", "questionId": "q", "answer": answer})
    assert parsed == AnswerQuestionCommand(question_id="q", answer=answer)


def test_null_stands_for_an_optional_field_left_out() -> None:
    assert parse_command({"command": "resume", "prompt": None}) == ResumeCommand()
    command = {"command": "deny_tool_call", **IDS, "reason": None}
    assert parse_command(command) == DenyToolCallCommand(request_id="req-1", tool_call_id="tc-1")


def test_a_policy_is_typed_and_written_as_it_came() -> None:
    parsed = parse_command({"command": "set_permission_policy", "policy": POLICY})
    assert isinstance(parsed, SetPermissionPolicyCommand)
    assert json.loads(encode_command(parsed))["policy"] == POLICY


# -- refusing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sned_message", "", "SEND_MESSAGE", 5, None, ["cancel"], {"cancel": 1}])
def test_an_unknown_command_is_told_the_known_ones(name: Any) -> None:
    error = refused({"command": name})
    assert error.path == "command"
    assert all(known in error.reason for known in COMMANDS)


def test_a_command_without_a_name_is_told_the_known_ones() -> None:
    error = refused({"message": "hi"})
    assert error.path == "command"
    assert "got nothing" in error.reason


@pytest.mark.parametrize("command", ALL, ids=VALID)
def test_a_field_that_a_command_does_not_have_is_refused_by_name(command: dict[str, Any]) -> None:
    error = refused({**command, "reson": "typo"})
    assert error.path == "reson"
    assert f"`{command['command']}` has no such field" in error.reason
    assert all(key in error.reason for key in command if key != "command")


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (command, item.encode_name)
        for command in ALL
        for item in msgspec.structs.fields(COMMANDS[command["command"]])
        if item.required
    ],
    ids=lambda value: value if isinstance(value, str) else value["command"],
)
def test_a_missing_field_is_refused_by_name(command: dict[str, Any], field: str) -> None:
    error = refused({key: value for key, value in command.items() if key != field})
    assert error.path == field
    assert "got nothing" in error.reason


SEND = {"command": "send_message", "message": "hi"}
PICTURE = {"type": "image", "url": "u"}
WRONG = {
    "empty message": ({**SEND, "message": ""}, "message", "not empty, got ''"),
    "blank message": ({**SEND, "message": " \n\t"}, "message", "not empty"),
    "no blocks": ({**SEND, "message": []}, "message", "not empty"),
    "blocks without text": ({**SEND, "message": [{"type": "text", "text": " "}]}, "message", "not empty"),
    "empty message, no attachments": ({**SEND, "message": "", "attachments": []}, "message", "not empty"),
    "empty queued message": ({"command": "edit_queued", "promptId": "p", "message": ""}, "message", "not empty"),
    "message of a wrong type": ({**SEND, "message": 5}, "message", "got `int`"),
    "block without text": ({**SEND, "message": [{"type": "text"}]}, "message[0].text", "got nothing"),
    "block of an unknown type": ({**SEND, "message": [{"type": "smell"}]}, "message[0].type", "'text' or"),
    "block that is no object": ({**SEND, "message": [5]}, "message[0]", "got `int`"),
    "deep in a block": (
        {**SEND, "message": [{"type": "text", "text": "a"}, {"type": "resource", "resource": {"uri": 3, "text": ""}}]},
        "message[1].resource.uri",
        "`str`, got `int`",
    ),
    "attachments that are no list": ({**SEND, "attachments": PICTURE}, "attachments", "got `object`"),
    "attachment that is no object": ({**SEND, "attachments": ["u"]}, "attachments[0]", "got `str`"),
    "attachment without address": ({**SEND, "attachments": [{"type": "image"}]}, "attachments[0].url", "got nothing"),
    "attachment with an empty address": (
        {**SEND, "attachments": [PICTURE, {**PICTURE, "url": ""}]},
        "attachments[1].url",
        "not empty, got ''",
    ),
    "attachment with a wrong address": ({**SEND, "attachments": [{**PICTURE, "url": 5}]}, "attachments[0].url", "int"),
    "attachment without a type": ({**SEND, "attachments": [{"url": "u"}]}, "attachments[0].type", "got nothing"),
    "attachment of another type": (
        {**SEND, "attachments": [{**PICTURE, "type": "video"}]},
        "attachments[0].type",
        "'image', got 'video'",
    ),
    "attachment with a misspelt field": (
        {**SEND, "attachments": [{**PICTURE, "mimetype": "x"}]},
        "attachments[0].mimetype",
        "no such field",
    ),
    "empty request id": ({"command": "approve_tool_call", **IDS, "requestId": ""}, "requestId", "not empty, got ''"),
    "empty tool call id": ({"command": "deny_tool_call", **IDS, "toolCallId": ""}, "toolCallId", "not empty"),
    "empty question id": ({"command": "answer_question", "questionId": "", "answer": ""}, "questionId", "not empty"),
    "empty client request id": ({**SEND, "clientRequestId": ""}, "clientRequestId", "not empty"),
    "empty prompt": ({"command": "resume", "prompt": ""}, "prompt", "not empty"),
    "empty title": ({"command": "rename", "title": ""}, "title", "not empty"),
    "reason of a wrong type": ({"command": "deny_tool_call", **IDS, "reason": ["x"]}, "reason", "got `array`"),
    "unknown reach": (
        {"command": "approve_tool_call", **IDS, "remember": "forever"},
        "remember",
        "'once' or 'session' or 'project' or 'everywhere', got 'forever'",
    ),
    "answer of a wrong type": ({"command": "answer_question", "questionId": "q", "answer": 5}, "answer", "got `int`"),
    "one answer of a wrong type": (
        {"command": "answer_question", "questionId": "q", "answer": ["a", 5]},
        "answer[1]",
        "`str`, got `int`",
    ),
    "place before the first": ({"command": "move_queued", "promptId": "p", "position": -1}, "position", "got -1"),
    "place that is no whole number": (
        {"command": "move_queued", "promptId": "p", "position": 1.5},
        "position",
        "`int`, got `float`",
    ),
    "value of a wrong type": ({"command": "set_config_option", "optionId": "o", "value": 1}, "value", "got `int`"),
}


@pytest.mark.parametrize(("command", "path", "says"), WRONG.values(), ids=WRONG)
def test_a_wrong_field_is_named_with_what_was_expected_and_what_came(command: Any, path: str, says: str) -> None:
    error = refused(command)
    assert error.path == path
    assert says in error.reason
    assert refused(json.dumps(command)).path == path


POLICIES = {
    "no object": ("yes", "policy"),
    "a command that is no text": ({"autoApprove": {"commands": ["a", "b", 5]}}, "policy.autoApprove.commands[2]"),
    "writes of a wrong type": ({"autoApprove": {"writes": 5}}, "policy.autoApprove.writes"),
    "reads of a wrong type": ({"autoApprove": {"reads": "yes"}}, "policy.autoApprove.reads"),
    "a misspelt part": ({"autoAprove": {}}, "policy.autoAprove"),
    "a misspelt kind": ({"autoApprove": {"read": True}}, "policy.autoApprove.read"),
}


@pytest.mark.parametrize(("policy", "path"), POLICIES.values(), ids=POLICIES)
def test_a_wrong_policy_is_refused_with_the_name_of_its_part(policy: Any, path: str) -> None:
    assert refused({"command": "set_permission_policy", "policy": policy}).path == path


NOT_COMMANDS = {
    "nothing": b"",
    "no json": "{nope",
    "a list": [{"command": "cancel"}],
    "null": None,
    "a number": 5,
    "json that is no object": "[]",
    "broken unicode": b'{"command":"cancel\xff"}',
    "half a surrogate": {"command": "rename", "title": "\ud800"},
    "half a surrogate as a name": {"command": "cancel", "\ud800": 1},
    "half a surrogate in json": b'{"command":"rename","title":"\\ud800"}',
    "half a surrogate in text": '{"command":"rename","title":"\ud800"}',
    "a number without end": b'{"command":"move_queued","promptId":"p","position":' + b"9" * 6000 + b"}",
    "too deep": b'{"command":"answer_question","questionId":"q","answer":' + b"[" * 100_000,
    "a value that is no json": {"command": "rename", "title": object()},
    "a key that is no text": {"command": "cancel", ("a", "b"): 1},
}


@pytest.mark.parametrize("data", NOT_COMMANDS.values(), ids=NOT_COMMANDS)
def test_what_is_no_command_is_refused_and_nothing_else_happens(data: Any) -> None:
    str(refused(data)).encode()


def test_a_mapping_that_holds_itself_is_refused() -> None:
    command: dict[str, Any] = {"command": "answer_question", "questionId": "q"}
    command["answer"] = command
    refused(command)


def test_an_error_does_not_repeat_a_long_value() -> None:
    error = refused({"command": "approve_tool_call", **IDS, "remember": "x" * 10_000})
    assert len(str(error)) < 300
    assert len(str(refused({"command": "y" * 10_000}))) < 600


# -- anything at all ----------------------------------------------------------------------------------------------

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    float("inf"),
    float("nan"),
    "",
    " ",
    "x",
    "\ud800",
    "\x00",
    "é🟠",
    [],
    [[]],
    {},
    {"type": "text"},
    {"": {}},
    {5: 6},
    object(),
    b"\xff",
]


def mutated(rng: random.Random, value: Any) -> Any:
    """The value with something in it exchanged, dropped, doubled or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        act = rng.randrange(4)
        if act == 0:
            return rest
        if act == 1:
            return {**value, rng.choice(["x", f"{key}s", str(key).upper(), "type", "command", ""]): rng.choice(ODD)}
        return {**rest, key: mutated(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        if rng.random() < 0.3:
            return [*value, rng.choice(ODD)]
        return [*value[:at], mutated(rng, value[at]), *value[at + 1 :]]
    return rng.choice(ODD)


def tried(data: Any) -> Command | None:
    try:
        command = parse_command(data)
    except ValidationError as exc:
        str(exc).encode()  # an error must be fit to be sent
        return None
    assert parse_command(encode_command(command)) == command
    return command


def test_mutated_commands_are_read_or_refused_and_nothing_else() -> None:
    rng = random.Random(20260101)
    read = 0
    for _ in range(4000):
        value: Any = rng.choice(ALL)
        for _ in range(rng.randint(1, 3)):
            value = mutated(rng, value)
        read += tried(value) is not None
    assert 100 < read < 3000


def test_mutated_bytes_are_read_or_refused_and_nothing_else() -> None:
    rng = random.Random(20260102)
    for _ in range(4000):
        data = bytearray(json.dumps(rng.choice(ALL)).encode())
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 3)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 3)))
        tried(bytes(data))


def test_the_structs_can_be_made_by_hand() -> None:
    made = [
        CancelCommand(),
        ApproveToolCallCommand(request_id="r", tool_call_id="t", remember="once"),
        SetConfigOptionCommand(option_id="o", value=False),
    ]
    assert [parse_command(encode_command(command)) for command in made] == made
