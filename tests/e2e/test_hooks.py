"""`pilothouse hook` as Claude Code runs it, against a hub: who decides, and what happens when nobody can."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pilothouse.adapters.discovery.claude import ClaudeStore
from pilothouse.adapters.discovery.finder import Finder
from pilothouse.hub.agent.process import HUB, AgentSpec
from pilothouse.log.records import Approval
from pilothouse.model.events import utc_now
from pilothouse.remote.place import Place, write_place
from pilothouse.server.limits import Limits
from tests.support.attacks import paired
from tests.support.cli import Cli
from tests.support.http_client import Client
from tests.support.hubs import history, until
from tests.support.served import pending
from tests.support.served import serving as serving_cli
from tests.support.servers import TOKEN, Served, serving

SESSION = "2ec27655-9c77-4544-9188-62240dfd5a6d"


@contextlib.asynccontextmanager
async def hub(tmp_path: Path, **options: Any) -> AsyncIterator[Served]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    async with serving(home, **options) as served:
        served.hub.discovery.prepare(lambda: Finder([ClaudeStore(tmp_path / "claude")]), None)
        write_place(home, Place(pid=os.getpid(), socket=str(home / "hub.sock")))
        yield served


def question(tmp_path: Path, command: str = "touch T", **more: Any) -> bytes:
    asked = {
        "session_id": SESSION,
        "transcript_path": str(tmp_path / "none.jsonl"),
        "cwd": str(tmp_path),
        "permission_mode": "default",
        "hook_event_name": "PermissionRequest",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "As told"},
        "permission_suggestions": [],
    }
    return json.dumps({**asked, **more}).encode()


class Hook:
    """A run of the hook."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def ends(self) -> tuple[int, str, str]:
        async with asyncio.timeout(20):
            out, err = await self.process.communicate()
            assert self.process.returncode is not None
            return self.process.returncode, out.decode(), err.decode()

    async def decides(self) -> Any:
        """What it tells Claude Code; None when it tells nothing."""
        code, out, err = await self.ends()
        assert (code, err) == (0, "")
        return json.loads(out)["hookSpecificOutput"]["decision"] if out else None


async def run(tmp_path: Path, given: bytes, *args: str, **env: str) -> Hook:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "pilothouse.cli", "hook", *(args or ("--home", str(tmp_path / "home")))),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **env},
    )
    assert process.stdin is not None
    process.stdin.write(given)
    process.stdin.close()
    return Hook(process)


async def waiting(served: Served) -> Approval:
    """The approval that waits, once it does."""
    async with asyncio.timeout(20):
        while not (found := await served.hub.approvals()):
            await asyncio.sleep(0.01)
    assert len(found) == 1
    return found[0]


async def withdrawn(served: Served, approval: Approval) -> Any:
    async with asyncio.timeout(20):
        while (await served.hub.log.approvals.get(approval.id)).decision is None:
            await asyncio.sleep(0.01)
    return (await served.hub.log.approvals.get(approval.id)).decision


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ({"decision": "allow"}, {"behavior": "allow"}),
        ({"decision": "deny", "reason": "not on a Friday"}, {"behavior": "deny", "message": "not on a Friday"}),
    ],
)
async def test_a_person_decides_in_the_session_that_watches(
    tmp_path: Path, decision: dict[str, str], told: dict[str, str]
) -> None:
    async with hub(tmp_path) as served:
        hook = await run(tmp_path, question(tmp_path, "rm -rf build"))
        approval = await waiting(served)
        assert approval.request["toolName"] == "Bash"
        assert approval.request["preview"]["command"] == "rm -rf build"
        assert approval.request["riskLevel"] in ("high", "critical")
        session = await served.hub.session(approval.session_id)
        assert (session.agent_name, session.agent_session_id, session.cwd) == ("claude", SESSION, str(tmp_path))
        await served.client.request("POST", f"/approvals/{approval.id}", decision)
        assert await hook.decides() == told
        again = await run(tmp_path, question(tmp_path, "make"))
        approval = await waiting(served)
        assert approval.session_id == session.id
        await served.client.request("POST", f"/approvals/{approval.id}", decision)
        assert await again.decides() == told


