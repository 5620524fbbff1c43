"""Adapters and stores that installed packages bring, by their entry points.

To read these means to open a file of every package that is installed, so it is done once, and again when packages were
installed or removed meanwhile. The rule a change must not break: whatever a package does when it is imported, however
long it takes and whatever it prints, it costs nothing but itself.
"""

from __future__ import annotations

import sys
import threading
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

GLANCE = 5.0
"""Seconds that a package may take to be imported when all are looked at."""
WANTED = 30.0
"""The same for one that somebody has asked for by its name."""
LATE = 0.2
"""The same for one that has not come back before: nobody waits twice for the same."""

T = TypeVar("T")


def installed_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, as of now."""
    return _points(group, tuple(map(_changed, sys.path)))


@lru_cache(maxsize=4)
def _points(group: str, changes: tuple[int, ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def _changed(place: str) -> int:
    """When anything was put into a directory of packages or taken out of it."""
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0


class LoadError(Exception):
    """What a package brings cannot be used, and why."""


class LoadLate(LoadError):
    """It is not there yet; it may be later."""


def load_point(point: EntryPoint, kind: type[T], seconds: float = GLANCE) -> T:
    """What a package brings: an instance of `kind`, or a class or function that makes one without arguments.

    Raises LoadError, whatever the package does.
    """
    key = (point.group, point.name, point.value)
    late = _loading.get(key)
    if late is None or not late.is_alive():
        late = _loading[key] = _Loading(point, kind)
        late.start()
    elif late.was_awaited >= seconds:
        seconds = LATE
    late.was_awaited = max(late.was_awaited, seconds)
    late.join(seconds)
    if late.is_alive():
        raise LoadLate("it takes too long to be loaded")
    _loading.pop(key, None)
    if late.problem is not None:
        raise LoadError(late.problem)
    made: T = late.made
    return made


class _Loading(threading.Thread):
    """Loads one: in a thread, which does not keep the process from ending; what it prints goes to standard error, as
    standard output is for what a command says itself."""

    def __init__(self, point: EntryPoint, kind: type[Any]) -> None:
        super().__init__(daemon=True, name=f"loading {point.value}")
        self._point = point
        self._kind = kind
        self.was_awaited = 0.0
        """For how many seconds somebody has."""
        self.made: Any = None
        self.problem: str | None = None

    def run(self) -> None:
        before = sys.stdout
        routed: Any = _Routed(before, self) if before is not None else None
        sys.stdout = routed
        try:
            made = self._point.load()
            self.made = made if isinstance(made, self._kind) else made()
            if not isinstance(self.made, self._kind):
                given = type(self.made).__name__
                raise TypeError(f"it gives {given}, which is no pilothouse {self._kind.__name__}")
        except BaseException as exc:  # also one that ends programs: here it ends this thread
            self.problem = f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
        finally:
            if sys.stdout is routed:
                sys.stdout = before


class _Routed:
    """Standard output for all but one thread, for which it is standard error."""

    def __init__(self, out: Any, thread: threading.Thread) -> None:
        self._out = out
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if threading.current_thread() is self._thread else self._out, name)


_loading: dict[tuple[str, str, str], _Loading] = {}
