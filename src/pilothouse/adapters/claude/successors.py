"""Which conversation of the CLI a session goes on in.

`/clear` makes the CLI begin another conversation, under an id of its own, and nothing in its files says which one that
followed. So it is written down here, one small file for a session, in Pilothouse's own directory: whoever takes the
session up again must not get back what was cleared. What cannot be written is logged and never fails a turn.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from .records import is_id

__all__ = ["Successors", "own_place"]

logger = logging.getLogger("pilothouse.adapters.claude")

LENGTH = 100
"""Bytes of a file that are read; an id is shorter."""


def own_place(environ: Mapping[str, str] | None = None) -> Path:
    """Where these files are: in PILOTHOUSE_HOME, else in the platform's directory for user data."""
    given = (os.environ if environ is None else environ).get("PILOTHOUSE_HOME", "").strip()
    if given:
        return Path(given).expanduser() / "claude"
    from platformdirs import user_data_path

    return user_data_path("pilothouse", appauthor=False) / "claude"


class Successors:
    """The conversations that took the place of others."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def current(self, session_id: str) -> str:
        """The conversation that a session goes on in; its own, unless another one took its place."""
        return (self._read(self._place / session_id) if is_id(session_id) else "") or session_id

    def all(self) -> set[str]:
        """The conversations that are the continuation of a session, and none of their own."""
        try:
            return {found for path in self._place.iterdir() if (found := self._read(path))}
        except OSError:
            return set()

    def moved(self, session_id: str, conversation: str) -> None:
        """From now on the session goes on in this conversation."""
        if conversation == self.current(session_id) or not (is_id(session_id) and is_id(conversation)):
            return
        path = self._place / session_id
        try:
            self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_suffix(f".{os.getpid()}")
            fresh.write_text(conversation, encoding="ascii")
            fresh.replace(path)
        except OSError as exc:
            logger.warning("cannot write down that %s goes on as %s: %s", session_id, conversation, exc)

    def _read(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                found = file.read(LENGTH).decode("ascii", errors="replace").strip()
        except OSError:
            return ""
        return found if is_id(path.name) and is_id(found) else ""
