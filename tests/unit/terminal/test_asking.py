"""What a typed line decides, and what the fields of a form take."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.model.events import ApprovalRequestedEvent
from pilothouse.model.records import Option
from pilothouse.terminal.asking import Field, Verdict, fields_of, read_verdict

ASKED = ApprovalRequestedEvent(
    seq=1,
    session_id="s",
    timestamp="",
    request_id="r",
    tool_call_id="t",
    tool_name="Bash",
    tool_input={},
    description="",
    risk_level="low",
    options=[
        Option(option_id="always", name="Always", kind="allow_always"),
        Option(option_id="no", name="No", kind="reject_once"),
    ],
)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("a", Verdict(approved=True)),
        (" yes ", Verdict(approved=True)),
        ("A", Verdict(approved=True, remember="session")),
        ("P", Verdict(approved=True, remember="project")),
        ("d", Verdict(approved=False)),
        ("N", Verdict(approved=False)),
        ("d use the other file", Verdict(approved=False, reason="use the other file")),
        ("1", Verdict(approved=True, remember="session")),  # the agent's own "always" is not sent
        ("2 because", Verdict(approved=False, option_id="no", reason="because")),
    ],
)
def test_a_line_decides(line: str, verdict: Verdict) -> None:
    assert read_verdict(line, ASKED) == verdict


@pytest.mark.parametrize("line", ["", " ", "allow it maybe", "a little", "A b", "x", "0", "3", "-1", "1.5", "²"])
def test_a_line_that_is_not_clear_decides_nothing(line: str) -> None:
    assert read_verdict(line, ASKED) is None


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "boolean"}, "y", True),
        ({"type": "boolean"}, "NO", False),
        ({"type": "integer", "minimum": 1}, "7", 7),
        ({"type": "number"}, "0.5", 0.5),
        ({"type": "string"}, "any text", "any text"),
        ({"type": "string", "enum": ["red", "green", "redder"]}, "red", "red"),
        ({"type": "string", "oneOf": [{"const": "a1"}, {"const": "b2"}]}, "2", "b2"),
        ({"type": "array", "items": {"anyOf": [{"const": "x"}, {"const": "y"}]}}, "x, y", ["x", "y"]),
        ({"type": "array"}, "p q", ["p", "q"]),
        ({"type": "array", "items": {"enum": ["Use SQLite", "Use files"]}}, "use sqlite", ["Use SQLite"]),
        (
            {"type": "array", "items": {"enum": ["Use SQLite", "Use files"]}},
            "use files, 1",
            ["Use files", "Use SQLite"],
        ),
        (None, "text", "text"),
        ({"type": ["odd"], "enum": 5}, "text", "text"),
    ],
)
def test_a_field_takes_what_its_schema_says(schema: Any, typed: str, value: Any) -> None:
    assert Field("f", schema, required=True).parse(typed) == value


@pytest.mark.parametrize(
    ("schema", "typed"),
    [
        ({"type": "boolean"}, "maybe"),
        ({"type": "integer"}, "1.5"),
        ({"type": "integer", "maximum": 3}, "4"),
        ({"type": "number"}, "nan"),
        ({"type": "string", "enum": ["red", "rot"]}, "r"),
        ({"type": "array", "items": {"enum": ["x"]}}, "x z"),
    ],
)
def test_a_field_refuses_the_rest_and_says_what_it_wants(schema: Any, typed: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Field("f", schema, required=True).parse(typed)


def test_a_form_may_be_any_json() -> None:
    assert fields_of(None) == fields_of([]) == fields_of({"properties": 5}) == []
    (field,) = fields_of({"properties": {"n\x1b": {"title": 5, "default": ["a", 1]}}, "required": "n"})
    assert (field.name, field.required, field.question) == ("n\x1b", False, "n⟨U+001B⟩ [a, 1]")
