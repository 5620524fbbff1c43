"""A hub that is killed between a decision and its act, or between the act and its record; a log that fails there.

At every point: no act without an approval in the log, and never two acts for one approval.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pilothouse.hub.errors import DecidedOtherwise, NotStored
from pilothouse.log.errors import LogFull
from pilothouse.log.memory import MemoryLog
from pilothouse.log.records import Change
from pilothouse.model.events import Event
from tests.support import dying_hub, stressed_hub
from tests.support.dying_hub import POINTS, PROGRAMS
from tests.support.hubs import PATIENCE, FullLog, approval_asked, check, facts, history
from tests.support.rogue import allow, ask, do, rogue_hub, run_turn

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


class FailingLog(MemoryLog):
    """A log that refuses one batch: after so many others (`left`)."""

    left: int | None = None

    def append_nowait(
        self, session_id: str, expected: int, events: Sequence[Event], *, also: Sequence[Change] = ()
    ) -> asyncio.Future[int]:
        if self.left is None:
            return super().append_nowait(session_id, expected, events, also=also)
        self.left -= 1
        if self.left >= 0:
            return super().append_nowait(session_id, expected, events, also=also)
        self.left = None
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_exception(LogFull())
        return done


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_a_log_that_refuses_any_batch_leaves_no_act_without_an_approval(
    tmp_path: Path, kind: str, tally: Callable[[str, int], None], caplog: pytest.LogCaptureFixture
) -> None:
    log = FailingLog()
    question, act = PROGRAMS[kind]
    async with rogue_hub(log=log) as hub, asyncio.timeout(PATIENCE):
        for number in itertools.count():
            project = tmp_path / str(number)
            project.mkdir()
            session = await hub.start_session("rogue", project)
            log.left = number
            with contextlib.suppress(NotStored):
                await run_turn(hub, session, f"{question}\n{act}", allow)
            is_over, log.left = log.left is not None, None
            allowed = facts(await history(log, session.id), "act_allowed")
            made = project / "made"
            if made.exists():
                (fact,) = allowed
                record = await log.approvals.get(fact["approvalId"])
                assert record.decision is not None
                assert record.decision["approved"] is True
                made.unlink()
            assert len((await run_turn(hub, session, act)).acts) == 1
            assert not made.exists()
            assert await hub.approvals() == []
            check(await history(log, session.id))
            if is_over:
                break
            tally("batches that the log refused around an act, none with an act too many", 1)
        assert number > 5
    assert not [record for record in caplog.records if record.exc_info]


async def test_an_approval_that_could_not_be_stored_permits_nothing_in_the_next_turn(project: Path) -> None:
    log = FullLog()
    async with rogue_hub(log=log) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("rogue", project)
        prompt = await session.send(ask("c1", title="List", kind="execute", rawInput={"command": "ls"}))
        event = await approval_asked(session)
        log.full = True
        with pytest.raises(NotStored):
            await session.decide(event.request_id, approved=True)
        with pytest.raises(NotStored):
            await prompt.done
        log.full = False
        turn = await run_turn(hub, session, do("terminal/create", command="ls"))
        assert len(turn.acts) == 1
        assert facts(await history(log, session.id), "act_allowed") == []


async def test_an_approval_that_was_pending_when_the_log_failed_can_be_closed(project: Path) -> None:
    log = FullLog()
    async with rogue_hub(log=log) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("rogue", project)
        prompt = await session.send(ask("c1", title="List", kind="execute", rawInput={"command": "touch made"}))
        event = await approval_asked(session)
        log.full = True
        session.rename("no room for this")
        with pytest.raises(NotStored):
            await prompt.done
        with pytest.raises(NotStored):
            await session.decide(event.request_id, approved=True)
        assert len(await hub.approvals()) == 1
        log.full = False
        with pytest.raises(DecidedOtherwise):
            await session.decide(event.request_id, approved=True)
        assert await hub.approvals() == []
        check(await history(log, session.id))


SEEDS = range(60 if os.environ.get("PILOTHOUSE_SOAK") else 4)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_hub_killed_at_random_did_only_what_was_approved(
    tmp_path: Path, project: Path, seed: int, tally: Callable[[str, int], None]
) -> None:
    home = tmp_path / "home"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, stressed_hub.__file__, str(home), str(project), str(seed)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"},
    )
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    assert process.returncode == -9
    made = Counter((project / "made").read_text().split() if (project / "made").exists() else ())
    made += Counter(path.name.removeprefix("word-") for path in project.glob("word-*"))
    permitted: Counter[str] = Counter()
    async with rogue_hub(home) as hub, asyncio.timeout(PATIENCE):
        assert await hub.approvals() == []
        for record in (await hub.sessions()).sessions:
            events = await history(hub.log, record.id)
            check(events)
            undone = {fact["actId"] for fact in facts(events, "act_undone")}
            used = [fact["approvalId"] for fact in facts(events, "act_allowed") if fact["actId"] not in undone]
            assert len(set(used)) == len(used)
            approved: set[str] = set()
            for event in events:
                if event.type == "approval:resolved" and event.approved:  # type: ignore[attr-defined]
                    approved.add(event.request_id)  # type: ignore[attr-defined]
                if getattr(event, "event_name", "") == "act_allowed":
                    fact = event.data  # type: ignore[attr-defined]
                    assert fact["approvalId"] in approved
                    if fact["actId"] not in undone:
                        permitted.update(re.findall(r"w\d+x\d+", fact.get("command") or fact["path"]))
        assert made - permitted == Counter()
        for line in output.decode().splitlines():
            request_id, told = line.split()
            decision = (await hub.log.approvals.get(request_id)).decision
            assert decision is not None
            assert decision["approved"] is (told == "1")
    tally("acts of hubs killed at random, all of them approved", made.total())
