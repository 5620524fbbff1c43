"""A session: its status machine, and the fold from events to its state.

`status.py` says which moves are legal, `items.py` and `state.py` what there is to know, `fold.py` how an event changes
it. Everything is a function of the events alone.
"""

from .fold import Session, dump, fold, load, milliseconds_between, shed, summary
from .items import (
    Approval,
    Artifact,
    Block,
    CallStatus,
    Compaction,
    Custom,
    Failure,
    Item,
    Message,
    Notification,
    Plan,
    Question,
    SessionItem,
    Text,
    TextRun,
    Thought,
    ToolCall,
    sound,
)
from .state import ContextWindow, FileState, Progress, RateLimit, SubAgent, Turn, line_counts
from .status import ACTIVE, MOVES, STATUSES, TRANSITIONS, WAITING, Move, can_move, check_move, status_after

__all__ = [
    "ACTIVE",
    "MOVES",
    "STATUSES",
    "TRANSITIONS",
    "WAITING",
    "Approval",
    "Artifact",
    "Block",
    "CallStatus",
    "Compaction",
    "ContextWindow",
    "Custom",
    "Failure",
    "FileState",
    "Item",
    "Message",
    "Move",
    "Notification",
    "Plan",
    "Progress",
    "Question",
    "RateLimit",
    "Session",
    "SessionItem",
    "SubAgent",
    "Text",
    "TextRun",
    "Thought",
    "ToolCall",
    "Turn",
    "can_move",
    "check_move",
    "dump",
    "fold",
    "line_counts",
    "load",
    "milliseconds_between",
    "shed",
    "sound",
    "status_after",
    "summary",
]
