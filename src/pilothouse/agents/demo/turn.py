"""One turn of the scripted agent: what a command can do, and how it reads its arguments.

Commands write with `say`, `think` and `plan`, and act inside `async with turn.tool(...)`, which guarantees that every
tool call that starts also ends. A command may raise `Failure` to end a tool call, or itself, with a reason, and returns
a stop reason unless the turn simply ended.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ...acp import (
    AgentMessageChunk,
    AgentSideConnection,
    AgentThoughtChunk,
    AllowedOutcome,
    ClientCapabilities,
    ContentBlock,
    DeniedOutcome,
    PermissionOption,
    PlanEntryStatus,
    RequestError,
    RequestPermissionResponse,
    SessionUpdate,
    TextContentBlock,
    ToolCallLocation,
    ToolKind,
    Usage,
    plan_entry,
    text_block,
    update_plan,
)
from ...acp.contrib import PermissionBroker, ToolCallTracker, is_allowed
from ..commands import Failure
from ..toolcall import ToolCall
from .store import Session

PERMISSION_OPTIONS = (
    PermissionOption(option_id="allow-once", name="Allow once", kind="allow_once"),
    PermissionOption(option_id="allow-always", name="Always allow in this session", kind="allow_always"),
    PermissionOption(option_id="reject-once", name="Reject", kind="reject_once"),
)
PIECE = re.compile(r"(?:\S+\s+|\s+|\S+$){1,3}")


class Cancelled(Exception):
    """The client answered a question with `cancelled`: the turn is over."""


@dataclass
class Host:
    """What the agent knows of its client."""

    client: AgentSideConnection
    capabilities: ClientCapabilities
    output: asyncio.StreamWriter | None = None
    """The stream that carries the protocol, for the commands that spoil it on purpose."""
    pace: float = 0.0
    """Seconds between two pieces of streamed text."""


class Turn:
    """A prompt from its arrival to its answer."""

    def __init__(self, host: Host, session: Session, prompt: Sequence[ContentBlock]) -> None:
        self.host = host
        self.session = session
        self.blocks = list(prompt)
        self.text = "".join(block.text for block in prompt if isinstance(block, TextContentBlock))
        self.cancelled = False
        self.ending = False
        self.tracker = ToolCallTracker(id_factory=lambda: session.next_id("call"))
        self._task = asyncio.current_task()
        self._speech: tuple[type, str] | None = None
        self._said = 0
        self._thought = 0

    @property
    def client(self) -> AgentSideConnection:
        return self.host.client

    @property
    def capabilities(self) -> ClientCapabilities:
        return self.host.capabilities

    def cancel(self) -> None:
        """End the turn at whatever it is waiting for. Only once: what follows is its clean-up."""
        if not self.cancelled and not self.ending and self._task is not None:
            self.cancelled = True
            self._task.cancel()

    # -- talking --

    async def send(self, update: SessionUpdate, *, replay: SessionUpdate | None = None, passing: bool = False) -> None:
        """Send an update and, unless it is `passing`, remember it, or `replay` in its place, for `session/load`."""
        if not isinstance(update, (AgentMessageChunk, AgentThoughtChunk)):
            self._speech = None
        if not passing:
            self.session.history.add(replay or update)
        await self.client.session_update(session_id=self.session.id, update=update)

    async def say(self, text: str) -> None:
        self._said += len(text)
        await self.say_block(text_block(text))

    async def say_block(self, block: ContentBlock) -> None:
        await self.send(AgentMessageChunk(content=block, message_id=self._message_id(AgentMessageChunk)))

    async def stream(self, text: str) -> None:
        """Say something a few words at a time."""
        for piece in PIECE.findall(text):
            await self.say(piece)
            await self.pause()

    async def pour(self, texts: Iterable[str]) -> None:
        """Say many things as fast as they go: one object serves for all, as each is encoded before the next."""
        content = text_block("")
        chunk = AgentMessageChunk(content=content, message_id=self._message_id(AgentMessageChunk))
        for content.text in texts:
            self._said += len(content.text)
            await self.send(chunk)

    async def think(self, text: str) -> None:
        """Think aloud, unless the session's settings say that nobody wants to hear it."""
        if not self.session.settings.thoughts:
            return
        for piece in PIECE.findall(text):
            self._thought += len(piece)
            chunk = AgentThoughtChunk(content=text_block(piece), message_id=self._message_id(AgentThoughtChunk))
            await self.send(chunk)
            await self.pause()

    async def plan(self, steps: Iterable[str], done: int, *, active: bool = True) -> None:
        """Show a plan of which `done` steps are completed and the next one is `active`."""
        await self.send(update_plan(plan_entry(step, status=_status(i, done, active)) for i, step in enumerate(steps)))

    async def pause(self, factor: float = 1.0) -> None:
        """Give a human time to read along, and a cancellation the chance to arrive."""
        await asyncio.sleep(self.host.pace * factor)

    def usage(self) -> Usage:
        """What this turn would have cost, at four characters a token."""
        said, thought, asked = (-(-count // 4) for count in (self._said, self._thought, len(self.text)))
        return Usage(
            total_tokens=said + thought + asked,
            input_tokens=asked,
            output_tokens=said + thought,
            thought_tokens=thought,
        )

    def _message_id(self, kind: type) -> str:
        """The id of the message that is being said; another one begins when something else came between."""
        if self._speech is None or self._speech[0] is not kind:
            self._speech = (kind, self.session.next_id("message"))
        return self._speech[1]

    # -- doing --

    def tool(
        self,
        title: str,
        kind: ToolKind,
        *,
        name: str | None = None,
        content: Sequence[Any] | None = None,
        locations: Sequence[ToolCallLocation] | None = None,
        raw_input: Any = None,
        parent: Call | None = None,
    ) -> Call:
        """A tool call for the length of an `async with` block."""
        fields = {"title": title, "kind": kind, "content": content, "locations": locations, "raw_input": raw_input}
        return Call(self, fields, name=name, parent=parent)

    async def ask(self, call: Call, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
        """Ask the user about a call. Raises Cancelled when the answer is `cancelled`, Failure when none can be had."""
        broker = PermissionBroker(
            self.session.id, self.client.request_permission, tracker=self.tracker, default_options=options
        )
        try:
            response = await broker.request_for(call.key)
        except RequestError as exc:
            raise Failure(f"the client could not be asked for permission: {exc}") from exc
        if isinstance(response.outcome, DeniedOutcome):
            raise Cancelled
        return response


class Call(ToolCall):
    """A tool call that ends with its block: completed, or failed when an exception leaves it.

    A `Failure` stops there and its text is `reason`, so that the command can go on and say so.
    """

    def __init__(self, turn: Turn, fields: dict[str, Any], *, name: str | None, parent: Call | None) -> None:
        super().__init__(turn.tracker, turn.send, name, parent)
        self.turn = turn
        self.reason: str | None = None
        self.started = False
        self._fields = fields

    @property
    def failed(self) -> bool:
        return self.status == "failed"

    async def __aenter__(self) -> Self:
        await self.announce(self._fields)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if exc is None:
            if self.is_open:
                await self.end()
            return False
        if self.is_open:
            self.reason = str(exc) if isinstance(exc, Failure) else "The turn was cancelled."
            await self.give_up(self.reason)
        return isinstance(exc, Failure)

    async def start(self, *, replay_content: Sequence[Any] | None = None, **changes: Any) -> None:
        self.started = True
        await super().start(replay_content=replay_content, **changes)

    async def permit(self) -> None:
        """Go on only if the user allows it, now or earlier by "always". Raises Failure when it is rejected."""
        session, kind = self.turn.session, str(self._fields["kind"])
        if session.settings.mode == "plan":
            raise Failure("In plan mode nothing is written or run.")
        if kind in session.always and session.settings.mode != "ask":
            return
        response = await self.turn.ask(self, PERMISSION_OPTIONS)
        if not is_allowed(response, PERMISSION_OPTIONS):
            raise Failure("It was rejected.")
        assert isinstance(response.outcome, AllowedOutcome)
        if response.outcome.option_id == "allow-always":
            session.always.add(kind)


def _status(index: int, done: int, active: bool) -> PlanEntryStatus:
    if index < done:
        return "completed"
    return "in_progress" if active and index == done else "pending"


PROMPT = re.compile(r"\s*/?(\S*)\s?(.*)", re.DOTALL)


def split(text: str) -> tuple[str, str]:
    """The first word of a prompt, in lower case and without the `/` of a slash command, and all that follows it."""
    match = PROMPT.fullmatch(text)
    assert match is not None, "can't happen: the pattern fits every text"
    return match[1].lower(), match[2]


def words(args: str, count: int) -> list[str]:
    """At most `count` words; the last one holds the rest. Missing ones are empty."""
    found = args.split(maxsplit=count - 1)
    return [*found, *[""] * (count - len(found))]


def number(args: str, *, default: int, low: int, high: int) -> int:
    """A whole number in a range. Raises Failure for anything else."""
    word = args.strip()
    if not word:
        return default
    try:
        value = int(word)
    except ValueError:
        raise Failure(f"Expected a whole number, got `{word}`.") from None
    if not low <= value <= high:
        raise Failure(f"Expected a number from {low} to {high}, got {value}.")
    return value
