"""The built-in agent's sessions: they outlive the process, can be loaded, resumed, forked, listed and deleted."""

from __future__ import annotations

import asyncio
import json
import shutil
import stat
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp import RequestError
from pilothouse.agents.coder import agent
from pilothouse.agents.commands import Failure
from tests.support.coders import PATIENCE, Answer, Call, Client, Script, coder, prompts, results


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / "coder"


def said(client: Client) -> list[Any]:
    """What a replay tells, each kind in one word."""
    shown = []
    for update in client.updates:
        content = getattr(update, "content", None)
        text = getattr(content, "text", None)
        shown.append((update.session_update, text or getattr(update, "status", None)))
    return [one for one in shown if one[0] != "available_commands_update"]


WRITE: Call = ("write", {"path": "a.txt", "content": "x"})


async def begin(work: Path, home: Path) -> str:
    """A session with one turn in it, in a process that is gone."""
    script = Script([Answer("I write.", "Hm.", [WRITE]), "It is written."])
    async with coder(script, work, home=home) as client:
        await client.say("Write it")
        return client.session


async def test_a_new_process_remembers_the_conversation(work: Path, home: Path) -> None:
    session = await begin(work, home)
    script = Script(["You asked for a file."])
    async with coder(script, work, home=home, session=False) as client:
        await client.agent.resume_session(session_id=session, cwd=str(work))
        client.session = session
        assert said(client) == []
        await client.say("What did I ask for?")
    assert prompts(script.heard[0]) == [["Write it"], ["What did I ask for?"]]
    assert results(script.heard[0]) == ["a.txt is written."]


async def test_loading_replays_what_was_shown(work: Path, home: Path) -> None:
    session = await begin(work, home)
    async with coder(Script(["More."]), work, home=home, session=False) as client:
        loaded = await client.agent.load_session(session_id=session, cwd=str(work), mcp_servers=[])
        assert loaded is not None
        assert loaded.modes is not None
        assert said(client)[:4] == [
            ("user_message_chunk", "Write it"),
            ("session_info_update", None),
            ("agent_thought_chunk", "Hm."),
            ("agent_message_chunk", "I write. "),
        ]
        assert client.call("write")["status"] == "completed"
        assert client.call("write")["content"][0].new_text == "x"
        assert said(client)[-2:] == [("agent_message_chunk", "It is written. "), ("usage_update", None)]
        client.session = session
        before = len(client.updates)
        await client.say("Go on")
        told = len(client.updates)
        await client.agent.load_session(session_id=session, cwd=str(work), mcp_servers=[])
        again = client.updates[told:]
        assert len(again) >= before + 2


async def test_a_replay_shows_the_output_of_commands_whose_terminal_is_gone(work: Path, home: Path) -> None:
    async with coder(Script([[("bash", {"command": "echo told"})], "Done."]), work, home=home) as client:
        await client.say("go")
        session = client.session
    async with coder(Script([]), work, home=home, session=False) as client:
        await client.agent.load_session(session_id=session, cwd=str(work), mcp_servers=[])
    call = client.call("bash")
    assert [part.type for part in call["contents"]] == ["content"]
    assert "told" in call["contents"][0].content.text


async def test_always_does_not_outlive_the_process(work: Path, home: Path) -> None:
    async with coder(Script([[("bash", {"command": "true"})], "Done."]), work, home=home) as client:
        client.choose("allow_always")
        await client.say("go")
        session = client.session
    async with coder(Script([[("bash", {"command": "true"})], "Done."]), work, home=home, session=False) as client:
        await client.agent.resume_session(session_id=session, cwd=str(work))
        client.session = session
        await client.say("go")
        assert len(client.asked) == 1


async def test_mode_and_model_are_kept(work: Path, home: Path) -> None:
    async with coder(Script([]), work, home=home) as client:
        await client.agent.set_session_mode(session_id=client.session, mode_id="plan")
        await client.agent.set_config_option("model", client.session, "lab:other")
        await client.agent.set_config_option("thinking", client.session, "high")
        session = client.session
    async with coder(Script([]), work, home=home, session=False) as client:
        resumed = await client.agent.resume_session(session_id=session, cwd=str(work))
        assert {option.id: option.current_value for option in resumed.config_options or ()} == {
            "mode": "plan",
            "model": "lab:other",
            "thinking": "high",
        }


