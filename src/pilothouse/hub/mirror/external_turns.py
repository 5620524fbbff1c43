"""Turns of another program in an adopted session: found in its record, and added to the log before a prompt.

An adopted session can be continued in a terminal as before. The record shows it; the hub's agent, if it runs, does not
know. Rules a change must not break: a turn is added once, even if the hub dies: the read position is stored together
with the events, and never ahead of them; nothing is added in the middle of a turn of the hub; an unreadable record
changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...adapters.discovery.guarded import aside
from ...adapters.discovery.store import Reader, Step
from ...log.contract import EventLog
from ...log.records import Change, SessionRecord
from ..client.artifacts import Artifacts
from ..recording.recorder import Recorder
from .dedup import ELSEWHERE, ENDED, PROMPT, Ownership, OwnTurn, PromptCount, Verdict, call_of, own_turns, words_of
from .importer import Watched

logger = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds for a record to be read on before a prompt goes without that."""
TITLE = "This session was gone on with elsewhere"
MANY = 500
"""Updates that are kept before they are told."""

OpenReader = Callable[[], Awaitable[Reader | None]]


def accounted(prompts: int, seq: int) -> dict[str, int]:
    """How far a record is accounted for: so many of its prompts, by what the log had up to this event."""
    return {"prompts": prompts, "seq": seq}


def _known(kept: Any) -> Mapping[str, int] | None:
    """The same as it was kept; None when there is none."""
    is_one = isinstance(kept, dict) and all(isinstance(kept.get(key), int) for key in accounted(0, 0))
    return kept if is_one else None


class Segment:
    """A prompt of the record, and what follows it until the next one."""

    def __init__(self, number: int, when: str) -> None:
        self.number = number
        self.when = when
        self.updates: list[dict[str, Any]] = []
        self.times: list[str] = []
        self.verdict: Verdict | None = None
        self.seq: int | None = None
        """The last event before it was told."""

    def add(self, update: dict[str, Any], when: str) -> None:
        if self.verdict in (None, "elsewhere"):
            self.updates.append(update)
            self.times.append(when)

    def drop(self, count: int | None = None) -> None:
        """Forget all of it, or what comes first."""
        del self.updates[:count], self.times[:count]

    @property
    def settled(self) -> int:
        """How many of its updates come before a call that has no end yet."""
        begun: dict[str, int] = {}
        for number, update in enumerate(self.updates):
            if (call := call_of(update)) is not None:
                begun.setdefault(call, number)
                if update.get("status") in ENDED:
                    del begun[call]
        return min(begun.values(), default=len(self.updates))

    @property
    def words(self) -> str:
        return words_of(update for update in self.updates if update.get("sessionUpdate") == PROMPT)


