"""What hubs ask of an editor: whom an answer reaches, and what becomes of terminals when their hub is gone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.acp.jsonrpc import decode_message
from pilothouse.acp.peer import Response, Unmatched
from pilothouse.editor.requests import Questions

SESSION = "ses_1"


class Stage:
    """An editor that is asked, and the hub that asks it."""

    def __init__(self) -> None:
        self.questions = Questions()

    def ask(self, number: int, method: str, **params: Any) -> int:
        """The hub asks; the id under which the editor knows it."""
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"sessionId": SESSION, **params}}
        [frame] = read(self.questions.ask(decode_message(json.dumps(message))))
        assert frame["params"] == message["params"]
        return int(frame["id"])

    def answer(self, number: int, **outcome: Any) -> tuple[list[Any], list[Any]]:
        """The editor answers; what goes to it, and what to the hub."""
        got = self.questions.receive(json.dumps({"jsonrpc": "2.0", "id": number, **outcome}).encode())
        assert isinstance(got, Response)
        out, up = self.questions.answered(got)
        return read(out), read(up)

    def opens_terminal(self, name: str) -> None:
        self.answer(self.ask(7, "terminal/create", command="make"), result={"terminalId": name})

    def leave(self) -> list[Any]:
        return read(self.questions.leave())


def read(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def test_terminals_of_a_hub_that_is_gone_are_released_once() -> None:
    stage = Stage()
    stage.opens_terminal("t1")
    stage.opens_terminal("t2")
    stage.answer(stage.ask(8, "terminal/release", terminalId="t1"), result={})
    released = stage.leave()
    assert [one["method"] for one in released] == ["terminal/release"]
    assert released[0]["params"] == {"sessionId": SESSION, "terminalId": "t2"}
    assert stage.answer(released[0]["id"], result={}) == ([], []), "the next hub has not asked for it"
    assert stage.leave() == []


@pytest.mark.parametrize("by", ["hub", "end"])
def test_a_terminal_that_comes_after_nobody_wants_it_is_released(by: str) -> None:
    stage = Stage()
    number = stage.ask(7, "terminal/create", command="make")
    withdrawn = stage.leave() if by == "end" else read(stage.questions.withdraw(7))
    assert [(one["method"], one["params"]) for one in withdrawn] == [("$/cancel_request", {"requestId": number})]
    other = stage.ask(7, "fs/read_text_file", path="/x")  # the next hub counts anew
    out, up = stage.answer(number, result={"terminalId": "t1"})
    assert [(one["method"], one["params"]["terminalId"]) for one in out] == [("terminal/release", "t1")]
    assert up == []
    assert stage.answer(other, result={"content": "x"})[1] == [{"jsonrpc": "2.0", "id": 7, "result": {"content": "x"}}]


def test_a_terminal_that_was_withdrawn_and_not_made_needs_nothing() -> None:
    stage = Stage()
    number = stage.ask(7, "terminal/create", command="make")
    stage.leave()
    assert stage.answer(number, error={"code": -32800, "message": "cancelled"}) == ([], [])
    assert stage.leave() == []


def test_other_late_answers_go_nowhere() -> None:
    stage = Stage()
    number = stage.ask(7, "session/request_permission", options=[])
    stage.leave()
    late = stage.questions.receive(json.dumps({"jsonrpc": "2.0", "id": number, "result": {}}).encode())
    assert isinstance(late, Unmatched)
    assert late.late


@pytest.mark.parametrize("odd", [{"terminalId": 5}, {}, [], None, "t1"])
def test_an_odd_answer_is_passed_on_and_no_terminal(odd: Any) -> None:
    stage = Stage()
    number = stage.ask(7, "terminal/create", command="make")
    assert stage.answer(number, result=odd) == ([], [{"jsonrpc": "2.0", "id": 7, "result": odd}])
    assert stage.leave() == []
