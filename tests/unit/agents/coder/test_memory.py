"""The conversation as the model has it: whole after every interruption, and the same after it was stored."""

from __future__ import annotations

import msgspec
import pytest
from pydantic_ai import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import RetryInfo

from pilothouse.agents.coder.compaction import context_tokens, is_due, record, replace_by
from pilothouse.agents.coder.memory import CUT_OFF, dump, load, settled
from pilothouse.agents.commands import Failure


def said(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def asks(*ids: str) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart("read", {"path": "a"}, tool_call_id=one) for one in ids])


def told(*ids: str) -> ModelRequest:
    return ModelRequest(parts=[ToolReturnPart("read", "text", tool_call_id=one) for one in ids])


def shape(messages: list[ModelMessage]) -> list[list[str]]:
    def word(part: object) -> str:
        if isinstance(part, ToolReturnPart):
            return f"{'cut' if part.content == CUT_OFF else 'told'} {part.tool_call_id}"
        return f"asks {part.tool_call_id}" if isinstance(part, ToolCallPart) else type(part).__name__

    return [[word(part) for part in message.parts] for message in messages]


WHOLE = [said("go"), asks("a", "b"), told("a", "b"), ModelResponse(parts=[TextPart("done")])]


def test_an_answer_of_nothing_and_what_was_said_about_it_are_forgotten() -> None:
    again = ModelRequest(parts=[RetryFeedbackPart("Please return text.", retry=RetryInfo(cause="no_output"))])
    nothing = ModelResponse(parts=[])
    answer = ModelResponse(parts=[TextPart("done")])
    assert shape(settled([said("go"), nothing, again, nothing, again])) == [["UserPromptPart"]]
    assert shape(settled([said("go"), nothing, again, answer])) == [["UserPromptPart"], ["TextPart"]]
    thought = ModelResponse(parts=[ThinkingPart("hm")])
    assert shape(settled([said("go"), thought, again, answer])) == [["UserPromptPart"], ["TextPart"]]
    assert shape(settled([said("go"), thought])) == [["UserPromptPart"], ["ThinkingPart"]]


def test_what_is_whole_stays_as_it_is() -> None:
    assert settled(WHOLE) == WHOLE
    assert settled([]) == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([said("go"), asks("a")], [["UserPromptPart"], ["asks a"], ["cut a"]]),
        ([said("go"), asks("a", "b"), told("b")], [["UserPromptPart"], ["asks a", "asks b"], ["cut a", "told b"]]),
        (
            [said("go"), asks("a"), said("next")],
            [["UserPromptPart"], ["asks a"], ["cut a", "UserPromptPart"]],
        ),
        ([said("go"), ModelResponse(parts=[])], [["UserPromptPart"]]),
        ([said("go"), asks("a"), ModelRequest(parts=[])], [["UserPromptPart"], ["asks a"], ["cut a"]]),
    ],
    ids=["no result", "one of two", "a prompt instead", "an empty answer", "an empty request"],
)
def test_every_call_has_a_result_right_behind_it(messages: list[ModelMessage], expected: list[list[str]]) -> None:
    assert shape(settled(messages)) == expected
    assert shape(settled(settled(messages))) == expected


def test_what_is_stored_is_what_is_read() -> None:
    image = ModelRequest(parts=[UserPromptPart(["look", BinaryContent(b"\x00\xff", media_type="image/png")])])
    thought = ModelResponse(parts=[ThinkingPart("hm", signature="s"), TextPart("I see")])
    messages = [image, thought, *WHOLE]
    read = load(dump(messages))
    assert dump(read) == dump(messages)
    assert [type(part) for message in read for part in message.parts] == [
        type(part) for message in messages for part in message.parts
    ]


@pytest.mark.parametrize("raw", [b"{}", b'[{"kind": "x"}]', b"[1]", b"nonsense"])
def test_what_cannot_be_read_is_a_failure_that_says_so(raw: bytes) -> None:
    with pytest.raises(Failure, match="cannot be read"):
        load(msgspec.Raw(raw))


def test_the_record_has_what_was_said_and_cuts_long_results() -> None:
    long = ModelRequest(parts=[ToolReturnPart("read", "x" * 50_000, tool_call_id="a")])
    lines = record([said("go"), asks("a"), long, ModelResponse(parts=[TextPart("done")])])
    assert [line.partition(" ")[0] for line in lines] == ["USER:", "CALL", "RESULT", "AGENT:"]
    assert len(lines[2]) < 3000


def test_tokens_are_those_the_model_told_else_an_estimate() -> None:
    answer = ModelResponse(parts=[TextPart("done")])
    assert context_tokens([said("x" * 400), answer]) == pytest.approx(100, abs=10)
    answer.usage.input_tokens, answer.usage.output_tokens = 900, 50
    assert context_tokens([said("x"), answer]) == 950
    # what was read since is a part of it, all of it
    read = ModelRequest(parts=[ToolReturnPart("read", "x" * 40_000, tool_call_id="a")])
    assert context_tokens([said("x"), answer, read]) == 10_950
    assert context_tokens([said("x"), asks("a"), read]) == pytest.approx(10_000, abs=50)
    assert is_due([said("x"), answer], 1000)
    assert not is_due([said("x"), answer], 2000)
    assert not is_due([], 1)
    assert not is_due(replace_by("short"), 1000)
