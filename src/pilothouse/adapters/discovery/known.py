"""Which stores there are: the built-in ones, and those that installed packages bring by an entry point.

A package's store takes the place of a built-in one of its name. One that cannot be loaded, or does not say what it is
of, is a problem that is told, and the others are there all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

from ..acp import AcpAdapter
from ..contract import Adapter
from ..points import LoadError, installed_points, load_point
from ..registry import Registry
from .finder import Finder
from .guarded import reason_of
from .store import Problem, Store

logger = logging.getLogger(__name__)

GROUP = "pilothouse.stores"

STORES: Mapping[str, str] = {
    "claude": "claude:ClaudeStore",
    "codex": "codex:CodexStore",
    "opencode": "opencode:OpenCodeStore",
    "gemini": "gemini:GeminiStore",
    "goose": "goose:GooseStore",
}
"""The built-in stores: the module beside this one and the class in it, made without arguments."""


def load_stores(
    points: Iterable[EntryPoint] | None = None, *, known: Mapping[str, str] = STORES
) -> tuple[list[Store], list[Problem]]:
    """All stores, and what is wrong with those that could not be loaded."""
    found = installed_points(GROUP) if points is None else points
    makers: dict[str, Callable[[], Store]] = {name: partial(_built_in, value) for name, value in known.items()}
    makers |= {point.name: partial(load_point, point, Store) for point in found}  # type: ignore[type-abstract]
    stores: list[Store] = []
    problems: list[Problem] = []
    for name, make in makers.items():
        try:
            stores.append(_checked(make()))
        except LoadError as exc:
            problems.append(Problem(path=f"store {name}", message=str(exc)))
        except (Exception, SystemExit) as exc:  # whatever a store does when it is asked for its names
            problems.append(Problem(path=f"store {name}", message=reason_of(exc)))
    return stores, problems


def _checked(store: Store) -> Store:
    """A store that says whose it is: everything else about it is asked for by that. Raises TypeError."""
    agent = getattr(store, "agent", None)
    if not isinstance(agent, str) or not agent:
        raise TypeError(f"its `agent` should be the name of an agent, got {agent!r:.100}")
    for field in ("also", "programs"):
        names = getattr(store, field)
        is_fine = isinstance(names, Collection) and not isinstance(names, str | bytes)
        if not is_fine or not all(isinstance(name, str) and name for name in names):
            raise TypeError(f"its `{field}` should be a collection of names, got {names!r:.100}")
    return store


def make_finder(registry: Registry, *, hub_id: str | None = None, keep: Path | None = None) -> Finder:
    """Who finds the sessions of all stores, and of those adapters of packages that look for sessions on their own.

    `keep` is the directory for what the stores know of their files, so that the next process need not read them all.
    """
    stores, problems = load_stores()
    if keep is not None:
        for store in stores:
            _keep(store, keep)
    adapters: list[Adapter] = []
    for found in registry.packaged():
        if found.adapter is not None and _looks_itself(found.adapter):
            adapters.append(found.adapter)
        elif found.problem is not None:
            problems.append(Problem(path=f"adapter {found.name}", message=found.problem))
    return Finder(stores, adapters, problems=problems, hub_id=hub_id)


def _keep(store: Store, folder: Path) -> None:
    try:
        store.keep(folder)
    except Exception as exc:  # of a package; its sessions are found all the same, if slower
        logger.warning("what the store %s knows is not kept: %s", store.agent, reason_of(exc))


def _built_in(value: str) -> Store:
    module, _, name = value.partition(":")
    made: Store = getattr(import_module(f".{module}", __package__), name)()
    return made


def _looks_itself(adapter: Adapter) -> bool:
    """Whether it has a way of its own to find sessions: to start its agent for that would take too much each time."""
    return type(adapter).discover_sessions not in (Adapter.discover_sessions, AcpAdapter.discover_sessions)
