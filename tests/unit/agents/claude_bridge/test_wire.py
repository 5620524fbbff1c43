"""Claude Code's lines: read, written back, and what is not known kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp.errors import ValidationError
from pilothouse.agents.claude_bridge import wire

GOLDEN = Path(__file__).parents[3] / "golden" / "claude_lines.jsonl"
SAMPLES = [json.loads(line) for line in GOLDEN.read_text().splitlines()]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["name"])
def test_every_documented_line_is_read_and_written_back(sample: dict[str, Any]) -> None:
    line = wire.read_line(json.dumps(sample["line"]))
    assert isinstance(line, wire.Line), line
    assert json.loads(wire.encode_line(line)) == sample["line"]


def test_lines_are_told_apart_by_type_and_subtype() -> None:
    kinds = [type(wire.read_line(json.dumps(sample["line"]))) for sample in SAMPLES]
    assert kinds == [
        wire.User,
        wire.Init,
        wire.HookResponse,
        wire.Assistant,
        wire.Result,
        wire.ControlRequest,
        wire.ControlResponse,
    ]
    assert type(wire.read_line(b'{"type":"system","subtype":"from_tomorrow"}')) is wire.System


def test_the_order_of_keys_does_not_matter() -> None:
    line = wire.read_line(b'{"duration_ms":1,"session_id":"s","subtype":"success","type":"result"}')
    assert isinstance(line, wire.Result)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"from_tomorrow","x":1}',
        b'{"type":"result"}',
        b'{"type":"assistant","message":"text"}',
        b'{"type":7}',
        b"{}",
    ],
)
def test_what_is_not_known_is_kept_whole(line: bytes) -> None:
    read = wire.read_line(line)
    assert isinstance(read, wire.Unknown)
    assert read.raw == json.loads(line)
    assert read.reason


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"result","subtype":"success","errors":null,"usage":[],"num_turns":"x","is_error":5}',
        b'{"type":"assistant","message":{"role":"assistant","content":[],"id":7,"usage":"?"},"uuid":{}}',
        b'{"type":"system","subtype":"init","tools":null,"slash_commands":"?","cwd":[]}',
        b'{"type":"user","message":{"role":"user","content":[]},"isReplay":"yes","tool_result_meta":{}}',
    ],
)
def test_a_field_that_is_not_what_it_should_be_does_not_cost_the_line(line: bytes) -> None:
    read = wire.read_line(line)
    assert isinstance(read, wire.Line), read
    assert set(json.loads(wire.encode_line(read))) <= {"type", "subtype", "message"}


def test_news_that_have_no_type_of_their_own_keep_everything() -> None:
    raw = {"type": "system", "subtype": "from_tomorrow", "x": [1], "session_id": "s"}
    read = wire.read_line(json.dumps(raw))
    assert isinstance(read, wire.System)
    assert read.fields == raw
    assert json.loads(wire.encode_line(read)) == raw


@pytest.mark.parametrize("line", [b"", b"text", b"42", b"[]", b"\xff", b"[" * 5000])
def test_what_is_no_object_is_refused(line: bytes) -> None:
    with pytest.raises(ValidationError):
        wire.read_line(line)


@pytest.mark.parametrize("cut", [rb"\ud83d", b"\xf0\x9f", rb"\udc00 \ud83d\ud83d"])
def test_a_character_that_was_cut_in_two_does_not_cost_the_line(cut: bytes) -> None:
    read = wire.read_line(b'{"type":"result","subtype":"success","result":"\\\\ud83d \\ud83d\\ude00 %b"}' % cut)
    assert isinstance(read, wire.Result)
    assert (read.result or "").rstrip("\ufffd ") == "\\ud83d \U0001f600"


def test_content_may_be_text_or_blocks_of_any_kind() -> None:
    assert wire.Message(role="user", content="hi").blocks() == [wire.Text(text="hi")]
    blocks = [{"type": "text", "text": "a"}, {"type": "hologram"}, {"type": "tool_use"}, 5]
    assert wire.Message(role="user", content=blocks).blocks() == [
        wire.Text(text="a"),
        {"type": "hologram"},
        {"type": "tool_use"},
    ]
    assert wire.Message(role="user", content=None).blocks() == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"subtype": "success"}, "end_turn"),
        ({"subtype": "cancelled"}, "cancelled"),
        ({"subtype": "max_tokens"}, "max_tokens"),
        ({"subtype": "error_max_turns", "is_error": True}, "max_turn_requests"),
        ({"subtype": "error_max_budget_usd", "is_error": True}, "max_turn_requests"),
        ({"subtype": "success", "stop_reason": "refusal", "is_error": True}, "refusal"),
        ({"subtype": "success", "stop_reason": "max_tokens"}, "max_tokens"),
        ({"subtype": "success", "api_error": "max_output_tokens", "is_error": True}, "max_tokens"),
        ({"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_tools"}, "cancelled"),
        ({"subtype": "success", "is_error": True, "terminal_reason": "api_error"}, None),
        ({"subtype": "error_during_execution", "is_error": True}, None),
    ],
)
def test_a_result_says_why_the_turn_ended(fields: dict[str, Any], expected: str | None) -> None:
    assert wire.stop_reason(wire.Result(**fields)) == expected


def test_a_prompt_is_a_user_line() -> None:
    assert json.loads(wire.user_line("prompt text")) == SAMPLES[0]["line"]
