"""One `session/update` at a time: decoded once, and handed to the follower of its kind.

Tokens, money, context and limits are read here as well, as far as agents report them.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ...acp import schema
from ...acp.jsonrpc import TOO_DEEP, is_deep, is_too_deep
from ...acp.lenient import Repair, UnknownUpdate, dec_hook, repair
from ...acp.model import encode, to_wire
from ...model.errors import ValidationError
from ...model.events import (
    DERIVED,
    ACPEvent,
    ContextWindowEvent,
    CostUpdateEvent,
    CustomEvent,
    Event,
    NotificationEvent,
    PlanModeEvent,
    RateLimitEvent,
    SubAgentCompletedEvent,
    SubAgentProgressEvent,
    SubAgentSpawnedEvent,
    TokenUsageEvent,
)
from ...model.records import CostBreakdown, TokenUsage
from ...model.session import sound
from ...model.tools import is_plan_mode
from .call import parent_of
from .calls import Calls
from .content import UNDECODABLE, decode_pieces
from .speech import CHUNKS, Speech
from .stream import Stream

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


UNREADABLE = 4000
"""Characters of an unreadable line that its diagnostic keeps."""

_UNICODE = re.compile(rb"\\u")

FEW, MORE = 8, 4
"""Pieces of a message that are decoded together at first, and how many times as many after each time that all were."""

LEVELS = ("info", "warning", "error", "success")

_decode: Callable[[bytes], Any] = msgspec.json.Decoder(schema.SessionUpdate, dec_hook=dec_hook).decode
_decode_chunks: Callable[[bytes], list[Any]] = msgspec.json.Decoder(
    list[schema.AgentMessageChunk | schema.UserMessageChunk | schema.AgentThoughtChunk], dec_hook=dec_hook
).decode


class Updates:
    """What updates alone tell of a session; turns and questions are the translator's."""

    def __init__(
        self,
        stream: Stream,
        *,
        workspace: str | None,
        shells: tuple[str, ...],
        usage: TokenUsage | None,
        cost: CostBreakdown | None,
        prefix: str,
        on_repair: Callable[[Repair], None] | None,
    ) -> None:
        self._stream = stream
        self.speech = Speech(stream, prefix)
        self.calls = Calls(stream, workspace, shells)
        self.resources = Resources(stream, usage, cost)
        self._sub_agents: set[str] = set()
        self._on_repair = on_repair
        self._source = b""

    def take(self, update: Any, now: str, typed: Any = None) -> list[ACPEvent]:
        """The events of one update; `typed` is what `read_update` made of it, if that was done already."""
        stream = self._stream
        stream.now = now
        source = update
        if typed is None and type(update) is bytes and is_plain(update) and not is_too_deep(update):
            typed = read_update(update)
        if typed is None:
            typed, source = self._repaired(_as_json(update))
            if typed is None:
                return stream.take()
        kind = CHUNKS.get(type(typed))
        if kind is None:
            self._source = source
            _HANDLERS.get(type(typed), Updates._other)(self, typed)
            return stream.take(source)
        pieces = self.speech.deltas((typed,), (source,))
        if pieces:
            return [*pieces]
        self.speech.chunk(kind, typed)
        return stream.take(source)

    def pieces(self, updates: Sequence[bytes], now: str) -> list[ACPEvent]:
        """The events of updates that go on with what is open; ends before the first that does not.

        They are decoded many at a time, more each time that all of them were pieces, so that little is decoded in vain.
        """
        self._stream.now = now
        events: list[ACPEvent] = []
        size = FEW
        while group := updates[len(events) : len(events) + size]:
            made = self.speech.deltas(_read_chunks(group), group)
            events += made
            if len(made) == len(group):
                size *= MORE
            elif size == 1:
                break
            else:
                size = 1
        return events

    def _repaired(self, source: bytes) -> tuple[Any, bytes]:
        """An update that is not plain, or not in the schema: mended, kept as unknown, or unreadable (then None)."""
        try:
            wire = msgspec.json.decode(source)
        except UNDECODABLE as exc:
            mended = _mended(source)
            if mended is None:
                reason = TOO_DEEP if isinstance(exc, RecursionError) else str(exc)
                self.unreadable(source.decode(errors="replace"), reason)
                return None, DERIVED
            self._report(Repair("update", "mended", "text that UTF-8 cannot carry was replaced"))
            source, wire = mended, msgspec.json.decode(mended)
        if is_deep(wire):
            self.unreadable(source.decode(errors="replace"), TOO_DEEP)
            return None, DERIVED
        if isinstance(wire, dict) and "sessionUpdate" not in wire and isinstance(wire.get("update"), dict):
            # the params of the notification were given, not the update in them
            return self._repaired(encode(wire["update"]))
        try:
            typed, repairs = repair(schema.SessionUpdate, wire, "update")
        except (ValidationError, RecursionError) as exc:
            if isinstance(wire, dict):
                return UnknownUpdate(wire), source
            self.unreadable(source.decode(errors="replace"), str(exc))
            return None, DERIVED
        for item in repairs:
            self._report(item)
        return typed, source

    def _report(self, item: Repair) -> None:
        if self._on_repair is not None:
            self._on_repair(item)

    def _other(self, update: Any) -> None:
        """An update without an event type of its own: its fields as they came, an explicit null included."""
        data = msgspec.json.decode(self._source)
        name = data.pop("sessionUpdate", None)
        self._custom("acp", name if isinstance(name, str) else "unknown", data)

    def _tool_call(self, update: Any) -> None:
        self.speech.close()
        self.calls.update(update, announced=True)

    def _tool_call_update(self, update: Any) -> None:
        self.speech.close()
        self.calls.update(update, announced=False)

    def _plan(self, update: Any) -> None:
        self.speech.close()
        self._told_todos(update, update.entries)

    def _plan_content(self, update: Any) -> None:
        entries = getattr(update.plan, "entries", None)
        if entries is None:
            self._other(update)
        else:
            self.speech.close()
            self._told_todos(update, entries)

    def _told_todos(self, update: Any, entries: list[Any]) -> None:
        if not self._stream.todos(to_wire(entries)):
            self._other(update)  # told again: the source must ride on something

    def _mode(self, update: Any) -> None:
        if not self.entered(update.current_mode_id):
            self._other(update)

    def entered(self, mode_id: str) -> bool:
        """Tell when a mode is a plan mode, or is one no longer."""
        active = is_plan_mode(mode_id)
        if not active and not self._stream.plan_mode:
            return False
        self._stream.plan_mode = active
        self._stream.emit(PlanModeEvent, active=active, mode_id=mode_id)
        return True

    def _config(self, update: Any) -> None:
        self._other(update)
        for option in update.config_options:
            value = getattr(option, "current_value", None)
            if getattr(option, "category", None) != "mode" or not isinstance(value, str):
                continue
            if is_plan_mode(value) != self._stream.plan_mode:
                self.entered(value)

    def _usage(self, update: Any) -> None:
        self.resources.context(update.used, update.size)
        if update.cost is not None:
            self.resources.cost(update.cost.amount, update.cost.currency)

    def _notice(self, update: Any) -> None:
        level = update.severity if update.severity in LEVELS else "info"
        self._stream.emit(NotificationEvent, level=level, title=update.title, message=update.description or "")
        rate_limit(self._stream, None, f"{update.title} {update.description or ''}".strip(), update.field_meta)

    def _subagent(self, update: Any) -> None:
        state = to_wire(update.state) if update.state is not None else {}
        label = update.description or update.title or ""
        if update.session_id not in self._sub_agents:
            self._sub_agents.add(update.session_id)
            self._stream.emit(
                SubAgentSpawnedEvent,
                sub_agent_id=update.session_id,
                parent_tool_call_id=parent_of(update.field_meta or {}) or "",
                task=label,
            )
        elif state.get("state") != "idle":
            self._stream.emit(SubAgentProgressEvent, sub_agent_id=update.session_id, message=label)
        if state.get("state") == "idle":
            self._sub_agents.discard(update.session_id)
            result = str(state.get("stopReason") or label)
            self._stream.emit(
                SubAgentCompletedEvent, sub_agent_id=update.session_id, parent_tool_call_id="", result=result
            )

    def end_sub_agents(self, result: str) -> None:
        """Nobody will tell any more how they ended."""
        for sub_agent in sorted(self._sub_agents):
            self._stream.emit(SubAgentCompletedEvent, sub_agent_id=sub_agent, parent_tool_call_id="", result=result)
        self._sub_agents.clear()

    def unreadable(self, text: str, reason: str) -> None:
        """Tell of what is no message; it has no source that could be repeated."""
        data = {"text": sound(text[:UNREADABLE]), "length": len(text), "reason": sound(reason)}
        self._custom("pilothouse", "diagnostic", data).source = None

    def _custom(self, namespace: str, name: str, data: dict[str, Any]) -> Event:
        return self._stream.emit(CustomEvent, namespace=namespace, event_name=name, data=data)


