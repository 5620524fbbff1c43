"""One session handed from hand to hand: begun in an editor, gone on with over a WebSocket, and back.

All of it are real processes: editors on the official SDKs, their bridges, the hub that the first of them started, and
the scripted agent. Whoever looks must be told the same under the same numbers, whatever was killed in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.editors import PATIENCE, Home, gone, runs
from tests.support.foreign_clients import ForeignClient, foreign_client
from tests.support.hubs import processes_with
from tests.support.lanes import Consumer, lane
from tests.support.session_logs import ended, prompts_in, stored, token_of

Json = dict[str, Any]


@contextlib.asynccontextmanager
async def watching(home: Home, session: str, after: int = 0) -> AsyncIterator[Consumer]:
    """A consumer on the WebSocket of the hub that runs now, from a cursor on."""
    async with lane(home.place["port"], token_of(home)) as consumer:
        await consumer.say("subscribe", sessionIds=[session], after=after)
        await consumer.until("caught_up")
        yield consumer


# -- what an editor must have been shown --


def missing(client: ForeignClient, session: str, events: list[Json], after: int = 0) -> list[Any]:
    """What the log has beyond a seq, and an editor was not shown exactly once and in its order."""
    told = [(event["seq"], client.as_known(event["source"])) for event in events if is_update(event.get("source"))]
    wanted = [one for one in told if one[0] > after]
    seen = [(seq_of(update), as_sent(update)) for update in client.updates[session]]
    assert [seq for seq, _ in seen] == sorted(seq for seq, _ in seen)
    found = [one for one in seen if one in wanted]
    return [] if found == wanted else [one for one in wanted if found.count(one) != 1] or [found]


def is_update(source: Any) -> bool:
    return isinstance(source, dict) and "sessionUpdate" in source


def seq_of(update: Json) -> int:
    return int(update["_meta"]["pilothouse"]["seq"])


def as_sent(update: Json) -> Json:
    """An update as the agent sent it."""
    meta = {name: value for name, value in update["_meta"].items() if name != "pilothouse"}
    rest = {name: value for name, value in update.items() if name != "_meta"}
    return {**rest, "_meta": meta} if meta else rest


def prompts_seen(client: ForeignClient, session: str) -> list[tuple[int, str]]:
    told = [one for one in client.updates[session] if one["sessionUpdate"] == "user_message_chunk"]
    return [(seq_of(one), one["content"]["text"]) for one in told]


async def until_ended(consumer: Consumer, count: int) -> None:
    """Wait until so many turns have ended."""
    while len(ended(consumer.events)) < count:
        await consumer.next()


async def send(consumer: Consumer, session: str, text: str) -> None:
    answer = await consumer.command(session, text, command="send_message", message=text)
    assert answer["ok"] is True


async def decide(consumer: Consumer, session: str, command: str, number: int = 1) -> Json:
    """Answer the so-manieth question of the session, once it is asked."""
    while len(asked := [event for event in consumer.events if event["type"] == "approval:requested"]) < number:
        await consumer.next()
    words = {"command": command, "requestId": asked[-1]["requestId"], "toolCallId": asked[-1]["toolCallId"]}
    answer = await consumer.command(session, f"decide {number}", **words)
    assert answer["ok"] is True
    return asked[-1]


# -- the tests --


async def test_from_the_editor_to_a_consumer_and_back(kind: str, home: Home, work: Path) -> None:
    async with foreign_client(kind, home, "-a", "demo") as editor:
        session = await editor.new_session(work)
        await editor.prompt(session, "think")
        async with watching(home, session) as consumer:
            # what the editor did is seen, what the consumer does is seen in the editor
            assert [text for _, text in prompts_in(consumer.events)] == ["think"]
            await send(consumer, session, "echo from elsewhere")
            await until_ended(consumer, 2)
            await send(consumer, session, "edit notes.txt from elsewhere")
            asked = await decide(consumer, session, "approve_tool_call")
            await until_ended(consumer, 3)
            await editor.until(lambda: "is written" in editor.texts(session))
            assert [one["toolCallId"] for one in editor.asked] == [asked["toolCallId"]]
            if kind == "typescript":  # the other SDK does not know how requests are withdrawn
                await editor.until(lambda: editor.withdrawn == [asked["toolCallId"]])
            assert (work / "notes.txt").read_text() == "from elsewhere\n"
            assert "fs/write_text_file" in editor.served, "the editor is there, and its files were not used"

            events = await stored(home, session)
            assert consumer.seqs == [event["seq"] for event in events]
            assert missing(editor, session, events) == []
            assert prompts_seen(editor, session) == prompts_in(events)[1:]
            assert set(editor.seqs(session)) <= set(consumer.seqs)

            # the editor is killed in the middle of a turn, which goes on
            editor.start_prompt(session, "slow 2").add_done_callback(lambda prompt: prompt.exception())
            await editor.until(lambda: "0.2 s" in editor.texts(session))
            await editor.kill()
            assert "2.0 s" not in editor.texts(session)
            await until_ended(consumer, 4)
            assert ended(consumer.events) == ["end_turn"] * 4
            await send(consumer, session, "echo nobody is there")
            await until_ended(consumer, 5)
            last = consumer.seqs[-1]

    async with foreign_client(kind, home) as editor:
        await editor.load(session, work)
        events = await stored(home, session)
        assert len(events) >= last
        assert missing(editor, session, events) == []
        assert prompts_seen(editor, session) == prompts_in(events)
        assert editor.texts(session).endswith("2.0 s\nnobody is there")
        assert editor.asked == []
        assert (await editor.prompt(session, "echo back again"))["stopReason"] == "end_turn"
        assert missing(editor, session, await stored(home, session)) == []


async def test_an_editor_comes_back_while_its_turn_still_runs(kind: str, home: Home, work: Path) -> None:
    async with foreign_client(kind, home, "-a", "demo") as editor:
        session = await editor.new_session(work)
        editor.start_prompt(session, "slow 60").add_done_callback(lambda prompt: prompt.exception())
        await editor.until(lambda: "0.2 s" in editor.texts(session))
        await editor.kill()
    async with foreign_client(kind, home) as editor:
        await editor.load(session, work)
        before = editor.texts(session)
        assert "0.2 s" in before
        await editor.until(lambda: len(editor.texts(session)) > len(before))
        await editor.tell("session/cancel", sessionId=session)
        async with watching(home, session) as consumer:
            await until_ended(consumer, 1)
            assert ended(consumer.events) == ["cancelled"]
        await editor.ask("session/list")
        events = await stored(home, session)
        assert missing(editor, session, events) == []
        assert prompts_seen(editor, session) == prompts_in(events)


async def test_a_command_in_the_terminal_of_an_editor_that_is_killed_holds_up_nobody(home: Home, work: Path) -> None:
    async with foreign_client("typescript", home, "-a", "demo") as editor:
        session = await editor.new_session(work)
        editor.choose("allow_once")
        prompt = editor.start_prompt(session, "bash echo $$ > pid; exec sleep 60")
        prompt.add_done_callback(lambda done: done.cancelled() or done.exception())
        await editor.until(lambda: "terminal/create" in editor.served)
        async with asyncio.timeout(PATIENCE):
            while not (work / "pid").exists() or not (work / "pid").read_text():
                await asyncio.sleep(0.01)
        await editor.kill()
    os.kill(int((work / "pid").read_text()), signal.SIGKILL)  # it was the editor's, and nobody is left to end it
    async with watching(home, session) as consumer:
        await until_ended(consumer, 1)
        await send(consumer, session, "bash echo in the ${WHERE:-hub}")
        await decide(consumer, session, "approve_tool_call", number=2)
        await until_ended(consumer, 2)
        assert ended(consumer.events) == ["end_turn"] * 2
        said = "".join(event["delta"] for event in consumer.events if event["type"] == "message:delta")
        assert "in the hub" in said


async def test_a_question_survives_the_editor_that_was_asked(kind: str, home: Home, work: Path) -> None:
    async with foreign_client(kind, home, "-a", "demo") as editor:
        session = await editor.new_session(work)
        editor.start_prompt(session, "edit notes.txt").add_done_callback(lambda prompt: prompt.exception())
        await editor.until(lambda: editor.asked)
        await editor.kill()
    async with watching(home, session) as consumer:
        assert ended(consumer.events) == []
        async with foreign_client(kind, home) as later:  # who comes is asked too, and leaves it open
            await later.load(session, work)
            await later.until(lambda: later.asked)
        await decide(consumer, session, "approve_tool_call")
        await until_ended(consumer, 1)
        assert ended(consumer.events) == ["end_turn"]
    assert (work / "notes.txt").exists()


@pytest.mark.parametrize("by", ["the bridge", "somebody else"])
async def test_the_hub_is_killed_and_comes_back_between_two_prompts(kind: str, by: str, home: Home, work: Path) -> None:
    async with foreign_client(kind, home, "-a", "demo") as editor, contextlib.AsyncExitStack() as stack:
        session = await editor.new_session(work)
        await editor.prompt(session, "echo one")
        async with watching(home, session) as consumer:
            await until_ended(consumer, 1)
            before = consumer.events
        bridge, killed = editor.bridge, home.hub_pid
        await gone(home.kill_hub())
        if by == "somebody else":
            await stack.enter_async_context(serve(home))
        assert (await editor.prompt(session, "echo two"))["stopReason"] == "end_turn"
        assert home.hub_pid != killed
        assert (editor.bridge, runs(bridge)) == (bridge, True)

        async with watching(home, session, after=before[-1]["seq"]) as consumer:
            await send(consumer, session, "echo three")
            await until_ended(consumer, 2)
            await editor.until(lambda: "three" in editor.texts(session))
            events = await stored(home, session)
            both = before + consumer.events
            assert [event["seq"] for event in both] == [event["seq"] for event in events]
        assert ended(events) == ["end_turn"] * 3
        assert [text for _, text in prompts_in(events)] == ["echo one", "echo two", "echo three"]
        assert editor.texts(session) == "onetwothree"
        assert missing(editor, session, events) == []
        assert prompts_seen(editor, session) == prompts_in(events)[2:]


@contextlib.asynccontextmanager
async def serve(home: Home) -> AsyncIterator[None]:
    """`pilothouse serve`, as somebody would start it after the hub was gone."""
    command = [*home.command()[:-1], "serve", "--port", "0"]
    process = await asyncio.create_subprocess_exec(
        *command, env=home.environment, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE):
            while not is_served(home, process.pid):
                await asyncio.sleep(0.01)
        yield
    finally:
        process.terminate()
        await process.communicate()


def is_served(home: Home, pid: int) -> bool:
    with contextlib.suppress(OSError):
        return home.hub_pid == pid
    return False


@pytest.mark.parametrize(("winner", "loser"), [("python", "typescript"), ("typescript", "typescript")])
async def test_two_editors_have_one_session_open(winner: str, loser: str, home: Home, work: Path) -> None:
    async with foreign_client(winner, home, "-a", "demo") as one, foreign_client(loser, home) as two:
        session = await one.new_session(work)
        await two.load(session, work)
        one.choose("allow_once")
        await two.prompt(session, "edit notes.txt by two")
        assert (work / "notes.txt").read_text() == "by two\n"
        assert [asked["title"] for asked in one.asked] == [asked["title"] for asked in two.asked]
        await two.until(lambda: two.withdrawn)
        assert two.withdrawn == [two.asked[0]["toolCallId"]]
        assert one.withdrawn == []
        # the one that prompted is the one whose files are used
        assert "fs/write_text_file" in two.served
        assert one.served == []

        await asyncio.gather(one.prompt(session, "flood 300"), two.prompt(session, "markdown"))
        for editor in (one, two):
            await editor.until(lambda: "299" in editor.texts(session))  # noqa: B023 - awaited here
            await editor.until(lambda: "A quotation" in editor.texts(session))  # noqa: B023
        events = await stored(home, session)
        assert ended(events) == ["end_turn"] * 3
        for editor in (one, two):
            await editor.ask("session/list")  # what was said before that has come
            assert missing(editor, session, events) == []
        said = {text: (seq, text) for seq, text in prompts_in(events)}
        assert prompts_seen(one, session) == [said["edit notes.txt by two"], said["markdown"]]
        assert prompts_seen(two, session) == [said["flood 300"]]


async def test_nothing_is_left_of_editors_that_are_killed_and_of_a_hub_that_is(home: Home, work: Path) -> None:
    mark = f"PILOTHOUSE_HOME={home.path}"
    async with foreign_client("typescript", home, "-a", "demo") as editor:
        session = await editor.new_session(work)
        editor.choose("allow_once")
        prompt = editor.start_prompt(session, "slow 60")
        prompt.add_done_callback(lambda done: done.cancelled() or done.exception())
        await editor.until(lambda: editor.texts(session))
        assert len(processes_with(mark)) >= 4  # the editor, its bridge, the hub, the agent
        await editor.kill()
    hub = home.hub_pid
    assert runs(hub)
    home.kill_hub()
    await gone(hub)
    async with asyncio.timeout(PATIENCE):
        while processes_with(mark):  # the agent sees that nobody is there any more
            await asyncio.sleep(0.02)
    assert os.getpid() not in processes_with(mark)
