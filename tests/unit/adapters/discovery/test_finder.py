"""All stores and adapters together: what one of them does wrong is told once, and the rest is found all the same."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from msgspec.structs import replace

from pilothouse.adapters.base import Adapter, AdapterError, AgentSession, OnDiscovery, OnEvent, Stop
from pilothouse.adapters.discovery import watcher as watcher_module
from pilothouse.adapters.discovery.finder import Finder
from pilothouse.adapters.discovery.known import GROUP, STORES, load_stores, make_finder
from pilothouse.adapters.discovery.processes import Holder, find_holders
from pilothouse.adapters.discovery.store import Owner, Problem, Reader, Scan, Store
from pilothouse.adapters.discovery.texts import iso, listed
from pilothouse.adapters.discovery.watcher import Watcher
from pilothouse.adapters.programs import AgentProgram
from pilothouse.adapters.registry import GROUP as ADAPTERS
from pilothouse.adapters.registry import Registry
from pilothouse.model.capabilities import ACPCapabilities, capabilities_from_acp
from pilothouse.model.commands import CancelCommand, Command
from pilothouse.model.discovery import DiscoveredSession, DiscoveredStatus, SessionDiscoveryEvent, StartSessionOptions
from pilothouse.model.events import Event, create_event

NOBODY: Callable[..., dict[tuple[str, str], Holder]] = lambda listed: {}  # noqa: E731
PATIENCE = 60
NOW = time.time()


def session(
    agent: str, session_id: str, *, ago: float = 0.0, status: DiscoveredStatus | None = "idle"
) -> DiscoveredSession:
    moment = iso(time.time() - ago)
    return listed(agent, session_id, "/w", created_at=moment, last_activity=moment, status=status)


class Shelf(Store):
    """Sessions that are given, and those of files; any other file is of all of them."""

    def __init__(self, agent: str, *sessions: DiscoveredSession, root: Path = Path("/nowhere")) -> None:
        self.agent = agent
        self.sessions = list(sessions)
        self.problems: list[Problem] = []
        self.root = root
        self.told: list[Owner] = []

    @property
    def places(self) -> Sequence[Path]:
        return (self.root,)

    def scan(self) -> Scan:
        kept = [session(self.agent, path.stem) for path in self.root.rglob("*.jsonl")]
        return Scan(sessions=[*self.sessions, *kept], problems=list(self.problems))

    def reader(self, session_id: str) -> Reader | None:
        return None

    def touched(self, path: Path) -> str | None:
        return path.stem if path.suffix == ".jsonl" else None

    def files(self, session_id: str) -> Sequence[Path]:
        return ()

    def owners(self) -> Sequence[Owner]:
        return self.told


class Failing(Shelf):
    def __init__(self, agent: str, error: BaseException) -> None:
        super().__init__(agent)
        self.error = error

    def scan(self) -> Scan:
        raise self.error


class Packaged(Adapter):
    """An adapter of a package. What it is to raise is told by the name of the method."""

    def __init__(self, name: str = "packaged", **errors: BaseException) -> None:
        self._name = name
        self.errors = errors
        self.listeners: list[OnDiscovery] = []
        self.sessions: list[Any] = [session("whoever", "p-1")]

    def _may(self, method: str) -> None:
        if method in self.errors:
            raise self.errors[method]

    @property
    def name(self) -> str:
        return self._name

    def get_capabilities(self) -> ACPCapabilities:
        return capabilities_from_acp({}, name=self._name)

    async def is_installed(self) -> bool:
        return True

    async def get_version(self) -> str | None:
        return None

    async def discover_sessions(self) -> list[DiscoveredSession]:
        self._may("discover")
        return self.sessions

    def watch_sessions(self, callback: OnDiscovery) -> Stop:
        self._may("watch")
        self.listeners.append(callback)
        return lambda: self._may("stop")

    async def attach_to_session(self, session_id: str) -> AgentSession:
        self._may("attach")
        return Attached(self)

    async def start_session(self, options: StartSessionOptions) -> AgentSession:
        raise NotImplementedError


class Attached(AgentSession):
    def __init__(self, adapter: Packaged) -> None:
        self.adapter = adapter
        self.callbacks: list[OnEvent] = []

    @property
    def session_id(self) -> str:
        return "p-1"

    @property
    def capabilities(self) -> ACPCapabilities:
        return self.adapter.get_capabilities()

    def on_event(self, callback: OnEvent) -> Stop:
        self.adapter._may("follow")
        self.callbacks.append(callback)
        return lambda: self.adapter._may("unfollow")

    async def execute(self, command: Command) -> None:
        self.adapter._may("execute")

    async def get_history(self) -> list[Event]:
        self.adapter._may("history")
        return ["junk"]  # type: ignore[list-item]

    async def detach(self) -> None:
        self.adapter._may("detach")


@asynccontextmanager
async def finding(*stores: Store, **options: Any) -> AsyncIterator[Finder]:
    finder = Finder(stores, **{"holders": NOBODY, **options})
    try:
        async with asyncio.timeout(PATIENCE):
            yield finder
    finally:
        await finder.close()


def ids(sessions: Sequence[DiscoveredSession]) -> list[tuple[str, str]]:
    return [(one.agent, one.id) for one in sessions]


# -- what is found --


async def test_sessions_of_all_stores_are_found_the_one_last_active_first() -> None:
    one, two = Shelf("one", session("one", "a", ago=50), session("one", "b", ago=5)), Shelf("two", session("two", "c"))
    async with finding(one, two) as finder:
        found = await finder.sessions()
        assert ids(found.sessions) == [("two", "c"), ("one", "b"), ("one", "a")]
        assert await finder.session("one", "a") == found.sessions[2]
        assert await finder.session("two", "a") is None
        assert finder.agents == {"one", "two"}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("no luck"), "RuntimeError: no luck"),
        (SystemExit("left"), "SystemExit: left"),
        (KeyError(), "KeyError"),
    ],
)
async def test_a_store_that_raises_is_one_problem_and_the_others_are_found(error: BaseException, words: str) -> None:
    async with finding(Failing("bad", error), Shelf("good", session("good", "a"))) as finder:
        for _ in range(2):
            found = await finder.sessions()
            assert ids(found.sessions) == [("good", "a")]
            assert found.problems == [Problem(path="store bad", message=words)]


async def test_a_store_that_answers_nonsense_is_a_problem() -> None:
    shelf = Shelf("odd")
    shelf.scan = lambda: [1, 2]  # type: ignore[method-assign,assignment,return-value]
    async with finding(shelf, Shelf("good", session("good", "a"))) as finder:
        found = await finder.sessions()
        assert ids(found.sessions) == [("good", "a")]
        assert [problem.message for problem in found.problems] == ["TypeError: scan gives list"]


async def test_a_store_that_does_not_come_back_is_left_and_not_asked_twice() -> None:
    shelf, go, asked = Shelf("slow", session("slow", "s")), threading.Event(), []

    def scan() -> Scan:
        asked.append(1)
        go.wait(PATIENCE)
        return Scan(sessions=shelf.sessions)

    shelf.scan = scan  # type: ignore[method-assign]
    async with finding(shelf, Shelf("good", session("good", "a")), patience=0.05) as finder:
        try:
            for _ in range(3):
                found = await finder.sessions()
                assert ids(found.sessions) == [("good", "a")]
                assert [problem.message for problem in found.problems] == ["it takes too long"]
            assert len(asked) == 1
        finally:
            go.set()
        while len((await finder.sessions()).sessions) < 2:
            await asyncio.sleep(0)


async def test_a_problem_is_written_down_once_and_again_when_it_was_gone_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="pilothouse.adapters.discovery.finder")
    shelf, problem = Shelf("one"), Problem(path="/a", message="it is gone")
    async with finding(shelf) as finder:
        written = []
        for problems in ([problem], [problem], [], [problem]):
            shelf.problems = problems
            caplog.clear()
            await finder.sessions()
            written.append(caplog.messages)
        assert written == [["/a: it is gone"], [], [], ["/a: it is gone"]]


async def test_those_who_ask_at_once_share_a_look_that_began_after_they_asked() -> None:
    shelf, looks = Shelf("one"), []
    shelf.scan = lambda: looks.append(1) or Scan()  # type: ignore[method-assign,func-returns-value]
    async with finding(shelf) as finder:
        await asyncio.gather(*(finder.sessions() for _ in range(50)))
        assert len(looks) == 2


async def test_who_is_content_with_a_look_since_a_time_is_told_the_last_one_if_it_began_then() -> None:
    shelf, looks, now = Shelf("one", session("one", "a")), [], asyncio.get_running_loop().time
    shelf.scan = lambda: looks.append(1) or Scan(sessions=shelf.sessions)  # type: ignore[method-assign,func-returns-value]
    async with finding(shelf) as finder:
        before = now()
        for _ in range(3):
            assert await finder.session("one", "a", before) is not None
        assert len(looks) == 1
        shelf.sessions = []
        assert await finder.session("one", "a", before) is not None  # that look is late enough
        after = now()
        assert await finder.session("one", "a", after) is None
        assert await finder.session("one", "a", after) is None
        assert len(looks) == 2
        await finder.session("one", "a")
        assert len(looks) == 3


async def test_a_look_that_was_cancelled_is_nobody_elses() -> None:
    shelf, begun, go = Shelf("one", session("one", "a")), threading.Event(), threading.Event()

    def scan() -> Scan:
        begun.set()
        go.wait(PATIENCE)
        return Scan(sessions=shelf.sessions)

    shelf.scan = scan  # type: ignore[method-assign]
    async with finding(shelf) as finder:
        since = asyncio.get_running_loop().time()
        first = asyncio.ensure_future(finder.session("one", "a", since))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        second = asyncio.ensure_future(finder.session("one", "a", since))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        go.set()
        assert await second is not None
        assert await finder.session("one", "a", since) is not None


# -- who has what --


def held(**options: Any) -> Callable[..., dict[tuple[str, str], Holder]]:
    known = {"pid": 77, "started": 1.0, "program": "x", "sign": "told", **options}
    return lambda listed: {("one", "a"): Holder(**known)}


@pytest.mark.parametrize(
    ("said", "ago", "holder", "status"),
    [
        ("running", 5, None, "running"),
        ("running", 500, None, "idle"),
        ("waiting", 500, None, "idle"),
        ("idle", 500, None, "idle"),
        (None, 500, None, None),
        ("running", 500, {}, "running"),
        ("running", 500, {"sign": "directory"}, "running"),
        ("running", 500, {"sign": "directory", "started": NOW}, "idle"),
        ("running", 5, {"status": "waiting"}, "waiting"),
        ("idle", 5, {"status": "running"}, "running"),
    ],
)
async def test_what_a_session_does_is_known_from_its_process_its_record_and_its_age(
    said: DiscoveredStatus | None, ago: float, holder: dict[str, Any] | None, status: str | None
) -> None:
    shelf = Shelf("one", session("one", "a", ago=ago, status=said))
    async with finding(shelf, holders=NOBODY if holder is None else held(**holder)) as finder:
        (found,) = (await finder.sessions()).sessions
        is_sure = holder is not None and "sign" not in holder
        assert (found.status, found.pid) == (status, 77 if is_sure else None)


@pytest.mark.parametrize(
    ("options", "hub_id", "is_foreign"),
    [
        ({}, "mine", True),
        ({"hub": "mine"}, "mine", False),
        ({"hub": "mine"}, None, False),
        ({"hub": "other"}, "mine", True),
        ({"is_ours": True}, "mine", False),
    ],
)
async def test_what_the_hub_started_is_not_foreign(options: Any, hub_id: str | None, is_foreign: bool) -> None:
    async with finding(Shelf("one", session("one", "a")), holders=held(**options), hub_id=hub_id) as finder:
        found = await finder.holder("one", "a")
        assert (found is not None) == is_foreign
        assert [one.pid for one in (await finder.sessions()).sessions] == [77 if is_foreign else None]
        assert await finder.holder("one", "b") is None
        assert await finder.holder("unknown", "a") is None


async def test_the_process_that_an_adapter_of_a_package_names_has_the_session() -> None:
    adapter = Packaged()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        adapter.sessions = [
            replace(session("x", "held"), pid=process.pid),
            replace(session("x", "ours"), pid=os.getpid()),
            replace(session("x", "odd"), pid="7"),
            session("x", "free"),
        ]
        async with finding(adapters=[adapter]) as finder:
            found = await finder.holder("packaged", "held")
            assert found is not None
            assert (found.pid, found.is_sure) == (process.pid, True)
            assert found.started == psutil.Process(process.pid).create_time()
            for free in ("ours", "odd", "free", "unknown"):
                assert await finder.holder("packaged", free) is None
        process.communicate(b"\n")
    async with finding(adapters=[adapter]) as finder:
        assert await finder.holder("packaged", "held") is None


async def test_whoever_asks_who_has_a_session_hears_that_it_is_not_known() -> None:
    def broken(listed: Any) -> dict[tuple[str, str], Holder]:
        raise OSError("no processes today")

    async with finding(Shelf("one", session("one", "a")), holders=broken) as finder:
        assert ids((await finder.sessions()).sessions) == [("one", "a")]
        with pytest.raises(OSError, match="no processes today"):
            await finder.holder("one", "a")


async def test_an_agent_is_known_by_its_other_names() -> None:
    shelf = Shelf("one", session("one", "a"))
    shelf.also = ("uno",)
    async with finding(shelf, holders=held()) as finder:
        assert await finder.session("uno", "a") is not None
        assert await finder.holder("uno", "a") is not None
        assert "uno" in finder.agents


# -- adapters of packages --


async def test_an_adapter_of_a_package_takes_part_under_its_own_name() -> None:
    adapter = Packaged()
    adapter.sessions += ["junk", None, session("claude", "p-2")]
    async with finding(Shelf("claude", session("claude", "a")), adapters=[adapter]) as finder:
        found = await finder.sessions()
        assert sorted(ids(found.sessions)) == [("claude", "a"), ("packaged", "p-1"), ("packaged", "p-2")]
        assert found.problems == [Problem(path="adapter packaged", message="2 of what it lists are no sessions")]


@pytest.mark.parametrize("error", [RuntimeError("no luck"), SystemExit(3)])
async def test_an_adapter_that_raises_in_discovery_disturbs_nobody(error: BaseException) -> None:
    async with finding(
        Shelf("good", session("good", "a")), adapters=[Packaged(discover=error), Packaged("fine")]
    ) as finder:
        found = await finder.sessions()
        assert sorted(ids(found.sessions)) == [("fine", "p-1"), ("good", "a")]
        assert [problem.path for problem in found.problems] == ["adapter packaged"]


async def test_nobody_waits_twice_for_an_adapter_that_hangs_and_what_it_finds_at_last_is_there() -> None:
    adapter, go, asked = Packaged(), threading.Event(), []
    answer = adapter.discover_sessions

    async def slow() -> list[DiscoveredSession]:
        asked.append(1)
        await asyncio.to_thread(go.wait)
        return await answer()

    adapter.discover_sessions = slow  # type: ignore[method-assign]
    async with finding(Shelf("good", session("good", "a")), adapters=[adapter], patience=0.05) as finder:
        for _ in range(3):
            found = await finder.sessions()
            assert ids(found.sessions) == [("good", "a")]
            assert found.problems == [Problem(path="adapter packaged", message="it takes too long")]
        assert len(asked) == 1
        go.set()
        async with asyncio.timeout(30):
            while len((found := await finder.sessions()).sessions) < 2:
                await asyncio.sleep(0)
        assert sorted(ids(found.sessions)) == [("good", "a"), ("packaged", "p-1")]
        assert len(asked) == 1


async def test_an_adapter_that_hangs_is_left_behind() -> None:
    adapter = Packaged()

    async def hang() -> list[DiscoveredSession]:
        await asyncio.Event().wait()
        return []

    adapter.discover_sessions = hang  # type: ignore[method-assign]
    async with finding(Shelf("good", session("good", "a")), adapters=[adapter], patience=0.05) as finder:
        found = await finder.sessions()
        assert ids(found.sessions) == [("good", "a")]
        assert found.problems == [Problem(path="adapter packaged", message="it takes too long")]


async def test_what_cannot_be_told_to_anybody_is_made_so_or_left_out_and_costs_no_other() -> None:
    """Texts with half a character, of which no JSON can be made, and things that are no sessions at all."""
    odd = replace(session("odd", "half \udcff"), session_name="\ud83d!")
    junk: list[Any] = [None, "text", replace(odd, last_activity=None), object()]  # type: ignore[arg-type]
    shelf = Shelf("odd", odd, session("odd", "good"), *junk)
    shelf.problems = [Problem(path="/p/\udcff", message="\udcfe"), "no problem"]  # type: ignore[list-item]
    adapter = Packaged()
    adapter.sessions = [session("x", "\udcff"), *junk]
    async with finding(shelf, Shelf("fine", session("fine", "a")), adapters=[adapter]) as finder:
        found = await finder.sessions()
        assert len(found.sessions) == 4
        assert set(found.problems) == {
            Problem(path="/p/\ufffd", message="\ufffd"),
            Problem(path="store odd", message="4 of what it lists are no sessions"),
            Problem(path="adapter packaged", message="4 of what it lists are no sessions"),
        }
        assert "half \ufffd" in msgspec.json.encode(found).decode()


@pytest.mark.parametrize(
    "wrong", [{"id": 5}, {"created_at": None}, {"project_name": 7}, {"model": 3}, {"status": "asleep"}, {"status": []}]
)
async def test_a_session_with_a_value_that_is_none_is_left_out_and_told(wrong: dict[str, Any]) -> None:
    odd = Shelf("odd", replace(session("odd", "x"), **wrong), session("odd", "b", ago=5))
    async with finding(odd, Shelf("good", session("good", "a"))) as finder:
        found = await finder.sessions()
        assert ids(found.sessions) == [("good", "a"), ("odd", "b")]
        assert found.problems == [Problem(path="store odd", message="1 of what it lists is no session")]
        assert await finder.session("good", "a") is not None


class Blinding(Shelf):
    """A store of a package that does this when it is asked for something about processes."""

    def __init__(self, asked: str, act: Callable[[], Any]) -> None:
        super().__init__("blinding", session("blinding", "z", ago=9))
        self._asked = asked
        self._act = act

    @property
    def programs(self) -> Any:
        return self._act() if self._asked == "programs" else ("python3", "python3.11", "python")

    def owners(self) -> Any:
        return self._act() if self._asked == "owners" else ()


def _raises() -> Any:
    raise RuntimeError("not today")


@pytest.mark.parametrize("asked", ["programs", "owners"])
@pytest.mark.parametrize("act", [_raises, lambda: 5, lambda: [[]], lambda: sys.exit(3)])
async def test_a_store_that_cannot_tell_of_processes_blinds_no_other(asked: str, act: Callable[[], Any]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", "s-1"], stdin=subprocess.PIPE) as process:
        shelf = Shelf(Path(sys.executable).name.lower(), session(Path(sys.executable).name.lower(), "s-1"))
        shelf.told = [Owner(session_id="s-1", pid=process.pid, since=time.time() + 60, status="running")]
        async with finding(Blinding(asked, act), shelf, holders=find_holders) as finder:
            found = await finder.sessions()
            process.communicate(b"\n")
            assert [(one.id, one.pid, one.status) for one in found.sessions] == [
                ("s-1", process.pid, "running"),
                ("z", None, "idle"),
            ]
            assert [one.path for one in found.problems] == ["store blinding"]
            with pytest.raises((Exception, SystemExit)):
                await finder.holder("blinding", "z")


async def test_a_store_that_never_tells_of_processes_keeps_no_other_from_being_found() -> None:
    over = threading.Event()

    def holders(listed: Any) -> dict[tuple[str, str], Holder]:
        if any(each.store.agent == "stuck" for each in listed):
            over.wait(PATIENCE)
        return {("good", "a"): Holder(pid=7, started=0.0, program="x", sign="told", status="running")}

    try:
        stuck, good = Shelf("stuck", session("stuck", "b", ago=9)), Shelf("good", session("good", "a"))
        async with finding(stuck, good, holders=holders, patience=0.1) as finder:
            for _ in range(2):
                found = await finder.sessions()
                assert [(one.id, one.pid) for one in found.sessions] == [("a", 7), ("b", None)]
                assert [problem.path for problem in found.problems] == ["store stuck"]
    finally:
        over.set()


async def test_an_adapter_that_is_given_up_is_cancelled_where_it_waits() -> None:
    adapter, cancelled, begun = Packaged(), threading.Event(), threading.Event()

    async def hang() -> list[DiscoveredSession]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return []

    adapter.discover_sessions = hang  # type: ignore[method-assign]
    async with finding(adapters=[adapter], patience=0.05) as finder:
        await finder.sessions()
        assert await asyncio.to_thread(begun.wait, 5)
        assert not cancelled.is_set()
    assert await asyncio.to_thread(cancelled.wait, 5)


async def test_an_adapter_of_a_package_that_blocks_does_not_hold_up_the_loop(package: str) -> None:
    point_of_it = point("stuck", f"{package}:stuck", ADAPTERS)
    finder = make_finder(Registry(known={}, points=[point_of_it]))
    finder._stores, finder._patience = [Shelf("good", session("good", "a"))], 0.05
    stuck: Any = import_module(package)
    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(beat())
    try:
        found = await finder.sessions()
        assert stuck.begun.is_set()
        assert not stuck.go.is_set()  # it still blocks its thread
        assert turns > 10
        assert ids(found.sessions) == [("good", "a")]
        assert found.problems == [Problem(path="adapter stuck", message="it takes too long")]
    finally:
        stuck.go.set()
        beating.cancel()
        await finder.close()


async def test_only_adapter_errors_come_out_of_a_session_of_a_package() -> None:
    boom = RuntimeError("mid-stream")
    adapter = Packaged(follow=boom, execute=SystemExit(1), history=boom, detach=boom)
    async with finding(adapters=[adapter]) as finder:
        attached = await finder.attach("packaged", "p-1")
        assert attached.session_id == "p-1"
        with pytest.raises(AdapterError, match="cannot be followed: RuntimeError: mid-stream"):
            attached.on_event(lambda event: None)
        with pytest.raises(AdapterError, match="SystemExit"):
            await attached.execute(CancelCommand())
        with pytest.raises(AdapterError, match="mid-stream"):
            await attached.get_history()
        await attached.detach()
        adapter.errors = {"attach": boom}
        with pytest.raises(AdapterError, match="cannot attach to session 'p-1'"):
            await finder.attach("packaged", "p-1")
        with pytest.raises(AdapterError, match="no adapter"):
            await finder.attach("nobody", "p-1")


class Blocking(Packaged):
    """Blocks the thread that it is called in, where a test says."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where
        self.go = threading.Event()
        self.threads: list[int] = []

    def _block(self, where: str) -> None:
        if where == self._where:
            self.threads.append(threading.get_ident())
            self.go.wait(5)

    def watch_sessions(self, callback: OnDiscovery) -> Stop:
        self._block("watch")
        return super().watch_sessions(callback)

    async def attach_to_session(self, session_id: str) -> AgentSession:
        self._block("attach")
        session: Any = await super().attach_to_session(session_id)
        follow = session.on_event

        def on_event(callback: Any) -> Stop:
            self._block("follow")
            stop: Stop = follow(callback)
            return stop

        session.on_event = on_event
        return session


