"""Sessions that another program runs: told once, live, and like any other; also after the hub was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.adapters.discovery.store import Step
from pilothouse.dialects.acp import to_updates
from pilothouse.hub.errors import HubError, IllegalCommand
from pilothouse.hub.external.writer_lock import Leases
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.discovery import DiscoveredSession
from pilothouse.model.events import Event, utc_now
from tests.support.hubs import PATIENCE, check, fact, facts, history, said, until
from tests.support.records import DemoReader, append, finder, says, write_record
from tests.support.servers import agent_specs
from tests.support.watching import ID, TOUR, found, idle, open_hub, prompts, told

ROOT = Path(__file__).parents[2]


async def test_history_is_told_like_a_session_of_our_own(tmp_path: Path, place: Path) -> None:
    write_record(place, ID, tmp_path, [*TOUR, says("And now?", "u2", user=True), says("All is well.", "a3")])
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await told(session, "All is well.")
        await idle(session)
        events = await history(hub.log, session.id)
        check(events)
        assert facts(events, "session_watched")[0]["integrationMethod"] == "file-watch"
        assert events[0].type == "custom"
        assert events[1].type == "session:started"
        assert len(facts(events, "turn_started")) == 2
        assert [data["stopReason"] for data in facts(events, "turn_ended")] == ["end_turn", "end_turn"]
        roles = [item.role for item in (await session.transcript()).messages]
        assert roles == ["user", "assistant", "assistant", "user", "assistant"]
        record = await hub.log.sessions.get(session.id)
        assert (record.title, record.agent_session_id, record.cwd) == ("Found", ID, str(tmp_path))
        sent = [msgspec.json.decode(update) for update in to_updates([event async for event in stored(session)])]
        assert [update for update in sent if update["sessionUpdate"] != "session_info_update"] == [
            *TOUR,
            says("And now?", "u2", user=True),
            says("All is well.", "a3"),
        ]


async def test_a_found_session_leads_to_the_one_here_that_is_not_over_and_is_its_agents(
    tmp_path: Path, place: Path
) -> None:
    async def leads_to(hub: Hub) -> str | None:
        (one,), _ = await hub.discovery.found(refresh=True)
        return one.hub_session_id

    write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        about = {"agent": "odd", "cwd": str(tmp_path), "agent_session_id": ID}
        await hub.log.sessions.create("ses_other", **about)  # ids are chosen by agents, each for itself
        assert await leads_to(hub) is None
        first = await hub.watch_session(await found(hub))
        assert await leads_to(hub) == first.id
        await first.terminate()
        await first.committed()
        assert await leads_to(hub) is None
        second = await hub.watch_session(await found(hub))
        assert second.id != first.id
        assert await leads_to(hub) == second.id


async def test_a_look_at_all_processes_is_never_older_than_what_was_read(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, reads, looks = asyncio.get_running_loop().time, [], []
    write_record(place, ID, tmp_path, [says("Fix it", "u1", user=True)])
    read = DemoReader.read

    def reading(self: DemoReader) -> Step:
        step = read(self)
        reads.append(now())
        return step

    monkeypatch.setattr(DemoReader, "read", reading)
    async with open_hub(tmp_path, place) as hub:
        made: Any = hub.discovery.finder
        ask = made.session

        async def asked(agent: str, session_id: str, since: float | None = None) -> DiscoveredSession | None:
            if since is not None:
                looks.append((since, list(reads)))
            one: DiscoveredSession | None = await ask(agent, session_id, since)
            return one

        monkeypatch.setattr(made, "session", asked)
        session = await hub.watch_session(await found(hub))
        ended = await until(session, fact("turn_ended"))  # nobody runs it
        assert ended.data["stopReason"] == "interrupted"  # type: ignore[attr-defined]
        # the last read, which found nothing more, ended after that time, and the one before it did not
        assert all(before[-1] >= since and before[-2] <= since for since, before in looks if len(before) > 1)
        assert looks


async def test_what_is_done_about_a_session_leaves_no_lock_behind(tmp_path: Path, place: Path) -> None:
    write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        one = await found(hub)
        first, second = await asyncio.gather(hub.watch_session(one), hub.watch_session(one))
        assert first is second
        assert not hub.discovery._locks


async def stored(session: HubSession) -> AsyncIterator[Event]:
    last = await session.committed()
    async for event in session.events():
        yield event
        if event.seq == last:
            return


async def test_what_comes_is_told_as_it_comes(tmp_path: Path, place: Path) -> None:
    path = write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await told(session, "Done.")
        await idle(session)
        append(path, {"update": says("More", "u2", user=True)})
        await until(session, lambda event: event.type == "message:complete" and "More" in str(event))
        async with asyncio.timeout(PATIENCE):
            while session.status != "running":
                await asyncio.sleep(0.01)
        append(path, {"update": says("here it is", "a4")})
        await told(session, "here it is")
        await idle(session)
        check(await history(hub.log, session.id))


async def test_watching_again_is_the_same_session(tmp_path: Path, place: Path) -> None:
    write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        wanted = await found(hub)
        one, two = await asyncio.gather(hub.watch_session(wanted), hub.watch_session(wanted))
        assert one is two
        listed, _ = await hub.discovery.found()
        assert [entry.hub_session_id for entry in listed] == [one.id]
        assert len((await hub.sessions()).sessions) == 1


async def test_a_watched_session_takes_no_prompts_and_says_how_to_adopt_it(tmp_path: Path, place: Path) -> None:
    write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        with pytest.raises(IllegalCommand, match="pilothouse adopt"):
            await session.send("hello")
        with pytest.raises(IllegalCommand, match="watched"):
            await session.set_mode("plan")
        session.rename("Mine")
        assert await session.cancel() is False
        assert session.agent_pid is None


async def test_a_restarted_hub_goes_on_and_tells_each_update_once(tmp_path: Path, place: Path) -> None:
    path = write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await told(session, "Done.")
    append(path, {"update": says("Meanwhile", "u2", user=True)}, {"update": says("yes.", "a9")})
    async with open_hub(tmp_path, place) as hub:
        again = await hub.session(session.id)
        await told(again, "yes.")
        await idle(again)
        append(path, {"update": says(" And more.", "a9")})
        await told(again, " And more.")
        await idle(again)
        events = await history(hub.log, session.id)
        check(events)
        assert said(events) == "I look. Done.yes. And more."
        assert prompts(events) == ["Fix it", "Meanwhile"]
        assert len(facts(events, "session_watched")) == 1


OPEN = {"sessionUpdate": "tool_call", "toolCallId": "t7", "title": "Look around", "kind": "read", "status": "pending"}


@pytest.mark.parametrize("again", [{**OPEN, "status": "completed"}, None], ids=["as it is by now", "line by line"])
async def test_a_call_that_was_open_when_the_hub_stopped_ends_as_the_same_call(
    tmp_path: Path, place: Path, again: dict[str, Any] | None
) -> None:
    path = write_record(place, ID, tmp_path, [says("Go", "u1", user=True), OPEN])
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await until(session, "tool:start")
    if again is not None:
        path.unlink()
        write_record(place, ID, tmp_path, [says("Go", "u1", user=True), again])
    else:
        append(path, {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t7", "status": "completed"}})
    async with open_hub(tmp_path, place) as hub:
        taken = await hub.session(session.id)
        await until(taken, "tool:result")
        append(path, {"update": says("There it is.", "a1")})
        await told(taken, "There it is.")
        await idle(taken)
        (call,) = (await taken.transcript()).tool_calls
        assert (call.title, call.status, call.error) == ("Look around", "completed", None)
        check(await history(hub.log, session.id))


END = {"sessionUpdate": "tool_call_update", "toolCallId": "t7", "status": "completed"}
AT_WORK = [says("Go", "u1", user=True), says("I look", "a1"), OPEN]


def at_work(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes say that the session's program works."""

    async def session(agent: str, session_id: str) -> DiscoveredSession:
        at = utc_now()
        where = {"project_path": "/p", "project_name": "p", "created_at": at, "last_activity": at}
        return DiscoveredSession(id=session_id, agent=agent, status="running", **where)

    monkeypatch.setattr(hub.discovery.finder, "session", session)


