"""`pilothouse acp` with real processes: an editor, its bridge, a hub that nobody watches, and the scripted agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pilothouse.acp import Client, spawn_agent_process
from tests.support.editors import PATIENCE, BridgeEnded, Editor, Home, Refused, gone, runs
from tests.support.hubs import processes_with
from tests.support.session_logs import ended, stored


@contextlib.asynccontextmanager
async def in_session(home: Home, cwd: Path) -> AsyncIterator[tuple[Editor, str]]:
    async with home.editor("-a", "demo") as editor:
        yield editor, await editor.new_session(cwd)


def hubs_of(home: Home) -> list[int]:
    """Hubs, and who starts them: not a bridge, nor the copy of it that is about to become one, on which it waits."""
    return [pid for pid in processes_with(f"PILOTHOUSE_HOME={home.path}") if b"serve" in _command(pid)]


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


async def held_up(home: Home) -> set[int]:
    """Hubs that are stopped as soon as they are on their way; they go on by SIGCONT."""
    stopped: set[int] = set()
    async with asyncio.timeout(PATIENCE):
        while not stopped or set(hubs_of(home)) - stopped:
            for pid in set(hubs_of(home)) - stopped:
                os.kill(pid, signal.SIGSTOP)
                stopped.add(pid)
            await asyncio.sleep(0.001)
    return stopped


async def told_again(home: Home, session: str, cwd: Path) -> list[dict[str, object]]:
    """The session as somebody is told it who was never there, without what users said."""
    async with home.editor() as other:
        await other.load(session, cwd)
        return [one for one in other.updates(session) if one["sessionUpdate"] != "user_message_chunk"]


async def has_seen_it_once(home: Home, editor: Editor, session: str, cwd: Path) -> int:
    """Whether an editor was told exactly what the log has, in order, nothing twice; how much that is."""
    seqs = editor.seqs(session)
    assert seqs == sorted(seqs)
    shown = [one for one in editor.updates(session) if one["sessionUpdate"] != "user_message_chunk"]
    told = await told_again(home, session, cwd)
    first = shown[0]["_meta"]["pilothouse"]["seq"]
    assert shown == [one for one in told if one["_meta"]["pilothouse"]["seq"] >= first]  # type: ignore[index]
    return len(shown)


# -- a hub that nobody watches ------------------------------------------------------------------------------------


async def test_the_first_editor_starts_a_hub_which_is_no_part_of_it(home: Home, tmp_path: Path) -> None:
    async with in_session(home, tmp_path) as (editor, session):
        answer = await editor.prompt(session, "echo hello there")
        assert answer["stopReason"] == "end_turn"
        assert editor.texts(session) == "hello there"
        pid = home.hub_pid
        assert os.getsid(pid) not in (os.getsid(0), os.getsid(editor.process.pid))
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        assert int(fields[1]) != editor.process.pid, "editors end the descendants of what they started"
        open_now = {os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)}
        assert open_now == {"/dev/null", str(home.path / "hub.log")}
        assert (home.path / "hub.log").stat().st_mode & 0o777 == 0o600
        assert (home.path / "acp.sock").stat().st_mode & 0o777 == 0o600
        assert await editor.leave() == 0
        assert editor.stderr == b""
    assert runs(pid)
    assert await told_again(home, session, tmp_path)
    assert home.hub_pid == pid


async def test_bridges_that_start_at_once_share_one_hub(home: Home, tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        editors = await asyncio.gather(*(stack.enter_async_context(home.editor("-a", "demo")) for _ in range(4)))
        sessions = await asyncio.gather(*(editor.new_session(tmp_path) for editor in editors))
        for editor in editors:
            listed = await editor.request("session/list", {})
            assert {one["sessionId"] for one in listed["sessions"]} == set(sessions)


async def test_what_is_piped_in_is_answered_before_the_bridge_ends(home: Home, tmp_path: Path) -> None:
    asked = [
        ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
        ("session/new", {"cwd": str(tmp_path), "mcpServers": []}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
        for number, (method, params) in enumerate(asked)
    ]
    bridge = await asyncio.create_subprocess_exec(
        *(*home.command(), "-a", "demo"),
        env=home.environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        out, _ = await bridge.communicate("".join(lines).encode())
    answers = [json.loads(line) for line in out.splitlines()]
    results = {one["id"]: one.get("result") for one in answers if "id" in one}
    assert results[1]["sessionId"]
    assert bridge.returncode == 0


async def test_a_port_that_a_stranger_has_does_not_keep_editors_from_working(home: Home, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        home.environment["PILOTHOUSE_PORT"] = str(port)
        async with in_session(home, tmp_path) as (editor, session):
            assert (await editor.prompt(session, "echo hello"))["stopReason"] == "end_turn"
        assert home.place["port"] not in (None, port)
        assert f"port {port} of 127.0.0.1 is taken" in (home.path / "hub.log").read_text()


async def test_the_hub_of_a_run_in_a_terminal_serves_editors_too(home: Home, tmp_path: Path) -> None:
    command = home.command()
    run = await asyncio.create_subprocess_exec(
        *(*command[:-1], "run", "-a", "demo", "wait"),
        env=home.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert run.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            await run.stdout.readuntil(b"Waiting")
            while not (home.path / "hub.json").exists():
                await asyncio.sleep(0.01)
        async with home.editor() as editor:
            listed = await editor.request("session/list", {})
            session = listed["sessions"][0]["sessionId"]
            await editor.load(session, tmp_path)
            assert editor.texts(session) == "Waiting until you cancel."
            assert home.hub_pid == run.pid
    finally:
        run.kill()
        await run.communicate()


# -- the hub dies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
async def test_a_hub_killed_in_mid_turn_is_brought_back_and_the_prompt_answered(
    home: Home, tmp_path: Path, times: int
) -> None:
    async with in_session(home, tmp_path) as (editor, session):
        for round_ in range(times):
            before = len(editor.lines)
            prompt = editor.start_prompt(session, "flood 200000")
            await editor.until(lambda: len(editor.lines) > before + 2000)  # noqa: B023 - awaited in this round
            killed = home.kill_hub()
            with pytest.raises(Refused, match="interrupted"):
                async with asyncio.timeout(PATIENCE):
                    await prompt
            assert home.hub_pid != killed
            assert editor.texts(session, "user_message_chunk") == "", f"round {round_}"
        assert (await editor.prompt(session, "echo and on"))["stopReason"] == "end_turn"
        assert editor.texts(session).endswith("and on")
        assert await has_seen_it_once(home, editor, session, tmp_path) > 2000 * times


async def test_a_hub_killed_twice_in_a_row_is_brought_back_twice(home: Home, tmp_path: Path) -> None:
    async with in_session(home, tmp_path) as (editor, session):
        prompt = editor.start_prompt(session, "slow 30")
        await editor.until(lambda: editor.texts(session))
        second = await home.next_hub(home.kill_hub())
        os.kill(second, signal.SIGKILL)  # while sessions are being taken up, or just before or after
        with pytest.raises(Refused, match="interrupted"):
            async with asyncio.timeout(PATIENCE):
                await prompt
        assert (await editor.prompt(session, "echo on"))["stopReason"] == "end_turn"
        await has_seen_it_once(home, editor, session, tmp_path)


async def test_a_hub_killed_while_nothing_is_asked_comes_back_with_the_next_prompt(home: Home, tmp_path: Path) -> None:
    async with in_session(home, tmp_path) as (editor, session):
        await editor.prompt(session, "echo one")
        killed = home.kill_hub()
        await gone(killed)
        assert (await editor.prompt(session, "echo two"))["stopReason"] == "end_turn"
        assert home.hub_pid != killed
        assert editor.texts(session) == "onetwo"
        await has_seen_it_once(home, editor, session, tmp_path)


async def test_a_hub_that_was_stopped_in_order_stays_so_until_it_is_needed(home: Home, tmp_path: Path) -> None:
    async with in_session(home, tmp_path) as (editor, session):
        await editor.prompt(session, "echo one")
        await home.end_hub()
        assert not (home.path / "hub.json").exists()
        async with home.editor() as other:  # somebody else needs one: it is found by those who only look
            await other.load(session, tmp_path)
            prompt = other.start_prompt(session, "echo from elsewhere")
            await editor.until(lambda: "from elsewhere" in editor.texts(session))
            assert editor.texts(session, "user_message_chunk") == "echo from elsewhere"
            await prompt
        await has_seen_it_once(home, editor, session, tmp_path)


async def test_a_permission_that_a_dead_hub_asked_for_is_withdrawn_and_its_late_answer_ignored(
    home: Home, tmp_path: Path
) -> None:
    async with in_session(home, tmp_path) as (editor, session):
        prompt = editor.start_prompt(session, "edit notes.txt")
        await editor.until(lambda: editor.asked)
        question = editor.asked[0]
        assert question["method"] == "session/request_permission"
        home.kill_hub()
        await editor.until(lambda: question["id"] in editor.withdrawn)
        with pytest.raises(Refused, match="interrupted"):
            async with asyncio.timeout(PATIENCE):
                await prompt
        again = editor.start_prompt(session, "edit notes.txt")
        await editor.until(lambda: len(editor.asked) == 2)
        assert editor.asked[1]["id"] != question["id"]
        options = {one["kind"]: one["optionId"] for one in question["params"]["options"]}
        chosen = {"outcome": {"outcome": "selected", "optionId": options["allow_once"]}}
        editor.say(id=question["id"], result=chosen)  # late: nothing may come of it
        assert (await editor.request("session/list", {}))["sessions"]
        assert not again.done()
        options = {one["kind"]: one["optionId"] for one in editor.asked[1]["params"]["options"]}
        rejected = {"outcome": {"outcome": "selected", "optionId": options["reject_once"]}}
        editor.say(id=editor.asked[1]["id"], result=rejected)
        async with asyncio.timeout(PATIENCE):
            await again
        assert not (tmp_path / "notes.txt").exists()
        await has_seen_it_once(home, editor, session, tmp_path)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_command_in_a_terminal_of_the_editor_ends_with_the_hub_that_had_it_run(
    home: Home, tmp_path: Path, number: int
) -> None:
    async with home.editor("-a", "demo", initialize=False) as editor:
        await editor.initialize({"fs": {}, "terminal": True})
        session = await editor.new_session(tmp_path)
        prompt = editor.start_prompt(session, "bash sleep 50")
        await editor.until(lambda: editor.asked)
        options = {one["kind"]: one["optionId"] for one in editor.asked[0]["params"]["options"]}
        allowed = {"outcome": {"outcome": "selected", "optionId": options["allow_once"]}}
        editor.say(id=editor.asked[0]["id"], result=allowed)
        create = await editor.until(lambda: [one for one in editor.asked if one["method"] == "terminal/create"])
        editor.say(id=create[0]["id"], result={"terminalId": "t1"})
        await editor.until(lambda: [one for one in editor.asked if one["method"] == "terminal/wait_for_exit"])
        os.kill(home.hub_pid, number)
        release = await editor.until(lambda: [one for one in editor.asked if one["method"] == "terminal/release"])
        assert [one["params"] for one in release] == [{"sessionId": session, "terminalId": "t1"}]
        editor.say(id=release[0]["id"], result={})
        with pytest.raises(Refused, match="interrupted"):  # whose command was ended is not done
            async with asyncio.timeout(PATIENCE):
                await prompt
        assert (await editor.prompt(session, "echo on"))["stopReason"] == "end_turn"
        assert ended(await stored(home, session)) == ["interrupted", "end_turn"]


@pytest.mark.parametrize("text", [b'{"pid":1,"acp":"\xff\xfe"}', b'{"pid":99999999}', b'{"pid":1,"acp":"/x\\u0000/y"}'])
async def test_what_a_damaged_or_old_place_says_does_not_keep_editors_from_working(
    home: Home, tmp_path: Path, text: bytes
) -> None:
    (home.path / "hub.json").write_bytes(text)
    async with in_session(home, tmp_path) as (editor, session):
        assert (await editor.prompt(session, "echo hello"))["stopReason"] == "end_turn"
        assert editor.stderr == b""


async def test_a_hub_whose_place_cannot_be_written_says_so_in_one_line(home: Home, tmp_path: Path) -> None:
    (home.path / "hub.json").mkdir()
    async with home.editor("-a", "demo") as editor:
        with pytest.raises(Refused, match=r"can't be served: .*hub\.json") as refused:
            await editor.new_session(tmp_path)
    assert "Traceback" not in refused.value.data["log"]


@pytest.mark.parametrize("how", ["is killed", "is left"])
async def test_a_bridge_that_ends_while_it_starts_a_hub_leaves_none(home: Home, tmp_path: Path, how: str) -> None:
    async with home.editor("-a", "demo") as editor:
        editor.ask("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        stopped = await held_up(home)
        if how == "is killed":
            editor.process.kill()
            await editor.process.wait()
        else:
            await editor.leave()
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    async with asyncio.timeout(PATIENCE):
        while hubs_of(home):
            await asyncio.sleep(0.02)
    assert "nobody else uses it: it ends" in (home.path / "hub.log").read_text()
    assert not (home.path / "hub.json").exists()


async def test_a_hub_that_comes_too_late_does_not_stay_when_the_one_that_is_used_has_been_stopped(
    home: Home, tmp_path: Path
) -> None:
    async with home.editor("-a", "demo") as editor, asyncio.timeout(PATIENCE):
        answer = editor.ask("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        late = await held_up(home)
        serving = [*home.command()[:-1], "serve", "--detach", "--quiet"]
        other = await asyncio.create_subprocess_exec(*serving, env=home.environment, stdin=asyncio.subprocess.DEVNULL)
        assert await other.wait() == 0
        await answer
        await editor.leave()
        await home.end_hub()
        for pid in late:
            os.kill(pid, signal.SIGCONT)
        while hubs_of(home):
            await asyncio.sleep(0.02)
    assert "nobody else uses it: it ends" in (home.path / "hub.log").read_text()


async def test_a_hub_outlives_the_process_that_waited_for_its_start(home: Home, tmp_path: Path) -> None:
    starting = await asyncio.create_subprocess_exec(
        *(*home.command()[:-1], "serve", "--detach", "--quiet"),
        env=home.environment,
        stdin=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(PATIENCE):
        children = Path(f"/proc/{starting.pid}/task/{starting.pid}/children")
        while not (found := children.read_text().split()):
            await asyncio.sleep(0.001)
        starting.kill()
        await starting.wait()
        while not (home.path / "hub.json").exists():
            assert runs(int(found[0])), (home.path / "hub.log").read_text()
            await asyncio.sleep(0.01)
    async with in_session(home, tmp_path) as (editor, session):
        assert (await editor.prompt(session, "echo hello"))["stopReason"] == "end_turn"
    assert home.hub_pid == int(found[0])


class Quiet(Client):
    """A client of our own library, which ends whole trees of processes."""


async def test_a_hub_outlives_a_client_that_ends_all_that_its_bridge_has_started(home: Home, tmp_path: Path) -> None:
    program, *rest = home.command("-a", "demo")
    spawned = spawn_agent_process(Quiet(), program, *rest, env=home.environment)
    async with asyncio.timeout(PATIENCE), spawned as (bridge, _):
        await bridge.initialize(protocol_version=1)
        await bridge.new_session(cwd=str(tmp_path), mcp_servers=[])
        hub = home.hub_pid
    assert runs(hub)
    assert b"PILOTHOUSE_CHILD" not in Path(f"/proc/{hub}/environ").read_bytes()


async def test_a_hub_that_cannot_come_back_is_told_and_tried_again_with_the_next_request(
    home: Home, tmp_path: Path
) -> None:
    database = home.path / "pilothouse.db"
    async with in_session(home, tmp_path) as (editor, session):
        prompt = editor.start_prompt(session, "slow 30")
        await editor.until(lambda: editor.texts(session))
        os.kill(home.hub_pid, signal.SIGSTOP)  # it must not notice
        saved = {path: path.read_bytes() for path in home.path.glob("pilothouse.db*")}
        for path in saved:
            path.write_bytes(b"this is no database" * 500)
        home.kill_hub()
        with pytest.raises(Refused) as refused:
            async with asyncio.timeout(PATIENCE):
                await prompt
        assert str(database) in str(refused.value)
        assert "pilothouse doctor" in str(refused.value)
        assert str(home.path / "hub.log") in str(refused.value)
        assert str(database) in refused.value.data["log"]
        with pytest.raises(Refused, match="can't be started"):
            await editor.request("session/list", {})
        for path, data in saved.items():
            path.write_bytes(data)
        assert (await editor.prompt(session, "echo back again"))["stopReason"] == "end_turn"
        assert editor.texts(session, "user_message_chunk") == "", "its own words were said back to it"
        await has_seen_it_once(home, editor, session, tmp_path)


async def test_a_cancel_while_there_is_no_hub_keeps_the_prompt_from_running(home: Home, tmp_path: Path) -> None:
    async with in_session(home, tmp_path) as (editor, session):
        prompt = editor.start_prompt(session, "slow 30")
        await editor.until(lambda: editor.texts(session))
        os.kill(home.hub_pid, signal.SIGSTOP)
        held = editor.start_prompt(session, "echo must not run")
        home.kill_hub()
        editor.say(method="session/cancel", params={"sessionId": session})
        async with asyncio.timeout(PATIENCE):
            outcomes = await asyncio.gather(prompt, held, return_exceptions=True)
        for outcome in outcomes:
            assert isinstance(outcome, Refused) or outcome["stopReason"] == "cancelled"
        await editor.prompt(session, "echo on")
        assert "must not run" not in editor.texts(session)


# -- the editor dies ----------------------------------------------------------------------------------------------


async def test_an_editor_killed_in_mid_turn_leaves_the_turn_and_no_process(home: Home, tmp_path: Path) -> None:
    program = Path(__file__).parent.parent / "support" / "doomed_editor.py"
    doomed = await asyncio.create_subprocess_exec(
        *(home.command()[0], str(program), str(tmp_path), "slow 2"),
        env=home.environment,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert doomed.stdout is not None
    async with asyncio.timeout(PATIENCE):
        bridge, session = (await doomed.stdout.readline()).decode().split()
    doomed.kill()
    await doomed.communicate()
    await gone(int(bridge))
    async with home.editor() as other:
        await other.load(session, tmp_path)
        await other.until(lambda: "2.0 s" in other.texts(session))
        listed = await other.request("session/list", {})
        status = listed["sessions"][0]["_meta"]["pilothouse"]["status"]
        assert status in ("idle", "running", "thinking")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_bridge_that_is_told_to_go_leaves_quietly(home: Home, tmp_path: Path, number: int) -> None:
    async with in_session(home, tmp_path) as (editor, session):
        prompt = editor.start_prompt(session, "wait")
        await editor.until(lambda: editor.texts(session))
        editor.process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            assert await editor.process.wait() == 0
        assert editor.stderr == b""
        with pytest.raises(BridgeEnded):
            await prompt
    assert runs(home.hub_pid)


# -- what is said -------------------------------------------------------------------------------------------------


async def test_lines_that_are_no_messages_are_answered_and_end_nothing(home: Home, tmp_path: Path) -> None:
    async with in_session(home, tmp_path) as (editor, session):
        editor.write(b"this is no JSON\n42\n[]\n\n\xff\xfe\n" + b"[" * 5000 + b"\n")
        await editor.until(lambda: len(editor.errors) == 5)
        assert {error["error"]["code"] for error in editor.errors} == {-32700, -32600}
        assert (await editor.prompt(session, "echo still here"))["stopReason"] == "end_turn"


async def test_a_line_of_twenty_megabytes_passes_both_ways(home: Home, tmp_path: Path) -> None:
    size = 20_000_000
    async with in_session(home, tmp_path) as (editor, session):
        await editor.prompt(session, f"big {size}")
        assert len(editor.texts(session)) == size
        before = len(editor.lines)
        blocks = [{"type": "text", "text": "echo short"}, {"type": "text", "text": "x" * size}]
        answer = await editor.request("session/prompt", {"sessionId": session, "prompt": blocks})
        assert answer["stopReason"] == "end_turn"
        assert len(editor.lines) > before


async def test_an_editor_that_takes_nothing_is_waited_for_within_bounds(
    home: Home, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    count = 150_000
    async with in_session(home, tmp_path) as (editor, session):
        editor.pause()
        prompt = editor.start_prompt(session, f"flood {count}")
        async with home.editor() as other:
            await other.load(session, tmp_path)
            await other.until(lambda: len(other.lines) > count)  # the turn goes on without those who do not look
        status = Path(f"/proc/{editor.process.pid}/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) // 1024
        tell(f"the bridge of an editor that took nothing of {count:,} updates: {peak} MB at most")
        assert peak < 80
        assert not prompt.done()
        editor.resume()
        async with asyncio.timeout(PATIENCE):
            assert (await prompt)["stopReason"] == "end_turn"
        numbers = [int(text) for text in editor.texts(session).split() if text.isdigit()]
        assert len(numbers) >= count
        assert len(set(editor.seqs(session))) == len(editor.seqs(session))


async def test_what_one_editor_says_another_sees(home: Home, tmp_path: Path) -> None:
    async with in_session(home, tmp_path) as (editor, session), home.editor() as other:
        await other.load(session, tmp_path)
        await other.prompt(session, "echo from the other")
        await editor.until(lambda: "from the other" in editor.texts(session))
        assert editor.texts(session, "user_message_chunk") == "echo from the other"
        assert other.texts(session, "user_message_chunk") == ""


async def test_the_agent_is_that_of_the_option_unless_the_editor_names_another(home: Home, tmp_path: Path) -> None:
    async with home.editor("-a", "nobody") as editor:
        with pytest.raises(Refused, match="nvalid") as refused:
            await editor.new_session(tmp_path)
        assert "nobody" in str(refused.value.data)
        assert await editor.new_session(tmp_path, agent="demo")
        answer = await editor.initialize()
        assert answer["_meta"]["pilothouse"]["agent"] == "nobody"


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
async def test_without_input_or_output_it_says_so(home: Home, closed: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f'exec "$@" {closed}', "sh", *home.command()),
        env=home.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        _, said = await process.communicate()
    assert process.returncode == 2
    assert said.decode().strip() == "Error: it speaks on standard input and output, and one of them is closed"


async def test_someone_at_a_terminal_is_told_what_this_is(home: Home) -> None:
    master, slave = os.openpty()
    process = await asyncio.create_subprocess_exec(
        *home.command(), env=home.environment, stdin=slave, stdout=slave, stderr=asyncio.subprocess.PIPE
    )
    os.close(slave)
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        assert b"pilothouse setup zed" in await process.stderr.readline()
        os.write(master, b"\x04")
        assert await process.wait() == 0
    os.close(master)
    process._transport.close()  # type: ignore[attr-defined]
    assert not (home.path / "hub.json").exists(), "nobody asked for anything, and a hub was started"


# -- without a hub ------------------------------------------------------------------------------------------------


async def test_standalone_runs_one_agent_and_leaves_nothing(home: Home, tmp_path: Path) -> None:
    async with home.editor("--standalone", "-a", "demo") as editor:
        session = await editor.new_session(tmp_path)
        assert (await editor.prompt(session, "echo alone"))["stopReason"] == "end_turn"
        assert editor.texts(session) == "alone"
        listed = await editor.request("session/list", {})
        assert [one["sessionId"] for one in listed["sessions"]] == [session]
        assert await editor.leave() == 0
        assert editor.stderr == b""
    assert not list(home.path.glob("hub*")) + list(home.path.glob("pilothouse.db*"))


async def test_standalone_declines_what_its_editor_cannot_be_asked(home: Home, tmp_path: Path) -> None:
    async with home.editor("--standalone", "-a", "demo") as editor:
        session = await editor.new_session(tmp_path)
        assert (await editor.prompt(session, "question"))["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"code": -32603, "message": "the dialog broke"}}, "end_turn"),
        ({"result": {"outcome": {"outcome": "selected", "optionId": "never offered"}}}, "end_turn"),
        ({"result": {"outcome": {"outcome": "cancelled"}}}, "cancelled"),
    ],
    ids=["error", "unknown", "cancelled"],
)
async def test_standalone_waits_for_nobody_else_when_its_editor_decides_nothing(
    home: Home, tmp_path: Path, answer: dict[str, object], reason: str
) -> None:
    async with home.editor("--standalone", "-a", "demo") as editor:
        session = await editor.new_session(tmp_path)
        prompt = editor.start_prompt(session, "edit notes.txt")
        (asked,) = await editor.until(lambda: editor.asked)
        editor.say(id=asked["id"], **answer)
        async with asyncio.timeout(PATIENCE):
            assert (await prompt)["stopReason"] == reason
    assert not (tmp_path / "notes.txt").exists()


async def test_standalone_declines_a_question_that_its_editor_fails_to_ask(home: Home, tmp_path: Path) -> None:
    async with home.editor("--standalone", "-a", "demo", initialize=False) as editor:
        await editor.initialize({"elicitation": {"form": {}}})
        session = await editor.new_session(tmp_path)
        prompt = editor.start_prompt(session, "question")
        (asked,) = await editor.until(lambda: editor.asked)
        editor.say(id=asked["id"], error={"code": -32603, "message": "the form broke"})
        async with asyncio.timeout(PATIENCE):
            assert (await prompt)["stopReason"] == "end_turn"


async def test_an_agent_that_is_installed_later_is_found_and_one_that_is_not_is_explained(
    home: Home, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    home.environment["PATH"] = f"{programs}:/usr/bin:/bin"
    async with home.editor() as editor:
        first = await editor.request("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert first["_meta"]["pilothouse"]["agent"] == "demo"
        wanted = {"cwd": str(tmp_path), "mcpServers": [], "_meta": {"pilothouse": {"agent": "goose"}}}
        with pytest.raises(Refused, match="Goose is not installed"):
            await editor.request("session/new", wanted)
        program = programs / "goose"
        program.write_text(
            f"#!/bin/sh\nexec {shlex.join([*home.command()[:1], '-m', 'pilothouse.cli', 'demo-agent'])}\n"
        )
        program.chmod(0o755)
        assert (await editor.request("session/new", wanted))["_meta"]["pilothouse"]["agent"] == "goose"
        plain = await editor.request("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert plain["_meta"]["pilothouse"]["agent"] == "goose"


async def test_standalone_takes_the_first_agent_and_the_policy_of_the_configuration(home: Home, tmp_path: Path) -> None:
    program = json.dumps([home.command()[0], "-m", "pilothouse.cli", "demo-agent"])
    agents = f"[agents.mine]\ncommand = {program}\n[agents.other]\ncommand = {program}\n"
    (home.path / "config.toml").write_text(agents + "[policy.deny]\nwrites = ['**']\n")
    async with home.editor("--standalone") as editor:
        answer = await editor.initialize()
        session = await editor.new_session(tmp_path)
        assert answer["_meta"]["pilothouse"]["agent"] == "mine"
        await editor.prompt(session, "edit notes.txt")
        assert not editor.asked
        assert not (tmp_path / "notes.txt").exists()


@pytest.mark.parametrize(("options", "code", "words"), [(("-a", "demmo"), 2, b"did you mean 'demo'")])
async def test_standalone_says_what_is_wrong_and_ends(
    home: Home, options: tuple[str, ...], code: int, words: bytes
) -> None:
    async with home.editor("--standalone", *options, initialize=False) as editor:
        async with asyncio.timeout(PATIENCE):
            assert await editor.process.wait() == code
        await editor.close()
        assert words in editor.stderr
        assert editor.lines == []
