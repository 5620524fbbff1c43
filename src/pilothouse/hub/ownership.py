"""Which turns in the record of an adopted session are the hub's own, and which were done elsewhere.

A record does not say who wrote it. What the hub did itself is in its log: a prompt of the record that says the same, or
that came while a turn of the hub ran, is that turn's. The rule a change must not break: in doubt a turn is the hub's
own, as it would else be told twice, and its agent ended for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from ..log.base import EventLog
from ..log.entries import Entry
from ..model.events import CustomEvent, Event, MessageCompleteEvent, decode_event
from ..model.records import TextContent
from .told import PROMPT, Update

__all__ = ["ELSEWHERE", "OwnTurn", "Ownership", "PromptCount", "Verdict", "own_turns", "words_of"]

Verdict: TypeAlias = Literal["own", "elsewhere", "mixed"]
"""Whose a turn of a record is; `mixed`: somebody else prompted while a turn of the hub ran, and who said what is not
known."""
ELSEWHERE = "elsewhere"
"""What marks the beginning of a turn that was told from a record and is none of the hub's."""
SLACK = 2.0
"""Seconds by which the time in a record may miss the turn whose words it has."""


class OwnTurn(NamedTuple):
    """A turn of the hub, by its log. Times are in seconds; `is_plain`: its prompt is nothing but words; `is_lost`: it
    failed before the agent said anything, so it may never have been told of the prompt."""

    seq: int
    words: str
    is_plain: bool
    began: float
    ended: float
    is_lost: bool = False


async def own_turns(log: EventLog, session_id: str, after: int) -> list[OwnTurn]:
    """The turns that the hub began after an event, oldest first."""
    turns, cursor = _Turns(), after
    while entries := await log.read(session_id, cursor):
        for entry in entries:
            if entry.source:
                turns.is_silent = False
            if entry.type in ("custom", "message:complete"):
                turns.take(entry, decode_event(entry.data))
        cursor = entries[-1].seq
    return turns.found


class _Turns:
    """Finds them among events."""

    def __init__(self) -> None:
        self.found: list[OwnTurn] = []
        self.is_silent = True
        """Whether no agent has said anything in the turn that is open."""
        self._is_open = False
        self._times = (0.0, 0.0)

    def take(self, entry: Entry, event: Event) -> None:
        now = _seconds(event.timestamp)
        if now != self._times[1]:
            self._times = (self._times[1], now)
        if isinstance(event, MessageCompleteEvent):
            if self._is_open and event.role == "user" and not self.found[-1].words:
                self._prompted(event)
        elif isinstance(event, CustomEvent) and event.event_name == "turn_started":
            self._is_open = not event.data.get(ELSEWHERE)
            self.is_silent = True
            if self._is_open:
                self.found.append(OwnTurn(entry.seq, "", False, now, float("inf")))
        elif isinstance(event, CustomEvent) and event.event_name == "turn_ended" and self._is_open:
            # the end of one that a hub died over is told when that is back, which may be days later
            how, turn = event.data.get("stopReason"), self.found[-1]
            ended = max(turn.began, self._times[0]) if how == "interrupted" else now
            self.found[-1] = turn._replace(ended=ended, is_lost=how == "error" and self.is_silent)
            self._is_open = False

    def _prompted(self, event: MessageCompleteEvent) -> None:
        texts = [block.text for block in event.content if isinstance(block, TextContent)]
        is_plain = len(texts) == len(event.content) and not "".join(texts[:1]).startswith("/")
        self.found[-1] = self.found[-1]._replace(words=_joined(texts), is_plain=is_plain)


def _seconds(moment: str) -> float:
    try:
        return datetime.fromisoformat(moment).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def words_of(updates: Iterable[Update]) -> str:
    """What the pieces of a prompt say together."""
    contents = (update.get("content") for update in updates)
    return _joined(str(content.get("text") or "") for content in contents if isinstance(content, dict))


def _joined(texts: Iterable[str]) -> str:
    """Words without the spaces, which are lost or made where texts are cut and put together."""
    return "".join("".join(texts).split())


class Ownership:
    """What is known of one session's own turns: which of them a record has already."""

    def __init__(self) -> None:
        self._said: set[int] = set()
        self._guessed: set[int] = set()

    def judge(self, words: str, when: str, turns: Sequence[OwnTurn]) -> Verdict:
        """Whose a prompt of the record is; `when` is empty where the record does not tell."""
        at = _seconds(when) if when else None
        last = max((*self._said, 0))
        for turn in turns:
            is_free = turn.seq > last and turn.words == words
            if is_free and (at is None or turn.began - SLACK <= at <= turn.ended + SLACK):
                self._said.add(turn.seq)
                return "own"
        return self._by_words_left(words, turns, last) if at is None else self._by_time(at, turns)

    def _by_time(self, at: float, turns: Sequence[OwnTurn]) -> Verdict:
        during = [turn for turn in turns if turn.began <= at <= turn.ended and not turn.is_lost]
        if not during:
            return "elsewhere"
        if during[-1].seq in self._said | self._guessed:
            return "mixed"
        self._guessed.add(during[-1].seq)
        return "own"

    def _by_words_left(self, words: str, turns: Sequence[OwnTurn], last: int) -> Verdict:
        """An agent may put other words in the place of a command or a file, and more words around those of a user."""
        for turn in turns:
            is_likely = not turn.is_lost and (not turn.is_plain or (turn.words and turn.words in words))
            if turn.seq > last and turn.seq not in self._guessed and is_likely:
                self._guessed.add(turn.seq)
                return "own"
        return "elsewhere"

    def awaited(self, turns: Sequence[OwnTurn]) -> list[OwnTurn]:
        """Those that may still come: an agent writes its record when it gets to it, but in order."""
        last = max((*self._said, *self._guessed, 0))
        return [turn for turn in turns if turn.seq > last]


class PromptCount:
    """How many prompts a record has, however it is cut into steps."""

    def __init__(self) -> None:
        self.count = 0
        self._ids: set[str] = set()
        self._last: tuple[object, object] = ("", None)

    def take(self, update: Update) -> bool:
        """Whether this update begins another prompt."""
        kind, message_id = update.get("sessionUpdate"), update.get("messageId")
        before, self._last = self._last, (kind, message_id)
        if kind != PROMPT:
            return False
        if isinstance(message_id, str):
            is_new = message_id not in self._ids
            self._ids.add(message_id)
        else:
            is_new = before[0] != PROMPT
        self.count += is_new
        return is_new
