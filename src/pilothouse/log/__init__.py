"""The log: the only road from agents to consumers. Append and commit first, wake followers second.

`EventLog` is the contract; `SQLiteLog` keeps a file, `MemoryLog` keeps nothing.
"""

from .contract import EventLog
from .entries import Entry
from .errors import (
    CursorAhead,
    LogClosed,
    LogConflict,
    LogCorrupt,
    LogError,
    LogForeign,
    LogFull,
    LogLocked,
    LogReadOnly,
    LogTooNew,
    LogUnusable,
    RecordChanged,
    RecordExists,
    UnknownRecord,
    UnknownSession,
)
from .follow import Follower
from .memory import MemoryLog
from .records import (
    Approval,
    Change,
    DeleteSession,
    Device,
    Insert,
    Outcome,
    Put,
    Remove,
    Rule,
    SearchHit,
    SessionFilter,
    SessionPage,
    SessionRecord,
    Setting,
    Turn,
    Update,
)
from .sqlite.log import SQLiteLog

__all__ = [
    "Approval",
    "Change",
    "CursorAhead",
    "DeleteSession",
    "Device",
    "Entry",
    "EventLog",
    "Follower",
    "Insert",
    "LogClosed",
    "LogConflict",
    "LogCorrupt",
    "LogError",
    "LogForeign",
    "LogFull",
    "LogLocked",
    "LogReadOnly",
    "LogTooNew",
    "LogUnusable",
    "MemoryLog",
    "Outcome",
    "Put",
    "RecordChanged",
    "RecordExists",
    "Remove",
    "Rule",
    "SQLiteLog",
    "SearchHit",
    "SessionFilter",
    "SessionPage",
    "SessionRecord",
    "Setting",
    "Turn",
    "UnknownRecord",
    "UnknownSession",
    "Update",
]
