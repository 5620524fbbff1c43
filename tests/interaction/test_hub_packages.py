"""Sessions that an adapter of a package finds and follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pilothouse.adapters.contract import Adapter, AgentSession
from pilothouse.adapters.discovery.finder import Finder
from pilothouse.hub.hub import Hub
from pilothouse.model.discovery import DiscoveredSession, StartSessionOptions
from pilothouse.model.events import Event, MessageCompleteEvent, utc_now
from pilothouse.model.records import TextContent
from tests.support.hubs import history, said
from tests.support.watching import prompts, told


class Packaged(Adapter):
    """An adapter of a package that finds a session by itself and follows it."""

    name = "packaged"

    def __init__(self) -> None:
        self.session = Followed()

    def get_capabilities(self) -> Any:
        raise NotImplementedError

    async def is_installed(self) -> bool:
        return True

    async def get_version(self) -> str | None:
        return None

    async def discover_sessions(self) -> list[DiscoveredSession]:
        at = "2026-01-01T00:00:00Z"
        fields = {"project_path": "/p", "project_name": "p", "created_at": at, "last_activity": at}
        return [DiscoveredSession(id="x", agent="packaged", **fields)]

    async def attach_to_session(self, session_id: str) -> AgentSession:
        return self.session

    async def start_session(self, options: StartSessionOptions) -> AgentSession:
        raise NotImplementedError


class Followed(AgentSession):
    session_id = "x"

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.callbacks: list[Any] = []
        self.is_detached = False

    @property
    def capabilities(self) -> Any:
        raise NotImplementedError

    def on_event(self, callback: Any) -> Any:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    async def execute(self, command: Any) -> None:
        raise NotImplementedError

    async def get_history(self) -> list[Event]:
        return list(self.events)

    async def detach(self) -> None:
        self.is_detached = True

    def says(self, text: str, role: Any = "assistant") -> None:
        number = len(self.events) + 1
        content = [TextContent(text=text)]
        event = MessageCompleteEvent(
            seq=number, session_id="x", timestamp=utc_now(), message_id=f"m{number}", role=role, content=content
        )
        self.events.append(event)
        for callback in self.callbacks:
            callback(event)


async def test_a_session_that_an_adapter_of_a_package_follows_is_told_once_also_after_a_restart(tmp_path: Path) -> None:
    adapter = Packaged()
    adapter.session.says("Hello", "user")
    adapter.session.says("Hi.")
    session_id = ""
    for words in ("Live.", "Later."):
        adapter.session.is_detached = False
        async with Hub(home=tmp_path, agents={}) as hub:
            made = Finder([], [adapter])
            hub.discovery.prepare(lambda made=made: made, None)  # type: ignore[misc]
            session = await hub.watch_session(await hub.discovery.find("packaged", "x"))
            session_id = session_id or session.id
            assert session.id == session_id
            await hub.discovery.told(session.id)
            adapter.session.says(words)
            await told(session, words)
        assert adapter.session.is_detached
        assert adapter.session.callbacks == []
    async with Hub(home=tmp_path, agents={}) as hub:
        events = await history(hub.log, session_id)
        assert said(events) == "Hi.Live.Later."
        assert prompts(events) == ["Hello"]


async def test_an_event_of_a_package_that_is_not_what_it_should_be_costs_nothing_but_itself(tmp_path: Path) -> None:
    adapter = Packaged()
    odd: Any = None
    adapter.session.says("Hello", "user")
    adapter.session.says("Hi.")
    at = {"seq": 3, "session_id": "x", "timestamp": utc_now(), "message_id": "m3"}
    nonsense = MessageCompleteEvent(**at, role=odd, content=odd)
    adapter.session.events.insert(1, nonsense)
    async with Hub(home=tmp_path, agents={}) as hub:
        made = Finder([], [adapter])
        hub.discovery.prepare(lambda: made, None)
        session = await hub.watch_session(await hub.discovery.find("packaged", "x"))
        await told(session, "Hi.")
        adapter.session.callbacks[0](nonsense)
        adapter.session.says("Live.")
        await told(session, "Live.")
        assert said(await history(hub.log, session.id)) == "Hi.Live."
