"""What is wrong with a body or a query is said with the name of the field."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec import field

from pilothouse.model.errors import ValidationError
from pilothouse.server.http.operations import Body, Query, checked


class Part(Body):
    deep_name: int


class Whole(Body):
    first_name: str
    choice: Literal["one", "two"] | None = None
    parts: list[Part] = field(default_factory=list)


class Asked(Query):
    status: Literal["idle", "running"] | None = None


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        ({}, "firstName", "this field is needed"),
        ({"firstName": "a", "foo": 1}, "foo", "there is no such field"),
        ({"firstName": "a", "parts": [{}]}, "parts[0].deepName", "this field is needed"),
        ({"firstName": "a", "parts": [{"deepName": 1, "b`c": 2}]}, "parts[0].b`c", "there is no such field"),
        ({"firstName": 1}, "firstName", "expected `str`, got `int`"),
        ({"firstName": "a", "choice": "three"}, "choice", "invalid enum value 'three', expected one of: one, two"),
        ([], "body", "expected `object`, got `array`"),
    ],
)
def test_a_wrong_body_is_told_by_its_field(value: Any, field: str, reason: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        checked(value, Whole)
    assert (wrong.value.path, wrong.value.reason) == (field, reason)


def test_a_wrong_word_of_a_query_is_told_with_the_right_ones() -> None:
    with pytest.raises(ValidationError, match="one of: idle, running") as wrong:
        checked({"status": "asleep"}, Asked, strict=False, whole="query")
    assert wrong.value.path == "status"
