"""Sessions that were begun elsewhere go on under the hub, with one writer only."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import AgentFailed, Held, HubError, IllegalCommand, UnknownAgent, Unsupported
from pilothouse.hub.external.writer_lock import Leases
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.discovery import DiscoveredSession, SessionDiscoveryEvent
from tests.support.hubs import PATIENCE, check, facts, history, odd, said, until
from tests.support.records import Holders, append, finder, holder_of, program, says, write_record
from tests.support.servers import agent_specs


@contextlib.asynccontextmanager
async def open_hub(
    home: Path, place: Path, holders: Holders | None = None, *, agents: dict[str, AgentSpec] | None = None
) -> AsyncIterator[Hub]:
    home.mkdir(exist_ok=True)
    specs = agent_specs(place.parent) if agents is None else agents
    async with Hub(home=home, agents=specs) as hub:
        made = finder(place, place.parent, holders)
        hub.discovery.prepare(lambda: made, Leases(place.parent / "leases", home))
        await hub.discovery.begin()
        assert hub.discovery.finder is made
        yield hub


async def watching(hub: Hub) -> None:
    """Wait until changes on the disk are noticed."""
    finder: Any = hub.discovery.finder
    async with asyncio.timeout(PATIENCE):
        await finder._watcher.watching.wait()


@contextlib.contextmanager
def running(*, stubborn: bool = False) -> Iterator[Any]:
    process = program(stubborn=stubborn)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
async def begun(tmp_path: Path, place: Path) -> str:
    """A session that the demo agent was given elsewhere; its id."""
    async with Hub(home=tmp_path / "elsewhere", agents=agent_specs(tmp_path)) as hub:
        session = await hub.start_session("demo", tmp_path)
        assert (await session.prompt("flood 5")).error is None
        assert session.agent_session_id is not None
        return session.agent_session_id


async def one(hub: Hub, session_id: str) -> DiscoveredSession:
    return await hub.discovery.find("demo", session_id)


async def events_of(hub: Hub, session: HubSession) -> list[Any]:
    await session.committed()
    return list(await history(hub.log, session.id))


async def test_an_adopted_session_goes_on_with_its_history_once(tmp_path: Path, place: Path, begun: str) -> None:
    async with open_hub(tmp_path / "home", place) as hub:
        session = await hub.adopt_session(await one(hub, begun), by="cli")
        before = await events_of(hub, session)
        check(before)
        assert facts(before, "session_adopted") == [
            {"how": "resume", "by": "cli", "agent": "demo", "agentSessionId": begun}
        ]
        assert session.watched is None
        assert session.agent_pid is None
        assert (await session.prompt("flood 3")).error is None
        events = await events_of(hub, session)
        check(events)
        assert len(said(events)) > len(said(before))
        assert len(facts(events, "turn_started")) == 2
        assert [event.type for event in events].count("session:resumed") == 1
        assert session.agent_session_id == begun
        assert (place / f"{begun}.jsonl").read_text().count("user_message_chunk") == 2
        assert not facts(events, "session_reset")
    async with open_hub(tmp_path / "home", place) as hub:
        again = await hub.session(session.id)
        assert (await again.prompt("flood 2")).error is None
        assert again.agent_session_id == begun
        check(await events_of(hub, again))


async def test_a_watched_session_is_adopted_in_place(tmp_path: Path, place: Path, begun: str) -> None:
    async with open_hub(tmp_path / "home", place) as hub:
        watched = await hub.watch_session(await one(hub, begun))
        session = await hub.adopt_session(watched.id)
        assert session is watched
        assert (await session.prompt("flood 2")).error is None
        assert await hub.adopt_session(await one(hub, begun)) is session
        assert await hub.watch_session(await one(hub, begun)) is session
        record = await hub.log.sessions.get(session.id)
        assert "watched" not in record.meta
        assert record.meta["adopted"]["how"] == "resume"
        check(await events_of(hub, session))


async def test_a_session_that_a_program_has_is_refused_with_choices(tmp_path: Path, place: Path, begun: str) -> None:
    holders = Holders()
    with running() as process:
        holders.by_id[begun] = holder_of(process)
        async with open_hub(tmp_path / "home", place, holders) as hub:
            with pytest.raises(Held, match=str(process.pid)) as refused:
                await hub.adopt_session(await one(hub, begun))
            details = refused.value.details
            assert details["choices"] == ["watch", "fork", "take_over"]
            assert details["pid"] == process.pid
            assert details["since"]
            assert process.poll() is None
            assert (await hub.sessions()).sessions == []


@pytest.mark.parametrize("stubborn", [False, True])
async def test_taking_over_ends_that_program_and_no_other(
    tmp_path: Path, place: Path, begun: str, stubborn: bool
) -> None:
    holders = Holders()
    with running(stubborn=stubborn) as process, running() as bystander:
        holders.by_id[begun] = holder_of(process)
        async with open_hub(tmp_path / "home", place, holders) as hub:
            watched = await hub.watch_session(await one(hub, begun))
            session = await hub.adopt_session(await one(hub, begun), "take_over", by="phone")
            assert session is watched
            process.wait(PATIENCE)  # raises when it was not ended
            assert bystander.poll() is None
            assert (await session.prompt("flood 2")).error is None
            (adopted,) = facts(await events_of(hub, session), "session_adopted")
            assert (adopted["how"], adopted["by"], adopted["endedPid"]) == ("take_over", "phone", process.pid)


async def test_a_session_that_is_the_hubs_already_can_be_taken_back_from_a_program(
    tmp_path: Path, place: Path, begun: str
) -> None:
    holders = Holders()
    async with open_hub(tmp_path / "home", place, holders) as hub:
        session = await hub.adopt_session(await one(hub, begun))
        with running() as process:
            holders.by_id[begun] = holder_of(process)
            assert str(process.pid) in str((await session.prompt("flood 2")).error)
            with pytest.raises(Held):
                await hub.adopt_session(await one(hub, begun))
            assert await hub.adopt_session(await one(hub, begun), "take_over") is session
            process.wait(PATIENCE)
            assert (await session.prompt("flood 2")).error is None
            assert [data["how"] for data in facts(await events_of(hub, session), "session_adopted")] == [
                "resume",
                "take_over",
            ]


async def test_a_program_that_is_another_one_by_now_is_not_ended(tmp_path: Path, place: Path, begun: str) -> None:
    holders = Holders()
    with running() as process:
        known = holder_of(process)
        holders.by_id[begun] = holder_of(process, started=known.started - 3600)
        async with open_hub(tmp_path / "home", place, holders) as hub:
            with pytest.raises(Held):
                await hub.adopt_session(await one(hub, begun), "take_over")
            assert process.poll() is None
            holders.by_id[begun] = known
            with pytest.raises(Held):
                await hub.adopt_session(await one(hub, begun), "take_over", pid=process.pid + 1)
            assert process.poll() is None


async def test_a_program_that_only_may_have_the_session_is_ended_by_nobody_who_does_not_name_it(
    tmp_path: Path, place: Path, begun: str
) -> None:
    holders = Holders()
    with running() as process:
        holders.by_id[begun] = holder_of(process, sign="directory")
        async with open_hub(tmp_path / "home", place, holders) as hub:
            found = await one(hub, begun)
            assert found.pid is None  # the list does not say what is not known
            refusals = ({"how": "resume"}, {"how": "take_over"}, {"how": "take_over", "pid": process.pid + 1})
            for wanted in refusals:
                with pytest.raises(Held, match=f"process {process.pid} .*may have this session") as refused:
                    await hub.adopt_session(found, **wanted)  # type: ignore[arg-type]
                about = refused.value.details
                assert (about["pid"], about["sure"], about["choices"]) == (process.pid, False, ["watch", "fork"])
            assert process.poll() is None
            assert (await hub.sessions()).sessions == []
            session = await hub.adopt_session(found, "take_over", pid=process.pid)
            process.wait(PATIENCE)
            (adopted,) = facts(await events_of(hub, session), "session_adopted")
            assert adopted["endedPid"] == process.pid


async def test_a_fork_leaves_the_other_alone(tmp_path: Path, place: Path, begun: str) -> None:
    holders = Holders()
    path = place / f"{begun}.jsonl"
    with running() as process:
        holders.by_id[begun] = holder_of(process)
        before = path.read_bytes()
        async with open_hub(tmp_path / "home", place, holders) as hub:
            session = await hub.adopt_session(await one(hub, begun), "fork")
            assert session.agent_session_id not in (None, begun)
            assert (await session.prompt("flood 2")).error is None
            events = await events_of(hub, session)
            check(events)
            assert facts(events, "session_adopted")[0]["how"] == "fork"
            assert len(facts(events, "turn_started")) == 2
            assert process.poll() is None
            assert path.read_bytes() == before
            listed, _ = await hub.discovery.found()
            assert {entry.id: entry.hub_session_id for entry in listed}[begun] is None
            assert [record.id for record in (await hub.sessions()).sessions] == [session.id]


async def test_an_agent_that_cannot_fork_says_so_and_nothing_is_left(tmp_path: Path, place: Path) -> None:
    write_record(place, "x1", tmp_path, [says("hi", "u", user=True), says("ho", "a")])
    async with open_hub(tmp_path / "home", place, agents={"demo": odd()}) as hub:
        with pytest.raises(Unsupported, match="fork"):
            await hub.adopt_session(await one(hub, "x1"), "fork")
        assert (await hub.sessions(archived=None)).sessions == []


async def test_two_hubs_never_have_one_session_at_a_time(tmp_path: Path, place: Path, begun: str) -> None:
    async with open_hub(tmp_path / "one", place) as first, open_hub(tmp_path / "two", place) as second:
        here = await first.adopt_session(await one(first, begun))
        there = await second.adopt_session(await one(second, begun))  # nobody works in it yet
        assert (await here.prompt("flood 2")).error is None
        refused = await there.prompt("flood 2")
        assert refused.stop_reason == "error"
        assert str(tmp_path / "one") in (refused.error or "")
        await first.release(here.id)
        assert (await there.prompt("flood 2")).error is None
        with pytest.raises(Held, match="two"):
            await (await first.session(here.id)).start()


async def test_a_session_that_another_hub_works_in_is_not_adopted(tmp_path: Path, place: Path, begun: str) -> None:
    async with open_hub(tmp_path / "one", place) as first, open_hub(tmp_path / "two", place) as second:
        here = await first.adopt_session(await one(first, begun))
        await here.start()
        for how in ("resume", "take_over"):
            with pytest.raises(Held) as refused:
                await second.adopt_session(await one(second, begun), how)  # type: ignore[arg-type]
            assert refused.value.details["choices"] == ["watch", "fork"]
        assert here.agent_pid is not None


async def test_a_session_that_the_hub_began_has_a_lease_too(tmp_path: Path, place: Path) -> None:
    async with open_hub(tmp_path / "one", place) as first, open_hub(tmp_path / "two", place) as second:
        session = await first.start_session("demo", tmp_path)
        assert (await session.prompt("flood 2")).error is None
        assert session.agent_session_id is not None
        with pytest.raises(Held):
            await second.adopt_session(await one(second, session.agent_session_id))
        listed, _ = await first.discovery.found()
        assert [entry.hub_session_id for entry in listed] == [session.id]
        assert await first.adopt_session(await one(first, session.agent_session_id)) is session


async def test_a_lease_that_cannot_be_read_is_refused_by_its_name(tmp_path: Path, place: Path, begun: str) -> None:
    leases = Leases(tmp_path / "leases", tmp_path / "home")
    leases.directory.mkdir()
    path = leases.path("demo", begun)
    path.write_text("{nonsense")
    async with open_hub(tmp_path / "home", place) as hub:
        with pytest.raises(Held, match="cannot be known") as refused:
            await hub.adopt_session(await one(hub, begun))
        assert refused.value.details["file"] == str(path)
        path.unlink()
        session = await hub.adopt_session(await one(hub, begun))
        path.write_text("{nonsense")
        assert str(path) in str((await session.prompt("flood 2")).error)


async def test_without_a_directory_for_leases_nothing_is_adopted_and_no_program_is_ended(
    tmp_path: Path, place: Path, begun: str
) -> None:
    (tmp_path / "leases").write_text("in the way")
    holders = Holders()
    with running() as process:
        holders.by_id[begun] = holder_of(process)
        async with open_hub(tmp_path / "home", place, holders) as hub:
            watched = await hub.watch_session(await one(hub, begun))
            with pytest.raises(Held, match="a file is where a directory should be") as refused:
                await hub.adopt_session(await one(hub, begun), "take_over")
            assert refused.value.details["file"] == str(tmp_path / "leases")
            assert process.poll() is None
            holders.by_id.clear()
            with pytest.raises(Held, match="see that it can be written"):
                await hub.adopt_session(await one(hub, begun))
            assert watched.watched is not None
            with pytest.raises(IllegalCommand):
                await watched.send("flood 2")
            (tmp_path / "leases").unlink()
            session = await hub.adopt_session(await one(hub, begun))
            assert (await session.prompt("flood 2")).error is None


async def test_when_processes_cannot_be_looked_through_nothing_is_adopted(
    tmp_path: Path, place: Path, begun: str
) -> None:
    holders = Holders()
    async with open_hub(tmp_path / "home", place, holders) as hub:
        wanted = await one(hub, begun)
        holders.failure = OSError("no /proc")
        with pytest.raises(Held, match="no /proc"):
            await hub.adopt_session(wanted)


async def test_a_program_that_comes_after_the_adoption_is_told_and_prompts_are_refused_or_warned(
    tmp_path: Path, place: Path, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.external.writer_lock.APART", 0.2)
    holders = Holders()
    async with open_hub(tmp_path / "home", place, holders) as hub:
        session = await hub.adopt_session(await one(hub, begun))
        assert (await session.prompt("flood 2")).error is None
        await watching(hub)
        with running() as process:
            holders.by_id[begun] = holder_of(process)
            append(place / f"{begun}.jsonl", {"update": says("from a terminal", "z1")})
            warned: Any = await until(session, "interaction:notification")
            assert warned.level == "warning"
            assert str(process.pid) in warned.message
            assert (await session.prompt("flood 2")).error is None  # its own agent goes on
            assert len([event for event in await events_of(hub, session) if event.type == warned.type]) == 2
            await hub.release(session.id)
            again = await hub.session(session.id)
            assert str(process.pid) in str((await again.prompt("flood 2")).error)
        assert (await again.prompt("flood 2")).error is None


async def test_an_agent_that_does_not_know_the_session_fails_and_never_begins_anew(tmp_path: Path, place: Path) -> None:
    write_record(place, "x1", tmp_path, [says("hi", "u", user=True), says("ho", "a")])
    async with open_hub(tmp_path / "home", place) as hub:
        session = await hub.adopt_session(await one(hub, "x1"))
        assert "x1" in str((await session.prompt("flood 2")).error)
        assert not facts(await events_of(hub, session), "session_reset")
        assert session.agent_session_id == "x1"
    async with open_hub(tmp_path / "other", place, agents={"demo": odd()}) as hub:
        session = await hub.adopt_session(await one(hub, "x1"))
        with pytest.raises(AgentFailed, match="neither resume nor load"):
            await session.start()


async def test_what_cannot_be_adopted_is_refused_plainly(tmp_path: Path, place: Path, begun: str) -> None:
    async with open_hub(tmp_path / "home", place) as hub:
        wanted = await one(hub, begun)
        with pytest.raises(HubError, match="has no session"):
            await hub.discovery.find("demo", "../../etc/passwd")
        gone = msgspec.structs.replace(wanted, project_path=str(tmp_path / "gone"))
        with pytest.raises(HubError, match=r"the session's directory .*gone' is gone.* --watch") as refused:
            await hub.adopt_session(gone)
        assert refused.value.details["field"] == "sessionId"  # not one that nobody can give
        assert (await hub.watch_session(gone)).cwd == gone.project_path
        hub.agents.clear()
        with pytest.raises(UnknownAgent):
            await hub.adopt_session(wanted)
    async with Hub(home=tmp_path / "plain", agents=agent_specs(tmp_path)) as hub:
        with pytest.raises(HubError, match="does not look"):
            await hub.watch_session(wanted)
        own = await hub.start_session("demo", tmp_path)
        with pytest.raises(HubError, match="not begun elsewhere"):
            await hub.adopt_session(own.id)


async def test_a_fork_that_a_hub_died_over_is_cleared_away(tmp_path: Path, place: Path, begun: str) -> None:
    async with open_hub(tmp_path / "home", place) as hub:
        meta = {"watched": {"sessionId": begun, "fork": True}}
        await hub.log.sessions.create("ses_half", agent="demo", cwd=str(tmp_path), meta=meta)
    async with open_hub(tmp_path / "home", place) as hub:
        assert (await hub.sessions(archived=None)).sessions == []


async def test_changes_are_told_to_those_who_watch_the_list(tmp_path: Path, place: Path, begun: str) -> None:
    told = asyncio.Event()
    async with open_hub(tmp_path / "home", place) as hub:
        hub.discovery.listen(told.set)
        hub.discovery._changed(SessionDiscoveryEvent(type="session_updated", session_id=begun, agent="demo"))
        assert told.is_set()
        told.clear()
        await watching(hub)
        write_record(place, "demo-7-89abcdef", tmp_path)
        async with asyncio.timeout(PATIENCE):
            await told.wait()
