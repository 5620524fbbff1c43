"""Packets as documented: every example read and written back equal, every interface's fields, one reader for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.dialects.packets import PACKETS, packet_type, read_packet, shapes, views, write_packet
from pilothouse.dialects.packets.shapes import OtherPacket, Packet, wire_names
from pilothouse.model.patches import PatchedFile

GOLDEN = Path(__file__).parents[3] / "golden" / "packets.jsonl"
EXAMPLES = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def without(value: Any, paths: list[str]) -> Any:
    """A copy without what is at these paths; what is taken out must be what the documents give an absent field."""
    copy = json.loads(json.dumps(value))
    for path in paths:
        *way, last = path.split(".")
        place = copy
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        assert place.pop(last) is None or path == "type"
    return copy


# -- the documents' examples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example['document']}: {example['example']}")
def test_an_example_is_written_back_as_it_was_read(example: dict[str, Any]) -> None:
    """`completed` names the keys an example leaves out; all but the type of a start are null."""
    sample = example["json"]
    if sample.keys() == {"content"}:  # an example of a part
        packet = read_packet({"sessionUpdate": "tool_call_update", "toolCallId": "call", **sample})
        assert without({"content": write_packet(packet)["content"]}, example["completed"]) == sample
        return
    packet = read_packet(sample)
    assert type(packet) is PACKETS[str(packet_type(sample))]
    assert packet.extra == {}
    assert without(write_packet(packet), example["completed"]) == sample


def test_all_examples_are_here() -> None:
    assert [sum(example["document"] == name for example in EXAMPLES) for name in ("reference", "overview")] == [8, 10]


def test_a_written_packet_is_read_as_the_same_packet() -> None:
    for example in EXAMPLES:
        packet = read_packet(example["json"])
        assert read_packet(write_packet(packet)) == packet


# -- the documents' interfaces ------------------------------------------------------------------------------------

CALL = "_meta type sessionUpdate toolCallId title kind status rawInput rawOutput content locations"
INTERFACES: list[tuple[str, type[msgspec.Struct], str]] = [
    # the packet reference
    ("AgentMessageChunkPacket", shapes.AgentMessageChunk, "_meta type sessionUpdate content"),
    ("AgentMessageChunkPacket.content", shapes.TextBlock, "_meta type text annotations"),
    ("ToolCallStartPacket", shapes.ToolCallStart, CALL),
    ("ToolCallProgressPacket", shapes.ToolCallProgress, f"{CALL} timestamp"),
    ("GlobInput", views.GlobInput, "pattern"),
    ("GrepInput", views.GrepInput, "pattern path"),
    ("ReadInput", views.ReadInput, "filePath"),
    ("WriteInput", views.WriteInput, "filePath content"),
    ("EditInput", views.EditInput, "filePath old_string new_string"),
    ("BashInput", views.BashInput, "command description"),
    ("TaskInput", views.TaskInput, "prompt description subagent_type"),
    ("TodoWriteInput", views.TodoWriteInput, "todos"),
    ("TodoItem", views.TodoItem, "content status activeForm"),
    ("SearchOutput", views.SearchOutput, "output metadata"),
    ("SearchOutput.metadata", views.SearchMetadata, "count truncated"),
    ("ReadOutput", views.ReadOutput, "output metadata"),
    ("ReadOutput.metadata", views.ReadMetadata, "preview truncated"),
    ("BashOutput", views.BashOutput, "output metadata"),
    ("BashOutput.metadata", views.BashMetadata, "output exit description truncated"),
    ("WriteOutput", views.WriteOutput, "output metadata"),
    ("WriteOutput.metadata", views.WriteMetadata, "diagnostics filepath exists truncated"),
    ("TodoWriteOutput", views.TodoWriteOutput, "output metadata"),
    ("TodoWriteOutput.metadata", views.TodoWriteMetadata, "todos truncated"),
    ("ContentItem", shapes.ContentItem, "_meta type content newText oldText path"),
    ("LocationInfo", shapes.Location, "_meta path line"),
    ("AgentPlanUpdatePacket", shapes.AgentPlanUpdate, "_meta type sessionUpdate timestamp entries"),
    ("PlanEntry", shapes.PlanEntry, "_meta content status priority"),
    ("PromptResponsePacket", shapes.PromptResponse, "_meta type stopReason"),
    ("ArtifactCreatedPacket", shapes.ArtifactCreated, "type artifact"),
    # and what the documents' own system sent beside these
    (
        "ArtifactCreatedPacket.artifact",
        shapes.Artifact,
        "id type name path preview_url download_url mime_type size_bytes metadata",
    ),
    # the overview, where it has more or other fields
    ("PatchInput", views.PatchInput, "patchText"),
    ("PatchOutput", views.PatchOutput, "output metadata"),
    ("PatchOutput.metadata", views.PatchMetadata, "diff files diagnostics truncated"),
    ("ErrorPacket", shapes.ErrorPacket, "type message code details timestamp"),
]


@pytest.mark.parametrize(("name", "cls", "fields"), INTERFACES, ids=[name for name, _, _ in INTERFACES])
def test_an_interface_has_the_documents_fields(name: str, cls: type[shapes.Shape], fields: str) -> None:
    expected = set(fields.split())
    if issubclass(cls, Packet):
        expected.add("timestamp")  # "each packet includes" it
    assert wire_names(cls) == expected


def test_a_patched_file_has_the_documents_fields_and_where_it_was_moved() -> None:
    fields = set(PatchedFile.__struct_encode_fields__)
    assert fields == set("filePath relativePath type diff before after additions deletions movePath".split())  # noqa: SIM905


def test_every_packet_writes_all_its_fields() -> None:
    for kind, cls in PACKETS.items():
        written = write_packet(cls(timestamp="t"))
        assert set(written) >= wire_names(cls) - {"content"}
        assert written["type"] == kind


# -- reading ------------------------------------------------------------------------------------------------------


def test_snake_case_and_camel_case_are_the_same_packet() -> None:
    snake = {
        "session_update": "tool_call_update",
        "tool_call_id": "c",
        "raw_input": {"file_path": "/a"},
        "raw_output": None,
        "content": [{"type": "diff", "old_text": "a", "new_text": "b", "path": "/a"}],
        "kind": "edit",
        "status": "completed",
        "title": "t",
    }
    camel = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "rawInput": {"file_path": "/a"},
        "rawOutput": None,
        "content": [{"type": "diff", "oldText": "a", "newText": "b", "path": "/a"}],
        "kind": "edit",
        "status": "completed",
        "title": "t",
    }
    assert read_packet(snake) == read_packet(camel)


def test_a_stored_row_is_the_packet_it_stores() -> None:
    live = {"type": "prompt_response", "stopReason": "end_turn", "_meta": {}, "timestamp": "t"}
    assert read_packet({"id": 4, "turn_index": 0, "message_metadata": live}) == read_packet(live)
    untimed = {key: value for key, value in live.items() if key != "timestamp"}
    assert read_packet({"created_at": "t", "message_metadata": untimed}) == read_packet(live)
    message = {"type": "agent_message", "content": {"type": "text", "text": "all of it"}}
    packet = read_packet(message)
    assert isinstance(packet, shapes.AgentMessageChunk)
    assert packet.content.text == "all of it"  # type: ignore[union-attr]


def test_unknown_fields_and_kinds_are_kept() -> None:
    given = {"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "task", "messageId": "m", "_meta": {"x": 1}}
    written = write_packet(read_packet(given))
    assert (written["kind"], written["messageId"], written["_meta"]) == ("task", "m", {"x": 1})


def test_a_value_of_the_wrong_type_is_kept_and_reads_as_absent() -> None:
    packet = read_packet({"type": "error", "message": ["no", "text"], "code": 4.5})
    assert isinstance(packet, shapes.ErrorPacket)
    assert (packet.message, packet.code) == ("", None)
    assert write_packet(packet)["message"] == ["no", "text"]


def test_an_error_code_may_be_text_number_or_null() -> None:
    for code in ("timeout", -32603, None):
        packet = read_packet({"type": "error", "message": "m", "code": code})
        assert isinstance(packet, shapes.ErrorPacket)
        assert packet.code == code


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, {"type": 7}, {"type": "file_write", "path": "/a"}])
def test_what_is_no_known_packet_is_kept_whole(value: Any) -> None:
    packet = read_packet(value)
    assert isinstance(packet, OtherPacket)
    assert write_packet(packet) == (value if isinstance(value, dict) else {"value": value})


NAMES = sorted(
    {name for cls in PACKETS.values() for name in wire_names(cls)}
    | {"session_update", "tool_call_id", "raw_input", "old_text", "message_metadata", "packet"}
)


@settings(max_examples=300, deadline=None)
@given(
    fields=st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6),
    kind=st.sampled_from([*PACKETS, "agent_message", "other"]),
)
def test_any_fields_are_read_and_nothing_is_lost(fields: dict[str, Any], kind: str) -> None:
    packet = read_packet({**fields, "type": kind})
    assert isinstance(packet, Packet)
    again = read_packet(write_packet(packet))
    assert write_packet(again) == write_packet(packet)
