"""The items of a session, in the order in which they began: messages, thoughts, tool calls, questions …

They are mutable and wire-ready: storage and clients have these names and shapes. A field that must always be on the
wire has no default here. Lookup tables are not state; `state.py` rebuilds them. `Text` grows by pieces at the cost of
what is appended; they are joined when it is read, and on the wire it is a plain string.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from ...acp.naming import camel
from ..errors import ACPError
from ..records import (
    ApprovalPreview,
    AudioContent,
    FileChange,
    GitOperation,
    ImageContent,
    MessageContent,
    Option,
    OtherContent,
    ResourceContent,
    RuleOffer,
    TextContent,
    Todo,
    ToolResultContent,
    ToolStructuredOutput,
    ToolUseContent,
    WebOperation,
)

MANY = 1_000
"""Pieces after which they are put together: a million short strings weigh ten times what their text does."""


class Text:
    """A string that grows. `str()` of it is its value."""

    __slots__ = ("_pieces", "_recent")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text] if text else []
        self._recent: list[str] = []

    def append(self, piece: str) -> None:
        if piece:
            self._recent.append(piece)
            if len(self._recent) > MANY:
                self._settle()

    def extend(self, pieces: Iterable[str]) -> None:
        """Append them all."""
        self._recent += filter(None, pieces)
        if len(self._recent) > MANY:
            self._settle()

    def _settle(self) -> None:
        """Put the recent pieces together, each once: a long text is not copied again and again."""
        if self._recent:
            self._pieces.append("".join(self._recent))
            self._recent = []

    def replace(self, text: str) -> None:
        """Forget what came before."""
        self._pieces, self._recent = [text] if text else [], []

    def __str__(self) -> str:
        self._settle()
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def __repr__(self) -> str:
        return f"Text({str(self)!r})"

    def __bool__(self) -> bool:
        return bool(self._pieces or self._recent)

    def __len__(self) -> int:
        return sum(map(len, self._pieces)) + sum(map(len, self._recent))

    def __contains__(self, part: str) -> bool:
        return part in str(self)

    def __getitem__(self, index: int | slice) -> str:
        return str(self)[index]

    def __add__(self, other: object) -> str:
        return str(self) + str(other)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, (Text, str)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def encode_text(value: Any) -> Any:
    """Hook of the encoder."""
    if isinstance(value, Text):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no place in a session's state")


def decode_text(kind: type, value: Any) -> Any:
    """Hook of the decoder."""
    if kind is Text and isinstance(value, str):
        return Text(value)
    raise NotImplementedError(f"{kind.__name__} has no place in a session's state")


def sound(value: Any) -> Any:
    """Plain values that UTF-8 can carry: half a surrogate pair becomes U+FFFD. Takes any depth."""
    if isinstance(value, str):
        return _whole(value)
    made: list[Any] = [value]
    places: list[tuple[Any, Any]] = [(made, 0)]
    for place, key in places:  # which grows meanwhile
        part = place[key]
        if isinstance(part, str):
            place[key] = _whole(part)
        elif isinstance(part, dict):
            copy = place[key] = {_whole(name): inner for name, inner in part.items()}
            places += ((copy, name) for name in copy)
        elif isinstance(part, list):
            items = place[key] = part.copy()
            places += ((items, index) for index in range(len(items)))
    return made[0]


def _whole(text: Any) -> Any:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(text, str) else text


CallStatus: TypeAlias = Literal["pending", "executing", "completed", "failed", "cancelled"]


class TextRun(Struct, kw_only=True, rename=camel, tag_field="type", tag="text"):
    """A text block that may still grow; on the wire the same as `TextContent`."""

    text: Text


Block: TypeAlias = (
    TextRun | ImageContent | ToolUseContent | ToolResultContent | AudioContent | ResourceContent | OtherContent
)


def as_block(content: MessageContent) -> Block:
    """A block of an event as a block of a message."""
    return TextRun(text=Text(content.text)) if isinstance(content, TextContent) else content


class Item(Struct, kw_only=True, omit_defaults=True, rename=camel, tag_field="type"):
    """Base: the event that began it, when, and in which turn."""

    seq: int
    timestamp: str
    turn_id: str | None = None


class Message(Item, tag="message"):
    """What was said. `done` once it is complete or its turn is over."""

    message_id: str
    role: str
    content: list[Block]
    done: bool
    model: str | None = None
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text blocks joined."""
        return "".join(str(block.text) for block in self.content if isinstance(block, TextRun))