_HANDLERS: dict[type, Callable[[Updates, Any], None]] = {
    schema.ToolCallStart: Updates._tool_call,
    schema.ToolCallProgress: Updates._tool_call_update,
    schema.AgentPlanUpdate: Updates._plan,
    schema.AgentPlanContentUpdate: Updates._plan_content,
    schema.CurrentModeUpdate: Updates._mode,
    schema.ConfigOptionUpdate: Updates._config,
    schema.UsageUpdate: Updates._usage,
    schema.Notice: Updates._notice,
    schema.SubagentUpdate: Updates._subagent,
}


def is_plain(update: bytes) -> bool:
    """Whether the bytes can be kept as they are: the decoder does not look into fields that it skips."""
    # most updates have no escape at all, and in one that is full of them this pattern is found faster than as bytes
    if b"\\" not in update or _UNICODE.search(update) is None:
        return update.isascii() or _is_text(update)
    try:
        msgspec.json.decode(update)
    except UNDECODABLE:
        return False
    return True


def _is_text(update: bytes) -> bool:
    try:
        update.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_update(update: bytes) -> Any | None:
    """An update that is plain and not nested too deeply, as its type; None for what the schema does not have."""
    try:
        return _decode(update)
    except UNDECODABLE:
        return None  # the long way can tell what it is


