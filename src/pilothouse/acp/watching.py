"""What can be watched of a connection: every message that passes, and everything that had to be put right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

__all__ = ["Diagnostic", "StreamDirection", "StreamEvent", "StreamObserver"]


class StreamDirection(StrEnum):
    INCOMING = "incoming"
    OUTGOING = "outgoing"


@dataclass(frozen=True)
class StreamEvent:
    """One message as it passed; `message` is decoded only when asked for."""

    direction: StreamDirection
    raw: bytes

    @cached_property
    def message(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.raw)
        return decoded


StreamObserver = Callable[[StreamEvent], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something a peer did that had to be mended, skipped or refused; never fatal."""

    kind: str
    """malformed · repair · unmatched_response · unhandled_notification · handler_error · observer_error · stalled"""
    message: str
    method: str | None = None
    excerpt: str = ""

    def __str__(self) -> str:
        where = f" in {self.method}" if self.method else ""
        return f"{self.kind}{where}: {self.message}" + (f" | {self.excerpt}" if self.excerpt else "")
