"""Messages that were told already, by the ids that the CLI gives them.

When the CLI shortens a conversation it writes some of what it keeps of it again, under the ids that it had.
"""

from __future__ import annotations

from typing import Any

from .reading import items, mapping, text

__all__ = ["Repeats"]

REMEMBERED = 2000
"""Messages that are still known; what is kept of a conversation are the last ones."""


class Repeats:
    """The messages of a session so far."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def take(self, uuid: str | None) -> bool:
        """One more message; whether it is one that was told before."""
        if not uuid:
            return False
        is_known = uuid in self._known
        self._keep(uuid)
        return is_known

    def kept(self, metadata: dict[str, Any]) -> None:
        """A conversation was shortened: what the CLI says that it kept was told, by it or by one that ran before."""
        for uuid in items(mapping(metadata.get("preserved_messages")).get("uuids"))[-REMEMBERED:]:
            if text(uuid):
                self._keep(uuid)

    def _keep(self, uuid: str) -> None:
        self._known.pop(uuid, None)  # the latest stay longest
        self._known[uuid] = None
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
