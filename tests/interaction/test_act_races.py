"""Attacks on the moment between a permission and its act: swapped links, editors that fail, cancelled turns."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from pilothouse.acp.errors import ConnectionClosed, RequestError
from pilothouse.hub.agent import client_requests as serving
from pilothouse.hub.client.editor_terminals import CALL
from pilothouse.hub.client.editors import Editor
from pilothouse.hub.client.workspace import Workspace
from pilothouse.hub.errors import HubError
from pilothouse.hub.hub import Hub
from pilothouse.hub.recording.rules import StandingRules
from pilothouse.hub.session.session import HubSession
from pilothouse.model.policy import Rule, parse_policy
from tests.support.hubs import PATIENCE, approval_asked, facts, history, until
from tests.support.rogue import REFUSED, Tally, ask, deny, do, rogue_hub, run_turn

Handle = Callable[[str, dict[str, Any]], Any]


def make_editor(handle: Handle, **offers: bool) -> tuple[Editor, list[tuple[str, dict[str, Any]]]]:
    """An editor whose answers `handle` gives, and the calls that it got."""
    calls: list[tuple[str, dict[str, Any]]] = []

    async def request(method: str, params: dict[str, Any]) -> Raw | None:
        calls.append((method, params))
        answer = handle(method, params)
        if asyncio.iscoroutine(answer):
            answer = await answer
        return None if answer is None else Raw(json.dumps(answer).encode())

    return Editor("editor", request, **offers), calls


# -- links ------------------------------------------------------------------------------------------------------------

SWAP_DIRECTORY = """
import threading
stop = threading.Event()
def swap():
    while not stop.is_set():
        os.rename("{p}/d", "{p}/d.real"); os.symlink("{other}", "{p}/d"); time.sleep(0.001)
        os.unlink("{p}/d"); os.rename("{p}/d.real", "{p}/d"); time.sleep(0.001)
{ask}
thread = threading.Thread(target=swap); thread.start()
for _ in range(60):
    answer = agent.request("terminal/create", command="touch", args=["made"], cwd="{p}/d")
    if "error" not in answer:
        agent.request("terminal/wait_for_exit", terminalId=answer["terminalId"]); break
stop.set(); thread.join()
"""


async def test_a_command_does_not_run_where_a_swapped_link_leads(
    hub: Hub, session: HubSession, project: Path, tmp_path: Path, tally: Tally
) -> None:
    other = tmp_path / "outside"
    other.mkdir()
    (project / "d").mkdir()
    asked = ask("c1", title="x", kind="execute", rawInput={"command": ["touch", "made"], "cwd": str(project / "d")})
    for _ in range(4):
        await run_turn(hub, session, SWAP_DIRECTORY.format(p=project, other=other, ask=asked))
        assert list(other.iterdir()) == []
        tally(REFUSED, 1)


SWAP_FILE = """
import threading
stop = threading.Event()
def swap():
    while not stop.is_set():
        for name in ("a.txt", "b.txt"):
            os.symlink(name, "{p}/next"); os.rename("{p}/next", "{p}/link"); time.sleep(0.002)
{ask}
thread = threading.Thread(target=swap); thread.start()
for _ in range(60):
    answer = agent.request("fs/write_text_file", path="{p}/link", content="approved\\n")
    if "error" not in answer: break
