"""The state of a session, and the tables by which events find the items they are about.

All state is in the fields of `State`, which can be stored and read back at any event. The `Index` holds nothing that
the fields do not have: it is rebuilt from them, so a fold that went through storage continues unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from ...acp.naming import camel
from ..records import ChangeType, CostBreakdown, EnvironmentContext, FileChange, SessionStatus, Todo, TokenUsage
from .items import (
    Approval,
    Artifact,
    Compaction,
    Count,
    Custom,
    Message,
    Notification,
    Plan,
    Question,
    SessionItem,
    Thought,
    ToolCall,
)

CHATTER_LIMIT = 500
"""Notifications and custom events kept. Agents can send these without end, and the log has them all."""

ItemT = TypeVar("ItemT", bound=SessionItem)


class Part(Struct, kw_only=True, omit_defaults=True, rename=camel):
    """Base of the parts of the state that are no items."""


class Turn(Part):
    """The current turn, or the last one."""

    turn_id: str
    open: bool
    started_at: str
    stop_reason: str | None = None
    ended_at: str | None = None
    usage: TokenUsage | None = None
    elsewhere: bool = False
    """It was done in another program, which has the session as well."""


class FileState(Part):
    """What all changes of one file amount to. Lines are summed over the changes."""

    path: str
    change_type: ChangeType
    lines_added: int
    lines_removed: int
    changes: int


class SubAgent(Part):
    """An agent that this one set to work."""

    sub_agent_id: str
    parent_tool_call_id: str
    task: str
    status: str
    started_at: str
    model: str | None = None
    message: str | None = None
    progress: float | None = None
    result: str | None = None
    token_usage: TokenUsage | None = None
    ended_at: str | None = None
    unfinished: bool = False


class ContextWindow(Part):
    used: int
    limit: int
    percentage: float


class RateLimit(Part):
    """The last refusal of the provider; `timestamp` says when, `retry_after` counts seconds from then."""

    retry_after: float
    limit: str
    timestamp: str
    message: str | None = None


class Progress(Part):
    """What moves, when it is not a tool call."""

    label: str
    current: float | None = None
    total: float | None = None
    percentage: float | None = None


class Index:
    """Where to find things. Ids may be used again: each table has the last item of an id.

    `shed` counts the items that were let go of; with any in it, the session is no longer all in its fields.
    """

    __slots__ = (
        "agents",
        "approvals",
        "calls",
        "chatter",
        "compactions",
        "open",
        "pending",
        "plans",
        "questions",
        "shed",
        "texts",
    )

    def __init__(self, items: Iterable[SessionItem], agents: Iterable[SubAgent]) -> None:
        self.agents = {agent.sub_agent_id: agent for agent in agents if agent.ended_at is None}
        self.calls: dict[str, ToolCall] = {}
        self.texts: dict[tuple[str, str], Message | Thought] = {}
        self.open: dict[int, Message | Thought | ToolCall] = {}
        self.approvals: dict[str, Approval] = {}
        self.questions: dict[str, Question] = {}
        self.pending: dict[int, Approval | Question] = {}
        self.plans: dict[tuple[str | None, str], Plan] = {}
        self.compactions: dict[str, Compaction] = {}
        self.chatter = 0
        self.shed = Count()
        for item in items:
            self.add(item)

    def add(self, item: SessionItem) -> None:
        """Make a new item known."""
        if isinstance(item, ToolCall):
            self.calls[item.tool_call_id] = item
            if not item.ended:
                self.open[id(item)] = item
        elif isinstance(item, (Message, Thought)):
            self.texts[text_key(item)] = item
            if not item.done:
                self.open[id(item)] = item
        elif isinstance(item, (Approval, Question)):
            self._add_ask(item)
        elif isinstance(item, Plan):
            self.plans[item.turn_id, item.plan_id] = item
        elif isinstance(item, Compaction):
            self.compactions[item.compaction_id] = item
        elif isinstance(item, (Notification, Custom)):
            self.chatter += 1

    def _add_ask(self, item: Approval | Question) -> None:
        if isinstance(item, Approval):
            self.approvals[item.request_id] = item
        else:
            self.questions[item.question_id] = item
        if item.pending:
            self.pending[id(item)] = item

    def closed(self, item: SessionItem) -> None:
        """The item ended, or was answered."""
        self.open.pop(id(item), None)
        self.pending.pop(id(item), None)

    def forget(self, item: SessionItem) -> None:
        """The item is let go of."""
        if isinstance(item, ToolCall):
            _drop(self.calls, item.tool_call_id, item)
        elif isinstance(item, (Message, Thought)):
            _drop(self.texts, text_key(item), item)
        elif isinstance(item, Approval):
            _drop(self.approvals, item.request_id, item)
        elif isinstance(item, Plan):
            _drop(self.plans, (item.turn_id, item.plan_id), item)


def _drop(table: dict[Any, Any], key: Any, item: SessionItem) -> None:
    if table.get(key) is item:
        del table[key]


def _is_mode_choice(item: SessionItem) -> bool:
    return isinstance(item, Custom) and (item.namespace, item.event_name) == ("pilothouse", "mode_chosen")


def text_key(item: Message | Thought) -> tuple[str, str]:
    """A thought may have the id of the message it belongs to, and ids may repeat from one role to another."""
    return (item.role if isinstance(item, Message) else "thought", item.message_id)


class State(Struct, kw_only=True, rename=camel, dict=True):
    """Everything that the events of a session amount to, after the event numbered `seq`."""

    id: str = ""
    seq: int = 0
    status: SessionStatus = "idle"
    agent: str = ""
    title: str | None = None
    model: str | None = None
    mode: str | None = None
    plan_mode: bool = False
    project_path: str = ""
    project_name: str = ""
    working_directory: str = ""
    started_at: str = ""
    updated_at: str = ""
    turn: Turn | None = None
    turns: int = 0
    turns_ended: list[Turn] = []
    todos: list[Todo] = []
    usage: TokenUsage | None = None
    cost: CostBreakdown | None = None
    context_window: ContextWindow | None = None
    rate_limit: RateLimit | None = None
    progress: Progress | None = None
    environment: EnvironmentContext | None = None
    modes: list[Any] = []
    models: list[Any] = []
    config_options: list[Any] = []
    available_commands: list[Any] = []
    files: dict[str, FileState] = {}
    sub_agents: dict[str, SubAgent] = {}
    chatter_dropped: int = 0
    items: list[SessionItem] = []

    if TYPE_CHECKING:

        @property
        def index(self) -> Index: ...

        @index.setter
        def index(self, value: Index) -> None: ...

    def __post_init__(self) -> None:
        self.index = Index(self.items, self.sub_agents.values())

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        return self._of(Message)

    @property
    def thoughts(self) -> list[Thought]:
        return self._of(Thought)

    @property
    def tool_calls(self) -> list[ToolCall]:
        return self._of(ToolCall)

    @property
    def artifacts(self) -> list[Artifact]:
        return self._of(Artifact)

    @property
    def pending_approvals(self) -> list[Approval]:
        return [item for item in self.index.pending.values() if isinstance(item, Approval)]

    @property
    def pending_questions(self) -> list[Question]:
        return [item for item in self.index.pending.values() if isinstance(item, Question)]

    def tool_call(self, tool_call_id: str) -> ToolCall | None:
        """The last call of that id."""
        return self.index.calls.get(tool_call_id)

    def _of(self, kind: type[ItemT]) -> list[ItemT]:
        return [item for item in self.items if isinstance(item, kind)]

    # -- writing ---------------------------------------------------------------------------------------------------

    @property
    def turn_id(self) -> str | None:
        """The open turn's id, which a new item gets."""
        return self.turn.turn_id if self.turn is not None and self.turn.open else None

    def add(self, item: ItemT) -> ItemT:
        """Append an item and make it known."""
        self.items.append(item)
        self.index.add(item)
        if self.index.chatter > 2 * CHATTER_LIMIT:
            self._drop_chatter()
        return item

    def _drop_chatter(self) -> None:
        """Let go of the older half, but not of the last mode that the user chose, which still holds.

        Done at every so many, or each new notification would cost a walk of all items.
        """
        kept: list[SessionItem] = []
        drop = self.index.chatter - CHATTER_LIMIT
        mode = next((item for item in reversed(self.items) if _is_mode_choice(item)), None)
        for item in self.items:
            if drop and isinstance(item, (Notification, Custom)) and item is not mode:
                drop -= 1
                self.chatter_dropped += 1
            else:
                kept.append(item)
        self.items = kept
        self.index.chatter = CHATTER_LIMIT


