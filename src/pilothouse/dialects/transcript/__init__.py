"""The folded view of a session, which the UI, replays and exports show.

`transcript(session)` gives the entries, `group_items` the view with runs of tool calls folded together, `to_markdown`
and `to_json` the exports; `html.to_html`, which brings a reader of Markdown along, is imported by whoever needs it. All
of it is computed from the folded session, so live and stored sessions look the same.
"""

from ..texts import WHOLE, Limits, clip, shorten_lines, shorten_middle
from .entries import (
    ApprovalEntry,
    ArtifactEntry,
    CompactionEntry,
    CustomEntry,
    Entry,
    ErrorEntry,
    FileDiffView,
    NotificationEntry,
    QuestionEntry,
    TextEntry,
    ThinkingEntry,
    TodoListEntry,
    ToolCallEntry,
    ToolGroup,
    TranscriptEntry,
    TurnEndEntry,
    group_items,
)
from .export import to_json, to_markdown
from .view import VERBS, entry_of, transcript

__all__ = [
    "VERBS",
    "WHOLE",
    "ApprovalEntry",
    "ArtifactEntry",
    "CompactionEntry",
    "CustomEntry",
    "Entry",
    "ErrorEntry",
    "FileDiffView",
    "Limits",
    "NotificationEntry",
    "QuestionEntry",
    "TextEntry",
    "ThinkingEntry",
    "TodoListEntry",
    "ToolCallEntry",
    "ToolGroup",
    "TranscriptEntry",
    "TurnEndEntry",
    "clip",
    "entry_of",
    "group_items",
    "shorten_lines",
    "shorten_middle",
    "to_json",
    "to_markdown",
    "transcript",
]
