"""A hub whose database cannot be used, or fills up: a clear error each, nothing half done, nothing done unseen."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
from pathlib import Path

import pytest

from pilothouse.hub.errors import HubError, NotStored
from pilothouse.hub.hub import DATABASE, Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.log import LogError, LogFull, LogLocked, SQLiteLog
from pilothouse.model.events import SessionErrorEvent
from tests.support.disks import DAMAGES, PAGE, as_ordinary_user, small_disk
from tests.support.hubs import PATIENCE, FullLog, check, facts, gone, history, odd, odd_hub, processes_with, said, until


async def make(home: Path) -> str:
    """A home with a session that has some history."""
    async with odd_hub(home) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", home.parent)
        await session.prompt("flood 2000")
    return session.id


# -- files that cannot be used ------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_database_that_cannot_be_used_is_refused_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    home = tmp_path / "home"
    await make(home)
    path = home / DATABASE
    how, what, advice = DAMAGES[damage]
    how(path)
    before = path.read_bytes()
    with pytest.raises(LogError) as caught:
        await odd_hub(home).__aenter__()
    message = str(caught.value)
    assert str(path) in message
    assert what in message
    assert advice in message
    assert "\n" not in message
    assert path.read_bytes() == before
    assert {file.name for file in home.iterdir()} <= {DATABASE, f"{DATABASE}.lock"}


async def test_a_hub_on_the_home_of_another_is_refused_and_disturbs_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with odd_hub(home) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        running = await session.send("text")
        await until(session, "message:delta")
        with pytest.raises(LogLocked, match=f"process {os.getpid()}; only one hub may have it open"):
            await odd_hub(home).__aenter__()
        assert session.agent_pid is not None
        await session.cancel()
        assert (await running.done).stop_reason == "cancelled"
        check(await history(hub.log, session.id))


async def test_the_lock_of_a_process_that_is_gone_is_waited_for(tmp_path: Path) -> None:
    """A child that was just being started when its hub was killed holds the lock for a moment."""
    import fcntl

    home = tmp_path / "home"
    await make(home)
    with (home / f"{DATABASE}.lock").open("r+b") as file:
        file.write(b"4194303\n")
        file.truncate()
        fcntl.flock(file, fcntl.LOCK_EX)
        asyncio.get_running_loop().call_later(0.2, fcntl.flock, file, fcntl.LOCK_UN)
        async with odd_hub(home) as hub, asyncio.timeout(PATIENCE):
            assert len((await hub.sessions()).sessions) == 1


OPENER = """
import asyncio, sys
from pilothouse.hub.hub import Hub
from pilothouse.log import LogError

async def main():
    try:
        async with Hub(home=sys.argv[1]):
            print("open")
    except LogError as exc:
        print(type(exc).__name__, exc)

