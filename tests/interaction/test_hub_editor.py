"""An editor that is attached to a session lends its agent files and terminals; without one the hub's own are used."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp.errors import RequestError
from pilothouse.hub.client import editor_terminals, editors
from pilothouse.hub.hub import Hub
from pilothouse.server.auth.callers import Caller
from tests.support.hubs import PATIENCE, check, facts, history, odd_hub
from tests.support.lending import OWNER, lending
from tests.support.rogue import ask, do, rogue_hub
from tests.support.schema_check import check_frames
from tests.support.servers import agent_specs


async def forever(params: dict[str, Any]) -> Any:
    await asyncio.Event().wait()


async def refused(params: dict[str, Any]) -> Any:
    raise RequestError(-32044, "the user said no", {"asked": params["path"]})


async def unheard_of(params: dict[str, Any]) -> Any:
    raise RequestError.method_not_found("x")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


# -- files --


async def test_unsaved_buffers_are_what_the_agent_reads(tmp_path: Path, root: Path) -> None:
    (root / "a.txt").write_text("saved")
    async with odd_hub(tmp_path) as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        editor.buffers[str(root / "a.txt")] = "unsaved"
        await editor.prompt(session_id, f"read {root}/a.txt")
        assert json.loads(editor.said) == {"content": "unsaved", "_meta": {"from": "zed"}}
        (asked,) = editor.asked("fs/read_text_file")
        assert (asked["sessionId"], asked["path"]) == (session_id, str(root / "a.txt"))
        events = await history(hub.log, session_id)
        assert facts(events, "served_by") == [{"editor": "zed"}]
        check(events)


async def test_a_relative_path_and_one_that_goes_back_up_reach_the_editor_as_absolute_ones(
    tmp_path: Path, root: Path
) -> None:
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "link").symlink_to(root / "sub" / "deep")
    async with odd_hub(tmp_path) as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        for path in ("a.txt", "link/../a.txt"):
            await editor.prompt(session_id, f"put {path} x")
        assert [asked["path"] for asked in editor.asked("fs/write_text_file")] == [
            str(root / "a.txt"),
            str(root / "sub" / "a.txt"),  # where the link leads, and up from there
        ]


async def test_writes_go_to_the_editor_and_not_to_the_disk(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path) as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        await editor.prompt(session_id, f"put {root}/a.txt new words")
        assert editor.answered() == {}
        assert editor.buffers == {str(root / "a.txt"): "new words"}
        assert not (root / "a.txt").exists()


async def test_an_editor_that_offers_only_reads_is_not_asked_to_write(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path) as hub, lending(hub) as editor:
        editor.capabilities = {"fs": {"readTextFile": True}}
        await editor.initialize()
        session_id = await editor.open(root)
        await editor.prompt(session_id, f"put {root}/a.txt hub")
        assert (root / "a.txt").read_text() == "hub"
        await editor.prompt(session_id, "terminal true")
        assert {method for method, _ in editor.calls} == {"fs/read_text_file"}  # to show what changes


async def test_a_refusal_of_the_editor_is_the_agents_answer_as_it_came(tmp_path: Path, root: Path) -> None:
    (root / "a.txt").write_text("saved")
    async with odd_hub(tmp_path) as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        await editor.prompt(session_id, f"read {root}/a.txt")  # no such buffer
        assert json.loads(editor.said)["error"]["code"] == -32002
        editor.answers["fs/write_text_file"] = refused
        await editor.prompt(session_id, f"put {root}/b.txt x")
        error = editor.answered()["error"]
        assert (error["code"], error["message"], error["data"]) == (
            -32044,
            "the user said no",
            {"asked": str(root / "b.txt")},
        )
        assert not (root / "b.txt").exists()


@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file"])
async def test_what_an_editor_does_not_know_the_hub_does(tmp_path: Path, root: Path, method: str) -> None:
    (root / "a.txt").write_text("saved")
    async with odd_hub(tmp_path) as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        editor.answers[method] = unheard_of
        is_read = "read" in method
        await editor.prompt(session_id, f"read {root}/a.txt" if is_read else f"put {root}/a.txt written")
        assert "error" not in editor.said
        assert (root / "a.txt").read_text() == ("saved" if is_read else "written")
        assert editor.asked(method)


@pytest.mark.parametrize("answer", [None, 7, {}, {"content": 7}, []])
async def test_an_answer_that_is_none_counts_as_not_known(tmp_path: Path, root: Path, answer: Any) -> None:
    (root / "a.txt").write_text("saved")

    async def odd(params: dict[str, Any]) -> Any:
        return answer

    async with odd_hub(tmp_path) as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        editor.answers["fs/read_text_file"] = odd
        await editor.prompt(session_id, f"read {root}/a.txt")
        assert json.loads(editor.said) == {"content": "saved"}


@pytest.mark.parametrize("what", ["read", "put"])
async def test_an_editor_that_vanishes_in_the_middle_is_stood_in_for(tmp_path: Path, root: Path, what: str) -> None:
    (root / "a.txt").write_text("saved")
    async with odd_hub(tmp_path) as hub, lending(hub) as watcher, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        await watcher.load(session_id)
        editor.answers["fs/read_text_file"] = editor.answers["fs/write_text_file"] = forever
        session = await hub.session(session_id)
        turn = await session.send(f"{what} {root}/a.txt" + (" by the hub" if what == "put" else ""))
        await editor.until(lambda: editor.calls)
        await editor.vanish()
        async with asyncio.timeout(PATIENCE):
            await turn.done
        await watcher.until(lambda: watcher.said)
        assert "error" not in watcher.said
        assert (root / "a.txt").read_text() == ("saved" if what == "read" else "by the hub")
        # and when it is back, it is asked again
        async with lending(hub, fs=True, name="back") as back:
            await back.load(session_id)
            back.buffers[str(root / "a.txt")] = "unsaved"
            await back.prompt(session_id, f"read {root}/a.txt")
            assert "unsaved" in back.said
        # once it has left by itself, the hub does it
        await session.prompt(f"read {root}/a.txt")
        served = facts(await history(hub.log, session_id), "served_by")
        assert [fact["editor"] for fact in served][-2:] == ["back", None]


async def test_a_silent_editor_is_not_waited_for_when_it_reads(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editors, "READ", 0.1)
    (root / "a.txt").write_text("saved")
    async with odd_hub(tmp_path) as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        editor.answers["fs/read_text_file"] = forever
        await editor.prompt(session_id, f"read {root}/a.txt")
        assert json.loads(editor.said) == {"content": "saved"}


async def test_a_write_of_which_nobody_knows_is_not_done_again(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editors, "WRITE", 0.1)
    async with odd_hub(tmp_path) as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        editor.answers["fs/write_text_file"] = forever
        await editor.prompt(session_id, f"put {root}/a.txt x")
        assert "may still do so" in editor.answered()["error"]["message"]
        assert not (root / "a.txt").exists()


async def test_the_one_that_prompted_is_asked_else_the_one_that_came_last(tmp_path: Path, root: Path) -> None:
    (root / "a.txt").write_text("saved")
    async with odd_hub(tmp_path) as hub, lending(hub, fs=True, name="one") as one:
        session_id = await one.open(root)
        one.buffers[str(root / "a.txt")] = "first"
        async with lending(hub, fs=True, name="two") as two:
            await two.load(session_id)
            two.buffers[str(root / "a.txt")] = "second"
            session = await hub.session(session_id)
            read = f"read {root}/a.txt"
            for prompt, wanted in ((one.prompt(session_id, read), "first"), (two.prompt(session_id, read), "second")):
                before = len(one.said)
                await prompt
                await one.until(lambda before=before: len(one.said) > before)
                assert wanted in one.said[before:]
            before = len(one.said)
            await session.prompt(read)  # a browser, say
            await one.until(lambda: len(one.said) > before)
            assert "second" in one.said[before:]
            await two.call("session/close", sessionId=session_id)
            before = len(one.said)
            await (await hub.session(session_id)).prompt(read)
            await one.until(lambda: len(one.said) > before)
            assert "first" in one.said[before:]


async def test_an_editor_stays_one_when_the_session_is_let_go_and_taken_up_again(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path, "resume") as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        editor.buffers[str(root / "a.txt")] = "unsaved"
        await hub.release(session_id)
        await (await hub.session(session_id)).prompt(f"read {root}/a.txt")
        await editor.until(lambda: "unsaved" in editor.said)


# -- what is held against rules all the same --


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside.txt", "escape/outside.txt", "/proc/self/environ", ""])
async def test_no_path_outside_of_the_workspace_reaches_an_editor(tmp_path: Path, root: Path, path: str) -> None:
    (root / "escape").symlink_to(tmp_path)
    async with odd_hub(tmp_path / "home") as hub, lending(hub, fs=True, terminal=True) as editor:
        session_id = await editor.open(root)
        await editor.prompt(session_id, f"read {path}")
        assert json.loads(editor.said)["error"]["code"] == -32602
        await editor.prompt(session_id, f"put {path} x")
        assert editor.answered()["error"]["code"] == -32602
        assert editor.calls == []


async def test_what_a_rule_denies_no_editor_is_asked_for(tmp_path: Path, root: Path) -> None:
    policy = {"deny": {"reads": ["secret*"], "writes": ["*.lock"], "commands": ["rm *"]}}
    async with odd_hub(tmp_path / "home") as hub, lending(hub, fs=True, terminal=True) as editor:
        session = await hub.start_session("odd", root, policy=policy)
        await editor.load(session.id)
        for text in (f"read {root}/secret.txt", f"put {root}/x.lock y", "terminal rm -rf x"):
            before = len(editor.said)
            await editor.prompt(session.id, text)
            assert "refused" in editor.said[before:]
        assert editor.calls == []


@pytest.mark.parametrize("scopes", [{"read"}, {"read", "prompt"}, {"read", "approve"}])
async def test_who_may_not_prompt_and_approve_lends_nothing(tmp_path: Path, root: Path, scopes: set[str]) -> None:
    (root / "a.txt").write_text("true")
    phone = Caller(name="phone", scopes=frozenset(scopes))
    async with odd_hub(tmp_path / "home") as hub, lending(hub, caller=phone, fs=True, terminal=True) as liar:
        session = await hub.start_session("odd", root, policy={"autoApprove": {"commands": True}})
        await liar.load(session.id)
        liar.buffers[str(root / "a.txt")] = "a lie"
        await session.prompt(f"read {root}/a.txt")
        await session.prompt("shell early echo out")
        await session.prompt("extend _who/are-you")
        await liar.until(lambda: "ANSWER" in liar.said)
        assert "a lie" not in liar.said
        assert liar.calls == []
        assert liar.answered()["error"]["code"] == -32601


async def test_who_authenticates_by_the_protocol_is_an_editor_from_then_on(tmp_path: Path, root: Path) -> None:
    async def authenticate(token: str) -> Caller | None:
        return {"owner": OWNER, "phone": Caller(name="phone", scopes=frozenset({"read", "prompt"}))}.get(token)

    (root / "a.txt").write_text("saved")
    for token, wanted in (("owner", "unsaved"), ("phone", "saved")):
        hub = odd_hub(tmp_path / "home")
        async with hub, lending(hub, caller=None, authenticate=authenticate, fs=True) as editor:
            await editor.call("authenticate", methodId="pilothouse-token", _meta={"token": token})
            editor.buffers[str(root / "a.txt")] = "unsaved"
            session_id = await editor.open(root)
            await editor.prompt(session_id, f"read {root}/a.txt")
            assert json.loads(editor.said)["content"] == wanted


# -- terminals --


async def test_a_program_runs_in_the_editor_and_everybody_sees_what_it_prints(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as watcher, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        await watcher.load(session_id)
        await editor.prompt(session_id, "shell early echo is $((6 * 7)); echo two; exit 3")
        (made,) = editor.asked("terminal/create")
        assert (made["sessionId"], made["cwd"]) == (session_id, str(root))
        assert "PILOTHOUSE" not in json.dumps(made)
        assert [method for method, _ in editor.calls if "release" in method] == ["terminal/release"]
        events = await history(hub.log, session_id)
        check(events)
        ends = [event for event in events if event.type in ("tool:result", "tool:error")]
        (result,) = (event for event in ends if event.tool_call_id == "s1")  # type: ignore[attr-defined]
        assert "is 42\ntwo" in str(getattr(result, "output", ""))
        assert facts(events, "served_by") == [{"editor": "zed"}]
        # the editor shows its own terminal, the others get the text
        shown = [update for update in editor.updates if update.get("toolCallId") == "s1"]
        assert shown[0]["content"][0]["type"] == "terminal"
        assert "is 42" not in json.dumps(shown)
        await watcher.until(lambda: any("is 42" in json.dumps(update) for update in watcher.updates))
        assert '"terminalId"' not in json.dumps(watcher.updates)


async def test_output_is_followed_while_the_program_runs(tmp_path: Path, root: Path) -> None:
    go = root / "go"
    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        session = await hub.session(session_id)
        turn = await session.send(f"shell early echo begun; while ! test -e {go}; do sleep 0.05; done; echo over")
        async with asyncio.timeout(PATIENCE):
            async for event in session.events():
                if event.type == "progress:update" and "begun" in str(getattr(event, "output", "")):
                    break
        go.touch()
        assert (await turn.done).stop_reason == "end_turn"
        events = await history(hub.log, session_id)
        told = "".join(str(event.output or "") for event in events if event.type == "progress:update")  # type: ignore[attr-defined]
        assert told.count("begun") == told.count("over") == 1


async def test_an_agent_can_look_kill_wait_and_release(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        await editor.prompt(session_id, "terminal-calls sleep 600 :: output kill wait_for_exit output release output")
        lines = dict(line.split(" ", 1) for line in editor.said.splitlines())
        assert json.loads(lines["wait_for_exit"])["signal"] == "SIGTERM"
        assert json.loads(lines["release"]) == {}
        assert json.loads(lines["output"])["error"]["code"] == -32002  # the last one: it was released
        assert editor.terminals is not None
        assert len(editor.terminals) == 0


async def test_terminals_of_an_editor_that_vanishes_end_with_what_is_known(tmp_path: Path, root: Path) -> None:
    go = root / "go"
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as watcher, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        await watcher.load(session_id)
        session = await hub.session(session_id)
        calls = f"output go={go} wait_for_exit output kill release"
        turn = await session.send(f"terminal-calls echo begun; sleep 600 :: {calls}")
        await editor.until(lambda: "MADE" in editor.said)
        await editor.until(lambda: len(editor.asked("terminal/output")) > 1)
        await editor.vanish()
        go.touch()
        async with asyncio.timeout(PATIENCE):
            await turn.done
        await watcher.until(lambda: "release" in watcher.said)
        lines = [line.split(" ", 1) for line in watcher.said.splitlines()]
        assert [name for name, _ in lines] == ["MADE", "output", "wait_for_exit", "output", "kill", "release"]
        answers = [json.loads(answer) for _, answer in lines]
        assert answers[2] == {"exitCode": None, "signal": "unknown"}
        assert answers[3]["output"].startswith("begun")
        assert "is gone" in answers[3]["output"]
        assert answers[3]["exitStatus"] == answers[2]
        assert answers[4] == answers[5] == {}
        # the next one is the hub's, and after somebody came back it is theirs again
        await session.prompt("shell early echo here")
        async with lending(hub, terminal=True) as back:
            await back.load(session_id)
            await back.prompt(session_id, "shell early echo there")
            assert len(back.asked("terminal/create")) == 1
        served = facts(await history(hub.log, session_id), "served_by")
        assert [fact["editor"] for fact in served] == ["zed", None, "zed"]
        check(await history(hub.log, session_id))


async def test_a_program_that_an_editor_may_have_started_is_not_started_again(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as watcher, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        await watcher.load(session_id)
        editor.answers["terminal/create"] = forever
        turn = await (await hub.session(session_id)).send(f"terminal touch {root}/ran")
        await editor.until(lambda: editor.calls)
        await editor.vanish()
        await turn.done
        await watcher.until(lambda: "ANSWER" in watcher.said)
        assert "may have run" in watcher.answered()["error"]["message"]
        assert not (root / "ran").exists()


async def test_an_editor_that_answers_no_call_on_its_terminal_keeps_nobody_waiting(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor_terminals, "CALL", 0.1)
    monkeypatch.setattr(editor_terminals, "PARTING", 0.1)
    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        for name in ("output", "wait_for_exit", "kill", "release"):
            editor.answers[f"terminal/{name}"] = forever
        await editor.prompt(session_id, "terminal-calls true :: output kill release")
        lines = dict(line.split(" ", 1) for line in editor.said.splitlines())
        assert json.loads(lines["output"]) == {"output": "", "truncated": False}
        assert json.loads(lines["kill"]) == json.loads(lines["release"]) == {}


async def test_a_terminal_is_of_one_session_alone(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        one, two = await editor.open(root), await editor.open(root)
        await editor.prompt(one, "terminal sleep 600")
        terminal_id = editor.answered()["terminalId"]
        editor.told.clear()
        names = ("output", "wait_for_exit", "kill", "release")
        await editor.prompt(two, "terminal-calls  :: " + " ".join(f"{name}={terminal_id}" for name in names))
        answers = [json.loads(line.split(" ", 1)[1]) for line in editor.said.splitlines()[1:]]
        assert [answer["error"]["code"] for answer in answers] == [-32002] * 4
        assert editor.asked("terminal/kill") == []


async def test_an_id_that_the_hub_has_given_is_not_an_editors_to_give(tmp_path: Path, root: Path) -> None:
    """An editor that names its terminal as another one is called must not get what is meant for that."""
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as watcher:
        session_id = await watcher.open(root)
        await watcher.prompt(session_id, "terminal sleep 600")
        own = watcher.answered()["terminalId"]

        async def same(params: dict[str, Any]) -> Any:
            return {"terminalId": own}

        async with lending(hub, terminal=True) as editor:
            await editor.load(session_id)
            editor.answers["terminal/create"] = same
            editor.answers["terminal/wait_for_exit"] = forever
            await editor.prompt(session_id, "terminal true")
            assert editor.answered()["terminalId"] != own


async def test_a_dead_agent_leaves_no_terminal_in_the_editor(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        await editor.prompt(session_id, "shell leave sleep 600")
        with pytest.raises(RequestError):
            await editor.prompt(session_id, "die 3")
        await editor.until(lambda: editor.asked("terminal/release"))


async def test_a_foreign_terminal_is_not_in_a_question_either(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor, lending(hub) as other:
        session_id = await editor.open(root)
        await other.load(session_id)
        session = await hub.session(session_id)
        turn = await session.send("terminal-question sleep 600")
        await editor.until(lambda: editor.asked("session/request_permission"))
        await other.until(lambda: other.asked("session/request_permission"))
        (mine,), (theirs,) = (one.asked("session/request_permission") for one in (editor, other))
        assert "terminal" in [item["type"] for item in mine["toolCall"]["content"]]
        assert {item["type"] for item in theirs["toolCall"]["content"]} == {"content"}
        await session.cancel()
        await turn.done


@pytest.mark.parametrize("prompt", ["tour", "edit", "shell ls", "terminal echo hi", "question", "plan", "tools"])
async def test_all_that_an_editor_is_told_fits_the_schema(tmp_path: Path, root: Path, prompt: str) -> None:
    async def allowed(params: dict[str, Any]) -> Any:
        option = next(one["optionId"] for one in params["options"] if one["kind"].startswith("allow"))
        return {"outcome": {"outcome": "selected", "optionId": option}}

    async def declined(params: dict[str, Any]) -> Any:
        return {"action": "decline"}

    offered = {"elicitation": {"form": {}, "url": {}}, "session": {"notices": {}, "compaction": {}}}
    async with Hub(home=tmp_path / "home", agents=agent_specs(tmp_path)) as hub:
        async with lending(hub, fs=True, terminal=True, **offered) as editor:
            editor.answers = {"session/request_permission": allowed, "elicitation/create": declined}
            session_id = (await editor.new(root))["sessionId"]
            await editor.prompt(session_id, prompt)
            await editor.load(session_id)
            checker = check_frames("agent", editor.frames)
            assert {"NewSessionResponse", "PromptResponse", "SessionNotification"} <= checker.checked
        check(await history(hub.log, session_id))


# -- extensions --


async def known(params: dict[str, Any]) -> Any:
    return {"sessionId": params["sessionId"], "it": "is"}


async def test_an_agents_extension_is_asked_of_who_knows_it(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub, name="one") as one, lending(hub, name="two") as two:
        session_id = await one.open(root)
        await two.load(session_id)
        await one.prompt(session_id, "extend _who/knows")
        assert one.answered()["error"]["code"] == -32601
        assert one.asked("_who/knows") == two.asked("_who/knows") == [{"sessionId": session_id, "x": 1}]
        two.answers["_who/knows"] = known
        await one.prompt(session_id, "extend _who/knows")
        own = (await hub.session(session_id)).agent_session_id
        assert one.answered() == {"sessionId": own, "it": "is"}

        async def no(params: dict[str, Any]) -> Any:
            raise RequestError(-32055, "I will not")

        one.answers["_who/knows"] = no
        await one.prompt(session_id, "extend _who/knows")
        assert one.answered()["error"]["code"] == -32055


@pytest.mark.parametrize("method", ["_odd/news", "elicitation/complete"])
async def test_an_agents_announcements_reach_all_as_they_came_and_are_not_repeated(
    tmp_path: Path, root: Path, method: str
) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as one, lending(hub) as two:
        session_id = await one.open(root)
        await two.load(session_id)
        await one.prompt(session_id, f"announce {method}")
        for client in (one, two):
            await client.until(lambda client=client: "announced" in client.said)
            ((_, params),) = [told for told in client.told if told[0] == method]
            seq = params["_meta"].pop("pilothouse")["seq"]
            assert params == {"sessionId": session_id, "x": [1], "_meta": {"odd": 1}}
        async with lending(hub) as late:
            await late.load(session_id)
            assert [told for told in late.told if told[0] == method] == []
        async with lending(hub) as back:
            await back.call("session/resume", sessionId=session_id, cwd="/", _meta={"pilothouse": {"after": seq - 1}})
            assert len([told for told in back.told if told[0] == method]) == 1


@pytest.mark.parametrize("method", ["session/cancel", "session/update_all", "odd/news", "$/odd"])
async def test_an_agent_announces_nothing_by_a_name_that_is_not_its_own(
    tmp_path: Path, root: Path, method: str
) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor:
        session_id = await editor.open(root)
        await editor.prompt(session_id, f"announce {method}")
        assert "announced" in editor.said
        assert {name for name, _ in editor.told} == {"session/update"}


async def test_a_clients_extensions_are_the_agents_with_its_own_id(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor:
        session_id = await editor.open(root)
        own = (await hub.session(session_id)).agent_session_id
        answer = await editor.call("_odd/echo", sessionId=session_id, x=1)
        assert answer == {"sessionId": session_id, "got": {"sessionId": own, "x": 1}}
        with pytest.raises(RequestError) as caught:
            await editor.call("_odd/refuse", sessionId=session_id)
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32099, "not today", {"why": "odd"})
        for method, params, code in (
            ("_odd/unheard", {"sessionId": session_id}, -32601),
            ("_odd/echo", {}, -32601),
            ("_odd/echo", {"sessionId": 7}, -32601),
            ("_odd/echo", {"sessionId": "ses_none"}, -32002),
            ("_session/set_mode", {"sessionId": session_id, "modeId": "yolo"}, -32601),
            ("_", {"sessionId": session_id}, -32601),
        ):
            with pytest.raises(RequestError) as caught:
                await editor.call(method, **params)
            assert caught.value.code == code, method
        assert (await hub.session(session_id)).state.mode == "ask"


async def test_a_clients_announcements_reach_the_agent_that_runs(tmp_path: Path, root: Path) -> None:
    reader = Caller(name="screen", scopes=frozenset({"read"}))
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor, lending(hub, caller=reader) as screen:
        session_id = await editor.open(root)
        own = (await hub.session(session_id)).agent_session_id
        await screen.load(session_id)
        await screen.wire.send_notification("_odd/poke", {"sessionId": session_id, "by": "screen"})
        await screen.call("session/list")
        for params in ({"sessionId": session_id, "n": 1}, {"n": 2}, {"sessionId": "ses_none"}):
            await editor.wire.send_notification("_odd/poke", params)
        await editor.prompt(session_id, "given")
        assert json.loads(editor.said)["heard"] == [["_odd/poke", {"sessionId": own, "n": 1}]]


# -- approvals ----------------------------------------------------------------------------------------------------


async def test_an_editor_gets_the_last_value_of_a_variable(tmp_path: Path, root: Path) -> None:
    async with rogue_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root, agent="rogue")
        twice = [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}]
        await editor.prompt(session_id, do("terminal/create", command="true", env=twice))
        (made,) = editor.asked("terminal/create")
        assert made["env"] == twice[1:]


async def test_a_text_that_changes_in_the_editor_before_a_write_is_not_overwritten(tmp_path: Path, root: Path) -> None:
    texts = ["a\nz\n", "new\na\nz\n", "other\na\nz\n"]  # for the question, for the comparison, before the write

    async def read(params: dict[str, Any]) -> Any:
        return {"content": texts.pop(0) if len(texts) > 1 else texts[0]}

    async def allow(params: dict[str, Any]) -> Any:
        return {"outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}}

    async with rogue_hub(tmp_path / "home") as hub, lending(hub, fs=True) as editor:
        editor.answers |= {"fs/read_text_file": read, "session/request_permission": allow}
        session_id = await editor.open(root, agent="rogue")
        shown = [{"type": "diff", "path": str(root / "a.txt"), "oldText": "a\n", "newText": "b\n"}]
        write = do("fs/write_text_file", path=str(root / "a.txt"), content="new\nb\nz\n")
        await editor.prompt(session_id, f"{ask('c1', title='Work', kind='edit', content=shown)}\n{write}")
        assert "has changed in the meantime" in editor.said
        assert editor.asked("fs/write_text_file") == []
