"""Which of the agent's options answers a decision."""

from __future__ import annotations

import pytest

from pilothouse.hub.approvals.approvals import choose_option
from pilothouse.hub.errors import UnknownApproval
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