stop.set(); thread.join()
"""


async def test_a_write_does_not_reach_the_file_of_a_swapped_link(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    asked = ask("c1", title="x", kind="edit", rawInput={"file_path": str(project / "a.txt"), "content": "approved\n"})
    for _ in range(4):
        (project / "a.txt").write_text("a\n")
        (project / "b.txt").write_text("b\n")
        (project / "link").unlink(missing_ok=True)
        (project / "link").symlink_to("a.txt")
        await run_turn(hub, session, SWAP_FILE.format(p=project, ask=asked))
        assert (project / "b.txt").read_text() == "b\n"
        tally(REFUSED, 1)


@pytest.mark.parametrize("has_editor", [False, True])
async def test_a_read_does_not_reach_the_denied_file_of_a_swapped_link(
    hub: Hub, session: HubSession, project: Path, has_editor: bool, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    (project / "a.txt").write_text("a\n")
    (project / ".env").write_text("secret\n")
    (project / "link").symlink_to("a.txt")
    session.set_policy(parse_policy({"deny": {"reads": [".env"]}}))
    if has_editor:
        read = lambda _, params: {"content": Path(params["path"]).read_text()}  # noqa: E731
        session.attach_editor(make_editor(read, reads=True)[0])
    rules = StandingRules.rules

    async def swap(self: StandingRules) -> list[Rule]:
        found = await rules(self)
        (project / "link").unlink()
        (project / "link").symlink_to(".env")
        return found

    monkeypatch.setattr(StandingRules, "rules", swap)
    turn = await run_turn(hub, session, do("fs/read_text_file", path="link"))
    assert turn.answers == [{"content": "a\n"}]
    tally(REFUSED, 1)


async def test_a_write_goes_to_the_permitted_file_if_the_editor_leaves_meanwhile(
    hub: Hub, session: HubSession, project: Path
) -> None:
    (project / "a.txt").write_text("one\n")
    (project / "b.txt").write_text("keep\n")
    (project / "link").symlink_to("a.txt")

    async def leave() -> None:
        (project / "link").unlink()
        (project / "link").symlink_to("b.txt")
        raise ConnectionClosed("gone")

    editor, calls = make_editor(lambda method, params: leave() if "write" in method else None, writes=True)
    session.attach_editor(editor)
    asked = ask("c1", title="x", kind="edit", rawInput={"file_path": str(project / "a.txt"), "content": "two\n"})
    turn = await run_turn(hub, session, f"{asked}\n{do('fs/write_text_file', path='link', content='two' + chr(10))}")
    assert ((project / "a.txt").read_text(), (project / "b.txt").read_text()) == ("two\n", "keep\n")
    assert not turn.acts
    assert [params["path"] for _, params in calls] == [str(project / "a.txt")]


async def test_a_request_shows_where_its_links_lead(hub: Hub, session: HubSession, project: Path) -> None:
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    (project / "notes.md").symlink_to(".git/hooks/pre-commit")
    (project / "docs").symlink_to("sub")
    edit = [{"type": "diff", "path": "notes.md", "oldText": "#!/bin/sh\n", "newText": "#!/bin/sh\ntrue\n"}]
    run = {"command": "touch made", "cwd": "docs"}
    program = f"{ask('c1', title='Edit', kind='edit', content=edit)}\n{ask('c2', kind='execute', rawInput=run)}"
    written, ran = (await run_turn(hub, session, program)).asked
    assert written.notes == ["`notes.md` is a link: this changes `.git/hooks/pre-commit`."]
    assert written.risk_level == "high"
    assert ran.notes == ["`docs` is a link: this runs in `sub`."]


async def test_an_unusable_path_does_not_cancel_the_denial_of_another(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    (project / "real.txt").write_text("x\n")
    (project / "link.txt").symlink_to("real.txt")
    await session.set_mode("yolo")
    diffs = [
        {"type": "diff", "path": "link.txt", "oldText": "x\n", "newText": "evil\n"},
        {"type": "diff", "path": "a\0b", "oldText": None, "newText": "n"},
    ]
    act = do("fs/write_text_file", path="link.txt", content="evil\n")
    await run_turn(hub, session, f"{ask('c1', title='Edit', kind='edit', content=diffs)}\n{act}", deny)
    assert (project / "real.txt").read_text() == "x\n"
    tally(REFUSED, 1)


# -- editors ----------------------------------------------------------------------------------------------------------


def fail(error: Exception) -> Any:
    raise error


UNCLEAR: dict[str, Callable[[], Any]] = {
    "no id": dict,
    "too long an id": lambda: {"terminalId": "x" * 300},
    "gone": lambda: fail(ConnectionClosed("gone")),
    "an error": lambda: fail(RequestError(-32603, "failed after its start")),
    "an unreadable answer": lambda: fail(msgspec.DecodeError("x")),
}


@pytest.mark.parametrize("how", UNCLEAR)
async def test_an_approval_is_used_up_if_an_editor_may_have_run_its_command(
    hub: Hub, session: HubSession, project: Path, how: str, tally: Tally
) -> None:
    editor, calls = make_editor(lambda method, _: UNCLEAR[how]() if method == "terminal/create" else {}, terminals=True)
    session.attach_editor(editor)
    line = "echo x >> log"
    act = do("terminal/create", command=line)
    asked = ask("c1", title="x", kind="execute", rawInput={"command": line})
    turn = await run_turn(hub, session, f"{asked}\n{act}\n{act}\n{act}")
    assert [method for method, _ in calls if method == "terminal/create"] == ["terminal/create"]
    assert not (project / "log").exists()
    assert len(turn.acts) == 1  # the second one is denied, and the third one refused for that
    tally(REFUSED, 2)


async def test_an_editor_gets_only_what_was_permitted(hub: Hub, session: HubSession, project: Path) -> None:
    program = project / "run it"
    program.write_text("#!/bin/sh\ntouch made\n")
    program.chmod(0o755)
    (project / "docs").symlink_to("sub")
    editor, calls = make_editor(
        lambda method, _: {"terminalId": "t1"} if method == "terminal/create" else {"exitCode": 0}, terminals=True
    )
    session.attach_editor(editor)
    asked = [
        ask("c1", title="x", kind="execute", rawInput={"command": ["./run it"]}),
        ask("c2", title="x", kind="execute", rawInput={"command": "ls", "cwd": "sub"}),
    ]
    acts = [
        do("terminal/create", command="./run it", _meta={"command": "touch evil"}),
        do("terminal/create", command="ls", cwd=str(project / "docs"), _meta={"command": "touch evil"}),
    ]
    turn = await run_turn(hub, session, "\n".join([*asked, *acts]))
    assert not turn.acts
    # a shell would read `./run it` as two words, so the hub runs it itself
    assert (project / "made").exists()
    (created,) = (params for method, params in calls if method == "terminal/create")
    assert created == {"command": "ls", "cwd": str(project / "sub"), "sessionId": session.id}


async def test_extensions_are_not_forwarded_after_a_cancel(tmp_path: Path, project: Path, tally: Tally) -> None:
    editor, calls = make_editor(lambda method, params: {})
    async with rogue_hub(tmp_path / "home", cancel_deadline=4.0) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("rogue", project)
        session.attach_editor(editor)
        program = "agent.request('_x/first')\nagent.cancelled.wait()\nagent.request('_x/run', command='touch evil')"
        turn = asyncio.ensure_future(run_turn(hub, session, program))
        while not calls:
            await asyncio.sleep(0.01)
        await session.cancel()
        await turn
    assert [method for method, _ in calls] == ["_x/first"]
    tally(REFUSED, 1)


async def test_no_program_is_started_in_an_editor_after_a_cancel(
    hub: Hub, session: HubSession, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    editor, calls = make_editor(lambda method, params: {"terminalId": "t1"}, terminals=True)
    session.attach_editor(editor)
    find, cancels = Workspace.directory, list[asyncio.Task[bool]]()

    async def cancel_first(self: Workspace, path: str | None = None) -> Path:
        if facts(await history(hub.log, session.id), "act_allowed") and not cancels:
            cancels.append(asyncio.create_task(session.cancel()))
            await asyncio.sleep(0)  # the turn is cancelled now
        return await find(self, path)

    monkeypatch.setattr(Workspace, "directory", cancel_first)
    asked = ask("c1", title="x", kind="execute", rawInput={"command": "ls"})
    act = "agent.request('terminal/create', command='ls'); result = {'stopReason': 'cancelled'}"
    turn = await run_turn(hub, session, f"{asked}\n{act}")
    await asyncio.wait(cancels)
    assert turn.stop_reason == "cancelled"
    assert calls == []
    tally(REFUSED, 1)


async def test_a_silent_editor_does_not_delay_a_cancel(
    hub: Hub, session: HubSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "LAST_ACTS", 0.1)
    never = asyncio.Event()

    async def handle(method: str, params: dict[str, Any]) -> Any:
        if method != "terminal/create":
            await never.wait()
        return {"terminalId": "t1"}

    editor, calls = make_editor(handle, terminals=True)
    session.attach_editor(editor)
    asked = ask("c1", title="x", kind="execute", rawInput={"command": "ls"})
    act = "agent.request('terminal/create', command='ls'); agent.cancelled.wait()"
    turn = asyncio.ensure_future(run_turn(hub, session, f"{asked}\n{act}\nresult = {{'stopReason': 'cancelled'}}"))
    async with asyncio.timeout(PATIENCE):
        while not any(method == "terminal/wait_for_exit" for method, _ in calls):
            await asyncio.sleep(0.01)
    async with asyncio.timeout(CALL / 2):
        await session.cancel()
    assert (await turn).stop_reason == "cancelled"
    assert "terminal/kill" in [method for method, _ in calls]
    never.set()


# -- changed calls ----------------------------------------------------------------------------------------------------


async def test_an_insertion_that_becomes_a_whole_file_is_asked_about_again(
    hub: Hub, session: HubSession, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("a\nc\n")
    program = f"""
