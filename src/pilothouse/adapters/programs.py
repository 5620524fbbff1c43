"""How an agent's program is found: the ways to start it, tried in order, each with what must be on the machine.

Nothing is started here and nothing fetched. A way that `fetches` is one where a runner such as npx gets the program
when it is first used; it counts as there when the runner is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Literal

from msgspec import Struct

from .base import Launch

__all__ = ["AgentProgram", "Availability", "Way"]

Availability = Literal["installed", "on demand", "missing"]
Which = Callable[[str], str | None]


class Way(Struct, frozen=True):
    """One way to start a program. `needs` are other programs that it starts itself and is nothing without, `packages`
    those of this Python that it imports."""

    command: tuple[str, ...]
    fetches: bool = False
    needs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def is_here(self, which: Which) -> bool:
        return all(map(which, (self.command[0], *self.needs))) and all(map(find_spec, self.packages))


class AgentProgram(Struct, frozen=True, kw_only=True):
    """A program that speaks ACP on its stdio. `version` is the command that tells the version, if there is one."""

    name: str
    title: str
    ways: tuple[Way, ...]
    install: str | None = None
    login: str | None = None
    env: Mapping[str, str] = {}
    cwd: str | None = None
    version: tuple[str, ...] | None = None

    def way(self, which: Which | None = None) -> Way | None:
        """The first way that this machine has; None when it has none of them."""
        which = which or shutil.which
        return next((way for way in self.ways if way.is_here(which)), None)

    def availability(self, which: Which | None = None) -> Availability:
        way = self.way(which)
        if way is None:
            return "missing"
        return "on demand" if way.fetches else "installed"

    def launch(self, which: Which | None = None) -> Launch | None:
        """How it is started here; None when it cannot be."""
        which = which or shutil.which
        way = self.way(which)
        if way is None:
            return None
        # Windows starts no `npx.cmd` by the name `npx`
        program = way.command[0] if os.name == "posix" else which(way.command[0]) or way.command[0]
        return Launch(command=(program, *way.command[1:]), env=self.env, cwd=self.cwd, login=self.login)
