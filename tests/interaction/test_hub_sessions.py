"""Sessions over their life: requests sent twice, a log that fails and works again, pauses, ends, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.errors import HubError, IdReused, IllegalCommand, NotStored, QueueFull, UnknownAgent
from pilothouse.hub.hub import Hub
from pilothouse.log.errors import UnknownSession
from pilothouse.log.sqlite.log import SQLiteLog
from pilothouse.model.errors import ValidationError
from pilothouse.model.events import Event
from pilothouse.server.errors import explain
from tests.support.hubs import PATIENCE, FullLog, check, fact, facts, history, odd, odd_hub, said, until


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        yield hub


# -- the log fails -------------------------------------------------------------------------------------------------


async def test_a_turn_that_cannot_be_stored_fails_its_caller_and_ends_its_agent(tmp_path: Path) -> None:
    log = FullLog()
    async with Hub(log=log, agents={"odd": odd("resume")}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        prompt, queued = await session.send("text"), await session.send("echo queued")
        await until(session, "message:delta")
        log.full = True
        with pytest.raises(NotStored, match="no room left"):
            await asyncio.shield(prompt.done)
        with pytest.raises(NotStored):
            await asyncio.shield(queued.done)
        assert session.agent_pid is None
        seen = session.state.seq
        assert seen == await log.last_seq(session.id)
        with pytest.raises(NotStored):
            await session.prompt("echo still full")
        with pytest.raises(NotStored):
            await session.start()
        log.full = False
        assert (await session.prompt("echo works")).stop_reason == "end_turn"
        events = await history(log, session.id)
        check(events)
        assert [data["stopReason"] for data in facts(events, "turn_ended")] == ["error", "end_turn"]
        assert session.state.seq == len(events)


async def test_nothing_is_allowed_that_cannot_be_stored(tmp_path: Path) -> None:
    log = FullLog()
    async with Hub(log=log, agents={"odd": odd("resume")}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        prompt = await session.send("write note.txt")
        asked = await until(session, "approval:requested")
        log.full = True
        with pytest.raises(NotStored):
            await session.decide(asked.request_id, approved=True)  # type: ignore[attr-defined]
        with pytest.raises(NotStored):
            await asyncio.shield(prompt.done)
        log.full = False
        await session.prompt("echo works")
        (approval,) = await log.approvals.list(session.id)
        assert approval.decided_by == "recovery"
        check(await history(log, session.id))
    assert not (tmp_path / "note.txt").exists()


async def test_a_full_database_is_one_failed_turn(tmp_path: Path) -> None:
    log = SQLiteLog(tmp_path / "small.db", max_bytes=600_000)
    async with Hub(log=log, agents={"odd": odd("resume")}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo before")
        with pytest.raises(NotStored):
            await session.prompt("line 2")
        assert session.agent_pid is None
        check(await history(log, session.id), at_rest=False)
        assert (await session.prompt("echo after")).stop_reason == "end_turn"
        check(await history(log, session.id))


async def test_a_queued_prompt_that_is_cancelled_while_the_log_fails_is_answered(tmp_path: Path) -> None:
    log = FullLog()
    async with Hub(log=log, agents={"odd": odd("resume")}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        prompt, queued = await session.send("text"), await session.send("echo queued")
        await until(session, "message:delta")
        log.full = True
        session.cancel_queued(queued.turn_id)
        for one in (prompt, queued):
            with pytest.raises(NotStored):
                await asyncio.shield(one.done)


# -- requests sent twice -------------------------------------------------------------------------------------------


async def test_a_request_sent_again_is_the_same_turn(hub: Hub, tmp_path: Path) -> None:
    session = await hub.start_session("odd", tmp_path)
    prompts = await asyncio.gather(*(session.send("echo once", client_request_id="a") for _ in range(20)))
    assert len({id(prompt) for prompt in prompts}) == 1
    first = await prompts[0].done
    assert await session.prompt([{"type": "text", "text": "echo once"}], client_request_id="a") == first
    assert (await session.prompt("echo other", client_request_id="b")).turn_id != first.turn_id
    assert said(await history(hub.log, session.id)) == "onceother"


async def test_a_request_sent_again_after_a_restart_is_the_same_turn(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        first = await session.prompt("echo once", client_request_id="a")
        failed = await session.prompt("die 3", client_request_id="f")
        running = await session.send("deaf", client_request_id="b")
        waiting = await session.send("echo queued", client_request_id="c")
        await until(session, lambda event: getattr(event, "delta", "") == "deaf")
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        assert await session.prompt("echo once", client_request_id="a") == first
        assert await session.prompt("die 3", client_request_id="f") == failed
        assert failed.error is not None
        assert await session.prompt("deaf", client_request_id="b") == running.done.result()
        assert await session.prompt("echo queued", client_request_id="c") == waiting.done.result()
        assert running.done.result().stop_reason == "interrupted"
        assert said(await history(hub.log, session.id)) == "oncedeaf"
        assert (await session.prompt("echo new", client_request_id="d")).stop_reason == "end_turn"


async def test_an_id_that_another_prompt_had_is_refused_also_after_a_restart(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        first = await session.send("echo once", client_request_id="a")
        with pytest.raises(IdReused) as running:
            await session.send("echo twice", client_request_id="a")
        assert running.value.details == {"field": "client_request_id"}
        await first.done
        with pytest.raises(IdReused):
            await session.send("echo twice", client_request_id="a")
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        with pytest.raises(IllegalCommand, match="'a' was given to a prompt that says something else"):
            await session.send("echo twice", client_request_id="a")
        assert await session.prompt("echo once", client_request_id="a") == first.done.result()
        assert said(await history(hub.log, session.id)) == "once"


async def test_a_queued_prompt_that_was_edited_is_still_the_request_it_was(hub: Hub, tmp_path: Path) -> None:
    session = await hub.start_session("odd", tmp_path)
    session.pause()
    waiting = await session.send("echo queued", client_request_id="q")
    session.edit_queued(waiting.turn_id, "echo edited")
    assert await session.send("echo queued", client_request_id="q") is waiting
    with pytest.raises(IdReused):
        await session.send("echo edited", client_request_id="q")


async def test_a_request_may_be_repeated_while_it_waits(hub: Hub, tmp_path: Path) -> None:
    session = await hub.start_session("odd", tmp_path)
    await session.send("text")
    waiting = await session.send("echo queued", client_request_id="q")
    assert await session.send("echo queued", client_request_id="q") is waiting
    await until(session, "message:delta")
    await session.cancel()
    assert (await waiting.done).stop_reason == "end_turn"
    assert (await session.send("echo queued", client_request_id="q")).done.result() == waiting.done.result()


# -- control -------------------------------------------------------------------------------------------------------


async def test_a_paused_session_starts_no_turn_until_it_is_resumed(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        running = await session.send("text")
        await until(session, "message:delta")
        session.pause("lunch")
        waiting = await session.send("echo later")
        await session.committed()
        assert session.status == "paused"
        await session.cancel()
        assert running.done.result().stop_reason == "cancelled"
        assert not waiting.done.done()
        assert session.status == "paused"
        session.resume()
        assert (await waiting.done).stop_reason == "end_turn"
        session.pause()
        session.pause()
        await session.committed()
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        assert session.status == "paused"
        waiting = await session.send("echo later")
        session.resume()
        assert (await waiting.done).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        check(events)
        assert [event.type for event in events].count("session:paused") == 2


@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_pause_outlives_the_turn_and_the_agent_that_are_on_their_way(tmp_path: Path, is_begun: bool) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        for _ in ("a new agent", "one that is started anew"):
            before = session.state.seq
            running = await session.send("echo now")
            if is_begun:
                await until(session, fact("turn_started"), before)
            session.pause()
            waiting = await session.send("echo later")
            assert (await running.done).stop_reason == "end_turn"
            await session.committed()
            assert (session.status, waiting.done.done()) == ("paused", False)
            session.resume()
            assert (await waiting.done).stop_reason == "end_turn"
            await hub.release(session.id)
            session = await hub.session(session.id)
            assert session.status == "idle"
        events = await history(hub.log, session.id)
        check(events)
        assert {"session:started", "session:resumed"} <= {event.type for event in events}


async def test_a_terminated_session_is_over_for_good(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("odd", tmp_path)
        prompts = [await session.send("text"), await session.send("echo queued")]
        await until(session, "message:delta")
        await asyncio.gather(session.terminate(), session.terminate())
        assert [prompt.done.result().stop_reason for prompt in prompts] == ["cancelled", "cancelled"]
        assert (session.status, session.agent_pid) == ("completed", None)
        with pytest.raises(IllegalCommand):
            await session.send("echo more")
        events = await history(hub.log, session.id)
        check(events)
        assert [event.type for event in events].count("session:completed") == 1
    async with odd_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        with pytest.raises(IllegalCommand):
            await (await hub.session(session.id)).send("echo more")


async def test_a_deleted_session_is_gone(hub: Hub, tmp_path: Path) -> None:
    session = await hub.start_session("odd", tmp_path)
    await session.send("text")
    await until(session, "message:delta")
    await hub.delete_session(session.id)
    with pytest.raises(UnknownSession):
        await hub.session(session.id)


async def test_a_session_that_is_being_deleted_is_given_to_nobody(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, delete, asked = await hub.start_session("odd", tmp_path), hub.log.sessions.delete, []

    async def deleting(session_id: str) -> None:
        for _ in range(2):  # it has left memory, and the log has it still, and then no more
            with pytest.raises(UnknownSession):
                await hub.session(session_id)
            asked.append(session_id)
            if len(asked) == 1:
                await delete(session_id)

    monkeypatch.setattr(hub.log.sessions, "delete", deleting)
    await hub.delete_session(session.id)
    assert len(asked) == 2
    assert session.id not in hub.live


async def test_a_session_that_is_taken_up_while_it_is_deleted_does_not_stay_in_memory(hub: Hub, tmp_path: Path) -> None:
    session = await hub.start_session("odd", tmp_path)
    await hub.release(session.id)
    taking = asyncio.create_task(hub.session(session.id))
    while session.id not in hub._loading:
        await asyncio.sleep(0)
    await hub.delete_session(session.id)
    await asyncio.wait((taking,))
    taking.exception()
    assert session.id not in hub.live
    with pytest.raises(UnknownSession):
        await hub.session(session.id)


async def test_who_is_late_for_a_session_is_told_that_it_was_deleted(hub: Hub, tmp_path: Path) -> None:
    session = await hub.start_session("odd", tmp_path)
    await session.committed()
    await hub.log.sessions.delete(session.id)
    session.rename("Too late")
    with pytest.raises(NotStored) as refused:
        await session.committed()
    assert refused.value.is_deleted
    status, error = explain(refused.value)
    assert (status, error.code, error.details) == (404, "unknown_session", {"sessionId": session.id})
    assert not NotStored("full", sessionId=session.id).is_deleted


async def test_what_cannot_be_started_says_why(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(UnknownAgent, match="there are: odd"):
        await hub.start_session("nobody", tmp_path)
    (tmp_path / "file").touch()
    for wrong, why in (("relative", "is not absolute"), ("missing", "does not exist"), ("file", "is no directory")):
        with pytest.raises(HubError, match=why) as refused:
            await hub.start_session("odd", wrong if wrong == "relative" else tmp_path / wrong)
        assert refused.value.details["field"] == "cwd"
    with pytest.raises(ValidationError):
        await hub.start_session("odd", tmp_path, policy={"autoAprove": {}})
    assert (await hub.sessions()).sessions == []


async def test_the_queue_has_an_end(hub: Hub, tmp_path: Path) -> None:
    session = await hub.start_session("odd", tmp_path)
    session.pause()
    for number in range(100):
        await session.send(f"echo {number}")
    with pytest.raises(QueueFull):
        await session.send("echo too many")


async def test_a_snapshot_shows_what_is_committed_and_nothing_else(hub: Hub, tmp_path: Path) -> None:
    session = await hub.start_session("odd", tmp_path)
    session.pause()
    await session.send("echo queued")
    assert session.snapshot()["queue"] == []
    assert session.status == "idle"
    await session.committed()
    assert len(session.snapshot()["queue"]) == 1
    assert session.status == "paused"
    assert session.snapshot()["seq"] == await hub.log.last_seq(session.id)


async def test_a_follower_ends_with_its_hub(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub:
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("echo hello")

        async def collect() -> list[Event]:
            return [event async for event in session.events()]

        following = asyncio.ensure_future(collect())
        await until(session, fact("turn_ended"))
    async with asyncio.timeout(PATIENCE):
        events = await following
    assert said(events) == "hello"


async def test_a_session_taken_up_by_many_at_once_has_one_actor(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub:
        session = await hub.start_session("odd", tmp_path)
        await session.prompt("flood 500")
    async with odd_hub(tmp_path / "home", "resume") as hub, asyncio.timeout(PATIENCE):
        found = await asyncio.gather(*(hub.session(session.id) for _ in range(20)))
        assert len({id(one) for one in found}) == 1
        results: list[Any] = await asyncio.gather(*(one.prompt("echo x") for one in found))
        assert [result.stop_reason for result in results] == ["end_turn"] * 20
        check(await history(hub.log, session.id))