import threading
def diff(old, new): return [{{"type": "diff", "path": {str(outside)!r}, "oldText": old, "newText": new}}]
agent.tool("c1", kind="edit", status="pending", content=diff("a\\nc", "a\\nb\\nc"))
threading.Timer(0.3, lambda: agent.update("tool_call_update", toolCallId="c1", content=diff("", "b"))).start()
agent.permission("c1", title="Edit", kind="edit")
"""
    turn = asyncio.ensure_future(run_turn(hub, session, program, lambda event: None))
    async with asyncio.timeout(PATIENCE):
        while sum(event.type == "approval:requested" for event in await history(hub.log, session.id)) < 2:
            await asyncio.sleep(0.05)
    await session.cancel()
    await turn


# -- requests and acts of a turn that is over ------------------------------------------------------------------------


async def test_a_request_whose_turn_ended_while_its_file_was_read_is_not_opened(
    hub: Hub, session: HubSession, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.txt").write_text("one\n")
    read = Workspace.read_text

    async def read_slowly(self: Workspace, *args: Any, **options: Any) -> str:
        await asyncio.sleep(0.3)
        return await read(self, *args, **options)

    monkeypatch.setattr(Workspace, "read_text", read_slowly)
    call = {"toolCallId": "c1", "kind": "edit", "rawInput": {"file_path": "a.txt", "content": "x\n"}}
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    program = f"""
params = {{"sessionId": agent.session, "toolCall": {call!r}, "options": {options!r}}}
agent.send({{"id": 900, "method": "session/request_permission", "params": params}})
"""
    await run_turn(hub, session, program)
    await run_turn(hub, session, "time.sleep(0.5)")
    events = await history(hub.log, session.id)
    assert len(facts(events, "permission_too_late")) == 1
    assert not [event for event in events if event.type == "approval:requested"]


async def test_an_act_that_is_allowed_when_its_turn_is_over_does_not_happen(
    hub: Hub, session: HubSession, project: Path
) -> None:
    program = """
