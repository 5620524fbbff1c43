"""Probes of agents that behave, and of agents that do not: a row for each step, and no process left."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from pilothouse.app.probing.client import DEMO_SCRIPT, FILE, WORD, Script
from pilothouse.app.probing.probe import Probe
from pilothouse.app.probing.report import Report, flags, recall_probes, remember_probe
from pilothouse.app.probing.steps import STEPS
from pilothouse.hub.agent.process import AgentSpec
from tests.support.hubs import odd
from tests.support.servers import agent_specs

STEP_NAMES = [step for step, _, _ in STEPS]
FREE = {step for step, costs, _ in STEPS if not costs}


def now() -> str:
    return "2026-11-16T12:00:00.000Z"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory for a probe; afterwards no process may be left that this one started."""
    directory = tmp_path / "probe"
    directory.mkdir()
    before = set(psutil.Process().children(recursive=True))  # what other tests share
    yield directory
    left = set(psutil.Process().children(recursive=True)) - before
    # a browser that other tests share starts processes at any time
    own = [child for child in left if before.isdisjoint(child.parents())]
    assert [child.cmdline() for child in own if _is_agent(child)] == []


def _is_agent(process: psutil.Process) -> bool:
    return process.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in " ".join(process.cmdline())


def script(directory: Path, **more: str) -> Script:
    """For the odd agent."""
    words = {
        "say": f"echo {WORD}",
        "read": "echo x",
        "write": f"write {directory / FILE}",
        "run": "run echo",
        "long": "text",
    }
    return Script(**{**words, **more})


async def probed(spec: AgentSpec, directory: Path, **options: Any) -> Report:
    options.setdefault("script", script(directory))
    options.setdefault("timeout", 20.0)
    async with asyncio.timeout(60):
        return await Probe(spec, directory, now, **{"prompts": True, **options}).run()


def states(report: Report) -> dict[str, str]:
    assert [row.step for row in report.rows] == STEP_NAMES
    return {row.step: row.state for row in report.rows}


def text(report: Report, step: str) -> str:
    return next(row.text for row in report.rows if row.step == step)


async def test_the_scripted_agent_can_do_everything(tmp_path: Path, place: Path) -> None:
    demo = agent_specs(tmp_path)["demo"]
    told: list[str] = []
    report = await probed(demo, place, script=DEMO_SCRIPT, allows=True, told=told.append)
    assert set(states(report).values()) == {"yes"}
    assert report.is_sound
    assert told == STEP_NAMES
    assert report.card is not None
    assert report.version
    seen = set(flags(report.card.features))
    assert {"streaming.messages", "approval.toolCalls", "resources.tokenUsage", "sessionControl.resume"} <= seen
    assert all(row.sent and row.seen and row.ms is not None for row in report.rows if row.step in ("new", "prompt"))
    assert list((tmp_path / "demo").glob("**/*.json")) == []  # what the agent kept of it is deleted


async def test_what_is_not_allowed_is_not_done(tmp_path: Path, place: Path) -> None:
    report = await probed(agent_specs(tmp_path)["demo"], place, script=DEMO_SCRIPT)
    found = states(report)
    assert found.pop("terminal") == "untried"
    assert set(found.values()) == {"yes"}
    assert not (place / FILE).exists()
    assert "wrote nothing" in text(report, "permission")


async def test_without_consent_the_model_is_not_asked(tmp_path: Path, place: Path) -> None:
    report = await probed(agent_specs(tmp_path)["demo"], place, script=DEMO_SCRIPT, prompts=False)
    tried = {step for step, state in states(report).items() if state != "untried"}
    assert tried == FREE - {"load", "resume", "fork"}
    assert report.card is not None
    assert "streaming.messages" not in flags(report.card.features)


async def test_a_model_is_chosen(tmp_path: Path, place: Path) -> None:
    demo = agent_specs(tmp_path)["demo"]
    report = await probed(demo, place, script=DEMO_SCRIPT, prompts=False, model="scripted-large")
    assert states(report)["new"] == "yes"
    report = await probed(demo, place, script=DEMO_SCRIPT, prompts=False, model="none-such")
    assert states(report)["new"] == "no"


async def test_an_agent_that_offers_little_has_a_small_card(place: Path) -> None:
    report = await probed(odd(), place)
    found = states(report)
    assert (found["permission"], found["cancel"], found["usage"]) == ("yes", "yes", "none")
    assert {found[step] for step in ("list", "load", "resume", "fork")} == {"none"}
    assert report.card is not None
    assert "sessionControl.resume" not in flags(report.card.features)


async def test_what_is_offered_and_fails_is_not_on_the_card(place: Path) -> None:
    report = await probed(odd("die-on-load"), place)
    assert states(report)["load"] == "no"
    assert "exit code 9" in text(report, "load")
    assert report.card is not None
    assert "sessionControl.resume" not in flags(report.card.features)


async def test_a_file_that_was_written_without_asking_is_a_failure(place: Path) -> None:
    act = f"import pathlib; pathlib.Path({str(place / FILE)!r}).touch()"
    report = await probed(scripted(place, prompted=act), place)
    assert "asked nobody" in text(report, "permission")
    assert not report.is_sound


