"""Stored events as a recording that the replaying agent plays.

Each update goes in as its agent sent it; what only the hub knew, such as the output of its terminals, as it is told to
clients of the protocol. The time that people took to decide is not part of a recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

import msgspec

from ..acp.schema import StopReason
from ..agents.replay import Recording, Step, Turn
from ..dialects.acp import Projector
from ..model.events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CustomEvent,
    Event,
    MessageCompleteEvent,
    MessageDeltaEvent,
    SessionErrorEvent,
    UserQuestionEvent,
)
from ..model.session import fold, milliseconds_between

REASONS = get_args(StopReason)
INTERNAL = -32603


def recording_of(
    events: Iterable[Event], *, speed: float = 1.0, pause: float = 2.0, title: str | None = None
) -> Recording:
    """The recording of a session's events, played `speed` times as fast and without a wait beyond `pause` seconds."""
    events = list(events)
    maker = _Maker(speed, pause)
    for event in events:
        maker.take(event)
    maker.end_turn({"stopReason": "end_turn"})
    session = fold(events)
    return Recording(
        session_id=session.id,
        cwd=session.working_directory or session.project_path or "/",
        turns=maker.turns,
        title=session.title or title,
        updated=session.updated_at or None,
        setup=maker.setup,
        opening=maker.opening,
    )


class _Maker:
    def __init__(self, speed: float, pause: float) -> None:
        self._speed = speed
        self._pause = pause
        self._projector = Projector()
        self._before = ""
        self._steps: list[Step] | None = None
        self._problem: dict[str, Any] | None = None
        self.turns: list[Turn] = []
        self.opening: list[Step] = []
        self._latest = self.opening
        self.setup: dict[str, Any] = {}

    def take(self, event: Event) -> None:
        match event:
            case CustomEvent(namespace="pilothouse", event_name="turn_started"):
                self.end_turn({"stopReason": "end_turn"})
                self._steps, self._problem, self._before = [], None, event.timestamp
            case CustomEvent(namespace="pilothouse", event_name="turn_ended"):
                self._answer(event)
            case CustomEvent(namespace="acp", event_name="session_setup") if not self.turns and self._steps is None:
                self.setup |= event.data
            case CustomEvent(namespace="pilothouse", event_name="question_answered") | ApprovalResolvedEvent():
                self._before = event.timestamp
            case ApprovalRequestedEvent():
                self._ask(event, "session/request_permission", "toolCall")
            case UserQuestionEvent():
                self._ask(event, "elicitation/create", "message")
            case _:
                if isinstance(event, SessionErrorEvent):
                    self._problem = {"message": event.error.message, "data": event.error.details}
                self._tell(event)

    def _tell(self, event: Event) -> None:
        echo = isinstance(event, (MessageDeltaEvent, MessageCompleteEvent)) and event.role == "user"
        echo = echo and event.source is None
        for update in self._projector.project(event):
            self._add(Step(self._wait(event), update, echo=echo))

    def _ask(self, event: Event, method: str, key: str) -> None:
        params = _object(event.source)
        if key in params:
            self._add(Step(self._wait(event), method=method, params=params))

    def _wait(self, event: Event) -> float:
        before, self._before = self._before or event.timestamp, event.timestamp
        return min(max(0.0, milliseconds_between(before, event.timestamp) / 1000 / self._speed), self._pause)

    def _add(self, step: Step) -> None:
        if self._steps is not None:
            self._steps.append(step)
        else:
            # what was said after the answer of a turn is said before it here, or nobody would wait for it
            self._latest.append(step)

    def _answer(self, event: CustomEvent) -> None:
        answer, reason = _object(event.source), event.data.get("stopReason")
        if isinstance(answer.get("stopReason"), str):
            self.end_turn(answer)
        elif reason in REASONS:
            self.end_turn({"stopReason": reason})
        else:
            told = {**(self._problem or {"message": f"The turn ended: {reason}."}), **answer}
            code = told.get("code")
            self.end_turn({}, {**told, "code": code if isinstance(code, int) else INTERNAL})

    def end_turn(self, result: Mapping[str, Any], error: Mapping[str, Any] | None = None) -> None:
        """End the turn that is open, if one is."""
        if self._steps is not None:
            self.turns.append(Turn(self._steps, result, error))
            self._latest, self._steps = self._steps, None


def _object(source: bytes | None) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(source or b"{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
