"""All adapters under their names: those of the configuration, of installed packages, and of the built-in table.

The first of these that has a name wins, in that order. A package's adapter is loaded when somebody asks for it, and
one that fails to load, or is slow to, is a named problem in the list: it never keeps another adapter, or the hub, from
its work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import Literal

from msgspec import Struct

from .acp import AcpAdapter
from .catalog import KNOWN, AgentProgram
from .contract import Adapter, AdapterError, Launch, SessionHost
from .points import GLANCE, WANTED, LoadError, LoadLate, installed_points, load_point

GROUP = "pilothouse.adapters"

Origin = Literal["config", "package", "known"]


class Registered(Struct, frozen=True, kw_only=True):
    """A name in the registry: its adapter, or why there is none."""

    name: str
    origin: Origin
    adapter: Adapter | None = None
    problem: str | None = None


class Registry:
    """Finds adapters by name."""

    def __init__(
        self,
        configured: Iterable[AgentProgram] = (),
        *,
        known: Mapping[str, AgentProgram] = KNOWN,
        points: Iterable[EntryPoint] | None = None,
        host: SessionHost | None = None,
    ) -> None:
        self._configured = {program.name: program for program in configured}
        self._known = known
        self._points = {point.name: point for point in (installed_points(GROUP) if points is None else points)}
        self._host = host
        self._loaded: dict[str, Registered] = {}

    @property
    def names(self) -> list[str]:
        """Every name, those of the configuration first."""
        return list(dict.fromkeys([*self._configured, *self._points, *self._known]))

    def __contains__(self, name: str) -> bool:
        return name in self._configured or name in self._points or name in self._known

    def find(self, name: str, seconds: float = GLANCE) -> Registered | None:
        """What is under a name; loads it if need be, and never raises. One that takes longer is a problem for now."""
        if name in self._loaded or name not in self:
            return self._loaded.get(name)
        try:
            found = self._loaded[name] = self._load(name, seconds)
        except LoadLate as exc:  # the next time it may be there
            return _broken(self._points[name], exc)
        except LoadError as exc:
            found = self._loaded[name] = _broken(self._points[name], exc)
        return found

    def get(self, name: str) -> Adapter:
        """The adapter of a name. Raises AdapterError, which says what is wrong with it or which names there are."""
        found = self.find(name, WANTED)
        if found is None:
            raise AdapterError(f"no agent {name!r} is known; there are: {', '.join(sorted(self.names))}")
        if found.adapter is None:
            raise AdapterError(f"the adapter {name!r} cannot be used: {found.problem}")
        return found.adapter

    def all(self) -> list[Registered]:
        """All of them, the broken ones with their problem."""
        return [found for name in self.names if (found := self.find(name)) is not None]

    def packaged(self) -> list[Registered]:
        """Those that installed packages bring, the broken ones with their problem."""
        return [found for found in map(self.find, self._points) if found is not None and found.origin == "package"]

    def launch(self, name: str) -> Launch | None:
        """How an agent is started here; None when it cannot be. Never raises."""
        found = self.find(name)
        try:
            return found.adapter.launch if found is not None and found.adapter is not None else None
        except Exception:  # an adapter of a package may fail here too; then it cannot be started, and that is all
            return None

    def _load(self, name: str, seconds: float) -> Registered:
        """Raises LoadError."""
        if name in self._configured:
            return Registered(name=name, origin="config", adapter=AcpAdapter(self._configured[name], self._host))
        if name in self._points:
            adapter = load_point(self._points[name], Adapter, seconds)  # type: ignore[type-abstract]
            return Registered(name=name, origin="package", adapter=adapter)
        return Registered(name=name, origin="known", adapter=AcpAdapter(self._known[name], self._host))


def _broken(point: EntryPoint, problem: LoadError) -> Registered:
    return Registered(name=point.name, origin="package", problem=f"{point.value}: {problem}")
