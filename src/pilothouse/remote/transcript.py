"""The record that Claude Code keeps of a session, as its hook looks at it. Looks only, and believes little of it.

It says which call a question is about and when that has ended. It is no ground to allow anything.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

__all__ = ["Transcript"]


class Transcript:
    """The session's own record, read on: which call the question is about, and whether that has ended.

    The question does not name its call, and nobody tells the hook that its user has answered in the terminal; both
    show here, the call a moment after the question.
    """

    TAIL = 1 << 20

    def __init__(self, path: Any, name: Any, given: Any) -> None:
        self._path = path if isinstance(path, str) else ""
        self._asked = (name, given)
        self._at: int | None = None
        self._rest = b""
        self._calls: dict[str, None] = {}
        self._ended: set[str] = set()
        self._known: str | None = None

    @property
    def call_id(self) -> str | None:
        """The newest call of that tool with that input that has not ended. Once found it stays the one."""
        if self._known is None:
            self._known = next((one for one in reversed(self._calls) if one not in self._ended), None)
        return self._known

    @property
    def has_ended(self) -> bool:
        return self.call_id is not None and self.call_id in self._ended

    def read_on(self) -> None:
        if not Path(self._path).is_file():  # a pipe or a device has no end
            return
        with contextlib.suppress(OSError, ValueError), open(self._path, "rb") as file:  # noqa: PTH123
            if self._at is None:
                self._at = max(0, file.seek(0, os.SEEK_END) - self.TAIL)
            file.seek(self._at)
            data = file.read()
            self._at += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._note(line)

    def _note(self, line: bytes) -> None:
        if b'"tool_' not in line:
            return
        with contextlib.suppress(ValueError, RecursionError, AttributeError, TypeError, LookupError):
            for block in json.loads(line)["message"]["content"]:
                if block.get("type") == "tool_use" and (block.get("name"), block.get("input")) == self._asked:
                    self._calls[str(block["id"])] = None
                elif block.get("type") == "tool_result":
                    self._ended.add(str(block["tool_use_id"]))
