"""Patterns that are compiled when they are first used.

A large one takes milliseconds to compile, and most judge what many sessions never do: no program should wait for them
when it starts. `re` remembers what it has compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

Finder: TypeAlias = Callable[[str], re.Match[str] | None]


def matching(pattern: str, flags: int = 0) -> Finder:
    """Finds the pattern at the start of a text."""
    return partial(re.match, pattern, flags=flags)


def fully_matching(pattern: str, flags: int = 0) -> Finder:
    """Finds the pattern where it is the whole text."""
    return partial(re.fullmatch, pattern, flags=flags)


def searching(pattern: str, flags: int = 0) -> Finder:
    """Finds the pattern anywhere in a text."""
    return partial(re.search, pattern, flags=flags)
