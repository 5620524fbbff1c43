"""Titles that callers give to sessions: one line that can be seen. What an agent calls its session is its own."""

from __future__ import annotations

import unicodedata

from ..model.errors import ValidationError

__all__ = ["LONGEST_TITLE", "checked_title"]

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
