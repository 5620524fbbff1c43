"""`doctor agent` with real agents: the card says what was seen, and nothing is left running."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pilothouse.app.probing.client import COMMAND, FILE, NOTE, WORD, Script
from pilothouse.app.probing.probe import Probe
from pilothouse.app.probing.report import Report, flags
from pilothouse.hub.agent.process import AgentSpec


def script(work: Path, command: str) -> Script:
    """The probe's prompts, in words that the lab's model understands."""

    def told(*steps: Any) -> str:
        return f"@@fake {json.dumps(steps)}"

    return Script(
        say=told(WORD),
        read=told({"op": "read", "path": str(work / NOTE)}, "Read."),
        write=told({"op": "write", "path": str(work / FILE), "content": "hello\n"}, "Well then."),
        run=told({"op": "bash", "cmd": command, "escalate": True}, "Run."),
        long=told({"text": "tick " * 400, "chunk": 5, "delay": 0.1}),
    )


async def probed(agent: AgentSpec, work: Path, command: str, **options: Any) -> Report:
    work.mkdir()
    report = await Probe(
        agent, work, lambda: "2026-11-16T12:00:00.000Z", script=script(work, command), prompts=True, **options
    ).run()
    for row in report.rows:
        print(f"{agent.name} {row.step:10} {row.state:7} {row.text} [{row.ms}] {row.seen}")
    return report


async def test_what_an_agent_can_do_is_found_out(agent: AgentSpec, tmp_path: Path, note: Any) -> None:
    work = tmp_path / "work"
    report = await probed(agent, work, f"echo {WORD} > {work}/{WORD}.run")
    found = {row.step: row.state for row in report.rows}
    assert (found["initialize"], found["new"], found["auth"]) == ("yes", "yes", "yes")
    assert found["prompt"] == "yes"
    assert (work / FILE).exists() == (found["permission"] == "no")
    assert not (work / f"{WORD}.run").exists() or found["terminal"] == "none"
    assert report.card is not None
    seen = flags(report.card.features)
    assert "streaming.messages" in seen
    failed = [f"{row.step}: {row.text}" for row in report.rows if row.state == "no"]
    note(f"{report.version}; {len(seen)} flags{'; ' + '; '.join(failed) if failed else ''}")
    print(agent.name, *seen)


async def test_what_an_agent_is_allowed_to_do_is_done(agent: AgentSpec, tmp_path: Path, note: Any) -> None:
    report = await probed(agent, tmp_path / "work", COMMAND, allows=True)
    rows = {row.step: row for row in report.rows}
    assert (tmp_path / "work" / FILE).exists()
    assert rows["terminal"].state != "no"
    note(f"{rows['permission'].text}; {rows['terminal'].text}")
