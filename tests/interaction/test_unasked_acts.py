"""The flag "acted without asking": once for each call that acted without permission, and for no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.catalog import PermissionBehavior
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.policy import parse_policy
from tests.support.hubs import approval_asked, check, fact, facts, history, until
from tests.support.rogue import allow, ask, deny, do, rogue_hub, run_turn


async def flags(hub: Hub, session: HubSession) -> list[dict[str, Any]]:
    events = await history(hub.log, session.id)
    check(events)
    return facts(events, "acted_without_asking")


def call(call_id: str = "c1", end: str | None = "completed", **fields: Any) -> str:
    """Lines of a program: a call that runs without a request, and its final status."""
    shown = {"title": "Work", "status": "in_progress", **fields}
    start = f"agent.update('tool_call', toolCallId={call_id!r}, **{shown!r})"
    if end is None:
        return start
    return f"{start}\nagent.update('tool_call_update', toolCallId={call_id!r}, status={end!r})"


def announce(call_id: str = "c1", **fields: Any) -> str:
    shown = {"title": "Work", **fields}
    return f"agent.update('tool_call', toolCallId={call_id!r}, **{shown!r})"


def update(call_id: str = "c1", **fields: Any) -> str:
    return f"agent.update('tool_call_update', toolCallId={call_id!r}, **{fields!r})"


def run(command: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "execute", "rawInput": {"command": command, **fields}}


def edit(**fields: Any) -> dict[str, Any]:
    return {"kind": "edit", "rawInput": {"file_path": "a.txt", **fields}}


def diff(path: str, old: str | None, new: str) -> list[dict[str, Any]]:
    return [{"type": "diff", "path": path, "oldText": old, "newText": new}]


def output(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def program(*lines: str) -> str:
    return "\n".join(lines)


PAY = {"kind": "other", "name": "mcp__bank__pay", "rawInput": {"to": "alice"}}
MADE = "open('a.txt', 'w').write('one' + chr(10) + 'two' + chr(10))"
INSERTED = "open('a.txt', 'w').write('one' + chr(10) + 'evil' + chr(10) + 'two' + chr(10))"
INSERTION = edit(old_string="one", new_string="one\nevil")
COMMAND = run("touch made")
WRITE = {"kind": "edit", "rawInput": {"file_path": "made.txt", "content": "x\n"}}
OTHER_COMMAND = ask("q1", title="Work", kind="execute", rawInput={"command": "touch other"})

FLAGGED: dict[str, str] = {
    "a command": call(**COMMAND),
    "a write": call(**WRITE),
    "a diff": call(kind="edit", content=[{"type": "diff", "path": "a", "oldText": None, "newText": "x"}]),
    "a tool of a server": call(kind="other", name="mcp__bank__pay", rawInput={"to": "mallory"}),
    "a failed command": call(end="failed", **COMMAND),
    "a command with an exit code": (
        f"agent.tool('c1', status='in_progress', **{COMMAND!r})\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed', rawOutput={'exit_code': 3})"
    ),
    "a write that is said to have failed": f"open('made.txt', 'w').write('x' + chr(10))\n{call(end='failed', **WRITE)}",
    "a command that never ends": call(end=None, **COMMAND),
    "a command without a status": f"agent.tool('c1', **{COMMAND!r})",
    "a command after another was allowed": f"{OTHER_COMMAND}\n{call(**COMMAND)}",
    "a command that changed after it was allowed": (
        f"{ask('c1', title='Work', kind='execute', rawInput={'command': 'ls'})}\n"
        f"agent.update('tool_call_update', toolCallId='c1', status='completed', rawInput={{'command': 'touch made'}})"
    ),
    "a text that changed after it was allowed": (
        f"{ask('c1', title='Work', **WRITE)}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed', "
        "rawInput={'file_path': 'made.txt', 'content': 'y'})"
    ),
    "a tool whose arguments changed after it was allowed": (
        f"{ask('c1', title='Pay', kind='other', name='mcp__bank__pay', rawInput={'to': 'alice'})}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed', rawInput={'to': 'mallory'})"
    ),
    "a command in another directory than was allowed": (
        f"{ask('c1', title='Work', **COMMAND)}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed', "
        "rawInput={'command': 'touch made', 'cwd': '/tmp'})"
    ),
    "a diff of another file than was allowed": (
        f"{ask('c1', title='Work', **WRITE)}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed', "
        "content=[{'type': 'diff', 'path': 'other.txt', 'oldText': None, 'newText': 'x'}])"
    ),
    "a diff of a read": call(kind="read", content=[{"type": "diff", "path": "a", "oldText": None, "newText": "x"}]),
    "an id that is used again": (
        f"{ask('c1', title='Pay', kind='other', name='mcp__bank__pay', rawInput={'to': 'alice'})}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed')\n"
        f"{call(kind='other', name='mcp__bank__pay', rawInput={'to': 'mallory'})}"
    ),
    "a command that was refused by the system": (
        f"agent.tool('c1', status='in_progress', **{COMMAND!r})\n"
        "agent.update('tool_call_update', toolCallId='c1', status='failed', content=[{'type': 'content', "
        "'content': {'type': 'text', 'text': 'touch: made: Permission denied'}}])"
    ),
    "a command that failed with a message like a refusal": (
        f"agent.tool('c1', status='in_progress', **{COMMAND!r})\n"
        "agent.update('tool_call_update', toolCallId='c1', status='failed', content=[{'type': 'content', "
        "'content': {'type': 'text', 'text': 'Exit code 1: push declined, 403 Forbidden'}}])"
    ),
    "a tool with more arguments than were approved": (
        f"{ask('c1', title='Pay', kind='other', name='mcp__bank__pay', rawInput={'to': 'alice'})}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed', "
        "rawInput={'to': 'alice', 'amount': 1000000})"
    ),
    "a command with standard input that was not shown": (
        f"{ask('c1', title='Run', kind='execute', rawInput={'command': 'sh'})}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed', "
        "rawInput={'command': 'sh', 'stdin': 'touch made'})"
    ),
    "a command under the name of a reading tool": call(name="Read", rawInput={"command": "touch made"}),
    "a command of another session that never ends": (
        f"agent.session, own = 'other', agent.session\n{call(end=None, **COMMAND)}\nagent.session = own"
    ),
    "an approved command in another directory under another id": program(
        ask("q1", title="Work", **run("make clean")), call(**run("make clean", cwd="/tmp"))
    ),
    "an approved command with other variables under another id": program(
        ask("q1", title="Work", **run("make clean")), call(**run("make clean", env={"LD_PRELOAD": "/tmp/x.so"}))
    ),
    "an approved command with standard input under another id": program(
        ask("q1", title="Work", **run("sh")), call(**run("sh", stdin="touch made"))
    ),
    "an approved command with a switch that was not shown": program(
        ask("c1", title="Work", **run("touch made")),
        update(status="completed", rawInput={"command": "touch made", "dangerouslyDisableSandbox": True}),
    ),
    "another diff of an approved file": program(
        ask("q1", title="Work", **WRITE), call(kind="edit", content=diff("made.txt", None, "evil\n"))
    ),
    "another edit of an approved file": program(
        MADE,
        ask("q1", title="Work", **edit(old_string="one", new_string="uno")),
        call(**edit(old_string="zzz", new_string="evil")),
    ),
    "one approval of a command through the hub for two calls": program(
        ask("c1", title="Work", **COMMAND),
        announce("c2", status="in_progress", **COMMAND),
        do("terminal/create", command="touch made"),
        update("c2", status="completed"),
        update("c1", status="completed"),
    ),
    "other input after the end of a read": program(
        announce(kind="read", title="Read", status="completed", rawInput={"file_path": "a"}),
        update(kind="execute", rawInput={"command": "touch made"}),
    ),
    "other input after the end of an approved call": program(
        ask("c1", title="Work", **COMMAND),
        update(status="completed"),
        update(status="completed", rawInput={"command": "touch evil"}),
        update(status="completed", rawInput={"command": "touch evil2"}),
    ),
    "a diff after the end of a read": program(
        announce(kind="read", title="Read", status="completed", rawInput={"file_path": "a"}),
        update(content=diff("a", None, "evil\n")),
    ),
    "an insertion that is said to have failed": program(INSERTED, call(end="failed", **INSERTION)),
    "a deletion that is said to have failed": program(
        call(end="failed", kind="delete", rawInput={"file_path": "gone.txt"})
    ),
    "a shell call without a command": announce(kind="execute", title="Bash", status="completed"),
    "a tool of a server without arguments that failed": program(
        announce(kind="other", name="mcp__bank__close", title="x", status="in_progress"),
        update(status="failed", content=output("closed, but no receipt")),
    ),
    "a part of an approved script in another directory": program(
        ask("q1", title="x", **run("touch a\ntouch b")), call(**run("touch b", cwd="/tmp"))
    ),
    "a shell call with empty input": call(kind="execute", name="Bash", title="Terminal", rawInput={}),
    "a tool of a server under a harmless kind": call(**{**PAY, "kind": "read"}),
    "a command under the name of a harmless tool": call(name="KillShell", **run("touch made")),
    "a diff under the name of a harmless tool": call(name="Skill", kind="edit", content=diff("a", None, "x")),
    "a sub-agent that became a tool of a server": program(
        ask("c1", title="Task", kind="think", name="Task", rawInput={"prompt": "x", "subagent_type": "general"}),
        update(status="completed", **PAY),
    ),
    "one command among many reads": program(
        call(end=None, **COMMAND),
        "for i in range(1100): agent.tool(f'r{i}', kind='read', status='in_progress', rawInput={'file_path': 'a'})",
        update(status="completed"),
    ),
    "a command that only the title shows": call(kind="execute", title="touch made"),
    "a harmless title that becomes a command": program(
        announce(title="echo hi", kind="execute", status="in_progress"), update(title="touch made", status="completed")
    ),
    "a command whose title becomes harmless": program(
        announce(title="touch made", kind="execute", status="in_progress"), update(title="echo hi", status="completed")
    ),
    "a harmless tool that becomes a tool of a server": program(
        announce(title="skill", kind="other", status="in_progress", rawInput={"name": "x"}),
        update(status="completed", **PAY),
    ),
    "a command in the name of another session": (
        f"agent.session, own = 'other', agent.session\n{call(**COMMAND)}\nagent.session = own"
    ),
}
DESCRIBED = "f'[current working directory {os.getcwd()}] (Run a command)'"
UNFLAGGED: dict[str, str] = {
    "a harmless command that only the title shows": program(
        f"text = {{'type': 'text', 'text': {DESCRIBED}}}",
        "call = {'title': 'echo hi', 'kind': 'execute', 'content': [{'type': 'content', 'content': text}]}",
        "agent.update('tool_call', toolCallId='c1', status='in_progress', **call)",
        update(title="echo hi", status="completed", content=[]),
    ),
    "a harmless command that fails, known to run only by its end": program(
        announce(title="Terminal", kind="execute", status="pending", rawInput={}),
        update(title="git status", rawInput={"command": "git status"}),
        update(status="failed", content=output("```\nExit code 128\nfatal: not a git repository\n```")),
    ),
    "a call of another session that only its request shows": program(
        "agent.session, own = 'other', agent.session",
        ask("s1", title="Work", **COMMAND),
        update("s1", status="completed"),
        "agent.session = own",
    ),
    "a command that its request quotes in another way": program(
        announce(title="x", status="in_progress", **run("X=1 sh -c 'echo $X > made'")),
        ask("c1", title="x", **run("\"X=1 sh -c 'echo \"'$X > made'\"'\"")),
        update(status="completed"),
    ),
    "rejected calls of which only the failure is reported": program(
        update("c1", kind="edit", status="failed", content=output("Path not in workspace: it leads outside")),
        update("c2", kind="other", status="failed", content=output("params/name must be one of the allowed values")),
    ),
    "harmless tools whose titles change": program(
        announce("o1", title="NoSuchTool", kind="other", rawInput={}),
        update("o1", title="invalid", status="in_progress", rawInput={"tool": "NoSuchTool", "error": "x"}),
        update("o1", title="Invalid Tool", status="completed"),
        announce("o2", title="skill", kind="other", status="in_progress", rawInput={"name": "git-release"}),
        update("o2", title="Loaded skill: git-release", status="completed"),
    ),
    "a shell that is stopped": call(name="KillShell", kind="execute", rawInput={"shell_id": "7"}),
    "a read": call(kind="read", rawInput={"file_path": "a.txt"}),
    "a search": call(kind="search", rawInput={"pattern": "x", "path": "."}),
    "a harmless command": call(kind="execute", rawInput={"command": "echo hello && ls -la"}),
    "a to-do list": call(kind="other", title="todo: todo write", rawInput={"todos": [{"content": "x"}]}),
    "a plan": call(kind="other", name="update_plan", rawInput={"plan": [{"step": "x"}]}),
    "a sub-agent": call(kind="think", name="Task", rawInput={"description": "x", "subagent_type": "general"}),
    "a thought": call(kind="think", rawInput={}),
    "an allowed command": f"{ask('c1', title='Work', **COMMAND)}\n{call(**COMMAND)}",
    "an allowed command under another id": f"{ask('edit-approval-1', title='Work', **COMMAND)}\n{call(**COMMAND)}",
    "an allowed write under another id": f"{ask('edit-approval-1', title='Work', **WRITE)}\n{call(**WRITE)}",
    "a write through the hub": (
        f"agent.tool('c1', status='in_progress', **{WRITE!r})\n"
        f"{do('fs/write_text_file', path='made.txt', content='x' + chr(10))}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed')"
    ),
    "a command through the hub": (
        f"agent.tool('c1', status='in_progress', **{COMMAND!r})\n{do('terminal/create', command='touch made')}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed')"
    ),
    "a command through the hub that only the title shows": (
        "agent.tool('c1', status='in_progress', kind='execute')\n"
        "agent.update('tool_call_update', toolCallId='c1', title='touch made')\n"
        f"{do('terminal/create', command='touch made')}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed')"
    ),
    "a command whose output looks like a command": (
        f"{ask('c1', title='Work', **COMMAND)}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed', content=[{'type': 'content', "
        "'content': {'type': 'text', 'text': '```console' + chr(10) + 'rm -rf x' + chr(10) + '```'}}])"
    ),
    "a read that is named like a command": call(kind="read", title="Read file a.txt", name="Bash"),
    "a text that a formatter changed": (
        f"{ask('c1', title='Work', **WRITE)}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='completed', "
        "content=[{'type': 'diff', 'path': 'made.txt', 'oldText': None, 'newText': 'X' + chr(10)}])"
    ),
    "a view of the text editor tool": call(kind="other", name="text_editor", rawInput={"command": "view", "path": "a"}),
    "an insertion that did nothing": program(MADE, call(end="failed", **INSERTION)),
    "a deletion of a file that is not there": program(
        call(end=None, kind="delete", rawInput={"file_path": "gone.txt"}),
        update(status="failed", content=output("ENOENT: no such file or directory")),
    ),
    "a tool of a server that was approved under another id": program(ask("q1", title="Pay", **PAY), call(**PAY)),
    "a request under another id and its call without a status": program(
        ask("edit-approval-1", title="Work", **WRITE), announce(title="write", **WRITE)
    ),
    "two edits of one file, each approved under another id": program(
        MADE,
        ask("q1", title="Work", **edit(old_string="one", new_string="uno")),
        call("c1", **edit(old_string="one", new_string="uno")),
        ask("q2", title="Work", **edit(old_string="two", new_string="due")),
        call("c2", **edit(old_string="two", new_string="due")),
    ),
    "a write that the agent makes again through the hub": program(
        ask("c1", title="Work", **WRITE),
        do("fs/write_text_file", path="made.txt", content="x\n"),
        do("fs/write_text_file", path="made.txt", content="x\n"),
        update(status="completed"),
    ),
    "a snippet of an approved whole file": program(
        MADE,
        ask("c1", title="edit", kind="edit", content=diff("a.txt", "one\ntwo\n", "uno\ntwo\n")),
        update(status="completed", content=diff("a.txt", "one", "uno")),
    ),
    "an approved deletion of a link": program(
        "open('real.txt', 'w').close(); os.symlink('real.txt', 'link.txt')",
        ask("c1", title="Delete", kind="delete", rawInput={"file_path": "link.txt"}),
        "os.remove('link.txt')",
        update(status="completed"),
    ),
    "an approved write that replaces a link": program(
        "open('real.txt', 'w').close(); os.symlink('real.txt', 'made.txt')",
        ask("c1", title="Work", **WRITE),
        "open('t', 'w').write('x' + chr(10)); os.rename('t', 'made.txt')",
        update(status="completed"),
    ),
    "an approved file below the home directory": program(
        ask("c1", title="Work", kind="edit", rawInput={"file_path": "~/x.txt", "content": "a"}),
        "path = os.path.expanduser('~/x.txt')",
        "agent.update('tool_call_update', toolCallId='c1', status='completed', "
        "rawInput={'file_path': path, 'content': 'a'})",
    ),
    "an approved command that is reported with another shell": program(
        ask("c1", title="Work", **COMMAND),
        update(status="completed", rawInput={"command": ["/usr/bin/zsh", "-lc", "touch made"]}),
    ),
    "a tool that does not exist": program(
        call(end=None, kind="other", title="frobnicate", rawInput={"a": 1}),
        update(status="failed", content=output("Error: No such tool available: frobnicate")),
    ),
    "an input that is not valid": program(
        call(end=None, **COMMAND), update(status="failed", content=output("InputValidationError: Bash failed"))
    ),
    "a command that a hook blocked": program(
        call(end=None, **COMMAND), update(status="failed", content=output("PreToolUse:Bash hook error: blocked"))
    ),
    "harmless tools of agents": program(
        call("o1", title="skill", kind="other", rawInput={"name": "git-release"}),
        call("o2", title="lsp", kind="other", rawInput={"operation": "hover", "filePath": "a.py"}),
        call("o3", title="invalid", kind="other", rawInput={"tool": "write", "error": "bad"}),
        call("g1", title="tree · /tmp/x", rawInput={"path": "/tmp/x", "depth": 2}),
        call("g2", title="developer: analyze", rawInput={"path": "src", "focus": "f"}),
        call("p1", title="report_intent", kind="other", rawInput={"intent": "x"}),
        call("a1", title="codebase-retrieval", kind="other", rawInput={"information_request": "x"}),
        call("n1", title="attempt_completion", kind="other", rawInput={"result": "x"}),
        call("n2", title="plan_mode_respond", kind="other", rawInput={"response": "x"}),
    ),
    "an edit that did nothing": (
        "open('made.txt', 'w').write('other')\n"
        + call(end="failed", kind="edit", rawInput={"file_path": "made.txt", "old_string": "a", "new_string": "b"})
    ),
}


@pytest.mark.parametrize("what", FLAGGED)
async def test_an_act_without_permission_is_flagged(
    hub: Hub, session: HubSession, what: str, tally: Callable[[str, int], None]
) -> None:
    await run_turn(hub, session, FLAGGED[what], allow, allow)
    await until(session, fact("acted_without_asking"))  # updates of other sessions are not part of the turn
    (flag,) = await flags(hub, session)
    assert flag["toolCallId"] == "c1"
    tally("acts without permission that were flagged", 1)


@pytest.mark.parametrize("what", UNFLAGGED)
async def test_an_allowed_or_harmless_call_is_not_flagged(
    hub: Hub, session: HubSession, what: str, tally: Callable[[str, int], None]
) -> None:
    await run_turn(hub, session, UNFLAGGED[what], allow, allow)
    assert await flags(hub, session) == []
    tally("calls that were rightly not flagged", 1)


DENIED: dict[str, str] = {
    "a command that failed": (
        f"{ask('c1', title='Work', **COMMAND)}\n"
        "agent.update('tool_call_update', toolCallId='c1', status='failed', rawOutput={'exit_code': 1})"
    ),
    "a write that is said to have failed": (
        f"{ask('c1', title='Work', **WRITE)}\nopen('made.txt', 'w').write('x' + chr(10))\n"
        "agent.update('tool_call_update', toolCallId='c1', status='failed')"
    ),
    "an insertion that is not reported": program(MADE, ask("c1", title="Work", **INSERTION), INSERTED),
    "a deletion that is not reported": program(
        MADE, ask("c1", title="Delete", kind="delete", rawInput={"file_path": "a.txt"}), "os.remove('a.txt')"
    ),
    "a move that is said to have failed": program(
        MADE,
        ask("c1", title="Move", kind="move", rawInput={"source": "a.txt", "destination": "b.txt"}),
        "os.rename('a.txt', 'b.txt')",
        update(status="failed"),
    ),
    "a command that failed with long output": program(
        ask("c1", title="Work", **COMMAND), update(status="failed", content=output("built\n" * 500))
    ),
    "a command after a read was denied": program(
        ask("c1", title="Read", kind="read", rawInput={"file_path": "a"}),
        update(status="completed", **COMMAND),
    ),
    "a write that is not reported": f"{ask('c1', title='Work', **WRITE)}\nopen('made.txt', 'w').write('x' + chr(10))",
}


@pytest.mark.parametrize("what", DENIED)
async def test_a_denied_act_is_flagged_even_if_reported_as_failed(hub: Hub, session: HubSession, what: str) -> None:
    await run_turn(hub, session, DENIED[what], deny)
    (flag,) = await flags(hub, session)
    assert flag["denied"] is True


async def test_a_denied_act_that_was_done_anyway_is_flagged_as_denied(hub: Hub, session: HubSession) -> None:
    await run_turn(hub, session, f"{ask('q1', title='Work', **COMMAND)}\n{call(**COMMAND)}", deny)
    (flag,) = await flags(hub, session)
    assert flag["denied"] is True


async def test_a_call_that_a_rule_allows_is_not_flagged(hub: Hub, session: HubSession) -> None:
    session.set_policy(parse_policy({"autoApprove": {"commands": ["touch *"]}}))
    await run_turn(hub, session, call(**COMMAND))
    assert await flags(hub, session) == []


async def test_every_call_that_is_open_at_the_end_of_the_turn_is_flagged(hub: Hub, session: HubSession) -> None:
    await run_turn(hub, session, "\n".join(call(f"c{number}", None, **COMMAND) for number in range(100)))
    assert len(await flags(hub, session)) == 100


async def test_an_act_is_flagged_once_for_each_call(hub: Hub, session: HubSession) -> None:
    await run_turn(hub, session, "\n".join(call(f"c{number}", **COMMAND) for number in range(3)))
    assert [flag["toolCallId"] for flag in await flags(hub, session)] == ["c0", "c1", "c2"]


async def test_a_denied_command_that_completed_as_rejected_is_not_flagged(hub: Hub, session: HubSession) -> None:
    ended = update(status="completed", content=output("User rejected the command"))
    await run_turn(hub, session, program(ask("c1", title="Work", **COMMAND), ended), deny)
    assert await flags(hub, session) == []


@pytest.mark.parametrize("second", ["touch made", "touch other"])
async def test_a_denied_further_act_does_not_make_an_approved_call_a_denied_one(
    hub: Hub, session: HubSession, second: str
) -> None:
    acts = [do("terminal/create", command=line) for line in ("touch made", second)]
    await run_turn(hub, session, program(ask("c1", title="Work", **COMMAND), *acts, update(status="completed")))
    assert await flags(hub, session) == []


async def test_one_approval_stands_for_one_call(hub: Hub, session: HubSession) -> None:
    ended = update("q1", status="completed")
    await run_turn(hub, session, program(ask("q1", title="Work", **COMMAND), call(**COMMAND), ended))
    assert [flag["toolCallId"] for flag in await flags(hub, session)] == ["q1"]


UNDECIDED = "import threading; threading.Thread(target=lambda: {}).start(); time.sleep(0.2)"


@pytest.mark.parametrize(
    "what",
    [
        program(
            UNDECIDED.format(ask("c1", title="Work", **COMMAND)), update(status="failed", rawOutput={"exit_code": 1})
        ),
        program(UNDECIDED.format(ask("c1", title="Work", **WRITE)), "open('made.txt', 'w').write('x' + chr(10))"),
    ],
    ids=["a command", "a write"],
)
async def test_an_act_while_its_request_is_open_is_flagged(hub: Hub, session: HubSession, what: str) -> None:
    await run_turn(hub, session, what, lambda event: None)
    assert [flag["toolCallId"] for flag in await flags(hub, session)] == ["c1"]


@pytest.mark.parametrize(
    "second",
    [
        announce(title="Work", status="completed", **COMMAND),
        update(title="Other", status="completed", **run("touch evil")),
        update(status="completed", **run("touch evil")),
        update(title="Writing", status="completed", kind="edit", content=diff("a", None, "evil\n")),
    ],
)
async def test_an_id_that_is_used_again_in_the_next_turn_is_another_call(
    hub: Hub, session: HubSession, second: str
) -> None:
    await run_turn(hub, session, program(ask("c1", title="Work", **COMMAND), update(status="completed")))
    await run_turn(hub, session, second)
    assert [flag["toolCallId"] for flag in await flags(hub, session)] == ["c1"]


@pytest.mark.parametrize(
    "what",
    [
        call(kind="edit", rawInput={"file_path": "/tmp/outside.txt", "content": "x"}),
        call(kind="edit", content=diff("../outside.txt", None, "x")),
        call(**run("touch made", cwd="/etc")),
    ],
)
async def test_a_mode_does_not_cover_acts_outside_of_the_workspace(hub: Hub, session: HubSession, what: str) -> None:
    await session.set_mode("yolo")
    await run_turn(hub, session, program(call("c0", **COMMAND), call("c0w", **WRITE), what))
    assert [flag["toolCallId"] for flag in await flags(hub, session)] == ["c1"]


async def test_a_mode_of_own_judgement_excuses_the_agent_but_permits_no_act_of_the_hub(
    tmp_path: Path, project: Path
) -> None:
    behavior = PermissionBehavior(modes_with_own_judgement=frozenset({"yolo"}))
    async with rogue_hub(tmp_path / "home", behavior=behavior) as hub:
        session = await hub.start_session("rogue", project)
        await session.set_mode("yolo")
        outside = call(kind="edit", content=diff("../outside.txt", None, "x"))
        act = do("terminal/create", command="touch made")
        turn = await run_turn(hub, session, program(call("c0", **COMMAND), call("c0w", **WRITE), outside, act))
        assert len(turn.acts) == 1
        assert [flag["toolCallId"] for flag in await flags(hub, session)] == ["c1"]


@pytest.mark.parametrize(
    ("shown", "is_flagged"),
    [
        ({"rawInput": {"command": "mkdir made"}}, False),
        ({"rawInput": {"command": "mkdir ../made"}}, True),
        ({"rawInput": {"command": "mkdir made; make"}}, True),
        ({"rawInput": {"command": "make"}}, True),
        ({"kind": "other", "title": "mcp__mail__send", "rawInput": {"to": "x"}}, True),
    ],
    ids=["file program", "outside", "script", "program", "tool"],
)
async def test_a_mode_for_writes_covers_only_programs_that_change_files(
    tmp_path: Path, project: Path, shown: dict[str, Any], is_flagged: bool
) -> None:
    behavior = PermissionBehavior({"edits": "writes"}, file_programs=frozenset({"mkdir"}))
    async with rogue_hub(tmp_path / "home", behavior=behavior) as hub:
        session = await hub.start_session("rogue", project)
        await session.set_mode("edits")
        await run_turn(hub, session, program(call("c0", **{"kind": "execute", "title": "Run", **shown})))
        assert bool(await flags(hub, session)) == is_flagged


@pytest.mark.parametrize("how", ["deadline", "force", "terminate"])
async def test_calls_of_an_agent_that_is_ended_are_flagged(tmp_path: Path, project: Path, how: str) -> None:
    async with rogue_hub(tmp_path / "home", cancel_deadline=0.5) as hub:
        session = await hub.start_session("rogue", project)
        turn = asyncio.ensure_future(run_turn(hub, session, program(call(end=None, **COMMAND), "time.sleep(60)")))
        await until(session, lambda event: event.type == "tool:executing")
        await (session.terminate() if how == "terminate" else session.cancel(force=how == "force"))
        await asyncio.wait((turn,))
        assert [flag["toolCallId"] for flag in await flags(hub, session)] == ["c1"]


WAITING = "import threading; threading.Thread(target=lambda: {}, daemon=True).start()"
LATE_ENDS: dict[str, tuple[str, str, bool | None]] = {
    "a pending command": (announce(**COMMAND), update(status="completed"), None),
    "a pending write": (announce(**WRITE), update(status="completed"), None),
    "a pending command with an exit code": (
        announce(**COMMAND),
        update(status="failed", rawOutput={"exit_code": 1}),
        None,
    ),
    "a command that was not decided": (
        WAITING.format(ask("c1", title="Work", **COMMAND)),
        update(status="completed"),
        None,
    ),
    "a denied command": (ask("c1", title="Work", **COMMAND), update(status="completed"), False),
    "a refused command": (
        program(announce(status="in_progress", **COMMAND), do("terminal/create", command="touch made")),
        update(status="completed"),
        False,
    ),
}


async def run_and_end_late(hub: Hub, session: HubSession, first: str, second: str, decision: bool | None) -> None:
    """A turn that is cancelled, and a report about one of its calls after the next prompt."""
    after = program("while not os.path.exists('over'): time.sleep(0.01)", second)
    lines = program(first, "agent.say('ready')", "agent.cancelled.wait()", f"after = {after!r}")
    turn = asyncio.ensure_future(run_turn(hub, session, lines, lambda _: decision, lambda _: decision))
    await until(session, "message:delta")
    if "threading" in first:
        await approval_asked(session)
    await session.cancel()
    await turn
    assert await flags(hub, session) == []
    (Path(session.cwd) / "over").touch()
    await until(session, lambda event: event.type in ("tool:result", "tool:error"), session.state.seq)
    await run_turn(hub, session, "pass")


@pytest.mark.parametrize("what", LATE_ENDS)
async def test_an_act_that_is_reported_after_its_turn_was_cancelled_is_flagged(
    hub: Hub, session: HubSession, what: str
) -> None:
    first, second, decision = LATE_ENDS[what]
    await run_and_end_late(hub, session, first, second, decision)
    assert [flag["toolCallId"] for flag in await flags(hub, session)] == ["c1"]


@pytest.mark.parametrize(
    ("first", "decision"),
    [
        (announce(**COMMAND), None),
        (WAITING.format(ask("c1", title="Work", **COMMAND)), None),
        (ask("c1", title="Work", **COMMAND), False),
    ],
    ids=["pending", "not decided", "denied"],
)
async def test_a_cancelled_call_that_is_reported_as_failed_later_is_not_flagged(
    hub: Hub, session: HubSession, first: str, decision: bool | None
) -> None:
    await run_and_end_late(hub, session, first, update(status="failed"), decision)
    assert await flags(hub, session) == []


async def test_an_approved_command_that_is_reported_late_is_not_flagged(hub: Hub, session: HubSession) -> None:
    await run_and_end_late(hub, session, ask("c1", title="Work", **COMMAND), update(status="completed"), True)
    assert await flags(hub, session) == []


async def test_calls_of_an_agent_that_dies_between_turns_are_flagged(hub: Hub, session: HubSession) -> None:
    after = program(call(end=None, **COMMAND), "time.sleep(0.2)", "os._exit(3)")
    await run_turn(hub, session, f"after = {after!r}")
    await until(session, fact("acted_without_asking"))
    assert [flag["toolCallId"] for flag in await flags(hub, session)] == ["c1"]


async def test_any_number_of_open_calls_is_flagged(hub: Hub, session: HubSession) -> None:
    many = f"for i in range(2500): agent.tool(f'c{{i}}', status='in_progress', **{COMMAND!r})"
    await run_turn(hub, session, many)
    assert [flag["toolCallId"] for flag in await flags(hub, session)] == [f"c{number}" for number in range(2500)]


async def test_approvals_count_however_many_there_were(hub: Hub, session: HubSession) -> None:
    many = (
        "for i in range(1010):\n"
        "    agent.permission(f'a{i}', title='x', kind='execute', rawInput={'command': f'touch {i}'})\n"
        "    agent.update('tool_call_update', toolCallId=f'a{i}', status='completed')"
    )
    two = [ask(one, title="x", **run(f"touch {one}")) for one in ("z1", "z2")]
    await run_turn(
        hub, session, program(many, *two, update("z1", status="completed"), update("z2", status="completed"))
    )
    assert await flags(hub, session) == []
