"""Cases that no single part of the hub has in view: deaths between turns, ends that are refused, half characters."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.errors import AgentFailed, HubError, IllegalCommand, NotStored
from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.log.errors import LogError
from pilothouse.model.errors import ValidationError
from pilothouse.model.events import SessionErrorEvent
from tests.support.hubs import PATIENCE, approval_asked, check, facts, gone, history, processes_with, said, until

AGENT = str(Path(__file__).parent.parent / "support" / "script_agent.py")


def script_hub(home: Path, *how: str, **options: Any) -> Hub:
    command = (sys.executable, "-S", "-E", AGENT, *how)
    return Hub(home=home, agents={"script": AgentSpec(name="script", command=command)}, **options)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with script_hub(tmp_path / "home", cancel_deadline=5) as hub, asyncio.timeout(PATIENCE):
        yield hub


@pytest.fixture
async def session(hub: Hub, project: Path) -> HubSession:
    return await hub.start_session("script", project)


# -- turns --------------------------------------------------------------------------------------------------------


async def test_what_an_agent_says_by_the_first_name_of_updates_is_said_in_its_place(
    hub: Hub, session: HubSession
) -> None:
    first = "dict(sessionUpdate='agent_message_chunk', content=dict(type='text', text='two '))"
    params = f"dict(sessionId=agent.session, update={first})"
    legacy = f"agent.send(dict(method='acp/notification/session_update', params={params}))"
    await session.prompt(f"agent.say('one '); {legacy}; agent.say('three')")
    assert said(await history(hub.log, session.id)) == "one two three"


async def test_the_death_of_an_idle_agent_is_told_once_and_never_ends_the_turn_that_has_just_begun(
    hub: Hub, session: HubSession
) -> None:
    await session.prompt("pass")
    killed = set[int]()
    for number in range(12):
        if session.agent_pid is not None:
            os.kill(session.agent_pid, signal.SIGKILL)
            killed.add(session.agent_pid)
        for _ in range(number):
            await asyncio.sleep(0)
        await session.prompt("pass")
    events = await history(hub.log, session.id)
    check(events)
    told = [event for event in events if isinstance(event, SessionErrorEvent) and event.error.code == "agent_died"]
    assert len(told) == len(killed)


async def test_after_the_log_refused_the_end_of_a_cancelled_turn_the_next_one_may_ask(
    hub: Hub, session: HubSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = await session.send("agent.say('x'); agent.cancelled.wait(); time.sleep(.2)")
    await until(session, "message:delta")
    cancelling = asyncio.create_task(session.cancel())
    await until(session, lambda event: event.type == "message:delta")

    def refuse(*_: Any, **__: Any) -> Any:
        raise LogError("no room")

    await asyncio.sleep(0)
    monkeypatch.setattr(hub.log, "append_nowait", refuse)
    with pytest.raises(NotStored):
        await prompt.done
    await cancelling
    monkeypatch.undo()
    after = session.state.seq
    prompt = await session.send("agent.say(json.dumps(agent.permission('c1')))")
    await session.decide((await approval_asked(session, after)).request_id, approved=True)
    await prompt.done
    events = await history(hub.log, session.id)
    assert '"optionId": "yes"' in said(events)
    check(events)


async def test_who_shares_a_start_that_another_breaks_off_is_told_so(tmp_path: Path, project: Path) -> None:
    async with script_hub(tmp_path / "home", "hang-at-new") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("script", project)
        prompt = await session.send("pass")
        starting = asyncio.create_task(session.start())
        while session.agent_pid is None:
            await asyncio.sleep(0.01)
        assert await session.cancel()
        with pytest.raises(AgentFailed, match="broken off"):
            await starting
        assert (await prompt.done).stop_reason == "cancelled"
        check(await history(hub.log, session.id))


async def test_a_session_that_is_over_stays_so(tmp_path: Path, project: Path) -> None:
    async with script_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("script", project)
        await session.prompt("pass")
        await asyncio.gather(session.terminate(), session.terminate())
        events = await history(hub.log, session.id)
        assert [event.type for event in events].count("session:completed") == 1
    async with script_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        for act in (session.pause, session.resume):
            with pytest.raises(IllegalCommand, match="is over"):
                act()
        for call in (session.start(), session.set_mode("plan"), session.authenticate("key"), session.prompt("pass")):
            with pytest.raises(IllegalCommand, match="is over"):
                await call
        assert session.status == "completed"
        assert session.agent_pid is None


async def test_what_an_agent_begins_after_its_turn_ends_when_the_hub_closes(tmp_path: Path, project: Path) -> None:
    async with script_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("script", project)
        await session.prompt("after = \"agent.tool('late', status='in_progress'); agent.say('still here')\"")
        await until(session, "message:delta")
    async with script_hub(tmp_path / "home") as hub:
        events = await history(hub.log, session.id)
        check(events)
        assert [event.type for event in events].count("tool:error") == 1


async def test_what_an_agent_began_after_its_turn_ends_when_its_session_is_taken_up_after_a_crash(
    tmp_path: Path, project: Path
) -> None:
    async with script_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("script", project)
        await session.prompt("after = \"agent.tool('late', status='in_progress'); agent.say('still here')\"")
        await until(session, "message:delta")
        await session.committed()
        # as a crash leaves it: nothing more is written
        session._recorder.failure = LogError("the hub died")
    async with script_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.session(session.id)
        check(await history(hub.log, session.id))
        assert (await session.prompt("pass")).stop_reason == "end_turn"
        check(await history(hub.log, session.id))


async def test_a_terminal_of_an_agent_that_could_not_be_opened_does_not_stay(tmp_path: Path, project: Path) -> None:
    async with script_hub(tmp_path / "home", "terminal-and-fail") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("script", project)
        assert (await session.prompt("pass")).error == "no session today"
        await gone(lambda: processes_with(hub._hub_id))


async def test_a_session_released_twice_at_a_time_can_be_used_again_and_ends_with_the_hub(
    tmp_path: Path, project: Path
) -> None:
    async with script_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("script", project)
        await session.prompt("pass")

        async def again() -> None:
            await hub.release(session.id)
            assert (await (await hub.session(session.id)).prompt("pass")).stop_reason in ("end_turn", "interrupted")

        await asyncio.gather(again(), hub.release(session.id), hub.release(session.id))
        mark = hub._hub_id
    assert processes_with(mark) == []


# -- approvals ----------------------------------------------------------------------------------------------------


async def test_who_asks_and_ends_its_turn_without_waiting_leaves_nothing_pending(hub: Hub, session: HubSession) -> None:
    params = "{'sessionId': agent.session, 'toolCall': {'toolCallId': 'c%d'}, 'options': []}"
    for number in range(20):
        ask = f"agent.send({{'id': 'q{number}', 'method': 'session/request_permission', 'params': {params % number}}})"
        await session.prompt(ask)
    await session.prompt("time.sleep(.1)")
    assert await hub.approvals() == []
    check(await history(hub.log, session.id))


async def test_a_denial_is_never_told_by_an_id_that_also_allows(hub: Hub, session: HubSession) -> None:
    options = [{"optionId": "x", "name": "x", "kind": kind} for kind in ("reject_once", "allow_once")]
    prompt = await session.send(f"agent.say(json.dumps(agent.permission('c1', {options!r})))")
    asked = await approval_asked(session)
    with pytest.raises(IllegalCommand, match="to allow it and to reject it"):
        await session.decide(asked.request_id, option_id="x")
    await session.decide(asked.request_id, approved=False)
    await prompt.done
    assert said(await history(hub.log, session.id)) == '{"outcome": {"outcome": "cancelled"}}'


@pytest.mark.parametrize("seconds", [float("nan"), 1e300])
async def test_a_rule_for_no_number_of_seconds_is_refused_and_decides_nothing(
    hub: Hub, session: HubSession, seconds: float
) -> None:
    prompt = await session.send("agent.permission('c1')")
    asked = await approval_asked(session)
    with pytest.raises(IllegalCommand, match="remember_for"):
        await session.decide(asked.request_id, approved=True, remember="session", remember_for=seconds)
    assert [one.id for one in await hub.approvals()] == [asked.request_id]
    await session.cancel()
    await prompt.done


# -- half characters ----------------------------------------------------------------------------------------------


async def test_half_a_character_in_a_request_or_an_answer_of_an_agent_loses_neither(
    hub: Hub, session: HubSession
) -> None:
    """Agents cut texts where they like; JSON as JavaScript writes it then has half of a surrogate pair in it."""
    cut = "agent.permission('c1', title='cut \\ud83d')"
    prompt = await session.send(f"agent.say({cut} and 'went on \\ud83d'); result = {{'stopReason': '\\ude00'}}")
    asked = await approval_asked(session)
    assert asked.description == "cut \ufffd"
    await session.decide(asked.request_id, approved=True)
    assert (await prompt.done).stop_reason == "\ufffd"
    events = await history(hub.log, session.id)
    assert said(events) == "went on \ufffd"
    check(events)


async def test_half_a_character_from_a_person_does_not_cost_the_session_its_agent(
    hub: Hub, session: HubSession
) -> None:
    prompt = await session.send("agent.say(json.dumps(agent.permission('c1')))")
    pid = session.agent_pid
    session.rename("name \ud83d")
    decided = await session.decide(
        (await approval_asked(session)).request_id, approved=False, reason="no \ud83d", by="\ude00"
    )
    await prompt.done
    with pytest.raises(IllegalCommand, match="half a character"):
        await session.prompt("pass", client_request_id="\ud800")
    session.pause("tea \ud83d")
    session.resume()
    await session.committed()
    assert (decided.decision or {})["reason"] == "no \ufffd"
    assert decided.decided_by == "\ufffd"
    assert session.agent_pid is not None
    assert pid in (None, session.agent_pid)
    assert (await hub.log.sessions.get(session.id)).title == "name \ufffd"


async def test_a_directory_whose_name_no_message_can_carry_is_refused(hub: Hub, tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(place)
    with pytest.raises(HubError, match="not UTF-8"):
        await hub.start_session("script", os.fsdecode(place))


# -- what an agent has the hub do ---------------------------------------------------------------------------------

DENYING = {
    "deny": {"writes": ["**/.env"], "reads": ["**/.env"], "commands": ["rm *"]},
    "autoApprove": {"writes": ["ok/**"]},
}


@pytest.mark.parametrize(
    "act",
    [
        "agent.request('fs/write_text_file', path='.env', content='x')",
        "agent.request('fs/write_text_file', path='sub/../alias', content='x')",
        "agent.request('fs/read_text_file', path='alias')",
        "agent.request('terminal/create', command='rm -rf project')",
        "agent.request('terminal/create', command='bash', args=['-c', 'ls && rm -rf project'])",
    ],
)
async def test_what_a_rule_denies_the_hub_does_not_do_for_an_agent_either(hub: Hub, project: Path, act: str) -> None:
    (project / ".env").write_text("SECRET")
    (project / "alias").symlink_to(".env")
    session = await hub.start_session("script", project, policy=DENYING)
    await session.prompt(f"agent.say(json.dumps({act}))")
    events = await history(hub.log, session.id)
    assert "refused: Denied" in said(events)
    assert "SECRET" not in said(events)
    assert len(facts(events, "refused")) == 1
    assert (project / ".env").read_text() == "SECRET"


async def test_what_was_denied_is_not_written_by_the_hub_and_what_was_then_allowed_is(
    hub: Hub, session: HubSession, project: Path
) -> None:
    ask = "agent.permission('c1', kind='edit', rawInput={'file_path': 'note.txt', 'content': 'x'})"
    write = "agent.say(json.dumps(agent.request('fs/write_text_file', path=os.path.abspath('note.txt'), content='x')))"
    for approved in (False, True):
        after = session.state.seq
        prompt = await session.send(f"{ask}; {write}")
        await session.decide((await approval_asked(session, after)).request_id, approved=approved)
        await prompt.done
        assert (project / "note.txt").exists() == approved
    events = await history(hub.log, session.id)
    assert "was denied in this turn" in said(events)
    assert facts(events, "acted_without_asking") == []


async def test_an_act_that_no_rule_allows_is_asked_about(hub: Hub, project: Path) -> None:
    session = await hub.start_session("script", project, policy=DENYING)
    await session.prompt("agent.request('fs/write_text_file', path='ok/fine.txt', content='x')")
    for act in (
        "'fs/write_text_file', path='other.txt', content='x'",
        "'terminal/create', command='touch made.txt'",
    ):
        prompt = await session.send(f"agent.request({act})")
        asked = await approval_asked(session, session.state.seq)
        assert asked.origin == "hub"
        await session.decide(asked.request_id, approved=True)
        await prompt.done
    assert (project / "other.txt").read_text() == "x"
    events = await history(hub.log, session.id)
    assert facts(events, "acted_without_asking") == []
    assert len(facts(events, "act_allowed")) == 3


async def test_an_agent_cannot_have_the_hub_read_or_write_the_hubs_own_directory(tmp_path: Path) -> None:
    async with script_hub(tmp_path / "home") as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session("script", tmp_path)
        for act in (
            "agent.request('fs/read_text_file', path='home/pilothouse.db')",
            "agent.request('fs/write_text_file', path='home/config.toml', content='x')",
        ):
            await session.prompt(f"agent.say(json.dumps({act}))")
        assert said(await history(hub.log, session.id)).count("the hub's own directory") == 2
        assert not (tmp_path / "home" / "config.toml").exists()


# -- what is nested too deeply --------------------------------------------------------------------------------------

NESTING = """
import sys
deep = '{"a":' * DEPTH + "1" + "}" * DEPTH
def tell(text):
    sys.stdout.write(text.replace("DEEP", deep).replace("SESSION", agent.session) + chr(10))
    sys.stdout.flush()