async def left_at_work(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A hub watches a session and stops while that is in the middle of a call."""
    async with open_hub(tmp_path, place) as hub:
        wanted = await found(hub)
        at_work(hub, monkeypatch)
        session = await hub.watch_session(wanted)
        await until(session, "tool:start")
    return session.id


class Busy(DemoReader):
    """The record of a program that works until it says something that ends its turn."""

    def read(self) -> Step:
        step = super().read()
        is_done = bool(step.updates) and step.updates[-1] == says("Done.", "a2")
        return Step(updates=step.updates, status="idle" if is_done else "running" if step.updates else None)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.records.DemoReader", Busy)


async def read_on(hub: Hub, session_id: str, path: Path) -> list[Event]:
    """Its program goes on to the end of the turn; all events that there are then."""
    session = await hub.session(session_id)
    await hub.discovery.told(session_id)
    assert session.status == "running"
    append(path, {"update": END}, {"update": says("Done.", "a2")})
    await told(session, "Done.")
    await idle(session)
    return await history(hub.log, session_id)


def check_one_turn(events: list[Event]) -> None:
    check(events)
    assert said(events) == "I lookDone."
    assert len(facts(events, "turn_started")) == 1
    assert [data["stopReason"] for data in facts(events, "turn_ended")] == ["end_turn"]
    assert [event.type for event in events if event.type in ("tool:start", "tool:result", "tool:error")] == [
        "tool:start",
        "tool:result",
    ]


@pytest.mark.usefixtures("busy")
async def test_a_turn_is_left_open_by_a_hub_that_stops_and_ends_as_its_record_says(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_record(place, ID, tmp_path, AT_WORK)
    session_id = await left_at_work(tmp_path, place, monkeypatch)
    for _ in range(2):  # also of one that has nothing to tell of it
        async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub:
            events = await history(hub.log, session_id)
            assert facts(events, "turn_ended") == []
            assert [event.type for event in events if event.type.startswith("tool:")][-1] != "tool:error"
            assert (await hub.log.sessions.get(session_id)).status == "running"
    async with open_hub(tmp_path, place) as hub:
        at_work(hub, monkeypatch)
        check_one_turn(await read_on(hub, session_id, path))


@pytest.mark.usefixtures("busy")
async def test_a_hub_that_died_leaves_the_turn_of_another_program_open_too(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_record(place, ID, tmp_path, AT_WORK)
    dead = Hub(home=tmp_path, agents=agent_specs(tmp_path))
    await dead.__aenter__()
    made = finder(place, tmp_path)
    dead.discovery.prepare(lambda: made, Leases(tmp_path / "leases", tmp_path))
    wanted = await found(dead)
    at_work(dead, monkeypatch)
    session = await dead.watch_session(wanted)
    await until(session, "tool:start")
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
    asking = asyncio.ensure_future(session.park(OPEN, options))
    await until(session, "approval:requested")
    await dead.discovery.close()
    await dead.log.close()  # as by a crash: nothing more is stored
    async with open_hub(tmp_path, place) as hub:
        at_work(hub, monkeypatch)
        assert await hub.approvals() == []
        events = await read_on(hub, session.id, path)
        check_one_turn(events)
        assert [event.resolved_by for event in events if event.type == "approval:resolved"] == ["cancelled"]  # type: ignore[attr-defined]
    asking.cancel()
    await asyncio.wait((asking,))
    await dead.close()


@pytest.mark.usefixtures("busy")
async def test_what_its_user_adds_in_the_middle_of_a_call_belongs_to_the_turn_also_after_a_restart(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_record(place, ID, tmp_path, AT_WORK)
    session_id = await left_at_work(tmp_path, place, monkeypatch)
    append(path, {"update": says("And hurry", "u2", user=True)})
    async with open_hub(tmp_path, place) as hub:
        at_work(hub, monkeypatch)
        events = await read_on(hub, session_id, path)
        check_one_turn(events)
        assert prompts(events) == ["Go", "And hurry"]
        assert len(facts(events, "prompt_added")) == 1


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("has_record", [True, False])
async def test_a_turn_whose_program_or_record_is_gone_when_the_hub_is_back_ends_then(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, has_record: bool
) -> None:
    path = write_record(place, ID, tmp_path, AT_WORK)
    session_id = await left_at_work(tmp_path, place, monkeypatch)
    if not has_record:
        path.unlink()
    async with open_hub(tmp_path, place) as hub:
        session = await hub.session(session_id)
        await idle(session)
        events = await history(hub.log, session_id)
        check(events)
        assert [data["stopReason"] for data in facts(events, "turn_ended")] == ["interrupted"]
        assert [event.type for event in events if event.type in ("tool:result", "tool:error")] == ["tool:error"]


@pytest.mark.usefixtures("busy")
async def test_an_archived_session_is_not_left_open_as_nobody_reads_it_on(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_record(place, ID, tmp_path, AT_WORK)
    session_id = await left_at_work(tmp_path, place, monkeypatch)
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub:
        await hub.log.sessions.update(session_id, archived=True)
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub:
        assert (await hub.log.sessions.get(session_id)).status == "idle"
        assert len(facts(await history(hub.log, session_id), "turn_ended")) == 1


async def test_a_call_that_only_a_question_told_of_ends_with_the_hub(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.records.DemoReader", Busy)
    path = write_record(place, ID, tmp_path, AT_WORK)
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
    async with open_hub(tmp_path, place) as hub:
        wanted = await found(hub)
        at_work(hub, monkeypatch)
        session = await hub.watch_session(wanted)
        await until(session, "tool:start")
        asking = asyncio.ensure_future(
            session.park({"toolCallId": "t-asked", "title": "rm", "kind": "execute"}, options)
        )
        await until(session, "approval:requested")
    await asyncio.wait((asking,))
    async with open_hub(tmp_path, place) as hub:
        at_work(hub, monkeypatch)
        events = await read_on(hub, session.id, path)
        check(events)
        ended: Any = [event for event in events if event.type in ("tool:result", "tool:error")]
        assert [(event.type, event.tool_call_id) for event in ended] == [
            ("tool:error", "t-asked"),
            ("tool:result", "t7"),
        ]


async def test_events_have_the_time_that_the_record_tells_and_none_of_the_future(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_record(place, ID, tmp_path, [says("Go", "u1", user=True), says("Gone.", "a1"), says("Later.", "a2")])
    times = ["2026-01-01T10:00:00.000Z", "2026-01-01T10:00:05.000Z", "2999-01-01T00:00:00.000Z"]
    read = DemoReader.read

    def timed(reader: DemoReader) -> Step:
        step = read(reader)
        return msgspec.structs.replace(step, times=times[: len(step.updates)])

    monkeypatch.setattr(DemoReader, "read", timed)
    before = utc_now()
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await told(session, "Later.")
        await idle(session)
        events = await history(hub.log, session.id)
        by_text = {str(getattr(event, "delta", "")): event.timestamp for event in events}
        assert by_text["Gone."] == times[1]
        assert before <= by_text["Later."] <= utc_now()
        assert {event.timestamp for event in events[:2]} == {"2026-01-01T00:00:00.000Z"}  # when it was begun
        began = next(event for event in events if fact("turn_started")(event))
        assert began.timestamp == times[0]


PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.support.watching import ID, found, open_hub
async def main(home):
    async with open_hub(home, home / "demo") as hub:
        session = await hub.watch_session(await found(hub))
        print(session.id, flush=True)
        await asyncio.Event().wait()
asyncio.run(main(Path(sys.argv[1])))
"""


async def test_a_hub_that_is_killed_again_and_again_while_a_record_grows_tells_each_update_once(
    tmp_path: Path, place: Path
) -> None:
    path = write_record(place, ID, tmp_path)
    wanted = []

    async def grow(count: int) -> None:
        for _ in range(count):
            number = len(wanted)
            wanted.append(f"<{number}>")
            prompt = number % 40 == 0
            named = f"u{number}" if prompt else f"a{number // 7}"
            append(path, {"update": says(wanted[-1], named, user=prompt)})
            if number % 5 == 0:
                await asyncio.sleep(0.001)

    session_id = ""
    for _ in range(4):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, str(tmp_path)), cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            session_id = (await process.stdout.readline()).decode().strip()
        await grow(150)
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        await grow(20)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.session(session_id)
        await told(session, wanted[-1])
        await idle(session)
        events = await history(hub.log, session_id)
        check(events)
        assert said(events) == "".join(text for number, text in enumerate(wanted) if number % 40)
        assert prompts(events) == [text for number, text in enumerate(wanted) if number % 40 == 0]


