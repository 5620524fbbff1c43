"""Everything that an agent sends: updates become events, requests are answered, lines that are no messages are kept.

Nothing the agent sends is lost without a trace, and nothing of it can stop the session. A program that prints its
progress where messages belong must not fill the log: some lines are kept word for word, and a flood is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import takewhile
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ...acp.dispatch import Diagnostic
from ...acp.errors import RequestError
from ...acp.framing import LARGE, breath
from ...acp.jsonrpc import is_too_deep
from ...adapters.running import RawUpdate
from ...dialects.acp import is_plain, read_update
from ...log.contract import EventLog
from ...log.records import Change
from ...model.events import ACPEvent, CustomEvent, MessageDeltaEvent, PlanModeEvent, ThinkingDeltaEvent
from ..approvals.approvals import Approvals
from ..approvals.authorization import Authorization
from ..approvals.unasked_acts import UnaskedActs
from ..client.artifacts import Artifacts
from ..client.terminals import Ending
from ..errors import NotStored
from ..recording.recorder import Recorder
from .choices import mode_of
from .client_requests import Serving
from .process import AgentLink

BURST = 50
PER_SECOND = 5.0
TELL_AFTER = 1.0


class Noise:
    """Lets through a burst, and afterwards a few a second. `tell` is called with the text and why it is noise."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._allowance = float(BURST)
        self._since = 0.0
        self._left_out = 0
        self._example = ("", "")
        self._timer: asyncio.TimerHandle | None = None

    def hear(self, text: str, reason: str, *, is_behind: bool = False) -> None:
        """Something unreadable came; when the log `is_behind`, it is only counted."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._allowance = min(BURST, self._allowance + (now - self._since) * PER_SECOND)
        self._since = now
        if self._allowance >= 1 and not is_behind:
            self._allowance -= 1
            self._tell(text, reason)
            return
        self._left_out += 1
        self._example = (text, reason)
        if self._timer is None:
            self._timer = loop.call_later(TELL_AFTER, self.count)

    def count(self) -> None:
        """Tell of what was left out so far, by the last of it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._left_out:
            (text, reason), number, self._left_out = self._example, self._left_out, 0
            more = f"; {number - 1} more before it were not kept" if number > 1 else ""
            self._tell(text, f"{reason}{more}")


