"""One depth up to which JSON is read everywhere, told from the value and from its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.acp.jsonrpc import DEEPEST, is_deep, is_too_deep


def nested(depth: int) -> bytes:
    """Objects and lists by turns, with a wide level in the middle and brackets in a text that count for nothing."""
    opened = b"".join(b'{"a":' if level % 2 else b'["{[",{},' for level in range(depth - 1))
    closed = b"".join(b"}" if level % 2 else b"]" for level in reversed(range(depth - 1)))
    return opened + b"{}" + closed


@pytest.mark.parametrize(
    ("depth", "deep"), [(1, False), (DEEPEST, False), (DEEPEST + 1, True), (700, True), (100_000, True)]
)
def test_json_is_too_deep_beyond_one_level(depth: int, deep: bool) -> None:
    assert is_too_deep(nested(depth)) is deep
    if depth < 900:
        assert is_deep(json.loads(nested(depth))) is deep


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, [[], {}], {"a": [1, {"b": None}]}, [[[]]] * 1000])
def test_ordinary_values_are_not_deep(value: Any) -> None:
    assert not is_deep(value)
    assert not is_too_deep(json.dumps(value).encode())


@pytest.mark.parametrize("data", [b"", b"{" * 500 + b"x", b"}{" * 500, b"\xff" + b"[" * 300, b'"' + b"{" * 500 + b'"'])
def test_what_is_no_json_or_a_text_is_for_others_to_judge(data: bytes) -> None:
    assert not is_too_deep(data)