@pytest.mark.parametrize("where", ["watch", "attach", "follow"])
async def test_an_adapter_that_blocks_while_it_is_followed_holds_up_nobody_else(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.adapters.discovery.guarded.BRIEF", 0.05)
    adapter = Blocking(where)
    try:
        async with finding(adapters=[adapter]) as finder:
            finder._patience = 0.05
            stop = finder.watch(lambda event: None)
            for _ in range(2):
                with contextlib.suppress(AdapterError):
                    attached = await finder.attach("packaged", "p-1")
                    attached.on_event(lambda event: None)
            while not adapter.threads:
                await asyncio.sleep(0)
            stop()
    finally:
        adapter.go.set()
    assert threading.get_ident() not in adapter.threads
    assert len(adapter.threads) == (2 if where == "follow" else 1)  # nobody waits twice for the same


async def test_a_listener_that_raises_does_not_break_the_adapters_stream() -> None:
    adapter = Packaged(unfollow=RuntimeError("never"))
    async with finding(adapters=[adapter]) as finder:
        attached: Any = await finder.attach("packaged", "p-1")
        heard: list[Event] = []

        def listen(event: Event) -> None:
            heard.append(event)
            raise ValueError("no")

        stop = attached.on_event(listen)
        event = create_event("p-1", {"type": "session:paused"})
        for told in (event, "junk", event):
            attached._session.callbacks[0](told)
        threading.Thread(target=attached._session.callbacks[0], args=(event,)).start()
        while len(heard) < 3:
            await asyncio.sleep(0)
        stop()
        assert heard == [event] * 3
        assert await attached.get_history() == []


# -- which stores there are --


def point(name: str, value: str, group: str = GROUP) -> EntryPoint:
    return EntryPoint(name, value, group)


def test_the_built_in_stores_can_be_loaded() -> None:
    stores, problems = load_stores([])
    assert problems == []
    assert [store.agent for store in stores] == list(STORES)


PACKAGE = """
from {tests} import Shelf, Packaged
from pilothouse.adapters.acp import AcpAdapter
from pilothouse.adapters.programs import AgentProgram
shelf = Shelf("claude")
adapter = Packaged()
started = AcpAdapter(AgentProgram(name="p", title="P", ways=()))
number = int

class Nameless(Shelf):
    def __init__(self): pass

class Half(Shelf):
    def __init__(self, agent="half", also=(), programs=("half",)):
        super().__init__(agent)
        self.also = also
        self._programs = programs
    programs = property(lambda self: self._programs())

empty, letters = Half(""), Half(also="abc", programs=tuple)
numbers, raising = Half(programs=lambda: [5]), Half(programs=lambda: 1 / 0)

import threading
begun, go = threading.Event(), threading.Event()

class Stuck(Packaged):
    async def discover_sessions(self):
        begun.set()
        go.wait(30)
        return []

stuck = Stuck("stuck")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"store_package_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(PACKAGE.format(tests=__name__))
    (tmp_path / f"{name}_broken.py").write_text("import sys; sys.exit('left')")
    (tmp_path / f"{name}_breaks.py").write_text("raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_store_of_a_package_takes_the_place_of_a_built_in_one(package: str) -> None:
    stores, problems = load_stores([point("claude", f"{package}:shelf")], known={"claude": STORES["claude"]})
    assert (len(stores), problems) == (1, [])
    assert type(stores[0]).__name__ == "Shelf"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{}_broken:x", "SystemExit: left"),
        ("{}_breaks:x", "KeyboardInterrupt"),
        ("no_such_module:x", "ModuleNotFoundError"),
        ("{}:nothing", "AttributeError"),
        ("{}:number", "int, which is no pilothouse Store"),
        ("{}:Nameless", "its `agent` should be the name of an agent, got None"),
        ("{}:empty", "its `agent` should be the name of an agent, got ''"),
        ("{}:letters", "its `also` should be a collection of names, got 'abc'"),
        ("{}:numbers", "its `programs` should be a collection of names, got [5]"),
        ("{}:raising", "ZeroDivisionError"),
    ],
)
def test_a_store_that_cannot_be_loaded_is_a_problem(package: str, value: str, words: str) -> None:
    stores, problems = load_stores([point("bad", value.format(package))], known={"claude": STORES["claude"]})
    assert [store.agent for store in stores] == ["claude"]
    assert [problem.path for problem in problems] == ["store bad"]
    assert words in problems[0].message


async def test_an_adapter_that_cannot_be_imported_is_a_problem_of_the_list(package: str) -> None:
    points = [
        point("good", f"{package}:adapter", ADAPTERS),
        point("bad", f"{package}_broken:x", ADAPTERS),
        point("claude", f"{package}:adapter", ADAPTERS),
    ]
    claude = AgentProgram(name="claude", title="Claude", ways=())
    finder = make_finder(Registry([claude], known={}, points=points), hub_id="h")
    assert finder.hub_id == "h"
    assert "packaged" in finder.agents
    assert [(problem.path, "left" in problem.message) for problem in finder._broken] == [("adapter bad", True)]


async def test_an_adapter_that_would_start_its_agent_is_not_asked(package: str) -> None:
    registry = Registry(known={}, points=[point("p", f"{package}:started", ADAPTERS)])
    assert registry.get("p").name == "p"
    assert "p" not in make_finder(registry).agents


# -- watching --


class Heard:
    """What was told, and waiting for it."""

    def __init__(self) -> None:
        self.events: list[SessionDiscoveryEvent] = []
        self._more = asyncio.Event()

    def __call__(self, event: SessionDiscoveryEvent) -> None:
        self.events.append(event)
        self._more.set()

    async def until(self, kind: str, session_id: str) -> None:
        while (kind, session_id) not in [(event.type, event.session_id) for event in self.events]:
            self._more.clear()
            await self._more.wait()


@asynccontextmanager
async def watching(*stores: Store, adapters: Sequence[Adapter] = ()) -> AsyncIterator[tuple[Watcher, Heard]]:
    watcher, heard = Watcher(stores, adapters, look=0.1), Heard()
    watcher.subscribe(heard)
    try:
        async with asyncio.timeout(PATIENCE):
            await watcher.watching.wait()
            yield watcher, heard
    finally:
        await watcher.close()


async def test_files_that_come_change_and_go_are_told(tmp_path: Path) -> None:
    async with watching(Shelf("one", root=tmp_path)) as (_, heard):
        path = tmp_path / "below" / "a.jsonl"
        path.parent.mkdir()
        path.write_text("1\n")
        await heard.until("session_created", "a")
        with path.open("a") as file:
            file.write("2\n")
        await heard.until("session_updated", "a")
        path.unlink()
        await heard.until("session_removed", "a")
        assert {event.agent for event in heard.events} == {"one"}


async def test_a_place_that_does_not_exist_yet_is_noticed_when_it_appears(tmp_path: Path) -> None:
    shelf = Shelf("one", root=tmp_path / "later" / "much")
    async with watching(shelf) as (_, heard):
        shelf.root.mkdir(parents=True)
        (shelf.root / "early.jsonl").write_text("1\n")
        await heard.until("session_created", "early")
        (shelf.root / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")


async def test_a_place_that_was_replaced_is_watched_again(tmp_path: Path) -> None:
    shelf = Shelf("one", root=tmp_path / "place")
    shelf.root.mkdir()
    async with watching(shelf) as (_, heard):
        shelf.root.rename(tmp_path / "old")
        shelf.root.mkdir()
        written = 0
        while not any(event.session_id == "a" for event in heard.events):
            written += 1
            (shelf.root / "a.jsonl").write_text("x" * written)
            await asyncio.sleep(0.02)


async def test_a_store_that_never_comes_back_keeps_no_other_from_being_watched(tmp_path: Path) -> None:
    stuck, go = Shelf("stuck"), threading.Event()

    def scan() -> Scan:
        go.wait(PATIENCE)
        return Scan()

    stuck.scan = scan  # type: ignore[method-assign]
    watcher, heard = Watcher([stuck, Shelf("one", root=tmp_path)], look=0.1, patience=0.2), Heard()
    watcher.subscribe(heard)
    try:
        async with asyncio.timeout(PATIENCE):
            await watcher.watching.wait()
            (tmp_path / "a.jsonl").write_text("1\n")
            await heard.until("session_created", "a")
    finally:
        go.set()
        await watcher.close()


ENDLESS = """
import asyncio, threading
from pilothouse.adapters.discovery.finder import Finder
from tests.unit.adapters.discovery.test_finder import Shelf, session
stuck = Shelf("stuck")
stuck.scan = threading.Event().wait
async def main():
    finder = Finder([stuck, Shelf("good", session("good", "a"))], patience=1.0, holders=lambda listed: {})
    print(len((await finder.sessions()).sessions), flush=True)
    await finder.close()
asyncio.run(main())
"""


def test_a_store_that_never_comes_back_does_not_keep_the_process_from_ending() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=PATIENCE, cwd=Path(__file__).parents[4]
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


async def test_a_change_that_does_not_say_whose_it_is_is_found_by_comparing(tmp_path: Path) -> None:
    shelf = Shelf("one", session("one", "a"), session("one", "b"), session("one", "c"), root=tmp_path)
    async with watching(shelf) as (_, heard):
        shelf.sessions = [shelf.sessions[0], session("one", "b", status="running"), session("one", "d")]
        shelf.told = [Owner(session_id="a", pid=1, since=1.0)]
        (tmp_path / "all.db").write_text("changed")
        for kind, name in (("created", "d"), ("updated", "b"), ("removed", "c"), ("updated", "a")):
            await heard.until(f"session_{kind}", name)


async def test_a_store_or_a_listener_that_raises_stops_no_news(tmp_path: Path) -> None:
    class Odd(Failing):
        def touched(self, path: Path) -> str | None:
            raise self.error

        def owners(self) -> Sequence[Owner]:
            raise self.error

    bad, good = Odd("bad", RuntimeError("no")), Shelf("good", root=tmp_path / "good")
    bad.root = tmp_path / "good"
    good.root.mkdir()
    async with watching(bad, good) as (watcher, heard):
        watcher.subscribe(lambda event: 1 / 0)  # type: ignore[arg-type,return-value]
        late = Heard()
        watcher.subscribe(late)
        (good.root / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")
        await late.until("session_created", "a")


async def test_adapters_of_packages_are_heard_from_any_thread_and_may_raise() -> None:
    good, bad = Packaged("good", stop=RuntimeError("never")), Packaged("bad", watch=RuntimeError("no"))
    async with watching(adapters=[bad, good]) as (_, heard):
        event = SessionDiscoveryEvent(type="session_updated", session_id="p-1", agent="good")
        for told in (None, event):
            threading.Thread(target=good.listeners[0], args=(told,)).start()
        await heard.until("session_updated", "p-1")


async def test_a_place_behind_a_link_is_watched(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    async with watching(Shelf("one", root=tmp_path / "link")) as (_, heard):
        (tmp_path / "real" / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")


async def test_a_first_look_that_fails_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aside, failures = watcher_module.aside, [RuntimeError("can't start new thread")]

    async def once(*work: Any) -> Any:
        if failures:
            raise failures.pop()
        return await aside(*work)

    monkeypatch.setattr(watcher_module, "aside", once)
    async with watching(Shelf("one", root=tmp_path)) as (watcher, heard):
        assert watcher.looked.is_set()
        (tmp_path / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")


async def test_watching_ends_with_the_last_listener_and_begins_again(tmp_path: Path) -> None:
    watcher, first, second = Watcher([Shelf("one", root=tmp_path)], look=0.1), Heard(), Heard()
    stops = [watcher.subscribe(first), watcher.subscribe(second)]
    task = watcher._task
    assert task is not None
    stops[0]()
    stops[0]()
    assert not task.cancelling()
    stops[1]()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([task])
        assert watcher._task is None
        watcher.subscribe(first)
        await watcher.watching.wait()
        (tmp_path / "a.jsonl").write_text("1\n")
        await first.until("session_created", "a")
        await watcher.close()
        await watcher.close()
    assert second.events == []


async def test_the_finder_tells_what_its_watcher_notices(tmp_path: Path) -> None:
    async with finding(Shelf("one", root=tmp_path)) as finder:
        heard = Heard()
        stop = finder.watch(heard)
        await finder._watcher.watching.wait()
        (tmp_path / "a.jsonl").write_text("1\n")
        await heard.until("session_created", "a")
        stop()
