"""What an agent made is told once, at the end of the turn that made it, and only what is really there and inside."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.client import artifacts as artifacts_module
from pilothouse.hub.client.browse import WorkspaceFiles
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import CustomEvent, Event
from tests.support.hubs import PATIENCE, check, facts, history

AGENT = str(Path(__file__).parent.parent / "support" / "script_agent.py")
TOLD = """
def told(path, new="x", old=None):
    diff = {"type": "diff", "path": path, "oldText": old, "newText": new}
    call = os.urandom(8).hex()
    agent.update("tool_call", toolCallId=call, title="Write", kind="edit", status="completed", content=[diff])
def made(path, new="x"):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    open(path, "w").write(new)
    told(os.path.abspath(path), new)
"""


def script_hub(home: Path) -> Hub:
    command = (sys.executable, "-S", "-E", AGENT)
    return Hub(home=home, agents={"script": AgentSpec(name="script", command=command)})


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with script_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        yield hub


@pytest.fixture
async def session(hub: Hub, project: Path) -> HubSession:
    return await hub.start_session("script", project)


async def announced(hub: Hub, session: HubSession) -> list[dict[str, Any]]:
    events = await history(hub.log, session.id)
    check(events)
    return [data["artifact"] for data in facts(events, "artifact_created")]


def is_fact(event: Event, name: str) -> bool:
    return isinstance(event, CustomEvent) and event.event_name == name


async def test_what_a_turn_made_is_told_before_its_end_with_type_and_size(
    hub: Hub, session: HubSession, project: Path
) -> None:
    await session.prompt(
        TOLD + "made('page.html', '<h1>é</h1>'); made('notes/plan.md', 'abc'); told('seen.txt', old='y')"
    )
    page, plan = await announced(hub, session)
    assert page == {
        "id": page["id"],
        "type": "web_app",
        "name": "page.html",
        "path": str(project / "page.html"),
        "preview_url": None,
        "mime_type": "text/html",
        "size_bytes": 11,
        "metadata": {},
    }
    assert (plan["type"], plan["name"], plan["size_bytes"]) == ("file", "plan.md", 3)
    events = await history(hub.log, session.id)
    last = max(event.seq for event in events if is_fact(event, "artifact_created"))
    assert last < next(event.seq for event in events if is_fact(event, "turn_ended"))


async def test_an_artifact_is_told_once_whatever_becomes_of_it(hub: Hub, session: HubSession) -> None:
    await session.prompt(TOLD + "made('a.md'); made('b.md')")
    await session.prompt(TOLD + "made('a.md', 'more'); told('b.md', '', 'x'); os.remove('b.md')")
    await session.prompt(TOLD + "made('b.md'); made('c.md')")
    assert [made["name"] for made in await announced(hub, session)] == ["a.md", "b.md", "c.md"]


async def test_what_was_made_and_removed_in_one_turn_is_not_told(hub: Hub, session: HubSession) -> None:
    await session.prompt(TOLD + "made('scratch.py'); os.remove('scratch.py'); made('kept.py')")
    assert [made["name"] for made in await announced(hub, session)] == ["kept.py"]


async def test_an_application_is_one_artifact(hub: Hub, session: HubSession) -> None:
    await session.prompt(TOLD + "made('web/lib/a.ts'); made('web/app/page.tsx'); made('web/next.config.js')")
    (made,) = await announced(hub, session)
    assert (made["type"], made["name"], made["mime_type"]) == ("nextjs_app", "web", "inode/directory")
    assert made["size_bytes"] is None


@pytest.mark.parametrize("end", ["result = {'stopReason': 'refusal'}", "os._exit(3)", "time.sleep(3600)"])
async def test_a_turn_that_ends_badly_tells_what_it_made_too(hub: Hub, session: HubSession, end: str) -> None:
    prompt = await session.send(TOLD + f"made('a.md')\n{end}")
    if "sleep" in end:
        async for event in session.events():
            if event.type == "file:change":
                break
        await session.cancel(force=True)
    await prompt.done
    assert [made["name"] for made in await announced(hub, session)] == ["a.md"]


async def test_over_a_restart_nothing_is_told_again_and_what_was_not_told_is(tmp_path: Path, project: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        async with script_hub(tmp_path / "home") as hub:
            session = await hub.start_session("script", project)
            # the second one is told of, and not there yet when the turn ends
            await session.prompt(TOLD + "made('a.md'); told(os.path.abspath('late.md'))")
            assert [made["name"] for made in await announced(hub, session)] == ["a.md"]
        (project / "late.md").write_text("now")
        async with script_hub(tmp_path / "home") as hub:
            session = await hub.session(session.id)
            for _ in range(2):
                await session.prompt("pass")
                assert [made["name"] for made in await announced(hub, session)] == ["a.md", "late.md"]


async def test_nothing_outside_of_the_session_is_looked_at_or_told(
    hub: Hub, session: HubSession, tmp_path: Path, project: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret of 23 bytes!!!")
    (project / "link.txt").symlink_to(secret)
    (project / "folder").symlink_to(tmp_path)
    os.mkfifo(project / "pipe.txt")
    (project / "directory.txt").mkdir()
    paths = [
        *(str(secret), "../secret.txt", "link.txt", "folder/secret.txt", "pipe.txt", "directory.txt", "missing.txt"),
        *("/etc/passwd", "/proc/self/environ", "/dev/zero", "file:///etc/passwd", "a\0b.txt", "x" * 5000, "\ud800.txt"),
        *("folder/next.config.js", "../next.config.js", "home/../../secret.txt", "."),
        str(tmp_path / "home" / "pilothouse.db"),
    ]
    await session.prompt(TOLD + "".join(f"told({path!r})\n" for path in paths) + "made('inside.txt')")
    await session.prompt(TOLD + "told('/next.config.js')")
    assert [made["name"] for made in await announced(hub, session)] == ["inside.txt"]
    assert "23" not in str(facts(await history(hub.log, session.id), "artifact_created"))


async def test_a_file_system_that_does_not_answer_holds_up_no_turn(
    hub: Hub, session: HubSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    look = WorkspaceFiles.look

    def stuck(self: WorkspaceFiles, path: str) -> Any:
        let_go.wait(PATIENCE)
        return look(self, path)

    monkeypatch.setattr(artifacts_module, "PATIENCE", 0.05)
    monkeypatch.setattr(WorkspaceFiles, "look", stuck)
    try:
        assert (await session.prompt(TOLD + "made('a.md')")).stop_reason == "end_turn"
        assert await announced(hub, session) == []
    finally:
        let_go.set()
    monkeypatch.setattr(artifacts_module, "PATIENCE", PATIENCE)
    await session.prompt("pass")
    assert [made["name"] for made in await announced(hub, session)] == ["a.md"]


async def test_a_session_tells_of_so_many_and_no_more(
    hub: Hub, session: HubSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts_module, "MOST", 3)
    await session.prompt(TOLD + "for name in 'ab': made(f'{name}.md')")
    await session.prompt(TOLD + "for name in 'cdef': made(f'{name}.md')")
    assert [made["name"] for made in await announced(hub, session)] == ["a.md", "b.md", "c.md"]
