"""Prompts on their way: one runs, the others wait in order, and each is answered exactly once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from .errors import HubError

__all__ = ["Prompt", "PromptQueue", "TurnResult"]

QUEUE_LIMIT = 100


class TurnResult(NamedTuple):
    """How a turn ended; `seq` is that of the event that says so, committed."""

    turn_id: str
    stop_reason: str
    seq: int
    error: str | None = None


class Prompt:
    """A prompt, from when it was accepted until its turn is over."""

    __slots__ = ("cancelled", "client_request_id", "content", "done", "turn_id")

    def __init__(self, turn_id: str, content: Any, client_request_id: str | None) -> None:
        self.turn_id = turn_id
        self.content = content
        self.client_request_id = client_request_id
        self.cancelled = False
        self.done: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()

    def settle(self, result: TurnResult) -> None:
        if not self.done.done():
            self.done.set_result(result)


class QueueFull(HubError):
    code = "queue_full"


class PromptQueue:
    """What waits for the running turn to end."""

    def __init__(self, limit: int = QUEUE_LIMIT) -> None:
        self._limit = limit
        self._waiting: deque[Prompt] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Prompt]:
        return iter(self._waiting)

    def put(self, prompt: Prompt) -> None:
        """Raises QueueFull."""
        if len(self._waiting) >= self._limit:
            raise QueueFull(f"{self._limit} prompts wait already; cancel some, or wait for the turn to end")
        self._waiting.append(prompt)

    def take(self) -> Prompt | None:
        return self._waiting.popleft() if self._waiting else None

    def find(self, turn_id: str) -> Prompt | None:
        return next((prompt for prompt in self._waiting if prompt.turn_id == turn_id), None)

    def remove(self, prompt: Prompt) -> None:
        self._waiting.remove(prompt)

    def move(self, prompt: Prompt, place: int) -> None:
        self._waiting.remove(prompt)
        self._waiting.insert(max(0, place), prompt)

    def clear(self) -> list[Prompt]:
        waiting, self._waiting = list(self._waiting), deque()
        return waiting
