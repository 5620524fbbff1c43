"""Editors that misbehave: late, lying, leaving. No agent waits for them, and nothing is done that was refused."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp.errors import RequestError
from pilothouse.hub.client import editor_terminals
from pilothouse.hub.hub import Hub
from pilothouse.server.auth.callers import Caller
from tests.support.hubs import PATIENCE, check, facts, history, odd, odd_hub
from tests.support.lending import Lender, lending


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


class Later:
    """An answer that is given when the test says so."""

    def __init__(self, answer: Any) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self._answer = answer

    async def __call__(self, params: dict[str, Any]) -> Any:
        self.asked.set()
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:  # it does not care that nobody wants to know any more
                continue
        return self._answer


async def forever(params: dict[str, Any]) -> Any:
    await asyncio.Event().wait()


def deciding(kind: str) -> Any:
    async def decide(params: dict[str, Any]) -> Any:
        option = next(one["optionId"] for one in params["options"] if one["kind"] == kind)
        return {"outcome": {"outcome": "selected", "optionId": option}}

    return decide


# -- what was refused --


@pytest.mark.parametrize("is_attached", [True, False])
async def test_a_rejected_edit_is_written_by_nobody(tmp_path: Path, root: Path, is_attached: bool) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub, fs=is_attached) as editor:
        session_id = await editor.open(root)
        editor.answers["session/request_permission"] = deciding("reject_once")
        await editor.prompt(session_id, f"ask-put {root}/a.txt x")
        assert "denied in this turn" in json.dumps(editor.answered())
        assert editor.asked("fs/write_text_file") == []
        assert not (root / "a.txt").exists()
        editor.answers["session/request_permission"] = deciding("allow_once")
        await editor.prompt(session_id, f"ask-put {root}/a.txt x")
        assert editor.answered() == {}
        assert bool(editor.asked("fs/write_text_file")) == is_attached


@pytest.mark.parametrize(("asked", "written"), [("link/a.txt", "real/a.txt"), ("real/a.txt", "link/a.txt")])
async def test_a_rejected_edit_is_written_by_no_other_name(
    tmp_path: Path, root: Path, asked: str, written: str
) -> None:
    (root / "real").mkdir()
    (root / "link").symlink_to(root / "real")
    async with odd_hub(tmp_path / "home") as hub, lending(hub, fs=True) as editor:
        session_id = await editor.open(root)
        editor.answers["session/request_permission"] = deciding("reject_once")
        await editor.prompt(session_id, f"ask-put {asked} x {written}")
        assert "denied in this turn" in json.dumps(editor.answered())
        assert editor.asked("fs/write_text_file") == []


async def test_a_link_that_leads_out_is_not_read_or_written_by_an_editor(tmp_path: Path, root: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").write_text("private")
    (root / "way").symlink_to(tmp_path / "outside")
    (root / "key").symlink_to(tmp_path / "outside" / "key")
    async with odd_hub(tmp_path / "home") as hub, lending(hub, fs=True, terminal=True) as editor:
        session_id = await editor.open(root)
        for prompt in (f"read {root}/way/key", "read key", f"put {root}/way/new x", "put key x"):
            await editor.prompt(session_id, prompt)
        assert editor.said.count('"error"') == 4
        assert editor.calls == []
        assert (tmp_path / "outside" / "key").read_text() == "private"


# -- who leaves --


async def test_an_extension_that_is_asked_of_an_editor_that_leaves_goes_to_the_next(tmp_path: Path, root: Path) -> None:
    async def known(params: dict[str, Any]) -> Any:
        return {"by": "two"}

    async with odd_hub(tmp_path / "home") as hub, lending(hub, name="one") as one, lending(hub, name="two") as two:
        session_id = await two.open(root)
        await one.load(session_id)
        two.answers["_who/knows"], one.answers["_who/knows"] = known, forever
        session = await hub.session(session_id)
        turn = await session.send("extend _who/knows")
        await one.until(lambda: one.asked("_who/knows"))
        assert two.asked("_who/knows") == []
        await one.call("session/resume", sessionId=session_id, cwd="/")  # to open it again is not to leave it
        assert two.asked("_who/knows") == []
        closing = asyncio.ensure_future(one.call("session/close", sessionId=session_id))
        async with asyncio.timeout(PATIENCE):
            await turn.done
        assert two.answered() == {"by": "two"}
        await closing


async def test_a_program_that_an_editor_starts_when_nobody_wants_it_any_more_is_ended(
    tmp_path: Path, root: Path
) -> None:
    created = Later({"terminalId": "late"})
    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        editor.answers["terminal/create"] = created
        session = await hub.session(session_id)
        turn = await session.send("terminal sleep 600")
        await created.asked.wait()
        session._agent.link.kill()
        await turn.done
        created.go.set()
        await editor.until(lambda: editor.asked("terminal/release"))
        assert editor.asked("terminal/kill") == [{"sessionId": session_id, "terminalId": "late"}]
        assert editor.asked("terminal/release") == [{"sessionId": session_id, "terminalId": "late"}]


async def test_a_program_that_starts_after_the_agent_was_told_that_nobody_knows_is_ended(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor_terminals, "CREATE", 0.05)
    created = Later({"terminalId": "late"})
    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        editor.answers["terminal/create"] = created
        await editor.prompt(session_id, "terminal sleep 600")
        assert "may still do so" in json.dumps(editor.answered())
        created.go.set()
        await editor.until(lambda: editor.asked("terminal/release"))


async def test_an_editor_that_never_says_whether_it_started_something_holds_up_no_end(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor_terminals, "PARTING", 0.05)
    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        editor.answers["terminal/create"] = forever
        session = await hub.session(session_id)
        turn = await session.send("terminal sleep 600")
        await editor.until(lambda: editor.asked("terminal/create"))
        async with asyncio.timeout(PATIENCE):
            await hub.release(session_id)
        assert (await turn.done).stop_reason == "interrupted"


async def test_a_terminal_that_was_lost_is_released_once_and_its_id_is_the_editors_again(
    tmp_path: Path, root: Path
) -> None:
    async def made(params: dict[str, Any]) -> Any:
        return {"terminalId": "t1"}

    async def output(params: dict[str, Any]) -> Any:
        return {"output": "", "truncated": False}

    async def done(params: dict[str, Any]) -> Any:
        return {}

    async with odd_hub(tmp_path / "home") as hub, lending(hub, terminal=True) as editor:
        session_id = await editor.open(root)
        editor.answers = {
            "terminal/create": made,
            "terminal/output": output,
            "terminal/wait_for_exit": forever,
            "terminal/kill": done,
            "terminal/release": done,
        }
        await editor.prompt(session_id, "terminal sleep 600")
        session = await hub.session(session_id)
        assert editor.face._entrance.editor is not None
        session.detach_editor(editor.face._entrance.editor)
        await editor.until(lambda: editor.asked("terminal/release"))
        assert editor.face._entrance.editor.terminals_made == set()
        session.attach_editor(editor.face._entrance.editor)
        await editor.prompt(session_id, "terminal-calls  :: release=t1")  # what the agent had is gone for it, too
        await editor.prompt(session_id, "terminal sleep 600")
        assert len(editor.asked("terminal/release")) == 1


async def test_who_goes_away_while_its_session_begins_leaves_none_behind(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home", "hang-at-new") as hub:
        async with lending(hub) as editor:
            opening = asyncio.ensure_future(editor.open(root))
            async with asyncio.timeout(PATIENCE):
                while not any(session.agent_pid for session in hub.live.values()):
                    await asyncio.sleep(0.01)
            await editor.vanish()
            await asyncio.wait((opening,))
            assert opening.exception() is not None
        async with asyncio.timeout(PATIENCE):
            while (await hub.sessions(archived=None)).sessions:
                await asyncio.sleep(0.01)
        assert dict(hub.live) == {}
        assert hub._surroundings == {}


# -- what is on record --


async def test_a_decision_in_an_editor_is_in_the_audit_log(
    tmp_path: Path, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    owner = Caller(name="desk", scopes=frozenset({"read", "prompt", "approve"}))
    async with odd_hub(tmp_path / "home") as hub, lending(hub, caller=owner) as editor:
        session_id = await editor.open(root)
        editor.answers["session/request_permission"] = deciding("reject_once")
        with caplog.at_level(logging.INFO, "pilothouse.audit"):
            await editor.prompt(session_id, f"ask-put {root}/a.txt x")
        lines = [json.loads(one.message) for one in caplog.records if one.name == "pilothouse.audit"]
        (told,) = [line for line in lines if line["audit"] == "approval_decided"]
        (approval,) = await hub.log.approvals.list(session_id)
        assert told == {
            "audit": "approval_decided",
            "by": "desk",
            "sessionId": session_id,
            "approvalId": approval.id,
            "approved": False,
            "optionId": "no",
        }
        assert {line["by"] for line in lines} == {"desk"}


async def test_an_agent_that_quotes_what_it_was_given_puts_no_secret_into_the_log(
    tmp_path: Path, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hunter2-hunter2"
    servers = [
        {"name": "s", "command": "c", "args": [], "env": [{"name": "KEY", "value": secret}]},
        {"type": "http", "name": "h", "url": f"https://x/?k={secret}", "headers": [{"name": "A", "value": secret}]},
    ]
    agents = {"odd": odd("http"), "quoting": odd("quotes", "http")}
    caplog.set_level(logging.DEBUG)
    async with Hub(home=tmp_path / "home", agents=agents) as hub, lending(hub) as editor:
        session_id = (await editor.new(root, mcpServers=servers))["sessionId"]
        with pytest.raises(RequestError) as caught:
            await editor.call(
                "session/set_config_option", sessionId=session_id, configId="pilothouse.agent", value="quoting"
            )
        assert "no:" in str(caught.value)
        assert secret not in repr(caught.value)
        hub.agents["odd"] = agents["quoting"]
        await hub.release(session_id)
        with pytest.raises(RequestError):
            await editor.prompt(session_id, "echo x")
        assert secret not in "\n".join(frame for direction, frame in editor.frames if direction == "outgoing")
    stored = b"".join(place.read_bytes() for place in (tmp_path / "home").rglob("*") if place.is_file())
    assert b"quoting" in stored
    assert secret.encode() not in stored
    assert secret not in caplog.text


# -- the choice of the agent --


async def choose(editor: Lender, session_id: str, agent: str) -> Any:
    return await editor.call(
        "session/set_config_option", sessionId=session_id, configId="pilothouse.agent", value=agent
    )


async def test_the_mode_of_an_agent_that_was_exchanged_is_not_the_next_ones(tmp_path: Path, root: Path) -> None:
    agents = {"odd": odd(), "plain": odd("no-modes", "resume")}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, lending(hub) as editor:
        session_id = (await editor.new(root))["sessionId"]
        session = await hub.session(session_id)
        assert session.state.mode == "ask"
        await choose(editor, session_id, "plain")
        assert (session.state.mode, session.state.modes) == (None, [])
        assert "modes" not in await editor.load(session_id)
        await editor.prompt(session_id, "given")
        assert json.loads(editor.said)["heard"] == []  # it was not told of a mode that it does not have


async def test_a_choice_whose_client_goes_away_is_carried_through(tmp_path: Path, root: Path) -> None:
    agents = {"odd": odd(), "other": odd("no-modes"), "hanging": odd("hang", start_timeout=1.0)}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, lending(hub) as keeper:
        for name, becomes in (("other", "other"), ("hanging", "odd")):
            async with lending(hub) as editor:
                session_id = (await editor.new(root))["sessionId"]
                await keeper.load(session_id)
                session = await hub.session(session_id)
                choosing = asyncio.ensure_future(choose(editor, session_id, name))
                async with asyncio.timeout(PATIENCE):
                    while not session._agent.is_needed:
                        await asyncio.sleep(0)
                await editor.vanish()
                await asyncio.wait((choosing,))
                assert choosing.exception() is not None
            keeper.told.clear()
            await keeper.prompt(session_id, "echo here")
            assert keeper.said == "here"
            assert (session.agent_name, (await hub.log.sessions.get(session_id)).agent) == (becomes, becomes)
            check(await history(hub.log, session_id))


async def test_several_choices_at_once_leave_one_agent(tmp_path: Path, root: Path) -> None:
    agents = {"odd": odd(), "other": odd("no-modes"), "broken": odd("crash")}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, lending(hub) as editor:
        session_id = (await editor.new(root))["sessionId"]
        session = await hub.session(session_id)
        names = ["other", "broken", "odd", "nobody", "other", "other"]
        done = await asyncio.gather(*(choose(editor, session_id, name) for name in names), return_exceptions=True)
        assert [isinstance(one, RequestError) for one in done] == [False, True, False, True, False, False]
        assert session.agent_name == "other"
        await editor.prompt(session_id, "echo once")
        assert editor.said == "once"
        events = await history(hub.log, session_id)
        check(events)
        assert facts(events, "agent_changed")[-1]["to"] == "other"


async def test_what_is_kept_for_a_choice_goes_with_the_first_prompt(tmp_path: Path, root: Path) -> None:
    agents = {"odd": odd("resume"), "other": odd("resume")}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, lending(hub) as editor:
        session_id = (await editor.new(root))["sessionId"]
        await editor.prompt(session_id, "echo x")
        with pytest.raises(RequestError, match="somebody has prompted"):
            await choose(editor, session_id, "other")
        await editor.call("session/close", sessionId=session_id)
        assert hub._surroundings == {}


# -- prompts --


async def test_an_image_for_an_agent_that_takes_none_begins_no_turn(tmp_path: Path, root: Path) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor:
        session_id = await editor.open(root)
        for is_known in (True, False):
            with pytest.raises(RequestError, match="odd takes no images") as caught:
                await editor.call("session/prompt", sessionId=session_id, prompt=[image])
            assert (caught.value.code, "odd takes no images" in caught.value.message) == (-32602, True)
            events = await history(hub.log, session_id)
            assert len(facts(events, "turn_started")) == (0 if is_known else 1)
            check(events)
            await hub.release(session_id)  # nothing is known any more of what the agent can do


# -- forks --


async def test_a_fork_outlives_the_session_that_it_came_from(tmp_path: Path, root: Path) -> None:
    async with odd_hub(tmp_path / "home", "fork", "resume") as hub, lending(hub) as editor:
        parent = await editor.open(root)
        await editor.prompt(parent, "echo before")
        fork = (await editor.call("session/fork", sessionId=parent, cwd=str(root)))["sessionId"]
        await editor.call("session/delete", sessionId=parent)
        with pytest.raises(RequestError) as caught:
            await editor.call("session/fork", sessionId=parent, cwd=str(root))
        assert caught.value.code == -32002
        await hub.release(fork)
        editor.told.clear()
        await editor.load(fork)
        await editor.prompt(fork, "echo after")
        assert editor.said == "beforeafter"
        check(await history(hub.log, fork))