asyncio.run(main())
"""


@pytest.mark.parametrize(("what", "mode"), [("file", 0o400), ("directory", 0o500)])
async def test_what_may_not_be_written_is_refused_and_left_as_it_is(tmp_path: Path, what: str, mode: int) -> None:
    home = tmp_path / "home"
    await make(home)
    before = (home / DATABASE).read_bytes()
    ((home / DATABASE) if what == "file" else home).chmod(mode)
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", OPENER, str(home)), stdout=asyncio.subprocess.PIPE, preexec_fn=as_ordinary_user
        )
        async with asyncio.timeout(PATIENCE):
            told, _ = await process.communicate()
    finally:
        home.chmod(0o700)
    assert told.startswith(b"LogReadOnly")
    assert b"give this user the right to write the file and its directory" in told
    assert (home / DATABASE).read_bytes() == before
    assert {file.name for file in home.iterdir()} == {DATABASE, f"{DATABASE}.lock"}


async def test_whatever_page_is_damaged_the_hub_says_so_or_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    session_id = await make(tmp_path / "whole")
    whole = (tmp_path / "whole" / DATABASE).read_bytes()
    chance = random.Random(7)
    outcomes = set()
    for number in range(30):
        home = tmp_path / str(number)
        home.mkdir()
        data = bytearray(whole)
        place = chance.randrange(1, len(whole) // PAGE) * PAGE
        if number % 2:
            data[place : place + PAGE] = chance.randbytes(PAGE)
        else:
            for _ in range(40):
                data[place + chance.randrange(PAGE)] ^= 1 << chance.randrange(8)
        (home / DATABASE).write_bytes(data)
        outcomes.add(await use(home, session_id))
        shutil.rmtree(home)
    assert "refused" in outcomes
    assert outcomes <= {"refused", "works"}


async def use(home: Path, session_id: str) -> str:
    """What comes of a home: it works, or it is refused by an error that says why."""
    try:
        async with odd_hub(home) as hub, asyncio.timeout(PATIENCE):
            await hub.session(session_id)
            await hub.log.read_all()
            await hub.log.search("word")
            await hub.approvals()
            session = await hub.start_session("odd", home)
            await session.prompt("echo hello")
    except (LogError, HubError) as exc:
        return "refused" if "move it aside" in str(exc) else repr(exc)
    return "works"


# -- no room ------------------------------------------------------------------------------------------------------


async def pour(hub: Hub, session: HubSession, counted: Path, mark: str) -> dict[int, bytes]:
    """Let the agent talk until there is no room; what a follower has seen until then."""
    seen: dict[int, bytes] = {}

    async def follow() -> None:
        async for batch in session.follow():
            seen.update((entry.seq, entry.data) for entry in batch)

    following = asyncio.ensure_future(follow())
    running = await session.send(f"pour {counted}")
    waiting = await session.send("echo queued")
    with pytest.raises(NotStored, match=r"no room left for .*: free some space and try again"):
        await running.done
    with pytest.raises(NotStored, match="no room left"):
        await waiting.done
    await gone(lambda: processes_with(mark))  # it would have gone on for ever, and nobody would have known
    following.cancel()
    assert session.agent_pid is None
    assert len(seen) > 1
    return seen


async def until_room(session: HubSession) -> None:
    while True:
        try:
            await session.start()
        except NotStored:
            await asyncio.sleep(0.01)
        else:
            return


async def goes_on(hub: Hub, session: HubSession, seen: dict[int, bytes]) -> None:
    """There is room again: what was seen is there, the log tells what happened, and the next prompt works."""
    assert (await session.prompt("echo there is room")).stop_reason == "end_turn"
    stored: dict[int, bytes] = {}
    while page := await hub.log.read(session.id, len(stored)):
        stored.update((entry.seq, entry.data) for entry in page)
    assert {seq: stored[seq] for seq in seen} == seen
    events = await history(hub.log, session.id)
    check(events)
    (error,) = [event.error for event in events if isinstance(event, SessionErrorEvent)]
    assert error.code == "not_stored"
    assert "no room left" in error.message
    assert [data["stopReason"] for data in facts(events, "turn_ended")] == ["error", "end_turn"]
    assert said(events).endswith("there is room")
    assert await hub.log.integrity_check() == []


async def test_a_disk_that_fills_up_in_mid_turn_ends_the_turn_and_the_agent_until_there_is_room(
    tmp_path: Path,
) -> None:
    """A real small file system where one can be mounted, else a bound on the file; and room is made in either."""
    home, counted = tmp_path / "home", tmp_path / "counted"
    with small_disk(home, 16_000_000) as mounted:
        ballast = home / "ballast"
        log = SQLiteLog(home / DATABASE, max_bytes=None if mounted else 9_000_000)
        agents = {"odd": odd("resume", ODD_MARK=tmp_path.name)}
        async with Hub(log=log, agents=agents) as hub, asyncio.timeout(PATIENCE):
            first = await hub.start_session("odd", tmp_path)
            await first.prompt("line 2")
            if mounted:
                ballast.write_bytes(bytes(5_500_000))
            session = await hub.start_session("odd", tmp_path)
            await hub.release(first.id)
            seen = await pour(hub, session, counted, f"ODD_MARK={tmp_path.name}")
            if mounted:
                ballast.unlink()
            else:
                await hub.delete_session(first.id)  # its rows go a few at a time
                await until_room(session)
            await goes_on(hub, session, seen)


async def test_a_home_without_room_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with small_disk(home, 400_000) as mounted:
        if mounted:
            with pytest.raises(OSError, match="space"):
                (home / "ballast").write_bytes(bytes(1_000_000))
        log = SQLiteLog(home / DATABASE, max_bytes=None if mounted else PAGE)
        with pytest.raises(LogFull, match="free some space"):
            await Hub(log=log).__aenter__()


async def test_a_decision_that_cannot_be_stored_is_not_carried_out(tmp_path: Path) -> None:
    log = FullLog()
    async with Hub(log=log, agents={"odd": odd("resume")}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        running = await session.send("write made.txt")
        asked = await until(session, "approval:requested")
        log.full = True
        with pytest.raises((NotStored, LogFull)):
            await session.decide(asked.request_id, approved=True)  # type: ignore[attr-defined]
        with pytest.raises(NotStored):
            await running.done
        log.full = False
        assert (await session.prompt("echo on")).stop_reason == "end_turn"
        assert not (tmp_path / "made.txt").exists()
        assert await hub.approvals() == []
        check(await history(log, session.id))


async def test_prompts_that_wait_while_the_log_fails_run_or_are_answered_once(tmp_path: Path) -> None:
    log = FullLog()
    async with Hub(log=log, agents={"odd": odd("resume")}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        running = await session.send("text")
        waiting = [await session.send(f"echo {number}") for number in range(2)]
        await until(session, "message:delta")
        await session.committed()
        log.full = True
        with pytest.raises(NotStored):
            await running.done
        log.full = False
        results = await asyncio.gather(*(prompt.done for prompt in waiting), return_exceptions=True)
        ran = [prompt.turn_id for prompt, result in zip(waiting, results, strict=True) if not _failed(result)]
        events = await history(log, session.id)
        check(events)
        ended = [data["turnId"] for data in facts(events, "turn_ended")]
        withdrawn = [data["promptId"] for data in facts(events, "prompt_cancelled")]
        assert ended == [running.turn_id, *ran]
        assert set(withdrawn).isdisjoint(ended)


def _failed(result: object) -> bool:
    assert not isinstance(result, BaseException) or isinstance(result, NotStored)
    return isinstance(result, NotStored)


async def test_what_is_open_in_the_write_ahead_log_of_a_killed_hub_is_found(tmp_path: Path) -> None:
    """Only the write-ahead log has the newest events; a copy of both files is all there is."""
    home, copy = tmp_path / "home", tmp_path / "copy"
    copy.mkdir()
    async with odd_hub(home) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        running = await session.send("tool")
        await until(session, "tool:executing")
        for name in (DATABASE, f"{DATABASE}-wal"):
            shutil.copy(home / name, copy / name)
        await session.cancel()
        await running.done
    async with odd_hub(copy) as again, asyncio.timeout(PATIENCE):
        assert again.recovered == [session.id]
        events = await history(again.log, session.id)
        check(events)
        assert [data["stopReason"] for data in facts(events, "turn_ended")] == ["interrupted"]
        assert await again.log.integrity_check() == []
