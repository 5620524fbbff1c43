"""Titles and excerpts of sessions: without the text that programs insert between the user's words, and short.

Only known tags are removed, and only pairs of them: the user may have written about a single tag.
"""

from __future__ import annotations

import re

TITLE = 100


EXCERPT = 200


INSERTED = (
    "system-reminder",
    "ide_opened_file",
    "ide_selection",
    "ide_context",
    "ide_diagnostics",
    "gitStatus",
    "claudeMd",
    "local-command-caveat",
    "command-message",
    "command-contents",
    "session-start-hook",
    "user-prompt-submit-hook",
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "collaboration_mode",
    "skills_instructions",
    "turn_aborted",
)


_INSERTED = re.compile(rf"<({'|'.join(map(re.escape, INSERTED))})(?:\s[^<>]*)?>.*?</\1>", re.DOTALL)


LOOKED_AT = 20_000
"""Characters of a message that are looked at for the few that are shown."""


def without_insertions(words: str) -> str:
    """Words without what was put in between them; untouched where nothing was."""
    left = _INSERTED.sub("", words) if "</" in words else words
    return words if left == words else left.strip()


def plain(words: str) -> str:
    """The same without space around it."""
    return without_insertions(words).strip()


def title(words: str) -> str:
    """The first line that says something, short enough for a list."""
    lines = (line.strip() for line in plain(words[:LOOKED_AT]).splitlines())
    return _cut(" ".join(next((line for line in lines if line), "").split()), TITLE)


def excerpt(words: str) -> str:
    """The beginning of a message in one line."""
    return _cut(" ".join(plain(words[:LOOKED_AT]).split()), EXCERPT)


def _cut(line: str, limit: int) -> str:
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
