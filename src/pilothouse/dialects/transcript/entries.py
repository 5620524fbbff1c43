"""The entries of a transcript, in order: wire-ready records for the UI, for replays and for exports.

Texts in them may be cut; a number beside the text (`…Omitted`) has the count of the characters left out and, where the
text is prose or output, so has the text itself. Consecutive tool calls are grouped into one line that can be opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from msgspec import Struct

from ...acp.naming import camel
from ...model.errors import ACPError
from ...model.records import ApprovalPreview, ChangeType, MessageContent, Option, RuleOffer, Todo


class Entry(Struct, kw_only=True, omit_defaults=True, rename=camel, tag_field="type"):
    """Base. `id` stays the same while an entry grows, so a consumer replaces by it; `seq` is where it began."""

    id: str
    seq: int
    timestamp: str
    turn_id: str | None = None


class TextEntry(Entry, tag="text"):
    """A message. `content` has all its blocks in order when some of them are not text."""

    role: str
    text: str
    streaming: bool = False
    text_omitted: int = 0
    content: list[MessageContent] | None = None
    model: str | None = None


class ThinkingEntry(Entry, tag="thinking"):
    text: str
    streaming: bool = False
    text_omitted: int = 0
    redacted: bool = False
    duration: int | None = None


class FileDiffView(Struct, kw_only=True, omit_defaults=True, rename=camel):
    """What a call does to one file. `omitted` counts the lines of the diff that were left out."""

    path: str
    display_path: str
    change_type: ChangeType
    diff: str
    lines_added: int
    lines_removed: int
    omitted: int = 0


class ToolCallEntry(Entry, tag="tool_call"):
    """A tool call as a card: verb and detail for its head, the rest for its body.

    `tool` is the tool by the name that Pilothouse gives it, `name` by the agent's. `attention` asks to show the body
    without being opened: something failed.
    """

    tool_call_id: str
    tool: str
    name: str
    category: str
    kind: str
    status: str
    verb: str
    detail: str
    title: str | None = None
    description: str | None = None
    input: Any = None
    output: str = ""
    output_omitted: int = 0
    structured: Any = None
    diffs: list[FileDiffView] = []
    new_file: bool = False
    error: ACPError | None = None
    locations: list[Any] | None = None
    risk_level: str | None = None
    risk_reasons: list[str] = []
    approval_ids: list[str] = []
    percentage: float | None = None
    duration: int | None = None
    parent_tool_call_id: str | None = None
    sub_agent_id: str | None = None
    unfinished: bool = False
    attention: bool = False


class TodoListEntry(Entry, tag="todo_list"):
    """The agent's list in one turn, as it last was; `text` when it wrote its plan as prose."""

    todos: list[Todo]
    completed: int
    total: int
    text: str | None = None


class QuestionEntry(Entry, tag="question"):
    question_id: str
    question: str
    pending: bool
    options: list[str] | None = None
    multi_select: bool = False
    form: dict[str, Any] | None = None
    url: str | None = None
    tool_call_id: str | None = None
    outcome: str | None = None
    answer: Any = None


class ApprovalEntry(Entry, tag="approval"):
    """A request for a decision. `notes` are the hub's own sentences about it, shown with the request.

    `rule_offers` are the rules that "always" can store; `question_ids` are questions that the approval answers.
    """

    request_id: str
    tool_call_id: str
    tool_name: str
    description: str
    risk_level: str
    pending: bool
    approved: bool | None = None
    resolved_by: str | None = None
    decided_by: str | None = None
    reason: str | None = None
    option_id: str | None = None
    options: list[Option] = []
    risk_reasons: list[str] = []
    preview: ApprovalPreview | None = None
    expires_at: str | None = None
    notes: list[str] = []
    origin: str = "agent"
    rule_offers: list[RuleOffer] = []
    rule_refusal: str | None = None
    question_ids: list[str] = []


class NotificationEntry(Entry, tag="notification"):
    level: str
    title: str
    message: str
    action_url: str | None = None
    count: int = 1


class ErrorEntry(Entry, tag="error"):
    error: ACPError
    count: int = 1


class CompactionEntry(Entry, tag="compaction"):
    status: str
    summary: str
    error: str | None = None


class ArtifactEntry(Entry, tag="artifact"):
    artifact: Any


class CustomEntry(Entry, tag="custom"):
    """A fact that has no card of its own."""

    namespace: str
    event_name: str
    data: Any


class TurnEndEntry(Entry, tag="turn_end"):
    """How a turn ended, after all that belongs to it; `duration` in milliseconds."""

    stop_reason: str | None = None
    duration: int | None = None


TranscriptEntry: TypeAlias = (
    TextEntry
    | ThinkingEntry
    | ToolCallEntry
    | TodoListEntry
    | QuestionEntry
    | ApprovalEntry
    | NotificationEntry
    | ErrorEntry
    | CompactionEntry
    | ArtifactEntry
    | CustomEntry
    | TurnEndEntry
)


class ToolGroup(Struct, kw_only=True, omit_defaults=True, rename=camel, tag_field="type", tag="tool_group"):
    """Tool calls that follow each other. `running` while one of them is."""

    id: str
    label: str
    calls: int
    failed: int
    running: bool
    entries: list[ToolCallEntry | ApprovalEntry]


def group_items(entries: Iterable[TranscriptEntry]) -> list[TranscriptEntry | ToolGroup]:
    """Runs of two calls or more become groups. An approval that was decided belongs to the run it stands in."""
    grouped: list[TranscriptEntry | ToolGroup] = []
    run: list[ToolCallEntry | ApprovalEntry] = []
    for entry in entries:
        if isinstance(entry, ToolCallEntry) or (isinstance(entry, ApprovalEntry) and not entry.pending):
            run.append(entry)
            continue
        grouped += _close(run)
        run = []
        grouped.append(entry)
    return [*grouped, *_close(run)]


def _close(run: list[ToolCallEntry | ApprovalEntry]) -> Iterator[TranscriptEntry | ToolGroup]:
    calls = [entry for entry in run if isinstance(entry, ToolCallEntry)]
    if len(calls) < 2:
        yield from run
        return
    failed = sum(call.status == "failed" for call in calls)
    label = f"Working · {len(calls)} calls" + (f" · {failed} failed" if failed else "")
    running = any(call.status in ("pending", "executing") for call in calls)
    yield ToolGroup(
        id=f"group:{calls[0].id}", label=label, calls=len(calls), failed=failed, running=running, entries=run
    )
