"""An adopted session that somebody goes on with elsewhere: told once and in order, and known to the hub's agent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.discovery.store import Step
from pilothouse.hub.hub import Hub
from pilothouse.hub.mirror.external_turns import Elsewhere
from pilothouse.hub.mirror.importer import Watched
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import Event
from tests.interaction.test_hub_adopting import begun, events_of, one, open_hub, running, watching
from tests.support.hubs import PATIENCE, check, facts, said, until
from tests.support.records import DemoReader, Holders, append, holder_of, says
from tests.support.watching import prompts

__all__ = ["begun"]

ROOT = Path(__file__).parents[2]


def elsewhere(path: Path, prompt: str, answer: str, name: str) -> None:
    """Somebody prompts the session in a terminal, and is answered."""
    append(
        path,
        {"update": says(prompt, f"user-{name}", user=True)},
        {"update": says(answer, f"agent-{name}")},
    )


def foreign(events: list[Event]) -> int:
    """How many turns are marked as done elsewhere."""
    return sum(bool(data.get("elsewhere")) for data in facts(events, "turn_started"))


def notices(events: list[Event]) -> list[str]:
    told: Any = [event for event in events if event.type == "interaction:notification"]
    return [event.message for event in told]


async def read_by(session: HubSession, open_reader: Any) -> None:
    """Let the record be read anew, and so."""
    elsewhere: Any = session.elsewhere
    async with elsewhere._lock:
        await elsewhere._let_go()
        elsewhere.open_reader = open_reader


async def told(hub: Hub, session: HubSession) -> str:
    """All that was said once the record was read on, by whoever was first: a change of the record has it read too."""
    await session.read_on()
    return said(await events_of(hub, session))


async def adopted(hub: Hub, begun: str) -> HubSession:
    return await hub.adopt_session(await one(hub, begun))


async def test_what_was_done_elsewhere_is_told_before_the_next_prompt_and_its_agent_knows_it(
    tmp_path: Path, place: Path, begun: str
) -> None:
    path = place / f"{begun}.jsonl"
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        assert (await session.prompt("flood 2")).error is None
        first = session.agent_pid
        elsewhere(path, "In the terminal", "Second words.", "x")
        elsewhere(path, "And again", "More words.", "y")
        assert (await session.prompt("flood 3")).error is None
        events = await events_of(hub, session)
        check(events)
        assert prompts(events) == ["flood 5", "flood 2", "In the terminal", "And again", "flood 3"]
        assert said(events).count("Second words.More words.") == 1
        assert foreign(events) == 2
        assert notices(events) == ["What follows was done in this session by another program."]
        assert session.agent_pid not in (None, first)  # the one before could not know of it
        assert len(facts(events, "agent_renewed")) == 1
        assert session.agent_session_id == begun
        again = session.agent_pid
        assert (await session.prompt("flood 2")).error is None
        assert session.agent_pid == again
        assert foreign(await events_of(hub, session)) == 2


async def test_the_hubs_own_turns_are_never_told_again(tmp_path: Path, place: Path, begun: str) -> None:
    for words in ("flood 2", "flood 3"):
        async with open_hub(tmp_path / "home", place) as hub:
            session = await adopted(hub, begun)
            await watching(hub)
            for _ in range(3):
                assert (await session.prompt(words)).error is None
                await session.read_on()
            events = await events_of(hub, session)
            check(events)
            assert foreign(events) == 0
            assert notices(events) == facts(events, "agent_renewed") == []
    assert prompts(events) == ["flood 5", *["flood 2"] * 3, *["flood 3"] * 3]


async def test_the_same_words_elsewhere_are_a_turn_elsewhere(tmp_path: Path, place: Path, begun: str) -> None:
    path = place / f"{begun}.jsonl"
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        assert (await session.prompt("flood 2")).error is None
        await session.read_on()
        elsewhere(path, "flood 2", "Not from here.", "x")
        assert (await session.prompt("flood 2")).error is None
        await session.read_on()
        events = await events_of(hub, session)
        assert foreign(events) == 1
        assert said(events).count("Not from here.") == 1
        assert prompts(events) == ["flood 5", "flood 2", "flood 2", "flood 2"]


@pytest.mark.parametrize("way", ["adoption", "restart", "change"])
async def test_it_is_told_without_a_prompt_too(tmp_path: Path, place: Path, begun: str, way: str) -> None:
    path = place / f"{begun}.jsonl"
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        assert (await session.prompt("flood 2")).error is None
        if way == "change":
            await watching(hub)
        if way != "restart":
            elsewhere(path, "In the terminal", "Second words.", "x")
        if way == "adoption":
            assert await adopted(hub, begun) is session
            assert "Second words." in said(await events_of(hub, session))
        if way == "change":
            await until(session, lambda event: "Second words." in str(getattr(event, "delta", "")))
    if way == "restart":
        elsewhere(path, "In the terminal", "Second words.", "x")
    for _ in range(2):
        async with open_hub(tmp_path / "home", place) as hub:
            again = await hub.session(session.id)
            await until(again, lambda event: "Second words." in str(getattr(event, "delta", "")))
            await again.read_on()
            events = await events_of(hub, again)
            check(events)
            assert foreign(events) == 1
            assert len(notices(events)) == 1


async def test_a_second_writer_is_told_at_once_and_an_agent_that_does_not_know_its_words_is_not_prompted(
    tmp_path: Path, place: Path, begun: str
) -> None:
    holders = Holders()
    path = place / f"{begun}.jsonl"
    async with open_hub(tmp_path / "home", place, holders) as hub:
        session = await adopted(hub, begun)
        await watching(hub)
        assert (await session.prompt("flood 2")).error is None
        hub.discovery._writers._checking[session.id] = False  # it was looked at a moment ago
        with running() as process:
            holders.by_id[begun] = holder_of(process)
            append(path, {"update": says("In the terminal", "user-x", user=True)})
            warned: Any = await until(session, "interaction:notification")
            assert str(process.pid) in warned.message
            assert "In the terminal" not in prompts(await events_of(hub, session))  # its turn is not over there
            assert str(process.pid) in str((await session.prompt("flood 3")).error)
            assert prompts(await events_of(hub, session))[-2:] == ["In the terminal", "flood 3"]
            assert session.agent_pid is None
            append(path, {"update": says("Second words.", "agent-x")})
        assert (await session.prompt("flood 4")).error is None
        events = await events_of(hub, session)
        check(events)
        assert said(events).count("Second words.") == 1
        assert prompts(events).count("In the terminal") == 1
        del hub.discovery._writers._checking[session.id]


class Late(DemoReader):
    """A record whose last lines are not on the disk yet."""

    lines: int | None = None

    def read(self) -> Step:
        whole, path = self._path.read_bytes().splitlines(keepends=True), self._path
        shown = path.with_suffix(".shown")
        shown.write_bytes(b"".join(whole[: self.lines]))
        self._path = shown
        try:
            return super().read()
        finally:
            self._path = path


async def test_lines_of_its_own_that_land_late_are_not_taken_for_somebody_elses(
    tmp_path: Path, place: Path, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.records.DemoReader", Late)
    path = place / f"{begun}.jsonl"
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        Late.lines = len(path.read_bytes().splitlines())
        assert (await session.prompt("flood 2")).error is None
        pid = session.agent_pid
        assert (await session.prompt("flood 3")).error is None  # nothing of the first is there yet
        for _ in range(len(path.read_bytes().splitlines()) - Late.lines):
            Late.lines += 1
            assert not await session.read_on()
        assert (await session.prompt("flood 2")).error is None
        Late.lines = None
        elsewhere(path, "In the terminal", "Second words.", "x")
        assert (await told(hub, session)).endswith("Second words.")
        assert session.agent_pid == pid
        events = await events_of(hub, session)
        check(events)
        assert foreign(events) == 1
        assert prompts(events) == ["flood 5", "flood 2", "flood 3", "flood 2", "In the terminal"]


@pytest.mark.parametrize("where", ["between two turns", "before it is accounted for"])
async def test_a_hub_that_dies_while_it_tells_tells_nothing_twice(
    tmp_path: Path, place: Path, begun: str, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = place / f"{begun}.jsonl"
    take, told = Watched.take, []

    async def failing(watched: Watched, step: Step) -> bool:
        if told:
            raise RuntimeError("the hub is killed")
        told.append(step)
        return await take(watched, step)

    async def lost(*_: Any) -> None:
        raise RuntimeError("the hub is killed")

    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        assert (await session.prompt("flood 2")).error is None
        await session.read_on()
        elsewhere(path, "In the terminal", "Second words.", "x")
        elsewhere(path, "And again", "More words.", "y")
        with monkeypatch.context() as patched:
            if where == "between two turns":
                patched.setattr(Watched, "take", failing)
            else:
                patched.setattr(Elsewhere, "_account", lost)
            assert not await session.read_on()
            assert foreign(await events_of(hub, session)) == (1 if where == "between two turns" else 2)
            await hub.discovery.close()  # so that nothing is read on
    async with open_hub(tmp_path / "home", place) as hub:
        again = await hub.session(session.id)
        assert (await again.prompt("flood 3")).error is None
        events = await events_of(hub, again)
        check(events)
        assert prompts(events) == ["flood 5", "flood 2", "In the terminal", "And again", "flood 3"]
        assert said(events).count("Second words.") == said(events).count("More words.") == 1
        assert foreign(events) == 2


PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.interaction.test_hub_elsewhere import adopted, open_hub
async def main(home, begun):
    async with open_hub(home / "home", home / "demo") as hub:
        session = await adopted(hub, begun)
        print(session.id, flush=True)
        while True:
            await session.read_on()
asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


async def test_a_hub_that_is_killed_again_and_again_tells_what_is_done_elsewhere_once(
    tmp_path: Path, place: Path, begun: str
) -> None:
    path, wanted = place / f"{begun}.jsonl", ["flood 5"]
    session_id = ""
    for _ in range(4):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, str(tmp_path), begun), cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            session_id = (await process.stdout.readline()).decode().strip()
        for number in range(len(wanted), len(wanted) + 60):
            wanted.append(f"<{number}>")
            elsewhere(path, f"<{number}>", f"[{number}]", str(number))
            await asyncio.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        elsewhere(path, "Meanwhile", f"[{len(wanted)}]", str(len(wanted)))
        wanted.append("Meanwhile")
    async with open_hub(tmp_path / "home", place) as hub:
        session = await hub.session(session_id)
        assert (await session.prompt("flood 2")).error is None
        events = await events_of(hub, session)
        check(events)
        assert prompts(events) == [*wanted, "flood 2"]
        assert "".join(f"[{number}]" for number in range(1, len(wanted))) in said(events)


async def test_a_turn_that_goes_on_elsewhere_after_it_was_told_is_told_on(
    tmp_path: Path, place: Path, begun: str
) -> None:
    path = place / f"{begun}.jsonl"
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        elsewhere(path, "In the terminal", "Second ", "x")
        assert (await told(hub, session)).endswith("Second ")
        append(path, {"update": says("words", "agent-x")})
        assert (await told(hub, session)).endswith("Second words")
    append(path, {"update": says(" later.", "agent-x")})
    async with open_hub(tmp_path / "home", place) as hub:
        again = await hub.session(session.id)
        await again.read_on()
        events = await events_of(hub, again)
        check(events)
        assert said(events).endswith("Second words later.")
        assert prompts(events) == ["flood 5", "In the terminal"]


async def test_a_record_that_is_cut_and_grows_back_tells_nothing_twice(
    tmp_path: Path, place: Path, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place / f"{begun}.jsonl"
    read = DemoReader.read

    def noticing(reader: DemoReader) -> Step:
        is_cut = reader._path.stat().st_size < reader._offset
        if is_cut:
            reader._offset, reader._waiting = 0, []
        step = read(reader)
        return Step(updates=step.updates, status=step.status, restarted=is_cut)

    monkeypatch.setattr(DemoReader, "read", noticing)
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        assert (await session.prompt("flood 2")).error is None
        elsewhere(path, "In the terminal", "Second words.", "x")
        assert (await told(hub, session)).endswith("Second words.")
        whole = path.read_bytes()
        path.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
        assert not await session.read_on()
        path.write_bytes(whole)
        await session.read_on()
        elsewhere(path, "And again", "More words.", "y")
        await session.read_on()
        events = await events_of(hub, session)
        check(events)
        assert prompts(events) == ["flood 5", "flood 2", "In the terminal", "And again"]
        assert said(events).endswith("Second words.More words.")


async def test_a_session_that_the_hub_began_and_a_fork_are_not_read(
    tmp_path: Path, place: Path, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_hub(tmp_path / "home", place) as hub:
        fork = await hub.adopt_session(await one(hub, begun), "fork")
        own = await hub.start_session("demo", tmp_path)
        monkeypatch.setattr(hub.discovery.finder, "reader", None)  # who asks for one fails
        for session in (own, fork):
            assert session.elsewhere is None
            assert (await session.prompt("flood 2")).error is None
            assert not await session.read_on()


@pytest.mark.parametrize("failure", [None, OSError("the disk is gone")])
async def test_a_record_that_cannot_be_read_changes_nothing(
    tmp_path: Path, place: Path, begun: str, monkeypatch: pytest.MonkeyPatch, failure: Exception | None
) -> None:
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)

        async def reader() -> None:
            if failure is not None:
                raise failure

        await read_by(session, reader)
        assert (await session.prompt("flood 2")).error is None
        assert not await session.read_on()
        check(await events_of(hub, session))


async def test_no_further_prompt_waits_for_a_record_that_takes_too_long(
    tmp_path: Path, place: Path, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.hub.mirror.external_turns.PATIENCE", 0.05)
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        asked = []

        async def reader() -> None:
            asked.append(1)
            await asyncio.Event().wait()

        await read_by(session, reader)
        for _ in range(2):
            assert (await session.prompt("flood 2")).error is None
        assert asked == [1]
        check(await events_of(hub, session))


@pytest.mark.parametrize("kept", [None, {"prompts": "all", "seq": 3}, [1], {"seq": 1}])
async def test_what_happened_before_an_account_was_kept_is_not_told(
    tmp_path: Path, place: Path, begun: str, kept: Any
) -> None:
    path = place / f"{begun}.jsonl"
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        assert (await session.prompt("flood 2")).error is None
        meta = (await hub.log.sessions.get(session.id)).meta
    async with Hub(home=tmp_path / "home", agents={}) as hub:
        await hub.log.sessions.update(session.id, meta={"adopted": meta["adopted"], "accounted": kept})
    async with open_hub(tmp_path / "home", place) as hub:
        again = await hub.session(session.id)
        assert not await again.read_on()
        elsewhere(path, "In the terminal", "Second words.", "x")
        await again.read_on()
        assert foreign(await events_of(hub, again)) == 1


async def test_a_prompt_that_is_cancelled_while_the_record_is_read_ends(
    tmp_path: Path, place: Path, begun: str
) -> None:
    async with open_hub(tmp_path / "home", place) as hub:
        session = await adopted(hub, begun)
        asked = asyncio.Event()

        async def reader() -> None:
            asked.set()
            await asyncio.Event().wait()

        await read_by(session, reader)
        prompt = await session.send("flood 2")
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
            assert await session.cancel()
            assert (await prompt.done).stop_reason == "cancelled"
        check(await events_of(hub, session))
