"""An approval is permission for one act: every pair of a request and an act, through a real hub.

Each request and each act has a name for its effect. An act may happen only if an approval showed the same effect; the
hub asks about any other act, and the tests deny it, so it must leave no trace on the disk.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest

from pilothouse.adapters.catalog import PermissionBehavior
from pilothouse.hub.approvals.approvals import Approvals
from pilothouse.hub.approvals.authorization import Authorization
from pilothouse.hub.client.terminals import Terminals
from pilothouse.hub.client.workspace import Workspace
from pilothouse.hub.errors import IllegalCommand, NotStored
from pilothouse.hub.hub import Hub
from pilothouse.hub.recording.recorder import Recorder
from pilothouse.hub.session.session import HubSession
from pilothouse.log.errors import LogError
from pilothouse.model.events import ApprovalRequestedEvent
from pilothouse.model.records import CommandPreview
from tests.support.hubs import PATIENCE, approval_asked, check, facts, history, until
from tests.support.rogue import REFUSED, Tally, allow, ask, deny, do, rogue_hub, run_turn

# -- commands: `{m}` is a marker that the command makes ---------------------------------------------------------------

SAME = "touch {m}"
ASKED_COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "string": (SAME, {"kind": "execute", "rawInput": {"command": "touch {m}"}}),
    "list": (SAME, {"kind": "execute", "rawInput": {"command": ["touch", "{m}"]}}),
    "wrapped list": (SAME, {"kind": "execute", "rawInput": {"command": ["bash", "-lc", "touch {m}"]}}),
    "program and args": (SAME, {"kind": "execute", "rawInput": {"command": "touch", "args": ["{m}"]}}),
    "nested": (SAME, {"kind": "execute", "rawInput": {"arguments": {"command": "touch {m}"}}}),
    "json string": (SAME, {"kind": "execute", "rawInput": '{{"command": "touch {m}"}}'}),
    "fence": (SAME, {"kind": "execute", "title": "Bash", "content": "```sh\ntouch {m}\n```"}),
    "title": (SAME, {"kind": "execute", "title": "touch {m}"}),
    "directory": ("touch in sub", {"kind": "execute", "rawInput": {"command": "touch {m}", "cwd": "sub"}}),
    "variable": ("touch with X", {"kind": "execute", "rawInput": {"command": "touch {m}", "env": {"X": "1"}}}),
    "harmless": ("ls", {"kind": "execute", "rawInput": {"command": "ls -la"}}),
    "read": ("read", {"kind": "read", "rawInput": {"file_path": "a.txt"}}),
    "write": ("write", {"kind": "edit", "rawInput": {"file_path": "{m}", "content": ""}}),
    "other tool": ("tool", {"kind": "other", "name": "mcp__x__y", "rawInput": {"value": "touch {m}"}}),
    "question": ("question", {"title": "AskUserQuestion", "rawInput": {"questions": [{"question": "touch {m}?"}]}}),
    "prose": ("prose", {"kind": "execute", "title": "I make a file", "rawInput": {"note": "touch {m}"}}),
}
DONE_COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "line": (SAME, {"command": "touch {m}"}),
    "words": (SAME, {"command": "touch", "args": ["{m}"]}),
    "bash -c": (SAME, {"command": "bash", "args": ["-c", "touch {m}"]}),
    "bash -lc": (SAME, {"command": "bash", "args": ["-lc", "touch {m}"]}),
    "/bin/sh -c": (SAME, {"command": "/bin/sh", "args": ["-c", "touch {m}"]}),
    "own directory": (SAME, {"command": "touch {m}", "cwd": "{project}"}),
    "quiet": (SAME, {"command": "touch {m}", "env": [{"name": "NO_COLOR", "value": "1"}]}),
    "in sub": ("touch in sub", {"command": "touch {m}", "cwd": "{project}/sub"}),
    "with X": ("touch with X", {"command": "touch {m}", "env": [{"name": "X", "value": "1"}]}),
    "with X=2": ("X=2", {"command": "touch {m}", "env": [{"name": "X", "value": "2"}]}),
    "PATH": ("PATH", {"command": "touch {m}", "env": [{"name": "PATH", "value": "/nowhere:/usr/bin:/bin"}]}),
    "BASH_ENV": ("BASH_ENV", {"command": "touch {m}", "env": [{"name": "BASH_ENV", "value": "evil.sh"}]}),
    "LD_PRELOAD": ("LD_PRELOAD", {"command": "touch {m}", "env": [{"name": "LD_PRELOAD", "value": ""}]}),
    "NO_COLOR=2": ("NO_COLOR", {"command": "touch {m}", "env": [{"name": "NO_COLOR", "value": "2"}]}),
    "full path": ("full path", {"command": "/usr/bin/touch", "args": ["{m}"]}),
    "more": ("more", {"command": "touch {m}; true"}),
    "comment": ("comment", {"command": "touch {m} # x"}),
    "another": ("another", {"command": "touch {m} other"}),
    "newline": ("newline", {"command": "true\ntouch {m}"}),
    "bash -xc": ("bash -xc", {"command": "bash", "args": ["-xc", "touch {m}"]}),
    "bash -c with $0": ("$0", {"command": "bash", "args": ["-c", "touch {m}", "x"]}),
    "dash": ("dash", {"command": "dash", "args": ["-c", "touch {m}"]}),
    "substitution": ("substitution", {"command": "touch $(echo {m})"}),
    "planted bash": ("planted", {"command": "./bash", "args": ["-c", "touch {m}"]}),
}


def _filled(value: Any, **names: str) -> Any:
    if isinstance(value, str):
        return value.format(**names) if "{" in value else value
    if isinstance(value, list):
        return [_filled(item, **names) for item in value]
    return {key: _filled(item, **names) for key, item in value.items()} if isinstance(value, dict) else value


def _tool(fields: dict[str, Any], **names: str) -> dict[str, Any]:
    tool: dict[str, Any] = _filled(fields, **names)
    if isinstance(tool.get("content"), str):
        tool["content"] = [{"type": "content", "content": {"type": "text", "text": tool["content"]}}]
    return {"title": "Work", **tool}


@pytest.mark.parametrize("asked", ASKED_COMMANDS)
async def test_a_command_runs_only_if_an_approval_showed_it(
    hub: Hub, session: HubSession, project: Path, asked: str, tally: Tally
) -> None:
    wanted, fields = ASKED_COMMANDS[asked]
    (project / "bash").write_text('#!/bin/sh\nexec /bin/bash "$@"\n')
    (project / "bash").chmod(0o755)
    refused = 0
    for number, (done, (effect, params)) in enumerate(DONE_COMMANDS.items()):
        names = {"m": f"made-{number}", "project": str(project)}
        act = do("terminal/create", **_filled(params, **names))
        for is_allowed in (True, False):
            turn = await run_turn(
                hub, session, f"{ask('c1', **_tool(fields, **names))}\n{act}", allow if is_allowed else deny
            )
            made = [place for place in project.rglob(f"made-{number}") if place.is_file()]
            if is_allowed and effect == wanted:
                assert made, (done, turn.said)
                assert not turn.acts, (done, turn.acts)
                made[0].unlink()
            else:
                assert not made, (done, is_allowed)
                refused += 1
                is_denied_already = effect == wanted
                assert len(turn.acts) == (0 if is_denied_already else 1), (done, is_allowed, turn.said)
                assert "error" in turn.answers[-1]
    tally(REFUSED, refused)
    check(await history(hub.log, session.id))


# -- files: `{f}` is the file -----------------------------------------------------------------------------------------

OLD, NEW = "one\ntwo\nthree\n", "one\nTWO\nthree\n"


def _diff(old: str | None, new: str, path: str = "{project}/{f}") -> dict[str, Any]:
    return {"kind": "edit", "content": [{"type": "diff", "path": path, "oldText": old, "newText": new}]}


ASKED_WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "whole text": ("TWO", {"kind": "edit", "rawInput": {"file_path": "{f}", "content": NEW}}),
    "whole diff": ("TWO", _diff(OLD, NEW)),
    "new file that exists": ("TWO", _diff(None, NEW)),
    "snippet": ("TWO", _diff("two", "TWO")),
    "snippet with context": ("TWO", _diff("one\ntwo", "one\nTWO")),
    "strings": ("TWO", {"kind": "edit", "rawInput": {"path": "{f}", "old_string": "two", "new_string": "TWO"}}),
    "before and after": ("TWO", {"kind": "other", "rawInput": {"path": "{f}", "before": "two", "after": "TWO"}}),
    "unified diff": ("TWO", {"kind": "edit", "rawInput": {"filepath": "{f}", "diff": (
        "--- a/{f}\n+++ b/{f}\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n")}}),
    "false base": ("false", _diff("one\n2\nthree\n", NEW)),
    "ambiguous snippet": ("ambiguous", _diff("t", "T")),
    "other text": ("other", {"kind": "edit", "rawInput": {"file_path": "{f}", "content": "harmless\n"}}),
    "other file": ("file", {"kind": "edit", "rawInput": {"file_path": "other.txt", "content": NEW}}),
    "read": ("read", {"kind": "read", "rawInput": {"file_path": "{f}"}}),
    "command": ("command", {"kind": "execute", "rawInput": {"command": "cat {f}"}}),
    "only a path": ("path", {"kind": "edit", "rawInput": {"file_path": "{f}"}}),
    "only locations": ("locations", {"kind": "edit", "locations": [{"path": "{project}/{f}"}]}),
}  # fmt: skip
DONE_WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "same": ("TWO", {"path": "{project}/{f}", "content": NEW}),
    "relative": ("TWO", {"path": "{f}", "content": NEW}),
    "roundabout": ("TWO", {"path": "{project}/sub/../{f}", "content": NEW}),
    "through a link": ("TWO", {"path": "{project}/link-{f}", "content": NEW}),
    "CRLF": ("TWO", {"path": "{f}", "content": NEW.replace("\n", "\r\n")}),
    "BOM": ("TWO", {"path": "{f}", "content": "\ufeff" + NEW}),
    "other text": ("evil", {"path": "{f}", "content": "evil\n"}),
    "more text": ("more", {"path": "{f}", "content": NEW + "evil\n"}),
    "less text": ("less", {"path": "{f}", "content": "TWO"}),
    "no line end": ("no line end", {"path": "{f}", "content": NEW.rstrip("\n")}),
    "every occurrence": ("every occurrence", {"path": "{f}", "content": OLD.replace("t", "T")}),
    "first occurrence": ("first occurrence", {"path": "{f}", "content": OLD.replace("t", "T", 1)}),
    "another file": ("another", {"path": "{f}.py", "content": NEW}),
    "other case": ("other case", {"path": "{f}", "content": NEW.lower().replace("two", "tWO")}),
}


@pytest.mark.parametrize("asked", ASKED_WRITES)
async def test_a_file_is_written_only_if_an_approval_showed_the_result(
    hub: Hub, session: HubSession, project: Path, asked: str, tally: Tally
) -> None:
    wanted, fields = ASKED_WRITES[asked]
    refused = 0
    for number, (done, (effect, params)) in enumerate(DONE_WRITES.items()):
        for is_allowed in (True, False):
            names = {"f": f"f{number}{is_allowed}.txt", "project": str(project)}
            file = project / names["f"]
            file.write_text(OLD)
            (project / f"link-{names['f']}").symlink_to(file)
            act = do("fs/write_text_file", **_filled(params, **names))
            turn = await run_turn(
                hub, session, f"{ask('c1', **_tool(fields, **names))}\n{act}", allow if is_allowed else deny
            )
            written = {place.name for place in project.iterdir() if place.is_file() and not place.is_symlink()}
            if is_allowed and effect == wanted:
                assert file.read_text().replace("\r\n", "\n").removeprefix("\ufeff") == NEW, (done, turn.said)
                assert not turn.acts, (done, turn.acts)
            else:
                assert file.read_text() == OLD, (done, is_allowed)
                assert f"{names['f']}.py" not in written
                refused += 1
                assert "error" in turn.answers[-1]
                # after a denial, any other change to that file is refused without a question
                is_same_file = wanted not in ("read", "command", "file") and done != "another file"
                expected = 0 if not is_allowed and is_same_file else 1
                assert len(turn.acts) == expected, (done, is_allowed, turn.said)
    tally(REFUSED, refused)
    check(await history(hub.log, session.id))


# -- once, and in its turn --------------------------------------------------------------------------------------------

COMMAND = ask("c1", title="Work", kind="execute", rawInput={"command": "touch made"})
WRITE = ask("c1", title="Work", kind="edit", rawInput={"file_path": "made", "content": "x\n"})
ACTS = {
    "command": (COMMAND, do("terminal/create", command="touch made")),
    "write": (WRITE, do("fs/write_text_file", path="made", content="x\n")),
}


@pytest.mark.parametrize("kind", ACTS)
async def test_an_approval_is_used_up_by_its_act(
    hub: Hub, session: HubSession, project: Path, kind: str, tally: Tally
) -> None:
    question, act = ACTS[kind]
    turn = await run_turn(hub, session, f"{question}\n{act}\nos.remove('made')\n{act}\n{act}")
    assert not (project / "made").exists()
    assert len(turn.acts) == 1  # denied once, so the third one is refused without a question
    assert "once" in " ".join(turn.acts[0].notes)
    tally(REFUSED, 2)


@pytest.mark.parametrize("kind", ACTS)
async def test_hub_requested_approval_is_single_use(
    hub: Hub, session: HubSession, project: Path, kind: str, tally: Tally
) -> None:
    act = ACTS[kind][1]
    decisions = [True, False]
    program = f"{act}\nos.remove('made')\n{act}"
    turn = await run_turn(hub, session, program, decide_acts=lambda event: decisions.pop(0))
    assert len(turn.acts) == 2
    assert not (project / "made").exists()
    tally(REFUSED, 1)


@pytest.mark.parametrize("kind", ACTS)
async def test_two_acts_at_once_do_not_share_an_approval(
    hub: Hub, session: HubSession, project: Path, kind: str, tally: Tally
) -> None:
    method, params = {
        "command": ("terminal/create", {"command": "echo x >> made"}),
        "write": ("fs/write_text_file", {"path": "made", "content": "x\n"}),
    }[kind]
    raw = {"command": "echo x >> made"} if kind == "command" else {"file_path": "made", "content": "x\n"}
    threads = (
        "import threading\n"
        f"ts = [threading.Thread(target=agent.request, args=({method!r},), kwargs={params!r}) for _ in range(4)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]; time.sleep(.3)"
    )
    kinds = {"command": "execute", "write": "edit"}
    await run_turn(hub, session, f"{ask('c1', title='Work', kind=kinds[kind], rawInput=raw)}\n{threads}")
    assert (project / "made").read_text() == "x\n"
    allowed = [fact for fact in facts(await history(hub.log, session.id), "act_allowed") if "approvalId" in fact]
    assert len(allowed) == 1
    tally(REFUSED, 3 if kind == "command" else 0)


@pytest.mark.parametrize("kind", ACTS)
async def test_an_approval_ends_with_its_turn(
    hub: Hub, session: HubSession, project: Path, kind: str, tally: Tally
) -> None:
    question, act = ACTS[kind]
    await run_turn(hub, session, question)
    turn = await run_turn(hub, session, act)
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    tally(REFUSED, 1)


@pytest.mark.parametrize("kind", ACTS)
async def test_an_approval_that_is_stored_after_its_turn_covers_nothing(
    hub: Hub, session: HubSession, project: Path, kind: str, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    question, act = ACTS[kind]
    append, gate = hub.log.append_nowait, asyncio.Event()
    gate.set()

    async def wait_for_gate(stored: asyncio.Future[int]) -> int:
        await gate.wait()
        return await stored

    def append_slowly(*batch: Any, **more: Any) -> asyncio.Future[int]:
        return asyncio.ensure_future(wait_for_gate(append(*batch, **more)))

    monkeypatch.setattr(hub.log, "append_nowait", append_slowly)
    unanswered = f"import threading\nthreading.Thread(target=lambda: {question}).start()\ntime.sleep(.5)"
    turn = asyncio.ensure_future(session.prompt(f"{unanswered}\nafter = {('time.sleep(1)' + chr(10) + act)!r}"))
    asked = await approval_asked(session)
    gate.clear()
    deciding = asyncio.ensure_future(session.decide(asked.request_id, approved=True))
    await asyncio.sleep(1)  # the turn is over, and the act comes half a second later
    gate.set()
    await asyncio.wait((turn, deciding))
    later = await approval_asked(session, asked.seq)
    assert later.origin == "hub"
    await session.decide(later.request_id, approved=False)
    assert not (project / "made").exists()
    tally(REFUSED, 1)


@pytest.mark.parametrize("kind", ACTS)
async def test_an_approval_does_not_cover_another_session(
    hub: Hub, session: HubSession, project: Path, kind: str, tally: Tally
) -> None:
    question, act = ACTS[kind]
    other = await hub.start_session("rogue", project)
    waiting = asyncio.ensure_future(run_turn(hub, session, f"{question}\ntime.sleep(1)"))
    await approval_asked(session)
    turn = await run_turn(hub, other, act)
    assert len(turn.acts) == 1
    await waiting
    assert not (project / "made").exists()
    tally(REFUSED, 1)


@pytest.mark.parametrize("kind", ACTS)
async def test_a_failed_act_does_not_use_up_its_approval(
    hub: Hub, session: HubSession, project: Path, kind: str
) -> None:
    if kind == "command":
        question = ask("c1", title="Work", kind="execute", rawInput={"command": "./tool made"})
        make = "open('tool', 'w').write('#!/bin/sh' + chr(10) + 'touch $1'); os.chmod('tool', 0o755)"
        # an argument list is started without a shell, so the missing program fails the start
        act = do("terminal/create", command="./tool", args=["made"])
    else:
        question, act = WRITE, ACTS["write"][1]
        make = "os.rmdir('made')"
        question = f"{question}\nos.mkdir('made')"
    turn = await run_turn(hub, session, f"{question}\n{act}\n{make}\n{act}")
    assert "error" in turn.answers[0]
    assert "error" not in turn.answers[1], turn.said
    assert turn.acts == []
    assert (project / "made").is_file()
    events = await history(hub.log, session.id)
    assert len(facts(events, "act_undone")) == 1


async def test_an_approval_of_several_files_covers_each_of_them_once(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    diffs = [{"type": "diff", "path": name, "oldText": None, "newText": "x\n"} for name in ("a", "b")]
    writes = "\n".join(do("fs/write_text_file", path=name, content="x\n") for name in "abc")
    turn = await run_turn(hub, session, f"{ask('c1', title='Work', kind='edit', content=diffs)}\n{writes}")
    assert [(project / name).exists() for name in "abc"] == [True, True, False]
    assert len(turn.acts) == 1
    tally(REFUSED, 1)


async def test_approved_hunks_apply_to_a_file_changed_meanwhile(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    """The user's own change of another line stays, and the approval still covers the edit."""
    (project / "a.txt").write_text(OLD)
    edited = OLD.replace("three", "THREE")
    question = ask("c1", title="Work", **_filled(_diff("two", "TWO", "a.txt"), f="a.txt", project=""))
    write = do("fs/write_text_file", path="a.txt", content=edited.replace("two", "TWO"))
    lost = do("fs/write_text_file", path="a.txt", content=edited.replace("two", "TWO").replace("one", "ONE"))
    turn = await run_turn(hub, session, f"{question}\nopen('a.txt', 'w').write({edited!r})\n{lost}\n{write}")
    assert (project / "a.txt").read_text() == edited.replace("two", "TWO")
    assert len(turn.acts) == 1  # about the wrong one
    (project / "a.txt").write_text(OLD)
    turn = await run_turn(hub, session, f"{question}\nopen('a.txt', 'w').write({edited!r})\n{write}")
    assert (project / "a.txt").read_text() == edited.replace("two", "TWO")
    assert turn.acts == []
    tally(REFUSED, 1)