async def test_a_change_to_a_file_is_shown_as_one(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("one\ntwo\n")
    given = {"file_path": str(tmp_path / "note.txt"), "content": "one\nthree\n"}
    async with hub(tmp_path) as served:
        hook = await run(tmp_path, question(tmp_path, tool_name="Write", tool_input=given))
        approval = await waiting(served)
        diff = approval.request["preview"]["diff"]
        assert "-two" in diff
        assert "+three" in diff
        await served.hub.decide(approval.id, approved=False)
        assert await hook.decides() == {"behavior": "deny", "message": "Denied in Pilothouse."}


def says(kind: str, *content: dict[str, Any], **message: Any) -> str:
    """A line of Claude Code's record."""
    spoken = {"role": kind, "content": list(content), **message}
    about = {"cwd": "/w", "sessionId": SESSION, "timestamp": utc_now()}
    return json.dumps({"type": kind, "message": spoken, **about}) + "\n"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize("is_adopted", [True, False])
async def test_a_question_comes_after_what_led_to_it_and_its_call_ends_when_it_is_withdrawn(
    tmp_path: Path, is_adopted: bool
) -> None:
    record = tmp_path / "claude" / "projects" / "-w" / f"{SESSION}.jsonl"
    record.parent.mkdir(parents=True)
    record.write_text(says("user", text("Hello")) + says("assistant", text("Hi."), id="m1", stop_reason="end_turn"))
    async with hub(tmp_path) as served:
        discovery = served.hub.discovery
        found = await discovery.find("claude", SESSION)
        found = replace(found, project_path=str(tmp_path))
        if is_adopted:
            served.hub.agents["claude"] = AgentSpec(name="claude", command=("true",))
            session = await served.hub.adopt_session(found)
        else:
            session = await served.hub.watch_session(found)
        await discovery.told(session.id)
        with record.open("a") as file:
            file.write(says("user", text("Touch it")))
            call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/w/a"}}
            file.write(says("assistant", text("I will."), call, id="m2", stop_reason="tool_use"))
        hook = await run(tmp_path, question(tmp_path))
        approval = await waiting(served)
        events = await history(served.hub.log, session.id)
        prompt = next(at for at, one in enumerate(events) if "Touch it" in str(getattr(one, "content", "")))
        asked = next(at for at, one in enumerate(events) if one.type == "approval:requested")
        assert prompt < asked
        shown = Cli(tmp_path)("show", session.id)
        assert "… $ touch T" in shown.stdout, shown.stdout + shown.stderr
        assert "✗" not in shown.stdout
        hook.process.kill()
        await withdrawn(served, approval)
        if is_adopted:  # in one that is watched the turn goes on, and ends it
            await session.committed()
            assert [one.status for one in session.state.tool_calls] == ["cancelled"]
            assert (session.status, dict(session.state.index.pending)) == ("idle", {})
        with record.open("a") as file:
            file.write(says("user", {"type": "tool_result", "tool_use_id": "toolu_1", "content": "read"}))
            file.write(says("assistant", text("Done."), id="m3", stop_reason="end_turn"))
        await until(session, lambda event: "Done." in str(getattr(event, "delta", "")))
        await discovery.told(session.id)
        shown = Cli(tmp_path)("show", session.id)
        assert shown.stdout.count("Touch it") == shown.stdout.count("I will.") == shown.stdout.count("✓ Read") == 1


async def test_rules_answer_at_once_and_always_is_kept(tmp_path: Path) -> None:
    policy = {"autoApprove": {"commands": ["make *"]}, "deny": {"commands": ["git push *"]}}
    async with hub(tmp_path, default_policy=policy) as served:
        hook = await run(tmp_path, question(tmp_path, "make test"))
        assert await hook.decides() == {"behavior": "allow"}
        hook = await run(tmp_path, question(tmp_path, "git push origin"))
        assert (await hook.decides())["behavior"] == "deny"
        assert await served.hub.approvals() == []
        hook = await run(tmp_path, question(tmp_path, "npm run build"))
        await served.hub.decide((await waiting(served)).id, approved=True, remember="session")
        assert await hook.decides() == {"behavior": "allow"}
        hook = await run(tmp_path, question(tmp_path, "npm run build"))
        assert await hook.decides() == {"behavior": "allow"}
        assert await served.hub.approvals() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
async def test_a_hook_that_is_ended_withdraws_its_question(tmp_path: Path, number: signal.Signals) -> None:
    async with hub(tmp_path) as served:
        hook = await run(tmp_path, question(tmp_path))
        approval = await waiting(served)
        hook.process.send_signal(number)
        code, out, _ = await hook.ends()
        assert code not in (0, 2)
        assert out == ""
        decision = await withdrawn(served, approval)
        assert (decision["approved"], decision["resolvedBy"]) == (False, "cancelled")


async def test_a_question_that_was_answered_in_the_terminal_is_withdrawn(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
    record.write_text(json.dumps({"type": "assistant", "message": {"content": [call]}}) + "\n")
    async with hub(tmp_path) as served:
        asked = question(tmp_path, tool_input={"command": "make"}, transcript_path=str(record))
        hook = await run(tmp_path, asked)
        approval = await waiting(served)
        assert approval.request["toolCallId"] == "toolu_1"
        done = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
        with record.open("a") as file:
            file.write(json.dumps({"type": "user", "message": {"content": [done]}}) + "\n")
        assert await hook.decides() is None
        assert (await withdrawn(served, approval))["resolvedBy"] == "cancelled"


async def test_a_question_that_nobody_decides_in_time_is_left_to_claude_code(tmp_path: Path) -> None:
    async with hub(tmp_path, hub_options={"approval_timeout": 0.2}) as served:
        hook = await run(tmp_path, question(tmp_path))
        assert await hook.decides() is None
        assert [one.decision and one.decision["resolvedBy"] for one in await served.hub.log.approvals.list()] == [
            "timeout"
        ]


async def test_a_hub_that_ends_leaves_the_question_to_claude_code(tmp_path: Path) -> None:
    async with hub(tmp_path) as served:
        hook = await run(tmp_path, question(tmp_path))
        await waiting(served)
    code, out, _ = await hook.ends()
    assert out == ""
    assert code in (0, 1)
    hook = await run(tmp_path, question(tmp_path))  # and now there is none
    assert await hook.decides() is None


async def test_sessions_that_the_hub_runs_are_not_asked_about_twice(tmp_path: Path) -> None:
    async with hub(tmp_path) as served:
        hook = await run(tmp_path, question(tmp_path), "--home", str(tmp_path / "home"), **{HUB: "hub_1"})
        assert await hook.decides() is None
        for odd in ({"hook_event_name": "PreToolUse"}, {"tool_name": "AskUserQuestion"}):
            hook = await run(tmp_path, question(tmp_path, **odd))
            assert await hook.decides() is None
        assert await served.hub.log.approvals.list() == []


async def test_the_status_tells_whether_the_hub_of_the_entry_takes_its_token(tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    cli = Cli(tmp_path / "cli")
    cli.environment["CLAUDE_CONFIG_DIR"] = str(tmp_path / "claude")
    token = tmp_path / "token"
    async with hub(tmp_path) as served:
        token.write_text(TOKEN)
        url = f"http://127.0.0.1:{served.port}"
        done = await asyncio.to_thread(cli, "hooks", "install", "--url", url, "--token-file", token)
        assert done.returncode == 0
        assert "chmod 600" in done.stderr
        assert TOKEN not in (tmp_path / "claude" / "settings.json").read_text()
        for secret, answers in ((TOKEN, True), ("another", False)):
            token.write_text(secret)
            told = json.loads((await asyncio.to_thread(cli, "hooks", "status", "--json")).stdout)
            assert told["hub"]["answers"] is answers
        assert "does not take the token" in told["hub"]["text"]
        assert "without" not in told["hub"]["text"]
        token.chmod(0o600)
        done = await asyncio.to_thread(cli, "hooks", "install", "--url", url, "--token-file", token)
        assert done.returncode == 0
        assert "does not take the token" in done.stderr
        assert "chmod" not in done.stderr
        done = await asyncio.to_thread(cli, "hooks", "install", "--url", url, "--token-file", tmp_path / "none")
        assert done.returncode == 2
        assert f"the token cannot be read from {tmp_path / 'none'}: No such file or directory" in done.stderr
    told = json.loads((await asyncio.to_thread(cli, "hooks", "status", "--json")).stdout)
    assert told["hub"]["answers"] is False


async def test_by_address_a_token_is_needed_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    async with hub(tmp_path) as served:
        url = f"http://127.0.0.1:{served.port}"
        for wrong in ("another", ""):
            token.write_text(wrong)
            hook = await run(tmp_path, question(tmp_path), "--url", url, "--token-file", str(token))
            code, out, err = await hook.ends()
            assert (code, out) == (1, "")
            assert "token" in err
        assert await served.hub.log.approvals.list() == []
        token.write_text(TOKEN + "\n")
        hook = await run(tmp_path, question(tmp_path), "--url", url, "--token-file", str(token))
        await served.hub.decide((await waiting(served)).id, approved=True)
        assert await hook.decides() == {"behavior": "allow"}


@pytest.mark.parametrize("given", [b"", b"rubbish", b"[]", b"7", b'{"hook_event_name": "PermissionRequest"}', b"\xff"])
async def test_rubbish_is_no_decision_and_never_exit_code_2(tmp_path: Path, given: bytes) -> None:
    async with hub(tmp_path) as served:
        code, out, err = await (await run(tmp_path, given)).ends()
        assert (code, out) == (1, "")
        assert err
        assert await served.hub.log.approvals.list() == []


async def test_options_that_are_wrong_are_no_decision_and_never_exit_code_2(tmp_path: Path) -> None:
    for args in (("--nothing",), ("--url",), ("--url", "ftp://x"), ("--url", "http://127.0.0.1:9"), ("more",)):
        code, out, err = await (await run(tmp_path, question(tmp_path), *args)).ends()
        assert (code, out) == (1, "")
        assert err


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"sessionId": "../../etc"}, "sessionId"),
        ({"sessionId": ""}, "sessionId"),
        ({"cwd": "relative"}, "cwd"),
        ({"toolName": ""}, "toolName"),
        ({"toolInput": "rm"}, "toolInput"),
        ({"more": 1}, "more"),
    ],
)
async def test_questions_are_checked_by_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    asked = {"sessionId": SESSION, "cwd": str(tmp_path), "toolName": "Bash", "toolInput": {"command": "make"}}
    async with hub(tmp_path) as served:
        answer = await served.client.request("POST", "/hooks/claude", {**asked, **change})
        assert answer.status == 422
        assert field in answer.body.decode()
        assert await served.hub.log.approvals.list() == []


