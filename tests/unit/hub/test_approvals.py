"""Which option answers a decision, and which rule remembers it."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.hub.approvals import choose_option
from pilothouse.hub.errors import UnknownApproval
from pilothouse.hub.standing import rule_for
from pilothouse.model.policy import decide
from pilothouse.model.records import Option

ALWAYS = Option(option_id="first", name="Always", kind="allow_always")
ONCE = Option(option_id="second", name="Once", kind="allow_once")
NO = Option(option_id="third", name="No", kind="reject_once")


@pytest.mark.parametrize(
    ("options", "approved", "expected"),
    [
        ([ALWAYS, ONCE, NO], True, "second"),
        ([ALWAYS, NO], True, "first"),
        ([ALWAYS, ONCE, NO], False, "third"),
        ([ALWAYS, ONCE], False, None),
        ([NO], True, None),
        ([], True, None),
    ],
)
def test_an_option_is_chosen_by_kind_the_one_that_binds_least(
    options: list[Option], approved: bool, expected: str | None
) -> None:
    option = choose_option(options, approved=approved)
    assert (option.option_id if option else None) == expected


def test_an_option_that_was_not_offered_cannot_be_chosen() -> None:
    assert choose_option([ALWAYS, NO], option_id="first") is ALWAYS
    with pytest.raises(UnknownApproval, match="only first, third"):
        choose_option([ALWAYS, NO], option_id="second")


@pytest.mark.parametrize(
    ("name", "raw", "others"),
    [
        ("Bash", {"command": "make test"}, [{"command": "make"}, {"command": "make test x"}, {"command": "make t"}]),
        (
            "Bash",
            {"command": "sudo make"},
            [{"command": "make"}, {"command": "sudo rm"}, {"command": "sudo make x"}],
        ),
        ("Bash", {"command": "echo 'a*b'"}, [{"command": "echo axb"}, {"command": "echo a*b"}]),
        ("Write", {"file_path": "/w/app/[id].txt"}, [{"file_path": "/w/app/i.txt"}, {"file_path": "/w/app/x.txt"}]),
        ("Write", {"file_path": "/w/a*.txt"}, [{"file_path": "/w/ab.txt"}]),
    ],
)
def test_a_rule_answers_the_same_question_and_no_other(name: str, raw: Any, others: list[Any]) -> None:
    rule = rule_for(name, raw, "allow", "/w")
    assert rule is not None
    assert decide([rule], name, raw, "/w").outcome == "allow"
    for other in others:
        assert decide([rule], name, other, "/w").outcome == "ask", other


@pytest.mark.parametrize("command", ["rm *.pyc", "a && b", "echo $(id)", "make > x", "X=1 make", "a | b", "", "'"])
def test_what_no_rule_answers_safely_is_not_remembered(command: str) -> None:
    assert rule_for("Bash", {"command": command}, "allow", "/w") is None
