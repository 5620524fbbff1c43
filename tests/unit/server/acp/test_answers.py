"""Errors in the words of ACP: what an editor that shows only the message tells its user."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.acp.errors import RequestError
from pilothouse.hub.errors import AgentFailed, IllegalCommand, UnfitContent
from pilothouse.hub.session.prompt_queue import TurnResult
from pilothouse.model.errors import ACPError
from pilothouse.server.acp.answers import Ending, prompt_answer, request_error


def failed(code: str, message: str, details: Any = None, agent_code: str | None = None) -> RequestError:
    error = ACPError(code=code, message=message, recoverable=True, details=details, agent_code=agent_code)
    with pytest.raises(RequestError) as caught:
        prompt_answer(TurnResult("t", "error", 7, message), Ending(None, error))
    return caught.value


@pytest.mark.parametrize(
    ("kind", "status", "shown"),
    [
        ("auth_required", 401, "Not logged in (401): API Error"),
        ("billing", 402, "Billing problem (402): API Error"),
        ("rate_limit", 429, "Rate limit reached (429): API Error"),
        ("overloaded", 529, "The model is overloaded (529): API Error"),
        ("invalid_request", 400, "The model's server refused the request (400): API Error"),
        ("connection", None, "No connection to the model: API Error"),
        ("agent_error", None, "API Error"),
        (["odd"], "401", "API Error"),
        (None, None, "API Error"),
    ],
)
def test_the_kind_of_an_error_is_in_its_message(kind: Any, status: Any, shown: str) -> None:
    error = failed("agent_error", "API Error", {"errorKind": kind, "status": status}, "-32603")
    assert (error.code, error.message) == (-32603, shown)
    assert error.data["errorKind" if isinstance(kind, str) else "code"] == (
        kind if isinstance(kind, str) else "agent_error"
    )


def test_the_kind_is_told_once_and_also_where_only_our_code_tells_it() -> None:
    twice = failed("agent_error", "The model is overloaded, says the agent", {"errorKind": "overloaded"})
    assert twice.message == "The model is overloaded, says the agent"
    limited = failed("rate_limited", "Slow down", None, "429")
    assert (limited.message, limited.data["errorKind"]) == ("Rate limit reached: Slow down", "rate_limit")
    login = failed("auth_required", "Authentication required: run `x login`", {}, "-32000")
    assert (login.code, login.message) == (-32603, "Not logged in: Authentication required: run `x login`")


@pytest.mark.parametrize(
    ("details", "shown"),
    [
        ({"details": "API key is missing"}, "Internal error: API key is missing"),
        ({"message": "API key is missing"}, "Internal error: API key is missing"),
        ("API key is missing", "Internal error: API key is missing"),
        ({"details": {"deep": 1}}, "Internal error"),
        (["odd"], "Internal error"),
        (None, "Internal error"),
    ],
)
def test_a_message_that_says_nothing_is_given_what_came_with_it(details: Any, shown: str) -> None:
    assert failed("agent_error", "Internal error", details, "-32603").message == shown


def test_a_dead_agents_last_words_are_in_the_message() -> None:
    error = failed(
        "agent_died", "The agent ended with exit code 3.", {"exitCode": 3, "stderrTail": "x" * 999 + "end\n"}
    )
    assert error.message.startswith("The agent ended with exit code 3. It said: x")
    assert error.message.endswith("xend")
    assert len(error.message) < 400
    assert error.data["details"]["exitCode"] == 3
    silent = failed("agent_died", "The agent was killed or vanished.", {"exitCode": None, "stderrTail": " \n"})
    assert silent.message == "The agent was killed or vanished."


def test_a_refusal_has_its_reason_in_the_message_and_is_not_told_twice() -> None:
    for exc, code in ((AgentFailed("x broke"), -32603), (IllegalCommand("no"), -32600), (UnfitContent("no"), -32602)):
        refusal = request_error(exc)
        assert refusal is not None
        assert (refusal.code, refusal.message.endswith(f": {exc}"), refusal.data) == (code, True, {"details": str(exc)})
        assert str(refusal) == refusal.message
    assert request_error(KeyError("a defect")) is None