def asking(client: Client, tmp_path: Path, **change: Any) -> asyncio.Task[Any]:
    """The question of a hook, without the program."""
    asked = {"sessionId": SESSION, "cwd": str(tmp_path), "toolName": "Bash", "toolInput": {"command": "make"}}
    return asyncio.ensure_future(client.request("POST", "/hooks/claude", {**asked, **change}))


async def left(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_who_may_not_ask_is_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    async with hub(tmp_path) as served:
        _, reader = await paired(served.client, "read")
        for client, status in ((Client(served.port), 401), (Client(served.port, token="x"), 401), (reader, 403)):
            assert (await asking(client, tmp_path)).status == status
        assert await served.hub.log.approvals.list() == []
        assert (await served.hub.log.sessions.list()).sessions == []
        _, asker = await paired(served.client, "prompt", name="laptop")
        task = asking(asker, tmp_path)
        approval = await waiting(served)
        assert (await asker.request("POST", f"/approvals/{approval.id}", {"decision": "allow"})).status == 403
        await served.hub.decide(approval.id, approved=True)
        told = (await task).json()
        assert (told["decision"], told["approvalId"]) == ("allow", approval.id)


async def test_two_hooks_that_ask_about_one_call_ask_once(tmp_path: Path) -> None:
    async with hub(tmp_path) as served:
        first, second, third = (asking(served.local, tmp_path, toolCallId="toolu_1") for _ in range(3))
        approval = await waiting(served)
        async with asyncio.timeout(20):
            while not served.server.questions or next(iter(served.server.questions.values())).waiting < 3:
                await asyncio.sleep(0.01)
        await left(third)
        await served.hub.decide(approval.id, approved=True)
        for task in (first, second):
            told = (await task).json()
            assert (told["decision"], told["approvalId"]) == ("allow", approval.id)
        assert len(await served.hub.log.approvals.list()) == 1
        assert not served.server.questions


async def test_a_question_that_all_have_left_is_withdrawn_and_another_one_with_its_name_is_not_it(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path) as served:
        harmless = asking(served.local, tmp_path, toolCallId="toolu_1")
        approval = await waiting(served)
        other = asking(served.local, tmp_path, toolCallId="toolu_1", toolInput={"command": "rm -rf /"})
        async with asyncio.timeout(20):
            while len(pending := await served.hub.approvals()) < 2:
                await asyncio.sleep(0.01)
        await served.hub.decide(approval.id, approved=True)
        assert (await harmless).json()["decision"] == "allow"
        assert not other.done()
        await left(other)
        (rest,) = (one for one in pending if one.id != approval.id)
        assert (await withdrawn(served, rest))["resolvedBy"] == "cancelled"
        assert not served.server.questions


async def test_more_questions_than_there_may_be_are_left_to_claude_code(tmp_path: Path) -> None:
    async with hub(tmp_path, limits=Limits(connections=2)) as served:
        tasks = [asking(served.local, tmp_path, toolInput={"command": f"make {number}"}) for number in range(2)]
        async with asyncio.timeout(20):
            while len(await served.hub.approvals()) < 2:
                await asyncio.sleep(0.01)
        code, out, err = await (await run(tmp_path, question(tmp_path))).ends()
        assert (code, out) == (1, "")
        assert "429" in err
        for task in tasks:
            await left(task)


async def test_variables_of_a_project_lead_the_hook_to_no_other_hub(tmp_path: Path) -> None:
    """As its settings name the home, those of a directory that it is run in do not count; nor does a port."""
    asked: list[bytes] = []

    async def allow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        body = b'{"decision": "allow"}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    theirs = tmp_path / "project" / "home"
    theirs.mkdir(parents=True, mode=0o700)
    async with await asyncio.start_server(allow, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        write_place(theirs, Place(pid=os.getpid(), host="127.0.0.1", port=port))
        env = {"PILOTHOUSE_HOME": str(theirs), "PILOTHOUSE_URL": f"http://127.0.0.1:{port}", "PILOTHOUSE_TOKEN": "x"}
        env |= dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY"), f"http://127.0.0.1:{port}")
        for args in ((), ("--home", str(tmp_path / "home")), ("--home", str(theirs))):
            hook = await run(tmp_path, question(tmp_path), *args, **env)
            assert await hook.decides() is None
    assert asked == []


def test_the_settings_are_written_told_and_given_back(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    settings = tmp_path / "claude" / "settings.json"
    cli.environment["CLAUDE_CONFIG_DIR"] = str(settings.parent)
    settings.parent.mkdir()
    settings.write_text('{\n  "model": "opus" // for now\n}')
    before = settings.read_bytes()
    assert cli("hooks", "install").returncode == 0
    after = settings.read_bytes()
    assert cli("hooks", "install").returncode == 0
    assert settings.read_bytes() == after
    told = json.loads(cli("hooks", "status", "--json").stdout)
    states = {row["scope"]: row["state"] for row in told["settings"]}
    assert states == {"user": "installed", "project": "absent", "local": "absent"}
    assert told["hub"]["answers"] is False
    command = told["settings"][0]["command"]
    assert command.endswith(f"hook --home {cli.home}")
    assert cli("hooks", "uninstall").returncode == 0
    assert settings.read_bytes() == before
    assert [file.name for file in settings.parent.iterdir()] == ["settings.json"]


@pytest.mark.parametrize("scope", ["user", "local"])
def test_settings_that_let_no_hook_run_are_named(tmp_path: Path, scope: str) -> None:
    cli = Cli(tmp_path)
    cli.environment["CLAUDE_CONFIG_DIR"] = str(tmp_path / "claude")
    place = tmp_path / "claude" / "settings.json"
    off = place if scope == "user" else cli.project / ".claude" / "settings.local.json"
    off.parent.mkdir()
    off.write_text('{"disableAllHooks": true}')
    done = cli("hooks", "install")
    assert done.returncode == 0
    assert "`disableAllHooks` is set" in done.stderr
    assert "will not run the hook" in done.stderr
    told = json.loads(cli("hooks", "status", "--json").stdout)
    rows = {row["scope"]: row for row in told["settings"]}
    assert rows["user"]["state"] == ("off" if scope == "user" else "installed")
    assert [name for name, row in rows.items() if "runs no hooks" in row["text"]] == [scope]


def test_with_a_hub_that_is_served_the_entry_of_the_settings_works_as_it_stands(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    settings = tmp_path / "claude" / "settings.json"
    cli.environment |= {"CLAUDE_CONFIG_DIR": str(settings.parent), "XDG_RUNTIME_DIR": str(tmp_path)}
    assert cli("hooks", "install").returncode == 0
    command = json.loads(settings.read_text())["hooks"]["PermissionRequest"][0]["hooks"][0]["command"]
    with serving_cli(cli, "--port", "0"):
        assert json.loads(cli("hooks", "status", "--json").stdout)["hub"]["answers"] is True
        hook = subprocess.Popen(
            ["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cli.project
        )
        assert hook.stdin is not None
        hook.stdin.write(question(cli.project).decode())
        hook.stdin.close()
        (approval,) = pending(cli)
        assert cli("approve", approval["id"]).returncode == 0
        assert hook.stdout is not None
        with hook.stdout:
            told = json.loads(hook.stdout.read())
        assert hook.wait(20) == 0
    assert told["hookSpecificOutput"]["decision"] == {"behavior": "allow"}
    (session,) = json.loads(cli("ls", "--json").stdout)
    assert session["agent"] == "claude"


def test_settings_of_a_project_that_are_broken_are_named_by_line(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    place = cli.project / ".claude"
    place.mkdir()
    (place / "settings.local.json").write_text('{\n"hooks": [\n}')
    done = cli("hooks", "install", "--scope", "local")
    assert done.returncode == 2
    assert "settings.local.json:3" in done.stderr
    assert (place / "settings.local.json").read_text() == '{\n"hooks": [\n}'
    assert cli("hooks", "install", "--scope", "project").returncode == 0
    rows = json.loads(cli("hooks", "status", "--json").stdout)["settings"]
    assert {row["scope"]: row["state"] for row in rows} == {
        "user": "absent",
        "project": "installed",
        "local": "unreadable",
    }
    for args in (("--url", "http://x"), ("--token-file", "x"), ("--timeout", "0"), ("--scope", "world")):
        assert cli("hooks", "install", *args).returncode == 2
