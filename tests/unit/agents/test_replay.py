"""A stored session as an agent: what was sent is sent again, and a client can work with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilothouse.acp import (
    AgentSideConnection,
    AllowedOutcome,
    Client,
    ClientSideConnection,
    RequestError,
    RequestPermissionResponse,
    memory_pair,
    schema,
    text_block,
)
from pilothouse.acp.dispatch import StreamDirection, StreamEvent
from pilothouse.agents.replay import Recording, ReplayAgent
from pilothouse.app.recordings import recording_of
from tests.support.scenario import SESSION, Drive, text

MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}


class Person(Client):
    """Remembers what it was asked, and allows it."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.asked: list[Any] = []
        self.forms: list[str] = []
        self.hold: asyncio.Event | None = None

    def watch(self, event: StreamEvent) -> None:
        if event.direction is StreamDirection.INCOMING and b'"session/update"' in event.raw:
            self.raw.append(event.raw)

    @property
    def updates(self) -> list[dict[str, Any]]:
        return [json.loads(raw)["params"]["update"] for raw in self.raw]

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        pass

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **kwargs: Any) -> Any:
        self.asked.append((session_id, tool_call.tool_call_id, [option.option_id for option in options]))
        if self.hold is not None:
            await self.hold.wait()
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=options[0].option_id))

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any:
        self.forms.append(message)
        return schema.DeclineElicitationResponse()


@asynccontextmanager
async def played(recording: Recording, *, forms: bool = True) -> AsyncIterator[tuple[ClientSideConnection, Person]]:
    left, right = memory_pair()
    person = Person()
    async with (
        asyncio.timeout(10),
        AgentSideConnection(ReplayAgent(recording), left),  # type: ignore[arg-type]
        ClientSideConnection(person, right, observers=[person.watch]) as agent,
    ):
        elicitation = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()) if forms else None
        await agent.initialize(1, client_capabilities=schema.ClientCapabilities(elicitation=elicitation))
        yield agent, person


async def prompt(agent: ClientSideConnection, session_id: str) -> Any:
    return await agent.prompt(session_id=session_id, prompt=[text_block("anything")])


def three_turns() -> Drive:
    """One that asks, one that fails, one that has odd bytes in it."""
    drive = Drive(status="starting")
    drive.keep(drive.translator.started(drive.now(), agent="odd", result={"sessionId": "x", "modes": MODES}))
    drive.update("available_commands_update", availableCommands=[])
    drive.prompt("write it", "t1")
    drive.say("I will ", "write.")
    drive.call("c1", kind="edit", status="pending")
    drive.ask("c1")
    drive.decide()
    drive.progress("c1", status="completed", content=text("done"))
    form = {"sessionId": SESSION, "mode": "form", "message": "Which?", "requestedSchema": {"type": "object"}}
    drive.keep(drive.translator.question(json.dumps(form).encode(), drive.now(), question_id="q"))
    drive.keep(drive.translator.answer("q", drive.now(), outcome="declined"))
    drive.end(usage={"totalTokens": 3, "inputTokens": 1, "outputTokens": 2})
    drive.prompt("fail", "t2")
    drive.keep(drive.translator.failed({"code": -32011, "message": "no luck", "data": {"a": 1}}, drive.now()))
    drive.prompt("odd", "t3")
    drive.raw(b'{ "sessionUpdate":"agent_message_chunk","x_new": null,"content":{"text":"h\\u00e9","type":"text"} }')
    drive.end("max_tokens")
    drive.update("session_info_update", title="late words")
    return drive


async def test_each_prompt_plays_the_next_turn_as_it_was() -> None:
    drive = three_turns()
    async with played(recording_of(drive.events, pause=0)) as (agent, person):
        opened = await agent.new_session(cwd="/work", mcp_servers=[])
        assert opened.modes is not None
        assert opened.modes.current_mode_id == "ask"
        one = await prompt(agent, opened.session_id)
        assert (one.stop_reason, one.usage.total_tokens) == ("end_turn", 3)
        assert person.asked == [(opened.session_id, "c1", ["yes", "no"])]
        assert person.forms == ["Which?"]
        with pytest.raises(RequestError) as caught:
            await prompt(agent, opened.session_id)
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32011, "no luck", {"a": 1})
        assert (await prompt(agent, opened.session_id)).stop_reason == "max_tokens"
        # all that the agent had sent, byte for byte and in order; what the user said is not told to the user
        assert len(person.raw) == len(drive.updates)
        for raw, update in zip(person.raw, drive.updates, strict=True):
            assert b'"update":' + update + b"}" in raw
        with pytest.raises(RequestError, match="Invalid request") as caught:
            await prompt(agent, opened.session_id)
        assert "3 turns" in str(caught.value.data)
        again = await agent.new_session(cwd="/work", mcp_servers=[])
        assert again.session_id != opened.session_id
        assert (await prompt(agent, again.session_id)).stop_reason == "end_turn"


