"""What the translator asks its driver to do, one small value each.

The driver carries them out in the order in which they come and knows nothing else of the CLI's dialect. So everything
that a line or an answer leads to has to be one of these.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

__all__ = ["Action", "Answered", "Ask", "Ended", "Failure", "Note", "Send", "Update", "Withdraw"]


class Update(Struct, frozen=True):
    """Tell the client: the `update` object of a `session/update`."""

    update: dict[str, Any]


class Ask(Struct, frozen=True):
    """Ask the client. What it answers goes to `Translator.answer` with the same `request_id`."""

    request_id: str
    method: str
    params: dict[str, Any]


class Withdraw(Struct, frozen=True):
    """The CLI does not wait for this answer any more: cancel the request; an answer that still comes is ignored."""

    request_id: str


class Send(Struct, frozen=True):
    """Write a line, without its newline, to the CLI.

    With a `request_id` it is a request of ours; an `Answered` of that id follows, unless the CLI dies.
    """

    line: bytes
    request_id: str | None = None


class Answered(Struct, frozen=True):
    """The CLI answered a request of ours; `error` is its own text when it refused."""

    request_id: str
    response: dict[str, Any]
    error: str | None = None


class Failure(Struct, frozen=True):
    """Why a prompt failed: a JSON-RPC error, and in one word (`kind`) what to do about it."""

    kind: str
    code: int
    message: str
    data: dict[str, Any]


class Ended(Struct, frozen=True):
    """The turn is over: answer the prompt with `response`, or with `failure` if there is one.

    Prompts that were sent while the turn ran were taken into it; `prompts` says how many this answers, oldest first.
    """

    response: dict[str, Any] | None
    failure: Failure | None = None
    prompts: int = 1


class Note(Struct, frozen=True):
    """Something that the protocol has no word for: tell the client by a notification of this extension method."""

    method: str
    params: dict[str, Any]


Action: TypeAlias = Update | Ask | Withdraw | Send | Answered | Ended | Note
