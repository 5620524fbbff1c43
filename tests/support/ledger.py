"""What consumers of a hub that is killed again and again have been told, and whether the log still has all of it.

The ledger reads the lines of `hub_program`, keeps the cursors with which the next hub is followed on, and after each
kill compares what was told with what is stored. Nothing here corrects anything: it counts.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from pilothouse.hub.hub import Hub
from pilothouse.model.events import ApprovalResolvedEvent, CustomEvent, Event, decode_event
from tests.support.hub_program import digest
from tests.support.hubs import PATIENCE, check

RETIRED = 6_000
"""Events after which a session is left alone, so that looking through it stays quick."""
FAULTS = ("lost", "reused", "gaps", "duplicates", "answers lost", "answers changed", "decisions lost", "left open")


class Ledger:
    """What was told, over all lives of the hub."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.told: dict[str, dict[int, str]] = defaultdict(dict)
        self.cursors: dict[str, int] = {}
        self.everywhere: dict[str, int] = {}
        self.position = 0
        self.answers: dict[tuple[str, str], tuple[str, int, str]] = {}
        self.sent: dict[str, dict[str, str]] = defaultdict(dict)
        self.decisions: dict[str, tuple[str, bool]] = {}
        self.active: list[str] = []
        self.faults: list[str] = []

    # -- while a hub runs --

    def orders(self) -> str:
        """With what the next hub goes on."""
        going_on = [session for session in self.active if self.cursors.get(session, 0) < RETIRED]
        return json.dumps(
            {
                "sessions": going_on,
                "cursors": self.cursors,
                "position": self.position,
                "unanswered": {session: list(self.sent[session].items())[-3:] for session in going_on},
            }
        )

    def take(self, line: bytes) -> list[str]:
        """One line that was told; its words."""
        words = line.decode().split()
        kind, rest = words[0], words[1:]
        self.count[kind] += 1
        take = getattr(self, f"_take_{kind.lower()}", None)
        if take is not None:
            take(*rest)
        return words

    def began(self) -> None:
        """A new hub begins; it will say on what it works."""
        self._working: list[str] = []

    def _take_l(self, session: str) -> None:
        self._working.append(session)

    def _take_r(self) -> None:
        self.active = self._working

    def _take_e(self, session: str, seq: str, data: str, _: str) -> None:
        self._next(self.cursors, session, int(seq), data)

    def _take_g(self, session: str, seq: str, data: str, position: str) -> None:
        self._next(self.everywhere, session, int(seq), data)
        if int(position) <= self.position:
            self.fault("duplicates", f"position {position} after {self.position}")
        self.position = int(position)

    def _next(self, cursors: dict[str, int], session: str, seq: int, data: str) -> None:
        before = cursors.get(session, 0)
        if seq != before + 1:
            self.fault("gaps" if seq > before else "duplicates", f"{session}: {seq} after {before}")
        cursors[session] = seq
        if self.told[session].setdefault(seq, data) != data:
            self.fault("reused", f"{session}: {seq} was told twice, and not the same")

    def _take_s(self, session: str, request: str, *content: str) -> None:
        self.sent[session][request] = " ".join(content)

    def _take_t(self, session: str, request: str, turn: str, seq: str, reason: str) -> None:
        self.sent[session].pop(request, None)
        answer = (turn, int(seq), reason)
        if self.answers.setdefault((session, request), answer) != answer:
            self.fault("answers changed", f"{session}: {request} was answered {answer}")

    def _take_a(self, session: str, approval: str, approved: str) -> None:
        self.decisions[approval] = (session, bool(int(approved)))

    def fault(self, kind: str, text: str) -> None:
        self.count[kind] += 1
        self.faults.append(f"{kind}: {text}")

    # -- after a kill --

    async def compare(self, hub: Hub, session: str) -> list[Event]:
        """Hold what was told of a session against the log, and follow it on from the cursor. Its events."""
        stored: list[bytes] = []
        while page := await hub.log.read(session, len(stored)):
            if [entry.seq for entry in page] != list(range(len(stored) + 1, len(stored) + len(page) + 1)):
                self.fault("gaps", f"{session}: stored events do not follow each other after {len(stored)}")
            stored += [entry.data for entry in page]
        for seq, data in self.told[session].items():
            if seq > len(stored):
                self.fault("lost", f"{session}: {seq} was told; the log ends at {len(stored)}")
            elif digest(stored[seq - 1]) != data:
                self.fault("reused", f"{session}: {seq} was told, and is another event in the log")
        await self._follow_on(hub, session, stored)
        events = [decode_event(data) for data in stored]
        try:
            check(events, at_rest=bool(events))
        except AssertionError as exc:
            self.fault("left open", f"{session}: {exc}")
        self._compare_answers(session, events)
        self._compare_decisions(session, events)
        return events

    async def _follow_on(self, hub: Hub, session: str, stored: list[bytes]) -> None:
        cursor = self.cursors.get(session, 0)
        follower = hub.log.follow(session, cursor)
        while cursor < len(stored):
            for entry in await follower.next(timeout=PATIENCE):
                if entry.seq != cursor + 1 or entry.data != stored[entry.seq - 1]:
                    self.fault("gaps" if entry.seq > cursor else "duplicates", f"{session}: {entry.seq} after {cursor}")
                cursor = entry.seq
                self.count["read on"] += 1
        if await follower.next(timeout=0):
            self.fault("duplicates", f"{session}: a follower gets more than there is")

    def _compare_answers(self, session: str, events: list[Event]) -> None:
        for (owner, request), (turn, seq, reason) in self.answers.items():
            if owner == session and not (seq <= len(events) and _ends(events[seq - 1], turn, reason)):
                self.fault("answers lost", f"{session}: {request} was answered {reason} at {seq}")

    def _compare_decisions(self, session: str, events: list[Event]) -> None:
        resolved = {event.request_id: event.approved for event in events if isinstance(event, ApprovalResolvedEvent)}
        for approval, (owner, approved) in self.decisions.items():
            if owner == session and resolved.get(approval) is not approved:
                self.fault("decisions lost", f"{session}: {approval} was {'allowed' if approved else 'denied'}")

    @property
    def acknowledged(self) -> int:
        return sum(map(len, self.told.values()))


def _ends(event: Event, turn: str, reason: str) -> bool:
    if not isinstance(event, CustomEvent):
        return False
    data: dict[str, Any] = event.data
    if event.event_name == "turn_ended":
        return data["turnId"] == turn and data["stopReason"] == reason
    return event.event_name == "prompt_cancelled" and data["promptId"] == turn and reason == "cancelled"