params = {"sessionId": agent.session, "path": "made", "content": "x"}
agent.send({"id": 900, "method": "fs/write_text_file", "params": params})
while not os.path.exists("ready"): time.sleep(0.01)
"""
    prompt = await session.send(program)
    event = await approval_asked(session)
    # the answer to the prompt and the decision are on their way at the same time
    (project / "ready").touch()
    await asyncio.sleep(0.02)
    with contextlib.suppress(HubError):
        await session.decide(event.request_id, approved=True)
    await prompt.done
    await asyncio.sleep(0.2)
    events = await history(hub.log, session.id)
    ended = next(event.seq for event in events if getattr(event, "event_name", "") == "turn_ended")
    late = [event for event in events if getattr(event, "event_name", "") == "act_allowed" and event.seq > ended]
    assert not late
    assert (project / "made").exists() == bool(facts(events, "act_allowed"))


async def test_a_mode_that_the_agent_left_permits_nothing(hub: Hub, session: HubSession, project: Path) -> None:
    await session.set_mode("yolo")
    program = [
        "agent.update('current_mode_update', currentModeId='ask')",
        do("fs/write_text_file", path="made", content="x"),
    ]
    turn = await run_turn(hub, session, "\n".join(program))
    assert len(turn.acts) == 1
    assert not (project / "made").exists()


# -- editors that answer late ------------------------------------------------------------------------------------------


def changes(*names: str) -> list[dict[str, Any]]:
    return [{"type": "diff", "path": name, "oldText": None, "newText": "x\n"} for name in names]


async def test_the_files_of_a_request_are_read_from_the_editor_at_once(hub: Hub, session: HubSession) -> None:
    names, together = ["a", "b", "c"], asyncio.Barrier(3)

    async def read(method: str, params: dict[str, Any]) -> dict[str, Any]:
        await together.wait()
        return {"content": "buffer\n"}

    session.attach_editor(make_editor(read, reads=True)[0])
    prompt = await session.send(ask("c1", title="Edit", kind="edit", content=changes(*names)))
    event = await approval_asked(session)
    assert str(event.preview).count("-buffer") == len(names)
    await session.decide(event.request_id, approved=False)
    await prompt.done


async def test_a_silent_editor_does_not_hold_up_the_agent_whose_call_changes(
    hub: Hub, session: HubSession, project: Path
) -> None:
    reading = asyncio.Event()

    async def read(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if (project / "go").exists():
            await reading.wait()
        return {"content": "buffer\n"}

    session.attach_editor(make_editor(read, reads=True)[0])
    program = f"""
import threading
agent.tool('c1', kind='edit', status='pending', content={changes("a")!r})
asking = threading.Thread(target=lambda: agent.permission('c1'))
asking.start()
while not os.path.exists('go'): time.sleep(0.01)
agent.update('tool_call_update', toolCallId='c1', content={changes("a", "b")!r})
agent.say('hello')
asking.join()
"""
    prompt = await session.send(program)
    first = await approval_asked(session)
    (project / "go").touch()
    await until(session, "message:delta", first.seq)
    assert not session.state.index.pending
    reading.set()
    second = await approval_asked(session, first.seq)
    assert "buffer" in str(second.preview)
    await session.decide(second.request_id, approved=False)
    await prompt.done
