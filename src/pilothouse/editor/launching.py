"""Starting a hub that belongs to nobody: `pilothouse serve --detach`, and the file in which such a hub says its things.

The hub outlives whoever starts it. It has no part of an editor's pipes, is in a session of its own, and is not even a
descendant of the bridge: editors end whole trees of processes, and some find by a mark in its environment who has left
the tree.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["JOURNAL", "KILLED", "Launch", "open_journal"]

JOURNAL = "hub.log"
LARGEST = 1 << 20
"""Bytes of the journal before a new one is begun; the one before it is kept."""
TAIL = 4000
KILLED = 128
"""An exit code above this is a signal that ended the hub while it started: somebody's doing, and no fault of it."""

MARKS = frozenset({"PILOTHOUSE_CHILD", "PILOTHOUSE_COMMAND", "PILOTHOUSE_HUB"})
"""Variables by which a program of ours, an editor or another hub, finds all that it has started, and ends it."""


def open_journal(home: Path) -> int:
    """The file of a hub that has no terminal, open for writing at its end. Raises OSError."""
    path = home / JOURNAL
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > LARGEST:
            path.replace(home / f"{JOURNAL}.1")
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class Launch:
    """A hub on its way. The process that is seen here ends when the hub can be reached, or when there will be none."""

    def __init__(self, home: Path) -> None:
        """Raises OSError."""
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.journal = home / JOURNAL
        descriptor = open_journal(home)
        try:
            self._begin = os.fstat(descriptor).st_size
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pilothouse.cli", "serve", "--detach", "--held", "--quiet"],
                stdin=subprocess.PIPE,
                stdout=descriptor,
                stderr=descriptor,
                cwd=home,
                env={**_unmarked(os.environ), "PILOTHOUSE_HOME": str(home)},
                start_new_session=True,
            )
        finally:
            os.close(descriptor)

    def settle(self, reached: int | None = None) -> None:
        """Say which process is used as the hub. This one, if it is not, and nobody else uses it, ends once it is there.

        Of two that are started at once the one that comes too late must not stay when the other is stopped before that.
        """
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):  # it was another one that was reached, or it has died
            if reached is not None and not pipe.closed:
                pipe.write(b"%d" % reached)
            pipe.close()

    @property
    def code(self) -> int | None:
        """How it ended: 0 when a hub can be reached; None while it is not known."""
        return self._process.poll()

    @property
    def was_killed(self) -> bool:
        """Whether, if it cannot be reached, somebody ended it, while it started or when it was there."""
        return self.code == 0 or (self.code or 0) > KILLED

    def words(self) -> str:
        """What the hub has said since it was started, the end of it."""
        try:
            with self.journal.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._begin if size >= self._begin else 0, size - TAIL))
                return file.read(TAIL).decode(errors="replace").strip()
        except OSError:
            return ""


def _unmarked(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in MARKS}
