"""Words and places as a list of sessions shows them: without what a program put between the user's words, and short.

Only tags that are known to be put in are taken out, and only as pairs: a tag that somebody wrote about is theirs.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any

from ...model.discovery import DiscoveredSession, DiscoveredStatus

__all__ = ["EXCERPT", "TITLE", "excerpt", "iso", "listed", "moment", "plain", "title", "without_insertions"]

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


def iso(seconds: float) -> str:
    """A time as the lists of sessions have it. One that no clock shows is the beginning of time."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(told: Any) -> str:
    """A time that a record tells in ISO 8601, in the form of `iso`; nothing for what is none."""
    try:
        given = datetime.fromisoformat(told)
        return iso((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp())
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


def listed(
    agent: str,
    session_id: str,
    cwd: str,
    *,
    created_at: str,
    last_activity: str,
    name: str = "",
    said: str = "",
    model: str = "",
    status: DiscoveredStatus | None = None,
) -> DiscoveredSession:
    """A session for the list, from what its record says; `name` and `said` are cut and cleared here.

    A clock that was wrong must not keep a session in the first place: nothing happened later than now.
    """
    now = iso(time.time())
    return DiscoveredSession(
        id=session_id,
        agent=agent,
        project_path=cwd,
        project_name=re.split(r"[\\/]", cwd.rstrip("\\/"))[-1],
        created_at=min(created_at, now),
        last_activity=min(last_activity, now),
        last_message=excerpt(said) or None,
        session_name=title(name) or None,
        status=status,
        model=model or None,
        integration_method="file-watch",
    )
