"""The tree in the docstring is the tree in the code, and messages are for people."""

from __future__ import annotations

import inspect
import re

from pilothouse import log
from pilothouse.log import errors


def test_the_tree_that_is_drawn_is_the_one_that_is_raised() -> None:
    drawn: dict[str, str | None] = {"LogError": None}
    branch = ["LogError"]
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"([│ ]*)[├└]── (\w+)", line)
        if found:
            depth = len(found[1]) // 4 + 1
            branch = [*branch[:depth], found[2]]
            drawn[found[2]] = branch[depth - 1]
    classes = {name: cls for name, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, Exception)}
    actual = {name: None if name == "LogError" else cls.__bases__[0].__name__ for name, cls in classes.items()}
    assert drawn == actual


def test_everything_announced_can_be_imported_and_every_error_is_announced() -> None:
    assert [name for name in log.__all__ if not hasattr(log, name)] == []
    assert {name for name in vars(errors) if name.startswith(("Log", "Unknown", "Record", "Cursor"))} <= set(
        log.__all__
    )


def test_messages_say_what_was_expected_and_what_to_do() -> None:
    assert str(errors.LogConflict("s", 3, 5)).startswith("session 's' is at seq 5, the batch expected 3; nothing")
    assert "start from 0" in str(errors.CursorAhead(9, 3))
    assert "'a', 'b'" in str(errors.UnknownRecord("turns", ("a", "b")))
    assert "already in rules" in str(errors.RecordExists("rules", ("r",)))
    assert "somebody was first" in str(errors.RecordChanged("x"))
    assert "the log" in str(errors.LogFull())
