"""Every EventLog keeps the same promises. A further implementation is added to `LOGS` and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest

from pilothouse.log import (
    Approval,
    CursorAhead,
    DeleteSession,
    Device,
    Entry,
    EventLog,
    Insert,
    LogClosed,
    LogConflict,
    LogError,
    MemoryLog,
    RecordChanged,
    RecordExists,
    Rule,
    SessionRecord,
    SQLiteLog,
    UnknownRecord,
    UnknownSession,
    Update,
)
from pilothouse.model.errors import ACPError
from pilothouse.model.events import (
    DERIVED,
    Event,
    MessageCompleteEvent,
    MessageDeltaEvent,
    ToolCallErrorEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    decode_event,
)
from pilothouse.model.records import TextContent

NOW = "2026-01-01T00:00:00.000Z"
LOGS: dict[str, Callable[[Path], EventLog]] = {
    "memory": lambda _: MemoryLog(),
    "sqlite": lambda home: SQLiteLog(home / "hub.db"),
    # nothing from memory, nothing from an index: every read is one of the file
    "sqlite, bare": lambda home: SQLiteLog(home / "hub.db", full_text=False, tail_bytes=0),
}


@pytest.fixture(params=LOGS)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    async with LOGS[request.param](tmp_path) as made:
        await made.sessions.create("s", agent="demo", cwd="/work")
        watch = asyncio.get_running_loop().call_later(20, give_up)
        yield made
        watch.cancel()


def give_up() -> None:
    """A test that hangs fails instead."""
    for task in asyncio.all_tasks():
        task.cancel()


def delta(text: str, session_id: str = "s", source: bytes | None = None) -> Event:
    event = MessageDeltaEvent(seq=0, session_id=session_id, timestamp=NOW, message_id="m", role="assistant", delta=text)
    event.source = source
    return event


def deltas(count: int, session_id: str = "s") -> list[Event]:
    return [delta(f"piece {index}", session_id) for index in range(count)]


def message(text: str, session_id: str = "s", role: str = "assistant") -> Event:
    return MessageCompleteEvent(
        seq=0, session_id=session_id, timestamp=NOW, message_id="m", role=role, content=[TextContent(text=text)]
    )


def approval(number: int = 1, session_id: str = "s") -> Approval:
    return Approval(
        id=f"a{number}",
        session_id=session_id,
        request={"toolCallId": "t1", "kind": "execute"},
        options=[{"optionId": "yes", "kind": "allow_once"}],
        created=NOW,
        expires="2026-01-01T01:00:00.000Z",
    )


def seqs(entries: list[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


async def collect(log: EventLog, count: int, after: int = 0, session_id: str = "s") -> list[Entry]:
    found: list[Entry] = []
    async for batch in log.follow(session_id, after):
        found += batch
        if len(found) >= count:
            break
    return found


# -- appending and reading ----------------------------------------------------------------------------------------


async def test_append_numbers_events_from_the_expected_seq_and_encodes_them_with_it(log: EventLog) -> None:
    events = deltas(3)
    assert await log.append("s", 0, events) == 3
    assert [event.seq for event in events] == [1, 2, 3]
    assert await log.append("s", 3, deltas(2)) == 5
    entries = await log.read("s")
    assert seqs(entries) == [1, 2, 3, 4, 5]
    assert [decode_event(entry.data) for entry in entries[:3]] == events
    assert [entry.type for entry in entries] == ["message:delta"] * 5
    assert [entry.session_id for entry in entries] == ["s"] * 5


async def test_a_source_keeps_its_three_values(log: EventLog) -> None:
    sources = [b'{"a":\n 1}', None, DERIVED, b"[]", None]
    await log.append("s", 0, [delta("x", source=source) for source in sources])
    await log.append("s", 5, [delta("x", source=DERIVED)])
    await log.append("s", 6, [delta("x")])
    assert [entry.source for entry in await log.read("s")] == [*sources, DERIVED, None]


async def test_reading_goes_on_from_a_cursor_up_to_a_limit(log: EventLog) -> None:
    await log.append("s", 0, deltas(10))
    assert seqs(await log.read("s", 4, 3)) == [5, 6, 7]
    assert seqs(await log.read("s", 9, 3)) == [10]
    assert await log.read("s", 10) == []
    assert await log.read("s", 1000) == []
    assert await log.read("s", 0, 0) == []


async def test_reading_stops_at_the_byte_limit_but_never_before_the_first(log: EventLog) -> None:
    await log.append("s", 0, [delta("x" * 1000) for _ in range(10)])
    assert seqs(await log.read("s", 2, 100, max_bytes=1)) == [3]
    assert seqs(await log.read("s", 0, 100, max_bytes=2500)) == [1, 2, 3]
    assert [entry.seq for entry in await log.read_all(0, 100, max_bytes=2500)] == [1, 2, 3]


async def test_positions_grow_over_all_sessions_and_are_a_cursor(log: EventLog) -> None:
    await log.sessions.create("other", agent="demo", cwd="/")
    for start in range(3):
        await log.append("s", start * 2, deltas(2))
        await log.append("other", start, deltas(1, "other"))
    entries = await log.read_all()
    positions = [entry.position for entry in entries]
    assert positions == sorted(set(positions))
    assert Counter(entry.session_id for entry in entries) == {"s": 6, "other": 3}
    assert await log.last_position() == positions[-1]
    assert await log.read_all(positions[3]) == entries[4:]
    assert await log.read_all(positions[3], 2) == entries[4:6]


async def test_a_wrong_expected_seq_is_a_conflict_and_writes_nothing(log: EventLog) -> None:
    await log.append("s", 0, deltas(2))
    for expected in (0, 1, 3):
        with pytest.raises(LogConflict) as caught:
            await log.append("s", expected, deltas(5))
        assert (caught.value.session_id, caught.value.expected, caught.value.actual) == ("s", expected, 2)
    assert seqs(await log.read("s")) == [1, 2]
    assert await log.last_seq("s") == 2
    assert await log.append("s", 2, deltas(1)) == 3


async def test_of_racing_appenders_with_one_expected_seq_one_wins(log: EventLog) -> None:
    results = await asyncio.gather(*(log.append("s", 0, deltas(2)) for _ in range(20)), return_exceptions=True)
    assert results.count(2) == 1
    assert sum(isinstance(result, LogConflict) for result in results) == 19
    assert await log.last_seq("s") == 2


async def test_batches_can_be_handed_over_without_waiting(log: EventLog) -> None:
    futures = [log.append_nowait("s", start * 3, deltas(3)) for start in range(50)]
    assert await asyncio.gather(*futures) == [3 * (index + 1) for index in range(50)]
    assert seqs(await log.read("s")) == list(range(1, 151))


async def test_when_a_batch_under_way_fails_those_behind_it_fail_too(log: EventLog) -> None:
    await log.sessions.create("other", agent="demo", cwd="/")
    good = log.append_nowait("s", 0, deltas(1))
    bad = log.append_nowait("s", 1, deltas(1), also=[Insert(approval()), Insert(approval())])
    behind = [log.append_nowait("s", 2, deltas(1)), log.append_nowait("s", 3, deltas(1))]
    neighbour = log.append_nowait("other", 0, deltas(1, "other"))
    results = await asyncio.gather(good, bad, *behind, neighbour, return_exceptions=True)
    assert [type(result) for result in results] == [int, RecordExists, LogConflict, LogConflict, int]
    assert await log.last_seq("s") == 1
    assert await log.approvals.pending() == []


async def test_an_empty_batch_is_a_check_of_the_expected_seq(log: EventLog) -> None:
    assert await log.append("s", 0, []) == 0
    with pytest.raises(LogConflict):
        await log.append("s", 1, [])
    assert await log.read("s") == []


async def test_an_unknown_session_is_named(log: EventLog) -> None:
    for call in (
        log.append("nobody", 0, deltas(1, "nobody")),
        log.read("nobody"),
        log.last_seq("nobody"),
        log.wait_beyond("nobody", 0),
        anext(log.follow("nobody")),
        log.sessions.get("nobody"),
        log.sessions.update("nobody", title="x"),
        log.sessions.delete("nobody"),
        log.turns.claim("nobody", "r", "t"),
        log.approvals.add(approval(session_id="nobody")),
    ):
        with pytest.raises(UnknownSession, match="nobody"):
            await call


async def test_an_event_of_another_session_or_that_is_no_json_is_refused_before_anything_happens(log: EventLog) -> None:
    with pytest.raises(LogError, match="other"):
        await log.append("s", 0, [delta("fine"), delta("x", "other")])
    with pytest.raises(LogError, match="message:delta"):
        await log.append("s", 0, [delta("fine"), delta("\ud800")])
    with pytest.raises(ValueError, match="-1"):
        await log.append("s", -1, deltas(1))
    assert await log.append("s", 0, deltas(1)) == 1


async def test_large_events_come_back_as_they_were(log: EventLog) -> None:
    big = "x" * 700_000
    source = b'"' + b"y" * 900_000 + b'"'
    events = [delta("before"), delta(big, source=source), delta("small", source=source), delta(big), delta("after")]
    await log.append("s", 0, events)
    entries = await log.read("s", max_bytes=1 << 30)
    assert seqs(entries) == [1, 2, 3, 4, 5]
    assert all(decode_event(entry.data) == event for entry, event in zip(entries, events, strict=True))
    assert [entry.source and len(entry.source) for entry in entries] == [None, 900_002, 900_002, None, None]
    assert entries[1].source == source
    assert [len(batch) for batch in [await log.read("s", 1, max_bytes=100)]] == [1]


async def test_a_large_event_makes_nobody_else_wait_and_keeps_its_own_place(log: EventLog) -> None:
    await log.sessions.create("t", agent="demo", cwd="/work")
    everything = log.follow_all()
    huge = delta("x" * 5_000_000, source=b'"%s"' % (b"y" * 5_000_000))
    first = log.append_nowait("s", 0, [delta("before")])
    large = log.append_nowait("s", 1, [huge, delta("with it")])
    behind = log.append_nowait("s", 3, deltas(2))
    others = [log.append_nowait("t", index, deltas(1, "t")) for index in range(20)]
    renamed = asyncio.ensure_future(log.sessions.update("s", title="after all that"))
    assert await asyncio.gather(*others) == list(range(1, 21))
    assert [await first, await large, await behind] == [1, 3, 5]
    assert (await renamed).title == "after all that"
    entries = await log.read("s", max_bytes=1 << 30)
    assert seqs(entries) == [1, 2, 3, 4, 5]
    assert decode_event(entries[1].data) == huge
    assert entries[1].source == huge.source
    stored = await log.read_all(max_bytes=1 << 30)
    followed: list[Entry] = []
    while len(followed) < 25:
        followed += await anext(everything)
    assert followed == stored
    assert [entry.position for entry in stored] == sorted({entry.position for entry in stored})


async def test_a_large_event_that_is_refused_leaves_room_for_another(log: EventLog) -> None:
    huge, other = delta("x" * 2_000_000), delta("y" * 1_200_000)
    with pytest.raises(LogConflict):
        await log.append("s", 3, [huge])
    again = SessionRecord(id="s", agent="a", cwd="/", created=NOW, updated=NOW)
    with pytest.raises(RecordExists):
        await log.append("s", 0, [huge], also=[Insert(again)])
    assert await log.append("s", 0, [other]) == 1
    (entry,) = await log.read("s")
    assert decode_event(entry.data) == other


async def test_a_session_deleted_under_a_large_event_takes_it_along(log: EventLog) -> None:
    huge = log.append_nowait("s", 0, [delta("x" * 3_000_000)])
    deleting = asyncio.ensure_future(log.sessions.delete("s"))
    late = log.append_nowait("s", 1, [delta("x" * 3_000_000)])
    assert await huge == 1
    await deleting
    with contextlib.suppress(UnknownSession):  # before or after: both are right
        assert await late == 2
    with pytest.raises(UnknownSession):
        await log.read("s")
    assert await log.integrity_check() == []


async def test_a_batch_of_many_events_comes_back_in_order(log: EventLog) -> None:
    await log.append("s", 0, deltas(3000))
    assert seqs(await log.read("s", 0, 10_000, max_bytes=1 << 30)) == list(range(1, 3001))
    assert seqs(await log.read("s", 700, 5)) == [701, 702, 703, 704, 705]


# -- following ----------------------------------------------------------------------------------------------------


async def test_follow_gives_history_then_live(log: EventLog) -> None:
    await log.append("s", 0, deltas(3))
    follower = log.follow("s")
    assert not follower.caught_up
    assert seqs(await anext(follower)) == [1, 2, 3]
    assert follower.caught_up
    waiting = asyncio.create_task(anext(follower))
    await asyncio.sleep(0)
    await log.append("s", 3, deltas(2))
    assert seqs(await waiting) == [4, 5]
    assert follower.cursor == 5


async def test_sixty_followers_each_see_each_event_once_and_in_order(log: EventLog) -> None:
    total, chooser = 3000, random.Random(7)

    async def produce() -> None:
        last = 0
        while last < total:
            last = await log.append("s", last, deltas(min(chooser.randint(1, 40), total - last)))

    async def follow(number: int) -> list[int]:
        start = chooser.randint(0, total - 1)
        await log.wait_beyond("s", start)
        resumes = number % 2 == 0
        after = start if resumes else 0
        seen: list[int] = []
        follower = log.follow("s", after)
        while after + len(seen) < total:
            batch = await follower.next(count=chooser.choice([1, 7, 512]) if number % 3 == 0 else 512)
            seen += seqs(batch)
            if number % 3 == 0:
                for _ in range(5):
                    await asyncio.sleep(0)
            if resumes and len(seen) % 5 == 0:
                follower = log.follow("s", follower.cursor)
        assert seen == list(range(after + 1, total + 1))
        return seen

    async with asyncio.TaskGroup() as tasks:
        followers = [tasks.create_task(follow(number)) for number in range(60)]
        tasks.create_task(produce())
    assert len([follower.result() for follower in followers]) == 60


async def test_followers_of_all_sessions_see_every_event_once_in_order_of_position(log: EventLog) -> None:
    names = [f"n{index}" for index in range(5)]
    for name in names:
        await log.sessions.create(name, agent="demo", cwd="/")

    async def produce(name: str) -> None:
        for start in range(40):
            await log.append(name, start * 2, deltas(2, name))

    async def follow(after: int) -> list[Entry]:
        seen: list[Entry] = []
        async for batch in log.follow_all(after):
            seen += batch
            if len(seen) == 400:
                break
        return seen

    async with asyncio.TaskGroup() as tasks:
        followers = [tasks.create_task(follow(0)) for _ in range(10)]
        for name in names:
            tasks.create_task(produce(name))
    seen = followers[0].result()
    assert all(follower.result() == seen for follower in followers)
    positions = [entry.position for entry in seen]
    assert positions == sorted(set(positions))
    for name in names:
        assert [entry.seq for entry in seen if entry.session_id == name] == list(range(1, 81))
    assert await anext(log.follow_all(positions[-2])) == seen[-1:]


async def test_a_batch_of_a_follower_is_bounded_by_count_and_bytes(log: EventLog) -> None:
    await log.append("s", 0, deltas(2000))
    await log.append("s", 2000, [delta("x" * 400_000) for _ in range(8)])
    sizes = []
    follower = log.follow("s")
    while follower.cursor < 2008:
        batch = await anext(follower)
        sizes.append((len(batch), sum(entry.size for entry in batch)))
    assert max(count for count, _ in sizes) <= 1024
    assert max(size for _, size in sizes) < (1 << 20) + 500_000


async def test_a_step_with_a_timeout_gives_nothing_when_nothing_comes(log: EventLog) -> None:
    follower = log.follow("s")
    assert await follower.next(0.01) == []
    assert await follower.next(0) == []
    await log.append("s", 0, deltas(1))
    assert seqs(await follower.next(0)) == [1]


async def test_a_cancelled_step_loses_nothing(log: EventLog) -> None:
    follower = log.follow("s")
    seen: list[int] = []
    for last in range(20):
        waiting = asyncio.create_task(anext(follower))
        for _ in range(last % 4):
            await asyncio.sleep(0)
        waiting.cancel()
        [result] = await asyncio.gather(waiting, return_exceptions=True)
        if isinstance(result, list):
            seen += seqs(result)
        await log.append("s", last, deltas(1))
    while len(seen) < 20:
        seen += seqs(await anext(follower))
    assert seen == list(range(1, 21))


async def test_a_cursor_beyond_the_end_is_refused(log: EventLog) -> None:
    await log.append("s", 0, deltas(3))
    with pytest.raises(CursorAhead) as caught:
        await anext(log.follow("s", 4))
    assert (caught.value.cursor, caught.value.last) == (4, 3)
    with pytest.raises(CursorAhead):
        await anext(log.follow_all(1_000_000))
    with pytest.raises(ValueError, match="-1"):
        log.follow("s", -1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(log.follow("s", 3)), 0.01)


async def test_wait_beyond_returns_when_there_is_more(log: EventLog) -> None:
    waiting = asyncio.create_task(log.wait_beyond("s", 2))
    await log.append("s", 0, deltas(2))
    await asyncio.sleep(0)
    assert not waiting.done()
    await log.append("s", 2, deltas(2))
    assert await waiting == 4
    assert await log.wait_beyond("s", 0) == 4


# -- closing ------------------------------------------------------------------------------------------------------


async def test_closing_ends_whoever_waits_and_whoever_comes_later(log: EventLog) -> None:
    waiting = [
        asyncio.create_task(call) for call in (anext(log.follow("s")), anext(log.follow_all()), log.wait_beyond("s", 0))
    ]
    idle = log.follow("s")
    assert await idle.next(0) == []
    await log.close()
    await log.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [LogClosed] * 3
    for late in (
        anext(idle),
        anext(log.follow("s")),
        anext(log.follow_all()),
        log.append("s", 0, deltas(1)),
        log.read("s"),
        log.read_all(),
        log.last_seq("s"),
        log.last_position(),
        log.wait_beyond("s", 0),
        log.apply(DeleteSession("s", NOW)),
        log.sessions.get("s"),
        log.sessions.list(),
        log.search("x"),
        log.integrity_check(),
    ):
        with pytest.raises(LogClosed):
            await late


async def test_what_was_handed_over_before_closing_is_committed(log: EventLog) -> None:
    futures = [log.append_nowait("s", index, deltas(1)) for index in range(30)]
    await log.close()
    assert await asyncio.gather(*futures) == list(range(1, 31))


async def test_closing_while_followers_come_and_go_leaves_nobody_waiting(log: EventLog) -> None:
    async def follow(rounds: int) -> int:
        count = 0
        for _ in range(rounds):
            await asyncio.sleep(0)
        try:
            async for batch in log.follow("s"):
                count += len(batch)
        except LogClosed:
            return count
        raise AssertionError("a follower ends by an exception only")

    followers = [asyncio.create_task(follow(number)) for number in range(40)]
    futures = [log.append_nowait("s", index, deltas(1)) for index in range(10)]
    for _ in range(20):
        await asyncio.sleep(0)
    await log.close()
    await asyncio.gather(*futures)
    counts = await asyncio.gather(*followers)
    assert all(0 <= count <= 10 for count in counts)


# -- sessions -----------------------------------------------------------------------------------------------------


async def test_a_session_keeps_its_metadata(log: EventLog) -> None:
    made = await log.sessions.create(
        "full",
        agent="claude",
        cwd="/home/x",
        title="A title",
        status="running",
        agent_session_id="acp-1",
        policy={"autoApprove": {"reads": True}},
        meta={"tags": ["a", 1, None]},
    )
    assert await log.sessions.get("full") == made
    assert made.created == made.updated
    assert made.last_seq == 0
    with pytest.raises(RecordExists, match="full"):
        await log.sessions.create("full", agent="x", cwd="/")


async def test_updating_a_session_changes_what_is_given_and_nothing_else(log: EventLog) -> None:
    before = await log.sessions.get("s")
    after = await log.sessions.update("s", title="null", status="running", archived=True)
    assert (after.title, after.status, after.agent, after.cwd) == ("null", "running", before.agent, before.cwd)
    assert after.archived is not None
    assert await log.sessions.get("s") == after
    again = await log.sessions.update("s", archived=False, title=None)
    assert (again.archived, again.title) == (None, None)


async def test_appending_moves_last_seq_and_the_time_of_the_session(log: EventLog) -> None:
    before = await log.sessions.get("s")
    await asyncio.sleep(0.002)
    await log.append("s", 0, deltas(4))
    after = await log.sessions.get("s")
    assert after.last_seq == 4
    assert after.updated > before.updated


async def test_sessions_are_listed_newest_first_in_pages(log: EventLog) -> None:
    names = [f"p{index}" for index in range(7)]
    for name in names:
        await log.sessions.create(name, agent="demo", cwd="/p")
    seen: list[str] = []
    before = None
    while True:
        page = await log.sessions.list(cwd="/p", limit=3, before=before)
        seen += [session.id for session in page.sessions]
        if page.next is None:
            break
        before = page.next
    assert sorted(seen) == names
    updated = [(await log.sessions.get(name)).updated for name in seen]
    assert updated == sorted(updated, reverse=True)
    with pytest.raises(ValueError, match="nonsense"):
        await log.sessions.list(before="nonsense")


async def test_sessions_are_filtered(log: EventLog) -> None:
    await log.sessions.create("a", agent="claude", cwd="/x", title="Fix the 100% bug")
    await log.sessions.create("b", agent="codex", cwd="/x", status="running")
    await log.sessions.create("c", agent="claude", cwd="/y")
    await log.sessions.update("c", archived=True)

    async def ids(**wanted: object) -> set[str]:
        return {session.id for session in (await log.sessions.list(**wanted)).sessions}

    assert await ids() == {"s", "a", "b"}
    assert await ids(agent="claude") == {"a"}
    assert await ids(agent="claude", archived=None) == {"a", "c"}
    assert await ids(archived=True) == {"c"}
    assert await ids(cwd="/x", status="running") == {"b"}
    assert await ids(text="100%") == {"a"}
    assert await ids(text="FIX THE") == {"a"}
    assert await ids(text="10_%") == set()
    assert await ids(limit=0) == set()


async def test_a_deleted_session_is_gone_with_all_that_was_its_own_but_its_id_stays_taken(log: EventLog) -> None:
    await log.sessions.create("gone", agent="demo", cwd="/")
    await log.append("gone", 0, [message("pomegranate", "gone"), delta("x" * 600_000, "gone")], also=[])
    await log.approvals.add(approval(9, "gone"))
    await log.turns.claim("gone", "r", "t")
    position = await log.last_position()
    follower = log.follow("gone", 2)
    waiting = asyncio.create_task(anext(follower))
    everything = log.follow_all(position)
    assert await everything.next(0) == []
    await log.sessions.delete("gone")
    with pytest.raises(UnknownSession):
        await waiting
    for call in (log.read("gone"), log.append("gone", 2, deltas(1, "gone")), log.sessions.get("gone")):
        with pytest.raises(UnknownSession):
            await call
    assert await log.read_all() == []
    assert await log.search("pomegranate") == []
    assert await log.approvals.pending() == []
    assert [session.id for session in (await log.sessions.list()).sessions] == ["s"]
    with pytest.raises(RecordExists):
        await log.sessions.create("gone", agent="demo", cwd="/")
    assert await log.last_position() >= position
    await log.append("s", 0, deltas(1))
    assert [entry.session_id for entry in await anext(everything)] == ["s"]
    assert await log.integrity_check() == []


async def test_a_session_and_its_first_events_can_be_made_together(log: EventLog) -> None:
    record = SessionRecord(id="new", agent="demo", cwd="/", created=NOW, updated=NOW)
    assert await log.append("new", 0, deltas(2, "new"), also=[Insert(record)]) == 2
    with pytest.raises(RecordExists):
        await log.append("new", 2, deltas(2, "new"), also=[Insert(record)])
    assert (await log.sessions.get("new")).last_seq == 2


# -- approvals ----------------------------------------------------------------------------------------------------


async def test_of_a_hundred_deciders_one_wins_and_all_are_told(log: EventLog) -> None:
    await log.approvals.add(approval())
    outcomes = await asyncio.gather(
        *(log.approvals.resolve("a1", {"optionId": f"o{number}"}, decided_by=f"d{number}") for number in range(100))
    )
    winners = [number for number, outcome in enumerate(outcomes) if outcome.changed]
    assert len(winners) == 1
    assert {msgspec.json.encode(outcome.record) for outcome in outcomes} == {msgspec.json.encode(outcomes[0].record)}
    stored = await log.approvals.get("a1")
    assert stored.decided_by == f"d{winners[0]}"
    assert stored.decision == {"optionId": f"o{winners[0]}"}
    assert stored.state == "resolved"


async def test_an_approval_and_the_event_that_tells_of_it_are_committed_together(log: EventLog) -> None:
    await log.append("s", 0, deltas(1), also=[Insert(approval()), log.sessions.updating("s", status="waiting")])
    assert await log.approvals.pending() == [approval()]
    assert (await log.sessions.get("s")).status == "waiting"
    with pytest.raises(LogConflict):
        await log.append("s", 0, deltas(1), also=[Insert(approval(2))])
    assert await log.approvals.pending("s") == [approval()]


async def test_a_decision_that_comes_too_late_writes_neither_itself_nor_its_event(log: EventLog) -> None:
    await log.approvals.add(approval())
    first = log.approvals.resolving("a1", {"optionId": "yes"}, decided_by="phone")
    second = log.approvals.resolving("a1", {"optionId": "no"}, decided_by="browser")
    assert await log.append("s", 0, deltas(1), also=[first]) == 1
    with pytest.raises(RecordChanged) as caught:
        await log.append("s", 1, deltas(1), also=[Insert(approval(2)), second])
    assert caught.value.record.decided_by == "phone"
    assert await log.last_seq("s") == 1
    assert await log.approvals.pending() == []
    assert await log.append("s", 1, deltas(1)) == 2


async def test_pending_approvals_are_listed_oldest_first_for_all_or_one_session(log: EventLog) -> None:
    await log.sessions.create("other", agent="demo", cwd="/")
    for number in (3, 1, 2):
        await log.approvals.add(approval(number, "other" if number == 1 else "s"))
    await log.approvals.resolve("a2", {}, decided_by="x")
    assert [item.id for item in await log.approvals.pending()] == ["a3", "a1"]
    assert [item.id for item in await log.approvals.pending("s")] == ["a3"]
    assert [item.id for item in await log.approvals.list("s")] == ["a3", "a2"]
    for call in (log.approvals.get("a9"), log.approvals.resolve("a9", {}, decided_by="x")):
        with pytest.raises(UnknownRecord, match="a9"):
            await call


# -- rules, devices, turns, settings ------------------------------------------------------------------------------


async def test_rules_count_their_hits_and_stop_when_revoked_or_expired(log: EventLog) -> None:
    def rule(name: str, expires: str | None = None) -> Rule:
        return Rule(
            id=name,
            scope="project",
            scope_key="/p",
            rule={"tool": "Bash"},
            effect="allow",
            created=NOW,
            expires=expires,
        )

    for name, expires in (("r1", None), ("r2", "2000-01-01T00:00:00.000Z"), ("r3", "2999-01-01T00:00:00.000Z")):
        await log.rules.add(rule(name, expires))
    assert [item.id for item in await log.rules.active()] == ["r1", "r3"]
    await asyncio.gather(*(log.rules.hit("r1") for _ in range(25)))
    await log.append("s", 0, deltas(1), also=[log.rules.hitting("r1")])
    await log.rules.revoke("r3")
    [active] = await log.rules.active()
    assert (active.id, active.hits) == ("r1", 26)
    assert active.last_hit is not None
    assert len(await log.rules.list(scope="project", scope_key="/p")) == 3
    assert await log.rules.list(scope="session") == []
    with pytest.raises(UnknownRecord):
        await log.rules.hit("r9")


async def test_devices_are_found_by_credential_until_revoked(log: EventLog) -> None:
    device = Device(id="d1", name="phone", credential="hash", scopes=["read", "prompt"], created=NOW)
    await log.devices.add(device)
    assert await log.devices.by_credential("hash") == device
    assert (await log.devices.seen("d1")).last_seen is not None
    revoked = await log.devices.revoke("d1")
    assert revoked.revoked is not None
    assert (await log.devices.revoke("d1")).revoked == revoked.revoked
    assert await log.devices.by_credential("hash") is None
    assert [item.id for item in await log.devices.list()] == ["d1"]
    with pytest.raises(UnknownRecord):
        await log.devices.get("d2")


async def test_a_request_sent_again_finds_its_turn(log: EventLog) -> None:
    await log.sessions.create("other", agent="demo", cwd="/")
    turns = await asyncio.gather(*(log.turns.claim("s", "r1", f"t{number}") for number in range(30)))
    assert len(set(turns)) == 1
    assert await log.turns.get("s", "r1") == turns[0]
    assert await log.turns.claim("other", "r1", "mine") == "mine"
    assert await log.turns.get("s", "r2") is None
    with pytest.raises(RecordExists):
        await log.append("s", 0, deltas(1), also=[log.turns.claiming("s", "r1", "t")])
    assert await log.last_seq("s") == 0


async def test_settings_hold_any_json_value(log: EventLog) -> None:
    values = {"text": "a", "none": None, "deep": {"list": [1, 2.5, True, None]}, "no": False}
    for name, value in values.items():
        await log.settings.set(name, "before")
        await log.settings.set(name, value)
    assert await log.settings.all() == values
    assert await log.settings.get("deep") == values["deep"]
    assert await log.settings.get("missing", 7) == 7
    assert await log.settings.remove("deep") is True
    assert await log.settings.remove("deep") is False


# -- search -------------------------------------------------------------------------------------------------------


async def test_search_finds_messages_and_tool_text_newest_first(log: EventLog) -> None:
    await log.sessions.create("other", agent="demo", cwd="/")
    await log.append("other", 0, [message("please find the Walrus", "other", role="user")])
    start = ToolCallStartEvent(
        seq=0,
        session_id="s",
        timestamp=NOW,
        tool_call_id="t",
        name="Bash",
        category="execute",
        description="walrus hunt",
    )
    result = ToolCallResultEvent(
        seq=0, session_id="s", timestamp=NOW, tool_call_id="t", name="Bash", output="one walrus, two", duration=1
    )
    failure = ToolCallErrorEvent(
        seq=0,
        session_id="s",
        timestamp=NOW,
        tool_call_id="t",
        name="Bash",
        error=ACPError(code="x", message="no walrus left", recoverable=True),
    )
    await log.append("s", 0, [delta("walrus"), start, result, failure, message("A WALRUS came.")])
    hits = await log.search("walrus")
    assert [(hit.session_id, hit.seq) for hit in hits] == [("s", 5), ("s", 4), ("s", 3), ("s", 2), ("other", 1)]
    assert [hit.type for hit in hits][:2] == ["message:complete", "tool:error"]
    assert all("walrus" in hit.snippet.lower() for hit in hits)
    assert [hit.seq for hit in await log.search("walrus", 2)] == [5, 4]
    assert [hit.session_id for hit in await log.search("walrus", session_id="other")] == ["other"]
    assert [hit.seq for hit in await log.search("two walr")] == [3]
    assert await log.search("walrus penguin") == []


async def test_search_in_a_script_without_spaces_between_words(log: EventLog) -> None:
    await log.append("s", 0, [message("设计数据库的索引"), message("nothing")])
    assert [hit.seq for hit in await log.search("数据库")] == [1]


@pytest.mark.parametrize(
    "query",
    ['"', "'", "a AND", "OR", "NOT", "NEAR(", "(", "*", "^a", "col:x", "-", "--", "\0", "\x00a", '"a" "', "a*b", "{a}",
     "%", "_", "\\", "", "   ", "é", "😀", "+", "a" * 5000, " ".join("w" * n for n in range(1, 200))],
)  # fmt: skip
async def test_no_query_is_a_syntax_error(log: EventLog, query: str) -> None:
    await log.append("s", 0, [message("a plain text")])
    assert len(await log.search(query)) <= 1


async def test_a_record_too_strange_to_store_harms_nobody_else(log: EventLog) -> None:
    """What one log can keep another may refuse; either way what is committed with it goes on."""
    outcomes = await asyncio.gather(
        log.append("s", 0, deltas(1)),
        log.sessions.update("s", title="\ud800"),
        log.settings.set("huge", 2**70),
        log.append("s", 1, deltas(1)),
        return_exceptions=True,
    )
    assert outcomes[0] == 1
    assert outcomes[3] == 2
    assert not [item for item in outcomes[1:3] if isinstance(item, BaseException) and not isinstance(item, ValueError)]
    assert await log.last_seq("s") == 2


async def test_half_a_character_finds_nothing(log: EventLog) -> None:
    assert await log.search("\ud800 a") == []
    assert await log.turns.get("s", "\ud800") is None
    assert await log.devices.by_credential("\ud800") is None
    with pytest.raises(UnknownSession):
        await log.read("\ud800")


async def test_a_field_that_is_not_there_is_the_callers_mistake(log: EventLog) -> None:
    with pytest.raises(ValueError, match="colour"):
        await log.find(Approval, {"colour": "red"})
    with pytest.raises((ValueError, TypeError)):
        await log.apply(Update(SessionRecord, ("s",), {"title": "x"}), Update(SessionRecord, ("s",), {"colour": "red"}))
    assert (await log.sessions.get("s")).title is None


async def test_statistics_count_what_happened(log: EventLog) -> None:
    follower = log.follow("s")
    await log.append("s", 0, deltas(5))
    counts = log.statistics()
    assert counts["events"] == 5
    assert counts["commits"] >= 1
    assert counts["followers"] == 1
    assert counts["queued"] == 0
    del follower