async def test_a_turn_whose_program_was_killed_ends(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.external.watch.POLL", 0.05)
    write_record(place, ID, tmp_path, [*TOUR, says("Go on", "u2", user=True)])
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await until(session, lambda event: fact("turn_ended")(event) and event.data["stopReason"] == "interrupted")  # type: ignore[attr-defined]
        await idle(session)


async def test_a_permission_can_be_parked_in_a_watched_session(tmp_path: Path, place: Path) -> None:
    write_record(place, ID, tmp_path, TOUR)
    call = {"toolCallId": "t9", "title": "rm -rf build", "kind": "execute", "rawInput": {"command": "rm -rf build"}}
    options = [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Deny", "kind": "reject_once"},
    ]
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await told(session, "Done.")
        await idle(session)
        for approved, option in ((True, "yes"), (False, "no")):
            asking = asyncio.ensure_future(session.park({**call, "toolCallId": f"t-{option}"}, options))
            asked: Any = await until(session, "approval:requested", session.state.seq)
            assert session.status == "waiting_for_approval"
            assert [one.id for one in await hub.approvals()] == [asked.request_id]
            await hub.decide(asked.request_id, approved=approved, by="phone")
            assert (await asking)["outcome"] == {"outcome": "selected", "optionId": option}
        asking = asyncio.ensure_future(session.park({**call, "toolCallId": "t-gone"}, options))
        await until(session, "approval:requested", session.state.seq)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await session.committed()
        assert await hub.approvals() == []


async def test_a_session_that_is_ended_here_is_told_no_more(tmp_path: Path, place: Path) -> None:
    path = write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await told(session, "Done.")
        await session.terminate()
        last = await session.committed()
        append(path, {"update": says("late", "a8")})
        other = await hub.watch_session(await found(hub))
        assert other.id != session.id
        await told(other, "late")
        assert (await hub.log.sessions.get(session.id)).last_seq == last


async def test_a_deleted_session_is_watched_no_more(tmp_path: Path, place: Path) -> None:
    write_record(place, ID, tmp_path, TOUR)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await told(session, "Done.")
        await hub.delete_session(session.id)
        listed, _ = await hub.discovery.found()
        assert listed[0].hub_session_id is None


async def test_a_session_that_is_deleted_while_it_is_adopted_holds_nobody_up(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_record(place, ID, tmp_path, TOUR)
    read, begun, go = DemoReader.read, threading.Event(), threading.Event()

    def reading(self: DemoReader) -> Step:
        begun.set()
        go.wait(PATIENCE)
        return read(self)

    monkeypatch.setattr(DemoReader, "read", reading)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        adopting = asyncio.create_task(hub.adopt_session(session.id))
        looked: Any = hub.discovery._feeds
        async with asyncio.timeout(PATIENCE):
            while not looked._feeds[session.id]._waiting:  # it waits for the record to be read
                await asyncio.sleep(0.005)
            await hub.delete_session(session.id)
            go.set()
            with pytest.raises(HubError, match="could not be read to its end"):
                await adopting
            again = await hub.adopt_session(await found(hub))
        assert again.id != session.id
        assert not looked._feeds


async def test_a_feed_whose_session_is_gone_ends(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_record(place, ID, tmp_path, TOUR)
    monkeypatch.setattr("pilothouse.hub.external.watch.AGAIN", 0.01)
    async with open_hub(tmp_path, place) as hub:
        session = await hub.watch_session(await found(hub))
        await told(session, "Done.")
        await idle(session)
        looked: Any = hub.discovery._feeds
        feed = looked._feeds[session.id]
        await hub.log.sessions.delete(session.id)  # by whatever road
        append(path, {"update": says("More", "u9", user=True)})
        feed.wake()
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait((feed._task,))
