"""What can go wrong with the log, as one tree. Messages say what was found and what to do next.

LogError
├── UnknownSession        no such session, or it was deleted
├── LogConflict           another batch was appended first; nothing of this one was written
├── CursorAhead           a cursor beyond the end: it belongs to another log, or to a later state of this one
├── UnknownRecord         no approval, rule, device … with that key
├── RecordExists          the key of a new record is taken
├── RecordChanged         a conditional change came too late; carries the record that won
├── LogLocked             another process has the log open
├── LogUnusable           the file cannot be used as it is
│   ├── LogReadOnly       no permission to write the file or its directory
│   ├── LogCorrupt        damaged, or not a database at all
│   ├── LogForeign        a database of another program
│   └── LogTooNew         written by a later version
├── LogFull               no room left; what was to be written was rolled back
└── LogClosed             the log is closed; a cursor stays valid for the next time
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


class LogError(Exception):
    """Base of everything the log raises on purpose."""


class UnknownSession(LogError):
    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"no session {self.session_id!r} in the log"


class LogConflict(LogError):
    def __init__(self, session_id: str, expected: int, actual: int) -> None:
        super().__init__(session_id, expected, actual)
        self.session_id = session_id
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return (
            f"session {self.session_id!r} is at seq {self.actual}, the batch expected {self.expected}; "
            "nothing was written: read on from there and append again"
        )


class CursorAhead(LogError):
    def __init__(self, cursor: int, last: int) -> None:
        super().__init__(cursor, last)
        self.cursor = cursor
        self.last = last

    def __str__(self) -> str:
        return f"cursor {self.cursor} is beyond the end of the log, {self.last}; it is from elsewhere: start from 0"


class UnknownRecord(LogError):
    def __init__(self, table: str, key: tuple[Any, ...]) -> None:
        super().__init__(table, key)
        self.table = table
        self.key = key

    def __str__(self) -> str:
        return f"nothing in {self.table} under {', '.join(map(repr, self.key))}"


class RecordExists(LogError):
    def __init__(self, table: str, key: tuple[Any, ...]) -> None:
        super().__init__(table, key)
        self.table = table
        self.key = key

    def __str__(self) -> str:
        return f"{', '.join(map(repr, self.key))} is already in {self.table}"


class RecordChanged(LogError):
    """`record` is what stands: somebody was first."""

    def __init__(self, record: Any) -> None:
        super().__init__(record)
        self.record = record

    def __str__(self) -> str:
        return f"too late, somebody was first: {self.record!r}"


class LogLocked(LogError):
    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(path, pid)
        self.path = path
        self.pid = pid

    def __str__(self) -> str:
        holder = f"process {self.pid}" if self.pid else "another process"
        return (
            f"{self.path} is in use by {holder}; only one hub may have it open: "
            "attach to that one, stop it, or use another directory"
        )


class LogUnusable(LogError):
    """`path` is the file, `why` what was found, `advice` what to do next."""

    advice = "look at the file and its directory, or use another one"

    def __init__(self, path: Path, why: str, advice: str | None = None) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why
        self.advice = advice or type(self).advice

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; {self.advice}"


class LogReadOnly(LogUnusable):
    advice = "give this user the right to write the file and its directory, or use another directory"


class LogCorrupt(LogUnusable):
    advice = "move it aside (nothing was changed) and restore a copy, or start with an empty one"


class LogForeign(LogUnusable):
    advice = "use another path; this file was not changed"


class LogTooNew(LogUnusable):
    advice = "update Pilothouse, or use another directory; this file was not changed"


class LogFull(LogError):
    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"no room left for {self.path or 'the log'}; nothing was written: free some space and try again"


class LogClosed(LogError):
    def __init__(self) -> None:
        super().__init__("the log is closed; open it again and go on from the same cursor")