async def test_the_recorded_session_can_be_listed_loaded_and_resumed() -> None:
    async with played(recording_of(three_turns().events, pause=0, title="Mine")) as (agent, person):
        listed = (await agent.list_sessions()).sessions
        assert [(one.session_id, one.cwd, one.title) for one in listed] == [(SESSION, "/work/app", "late words")]
        await agent.load_session(cwd="/work", session_id=SESSION, mcp_servers=[])
        kinds = [update["sessionUpdate"] for update in person.updates]
        assert kinds.count("user_message_chunk") == 3
        assert person.updates[1]["content"]["text"] == "write it"
        assert person.asked == []
        before = len(person.raw)
        await agent.resume_session(cwd="/work", session_id=SESSION)
        assert (await prompt(agent, SESSION)).stop_reason == "end_turn"
        assert len(person.asked) == 1
        assert len(person.raw) > before
        for call in (agent.load_session, agent.resume_session):
            with pytest.raises(RequestError):
                await call(cwd="/work", session_id="unknown")


async def test_a_cancelled_turn_ends_at_once_and_the_next_prompt_plays_the_next_one() -> None:
    async with played(recording_of(three_turns().events, pause=0)) as (agent, person):
        session_id = (await agent.new_session(cwd="/work", mcp_servers=[])).session_id
        person.hold = asyncio.Event()
        first = asyncio.ensure_future(prompt(agent, session_id))
        waiting = asyncio.ensure_future(prompt(agent, session_id))
        while not person.asked:
            await asyncio.sleep(0)
        await agent.cancel(session_id=session_id)
        assert (await first).stop_reason == "cancelled"
        assert (await waiting).stop_reason == "cancelled"
        with pytest.raises(RequestError, match="no luck"):
            await prompt(agent, session_id)


async def test_a_client_without_forms_is_not_asked_to_fill_one_in() -> None:
    async with played(recording_of(three_turns().events, pause=0), forms=False) as (agent, person):
        session_id = (await agent.new_session(cwd="/work", mcp_servers=[])).session_id
        assert (await prompt(agent, session_id)).stop_reason == "end_turn"
        assert person.forms == []


async def test_a_closed_session_is_gone() -> None:
    async with played(recording_of(three_turns().events, pause=0)) as (agent, _):
        session_id = (await agent.new_session(cwd="/work", mcp_servers=[])).session_id
        await agent.close_session(session_id=session_id)
        with pytest.raises(RequestError):
            await prompt(agent, session_id)


def test_waits_are_those_of_the_recording_but_for_what_people_took() -> None:
    drive = Drive()
    drive.prompt()
    drive.say("a", "b")
    drive.ticks += 50
    drive.say("c")
    drive.call("c1")
    drive.ask("c1")
    drive.ticks += 600
    drive.decide()
    drive.progress("c1", status="completed")
    drive.end()
    waits = [(step.wait, bool(step.method)) for step in recording_of(drive.events, speed=2, pause=1).turns[0].steps]
    assert waits == [
        (0.0, False),  # the prompt
        (0.05, False),
        (0.05, False),
        (1.0, False),
        (0.05, False),
        (0.05, True),
        (0.05, False),
    ]


def test_a_recording_that_stops_in_the_middle_or_is_empty_can_be_played() -> None:
    drive = Drive()
    drive.prompt("one", "t1")
    drive.say("half a")
    drive.prompt("two", "t2")
    drive.keep(drive.translator.died(drive.now(), exit_code=3, stderr_tail="oh"))
    drive.prompt("three", "t3")
    turns = recording_of(drive.events).turns
    assert [dict(turn.result) for turn in turns] == [{"stopReason": "end_turn"}, {}, {"stopReason": "end_turn"}]
    assert turns[1].error == {
        "code": -32603,
        "message": "The agent ended with exit code 3.",
        "data": {"exitCode": 3, "stderrTail": "oh"},
    }
    assert recording_of([]) == Recording(session_id="", cwd="/", turns=[], opening=[])