async def test_a_write_that_changes_nothing_is_not_an_act(hub: Hub, session: HubSession, project: Path) -> None:
    """OpenCode writes a file itself, and then asks its client to write the same text."""
    (project / "a.txt").write_text("same\n")
    turn = await run_turn(hub, session, do("fs/write_text_file", path="a.txt", content="same\n"))
    assert (turn.acts, turn.answers) == ([], [{}])


async def test_a_link_that_is_swapped_after_the_question_is_not_followed(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    for name in ("kept", "shown"):
        (project / name).mkdir()
        (project / name / "a.txt").write_text(OLD)
    (project / "here").symlink_to("shown")
    question = ask("c1", title="Work", kind="edit", rawInput={"file_path": "here/a.txt", "content": "x\n"})
    swap = "os.remove('here'); os.symlink('kept', 'here')"
    turn = await run_turn(
        hub, session, f"{question}\n{swap}\n{do('fs/write_text_file', path='here/a.txt', content='x' + chr(10))}"
    )
    assert len(turn.acts) == 1
    assert (project / "kept" / "a.txt").read_text() == OLD
    tally(REFUSED, 1)


async def test_a_link_that_is_swapped_while_the_hub_asks_is_not_followed(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    for name in ("kept", "shown"):
        (project / name).mkdir()
        (project / name / "a.txt").write_text(OLD)
    (project / "here").symlink_to("shown")

    def swap_and_allow(event: ApprovalRequestedEvent) -> bool:
        (project / "here").unlink()
        (project / "here").symlink_to("kept")
        return True

    write = do("fs/write_text_file", path="here/a.txt", content="x\n")
    turn = await run_turn(hub, session, write, decide_acts=swap_and_allow)
    assert "error" in turn.answers[-1]
    assert [(project / name / "a.txt").read_text() for name in ("kept", "shown")] == [OLD, OLD]
    tally(REFUSED, 1)


async def test_write_through_a_shown_link_needs_no_second_approval(
    hub: Hub, session: HubSession, project: Path
) -> None:
    (project / "real.txt").write_text(OLD)
    (project / "link.txt").symlink_to("real.txt")
    question = ask("c1", title="Work", kind="edit", rawInput={"file_path": "link.txt", "content": NEW})
    turn = await run_turn(hub, session, f"{question}\n{do('fs/write_text_file', path='real.txt', content=NEW)}")
    assert turn.acts == []
    assert (project / "real.txt").read_text() == NEW


@pytest.mark.parametrize("kind", ACTS)
async def test_an_act_that_cannot_be_recorded_is_not_carried_out(
    hub: Hub, session: HubSession, project: Path, kind: str, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    question, act = ACTS[kind]
    whole = hub.log.append_nowait

    def refuse_acts(session_id: str, expected: int, batch: Any, **more: Any) -> Any:
        if any(getattr(event, "event_name", "") == "act_allowed" for event in batch):
            raise LogError("no room")
        return whole(session_id, expected, batch, **more)

    monkeypatch.setattr(hub.log, "append_nowait", refuse_acts)
    with pytest.raises(NotStored):
        await run_turn(hub, session, f"{question}\n{act}\ntime.sleep(.2)")
    assert not (project / "made").exists()
    tally(REFUSED, 1)


# -- while the request is pending --------------------------------------------------------------------------------------

DIFF = {"type": "diff", "path": "a", "oldText": None, "newText": "x"}
MOVE = "*** Begin Patch\n*** Update File: a\n*** Move to: {to}\n@@\n-o\n+{text}\n*** End Patch"
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "command": ({"kind": "execute", "rawInput": {"command": "ls"}}, {"rawInput": {"command": "rm -rf victim"}}),
    "argument list": (
        {"kind": "execute", "rawInput": {"command": ["ls"]}},
        {"rawInput": {"command": ["rm", "-rf", "victim"]}},
    ),
    "directory": (
        {"kind": "execute", "rawInput": {"command": "ls"}},
        {"rawInput": {"command": "ls", "cwd": "sub"}},
    ),
    "variables": (
        {"kind": "execute", "rawInput": {"command": "ls"}},
        {"rawInput": {"command": "ls", "env": {"LD_PRELOAD": "x.so"}}},
    ),
    "first command": ({"kind": "execute"}, {"rawInput": {"command": "rm -rf victim"}}),
    "path": (
        {"kind": "edit", "rawInput": {"file_path": "a", "content": "x"}},
        {"rawInput": {"file_path": "b", "content": "x"}},
    ),
    "content": (
        {"kind": "edit", "rawInput": {"file_path": "a", "content": "x"}},
        {"rawInput": {"file_path": "a", "content": "evil"}},
    ),
    "diff": (
        {"kind": "edit", "content": [{"type": "diff", "path": "a", "oldText": "o", "newText": "x"}]},
        {"content": [{"type": "diff", "path": "a", "oldText": "o", "newText": "evil"}]},
    ),
    "tool arguments": (
        {"kind": "other", "name": "mcp__bank__pay", "rawInput": {"to": "alice"}},
        {"rawInput": {"to": "mallory"}},
    ),
    "tool arguments next to a diff": (
        {"kind": "other", "name": "mcp__bank__pay", "rawInput": {"to": "alice"}, "content": [DIFF]},
        {"rawInput": {"to": "mallory"}},
    ),
    "standard input": (
        {"kind": "execute", "rawInput": {"command": "sh", "stdin": "ls"}},
        {"rawInput": {"command": "sh", "stdin": "rm -rf victim"}},
    ),
    "arguments as text": (
        {"kind": "execute", "rawInput": {"command": "sh", "args": "-c ls"}},
        {"rawInput": {"command": "sh", "args": "-c 'rm -rf victim'"}},
    ),
    "a shell": (
        {"kind": "execute", "rawInput": {"command": "ls", "shell": "/bin/bash"}},
        {"rawInput": {"command": "ls", "shell": "./evil"}},
    ),
    "a switch": (
        {"kind": "execute", "rawInput": {"command": "ls", "with_escalated_permissions": False}},
        {"rawInput": {"command": "ls", "with_escalated_permissions": True}},
    ),
    "text next to a diff": (
        {"kind": "edit", "rawInput": {"file_path": "a", "content": "x"}, "content": [DIFF]},
        {"rawInput": {"file_path": "a", "content": "evil"}},
    ),
    "target of a move": (
        {"kind": "edit", "rawInput": {"input": MOVE.format(to="b", text="x")}},
        {"rawInput": {"input": MOVE.format(to=".git/hooks/x", text="evil")}},
    ),
    "place of an edit": (
        {"kind": "edit", "rawInput": {"file_path": "four", "old_string": "a\nb", "new_string": "z\nb"}},
        {"rawInput": {"file_path": "four", "old_string": "c\na", "new_string": "c\nz"}},
    ),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_call_changed_while_pending_is_requested_again(
    hub: Hub, session: HubSession, project: Path, what: str, tally: Tally
) -> None:
    (project / "four").write_text("a\nb\nc\na\n")
    before, after = CHANGES[what]
    late = f"time.sleep(.2); agent.update('tool_call_update', toolCallId='c1', **{after!r})"
    program = (
        f"import threading\nagent.tool('c1', status='pending', **{before!r})\n"
        f"threading.Thread(target=lambda: exec({late!r}, globals())).start()\n"
        "agent.say(json.dumps(agent.permission('c1')))"
    ).replace("globals()", "{'agent': agent, 'time': time}")
    asked: list[ApprovalRequestedEvent] = []
    prompt = await session.send(program)
    async with asyncio.timeout(PATIENCE):
        async for event in session.events():
            if isinstance(event, ApprovalRequestedEvent):
                asked.append(event)
            if len(asked) == 2:
                break
        first, second = asked
        assert first.request_id != second.request_id
        assert first.preview != second.preview or first.tool_input != second.tool_input
        assert any("changed" in note for note in second.notes)
        record = await hub.log.approvals.get(first.request_id)
        assert record.decision is not None
        assert record.decision["approved"] is False
        await session.decide(second.request_id, approved=False)
        await prompt.done
    tally(REFUSED, 1)
    check(await history(hub.log, session.id))


@pytest.mark.parametrize(
    "after",
    [
        {"title": "Another title"},
        {"status": "in_progress"},
        {"content": [{"type": "diff", "path": "a", "oldText": "o\nrest", "newText": "x\nrest"}]},
        {"rawInput": {"file_path": "a", "old_string": "o", "new_string": "x"}},
        {"locations": [{"path": "a", "line": 3}]},
    ],
)
async def test_a_new_title_status_or_context_does_not_ask_again(
    hub: Hub, session: HubSession, after: dict[str, Any]
) -> None:
    before = {"kind": "edit", "content": [{"type": "diff", "path": "a", "oldText": "o", "newText": "x"}]}
    program = (
        f"import threading\nagent.tool('c1', status='pending', **{before!r})\n"
        f"threading.Timer(.1, lambda: agent.update('tool_call_update', toolCallId='c1', **{after!r})).start()\n"
        "threading.Timer(.2, lambda: agent.say('done')).start()\n"
        "agent.permission('c1')"
    )
    prompt = await session.send(program)
    asked = await approval_asked(session)
    await until(session, "message:delta")
    await session.decide(asked.request_id, approved=True)
    await prompt.done
    events = await history(hub.log, session.id)
    assert len([event for event in events if event.type == "approval:requested"]) == 1


async def test_an_act_before_the_decision_is_asked_about_separately(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    program = (
        "import threading\n"
        "threading.Thread(target=agent.permission, args=('c1',), kwargs=dict(title='Work', kind='execute', "
        "rawInput={'command': 'touch made'})).start()\n"
        f"time.sleep(.1)\n{do('terminal/create', command='touch made')}"
    )
    turn = await run_turn(hub, session, program, decide=lambda event: None)
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    tally(REFUSED, 1)


# -- denied stays denied ----------------------------------------------------------------------------------------------


async def test_a_denied_act_can_be_asked_for_again_and_is_marked(hub: Hub, session: HubSession, project: Path) -> None:
    decisions = [False, True]
    turn = await run_turn(hub, session, f"{WRITE}\n{WRITE}\n{ACTS['write'][1]}", decide=lambda event: decisions.pop(0))
    assert "Denied before in this turn." not in turn.asked[0].notes
    assert "Denied before in this turn." in turn.asked[1].notes
    assert (project / "made").read_text() == "x\n"


async def test_a_corrected_edit_is_written_and_the_denied_one_is_not(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    corrected = ask("c2", title="Work", kind="edit", rawInput={"file_path": "made", "content": "better\n"})
    decisions = [False, True]
    first = do("fs/write_text_file", path="made", content="x\n")
    second = do("fs/write_text_file", path="made", content="better\n")
    third = do("fs/write_text_file", path="made", content="another\n")
    turn = await run_turn(
        hub,
        session,
        f"{WRITE}\n{corrected}\n{first}\n{second}\n{third}",
        decide=lambda event: decisions.pop(0),
    )
    assert (project / "made").read_text() == "better\n"
    assert ["error" in answer for answer in turn.answers] == [True, False, True]
    assert turn.acts == []
    tally(REFUSED, 2)


@pytest.mark.parametrize("spelling", ["touch  made", "/usr/bin/touch made", "touch ./made", "bash -c 'touch made'"])
async def test_a_denied_command_does_not_run_in_another_spelling(
    hub: Hub, session: HubSession, project: Path, spelling: str, tally: Tally
) -> None:
    turn = await run_turn(hub, session, f"{COMMAND}\n{do('terminal/create', command=spelling)}", deny)
    assert not (project / "made").exists()
    assert "error" in turn.answers[-1]
    tally(REFUSED, 1)


# -- cancel -----------------------------------------------------------------------------------------------------------

STUBBORN = (
    "import subprocess\n"
    "a = agent.request('terminal/create', command='sh', "
    "args=['-c', \"trap '' TERM; (setsid sleep 61 &) ; touch begun; sleep 62\"])\n"
    "while not os.path.exists('begun'): time.sleep(.01)\n"
    "agent.say('begun')\n"
)


async def test_cancel_stops_programs_of_the_turn_and_refuses_new_acts(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    program = (
        f"{STUBBORN}agent.cancelled.wait()\n"
        "for i in range(3):\n"
        "    agent.request('terminal/create', command='touch late')\n"
        "    agent.request('fs/write_text_file', path='late.txt', content='x')\n"
        "result = {'stopReason': 'cancelled'}\n"
        "after = \"agent.request('terminal/create', command='touch later'); "
        "agent.request('fs/write_text_file', path='later.txt', content='x')\""
    )
    session.set_policy(_everything())
    prompt = await session.send(program)
    async with asyncio.timeout(PATIENCE):
        await session.decide((await approval_asked(session)).request_id, approved=True)
        await until(session, "message:delta")
        assert await session.cancel() is True
        assert (await prompt.done).stop_reason == "cancelled"
    assert not _running("sleep 61")
    assert not _running("sleep 62")
    await asyncio.sleep(0.3)
    assert not [place.name for place in project.iterdir() if "late" in place.name]
    tally(REFUSED, 8)
    # the next turn is served again
    await session.prompt(do("fs/write_text_file", path="next.txt", content="x"))
    assert (project / "next.txt").exists()


def _everything() -> Any:
    from pilothouse.model.policy import parse_policy

    return parse_policy({"autoApprove": {"writes": True, "commands": ["touch *"]}})


def _running(command: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if line == command:
            found.append(str(place))
    return found


async def test_a_program_that_is_cancelled_ends_before_its_turn(hub: Hub, session: HubSession) -> None:
    program = (
        "agent.request('terminal/create', command='echo on; sleep 60')\nagent.cancelled.wait()\n"
        "result = {'stopReason': 'cancelled'}"
    )
    async with asyncio.timeout(PATIENCE):
        prompt = await session.send(program)
        await session.decide((await approval_asked(session)).request_id, approved=True)
        await until(session, lambda event: getattr(event, "output", None) == "on\n")
        await session.cancel()
        await prompt.done
    events = await history(hub.log, session.id)
    check(events)
    (end,) = (event for event in events if event.type == "tool:error")
    assert end.error.code == "tool_failed"  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_approved", [False, True])
async def test_an_act_that_the_agent_withdraws_ends_at_once(
    hub: Hub, session: HubSession, project: Path, monkeypatch: pytest.MonkeyPatch, is_approved: bool
) -> None:
    """Even if the decision was made, and is on its way to the log."""
    waiting: list[asyncio.Task[Any]] = []
    wait, record = Approvals._wait, Recorder.record

    async def note_task(self: Approvals, pending: Any) -> dict[str, Any]:
        waiting.append(asyncio.current_task())  # type: ignore[arg-type]
        return await wait(self, pending)

    def withdraw(self: Recorder, events: Any, **options: Any) -> None:
        record(self, events, **options)
        if is_approved and any(event.type == "approval:resolved" for event in events):
            waiting[-1].cancel()

    monkeypatch.setattr(Approvals, "_wait", note_task)
    monkeypatch.setattr(Recorder, "record", withdraw)
    program = (
        "import threading\n"
        "params = {'sessionId': agent.session, 'command': 'touch made'}\n"
        "asking = threading.Thread(target=lambda: agent.call('terminal/create', params, 'r1'), daemon=True)\n"
        "asking.start()\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        "agent.send({'method': '$/cancel_request', 'params': {'requestId': 'r1'}})\n"
        "asking.join()"
    )
    async with asyncio.timeout(PATIENCE):
        prompt = await session.send(program)
        event = await approval_asked(session)
        if is_approved:
            await session.decide(event.request_id, approved=True)
        (project / "go").touch()
        await prompt.done
    events = await history(hub.log, session.id)
    check(events)
    (end,) = (event for event in events if event.type == "tool:error")
    assert end.error.code == "tool_failed"  # type: ignore[attr-defined]
    assert facts(events, "acted_without_asking") == []
    assert not (project / "made").exists()


async def test_a_question_about_an_act_is_cancelled_with_its_turn(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    prompt = await session.send(do("terminal/create", command="touch made"))
    async with asyncio.timeout(PATIENCE):
        asked = await approval_asked(session)
        await session.cancel()
        await prompt.done
    record = await hub.log.approvals.get(asked.request_id)
    assert record.decision is not None
    assert record.decision["resolvedBy"] == "cancelled"
    assert not (project / "made").exists()
    tally(REFUSED, 1)
    check(await history(hub.log, session.id))


# -- the record ------------------------------------------------------------------------------------------------------


async def test_each_act_is_logged_with_its_permission(hub: Hub, session: HubSession, project: Path) -> None:
    turn = await run_turn(hub, session, f"{COMMAND}\n{ACTS['command'][1]}")
    await run_turn(hub, session, do("fs/write_text_file", path="b.txt", content="x"), decide_acts=allow)
    first, second = facts(await history(hub.log, session.id), "act_allowed")
    assert (first["act"], first["command"], first["approvalId"]) == ("command", "touch made", turn.asked[0].request_id)
    assert (second["act"], Path(second["path"]).name) == ("write", "b.txt")
    for fact in (first, second):
        record = await hub.log.approvals.get(fact["approvalId"])
        assert record.decision is not None
        assert record.decision["approved"] is True


async def test_hub_request_diffs_against_the_current_file(hub: Hub, session: HubSession, project: Path) -> None:
    (project / "a.txt").write_text(OLD)
    question = ask("c1", title="Work", kind="edit", rawInput={"file_path": "a.txt", "content": NEW})
    turn = await run_turn(
        hub, session, f"{question}\n{do('fs/write_text_file', path='a.txt', content='evil' + chr(10))}"
    )
    (act,) = turn.acts
    assert "-two" in str(turn.asked[0].preview)
    assert "+evil" in str(act.preview)
    assert "-one" in str(act.preview)
    assert "not the change that you allowed" in " ".join(act.notes)


POINTS: dict[str, tuple[type, str, bool]] = {
    "when the approval is given": (Authorization, "allow", False),
    "while the act is being recorded": (Recorder, "note", False),
    "while a file is being written": (Workspace, "write_text", True),
    "while a program is being started": (Terminals, "start", True),
}


@pytest.mark.parametrize("point", POINTS)
async def test_cancel_at_any_point_leaves_no_act_unrecorded(
    hub: Hub, session: HubSession, project: Path, point: str, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    owner, name, may_happen = POINTS[point]
    whole = getattr(owner, name)
    cancels: list[asyncio.Task[bool]] = []

    def cancel_first(self: Any, *args: Any, **more: Any) -> Any:
        if (name != "note" or args[0] == "act_allowed") and not cancels:
            cancels.append(asyncio.get_running_loop().create_task(session.cancel()))
        return whole(self, *args, **more)

    monkeypatch.setattr(owner, name, cancel_first)
    kind = "write" if owner is Workspace else "command"
    question, _ = ACTS[kind]
    method, params = ("fs/write_text_file", {"path": "made", "content": "x\n"})
    if kind == "command":
        method, params = ("terminal/create", {"command": "touch made"})
    program = (
        f"{question}\nagent.request({method!r}, **{params!r})\ntime.sleep(.3)\n"
        f"agent.request({method!r}, **{params!r})\nresult = {{'stopReason': 'cancelled'}}"
    )
    turn = await run_turn(hub, session, program)
    assert turn.stop_reason == "cancelled"
    await asyncio.wait(cancels)
    events = await history(hub.log, session.id)
    undone = {fact["actId"] for fact in facts(events, "act_undone")}
    done = [fact for fact in facts(events, "act_allowed") if fact["actId"] not in undone]
    assert len(done) <= (1 if may_happen else 0)
    assert (project / "made").exists() <= bool(done)
    assert turn.acts == []
    tally(REFUSED, 1 if may_happen else 2)
    check(events)


# -- modes ------------------------------------------------------------------------------------------------------------

MODE = "agent.update('current_mode_update', currentModeId={mode!r})"


@pytest.mark.parametrize(("covers", "asks"), [("everything", 0), ("writes", 1)])
async def test_a_mode_that_the_user_chose_permits_acts_and_is_logged(
    tmp_path: Path, project: Path, covers: Literal["everything", "writes"], asks: int
) -> None:
    acts = f"{do('fs/write_text_file', path='a.txt', content='x')}\n{do('terminal/create', command='touch made')}"
    behavior = PermissionBehavior(modes_without_approval={"yolo": covers})
    async with rogue_hub(tmp_path / "home", behavior=behavior) as hub:
        session = await hub.start_session("rogue", project)
        await session.set_mode("yolo")
        turn = await run_turn(hub, session, acts)
        assert len(turn.acts) == asks
        assert (project / "a.txt").exists()
        assert (project / "made").exists() == (covers == "everything")
        permitted = facts(await history(hub.log, session.id), "act_allowed")
        assert {fact["mode"] for fact in permitted} == {"yolo"}
    async with rogue_hub(tmp_path / "home", behavior=behavior) as hub:
        session = await hub.session(session.id)
        turn = await run_turn(hub, session, acts.replace("a.txt", "b.txt"))
        assert len(turn.acts) == asks  # the choice is in the log


@pytest.mark.parametrize(
    "program",
    [
        MODE.format(mode="yolo"),
        f"{MODE.format(mode='yolo')}\n{MODE.format(mode='code')}\n{MODE.format(mode='yolo')}",
    ],
)
@pytest.mark.parametrize("chosen", [None, "yolo"])
async def test_a_mode_that_the_agent_entered_by_itself_permits_nothing(
    hub: Hub, session: HubSession, project: Path, program: str, chosen: str | None, tally: Tally
) -> None:
    if chosen is not None:
        await session.set_mode(chosen)
    turn = await run_turn(hub, session, f"{program}\n{do('terminal/create', command='touch made')}")
    is_users = chosen == "yolo" and "code" not in program
    assert len(turn.acts) == (0 if is_users else 1)
    assert (project / "made").exists() == is_users
    tally(REFUSED, 0 if is_users else 1)


# -- found by attacks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("announced", "act"),
    [
        ({"command": "touch made", "cwd": "sub"}, {"command": "touch made"}),
        ({"command": "touch made", "env": {"DRY_RUN": "1"}}, {"command": "touch made"}),
        ({"command": "touch made"}, {"command": "touch made", "env": [{"name": "EVIL", "value": "1"}]}),
        (
            {"command": "touch made", "file_path": "f", "content": "x"},
            {"command": "touch made", "cwd": "{project}/sub"},
        ),
    ],
)
async def test_hub_request_shows_the_act_not_the_agents_call(
    hub: Hub, session: HubSession, project: Path, announced: dict[str, Any], act: dict[str, Any]
) -> None:
    act = _filled(act, project=str(project))
    call = f"agent.tool('c1', status='pending', kind='execute', rawInput={announced!r})"
    turn = await run_turn(hub, session, f"{call}\n{do('terminal/create', **act)}")
    (question,) = turn.acts
    assert isinstance(question.preview, CommandPreview)
    assert question.preview.working_dir == act.get("cwd", str(project))
    assert ("EVIL=1" in question.preview.command) == ("env" in act)
    assert "DRY_RUN" not in question.preview.command


@pytest.mark.parametrize("blank", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u2003", "\u3000"])
async def test_unusual_blank_is_part_of_the_command(
    hub: Hub, session: HubSession, project: Path, blank: str, tally: Tally
) -> None:
    for command in (f"touch made{blank}", f"{blank}touch made"):
        turn = await run_turn(hub, session, f"{COMMAND}\n{do('terminal/create', command='bash', args=['-c', command])}")
        assert len(turn.acts) == 1
        assert [place.name for place in project.iterdir()] == ["sub"]
        tally(REFUSED, 1)


ODD_FILES = {
    "a file outside": [{"type": "diff", "path": "/etc/hostname", "oldText": "a", "newText": "b"}],
    "a binary file": [{"type": "diff", "path": "binary", "oldText": None, "newText": "b"}],
    "a false text": [{"type": "diff", "path": "other.txt", "oldText": "nope", "newText": "b"}],
}


@pytest.mark.parametrize("odd", ODD_FILES)
async def test_unreadable_file_does_not_hide_other_files_in_the_preview(
    hub: Hub, session: HubSession, project: Path, odd: str
) -> None:
    (project / "binary").write_bytes(b"\x00\xff\x00")
    (project / "other.txt").write_text("text\n")
    (project / "imp.py").write_text("precious\n")
    diffs = [*ODD_FILES[odd], {"type": "diff", "path": "imp.py", "oldText": None, "newText": "tiny\n"}]
    turn = await run_turn(hub, session, ask("c1", title="Work", kind="edit", content=diffs))
    assert "-precious" in str(turn.asked[0].preview)
    assert any("exists" in reason for reason in turn.asked[0].risk_reasons)


async def test_a_file_that_cannot_be_read_is_never_covered(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    (project / "binary").write_bytes(b"\x00\xff\x00")
    question = ask("c1", title="Work", kind="edit", rawInput={"file_path": "binary", "content": "x\n"})
    turn = await run_turn(hub, session, f"{question}\n{do('fs/write_text_file', path='binary', content='x' + chr(10))}")
    assert len(turn.acts) == 1
    assert any("could not be read" in reason for reason in turn.acts[0].risk_reasons)
    assert (project / "binary").read_bytes() == b"\x00\xff\x00"
    tally(REFUSED, 1)


async def test_cancel_kills_orphaned_children(hub: Hub, session: HubSession, project: Path, tally: Tally) -> None:
    line = "(sleep 2; touch late) >/dev/null 2>&1 </dev/null & exit 0"
    program = (
        f"{ask('c1', title='Work', kind='execute', rawInput={'command': line})}\n"
        f"{do('terminal/create', command=line)}\nagent.cancelled.wait()\nresult = {{'stopReason': 'cancelled'}}"
    )
    prompt = await session.send(program)
    async with asyncio.timeout(PATIENCE):
        await session.decide((await approval_asked(session)).request_id, approved=True)
        await until(session, "message:delta")
        await session.cancel()
        await prompt.done
    await asyncio.sleep(2.3)
    assert not (project / "late").exists()
    tally(REFUSED, 1)


async def test_other_line_ends_are_not_written_without_a_question(hub: Hub, session: HubSession, project: Path) -> None:
    (project / "run.sh").write_bytes(b"#!/bin/sh\n")
    for content in ("#!/bin/sh\r\n", "\ufeff#!/bin/sh\n"):
        await run_turn(hub, session, do("fs/write_text_file", path="run.sh", content=content))
        assert (project / "run.sh").read_bytes() == b"#!/bin/sh\n"


async def test_a_change_that_is_too_large_to_show_says_so(hub: Hub, session: HubSession, project: Path) -> None:
    content = "line\n" * 60_000 + "EVIL\n"
    turn = await run_turn(
        hub, session, ask("c1", title="Work", kind="edit", rawInput={"file_path": "big", "content": content})
    )
    assert "EVIL" not in str(turn.asked[0].preview)
    assert any("not shown" in reason for reason in turn.asked[0].risk_reasons)


async def test_a_program_with_blanks_in_its_name_is_shown_quoted(hub: Hub, session: HubSession, project: Path) -> None:
    raw = {"command": "./tool --check", "args": ["src"]}
    turn = await run_turn(hub, session, ask("c1", title="Work", kind="execute", rawInput=raw))
    assert turn.asked[0].preview.command == "'./tool --check' src"  # type: ignore[union-attr]


async def test_a_command_that_is_shown_once_runs_once(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    command = {"command": "touch made", "cmd": ["touch", "made"]}
    question = ask("c1", title="Work", kind="execute", rawInput={**command, "arguments": command})
    act = ACTS["command"][1]
    turn = await run_turn(hub, session, f"{question}\n{act}\nos.remove('made')\n{act}")
    assert len(turn.acts) == 1
    assert not (project / "made").exists()
    tally(REFUSED, 1)


async def test_commands_in_several_directories_show_each_of_them(hub: Hub, session: HubSession) -> None:
    raw = {"command": "true", "cwd": "sub", "arguments": {"command": "touch made"}}
    turn = await run_turn(hub, session, ask("c1", title="Work", kind="execute", rawInput=raw))
    assert turn.asked[0].preview.command == "cd sub && true\ntouch made"  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ACTS)
async def test_a_later_denial_withdraws_an_unused_approval(
    hub: Hub, session: HubSession, project: Path, kind: str, tally: Tally
) -> None:
    question, act = ACTS[kind]
    decisions = [True, False]
    again = question.replace("'c1'", "'c2'")
    turn = await run_turn(hub, session, f"{question}\n{again}\n{act}", decide=lambda event: decisions.pop(0))
    assert "error" in turn.answers[-1]
    assert not (project / "made").exists()
    tally(REFUSED, 1)


async def test_a_directory_that_is_swapped_while_the_hub_asks_is_not_used(
    hub: Hub, session: HubSession, project: Path, tmp_path: Path, tally: Tally
) -> None:
    def swap_and_allow(event: ApprovalRequestedEvent) -> bool:
        (project / "sub").rename(project / "away")
        (project / "sub").symlink_to(tmp_path)
        return True

    act = do("terminal/create", command="touch made", cwd=str(project / "sub"))
    turn = await run_turn(hub, session, act, decide_acts=swap_and_allow)
    assert "error" in turn.answers[-1]
    assert not (tmp_path / "made").exists()
    tally(REFUSED, 1)


async def test_a_replacement_everywhere_covers_only_the_places_that_were_shown(
    hub: Hub, session: HubSession, project: Path, tally: Tally
) -> None:
    (project / "a.ini").write_text("debug=0\n")
    raw = {"file_path": "a.ini", "old_string": "=0", "new_string": "=1", "replace_all": True}
    change = "open('a.ini', 'w').write('debug=0' + chr(10) + 'admin=0' + chr(10))"
    write = do("fs/write_text_file", path="a.ini", content="debug=1\nadmin=1\n")
    turn = await run_turn(hub, session, f"{ask('c1', title='Work', kind='edit', rawInput=raw)}\n{change}\n{write}")
    assert len(turn.acts) == 1
    assert "admin=0" in (project / "a.ini").read_text()
    tally(REFUSED, 1)


async def test_a_harmless_variable_that_was_shown_asks_nothing_again(
    hub: Hub, session: HubSession, project: Path
) -> None:
    raw = {"command": "touch made", "env": {"NO_COLOR": "1"}}
    act = do("terminal/create", command="touch made", env=[{"name": "NO_COLOR", "value": "1"}])
    turn = await run_turn(hub, session, f"{ask('c1', title='Work', kind='execute', rawInput=raw)}\n{act}")
    assert turn.acts == []
    assert (project / "made").exists()


CRITICAL = {"title": "Work", "kind": "execute", "rawInput": {"command": "rm -rf ~ /"}}
CRITICAL_MODE = {"title": "ExitPlanMode", "name": "ExitPlanMode", "kind": "execute", "rawInput": {"code": "rm -rf ~ /"}}
"""Looks like a choice of modes, whose options need no rule."""


@pytest.mark.parametrize("kind", ["allow_always", "allow_forever"])
@pytest.mark.parametrize("call", [CRITICAL, CRITICAL_MODE])
async def test_a_critical_request_is_never_allowed_for_good(
    hub: Hub, session: HubSession, kind: str, call: dict[str, Any], tally: Tally
) -> None:
    options = [
        {"optionId": "all", "name": "Deny", "kind": kind},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    prompt = await session.send(f"agent.permission('c1', {options!r}, **{call!r})")
    asked = await approval_asked(session)
    assert (asked.risk_level, asked.chooses_mode) == ("critical", False)
    assert asked.options[0].is_misleading
    for decision in ({"option_id": "all"}, {"approved": True}, {"approved": True, "remember": "session"}):
        with pytest.raises(IllegalCommand):
            await session.decide(asked.request_id, **decision)
        tally(REFUSED, 1)
    await session.decide(asked.request_id, approved=False)
    await prompt.done