class Elsewhere:
    """Of one adopted session in memory. `save` stores how far its record is accounted for; `is_behind` tells whether
    the agent that runs does not know what was done since it was started."""

    def __init__(
        self,
        log: EventLog,
        record: SessionRecord,
        recorder: Recorder,
        artifacts: Artifacts,
        save: Callable[[Mapping[str, int]], Change],
    ) -> None:
        self._artifacts = artifacts
        self.agent = record.agent
        self.session_id = record.agent_session_id or ""
        self.open_reader: OpenReader | None = None
        self.is_behind = False
        self._log = log
        self._record = record
        self._recorder = recorder
        self._save = save
        self._known = _known(record.meta.get("accounted"))
        self._lock = asyncio.Lock()
        self._reader: Reader | None = None
        self._begin()

    def _begin(self) -> None:
        """The record is read from its beginning the next time."""
        self._is_again, self._most = True, 0
        self._ownership = Ownership()
        self._turns: list[OwnTurn] | None = None
        """The hub's own by which the record was looked through last, until it is accounted for."""
        self._restart(self._known["prompts"] if self._known is not None else None)

    def _restart(self, skipped: int | None) -> None:
        self._prompts = PromptCount()
        self._skipped = skipped
        self._segments = [Segment(0, "")]
        self._segments[0].verdict = "own"
        self._status: str | None = None

    async def read_on(self, may_tell: Callable[[], bool], *, waits: bool = False, holds: bool = False) -> bool:
        """Tell what was done elsewhere since the last time, if it may be told now; whether there was anything.

        With `waits` a turn that is not over there is told when it is, with `holds` up to the first call in it that is
        not. Never raises.
        """
        if self.open_reader is None:
            return False
        async with self._lock:
            if not may_tell():
                return False
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._read_on(self.open_reader, waits, holds)
            except asyncio.CancelledError:
                await self._break_off()
                raise
            except TimeoutError:  # it would be so again: no further prompt shall wait for it
                logger.warning("the record of session %s takes too long to read; it is left alone", self._record.id)
                self.open_reader = None
                await self._break_off()
                return False
            except Exception as exc:  # also of a package's store
                logger.warning("what was done elsewhere in session %s is not known: %r", self._record.id, exc)
                await self._break_off()
                return False

    async def close(self) -> None:
        """Read no more; who is in the middle of it ends that."""
        self.open_reader = None
        if not self._lock.locked():
            await self._let_go()

    async def _break_off(self) -> None:
        recorder = self._recorder
        if recorder.translator.turn is not None:  # one that is being told: none of the hub's runs now
            recorder.record(recorder.translator.result({"stopReason": "interrupted"}, recorder.now()))
        await self._let_go()

    async def _let_go(self) -> None:
        reader, self._reader = self._reader, None
        self._begin()
        if reader is not None:
            await aside(reader.close)

    # -- reading --

    async def _read_on(self, open_reader: OpenReader, waits: bool, holds: bool) -> bool:
        reader = self._reader = self._reader or await open_reader()
        if reader is None:
            return False
        is_told = False
        while (step := await aside(reader.read)).updates:
            self._take(step)
            if not waits and sum(len(one.updates) for one in self._segments) > MANY:
                await self._judge(self._segments[:-1])
                is_told = await self._tell(is_last=False) or is_told
        if step.failed:
            return is_told  # where it ends is not known
        self._take(step)
        if self._known is None or self._skipped is None:  # adopted by a hub that kept no account
            self._skipped, self._is_again = self._prompts.count, False
            await self._account([])
            return False
        is_new = await self._judge(self._segments)
        last = self._segments[-1]
        if waits and last.verdict == "elsewhere" and self._status in ("running", "waiting"):
            return is_new
        is_told = await self._tell(is_last=True, holds=holds) or is_told
        await self._account(self._turns)
        self._is_again = self._is_again and self._prompts.count < self._most  # one that was cut may grow back
        return is_told

    def _take(self, step: Step) -> None:
        if step.restarted:
            self._again()
        for number, update in enumerate(step.updates):
            when = step.times[number] if number < len(step.times) else ""
            if self._prompts.take(update):
                self._segments.append(Segment(self._prompts.count, when))
                if self._skipped is None or self._prompts.count <= self._skipped:
                    self._segments[-1].verdict = "own"
                    del self._segments[:-1]
            self._segments[-1].add(update, when)
        self._status = step.status or self._status

    def _again(self) -> None:
        """The record was cut or rewritten: what was accounted for may come again, and must not count as new."""
        left = [one.number for one in self._segments if one.verdict in (None, "elsewhere")]
        self._is_again, self._most = True, max(self._most, self._prompts.count)
        self._restart(left[0] - 1 if left else max(self._prompts.count, self._skipped or 0))

    async def _judge(self, segments: list[Segment]) -> bool:
        """Find out whose the new ones are; whether one is somebody else's."""
        new = [one for one in segments if one.verdict is None]
        if not new or self._known is None:
            return False
        turns = self._turns = await own_turns(self._log, self._record.id, self._known["seq"])
        for one in new:
            one.verdict = self._ownership.judge(one.words, one.when, turns)
            if one.verdict != "elsewhere":
                one.drop()
            if one.verdict == "mixed":
                self.is_behind = True
                self._recorder.notify(
                    "warning", TITLE, "Another program prompted while a turn ran here; what it said is not told."
                )
        return any(one.verdict == "elsewhere" for one in new)

    # -- telling --

    async def _tell(self, *, is_last: bool, holds: bool = False) -> bool:
        foreign = [one for one in self._segments if one.verdict == "elsewhere" and one.updates]
        if not foreign:
            self._forget()
            return False
        recorder, is_noted = self._recorder, False
        teller = Watched(self._log, self._record, recorder, self._artifacts, {ELSEWHERE: True})
        before = self._known["seq"] if self._known is not None else 0
        if self._is_again:
            await teller.begin(after=before)
        begun = await recorder.commit()
        is_open = is_last and self._status in ("running", "waiting")
        for one in foreign:
            count = one.settled if is_open and holds and one is self._segments[-1] else len(one.updates)
            is_new = one.seq is None and not teller.has_told(one.updates[0])
            if one.seq is None:
                one.seq = await recorder.commit() if is_new else before
            if is_new and not is_noted:
                is_noted = True
                recorder.notify("info", TITLE, "What follows was done in this session by another program.")
            await teller.take(Step(updates=one.updates[:count], times=one.times[:count]))
            one.drop(count)
        if is_open:
            teller.end("interrupted")
        else:
            teller.settle("idle")
        is_told = await recorder.commit() > begun
        self.is_behind = self.is_behind or is_told
        self._forget()
        return is_told

    def _forget(self) -> None:
        """Of the last one more may come."""
        del self._segments[:-1]

    async def _account(self, turns: list[OwnTurn] | None) -> None:
        """Store how far the record is accounted for, if that is new. The last turn of somebody else may go on."""
        self._turns = None
        if turns is None:
            return
        last, seq = self._segments[-1], self._recorder.session.seq
        goes_on = last.verdict == "elsewhere" and last.seq is not None
        seqs = [seq, *(turn.seq - 1 for turn in self._ownership.awaited(turns))]
        if goes_on and last.seq is not None:
            seqs.append(last.seq)
        known = accounted(self._prompts.count - goes_on, min(seqs))
        if known != self._known:
            self._known = known
            self._recorder.record([], also=[self._save(known)])
            await self._recorder.commit()
