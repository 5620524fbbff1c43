"""Prompts on their way: one runs, the others wait in order, and each is answered exactly once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ..acp.model import to_wire
from ..dialects.acp import to_content
from ..dialects.acp.content import as_blocks
from ..log.base import EventLog
from ..model.events import CustomEvent, Event, SessionErrorEvent, decode_event
from .editors import Editor
from .errors import QueueFull

__all__ = ["Prompt", "PromptQueue", "TurnResult", "digest_of", "result_of", "shown", "stored_result", "title_of"]

QUEUE_LIMIT = 100
LONGEST_TITLE = 80
LOOKED_AT = 4000
"""Characters of a prompt among which its first words are looked for."""

Phase = Literal["waiting", "opening", "running", "ending"]


class TurnResult(NamedTuple):
    """How a turn ended; `seq` is that of the event that says so, committed."""

    turn_id: str
    stop_reason: str
    seq: int
    error: str | None = None


class Prompt:
    """A prompt, from when it was accepted until its turn is over. Await `done`, by `asyncio.shield` if you may leave.

    `phase` says how far its turn is: `waiting` for its place, `opening` the agent, `running`, or `ending`, when it
    has its outcome and only the log is waited for. `stored` is set when the log has its turn, or will not. `editor` is
    who sent it, if that was one; `meta` goes to the agent with it.
    """

    __slots__ = (
        *("cancelled", "client_request_id", "content", "deadline", "digest", "done", "editor", "meta", "phase"),
        *("queued", "stored", "turn_id"),
    )

    def __init__(
        self, turn_id: str, content: Any, client_request_id: str | None = None, digest: str | None = None
    ) -> None:
        self.turn_id = turn_id
        self.content = content
        self.client_request_id = client_request_id
        self.digest = digest
        self.editor: Editor | None = None
        self.meta: Mapping[str, Any] | None = None
        self.cancelled = False
        self.phase: Phase = "waiting"
        self.queued: Event | None = None
        self.stored = asyncio.Event()
        self.deadline: asyncio.TimerHandle | None = None
        self.done: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()

    def settle(self, result: TurnResult | BaseException) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        self.stored.set()
        if self.done.done():
            return
        if isinstance(result, TurnResult):
            self.done.set_result(result)
        else:
            self.done.set_exception(result)
            self.done.exception()  # nobody needs to wait for it


class PromptQueue:
    """What waits for the running turn to end."""

    def __init__(self, limit: int = QUEUE_LIMIT) -> None:
        self._limit = limit
        self._waiting: list[Prompt] = []

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
        return self._waiting.pop(0) if self._waiting else None

    def find(self, turn_id: str) -> Prompt | None:
        return next((prompt for prompt in self._waiting if prompt.turn_id == turn_id), None)

    def remove(self, prompt: Prompt) -> None:
        self._waiting.remove(prompt)

    def move(self, prompt: Prompt, place: int) -> int:
        """Let it wait elsewhere; answers where that is."""
        self._waiting.remove(prompt)
        place = min(max(0, place), len(self._waiting))
        self._waiting.insert(place, prompt)
        return place

    def clear(self) -> list[Prompt]:
        waiting, self._waiting = self._waiting, []
        return waiting


def digest_of(content: Any) -> str:
    """What tells the content of one request from that of another. Text, and a block of that text, are the same."""
    blocks = to_wire(as_blocks(content))
    return hashlib.sha256(msgspec.json.encode(blocks, order="deterministic")).hexdigest()


def shown(content: Any) -> list[dict[str, Any]]:
    """A prompt as events show it."""
    return [msgspec.to_builtins(to_content(block)) for block in as_blocks(content)]


def title_of(content: Sequence[Mapping[str, Any]]) -> str | None:
    """What a session is called by its first prompt: the first words of it, on one line."""
    texts = (block.get("text") for block in content if block.get("type") == "text")
    for text in filter(None, texts):
        letters = (letter if letter.isprintable() else " " for letter in text[:LOOKED_AT])
        words = " ".join("".join(letters).split())
        if len(words) > LONGEST_TITLE:
            return words[: LONGEST_TITLE - 1].rstrip() + "…"
        if words:
            return words
    return None


def result_of(turn_id: str, events: Sequence[Event]) -> TurnResult:
    """How a turn ended, by the events of its end. Their numbers are known once they are committed."""
    error: str | None = None
    for event in events:
        if isinstance(event, SessionErrorEvent):
            error = event.error.message
        elif isinstance(event, CustomEvent) and event.event_name == "turn_ended":
            return TurnResult(turn_id, str(event.data.get("stopReason")), event.seq, error)
    return TurnResult(turn_id, "interrupted", events[-1].seq if events else 0, error)


async def stored_result(log: EventLog, session_id: str, turn_id: str) -> TurnResult | None:
    """How a turn of former times ended, as the log tells; None when it does not know of the turn."""
    mark, found, error, cursor = turn_id.encode(), False, None, 0
    while entries := await log.read(session_id, cursor):
        cursor = entries[-1].seq
        for entry in entries:
            if found and entry.type == "session:error":
                event = decode_event(entry.data)
                error = event.error.message if isinstance(event, SessionErrorEvent) else None
            if entry.type != "custom" or mark not in entry.data:
                continue
            event = decode_event(entry.data)
            if not isinstance(event, CustomEvent) or event.namespace != "pilothouse":
                continue
            if event.event_name == "turn_ended":
                return TurnResult(turn_id, str(event.data.get("stopReason")), entry.seq, error)
            if event.event_name == "prompt_cancelled":
                return TurnResult(turn_id, "cancelled", entry.seq)
            found = found or event.event_name == "turn_started"
    return None