def _read_chunks(updates: Sequence[bytes]) -> list[Any]:
    """Updates that are all plain, and all chunks of messages or thoughts; nothing if one of them is not."""
    data = b"[%b]" % b",".join(updates)
    with contextlib.suppress(*UNDECODABLE):
        pieces = decode_pieces(data)  # of these nothing is skipped
        return pieces if len(pieces) == len(updates) else []
    try:
        chunks = _decode_chunks(data) if is_plain(data) and not any(map(is_too_deep, updates)) else []
    except UNDECODABLE:
        return []
    return chunks if len(chunks) == len(updates) else []


def _as_json(update: Any) -> bytes:
    """An update as JSON, whatever it was given as."""
    if isinstance(update, (bytes, bytearray, memoryview, msgspec.Raw)):
        return bytes(update)
    if isinstance(update, str):
        return update.encode(errors="replace")
    try:
        return encode(sound(to_wire(update)))
    except (TypeError, ValueError, RecursionError):
        return encode(sound(repr(update)))


def _mended(source: bytes) -> bytes | None:
    """JSON with broken UTF-8 or half a surrogate pair in it, without these; None for what is no JSON, or too deep."""
    try:
        mended = encode(sound(json.loads(source.decode(errors="replace"))))
    except (ValueError, OverflowError, RecursionError):
        return None
    return None if is_too_deep(mended) else mended
