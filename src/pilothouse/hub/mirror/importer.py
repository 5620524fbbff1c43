"""A session that another program runs, told from the record that its agent keeps of it.

Its log looks like that of any session: the record's updates go through the same translator, and what its user said
there begins a turn here. Rules a change must not break: an update and all its events are one commit, and its JSON is
kept with them, so the log itself says how far the record was told; whatever happens to the hub, the record is read
again from its beginning and each update told once; a turn that is open when the hub ends is open when it is back.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from itertools import chain, groupby, repeat
from typing import Any

import msgspec

from ...acp.jsonrpc import TOO_DEEP, is_deep
from ...adapters.discovery.store import Step, moment
from ...log.contract import EventLog
from ...log.records import Change, SessionRecord
from ...model.errors import ACPError
from ...model.events import ACPEvent, CustomEvent, ToolCallErrorEvent
from ...model.session import ToolCall, sound
from ..client.artifacts import Artifacts
from ..recording.recorder import Recorder
from ..recording.recovery import MESSAGE
from .dedup import ENDED, PROMPT, PromptCount, Told, Update, call_of

METHOD = "file-watch"
"""How such a session's events are come by, in the words of capabilities."""
SPOKEN = frozenset({"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"})
"""Updates of an agent at work; while no turn is open they begin one."""
BREATH = 32
"""Updates after which others get their turn."""

_encode = msgspec.json.Encoder().encode


