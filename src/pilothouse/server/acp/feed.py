"""One session followed for one ACP client: stored events become updates, sent in order, each with its `seq`.

An update that an agent sent goes out as it came, but for the seq in its `_meta` and for what only some clients can show
(see `client_view`). A client's own prompts are not said back to it. `cursor` is the seq up to which everything has been
sent, which is what the answer to a prompt waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable

import msgspec
from msgspec import Struct

from ...acp.errors import ConnectionClosed
from ...acp.schema import ClientCapabilities
from ...acp.transport import Link
from ...dialects.acp import Projector
from ...log.contract import EventLog
from ...log.entries import Entry
from ...log.errors import LogError
from ...log.follow import Follower
from ...model.events import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CustomEvent,
    Event,
    MessageCompleteEvent,
    MessageDeltaEvent,
    NotificationEvent,
    SessionErrorEvent,
    UserQuestionEvent,
    decode_event,
)
from ..frame_cache import FrameCache
from .answers import Ending
from .client_view import Dressing, extension
from .questions import Asking
from .update_frames import Run, encode_run, notification, update_head

logger = logging.getLogger(__name__)

PIECES = frozenset({"message:delta", "thinking:delta"})
"""Events that give their source back and mean nothing else; nearly all there are."""
ENDINGS = 100
"""Turns of this client whose end is kept until it is answered."""
BATCH = 500
LEAN = 20
"""Events before a cursor in which the beginning of its turn is looked for: those of a prompt come all together."""


class Outlet:
    """Where updates of all sessions go: the link of a client, shared with its connection. Line after line, in order.

    Raises ConnectionClosed when the client is gone.
    """

    def __init__(self, link: Link, cache: FrameCache) -> None:
        self._link = link
        self._send_run: Callable[[Run], None] = getattr(link, "send_run", self._one_by_one)
        self.cache = cache

    def _one_by_one(self, run: Run) -> None:
        for line in run.lines:
            self._link.send(line)

    def put(self, line: bytes) -> None:
        """Send a line that must not come between the others of an event; whoever sends next waits for it, too."""
        self._link.send(line)

    async def send(self, line: bytes) -> None:
        self._link.send(line)
        if self._link.congested:
            await self._link.drain()

    async def send_run(self, run: Run) -> None:
        self._send_run(run)
        if self._link.congested:
            await self._link.drain()
        else:
            await asyncio.sleep(0)  # whoever is far behind would let nobody else have a turn


class Feed:
    """Follows a session. `replay` first if the client wants what was, then `start`."""

    def __init__(
        self,
        log: EventLog,
        session_id: str,
        outlet: Outlet,
        asking: Asking,
        dressing: Dressing,
        *,
        after: int = 0,
        live_from: int = 0,
        quiet_until: int = 0,
        extensions_after: int = 0,
    ) -> None:
        """Questions are put once the cursor is at `live_from`: before that they may have had their answer since.

        What we would make of events up to `quiet_until` is left out: the client was told otherwise. Extensions up to
        `extensions_after` are history, and mean nothing any more.
        """
        self.session_id = session_id
        self.cursor = after
        self.asking = asking
        asking.hint = self._hint
        self._log = log
        self._follower: Follower = log.follow(session_id, after)
        self._outlet = outlet
        self._live_from = live_from
        self._quiet_until = quiet_until
        self._extensions_after = extensions_after
        self._dressing = dressing
        self._gated = _gated(asking.capabilities)
        self._projector = Projector()
        self._head = update_head(session_id)
        self._own: set[str] = set()
        self._is_own = False
        self._error: SessionErrorEvent | None = None
        self._endings: OrderedDict[str, Ending] = OrderedDict()
        self._waiters: list[tuple[int, asyncio.Future[bool]]] = []
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    # -- life --

    async def replay(self, until: int) -> None:
        """Send what is stored, up to a seq at least. Raises LogError, ConnectionClosed."""
        while self._follower.cursor < until:
            await self._pass_all(await self._follower.next(count=BATCH))

    async def recall(self, seq: int) -> None:
        """Ask again what was asked in an event before the cursor."""
        for entry in await self._log.read(self.session_id, seq - 1, 1):
            self._note(_event(entry))

    def start(self) -> None:
        """Follow what comes, in a task that takes its first step after what is being answered now."""
        if not self._is_over:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"feed of {self.session_id}")

    async def stop(self) -> None:
        """Send no more of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._end()
        await self.asking.close()

    async def _run(self) -> None:
        try:
            while True:
                if self.cursor >= self._live_from and not self.asking.is_live:
                    self.asking.go_live()
                await self._pass_all(await self._follower.next(count=BATCH))
        except (LogError, ConnectionClosed):
            pass  # the session is deleted, the hub closes, or the client is gone; all three are told elsewhere
        except Exception:
            logger.exception("the feed of session %s failed", self.session_id)
        finally:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(False)
        self._waiters.clear()

    # -- prompts of this client --

    def mine(self, turn_id: str) -> None:
        """This turn is the client's own: what it said is not said back, and its end is kept for the answer."""
        self._own.add(turn_id)

    async def lean_back(self, count: int = LEAN) -> None:
        """Look whether the cursor is within one of the client's own turns, before what was said there is told again."""
        for entry in await self._log.read(self.session_id, max(0, self.cursor - count), min(count, self.cursor)):
            event = _event(entry)
            if isinstance(event, CustomEvent) and event.namespace == "pilothouse":
                self._note_turn(event)

    async def sent_through(self, seq: int) -> bool:
        """Wait until everything up to a seq was sent; False when that will not happen any more."""
        if self.cursor >= seq:
            return True
        if self._is_over:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append((seq, waiter))
        return await waiter

    def ending(self, turn_id: str) -> Ending:
        """What is known of the end of one of the client's own turns."""
        self._own.discard(turn_id)
        return self._endings.pop(turn_id, Ending())

    # -- events --

    async def _pass_all(self, entries: list[Entry]) -> None:
        start = 0
        for index, entry in enumerate(entries):
            if entry.type in PIECES and entry.source is not None:
                continue
            await self._pass_run(entries[start:index])
            await self._pass(_event(entry))
            self.cursor = entry.seq
            start = index + 1
        await self._pass_run(entries[start:])
        done = [waiter for waiter in self._waiters if waiter[0] <= self.cursor]
        for waiter in done:
            self._waiters.remove(waiter)
            if not waiter[1].done():
                waiter[1].set_result(True)

    async def _pass_run(self, entries: list[Entry]) -> None:
        if entries:
            await self._outlet.send_run(encode_run(self.session_id, entries, self._outlet.cache))
            self.cursor = entries[-1].seq

    async def _pass(self, event: Event) -> None:
        updates = self._projector.project(event)
        if event.source is None and (event.seq <= self._quiet_until or self._is_echo(event)):
            updates = []
        if self._gated and isinstance(event, (NotificationEvent, CustomEvent)):
            updates = [update for update in updates if self._shown(update)]
        if isinstance(event, NotificationEvent) and event.source is None and not updates:
            self._hint_now(event)
        if isinstance(event, CustomEvent):
            updates += await self._pass_custom(event)
        updates = self._dressing.dress(updates, event.source)
        for left, update in zip(range(len(updates) - 1, -1, -1), updates, strict=True):
            await self._outlet.send(notification(self._head, update, event.seq, more=left > 0))
        self._note(event)

    async def _pass_custom(self, event: CustomEvent) -> list[bytes]:
        """What an extension says, and the updates that follow from a turn that begins."""
        line = extension(event, self.session_id) if event.seq > self._extensions_after else None
        if line is not None:
            await self._outlet.send(line)
        if event.namespace != "pilothouse" or event.event_name != "turn_started":
            return []
        closed = self._dressing.close_choice()
        return [] if closed is None else [closed]

    def _hint_now(self, event: NotificationEvent) -> None:
        """What the hub itself has to say, to a client that knows no notices; but no old news."""
        if event.seq > max(self._quiet_until, self._extensions_after):
            self._hint(event.seq, event.title, event.message)

    def _hint(self, seq: int, title: str, text: str) -> None:
        """Tell this client, and no log, something of an event that it has been sent all of.

        As a notice where those are known; else as a message, the one thing that every client shows, which says itself
        that it is not the agent's. With a seq, as everything: it is by the last line that a bridge knows its place.
        """
        if "notice" in self._gated:
            words = {"type": "text", "text": f"\n\n> **Pilothouse:** {title}.\n>\n> {text}\n\n"}
            update = {"sessionUpdate": "agent_message_chunk", "content": words, "messageId": f"pilothouse-{seq}"}
        else:
            update = {"sessionUpdate": "notice", "severity": "warning", "title": title, "description": text}
        self._outlet.put(notification(self._head, msgspec.json.encode(update), max(seq, self.cursor)))

    def _shown(self, update: bytes) -> bool:
        """Some updates are only for clients that say they know them."""
        with contextlib.suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            return _tag_of(update).sessionUpdate not in self._gated
        return True

    def _is_echo(self, event: Event) -> bool:
        if not self._is_own or not isinstance(event, (MessageDeltaEvent, MessageCompleteEvent)):
            return False
        return event.role == "user"

    def _note(self, event: Event) -> None:
        """What an event means beyond its updates."""
        if isinstance(event, (ApprovalRequestedEvent, UserQuestionEvent)):
            self.asking.asked(event)
        elif isinstance(event, ApprovalResolvedEvent):
            self.asking.settled(event.request_id)
        elif isinstance(event, SessionErrorEvent):
            self._error = event
        elif isinstance(event, CustomEvent) and event.namespace == "pilothouse":
            self._note_fact(event)

    def _note_fact(self, event: CustomEvent) -> None:
        turn_id = str(event.data.get("turnId"))
        if event.event_name == "question_answered":
            self.asking.settled(str(event.data.get("questionId")))
        elif event.event_name == "turn_ended" and turn_id in self._own:
            error = self._error.error if self._error is not None else None
            self._endings[turn_id] = Ending(event.source, error)
            if len(self._endings) > ENDINGS:
                self._endings.popitem(last=False)
        self._note_turn(event)

    def _note_turn(self, event: CustomEvent) -> None:
        if event.event_name == "turn_started":
            self._is_own, self._error = str(event.data.get("turnId")) in self._own, None
        elif event.event_name == "turn_ended":
            self._is_own = False


class Tag(Struct):
    """The name of an update, read without the rest of it."""

    sessionUpdate: str = ""  # noqa: N815 - as on the wire


_tag_of = msgspec.json.Decoder(Tag).decode


def _event(entry: Entry) -> Event:
    event = decode_event(entry.data)
    event.source = entry.source
    return event


def _gated(capabilities: ClientCapabilities) -> frozenset[str]:
    """Updates that this client did not say it can show."""
    session = capabilities.session
    gated: set[str] = set()
    if session is None or session.notices is None:
        gated.add("notice")
    if session is None or session.compaction is None:
        gated |= {"compaction_update", "compaction_summary_chunk"}
    return frozenset(gated)