_HUNK = re.compile(r"^@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.MULTILINE | re.ASCII)

_MERGED: dict[tuple[ChangeType, ChangeType], ChangeType] = {
    ("created", "modified"): "created",
    ("created", "created"): "created",
    ("modified", "created"): "modified",  # written anew, but it was there before
    ("modified", "modified"): "modified",
    ("modified", "deleted"): "deleted",
    ("deleted", "created"): "modified",
    ("deleted", "modified"): "modified",
    ("deleted", "deleted"): "deleted",
}
"""Made and then deleted is not here: the session leaves no trace of such a file, so it is forgotten."""


def merge_change(files: dict[str, FileState], change: FileChange) -> None:
    """Add one change to what is known of its file."""
    if not change.path:
        return
    added, removed = line_counts(change)
    known = files.get(change.path)
    if known is None:
        files[change.path] = FileState(
            path=change.path, change_type=change.change_type, lines_added=added, lines_removed=removed, changes=1
        )
        return
    merged = _MERGED.get((known.change_type, change.change_type))
    if merged is None:
        del files[change.path]
        return
    known.change_type = merged
    known.lines_added += added
    known.lines_removed += removed
    known.changes += 1


def line_counts(change: FileChange) -> tuple[int, int]:
    """Lines added and removed: as told, else counted in the diff."""
    added, removed = change.lines_added, change.lines_removed
    if (added is None or removed is None) and change.diff:
        plus, minus = _count(change.diff)
        added, removed = plus if added is None else added, minus if removed is None else removed
    return max(added or 0, 0), max(removed or 0, 0)


def _count(diff: str) -> tuple[int, int]:
    """Lines by their mark. A hunk says how long it is; only so is a removed `-- x` told from the name of a file."""
    plus = minus = old = new = 0
    bare = not _HUNK.search(diff)
    for line in diff.split("\n"):
        if bare:
            plus += line.startswith("+") and not line.startswith("+++ ")
            minus += line.startswith("-") and not line.startswith("--- ")
        elif old > 0 or new > 0:
            mark = line[:1]
            plus, minus = plus + (mark == "+"), minus + (mark == "-")
            old, new = old - (mark not in ("+", "\\")), new - (mark not in ("-", "\\"))
        elif found := _HUNK.match(line):
            old, new = int(found[1] or 1), int(found[2] or 1)
    return plus, minus