async def test_a_fork_begins_with_everything_and_goes_its_own_way(work: Path, home: Path) -> None:
    session = await begin(work, home)
    script = Script(["In the fork.", "In the first."])
    async with coder(script, work, home=home, session=False) as client:
        forked = await client.agent.fork_session(session_id=session, cwd=str(work))
        assert forked.session_id != session
        client.session = forked.session_id
        await client.say("Here")
        await client.agent.resume_session(session_id=session, cwd=str(work))
        client.session = session
        await client.say("There")
    assert prompts(script.heard[0]) == [["Write it"], ["Here"]]
    assert prompts(script.heard[1]) == [["Write it"], ["There"]]
    async with coder(Script([]), work, home=home, session=False) as client:
        await client.agent.load_session(session_id=forked.session_id, cwd=str(work), mcp_servers=[])
        texts = [text for kind, text in said(client) if kind == "user_message_chunk"]
    assert texts == ["Write it", "Here"]


async def test_sessions_are_listed_the_last_one_first(work: Path, home: Path, tmp_path: Path) -> None:
    first = await begin(work, home)
    second = await begin(tmp_path, home)
    async with coder(Script([]), work, home=home, session=False) as client:
        listed = await client.agent.list_sessions()
        assert [(one.session_id, one.cwd) for one in listed.sessions] == [(second, str(tmp_path)), (first, str(work))]
        assert [one.session_id for one in (await client.agent.list_sessions(cwd=str(work))).sessions] == [first]
        with pytest.raises(RequestError, match="cursor"):
            await client.agent.list_sessions(cursor="x")


async def test_a_long_list_comes_in_pages(work: Path, home: Path) -> None:
    async with coder(Script([]), work, home=home, session=False) as client:
        made = {(await client.agent.new_session(cwd=str(work), mcp_servers=[])).session_id for _ in range(105)}
    async with coder(Script([]), work, home=home, session=False) as client:
        first = await client.agent.list_sessions()
        rest = await client.agent.list_sessions(cursor=first.next_cursor)
    listed = [one.session_id for one in (*first.sessions, *rest.sessions)]
    assert (len(first.sessions), rest.next_cursor) == (100, None)
    assert set(listed) == made
    assert len(listed) == 105


async def test_a_deleted_session_is_gone(work: Path, home: Path) -> None:
    session = await begin(work, home)
    async with coder(Script([]), work, home=home, session=False) as client:
        await client.agent.delete_session(session_id=session)
        await client.agent.delete_session(session_id=session)
        assert (await client.agent.list_sessions()).sessions == []
        with pytest.raises(RequestError):
            await client.agent.resume_session(session_id=session, cwd=str(work))
    assert list(home.iterdir()) == []


async def test_a_closed_session_takes_no_prompt_until_it_is_taken_up_again(work: Path, home: Path) -> None:
    async with coder(Script(["Yes."]), work, home=home) as client:
        await client.agent.close_session(session_id=client.session)
        with pytest.raises(RequestError):
            await client.say("go")
        await client.agent.resume_session(session_id=client.session, cwd=str(work))
        assert (await client.say("go")).stop_reason == "end_turn"