def update(text):
    tell('{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"SESSION","update":{%s}}}' % text)
"""
NESTED_UPDATES = """
update('"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"},"_meta":DEEP')
update('"sessionUpdate":"tool_call","toolCallId":"c1","title":"Work","kind":"other","rawInput":DEEP')
update('"sessionUpdate":"tool_call","toolCallId":"c2","title":"Work","kind":"other","status":"in_progress"')
update('"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"completed","rawOutput":DEEP')
update('"sessionUpdate":"of_tomorrow","x":DEEP')
tell('{"jsonrpc":"2.0","id":"r","method":"fs/read_text_file","params":{"sessionId":"SESSION","path":"x","_meta":DEEP}}')
tell('{"jsonrpc":"2.0","method":"_note","params":DEEP}')
agent.say("well")
"""


@pytest.mark.parametrize("depth", [200, 600, 940, 2000, 50_000])
async def test_what_an_agent_nests_too_deeply_is_told_as_unreadable_and_nothing_else_is_lost(
    hub: Hub, session: HubSession, depth: int
) -> None:
    result = await session.prompt(NESTING.replace("DEPTH", str(depth)) + NESTED_UPDATES)
    assert (result.stop_reason, result.error) == ("end_turn", None)
    events = await history(hub.log, session.id)
    check(events)
    unread = facts(events, "diagnostic")
    assert [data["reason"].split(":")[0] for data in unread] == ["nested too deeply"] * 6
    assert said(events) == "well"
    ended = [event for event in events if event.type == "tool:error"]
    assert [event.tool_call_id for event in ended] == ["c2"]  # type: ignore[attr-defined]
    assert (await session.prompt("agent.say('again')")).stop_reason == "end_turn"


@pytest.mark.parametrize("depth", [200, 940, 2000])
async def test_a_turn_whose_end_is_nested_too_deeply_is_over_all_the_same(
    hub: Hub, session: HubSession, depth: int
) -> None:
    end = 'tell(\'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn","_meta":DEEP}}\' % agent.prompt_id)'
    result = await session.prompt(NESTING.replace("DEPTH", str(depth)) + end)
    assert result.stop_reason == "error"
    assert "nested too deeply" in str(result.error)
    assert (await session.prompt("pass")).stop_reason == "end_turn"
    check(await history(hub.log, session.id))


async def test_a_prompt_that_is_nested_too_deeply_is_refused_by_name(session: HubSession) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(ValidationError, match=r"nested too deeply.*content"):
        await session.send([{"type": "text", "text": "x", "_meta": deep}])
    assert session.is_idle