def scripted(
    directory: Path, *, initialized: str = "{'protocolVersion': 1}", prompted: str = "", opened: str = ""
) -> AgentSpec:
    """An agent of a few lines that answers as it is told."""
    code = f"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if 'id' not in message: continue
    if message['method'] == 'session/prompt':
        {prompted or "pass"}
    results = {{'initialize': {initialized}, 'session/new': {opened or "{'sessionId': 's'}"}}}
    result = results.get(message['method'], {{'stopReason': 'end_turn'}})
    print(json.dumps({{'jsonrpc': '2.0', 'id': message['id'], 'result': result}}), flush=True)
"""
    path = directory.parent / "scripted.py"
    path.write_text(code)
    return AgentSpec(name="scripted", command=(sys.executable, str(path)))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (odd("crash"), "exit code 3"),
        (odd("hang"), "did not answer"),
        (odd('junk="error":{"code":-1,"message":"no"}'), "answered `initialize` with the error"),
        (odd('junk="result":7'), "answered `initialize` with"),
        (AgentSpec(name="none", command=("/none/such",)), "/none/such"),
        (AgentSpec(name="cat", command=("cat",)), "initialize"),
        (AgentSpec(name="yes", command=("yes",)), "did not answer"),
    ],
    ids=["crash", "hang", "error", "seven", "none", "cat", "yes"],
)
async def test_an_agent_that_does_not_start_is_told_of_with_its_last_words(
    place: Path, spec: AgentSpec, words: str
) -> None:
    report = await probed(spec, place, timeout=2.0 if words == "did not answer" else 20.0)
    found = states(report)
    assert found.pop("initialize") == "no"
    assert set(found.values()) == {"untried"}
    assert words in text(report, "initialize")
    assert report.card is None
    if spec.name == "yes":
        assert "no message of the protocol" in report.rows[0].seen


@pytest.mark.parametrize(
    ("how", "step"),
    [({"say": "die 5"}, "prompt"), ({"read": "deaf"}, "fs"), ({"long": "deaf"}, "cancel"), ({"long": "die"}, "cancel")],
)
async def test_an_agent_that_dies_or_hangs_in_a_step_is_started_anew_for_the_next(
    place: Path, how: dict[str, str], step: str
) -> None:
    report = await probed(odd("load"), place, script=script(place, **how), timeout=5.0)
    found = states(report)
    assert found[step] == "no"
    assert [name for name, state in found.items() if state == "no"] == [step]
    assert found["load"] == "yes"


async def test_an_agent_that_wants_a_login_says_so(place: Path) -> None:
    report = await probed(odd("auth"), place)
    found = states(report)
    assert (found["new"], found["auth"]) == ("no", "no")
    assert "Key" in text(report, "auth")
    assert {found[step] for step in ("prompt", "modes", "fork")} == {"untried"}


@pytest.mark.parametrize("junk", ["[]", "7", "None", "'x'", "{'a': [1]}", "[{'id': 3}, None]"])
async def test_answers_of_the_wrong_shape_are_no_crash(place: Path, junk: str) -> None:
    initialized = f"{{'protocolVersion': 1, 'agentCapabilities': {junk}, 'authMethods': {junk}, 'agentInfo': {junk}}}"
    opened = f"{{'sessionId': 's', 'modes': {junk}, 'configOptions': {junk}}}"
    report = await probed(scripted(place, initialized=initialized, opened=opened), place)
    assert states(report)["initialize"] == "yes"
    capable = f"{{'loadSession': True, 'sessionCapabilities': {{'list': {junk}, 'fork': {junk}, 'resume': {junk}}}}}"
    initialized = f"{{'protocolVersion': {junk}, 'agentCapabilities': {capable}}}"
    report = await probed(scripted(place, initialized=initialized, opened=junk), place)
    assert states(report)["initialize"] == "no"


async def test_a_probe_that_is_interrupted_leaves_no_process(place: Path) -> None:
    begun = asyncio.Event()

    def told(step: str) -> None:
        if step == "cancel":
            begun.set()

    probe = Probe(odd("child"), place, now, script=script(place), prompts=True, timeout=30, told=told)
    running = asyncio.ensure_future(probe.run())
    async with asyncio.timeout(30):
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_probes_are_remembered_by_agent_and_version(tmp_path: Path, place: Path) -> None:
    home = tmp_path / "home"
    demo = agent_specs(tmp_path)["demo"]
    whole = await probed(demo, place, script=DEMO_SCRIPT, allows=True)
    remember_probe(home, whole, "2026-11-16T12:00:00Z")
    first = recall_probes(home)["demo"]
    assert (first.version, first.steps["prompt"]) == (whole.version, "yes")
    (place / FILE).unlink()
    short = await probed(demo, place, script=DEMO_SCRIPT, prompts=False)
    remember_probe(home, short, "2026-11-17T12:00:00Z")
    second = recall_probes(home)["demo"]
    assert second.steps == first.steps
    assert second.capabilities == first.capabilities
    assert second.at == "2026-11-17T12:00:00Z"
    rows = [replace(row, state="no" if row.step == "cancel" else row.state) for row in short.rows]
    remember_probe(home, replace(short, rows=rows), "2026-11-18T12:00:00Z")
    third = recall_probes(home)["demo"]
    assert set(first.capabilities) - set(third.capabilities) == {"sessionControl.cancel"}
    (home / "probes.json").write_text("rubbish")
    assert recall_probes(home) == {}
    remember_probe(home, Report(agent="none", version="", rows=[]), "")
    assert recall_probes(home) == {}
