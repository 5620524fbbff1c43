"""Adapters under their names: who wins a name, and that a broken one breaks nothing else."""

from __future__ import annotations

import sys
import threading
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pilothouse.adapters.acp import AcpAdapter
from pilothouse.adapters.catalog import AgentProgram, Way
from pilothouse.adapters.contract import AdapterError
from pilothouse.adapters.registry import GROUP, Registry
from pilothouse.app.composition import agent_specs, registry
from pilothouse.config import AgentConfig, Config, Settings

MODULE = """
from pilothouse.adapters.acp import AcpAdapter
from pilothouse.adapters.catalog import AgentProgram, Way

print("loaded")

def good():
    return AcpAdapter(AgentProgram(name="good", title="Good", ways=(Way(("sh",)),)))

instance = good()

class Grumpy(AcpAdapter):
    def __init__(self):
        super().__init__(AgentProgram(name="grumpy", title="Grumpy", ways=()))
    @property
    def launch(self):
        raise RuntimeError("not today")

def number():
    return 5

def fails():
    raise ValueError("no licence")
"""

SLOW = """
from tests.unit.adapters import test_registry

test_registry.SLOW_GO.wait(30)
print("loaded late")
from pilothouse.adapters.acp import AcpAdapter
from pilothouse.adapters.catalog import AgentProgram

adapter = AcpAdapter(AgentProgram(name="slow", title="Slow", ways=()))
"""
SLOW_GO = threading.Event()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"third_party_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_exits.py").write_text("import sys; sys.exit('left')")
    (tmp_path / f"{name}_breaks.py").write_text("raise KeyboardInterrupt")
    (tmp_path / f"{name}_slow.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def program(name: str, *command: str) -> AgentProgram:
    return AgentProgram(name=name, title=name.capitalize(), ways=(Way(command),))


def test_the_configuration_stands_before_packages_and_these_before_the_known(module: str) -> None:
    known = {name: program(name, "known") for name in ("a", "b", "c")}
    points = [point("a", f"{module}:good"), point("b", f"{module}:instance")]
    found = Registry([program("a", "mine")], known=known, points=points)
    assert found.names == ["a", "b", "c"]
    assert [entry.origin for entry in found.all()] == ["config", "package", "known"]
    assert found.get("b").title == "Good"


def test_a_package_is_loaded_only_when_its_adapter_is_asked_for(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Registry(known={"k": program("k", "sh")}, points=[point("good", f"{module}:good")])
    assert found.get("k").name == "k"
    assert found.names == ["good", "k"]
    assert capsys.readouterr() == ("", "")
    found.get("good")
    found.get("good")
    assert capsys.readouterr() == ("", "loaded\n")  # what a command prints is its own
    print("free again")
    assert capsys.readouterr() == ("free again\n", "")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no_such_module_at_all:thing", "ModuleNotFoundError"),
        ("{module}:nothing", "AttributeError"),
        ("{module}:fails", "ValueError: no licence"),
        ("{module}:number", "which is no pilothouse Adapter"),
        ("{module}_exits:x", "SystemExit: left"),
        ("{module}_breaks:x", "KeyboardInterrupt"),
    ],
)
def test_a_broken_adapter_is_a_named_problem_and_the_others_work(module: str, value: str, problem: str) -> None:
    points = [point("bad", value.format(module=module)), point("good", f"{module}:good")]
    found = Registry(known={}, points=points)
    bad, good = found.all()
    assert (bad.name, bad.adapter) == ("bad", None)
    assert problem in (bad.problem or "")
    assert isinstance(good.adapter, AcpAdapter)
    assert found.launch("bad") is None
    with pytest.raises(AdapterError, match="'bad' cannot be used"):
        found.get("bad")


def test_a_package_that_is_slow_to_import_holds_up_nobody_and_is_there_once_it_is(
    module: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.adapters.registry.WANTED", 0.01)
    points = [point("slow", f"{module}_slow:adapter"), point("good", f"{module}:good")]
    found = Registry(known={}, points=points)
    SLOW_GO.clear()
    slow = found.find("slow", 0.01)
    try:
        assert slow is not None
        assert slow.problem == f"{module}_slow:adapter: it takes too long to be loaded"
        with pytest.raises(AdapterError, match="it takes too long"):
            Registry(known={}, points=points).get("slow")
        good = found.find("good", 30)
        assert good is not None
        assert good.adapter is not None
        print("meanwhile")
    finally:
        SLOW_GO.set()
    late = found.find("slow", 30)
    assert late is not None
    assert late.adapter is not None
    out, err = capsys.readouterr()
    assert out == "meanwhile\n"
    assert "loaded late" in err


def test_an_adapter_that_fails_to_say_how_it_is_started_cannot_be_started(module: str) -> None:
    found = Registry(known={}, points=[point("grumpy", f"{module}:Grumpy")])
    assert found.launch("grumpy") is None


def test_an_unknown_name_is_answered_with_those_that_are_known() -> None:
    found = Registry(known={"k": program("k", "sh")}, points=[])
    assert found.find("x") is None
    assert found.launch("x") is None
    with pytest.raises(AdapterError, match=r"no agent 'x' is known; there are: k"):
        found.get("x")


# -- from a configuration -----------------------------------------------------------------------------------------


def config(home: Path, **agents: AgentConfig) -> Config:
    return Config(home=home, settings=Settings(agents=agents))


def test_the_hub_gets_the_agents_that_this_machine_has(tmp_path: Path) -> None:
    mine = AgentConfig(command=(sys.executable, "agent.py"), env={"A": "1"}, cwd="~", title="Mine")
    specs = agent_specs(config(tmp_path, mine=mine, gone=AgentConfig(command=("/no/such/program",))))
    assert specs["mine"].command == (sys.executable, "agent.py")
    assert (specs["mine"].env, specs["mine"].title) == ({"A": "1"}, "Mine")
    assert "gone" not in specs
    assert specs["demo"].env["PILOTHOUSE_DEMO_HOME"] == str(tmp_path / "demo")
    launch = registry(config(tmp_path, mine=mine)).launch("mine")
    assert launch is not None
    assert launch.cwd == str(Path.home())


def test_only_the_wanted_agents_are_looked_at(tmp_path: Path) -> None:
    assert list(agent_specs(config(tmp_path), ["demo", "no-such-agent"])) == ["demo"]
