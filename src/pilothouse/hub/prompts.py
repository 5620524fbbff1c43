"""The prompts of one session until their turn is over: which request became which prompt, and what waits.

Rules a change must not break: the same `client_request_id` is the same prompt, also after a restart, so it is stored
with the first event of its prompt; a prompt that is taken out of the queue is answered when the log has that, or will
not; between the look at what there is and the place in the queue nothing is awaited.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from ..log.base import EventLog
from ..log.records import Change
from ..model.events import Event
from ..model.session import sound
from .errors import IdReused, IllegalCommand, NotStored
from .recorder import Recorder
from .turns import Prompt, PromptQueue, TurnResult, shown, stored_result

__all__ = ["Prompts"]


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
