"""`pilothouse serve` as a process of its own, and what other commands find there."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.cli import PATIENCE, Cli, Typist

__all__ = ["Served", "eventually", "pending", "serving"]


class Served:
    """A hub that runs. `url` is where it listens, `login` its link."""

    def __init__(self, cli: Cli, *args: object, terminal: bool = False) -> None:
        self.typist = Typist(cli, "serve", "--port", "0", *args, terminal=terminal)
        self.greeting = self.typist.sees("Ctrl-C stops it.")
        self.url = self._fact("address")
        self.login = self._fact("log in")
        self.pid = self.typist.process.pid

    def _fact(self, name: str) -> str:
        found = re.search(rf"{name}\s+(\S+)", self.greeting)
        assert found, f"{name!r} is not in {self.greeting!r}"
        return found[1]

    def kill(self) -> None:
        self.typist.process.kill()
        self.typist.process.wait()

    def leave(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it in order: the exit code, and what it said of that."""
        self.typist.process.send_signal(number)
        return self.typist.leaves(), self.typist.rest


@contextlib.contextmanager
def serving(cli: Cli, *args: object, terminal: bool = False) -> Iterator[Served]:
    served = Served(cli, *args, terminal=terminal)
    try:
        yield served
    finally:
        if served.typist.process.poll() is None:
            served.typist.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(Exception):
                served.typist.process.wait(PATIENCE)
        served.typist.stop()


def eventually(find: Callable[[], Any]) -> Any:
    """What is found, asked for again until there is something."""
    end = time.monotonic() + PATIENCE
    while not (found := find()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)
    return found


def pending(cli: Cli, count: int = 1) -> list[dict[str, Any]]:
    """So many approvals, once they wait."""

    def look() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(cli("approvals", "--json").stdout)
        return found if len(found) >= count else []

    found: list[dict[str, Any]] = eventually(look)
    return found
