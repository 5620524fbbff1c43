"""The things a session consists of, in the order in which they began: messages, thoughts, tool calls, questions …

They are mutable, and they are wire-ready: what is stored and what a consumer gets has these names and shapes. A field
that must always be on the wire has no default here. Lookup tables are not state; `state.py` rebuilds them.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

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
from .text import Text

__all__ = [
    "Approval",
    "Artifact",
    "Block",
    "CallStatus",
    "Compaction",
    "Custom",
    "Failure",
    "Item",
    "Message",
    "Notification",
    "Plan",
    "Question",
    "SessionItem",
    "TextRun",
    "Thought",
    "ToolCall",
    "as_block",
]

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
