"""Texts for people and for the model: fenced, and cut where they are too long."""

from __future__ import annotations

import re


def fenced(text: str) -> str:
    """A text as a block of Markdown, whatever is in it."""
    fence = "`" * (max([2, *map(len, re.findall("`+", text))]) + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def cut(text: str, limit: int) -> str:
    """The beginning and the end of a text that is too long."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters are left out …]\n{text[-half:]}"
