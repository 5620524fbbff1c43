"""Tokens, money and the context window, as the CLI counts them."""

from __future__ import annotations

from typing import Any

from .outbox import Outbox
from .reading import count, mapping, number, text
from .wire import Result

__all__ = ["Usage", "turn_usage"]

_PARTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class Usage:
    """How full the context of the main agent is, and what the session has cost."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._used = 0
        self._window = 0
        self._cost: float | None = None
        self._told: tuple[int, int, float | None] | None = None

    def message(self, usage: Any) -> None:
        """The usage of one message of the main agent: all that the model was sent, and what it said."""
        used = sum(count(mapping(usage).get(part)) or 0 for part in _PARTS)
        if used:
            self._used = used

    def shrunk(self, used: int = 0) -> None:
        """The conversation was cleared, or shortened to this much."""
        self._used = used

    def tell(self) -> None:
        """Tell the client if there is something new. Before the first result the size of the window is not known."""
        now = (self._used, self._window, self._cost)
        if not self._window or now == self._told:
            return
        self._told = now
        cost = {"amount": self._cost, "currency": "USD"} if self._cost is not None else None
        self._outbox.update("usage_update", used=self._used, size=self._window, cost=cost)

    def result(self, result: Result, model: str) -> None:
        """A turn ended; its cost is that of the session so far."""
        self._cost = number(result.total_cost_usd) if number(result.total_cost_usd) is not None else self._cost
        windows = {name: count(mapping(each).get("contextWindow")) or 0 for name, each in result.modelUsage.items()}
        names = {text(mapping(each).get("canonicalModel")): name for name, each in result.modelUsage.items()}
        known = windows.get(model) or windows.get(names.get(model, ""))
        self._window = known or self._window or max(windows.values(), default=0)
        self.tell()


def turn_usage(usage: Any) -> dict[str, int] | None:
    """The tokens of a turn, as the answer to its prompt tells them."""
    told = mapping(usage)
    parts = [count(told.get(part)) or 0 for part in _PARTS]
    if not any(parts):
        return None
    sent, read, written, said = parts
    counts = {"totalTokens": sum(parts), "inputTokens": sent, "outputTokens": said}
    thought = count(mapping(told.get("output_tokens_details")).get("thinking_tokens"))
    extra = {"cachedReadTokens": read, "cachedWriteTokens": written, "thoughtTokens": thought}
    return {**counts, **{key: value for key, value in extra.items() if value}}
