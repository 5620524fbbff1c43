"""Feeds: made once for all, complete from any place, and not held up by an event that cannot be read."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from pilothouse.dialects.acp import Translator
from pilothouse.log.entries import Entry
from pilothouse.log.memory import MemoryLog
from pilothouse.model.events import Event
from pilothouse.server.frame_cache import FrameCache
from pilothouse.server.http.event_frames import Feeds, Lane, TurnIndexes, chosen

NOW = "2026-03-01T10:00:00.000Z"
EVENTS, PACKETS = Lane("events"), Lane("packets")


def update(variant: str, /, **fields: Any) -> bytes:
    return json.dumps({"sessionUpdate": variant, **fields}).encode()


def some_turn(translator: Translator, turn_id: str) -> list[Event]:
    events: list[Event] = [*translator.prompt("go", NOW, turn_id=turn_id)]
    for text in ("one ", "two"):
        events += translator.update(update("agent_message_chunk", content={"type": "text", "text": text}), NOW)
    call = {"toolCallId": f"call-{turn_id}"}
    events += translator.update(update("tool_call", **call, title="Look", kind="read", rawInput={"path": "a"}), NOW)
    events += translator.update(update("tool_call_update", **call, status="in_progress"), NOW)
    events += translator.update(update("tool_call_update", **call, status="completed", rawOutput="text"), NOW)
    return [*events, *translator.result({"stopReason": "end_turn"}, NOW)]


async def filled(log: MemoryLog, turns: int = 2) -> list[Entry]:
    await log.sessions.create("s1", agent="demo", cwd="/", status="starting")
    translator = Translator("s1")
    events = [event for number in range(turns) for event in some_turn(translator, f"t{number}")]
    await log.append("s1", 0, events)
    return await log.read("s1", 0, 10_000)


async def test_consumers_at_the_same_place_share_the_bytes() -> None:
    async with MemoryLog() as log:
        entries = await filled(log)
        feeds = Feeds(log, FrameCache())
        for lane in (EVENTS, PACKETS):
            assert feeds.frames(lane, entries).frames is feeds.frames(lane, list(entries)).frames
        assert feeds.frames(EVENTS, entries[1:]).frames != feeds.frames(EVENTS, entries).frames


async def test_packets_are_the_same_however_they_are_cut() -> None:
    async with MemoryLog() as log:
        entries = await filled(log)
        feeds = Feeds(log, FrameCache())
        whole = feeds.frames(PACKETS, entries).frames
        for place in range(1, len(entries)):
            before = feeds.frames(PACKETS, entries[:place])
            after = feeds.frames(PACKETS, entries[place:], before.memory)
            assert before.frames + after.frames == whole
            # and for one who was not there before
            come = await Feeds(log, FrameCache()).memory(PACKETS, "s1", place)
            assert Feeds(log, FrameCache()).frames(PACKETS, entries[place:], come).frames == after.frames
            values, _ = feeds.values(PACKETS, entries[place:], come)
            assert b"".join(b"data: %b\n" % value for value in values).count(b"data: ") == after.frames.count(b"data: ")


async def test_a_batch_is_numbered_by_its_lane() -> None:
    async with MemoryLog() as log:
        await log.sessions.create("s0", agent="demo", cwd="/", status="starting")
        await log.append("s0", 0, Translator("s0").prompt("first", NOW, turn_id="t"))
        entries = await filled(log)
        feeds = Feeds(log, FrameCache())
        shift = entries[0].position - 1
        assert shift > 0
        assert feeds.frames(EVENTS, entries).upto == entries[-1].seq
        over_all = feeds.frames(Lane("events", by="position"), entries)
        assert over_all.upto == entries[-1].position
        assert over_all.frames.startswith(b"id: %d\n" % entries[0].position)


async def test_an_event_that_cannot_be_read_does_not_keep_others_away(caplog: pytest.LogCaptureFixture) -> None:
    async with MemoryLog() as log:
        entries = await filled(log)
        damaged = Entry("s1", 1000, 1000, "tool:result", b'{"type":"tool:result"}', None)
        with caplog.at_level(logging.CRITICAL):
            frames = Feeds(log, FrameCache()).frames(PACKETS, [damaged, *entries]).frames
        assert frames == Feeds(log, FrameCache()).frames(PACKETS, entries).frames


async def test_a_source_that_spans_lines_is_sent_on_one() -> None:
    entry = Entry("s1", 1, 1, "custom", b'{"type":"custom"}', b'{\r\n "a": 1\n}')
    async with MemoryLog() as log:
        frame = Feeds(log, FrameCache()).frames(Lane("events", source=True), [entry]).frames
    assert frame.count(b"\n") == 3
    assert json.loads(frame.split(b"data: ")[1])["source"] == {"a": 1}


@pytest.mark.parametrize(
    ("types", "kind", "wanted"),
    [
        ((), "tool:start", True),
        (("tool:start",), "tool:start", True),
        (("tool:start",), "tool:started", False),
        (("tool:*",), "tool:started", True),
        (("tool:*", "custom"), "custom", True),
        (("*",), "anything", True),
        (("message:*",), "tool:start", False),
    ],
)
def test_types_are_chosen_by_name_or_beginning(types: tuple[str, ...], kind: str, wanted: bool) -> None:
    assert chosen(types)(kind) is wanted


async def test_an_index_knows_turns_and_goes_on_with_the_log() -> None:
    async with MemoryLog() as log:
        entries = await filled(log, turns=1)
        indexes = TurnIndexes(log)
        assert await indexes.find("s1", "t0") == ("turn_started", 1)
        assert await indexes.find("s1", "t1") is None
        assert await indexes.border_before("s1", 5) == 1
        end = next(entry.seq for entry in entries if b'"turn_ended"' in entry.data)
        assert await indexes.border_before("s1", end) == end
        translator = Translator("s1", status="idle")
        last = entries[-1].seq
        more = [*translator.fact("prompt_queued", {"promptId": "t1"}, NOW), *translator.prompt("b", NOW, turn_id="t2")]
        await log.append("s1", last, more)
        assert await indexes.find("s1", "t1") == ("prompt_queued", last + 1)
        assert await indexes.find("s1", "t2") == ("turn_started", last + 2)
        assert await indexes.border_before("s1", last + 1) == end
