"""Which stores and adapters there are, and what becomes of those that cannot be loaded."""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.catalog import AgentProgram
from pilothouse.adapters.discovery.known import GROUP, STORES, load_stores, make_finder
from pilothouse.adapters.discovery.store import Problem
from pilothouse.adapters.registry import GROUP as ADAPTERS
from pilothouse.adapters.registry import Registry
from tests.unit.adapters.discovery.shelves import Shelf, ids, session


def point(name: str, value: str, group: str = GROUP) -> EntryPoint:
    return EntryPoint(name, value, group)


def test_the_built_in_stores_can_be_loaded() -> None:
    stores, problems = load_stores([])
    assert problems == []
    assert [store.agent for store in stores] == list(STORES)


PACKAGE = """
from {tests} import Shelf, Packaged
from pilothouse.adapters.acp import AcpAdapter
from pilothouse.adapters.catalog import AgentProgram
shelf = Shelf("claude")
adapter = Packaged()
started = AcpAdapter(AgentProgram(name="p", title="P", ways=()))
number = int

class Nameless(Shelf):
    def __init__(self): pass

class Half(Shelf):
    def __init__(self, agent="half", also=(), programs=("half",)):
        super().__init__(agent)
        self.also = also
        self._programs = programs
    programs = property(lambda self: self._programs())

empty, letters = Half(""), Half(also="abc", programs=tuple)
numbers, raising = Half(programs=lambda: [5]), Half(programs=lambda: 1 / 0)

import threading
begun, go = threading.Event(), threading.Event()

class Stuck(Packaged):
    async def discover_sessions(self):
        begun.set()
        go.wait(30)
        return []

stuck = Stuck("stuck")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"store_package_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(PACKAGE.format(tests=Shelf.__module__))
    (tmp_path / f"{name}_broken.py").write_text("import sys; sys.exit('left')")
    (tmp_path / f"{name}_breaks.py").write_text("raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_store_of_a_package_takes_the_place_of_a_built_in_one(package: str) -> None:
    stores, problems = load_stores([point("claude", f"{package}:shelf")], known={"claude": STORES["claude"]})
    assert (len(stores), problems) == (1, [])
    assert type(stores[0]).__name__ == "Shelf"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{}_broken:x", "SystemExit: left"),
        ("{}_breaks:x", "KeyboardInterrupt"),
        ("no_such_module:x", "ModuleNotFoundError"),
        ("{}:nothing", "AttributeError"),
        ("{}:number", "int, which is no pilothouse Store"),
        ("{}:Nameless", "its `agent` should be the name of an agent, got None"),
        ("{}:empty", "its `agent` should be the name of an agent, got ''"),
        ("{}:letters", "its `also` should be a collection of names, got 'abc'"),
        ("{}:numbers", "its `programs` should be a collection of names, got [5]"),
        ("{}:raising", "ZeroDivisionError"),
    ],
)
def test_a_store_that_cannot_be_loaded_is_a_problem(package: str, value: str, words: str) -> None:
    stores, problems = load_stores([point("bad", value.format(package))], known={"claude": STORES["claude"]})
    assert [store.agent for store in stores] == ["claude"]
    assert [problem.path for problem in problems] == ["store bad"]
    assert words in problems[0].message


async def test_an_adapter_that_cannot_be_imported_is_a_problem_of_the_list(package: str) -> None:
    points = [
        point("good", f"{package}:adapter", ADAPTERS),
        point("bad", f"{package}_broken:x", ADAPTERS),
        point("claude", f"{package}:adapter", ADAPTERS),
    ]
    claude = AgentProgram(name="claude", title="Claude", ways=())
    finder = make_finder(Registry([claude], known={}, points=points), hub_id="h")
    assert finder.hub_id == "h"
    assert "packaged" in finder.agents
    assert [(problem.path, "left" in problem.message) for problem in finder._broken] == [("adapter bad", True)]


async def test_an_adapter_that_would_start_its_agent_is_not_asked(package: str) -> None:
    registry = Registry(known={}, points=[point("p", f"{package}:started", ADAPTERS)])
    assert registry.get("p").name == "p"
    assert "p" not in make_finder(registry).agents


async def test_an_adapter_of_a_package_that_blocks_does_not_hold_up_the_loop(package: str) -> None:
    point_of_it = point("stuck", f"{package}:stuck", ADAPTERS)
    finder = make_finder(Registry(known={}, points=[point_of_it]))
    finder._stores, finder._patience = [Shelf("good", session("good", "a"))], 0.05
    stuck: Any = import_module(package)
    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(beat())
    try:
        found = await finder.sessions()
        assert stuck.begun.is_set()
        assert not stuck.go.is_set()  # it still blocks its thread
        assert turns > 10
        assert ids(found.sessions) == [("good", "a")]
        assert found.problems == [Problem(path="adapter stuck", message="it takes too long")]
    finally:
        stuck.go.set()
        beating.cancel()
        await finder.close()