class Watched:
    """The telling of one session's record into its log. One `Feed` at a time does it.

    `mark` is told with the beginning of each turn; `prompts` counts those that the record has so far.
    """

    def __init__(
        self,
        log: EventLog,
        record: SessionRecord,
        recorder: Recorder,
        artifacts: Artifacts,
        mark: Mapping[str, Any] | None = None,
    ) -> None:
        self._artifacts = artifacts
        self._mark = dict(mark or {})
        self.prompts = PromptCount()
        self.agent = record.agent
        self.session_id = record.watched_id or ""
        """What its agent calls it."""
        self._about: dict[str, Any] = dict(record.meta.get("watched") or {})
        self._log = log
        self._recorder = recorder
        self._told: Told | None = None
        self._is_cut = False
        self._status: str | None = None
        self._is_left = False
        self._when = ""
        """When that happened which was told last, if its record says that."""
        self._last: tuple[str, str | None] = ("", None)
        self._open_calls: set[str] = set()
        self._problems: set[tuple[str, str]] = set()

    @property
    def is_over(self) -> bool:
        """Whether somebody has ended the session here: nothing more is told of it."""
        return self._recorder.translator.status == "completed"

    @property
    def is_open(self) -> bool:
        """Whether its agent is in a turn, as far as is known."""
        left = self._recorder.session.turn
        return self._recorder.translator.turn is not None or (left is not None and left.open)

    async def begin(self, after: int = 0) -> None:
        """A record is read again from now on, from its beginning or from what was told after an event.

        Raises NotStored, LogError.
        """
        recorder, self.prompts = self._recorder, PromptCount()
        await recorder.mend()
        if recorder.session.seq == 0 and recorder.is_at_rest:
            self._introduce()
        await recorder.commit()
        await self._recall(after)

    async def _recall(self, after: int = 0) -> None:
        told = Told()
        await told.recall(self._log, self._recorder.session.id, after)
        translator = self._recorder.translator
        translator.spoken(told.messages)
        if translator.turn is None:  # else it knows what is open
            self._take_up(told)
        self._told, self._last = told, ("", None)

    def _take_up(self, told: Told) -> None:
        """Let the translator know what was told of calls, and which turn and calls a hub before has left open."""
        session, translator, now = self._recorder.session, self._recorder.translator, self._recorder.now()
        turn = session.turn if session.turn is not None and session.turn.open else None
        unended = [call for call in session.tool_calls if not call.ended] if turn is not None else []
        self._open_calls = {call.tool_call_id for call in unended} & told.open_calls.keys()
        closed = told.open_calls.keys() - self._open_calls
        translator.left(chain.from_iterable(told.open_calls[call] for call in closed), now)
        if turn is not None:
            going_on = (told.open_calls[call] for call in told.open_calls if call in self._open_calls)
            translator.taken_up(turn.turn_id, chain.from_iterable(going_on), now)
        # of one that only a question told of, nobody will tell the end under what is known of it
        lost = [call for call in unended if call.tool_call_id not in self._open_calls]
        self._recorder.record([_lost(session.id, call, now) for call in lost])

    def _introduce(self) -> None:
        recorder, about = self._recorder, dict(self._about)
        since = min(moment(about.pop("createdAt", "")) or recorder.now(), recorder.now())
        fact = {"integrationMethod": METHOD, "agent": self.agent, **about}
        recorder.record(recorder.translator.fact("session_watched", fact, since))
        model = about.get("model")
        setup = {"models": {"currentModelId": model, "availableModels": []}} if model else {}
        recorder.record(recorder.translator.started(since, agent=self.agent, result=setup))

    async def take(self, step: Step) -> bool:
        """Tell what a step has; whether the record has been told up to here. Raises NotStored."""
        recorder = self._recorder
        if step.restarted:
            self.prompts = PromptCount()
            recorder.note("record_restarted", {})
            await recorder.commit()
            await self._recall()
            self._is_cut = True
        for update in step.updates:
            self.prompts.take(update)
        for count, (group, when) in enumerate(_grouped(step), 1):
            before, self._when = self._when, min(when, recorder.now()) if when else ""
            if any(map(is_deep, group)):
                self._tell_problem("", f"what happened at {when or 'some time'} is left out: it is {TOO_DEEP}")
                continue
            self._take(sound(group), before)
            if recorder.is_behind:
                await recorder.catch_up()
            if count % BREATH == 0:
                await asyncio.sleep(0)
        for problem in step.problems:
            self._tell_problem(problem.path, problem.message)
        if step.failed:
            await recorder.commit()
            return False  # what it has that was told is still to be known again
        is_caught_up = not step.updates
        self._is_left = self._is_left and is_caught_up
        self._status = None if self._is_left else step.status or self._status
        if is_caught_up and not (self._is_cut and self._told is not None and self._told.has_more):
            self._told = None  # what follows is new, even if it says the same again; but a record that was cut may
            self._is_cut = False  # grow back, and then it is not
        await self._artifacts.tell()
        if is_caught_up or self._told is None:
            self.settle(self._status)
            self._status = None
        await recorder.commit()
        return is_caught_up

    def _tell_problem(self, path: str, message: str) -> None:
        if (path, message) not in self._problems:
            self._problems.add((path, message))
            self._recorder.note("record_unreadable", {"path": path, "reason": message})

    def _take(self, group: list[Update], before: str) -> None:
        """Tell one update, or the pieces of one prompt; `before` is when the last one happened."""
        rest = [left for update in group if (left := self._rest(update)) is not None]
        if not rest:
            return
        kind = str(rest[0].get("sessionUpdate"))
        events = self._prompted(rest, before) if kind == PROMPT else self._worked(kind, rest[0])
        self._artifacts.watch(events)
        self._recorder.record(events, also=self._titles(kind, rest[0]))
        for update in rest:
            self._follow(kind, update)

    def _now(self) -> str:
        """When that happened which is told now."""
        return self._when or self._recorder.now()

    def has_told(self, update: Update) -> bool:
        """Whether this is known to be told, of a record that is read again, or never will be."""
        if is_deep(update):
            return True
        update = sound(update)
        return self._told is not None and self._told.has(update, _encode(update))

    def _began(self, now: str) -> list[ACPEvent]:
        events = self._recorder.translator.began(now, turn_id=_turn_id())
        for event in events:
            if isinstance(event, CustomEvent) and event.event_name == "turn_started":
                event.data.update(self._mark)
        return events

    def _rest(self, update: Update) -> Update | None:
        return self._told.rest(update, _encode(update)) if self._told is not None else update

    def _prompted(self, pieces: list[Update], before: str) -> list[ACPEvent]:
        """What its user said: it begins a turn, unless the agent is in the middle of one."""
        translator, now = self._recorder.translator, self._now()
        message_id = pieces[0].get("messageId")
        named = message_id if isinstance(message_id, str) else None
        events: list[ACPEvent] = []
        goes_on = self._last[0] == PROMPT and named in (None, self._last[1])
        if translator.turn is None or not (self._open_calls or goes_on):
            if translator.turn is not None:
                events += translator.result({"stopReason": "end_turn"}, before or now)
            began = self._began(now)
        else:
            began = translator.fact("prompt_added", {"turnId": translator.turn}, now)
        began[0].source = _encode(pieces)  # no update itself: what is said after it is told as one
        return [*events, *began, *translator.said([piece.get("content") for piece in pieces], now, message_id=named)]

    def _worked(self, kind: str, update: Update) -> list[ACPEvent]:
        translator, now = self._recorder.translator, self._now()
        events: list[ACPEvent] = []
        if kind in SPOKEN and translator.turn is None:
            events += self._began(now)
        return [*events, *translator.update(_encode(update), now)]

    def _follow(self, kind: str, update: Update) -> None:
        if kind in SPOKEN or kind == PROMPT:
            message_id = update.get("messageId")
            self._last = (kind, message_id if isinstance(message_id, str) else None)
        call = call_of(update)
        if call is not None:
            (self._open_calls.discard if update.get("status") in ENDED else self._open_calls.add)(call)

    def _titles(self, kind: str, update: Update) -> list[Change]:
        title = update.get("title") if kind == "session_info_update" else None
        return [self._log.sessions.updating(self._recorder.session.id, title=title)] if isinstance(title, str) else []

    # -- status --

    def settle(self, status: str | None) -> None:
        """What the agent does now, as its record or its process says."""
        recorder = self._recorder
        translator, now = recorder.translator, recorder.now()
        if status == "idle":
            self.end("end_turn", self._now())
            return
        if status is None:
            return
        events = self._began(now) if translator.turn is None else []
        if status == "waiting" and not recorder.session.index.pending:
            events += translator.moved("waiting_for_input", now, "its own terminal asks")
        elif status == "running" and translator.status == "waiting_for_input":
            events += translator.moved("running", now)
        recorder.record(events)

    def leave(self) -> None:
        """Its agent is gone in the middle of a turn: what the record says it does holds again when that goes on."""
        self._is_left = True
        self.end("interrupted")

    def end(self, stop_reason: str, when: str = "") -> None:
        """The agent is in no turn any more, since now or since that time."""
        recorder = self._recorder
        self._open_calls.clear()
        if recorder.translator.turn is not None:
            recorder.record(recorder.translator.result({"stopReason": stop_reason}, when or recorder.now()))


def _grouped(step: Step) -> Iterator[tuple[list[Update], str]]:
    """Each update and when it happened, but the pieces of one prompt together."""
    times = chain(step.times, repeat(""))
    for _, group in groupby(zip(step.updates, times, strict=False), _prompt_of):
        pieces = list(group)
        if pieces[0][0].get("sessionUpdate") == PROMPT:
            yield [update for update, _ in pieces], pieces[0][1]
            continue
        for update, when in pieces:
            yield [update], when


def _prompt_of(told: tuple[Update, str]) -> Any:
    update = told[0]
    return (update.get("messageId"),) if update.get("sessionUpdate") == PROMPT else None


def _lost(session_id: str, call: ToolCall, now: str) -> ToolCallErrorEvent:
    error = ACPError(code="interrupted", message=MESSAGE, recoverable=True)
    return ToolCallErrorEvent(
        seq=0, session_id=session_id, timestamp=now, tool_call_id=call.tool_call_id, name=call.name, error=error
    )


def _turn_id() -> str:
    return f"turn_{secrets.token_hex(6)}"
