"""Tokens, money, context and limits, as far as agents tell of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...model.events import ContextWindowEvent, CostUpdateEvent, RateLimitEvent, TokenUsageEvent
from ...model.records import CostBreakdown, TokenUsage
from .stream import Stream

__all__ = ["Resources", "rate_limit"]

_LIMITED = re.compile(r"rate.?limit|usage.limit|too many requests|quota exceeded", re.IGNORECASE)
_COUNTS = {
    "input_tokens": ("inputTokens", "input_tokens"),
    "output_tokens": ("outputTokens", "output_tokens"),
    "cache_read_tokens": ("cachedReadTokens", "cachedInputTokens"),
    "cache_write_tokens": ("cachedWriteTokens", "cacheWriteInputTokens"),
    "thought_tokens": ("thoughtTokens", "reasoningOutputTokens"),
}


class Resources:
    """The sums of a session."""

    def __init__(self, stream: Stream, usage: TokenUsage | None = None, cost: CostBreakdown | None = None) -> None:
        self._stream = stream
        self._usage = usage or TokenUsage(input_tokens=0, output_tokens=0)
        self._cost = cost

    def context(self, used: int, size: int) -> None:
        percentage = round(100 * used / size, 2) if size else 0.0
        self._stream.emit(ContextWindowEvent, used=used, limit=size, percentage=percentage)

    def cost(self, amount: float, currency: str) -> None:
        """The session's cost so far."""
        before = self._cost.total if self._cost and self._cost.currency == currency else 0.0
        if amount == before:
            return
        self._cost = CostBreakdown(total=amount, currency=currency)
        delta = CostBreakdown(total=round(amount - before, 10), currency=currency)
        self._stream.emit(CostUpdateEvent, delta=delta, cumulative=self._cost)

    def answer(self, result: Mapping[str, Any]) -> None:
        """The tokens of one turn, from its result."""
        delta = _usage(result)
        if delta is not None:
            self._usage = _sum(self._usage, delta)
            self._stream.emit(TokenUsageEvent, delta=delta, cumulative=self._usage)


def _usage(result: Mapping[str, Any]) -> TokenUsage | None:
    meta = result.get("_meta")
    quota = meta.get("quota") if isinstance(meta, Mapping) else None
    counts = result.get("usage") or (quota.get("token_count") if isinstance(quota, Mapping) else None)
    if not isinstance(counts, Mapping):
        return None
    found = {name: _count(counts, keys) for name, keys in _COUNTS.items()}
    if not any(found.values()):
        return None
    return TokenUsage(
        input_tokens=found["input_tokens"] or 0,
        output_tokens=found["output_tokens"] or 0,
        cache_read_tokens=found["cache_read_tokens"],
        cache_write_tokens=found["cache_write_tokens"],
        thought_tokens=found["thought_tokens"],
    )


def _count(counts: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = counts.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None


def _sum(one: TokenUsage, other: TokenUsage) -> TokenUsage:
    def add(name: str) -> int | None:
        values = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
        return sum(values) if values else None

    return TokenUsage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cache_read_tokens=add("cache_read_tokens"),
        cache_write_tokens=add("cache_write_tokens"),
        thought_tokens=add("thought_tokens"),
    )


def rate_limit(stream: Stream, code: Any, message: str, data: Any) -> bool:
    """Tell of a limit if that is what an error or a notice is about."""
    details = data if isinstance(data, Mapping) else {}
    kind = details.get("errorKind")
    if code != 429 and kind != "rate_limit" and not _LIMITED.search(message):
        return False
    seconds = _number(details, "retryAfter", "retry_after")
    if seconds is None:
        seconds = (_number(details, "retryAfterMs", "retry_after_ms", "retry_delay_ms") or 0) / 1000
    limit = details.get("limit")
    name = limit if isinstance(limit, str) else "requests"
    stream.emit(RateLimitEvent, retry_after=seconds, limit=name, message=message or None)
    return True


def _number(details: Mapping[str, Any], *keys: str) -> float | None:
    for key in keys:
        value = details.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12:
            return value
    return None
