"""Who has a session: this hub, or another program whose record of it is told here until the hub adopts it.

Rules a change must not break: while another program has it, nothing is prompted here; that the hub has it from now on
is stored before a prompt is taken; an agent that goes on with what another program began never begins it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...log.contract import EventLog
from ...log.records import Change, SessionRecord
from ..errors import explain_watched_session
from ..mirror.external_turns import Elsewhere, accounted
from ..mirror.importer import Watched
from .wiring import Parts


class Custody:
    """Of one session. `watched` tells the record of one that another program runs, `elsewhere` what others do in one
    that the hub has adopted."""

    def __init__(self, log: EventLog, record: SessionRecord, parts: Parts) -> None:
        self._meta = record.meta
        self._record = record
        self.elsewhere: Elsewhere | None = None
        self.watched: Watched | None = None
        self._log = log
        self._session_id = record.id
        self._parts = parts
        self._warning: str | None = None
        if record.watched_id is not None and parts.turns.over is None:
            self.watched = Watched(log, record, parts.recorder, parts.artifacts)
            parts.turns.over = explain_watched_session(record.id)
        self._follow()

    @property
    def is_at_work_elsewhere(self) -> bool:
        """Whether the program that has it is in a turn."""
        return self.watched is not None and self.watched.is_open

    async def adopt(self, fact: Mapping[str, Any], fork_of: str | None) -> None:
        """From now on the hub has it, and `fork_of`, if given, is what its agent has to fork. Raises NotStored."""
        parts = self._parts
        watched, self.watched = self.watched, None
        self._meta = {key: value for key, value in self._meta.items() if key != "watched"} | {"adopted": dict(fact)}
        if watched is not None:
            watched.end("interrupted")
            self._meta["accounted"] = accounted(watched.prompts.count, await parts.recorder.commit())
        also = [self._log.sessions.updating(self._session_id, meta=self._meta)]
        parts.recorder.note("session_adopted", dict(fact), also=also)
        await parts.recorder.commit()
        parts.turns.over = None
        parts.around.origin = fork_of
        parts.agent.link.never_anew = fork_of is None
        self._follow()

    def taken_back(self, fact: Mapping[str, Any]) -> None:
        """The program that had it beside the hub was ended."""
        self._parts.recorder.note("session_adopted", dict(fact))
        self.warn(None)

    # -- what others do in it --

    def _follow(self) -> None:
        """From now on what was done elsewhere is told before each prompt; not in a fork, of which nobody else knows."""
        adopted, parts = self._meta.get("adopted"), self._parts
        if self.watched is None and isinstance(adopted, dict) and adopted.get("how") != "fork":
            record = msgspec.structs.replace(self._record, meta=self._meta)
            self.elsewhere = Elsewhere(self._log, record, parts.recorder, parts.artifacts, self._accounting)
            parts.turns.prepare = self._prepare

    def _accounting(self, known: Mapping[str, int]) -> Change:
        self._meta = {**self._meta, "accounted": dict(known)}
        return self._log.sessions.updating(self._session_id, meta=self._meta)

    async def read_on(self, *, waits: bool = False, holds: bool = False) -> bool:
        """Tell what was done elsewhere, unless a turn runs here; whether there was anything."""
        elsewhere, turns = self.elsewhere, self._parts.turns
        if elsewhere is None:
            return False

        def may_tell() -> bool:
            return turns.is_idle and not turns.is_held and turns.over is None

        is_told = await elsewhere.read_on(may_tell, waits=waits, holds=holds)
        if not self._parts.agent.link.is_in_use:
            elsewhere.is_behind = False  # the next agent will know it
        return is_told

    async def _prepare(self) -> None:
        """A turn begins: what was done elsewhere comes before it, and its agent knows of that."""
        elsewhere = self.elsewhere
        assert elsewhere is not None
        await elsewhere.read_on(lambda: True)
        if elsewhere.is_behind:
            elsewhere.is_behind = False
            self._parts.renew()

    # -- two who have it --

    def warn(self, message: str | None) -> None:
        """Something is wrong with who has it; told now and with every prompt until it is over (None)."""
        if message is not None and message != self._warning:
            self._tell(message)
        self._warning = message

    def prompted(self) -> None:
        """Somebody goes on with it here."""
        if self._warning is not None:
            self._tell(self._warning)

    def _tell(self, message: str) -> None:
        self._parts.recorder.notify("warning", "Another program has this session", message)