HISTORY = frozenset(
    {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
)
"""Updates that replay a conversation; the log has those. Any other one tells how the session is now."""
MODE_UPDATE = "current_mode_update"
CHOICES = frozenset({MODE_UPDATE, "config_option_update"})
"""Updates that tell what is chosen; of an agent that was started anew they are not yet the session's."""
CHOSEN = (CustomEvent, PlanModeEvent)
"""The first event of such an update."""
DELTAS = (MessageDeltaEvent, ThinkingDeltaEvent)


class Tag(Struct):
    """The name of an update, read without the rest of it."""

    sessionUpdate: str = ""  # noqa: N815 - as on the wire


_tag_of = msgspec.json.Decoder(Tag).decode


class Listener:
    """The owner of one session's agent. `link` gives the link, which needs its owner before it exists."""

    def __init__(
        self,
        log: EventLog,
        recorder: Recorder,
        serving: Serving,
        approvals: Approvals,
        authorization: Authorization,
        unasked: UnaskedActs,
        artifacts: Artifacts,
        link: Callable[[], AgentLink],
    ) -> None:
        self._log = log
        self._recorder = recorder
        self._serving = serving
        self._approvals = approvals
        self._authorization = authorization
        self._unasked = unasked
        self._artifacts = artifacts
        self._link = link
        self.modes_told = 0
        """How often the agent has said which mode it is in."""
        self.modes_named = 0
        """How often it said so by the update that is for that."""
        self._noise = Noise(self._tell_noise)

    # -- as `Owner` --

    async def updated(self, session_id: str, update: Raw | bytes) -> None:
        typed = None
        is_large = len(update) > LARGE
        if is_large:
            update, typed = await _read_in_steps(update)
        link, recorder = self._link(), self._recorder
        if link.is_replaying and recorder.session.turns and _name(update) in HISTORY:
            return
        if link.is_restoring and _name(update) in CHOICES:
            told = _value(update)
            link.observe(told)
            recorder.note("update_before_restoring", {"update": told})
        elif link.session_id is not None and session_id not in (link.session_id, ""):
            data = {"sessionId": session_id, "update": _value(update)}
            recorder.note("foreign_update", data)
            await self._unasked.flag(self._unasked.observe_foreign(session_id, bytes(update)))
        else:
            events = recorder.translator.update(bytes(update), recorder.now(), typed=typed)
            if type(events[0]) in DELTAS:  # nearly all of them; nothing follows from a piece of text
                recorder.record(events)
            else:
                ended = self._unasked.observe(events)
                self._artifacts.watch(events)
                recorder.record(events, also=self._titles(events))
                if isinstance(events[0], CHOSEN) and _name(update) in CHOICES:
                    self._observe_mode(_name(update), _value(update))
                if ended:
                    await self._unasked.flag(ended)
                if self._approvals.has_pending:
                    self._approvals.withdraw_changed()
        if is_large:
            await recorder.settle()
        elif recorder.is_behind:
            await recorder.catch_up()

    def _observe_mode(self, name: str, update: Any) -> None:
        mode = mode_of(update)
        if mode is not None:
            self.modes_told += 1
            self.modes_named += name == MODE_UPDATE
            self._authorization.leave_mode(mode)

    def flag_unasked(self, events: list[ACPEvent]) -> Coroutine[Any, Any, None]:
        """Flag acts without permission among the calls that these events close. They are looked up at once."""
        return self._unasked.flag([*self._unasked.observe(events), *self._unasked.end_foreign()])

    def several_updated(self, updates: list[RawUpdate]) -> int:
        """Pieces of what is being said, as nearly all updates are: each is one event, and nothing follows from it."""
        link, recorder = self._link(), self._recorder
        if link.is_replaying or link.is_restoring or recorder.is_behind:
            return 0
        if link.session_id is not None and updates[0].session_id not in (link.session_id, ""):
            return 0
        pieces = [each.update for each in updates]
        if max(map(len, pieces)) > LARGE:
            pieces = list(takewhile(_is_small, pieces))
        events = recorder.translator.pieces(list(map(bytes, pieces)), recorder.now())
        if events:
            recorder.record(events)
        return len(events)

    async def requested(self, method: str, params: Any, raw: bytes) -> Any:
        self._recorder.touch()
        if self._recorder.failure is not None:
            raise RequestError.internal_error({"details": "the session's log failed; nothing is done unseen"})
        try:
            return await self._serving.answer(method, params, raw)
        except NotStored as exc:  # the log failed in between
            raise RequestError.internal_error({"details": str(exc)}) from None

    def notified(self, method: str, params: Any) -> None:
        recorder = self._recorder
        recorder.record(recorder.translator.extension(method, params, recorder.now()))

    def diagnosed(self, diagnostic: Diagnostic) -> None:
        """Keep what could not be read."""
        text = diagnostic.excerpt or diagnostic.message
        self._noise.hear(text, diagnostic.message, is_behind=self._recorder.is_behind)

    def _tell_noise(self, text: str, reason: str) -> None:
        self._recorder.record(self._recorder.translator.unreadable(text, reason, self._recorder.now()))

    # -- its terminals --

    def printed(self, terminal_id: str, text: str) -> None:
        """Something was printed in a terminal that the agent was lent."""
        recorder = self._recorder
        events = recorder.translator.terminal_output(terminal_id, text, recorder.now())
        recorder.record(events)

    def terminated(self, terminal_id: str, ending: Ending) -> None:
        """The program in such a terminal ended."""
        self._recorder.translator.terminal_ended(
            terminal_id,
            output=ending.output,
            left_out=ending.left_out,
            exit_code=ending.status.exit_code,
            signal=ending.status.signal,
        )

    # -- what follows from events --

    def _titles(self, events: list[ACPEvent]) -> list[Change]:
        """An agent's name for the session is how it is listed."""
        event = events[0]
        if type(event) is not CustomEvent or event.event_name != "session_info_update":
            return []
        title = event.data.get("title")
        return [self._log.sessions.updating(self._recorder.session.id, title=title)] if isinstance(title, str) else []

    def forget(self) -> None:
        """The agent is gone: report the noise that was left out so far."""
        self._noise.count()


async def _read_in_steps(update: Raw | bytes) -> tuple[bytes, Any]:
    """Decode a large update. Others are served between the passes over it; this session's next update waits."""
    pause = breath(len(update))
    await asyncio.sleep(pause)
    data = bytes(update)
    plain = is_plain(data)
    await asyncio.sleep(pause)
    plain = plain and not is_too_deep(data)
    await asyncio.sleep(pause)
    typed = read_update(data) if plain else None
    await asyncio.sleep(pause)
    return data, typed


def _is_small(update: Raw) -> bool:
    return len(update) <= LARGE


def _name(update: Raw | bytes) -> str:
    try:
        return _tag_of(update).sessionUpdate
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""


def _value(update: Raw | bytes) -> Any:
    data = bytes(update)
    try:
        if not is_too_deep(data):
            return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass  # what can be read of it is kept as text
    return data[:2000].decode(errors="replace")
