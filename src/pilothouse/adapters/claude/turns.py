"""Which prompts are open, and whose turn a result ends.

Results are not counted against prompts: a prompt sent while a turn runs is taken into it, a task in the background
begins a turn of its own, and the result of a turn that was given up may still come. What says that a turn is the
prompt's own is that it began, or took the prompt in, after the prompt was sent.
"""

from __future__ import annotations

from typing import Literal

from .reading import text
from .wire import Result

__all__ = ["Turns"]


class Prompt:
    """A prompt that waits for its end. `state` is what the CLI has told of it, `begun` that a turn began since."""

    __slots__ = ("begun", "state", "uuid")

    def __init__(self, uuid: str | None) -> None:
        self.uuid = uuid
        self.state: Literal["sent", "queued", "taken"] = "sent"
        self.begun = False


class Turns:
    """The prompts of a session, oldest first."""

    def __init__(self) -> None:
        self._open: list[Prompt] = []
        self._given_up = 0
        self.cancelling = False
        self.is_running = False
        """Whether the main agent has a turn, prompted or not."""
        self.late = 0
        """Results that came when nobody waited for them any more."""

    @property
    def waiting(self) -> int:
        return len(self._open)

    def sent(self, uuid: str | None) -> None:
        """A prompt goes to the CLI."""
        self._open.append(Prompt(uuid))
        self.cancelling = False

    def begun(self) -> None:
        """A turn begins."""
        self.is_running = True
        for prompt in self._open:
            prompt.begun = True

    def repeated(self, uuid: str | None) -> None:
        """The CLI repeats a prompt that it takes in: the one with this id, else the oldest that it has not taken."""
        waiting = [prompt for prompt in self._open if prompt.state != "taken"]
        known = [prompt for prompt in waiting if prompt.uuid is not None and prompt.uuid == uuid]
        for prompt in (known or waiting)[:1]:
            prompt.state = "taken"

    def told(self, uuid: str, state: str) -> int:
        """The CLI tells what became of a prompt; how many that ends. One dropped from the queue has no result."""
        prompt = next((prompt for prompt in self._open if prompt.uuid == uuid), None)
        if prompt is None:
            return 0
        if state == "queued" and prompt.state == "sent":
            prompt.state = "queued"
        elif state == "started":
            prompt.state = "taken"
        elif state == "cancelled" and prompt.state != "taken" and self._open[0] is prompt:
            return self._end([prompt])
        return 0

    def given_up(self) -> int:
        """Nobody waits any more for the turn that runs; how many prompts that ends."""
        ended, self._open = len(self._open), []
        self._given_up += 1 if ended else 0
        return ended

    def result(self, result: Result) -> int:
        """A turn ended: how many of the open prompts that answers, none for a turn that is not theirs."""
        self.is_running = False
        taken = [prompt for prompt in self._open if prompt.state == "taken"]
        if taken or text((result.origin or {}).get("kind")) == "task-notification":
            self._given_up = 0 if taken else self._given_up
            return self._end(taken)
        if not self._open or self._is_older():
            self._given_up = max(0, self._given_up - 1)
            self.late += 1
            return 0
        self._given_up = 0
        queued = result.queued_turn_count or 0
        # what is queued begins a turn of its own, the youngest last
        return self._end(self._open[: max(1, len(self._open) - queued)])

    def _is_older(self) -> bool:
        """Whether a result is of a turn that was given up: none of the prompts has been heard of since."""
        queued = any(prompt.state == "queued" for prompt in self._open)
        return queued or (self._given_up > 0 and not any(prompt.begun for prompt in self._open))

    def _end(self, prompts: list[Prompt]) -> int:
        self._open = [prompt for prompt in self._open if prompt not in prompts]
        return len(prompts)