async def test_files_are_for_the_owner_only(work: Path, home: Path) -> None:
    await begin(work, home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    files = list(home.iterdir())
    assert sorted(path.suffix for path in files) == [".json", ".jsonl"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


@pytest.mark.parametrize("name", ["../secret", "coder-../../x", "coder-", "x" * 300, "coder-0123456789abcdef/../a"])
async def test_an_id_names_nothing_but_a_session(work: Path, home: Path, name: str) -> None:
    home.mkdir(parents=True)
    (home.parent / "secret.json").write_text(json.dumps({"cwd": "/"}))
    async with coder(Script([]), work, home=home, session=False) as client:
        with pytest.raises(RequestError):
            await client.agent.resume_session(session_id=name, cwd=str(work))
        await client.agent.delete_session(session_id=name)
    assert (home.parent / "secret.json").exists()


async def test_damaged_files_are_passed_over(work: Path, home: Path) -> None:
    session = await begin(work, home)
    (home / "coder-0000000000000000.json").write_text("{")
    (home / "coder-1111111111111111.json").write_bytes(b"\xff\x00")
    (home / "coder-2222222222222222.json").mkdir()
    (home / "coder-3333333333333333.json").write_text('{"cwd": "/", "updated_at": 1e300}')
    (home / "coder-x.json").write_text('{"cwd": "/"}')
    with (home / f"{session}.jsonl").open("ab") as file:
        file.write(b'{"sessionUpdate": "agent_mess')
    script = Script(["Yes."])
    async with coder(script, work, home=home, session=False) as client:
        assert [one.session_id for one in (await client.agent.list_sessions()).sessions] == [session]
        await client.agent.load_session(session_id=session, cwd=str(work), mcp_servers=[])
        client.session = session
        await client.say("Still there?")
    async with coder(Script([]), work, home=home, session=False) as client:
        await client.agent.load_session(session_id=session, cwd=str(work), mcp_servers=[])
        assert [text for kind, text in said(client) if kind == "user_message_chunk"] == ["Write it", "Still there?"]


async def test_a_memory_that_cannot_be_read_is_an_error_that_says_so(work: Path, home: Path) -> None:
    session = await begin(work, home)
    path = home / f"{session}.json"
    kept = json.loads(path.read_text())
    kept["messages"] = [{"kind": "nonsense"}]
    path.write_text(json.dumps(kept))
    async with coder(Script([]), work, home=home, session=False) as client:
        await client.agent.resume_session(session_id=session, cwd=str(work))
        client.session = session
        with pytest.raises(RequestError, match="memory of this session cannot be read"):
            await client.say("go")


async def test_a_session_whose_process_was_killed_in_a_call_goes_on(work: Path, home: Path) -> None:
    session = await begin(work, home)
    path = home / f"{session}.json"
    kept = json.loads(path.read_text())
    kept["messages"] = kept["messages"][:2]  # as far as the call, without its result
    path.write_text(json.dumps(kept))
    script = Script(["Yes."])
    async with coder(script, work, home=home, session=False) as client:
        await client.agent.resume_session(session_id=session, cwd=str(work))
        client.session = session
        await client.say("Go on")
    assert "interrupted" in results(script.heard[0])[0]


OPEN = (
    {"sessionUpdate": "tool_call", "toolCallId": "silent", "title": "bash", "status": "pending"},
    {"sessionUpdate": "tool_call", "toolCallId": "shown", "title": "edit", "status": "pending"},
    {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "shown",
        "status": "in_progress",
        "content": [{"type": "diff", "path": "/a", "newText": "x"}],
    },
    {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"},
)


async def test_what_a_killed_process_was_at_has_ended_in_every_replay(work: Path, home: Path) -> None:
    session = await begin(work, home)
    with (home / f"{session}.jsonl").open("ab") as file:
        for line in (*OPEN, {"sessionUpdate": "from_the_future", "toolCallId": "odd"}):
            file.write(json.dumps(line).encode() + b"\n")
        file.write(b'{"sessionUpdate": "tool_call", "toolCallId": "torn')
    for prompt in ("Go on", "And on"):
        async with coder(Script(["Yes."]), work, home=home, session=False) as client:
            await client.agent.load_session(session_id=session, cwd=str(work), mcp_servers=[])
            assert client.is_settled()
            silent, shown = client.calls["silent"], client.calls["shown"]
            assert [one["statuses"][-1] for one in (silent, shown)] == ["failed", "failed"]
            assert "agent was ended" in silent["contents"][0].content.text
            assert [part.type for part in shown["contents"]] == ["diff"]
            assert "agent was ended" in shown["raw_output"]["error"]
            assert [update.status for update in client.of("compaction_update")] == ["in_progress", "failed"]
            assert set(client.calls) == {"silent", "shown", *(one for one in client.calls if one.startswith("call-"))}
            client.session = session
            await client.say(prompt)
    # where it was cut off, and once
    lines = [json.loads(line) for line in (home / f"{session}.jsonl").read_bytes().splitlines() if b"torn" not in line]
    ends = [at for at, line in enumerate(lines) if "agent was ended" in str(line)]
    assert len(ends) == 3
    assert lines[ends[-1] + 1]["content"]["text"] == "Go on"


async def test_a_prompt_that_a_killed_process_had_not_answered_is_remembered(work: Path, home: Path) -> None:
    gate = asyncio.Event()
    script = Script([Answer("Late.", until=gate)])
    async with coder(script, work, home=home) as client:
        turn = client.start("Remember this")
        await client.until(lambda: script.heard)
        shutil.copytree(home, home.with_name("as it was"))
        session = client.session
        gate.set()
        await turn
    later = Script(["Yes."])
    async with coder(later, work, home=home.with_name("as it was"), session=False) as client:
        await client.agent.resume_session(session_id=session, cwd=str(work))
        client.session = session
        await client.say("Go on")
    assert prompts(later.heard[0]) == [["Remember this"], ["Go on"]]


async def test_a_fork_in_the_middle_of_a_turn_has_no_call_that_runs_for_ever(work: Path, home: Path) -> None:
    gate = asyncio.Event()
    script = Script([[("task", {"description": "part", "prompt": "part"})], Answer("Report.", until=gate), "Done."])
    async with coder(script, work, home=home) as client:
        turn = client.start("go")
        await client.until(lambda: any(call["status"] == "in_progress" for call in client.calls.values()))
        forked = (await client.agent.fork_session(session_id=client.session, cwd=str(work))).session_id
        seen = len(client.updates)
        await client.agent.load_session(session_id=forked, cwd=str(work), mcp_servers=[])
        (ended,) = [update for update in client.updates[seen:] if getattr(update, "status", None) == "failed"]
        gate.set()
        await turn
        assert client.calls[ended.tool_call_id]["status"] == "completed"


async def test_a_turn_that_runs_here_is_loaded_as_it_is(work: Path, home: Path) -> None:
    gate = asyncio.Event()
    script = Script([[("task", {"description": "part", "prompt": "part"})], Answer("Report.", until=gate), "Done."])
    async with coder(script, work, home=home) as client:
        turn = client.start("go")
        await client.until(lambda: any(call["status"] == "in_progress" for call in client.calls.values()))
        await client.agent.load_session(session_id=client.session, cwd=str(work), mcp_servers=[])
        gate.set()
        await turn
        assert client.call("task")["status"] == "completed"
        assert "failed" not in client.call("task")["statuses"]


@pytest.mark.parametrize("method", ["new_session", "fork_session"])
@pytest.mark.parametrize(("name", "reason"), [("none", "does not exist"), ("file", "is no directory")])
async def test_a_directory_that_is_not_there_is_refused_and_no_session_is_made(
    work: Path, home: Path, method: str, name: str, reason: str
) -> None:
    (work / "file").write_text("")
    async with coder(Script([]), work, home=home) as client:
        given = {} if method == "new_session" else {"session_id": client.session}
        with pytest.raises(RequestError) as caught:
            await getattr(client.agent, method)(cwd=str(work / name), mcp_servers=[], **given)
        assert caught.value.data == {"field": "cwd", "reason": f"{str(work / name)!r} {reason}"}
        assert len((await client.agent.list_sessions()).sessions) == 1


@pytest.mark.parametrize("method", ["new_session", "resume_session", "load_session", "fork_session"])
async def test_a_directory_that_is_not_absolute_is_refused(work: Path, home: Path, method: str) -> None:
    async with coder(Script([]), work, home=home) as client:
        given = {} if method == "new_session" else {"session_id": client.session}
        with pytest.raises(RequestError) as caught:
            await getattr(client.agent, method)(cwd="work", mcp_servers=[], **given)
        assert caught.value.data["field"] == "cwd"


@pytest.mark.parametrize("method", ["new_session", "load_session", "resume_session", "fork_session"])
async def test_another_directory_that_is_not_absolute_is_refused_and_nothing_is_changed(
    work: Path, home: Path, method: str
) -> None:
    async with coder(Script([]), work, home=home) as client:
        given = {} if method == "new_session" else {"session_id": client.session}
        before = {path.name: path.read_bytes() for path in home.iterdir()}
        with pytest.raises(RequestError) as told:
            await getattr(client.agent, method)(cwd=str(work), additional_directories=["near"], mcp_servers=[], **given)
        assert told.value.data == {
            "field": "additionalDirectories",
            "reason": "expected an absolute path, got 'near'",
        }
        assert {path.name: path.read_bytes() for path in home.iterdir()} == before


async def test_a_session_that_was_opened_is_made_ready_for_a_prompt(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "LEISURE", 0.0)
    made = asyncio.Event()
    script = Script(["Hello."])
    make = script.model

    def model() -> Any:
        loop.call_soon_threadsafe(made.set)
        return make()

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(script, "model", model)
    async with coder(script, work), asyncio.timeout(PATIENCE):
        await made.wait()
    assert script.heard == []


async def test_what_cannot_be_made_ready_is_told_by_the_prompt(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "LEISURE", 0.0)
    script = Script([])
    tried: list[int] = []

    def model() -> Any:
        tried.append(1)
        raise Failure("There is no such model.")

    monkeypatch.setattr(script, "model", model)
    async with coder(script, work) as client:
        with pytest.raises(RequestError, match="There is no such model"):
            await client.say("hello")
        monkeypatch.undo()
        assert (await client.say("again")).stop_reason == "end_turn"
    assert tried


async def test_a_disk_that_cannot_be_written_ends_no_turn_and_is_told_of(work: Path, home: Path) -> None:
    async with coder(Script(["Yes.", "Yes."]), work, home=home) as client:
        shutil.rmtree(home)
        assert (await client.say("go")).stop_reason == "end_turn"
        assert "could not be read or kept on disk" in client.thoughts
    assert client.text == "Yes. "


async def test_a_list_of_one_directory_has_its_sessions_however_it_is_written(work: Path, home: Path) -> None:
    session = await begin(work, home)
    async with coder(Script([]), work, home=home, session=False) as client:
        for cwd in (str(work), f"{work}/"):
            assert [one.session_id for one in (await client.agent.list_sessions(cwd=cwd)).sessions] == [session]
        assert (await client.agent.list_sessions(cwd=str(work.parent))).sessions == []


@pytest.mark.parametrize("slow", ["library", "model"])
async def test_a_prompt_that_is_cancelled_while_things_are_loaded_is_remembered(
    work: Path, home: Path, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, loaded = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    script = Script(["Forty-two."])

    def load(given: Any, make: Any) -> Any:
        loop.call_soon_threadsafe(loading.set)
        loaded.wait(PATIENCE)
        return make(given)

    if slow == "library":
        monkeypatch.setattr(agent, "import_module", partial(load, make=agent.import_module))
    make = partial(load, make=lambda _: script.model()) if slow == "model" else None
    async with coder(script, work, home=home, resolve=make) as client:
        prompt = client.start("Remember the number 42")
        async with asyncio.timeout(PATIENCE):
            await loading.wait()
        await client.cancel()
        assert (await prompt).stop_reason == "cancelled"
        loaded.set()
        client.updates.clear()
        await client.agent.load_session(session_id=client.session, cwd=str(work), mcp_servers=[])
        assert ("user_message_chunk", "Remember the number 42") in said(client)
        await client.say("Which number?")
        await client.say("And again?")
    assert prompts(script.heard[-1]) == [["Remember the number 42"], ["Which number?"], ["And again?"]]
