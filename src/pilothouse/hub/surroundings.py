"""What a session has around it while the hub lives, whether or not its actor is in memory: nothing of it is stored.

Who has it open as an editor, what its agents are given, among whom its agent may still be chosen, and whose fork it is
until it has words of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .editors import Editor
from .provisions import Provisions

__all__ = ["Surroundings"]


class Surroundings:
    """One for each session that was ever taken up; the hub lets go of those with nothing in them."""

    def __init__(self) -> None:
        self.editors: list[Editor] = []
        self.provisions = Provisions()
        self.agents: Mapping[str, Any] = {}
        """How each is started."""
        self.origin: str | None = None
        """An agent's own id of the session that this one is forked from."""

    @property
    def are_empty(self) -> bool:
        return not (self.editors or self.agents or self.origin) and self.provisions == Provisions()
