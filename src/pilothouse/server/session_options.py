"""Checks of what a caller sets for a session: its title and its directory.

A title is one line of visible text. A session may work in any directory but the hub's own: the owner's token is there,
and an agent reads what is in its directory without asking.
"""

from __future__ import annotations

import asyncio
import unicodedata
from pathlib import Path

from ..hub.hub import Hub
from ..model.errors import ValidationError
from .auth.callers import Caller

LONGEST_TITLE = 500
_UNSEEN = {"Cc", "Cs", "Zl", "Zp"}
_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""What makes the characters that follow appear in another order than they are in, also those beyond the title."""


def checked_title(title: str | None) -> str | None:
    """Raises ValidationError for what is too long, would be more than one line, or is not to be seen at all."""
    if title is None:
        return None
    if len(title) > LONGEST_TITLE:
        raise ValidationError(f"expected at most {LONGEST_TITLE} characters", "title")
    if not title.strip() or any(_is_unseen(one) for one in title):
        raise ValidationError("expected one line of text without control characters", "title")
    return title


def _is_unseen(one: str) -> bool:
    return unicodedata.category(one) in _UNSEEN or unicodedata.bidirectional(one) in _TURNING


async def may_work_in(hub: Hub, caller: Caller, cwd: str) -> bool:
    """Whether a caller may have a session in a directory, whatever way leads there."""
    return hub.home is None or caller.may("admin") or not await asyncio.to_thread(_is_same, cwd, hub.home)


def _is_same(cwd: str, home: Path) -> bool:
    try:
        return Path(cwd).samefile(home)
    except (OSError, ValueError):  # what is no directory is refused for that
        return False
