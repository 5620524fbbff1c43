"""The reading of a record that keeps a session message by message: what its storage has more, told as updates.

The rule a change must not break: one message of a format that nobody foresaw costs nothing but itself, and each problem
is told once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path

from ...model.discovery import DiscoveredStatus
from .lines import Unreadable
from .store import Problem, Reader, Step, Update

__all__ = ["MessageReader"]


class MessageReader(Reader):
    """One session's messages. `path` is what is named when one cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told: set[str] = set()
        self._updates: list[Update] = []
        self._problems: list[Problem] = []

    @property
    @abstractmethod
    def _status(self) -> DiscoveredStatus | None:
        """What the messages so far say that the agent does."""

    @abstractmethod
    def _look(self) -> bool:
        """`_take` messages that are new; whether there may be more. Raises Unreadable."""

    def read(self) -> Step:
        self._updates, self._problems = [], []
        failed = False
        try:
            while self._look() and not self._updates:
                pass
        except Unreadable as exc:
            failed = True
            self._tell(str(exc))
        return Step(updates=self._updates, status=self._status, problems=self._problems, failed=failed)

    def _take(self, name: object, made: Callable[[], Iterable[Update]]) -> None:
        try:
            self._updates.extend(made())
        except Exception as exc:  # of a message that is not what it should be
            self._tell(f"the message {name} is not understood: {type(exc).__name__}: {exc}")

    def _tell(self, words: str) -> None:
        if words not in self._told:
            self._told.add(words)
            self._problems.append(Problem(path=str(self._path), message=words))

    def close(self) -> None:
        """Nothing is held open between looks."""
