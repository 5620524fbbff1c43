"""A hub that is killed between a decision and its act, or between the act and its record.

At every point: no act without an approval in the log, and never two acts for one approval.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import dying_hub
from tests.support.dying_hub import POINTS, PROGRAMS
from tests.support.hubs import PATIENCE, check, facts, history
from tests.support.rogue import rogue_hub, run_turn

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize("point", POINTS)
async def test_a_hub_killed_around_an_act_leaves_no_act_without_an_approval(
    tmp_path: Path, project: Path, point: str, kind: str, tally: Callable[[str, int], None]
) -> None:
    home = tmp_path / "home"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, dying_hub.__file__, str(home), str(project), point, kind),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"},
    )
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    assert process.returncode == -9
    session_id = output.decode().split()[0]
    made = project / "made"
    is_done = made.exists()
    assert is_done == (point == POINTS[-1])
    question, act = PROGRAMS[kind]
    async with rogue_hub(home) as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session_id)
        events = await history(hub.log, session_id)
        allowed = facts(events, "act_allowed")
        if is_done:
            (fact,) = allowed
            record = await hub.log.approvals.get(fact["approvalId"])
            assert record.decision is not None
            assert record.decision["approved"] is True
        # the approval died with the turn: the same act is asked about again, and denied here
        if is_done:
            made.unlink()
        turn = await run_turn(hub, session, act)
        assert len(turn.acts) == 1
        assert not made.exists()
        # a new approval is for one act again
        turn = await run_turn(hub, session, f"{question}\n{act}\nos.remove('made')\n{act}")
        assert len(turn.acts) == 1
        assert not made.exists()
        check(await history(hub.log, session_id))
    tally("kills of the hub around an act, none with an act too many", 1)
