"""The prompts of one session: one runs, the others wait in order, and each is answered exactly once.

Rules a change must not break: a send is idempotent, so the same `client_request_id` is the same prompt, even after a
restart, and the id is stored with the first event of its prompt; a prompt that is removed from the queue is answered
when the removal is committed, or cannot be; between the check and the insertion nothing is awaited.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from ...acp.model import to_wire
from ...dialects.acp import to_content
from ...dialects.acp.content import as_blocks
from ...log.contract import EventLog
from ...log.records import Change
from ...model.events import CustomEvent, Event, SessionErrorEvent, decode_event
from ...model.session import sound
from ..client.editors import Editor
from ..errors import IdReused, IllegalCommand, NotStored, QueueFull
from ..recording.recorder import Recorder

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


class Prompts:
    """`queue` has those that wait."""

    def __init__(self, log: EventLog, recorder: Recorder) -> None:
        self.queue = PromptQueue()
        self._log = log
        self._recorder = recorder
        self._session_id = recorder.session.id
        self._requests: dict[str, Prompt] = {}
        self._leaving: set[Prompt] = set()

    @property
    def are_none(self) -> bool:
        """Whether none waits, and no request is under way."""
        return not self.queue and not self._requests

    # -- the same again --

    async def known(self, client_request_id: str, digest: str) -> Prompt | str | None:
        """What a request became: a prompt, live or one that has ended; or the id of the turn that it was to become.

        `digest` tells what it says now. Raises IllegalCommand for an id that cannot be stored, and IdReused when the
        request of this id said something else.
        """
        if sound(client_request_id) != client_request_id:  # stored as another one, it could become a third's
            raise IllegalCommand(f"`client_request_id` has half a character in it: {client_request_id!a}")
        known = self._requests.get(client_request_id) or await self._stored(client_request_id, digest)
        if isinstance(known, Prompt):
            _check_same(client_request_id, known.digest, digest)
        return known

    async def _stored(self, client_request_id: str, digest: str) -> Prompt | str | None:
        record = await self._log.turns.record(self._session_id, client_request_id)
        live = self._requests.get(client_request_id)  # it may have come meanwhile
        if live is not None or record is None:
            return live
        _check_same(client_request_id, record.digest, digest)
        turn_id = record.turn_id
        result = await stored_result(self._log, self._session_id, turn_id)
        live = self._requests.get(client_request_id)
        if live is not None or result is None:
            return live or turn_id
        prompt = Prompt(turn_id, None, client_request_id, record.digest)
        prompt.phase = "ending"
        prompt.settle(result)
        return prompt

    def claim(self, prompt: Prompt) -> list[Change]:
        """What stores which request became this prompt; it goes with the first event of it."""
        if prompt.client_request_id is None:
            return []
        claim = self._log.turns.claiming(self._session_id, prompt.client_request_id, prompt.turn_id, prompt.digest)
        return [msgspec.structs.replace(claim, keep=True)]

    def forget(self, prompt: Prompt) -> None:
        """It is answered, or about to be; from now on the log knows what became of it."""
        if prompt.client_request_id is not None:
            self._requests.pop(prompt.client_request_id, None)

    # -- the queue --

    def put(self, prompt: Prompt, *, waits: bool) -> None:
        """The last one from now on. That it `waits` is told, unless its turn begins at once. Raises QueueFull."""
        self.queue.put(prompt)
        if prompt.client_request_id is not None:
            self._requests[prompt.client_request_id] = prompt
        if waits:
            content, request_id = shown(prompt.content), prompt.client_request_id
            data = {"promptId": prompt.turn_id, "content": content, "clientRequestId": request_id}
            events = self._recorder.note("prompt_queued", data, also=self.claim(prompt))
            prompt.queued = events[0]

    def edit(self, prompt_id: str, content: Any) -> None:
        """Change one that waits. Raises IllegalCommand."""
        prompt, data = self._waiting(prompt_id), {"promptId": prompt_id, "content": shown(content)}
        prompt.content = content
        self._recorder.note("prompt_edited", data)

    def move(self, prompt_id: str, place: int) -> None:
        """Let it wait elsewhere. Raises IllegalCommand."""
        place = self.queue.move(self._waiting(prompt_id), place)
        self._recorder.note("prompt_moved", {"promptId": prompt_id, "place": place})

    def cancel(self, prompt_id: str) -> None:
        """Take it out; it is answered `cancelled`. Raises IllegalCommand."""
        prompt = self._waiting(prompt_id)
        self.queue.remove(prompt)
        self._withdraw(prompt, None)

    def cancel_all(self, reason: str) -> None:
        for prompt in self.queue.clear():
            self._withdraw(prompt, reason)

    def _waiting(self, prompt_id: str) -> Prompt:
        prompt = self.queue.find(prompt_id)
        if prompt is None:
            raise IllegalCommand(f"no prompt {prompt_id!r} is waiting; it runs or has ended", promptId=prompt_id)
        return prompt

    def _withdraw(self, prompt: Prompt, reason: str | None) -> None:
        """One that was taken out of the queue is answered when the log has that."""
        data = {"promptId": prompt.turn_id, "reason": reason}
        events = self._recorder.translator.fact("prompt_cancelled", data, self._recorder.now())
        self._leaving.add(prompt)
        self._recorder.record(events, then=partial(self._left, prompt, events[0]))
        if self._recorder.failure is not None:
            self._lost(prompt, self._recorder.failure)

    def _left(self, prompt: Prompt, event: Event) -> None:
        self._leave(prompt, TurnResult(prompt.turn_id, "cancelled", event.seq))

    def _lost(self, prompt: Prompt, error: BaseException) -> None:
        self._leave(prompt, NotStored(f"that the prompt was cancelled could not be stored: {error}"))

    def _leave(self, prompt: Prompt, answer: TurnResult | NotStored) -> None:
        self._leaving.discard(prompt)
        self.forget(prompt)
        prompt.settle(answer)

    def log_failed(self, error: BaseException) -> None:
        """Who waits for the log waits in vain."""
        for prompt in list(self._leaving):
            self._lost(prompt, error)


def _check_same(client_request_id: str, before: str | None, now: str) -> None:
    """Raises IdReused when it is known that another request had this id."""
    if before is not None and before != now:
        message = f"`client_request_id` {client_request_id!r} was given to a prompt that says something else"
        raise IdReused(f"{message}; choose a new one", field="client_request_id")
