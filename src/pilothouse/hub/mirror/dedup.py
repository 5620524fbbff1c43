"""Recognition of updates and turns that the log already has, so that each is imported once.

A record is read again from its beginning. Rules a change must not break: an update is recognised by the data that the
log keeps with its events, never by a counter beside them, so that no crash can come between the two; a doubtful turn
counts as the hub's own, because it would otherwise be imported twice and the hub's agent restarted for nothing.

A record does not say who wrote a turn. A turn with the text of one of the hub's prompts, or from the time of a turn of
the hub, is the hub's own.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from ...log.contract import EventLog
from ...log.entries import Entry
from ...model.events import CustomEvent, Event, MessageCompleteEvent, decode_event
from ...model.records import TextContent

PROMPT = "user_message_chunk"
CHUNKS = frozenset({PROMPT, "agent_message_chunk", "agent_thought_chunk"})
ENDED = ("completed", "failed")
"""How a tool call is when nothing more is expected of it."""

Update = Mapping[str, Any]
_encode = msgspec.json.Encoder().encode


class Told:
    """What the log has of a record, held against the record as it is read again.

    A record that is only ever added to gives the same updates again. One that is kept as it is by now gives a text in
    other pieces, and a tool call with all that became of it; so texts are counted, and calls known by their id.
    """

    def __init__(self) -> None:
        self._rest: Counter[bytes] = Counter()
        self._texts: Counter[tuple[str, str]] = Counter()
        self._calls: dict[str, bool] = {}
        self.messages: set[str] = set()
        self.open_calls: dict[str, list[bytes]] = {}
        """What was told of calls that have no end yet."""

    async def recall(self, log: EventLog, session_id: str, after: int = 0) -> None:
        """Learn from the log what was told after an event."""
        cursor = after
        while entries := await log.read(session_id, cursor):
            for entry in entries:
                if entry.source:
                    self.remember(entry.source)
            cursor = entries[-1].seq

    def remember(self, source: bytes) -> None:
        try:
            update = msgspec.json.decode(source)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return
        for one in update if isinstance(update, list) else [update]:
            if isinstance(one, dict) and "sessionUpdate" in one:  # else it is that of a question, or of a turn's end
                self._remember(one)

    def _remember(self, update: Update) -> None:
        key, text = _piece(update)
        if key is not None:
            self._texts[key] += len(text)
            self.messages.add(key[1])
            return
        source = _encode(update)
        self._rest[_digest(source)] += 1
        call = call_of(update)
        if call is None:
            return
        self._calls[call] = self._calls.get(call, False) or update.get("status") in ENDED
        if self._calls[call]:
            self.open_calls.pop(call, None)
        else:
            self.open_calls.setdefault(call, []).append(source)

    @property
    def has_more(self) -> bool:
        """Whether more was told than the record has said again so far."""
        return any(self._texts.values()) or any(self._rest.values())

    def has(self, update: Update, source: bytes) -> bool:
        """Whether all of an update was told."""
        key, text = _piece(update)
        return self._texts[key] >= len(text) if key is not None else self._rest[_digest(source)] > 0

    def rest(self, update: Update, source: bytes) -> Update | None:
        """What of an update was not told yet; None when all of it was."""
        key, text = _piece(update)
        if key is not None:
            known = self._texts[key]
            self._texts[key] = max(0, known - len(text))
            if known >= len(text):
                return None
            return {**update, "content": {**update["content"], "text": text[known:]}} if known else update
        digest = _digest(source)
        if self._rest[digest] > 0:
            self._rest[digest] -= 1
            return None
        call = call_of(update)
        if call is None or update.get("sessionUpdate") != "tool_call" or call not in self._calls:
            return update
        return None if self._calls[call] else {**update, "sessionUpdate": "tool_call_update"}


def _piece(update: Update) -> tuple[tuple[str, str] | None, str]:
    """Of which message an update is a piece of text, and which."""
    content, message_id = update.get("content"), update.get("messageId")
    if update.get("sessionUpdate") not in CHUNKS or not isinstance(content, dict) or not isinstance(message_id, str):
        return None, ""
    text = content.get("text")
    if content.get("type") != "text" or not isinstance(text, str):
        return None, ""
    return (str(update["sessionUpdate"]), message_id), text


def call_of(update: Update) -> str | None:
    call = update.get("toolCallId")
    return call if isinstance(call, str) else None


def _digest(source: bytes) -> bytes:
    return hashlib.blake2b(source, digest_size=16).digest()


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
