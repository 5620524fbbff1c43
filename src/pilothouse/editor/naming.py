"""Names for the prompts of one bridge, such as no other bridge ever gives."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count

__all__ = ["request_ids"]


def request_ids() -> Callable[[], str]:
    """Ids for prompts, each another one."""
    beginning, numbers = os.urandom(9).hex(), count(1)
    return lambda: f"acp-{beginning}-{next(numbers)}"
