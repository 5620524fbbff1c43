"""What a client says when it opens a session, chooses in it or prompts, and how much of it reaches the agent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp.errors import RequestError
from pilothouse.hub.hub import Hub
from pilothouse.server.auth.callers import Caller
from tests.support.hubs import check, facts, history, odd, odd_hub
from tests.support.lending import Lender, lending
from tests.support.servers import agent_specs

SECRET = "sesame-7f3"
STDIO = {"name": "files", "command": "/bin/files", "args": ["-v"], "env": [{"name": "KEY", "value": SECRET}]}
HTTP = {"type": "http", "name": "web", "url": "http://x.test/", "headers": [{"name": "Auth", "value": SECRET}]}
SSE = {"type": "sse", "name": "old", "url": "http://x.test/", "headers": []}


async def given(editor: Lender, session_id: str, **fields: Any) -> dict[str, Any]:
    """What the odd agent was given, by its own account."""
    before = len(editor.said)
    await editor.prompt(session_id, "given", **fields)
    told: dict[str, Any] = json.loads(editor.said[before:])
    return told


def ours(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["_meta"]["pilothouse"]
    return found


# -- servers and directories --


async def test_servers_and_directories_are_handed_on_as_far_as_the_agent_takes_them(tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "a.txt").write_text("further away")
    work = tmp_path / "work"
    work.mkdir()
    hub = odd_hub(tmp_path / "home", "http", "resume", "additionalDirectories")
    async with hub, lending(hub) as editor:
        answer = await editor.new(work, mcpServers=[STDIO, HTTP, SSE], additionalDirectories=[str(more)])
        session_id = answer["sessionId"]
        assert ours(answer)["ignored"] == [
            {"field": "mcpServers", "name": "old", "reason": "the agent takes no MCP servers by sse"}
        ]
        told = (await given(editor, session_id))["given"]
        assert told["mcpServers"] == [STDIO, HTTP]
        assert told["additionalDirectories"] == [str(more)]
        await editor.prompt(session_id, f"read {more}/a.txt")
        assert "further away" in editor.said
        # an agent that is started anew has them too, also when the session was let go in between
        await hub.release(session_id)
        told = (await given(editor, session_id))["given"]
        assert (told["method"], told["mcpServers"]) == ("session/resume", [STDIO, HTTP])
        assert told["additionalDirectories"] == [str(more)]
        events = await history(hub.log, session_id)
        check(events)


async def test_secrets_of_servers_are_not_stored(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "http") as hub, lending(hub) as editor:
        answer = await editor.new(tmp_path, mcpServers=[STDIO, HTTP], _meta={"odd": {"key": SECRET}})
        await editor.prompt(answer["sessionId"], "echo done")
        assert SECRET not in json.dumps(answer)
    stored = [place for place in (tmp_path / "home").rglob("*") if place.is_file()]
    assert stored
    assert [place for place in stored if SECRET.encode() in place.read_bytes()] == []


async def test_directories_that_are_none_are_refused_or_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    async with odd_hub(tmp_path / "home", "additionalDirectories") as hub, lending(hub) as editor:
        for directory in ("not/absolute", "/nul\0", ""):
            with pytest.raises(RequestError) as caught:
                await editor.open(tmp_path, additionalDirectories=["/fine", directory])
            assert (caught.value.code, caught.value.data["field"]) == (-32602, "additionalDirectories[1]")
        session_id = await editor.open(tmp_path, additionalDirectories=[str(tmp_path / "loop"), "/no/such/place"])
        await editor.prompt(session_id, "echo fine")
        assert editor.said == "fine"


async def test_directories_that_the_agent_does_not_take_are_none_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "more" / "a.txt").write_text("further away")
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor:
        answer = await editor.new(tmp_path / "work", additionalDirectories=[str(tmp_path / "more")])
        assert [one["field"] for one in ours(answer)["ignored"]] == ["additionalDirectories"]
        await editor.prompt(answer["sessionId"], f"read {tmp_path}/more/a.txt")
        assert "further away" not in editor.said
        with pytest.raises(RequestError) as caught:
            await editor.new(tmp_path / "work", additionalDirectories=["more"])
        assert caught.value.code == -32602


async def test_who_may_not_prompt_and_approve_gives_an_agent_nothing_to_start(tmp_path: Path) -> None:
    phone = Caller(name="phone", scopes=frozenset({"read", "prompt"}))
    watch = Caller(name="watch", scopes=frozenset({"read", "approve"}))
    screen = Caller(name="screen", scopes=frozenset({"read"}))
    hub = odd_hub(tmp_path / "home", "http", "resume", "additionalDirectories")
    async with (
        hub,
        lending(hub, caller=phone) as editor,
        lending(hub, caller=watch) as approver,
        lending(hub, caller=screen) as reader,
    ):
        fields = {"mcpServers": [STDIO], "additionalDirectories": ["/"], "_meta": {"odd": {"yolo": True}}}
        answer = await editor.new(tmp_path, **fields)
        assert [one["field"] for one in ours(answer)["ignored"]] == ["mcpServers", "additionalDirectories", "_meta"]
        session_id = answer["sessionId"]
        for client in (editor, approver, reader):
            told = await client.load(session_id, **fields)
            assert len(ours(told)["ignored"]) == 3
        await hub.release(session_id)
        told = (await given(editor, session_id))["given"]
        assert told["mcpServers"] == []
        assert "additionalDirectories" not in told
        assert "_meta" not in told


async def test_what_comes_with_a_load_is_for_the_next_start(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub, lending(hub) as editor:
        session_id = await editor.open(tmp_path)
        answer = await editor.load(session_id, mcpServers=[STDIO])
        assert "started anew" in ours(answer)["ignored"][0]["reason"]
        assert "ignored" not in ours(await editor.load(session_id))
        assert (await given(editor, session_id))["given"]["mcpServers"] == []
        await hub.release(session_id)
        assert "ignored" not in ours(await editor.load(session_id, mcpServers=[STDIO]))
        assert (await given(editor, session_id))["given"]["mcpServers"] == [STDIO]


# -- _meta --


async def test_meta_passes_in_both_directions_without_what_is_ours(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "resume") as hub, lending(hub) as editor:
        mine = {"pilothouse": {"agent": "odd"}, "vendor": {"deep": [1]}, "traceparent": "00-1"}
        theirs = {"vendor": {"deep": [1]}, "traceparent": "00-1"}
        answer = await editor.new(tmp_path, _meta=mine)
        assert answer["_meta"]["odd"] == "new"
        assert ours(answer)["agent"] == "odd"  # and not what the agent said under our name
        session_id = answer["sessionId"]
        await editor.call(
            "session/set_mode", sessionId=session_id, modeId="plan", _meta={"vendor": 2, "pilothouse": {}}
        )
        request = {"pilothouse": {"clientRequestId": "r1"}, "vendor": 3}
        done = await editor.prompt(session_id, "given", _meta=request)
        assert done["_meta"]["odd"] == "prompt"
        assert ours(done)["turnId"]
        told = json.loads(editor.said)
        assert told["given"]["_meta"] == theirs
        assert told["prompted"]["_meta"] == {"vendor": 3}
        assert told["heard"][0][1]["_meta"] == {"vendor": 2}
        await hub.release(session_id)
        assert (await given(editor, session_id))["given"]["_meta"] == theirs


# -- forks --


async def test_a_fork_has_the_history_and_goes_its_own_way(tmp_path: Path) -> None:
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub, lending(hub) as editor:
        session_id = await editor.open(tmp_path, agent="demo")
        await editor.prompt(session_id, "echo before")
        answer = await editor.call("session/fork", sessionId=session_id, cwd=str(tmp_path), mcpServers=[])
        fork_id = answer["sessionId"]
        assert fork_id != session_id
        assert answer["modes"]["currentModeId"]
        await editor.prompt(fork_id, "echo after")
        await editor.prompt(session_id, "echo elsewhere")
        assert editor.said == "beforeafterelsewhere", "who forks a session has its history already"
        async with lending(hub) as other:
            await other.load(fork_id)
            assert (other.words("user_message_chunk"), other.said) == ("echo beforeecho after", "beforeafter")
        events = await history(hub.log, fork_id)
        check(events)
        assert {event.session_id for event in events} == {fork_id}
        (fact,) = facts(events, "session_forked")
        assert fact["sessionId"] == session_id
        parent, fork = await hub.session(session_id), await hub.session(fork_id)
        assert parent.agent_session_id != fork.agent_session_id
        titles = {record.id: record.title for record in (await hub.sessions()).sessions}
        assert titles[fork_id] == titles[session_id]


async def test_a_fork_before_its_first_prompt_is_forked_again_when_its_agent_forgot_it(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home", "fork") as hub, lending(hub) as editor:
        session_id = await editor.open(tmp_path)
        await editor.prompt(session_id, "echo before")
        origin = (await hub.session(session_id)).agent_session_id
        fork_id = (await editor.call("session/fork", sessionId=session_id, cwd=str(tmp_path)))["sessionId"]
        await hub.release(fork_id)
        told = (await given(editor, fork_id))["given"]
        assert (told["method"], told["sessionId"]) == ("session/fork", origin)


async def test_what_cannot_be_forked_is_said(tmp_path: Path) -> None:
    reader = Caller(name="screen", scopes=frozenset({"read"}))
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor, lending(hub, caller=reader) as screen:
        session_id = await editor.open(tmp_path)
        await editor.prompt(session_id, "echo before")
        before = [record.id for record in (await hub.sessions(archived=None)).sessions]

        async def refused(client: Lender, session: str, cwd: str = str(tmp_path)) -> RequestError:
            with pytest.raises(RequestError) as caught:
                await client.call("session/fork", sessionId=session, cwd=cwd)
            return caught.value

        error = await refused(editor, session_id)
        assert (error.code, "cannot fork" in str(error)) == (-32601, True)
        assert (await refused(editor, "ses_none")).code == -32002
        assert (await refused(editor, session_id, "/no/such/place")).code == -32602
        assert (await refused(screen, session_id)).code == -32003
        unused = await hub.start_session("odd", tmp_path)
        assert "never had it" in str(await refused(editor, unused.id))
        turn = await (await hub.session(session_id)).send("text")
        assert "a turn runs" in str(await refused(editor, session_id))
        await (await hub.session(session_id)).cancel()
        await turn.done
        left = [record.id for record in (await hub.sessions(archived=None)).sessions]
        assert sorted(left) == sorted([*before, unused.id])


# -- the agent as an option --


def choice(options: list[dict[str, Any]] | None) -> dict[str, Any] | None:
    return next((option for option in options or () if option["id"] == "pilothouse.agent"), None)


def latest_options(editor: Lender) -> list[dict[str, Any]]:
    told = [update for update in editor.updates if update["sessionUpdate"] == "config_option_update"]
    found: list[dict[str, Any]] = told[-1]["configOptions"]
    return found


async def choose(editor: Lender, session_id: str, agent: str) -> Any:
    return await editor.call(
        "session/set_config_option", sessionId=session_id, configId="pilothouse.agent", value=agent
    )


async def test_another_agent_can_be_chosen_until_the_first_prompt(tmp_path: Path) -> None:
    agents = agent_specs(tmp_path, ("options",))
    async with Hub(home=tmp_path, agents=agents) as hub, lending(hub) as editor, lending(hub) as other:
        answer = await editor.new(tmp_path)
        session_id = answer["sessionId"]
        option = choice(answer["configOptions"])
        assert option is not None
        assert (option["name"], option["currentValue"]) == ("Agent", "demo")
        assert [one["value"] for one in option["options"]] == ["demo", "odd"]
        await other.load(session_id)
        first = (await hub.session(session_id)).agent_pid
        told = await choose(editor, session_id, "odd")
        assert {option["id"] for option in told["configOptions"]} == {
            "mode",
            "model",
            "reach",
            "web",
            "pilothouse.agent",
        }
        assert choice(told["configOptions"])["currentValue"] == "odd"  # type: ignore[index]
        session = await hub.session(session_id)
        assert (session.agent_name, (await hub.log.sessions.get(session_id)).agent) == ("odd", "odd")
        assert session.agent_pid not in (None, first)
        assert session.state.available_commands == []
        await other.until(lambda: choice(latest_options(other))["currentValue"] == "odd")  # type: ignore[index]
        await editor.prompt(session_id, "echo by the odd one")
        assert editor.said == "by the odd one"
        assert choice(latest_options(editor)) is None
        assert choice((await editor.load(session_id)).get("configOptions")) is None
        with pytest.raises(RequestError) as caught:
            await choose(editor, session_id, "demo")
        assert "somebody has prompted" in str(caught.value)
        events = await history(hub.log, session_id)
        check(events)
        assert facts(events, "agent_changed") == [{"from": "demo", "to": "odd"}]
    async with Hub(home=tmp_path, agents=agents) as hub:  # the record is the odd one's, too
        again = await hub.session(session_id)
        assert (await again.prompt("echo again")).stop_reason == "end_turn"
        assert again.agent_name == "odd"


async def test_an_agent_that_was_named_is_not_to_be_chosen(tmp_path: Path) -> None:
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub, lending(hub) as editor:
        answer = await editor.new(tmp_path, _meta={"pilothouse": {"agent": "demo"}})
        assert choice(answer["configOptions"]) is None
        with pytest.raises(RequestError) as caught:
            await choose(editor, answer["sessionId"], "odd")
        assert "fixed" in str(caught.value)
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor:
        assert choice((await editor.new(tmp_path)).get("configOptions")) is None  # there is no other


async def test_an_agent_that_cannot_be_started_leaves_the_one_before(tmp_path: Path) -> None:
    agents = {"odd": odd(), "broken": odd("crash")}
    async with Hub(home=tmp_path / "home", agents=agents) as hub, lending(hub) as editor:
        session_id = (await editor.new(tmp_path))["sessionId"]
        for name in ("broken", "nobody", ""):
            with pytest.raises(RequestError):
                await choose(editor, session_id, name)
        assert (await hub.log.sessions.get(session_id)).agent == "odd"
        await editor.prompt(session_id, "echo still here")
        assert editor.said == "still here"
        check(await history(hub.log, session_id))


async def test_a_prompt_in_the_middle_of_a_choice_goes_to_the_one_that_is_chosen(tmp_path: Path) -> None:
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub, lending(hub) as editor:
        session_id = (await editor.new(tmp_path))["sessionId"]
        chosen = asyncio.ensure_future(choose(editor, session_id, "odd"))
        prompted = asyncio.ensure_future(editor.prompt(session_id, "given"))
        await asyncio.gather(chosen, prompted)
        assert json.loads(editor.said)["prompted"]["prompt"] == [{"type": "text", "text": "given"}]


# -- one's own prompts --


async def test_ones_own_prompts_are_not_said_back_over_another_connection(tmp_path: Path) -> None:
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor:
        session_id = await editor.open(tmp_path)
        start = (await hub.session(session_id)).state.seq
        for text, request_id in (("echo one", "r1"), ("echo two", "r2"), ("echo three", "r3")):
            await editor.prompt(session_id, text, _meta={"pilothouse": {"clientRequestId": request_id}})

        async def resumed(after: int, own: Any) -> Lender:
            async with lending(hub) as back:
                meta = {"pilothouse": {"after": after, "own": own}}
                await back.call("session/resume", sessionId=session_id, cwd="/", _meta=meta)
                return back

        back = await resumed(start, ["r1", "r3", "never"])
        assert (back.words("user_message_chunk"), back.said) == ("echo two", "onetwothree")
        events = await history(hub.log, session_id)
        begun = [event.seq for event in events if getattr(event, "event_name", None) == "turn_started"]
        back = await resumed(begun[2], ["r3"])  # its turn began before the cursor, its words come after
        assert (back.words("user_message_chunk"), back.said) == ("", "three")
        for wrong in ("r1", [1], {"r1": 1}, ["x"] * 101):
            with pytest.raises(RequestError) as caught:
                await resumed(start, wrong)
            assert caught.value.code == -32602


async def test_a_prompt_that_is_sent_again_is_answered_with_the_truth(tmp_path: Path) -> None:
    meta = {"_meta": {"pilothouse": {"clientRequestId": "r1"}}}
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor:
        session_id = await editor.open(tmp_path)
        first = await editor.prompt(session_id, "given", **meta)
        with pytest.raises(RequestError):
            await editor.prompt(session_id, "die 3", _meta={"pilothouse": {"clientRequestId": "r2"}})
    async with odd_hub(tmp_path / "home") as hub, lending(hub) as editor:
        await editor.call("session/resume", sessionId=session_id, cwd="/")
        again = await editor.prompt(session_id, "given", **meta)
        assert again == first
        with pytest.raises(RequestError) as caught:
            await editor.prompt(session_id, "die 3", _meta={"pilothouse": {"clientRequestId": "r2"}})
        assert "exit code 3" in str(caught.value)
        with pytest.raises(RequestError) as caught:
            await editor.prompt(session_id, "echo something else", **meta)
        assert caught.value.code == -32600
        assert editor.said == ""
        assert len(facts(await history(hub.log, session_id), "turn_started")) == 2


# -- what is in a prompt --


async def test_what_an_agent_cannot_take_is_refused_or_made_text(tmp_path: Path) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    audio = {"type": "audio", "mimeType": "audio/wav", "data": "aGk="}
    words = {"type": "resource", "resource": {"uri": "file:///a.py", "text": "print()", "mimeType": "text/x-python"}}
    blob = {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "aGk="}}
    link = {"type": "resource_link", "uri": "file:///b.py", "name": "b.py"}
    async with Hub(home=tmp_path, agents=agent_specs(tmp_path)) as hub, lending(hub) as editor:
        session_id = await editor.open(tmp_path)
        for block, named in ((image, "images"), (audio, "audio"), (blob, "no text")):
            with pytest.raises(RequestError) as caught:
                await editor.call("session/prompt", sessionId=session_id, prompt=[block])
            assert (caught.value.code, named in str(caught.value)) == (-32602, True)
            assert "odd" in str(caught.value)
        text = {"type": "text", "text": "given "}
        await editor.call("session/prompt", sessionId=session_id, prompt=[text, words, link])
        sent = json.loads(editor.said)["prompted"]["prompt"]
        assert sent == [text, {"type": "text", "text": "file:///a.py:\nprint()"}, link]
        # one that can take them gets them as they are
        demo = await editor.open(tmp_path, agent="demo")
        blocks = [{"type": "text", "text": "echo hi"}, image, audio, words, blob, link]
        assert (await editor.call("session/prompt", sessionId=demo, prompt=blocks))["stopReason"] == "end_turn"
        (stored,) = (tmp_path / "demo").rglob("*")
        lines = [json.loads(line) for line in stored.read_text().splitlines()]
        updates = [line["update"] for line in lines if "update" in line]
        heard = [one["content"] for one in updates if one["sessionUpdate"] == "user_message_chunk"]
        assert heard == blocks