class Thought(Item, tag="thought"):
    """What was thought. `content` has the blocks that are not text."""

    message_id: str
    text: Text
    done: bool
    content: list[Block] = []
    redacted: bool = False
    ended_at: str | None = None


class ToolCall(Item, tag="tool_call"):
    """A tool call with everything that became known of it.

    `unfinished` marks a call that no event ended: its turn or its agent did. A result that comes later corrects it.
    """

    tool_call_id: str
    name: str
    category: str
    status: CallStatus
    output: Text = field(default_factory=Text)
    kind: str | None = None
    title: str | None = None
    description: str | None = None
    input: Any = None
    args: Text | None = None
    structured: ToolStructuredOutput | None = None
    error: ACPError | None = None
    locations: list[Any] | None = None
    risk_level: str | None = None
    risk_reasons: list[str] = []
    requires_approval: bool = False
    approval_ids: list[str] = []
    files: list[FileChange] = []
    git: list[GitOperation] = []
    web: list[WebOperation] = []
    percentage: float | None = None
    executing_at: str | None = None
    ended_at: str | None = None
    duration: int | None = None
    parent_tool_call_id: str | None = None
    sub_agent_id: str | None = None
    unfinished: bool = False

    @property
    def ended(self) -> bool:
        return self.status not in ("pending", "executing")


class Plan(Item, tag="plan"):
    """The agent's list of things to do, or its plan as text: one for each turn (and plan id), updated in place."""

    plan_id: str
    todos: list[Todo]
    text: str | None = None


class Approval(Item, tag="approval"):
    """A decision that was asked for. `approved` is None while it is pending; `cancelled` when nobody decided."""

    request_id: str
    tool_call_id: str
    tool_name: str
    tool_input: Any
    description: str
    risk_level: str
    approved: bool | None = None
    resolved_by: str | None = None
    resolved_at: str | None = None
    reason: str | None = None
    option_id: str | None = None
    decided_by: str | None = None
    expires_at: str | None = None
    preview: ApprovalPreview | None = None
    options: list[Option] = []
    risk_reasons: list[str] = []
    notes: list[str] = []
    origin: str = "agent"
    rule_offers: list[RuleOffer] = []
    rule_refusal: str | None = None
    question_ids: list[str] = []
    unfinished: bool = False

    @property
    def pending(self) -> bool:
        return self.resolved_by is None


class Question(Item, tag="question"):
    """Something the agent asked. `outcome` is None while it is open."""

    question_id: str
    question: str
    options: list[str] | None = None
    default_value: str | None = None
    expires_at: str | None = None
    multi_select: bool = False
    form: dict[str, Any] | None = None
    url: str | None = None
    tool_call_id: str | None = None
    outcome: str | None = None
    answer: Any = None
    answered_at: str | None = None
    unfinished: bool = False

    @property
    def pending(self) -> bool:
        return self.outcome is None


class Notification(Item, tag="notification"):
    """Something told to the user; `count` says how often in a row."""

    level: str
    title: str
    message: str
    action_url: str | None = None
    count: int = 1


class Failure(Item, tag="error"):
    """An error that is not one tool call's; `count` says how often in a row."""

    error: ACPError
    count: int = 1


class Compaction(Item, tag="compaction"):
    """The agent shortened its memory of the conversation."""

    compaction_id: str
    status: str
    summary: Text = field(default_factory=Text)
    error: str | None = None


class Artifact(Item, tag="artifact"):
    """Something the session made that can be shown or downloaded."""

    artifact: Any


class Custom(Item, tag="custom"):
    """A fact outside the vocabulary, as it came."""

    namespace: str
    event_name: str
    data: Any


SessionItem: TypeAlias = (
    Message | Thought | ToolCall | Plan | Approval | Question | Notification | Failure | Compaction | Artifact | Custom
)


class Count(NamedTuple):
    items: int = 0
    calls: int = 0
    messages: int = 0
    errors: int = 0


def counted(items: Iterable[SessionItem], before: Count) -> Count:
    """The count of these items and of those `before`."""
    number, calls, messages, errors = before
    for item in items:
        number += 1
        if isinstance(item, ToolCall):
            calls += 1
            errors += item.status == "failed"
        elif isinstance(item, Message):
            messages += item.role in ("user", "assistant")
        elif isinstance(item, Failure):
            errors += item.count
    return Count(number, calls, messages, errors)
