"""What peers really send, read by the schema's own rules.

The schema marks properties whose bad values do not spoil the rest (`x-deserialize-*`). These tests take every mark in
it, put something bad in its place and look at what is read and at what is reported.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from pilothouse.acp import (
    AgentSideConnection,
    ClientSideConnection,
    Connection,
    Diagnostic,
    RequestError,
    ValidationError,
    lenient,
    memory_pair,
    schema,
)
from pilothouse.acp.lenient import Choice, Open, Repair, repair
from pilothouse.acp.model import encode
from tests.support.schema_samples import Full, Json, Minimal, Schema, unstable

RULES: Schema = unstable()
ON_ERROR = "x-deserialize-default-on-error"
SKIP = "x-deserialize-skip-invalid-items"
ON_NULL = "x-deserialize-default-on-null"
BAD: tuple[Any, ...] = (None, True, -1, 7.5, "bad", [], ["bad"], {}, {"x": 1})
# what agents in the wild get wrong so often that it is mended, see the dialects below
MENDED = {("PlanEntry", "priority"), ("PlanEntry", "status")}
MENDED |= {("InitializeRequest", "protocolVersion"), ("InitializeResponse", "protocolVersion")}


def read(tp: Any, value: Any) -> tuple[Any, list[Repair]]:
    return lenient.decode(tp, json.dumps(value).encode())


def strictly(tp: Any, value: Any) -> Any:
    return msgspec.json.Decoder(tp, dec_hook=lenient.dec_hook).decode(json.dumps(value))


def bad_values(node: Json) -> list[Any]:
    validator = RULES.node_validator(node)
    return [value for value in BAD if not validator.is_valid(value)]


def instances_with(owner: str, key: str) -> Iterator[Json]:
    """The smallest instance of each variant that has the property; open variants are kept as they come."""
    for path in RULES.paths(owner):
        sample = RULES.make(owner, Minimal(path))
        has_it = key in RULES.make(owner, Full(path))
        if has_it and not isinstance(strictly(getattr(schema, owner), sample), Open):
            yield sample


def attribute(value: Any, key: str) -> Any:
    names = {wire: name for name, wire, _, _ in lenient.fields_of(type(value))}
    return getattr(value, names[key])


def marked(*flags: str) -> list[Any]:
    """The properties that carry all of these marks and for which something bad exists."""
    found = {}
    for owner, key, node, required in RULES.properties():
        if hasattr(schema, owner) and all(node.get(flag) for flag in flags) and bad_values(node):
            found[owner, key] = pytest.param(owner, key, node, required, id=f"{owner}.{key}")
    assert found
    return list(found.values())


# -- the schema's rules -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("owner", "key", "node", "required"), marked(ON_ERROR))
def test_a_bad_value_becomes_the_default(owner: str, key: str, node: Json, required: bool) -> None:
    tp = getattr(schema, owner)
    for sample in instances_with(owner, key):
        # a required list that cannot be read is an empty one; anything else is as if it had not been sent
        rest = {name: value for name, value in sample.items() if name != key}
        expected = strictly(tp, {**rest, key: []} if required else rest)
        for bad in bad_values(node):
            if node.get(SKIP) and isinstance(bad, list):
                continue
            value, report = read(tp, {**sample, key: bad})
            assert value == expected
            if bad is not None:
                assert [(repair.path, repair.action) for repair in report] == [(f"$.{key}", "defaulted")]


@pytest.mark.parametrize(("owner", "key", "node", "required"), marked(SKIP))
def test_bad_items_are_dropped_and_good_ones_kept(owner: str, key: str, node: Json, required: bool) -> None:
    tp = getattr(schema, owner)
    for sample in instances_with(owner, key):
        good = RULES.make(owner, Full())[key][:1]
        expected = attribute(strictly(tp, {**sample, key: [*good, *good]}), key)
        for bad in bad_values(node["items"]):
            value, report = read(tp, {**sample, key: [*good, bad, *good]})
            assert attribute(value, key) == expected
            assert [(repair.path, repair.action) for repair in report] == [(f"$.{key}[1]", "dropped")]
        value, report = read(tp, {**sample, key: [1.5, *good, 1.5, 1.5]})
        assert attribute(value, key) == attribute(strictly(tp, {**sample, key: good}), key)
        assert [repair.path for repair in report] == [f"$.{key}[{i}]" for i in (0, 2, 3)]


@pytest.mark.parametrize(("owner", "key", "node", "required"), marked(ON_NULL))
def test_null_is_as_good_as_the_default(owner: str, key: str, node: Json, required: bool) -> None:
    tp = getattr(schema, owner)
    for sample in instances_with(owner, key):
        rest = {name: value for name, value in sample.items() if name != key}
        value, report = read(tp, {**rest, key: None})
        assert not attribute(value, key)
        assert value == strictly(tp, {**rest, key: []} if required else rest)
        assert [repair.path for repair in report] in ([], [f"$.{key}"])
        for bad in bad_values(node):
            if bad is not None and not node.get(ON_ERROR):
                with pytest.raises(ValidationError) as caught:
                    read(tp, {**rest, key: bad})
                assert caught.value.path.startswith(f"$.{key}")


def required_and_unmarked() -> list[Any]:
    found = {}
    lenient_ones = {(owner, key) for owner, key, node, _ in RULES.properties() if {ON_ERROR, ON_NULL} & node.keys()}
    for owner, key, node, required in RULES.properties():
        if required and hasattr(schema, owner) and (owner, key) not in lenient_ones and "const" not in node:
            found[owner, key] = pytest.param(owner, key, node, id=f"{owner}.{key}")
    return list(found.values())


@pytest.mark.parametrize(("owner", "key", "node"), required_and_unmarked())
def test_what_is_required_is_named_when_it_is_missing(owner: str, key: str, node: Json) -> None:
    for sample in instances_with(owner, key):
        rest = {name: value for name, value in sample.items() if name != key}
        if (owner, key) in MENDED and owner == "PlanEntry":
            continue
        with pytest.raises(ValidationError) as caught:
            read(getattr(schema, owner), rest)
        assert f"`{key}`" in str(caught.value) or f"'{key}'" in str(caught.value)


@pytest.mark.parametrize(("owner", "key", "node"), required_and_unmarked())
def test_what_is_required_is_named_when_it_is_bad(owner: str, key: str, node: Json) -> None:
    for sample in instances_with(owner, key):
        for bad in bad_values(node):
            if isinstance(bad, str) or (bad is None and (owner, key) in MENDED):
                continue  # a word the schema does not know is kept, see below
            with pytest.raises(ValidationError) as caught:
                read(getattr(schema, owner), {**sample, key: bad})
            assert caught.value.path.startswith(f"$.{key}")
            assert caught.value.errors()[0]["loc"][0] == key


@pytest.mark.parametrize(
    ("tp", "sample", "field"),
    [
        (schema.PromptResponse, {"stopReason": "stop_sequence"}, "stop_reason"),
        (schema.PermissionOption, {"optionId": "o", "name": "n", "kind": "allow_twice"}, "kind"),
        (schema.PlanEntry, {"content": "c", "priority": "urgent", "status": "pending"}, "priority"),
        (schema.PlanEntry, {"content": "c", "priority": "low", "status": "blocked"}, "status"),
    ],
)
def test_a_required_word_that_the_schema_does_not_know_is_kept(tp: Any, sample: Json, field: str) -> None:
    value, [repair] = read(tp, sample)
    wire = {name: key for name, key, _, _ in lenient.fields_of(tp)}[field]
    assert getattr(value, field) == sample[wire]
    assert (repair.path, repair.action) == (f"$.{wire}", "kept")
    assert repr(sample[wire]) in repair.reason
    assert json.loads(encode(value)) == sample


def test_repairs_deep_inside_a_message_say_where() -> None:
    block = {"type": "text", "text": "t", "annotations": {"priority": "high", "audience": ["user", 5]}, "_meta": 1}
    update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "1",
        "title": 7,
        "status": "cancelled",
        "content": [{"type": "content", "content": block}, "noise", {"type": "diff", "path": "/a", "newText": "n"}],
        "locations": [{"path": "/a", "line": -4}, {"line": 2}],
    }
    value, report = read(schema.SessionNotification, {"sessionId": "s", "update": update, "_meta": []})
    text = schema.TextContentBlock(text="t", annotations=schema.Annotations(audience=["user"]))
    assert value == schema.SessionNotification(
        session_id="s",
        update=schema.ToolCallProgress(
            tool_call_id="1",
            content=[
                schema.ContentToolCallContent(content=text),
                schema.FileEditToolCallContent(path="/a", new_text="n"),
            ],
            locations=[schema.ToolCallLocation(path="/a")],
        ),
    )
    assert {(repair.path, repair.action) for repair in report} == {
        ("$.update.title", "defaulted"),
        ("$.update.status", "defaulted"),
        ("$.update.content[0].content.annotations.priority", "defaulted"),
        ("$.update.content[0].content.annotations.audience[1]", "dropped"),
        ("$.update.content[0].content._meta", "defaulted"),
        ("$.update.content[1]", "dropped"),
        ("$.update.locations[0].line", "defaulted"),
        ("$.update.locations[1]", "dropped"),
        ("$._meta", "defaulted"),
    }


def test_what_was_mended_inside_a_dropped_value_is_not_reported_twice() -> None:
    annotations = {"priority": "high", "audience": "everyone"}
    value, report = read(schema.TextContent, {"text": "t", "annotations": annotations})
    assert value.annotations == schema.Annotations()
    assert [repair.path for repair in report] == ["$.annotations.audience", "$.annotations.priority"]
    cost = {"cost": {"amount": "free", "currency": "EUR", "_meta": 3}}
    value, report = read(schema.UsageUpdate, {"sessionUpdate": "usage_update", "used": 1, "size": 2, **cost})
    assert value.cost is None
    assert [repair.path for repair in report] == ["$.cost"]


@pytest.mark.parametrize("whole", [b"3.0", b"3e0", b"30e-1"])
def test_a_whole_number_is_an_integer_however_it_is_written(whole: bytes) -> None:
    """JSON Schema says so, and so do the readers of other implementations."""
    location, _ = lenient.decode(schema.ToolCallLocation, b'{"path":"/a","line":%b}' % whole)
    assert location.line == 3
    usage, _ = lenient.decode(schema.SessionUpdate, b'{"sessionUpdate":"usage_update","used":%b,"size":9}' % whole)
    assert usage == schema.UsageUpdate(used=3, size=9)


# -- what nobody knows --------------------------------------------------------------------------------------------

FUTURE_UPDATES = [
    {"sessionUpdate": "_vendor.progress", "percent": 40, "nested": {"a": [None, {"b": 1}]}, "_meta": {"k": 1}},
    {"sessionUpdate": "hologram", "toolCallId": "1"},
    {"sessionUpdate": "agent_message_chunk"},
    {"sessionUpdate": "agent_message_chunk", "content": "text without a block"},
    {"sessionUpdate": "tool_call", "toolCallId": 5, "title": "t"},
    {"sessionUpdate": "current_mode_update", "currentModeId": None},
]


@pytest.mark.parametrize("raw", FUTURE_UPDATES, ids=lambda raw: " ".join(raw))
def test_an_update_that_cannot_be_typed_is_kept_whole(raw: Json) -> None:
    value, [repair] = read(schema.SessionNotification, {"sessionId": "s", "update": raw})
    update = value.update
    assert type(update) is schema.UnknownUpdate
    assert update.raw == raw
    assert update.session_update == raw["sessionUpdate"]
    assert (repair.path, repair.action) == ("$.update", "kept")
    assert json.loads(encode(value)) == {"sessionId": "s", "update": raw}


@pytest.mark.parametrize("update", [{}, {"sessionUpdate": 5}, {"sessionUpdate": None, "content": {}}, [], "x", None])
def test_an_update_without_a_name_is_an_error(update: Any) -> None:
    with pytest.raises(ValidationError, match=r"\$\.update"):
        read(schema.SessionNotification, {"sessionId": "s", "update": update})


HOLOGRAM = {"type": "hologram", "frames": [1, None], "_meta": {"k": 1}}


@pytest.mark.parametrize(
    ("tp", "sample", "reach", "path"),
    [
        (schema.ContentChunk, {"content": HOLOGRAM}, lambda v: v.content, "$.content"),
        (schema.PromptRequest, {"sessionId": "s", "prompt": [HOLOGRAM]}, lambda v: v.prompt[0], "$.prompt[0]"),
        (schema.Content, {"content": HOLOGRAM}, lambda v: v.content, "$.content"),
        (schema.ToolCallUpdate, {"toolCallId": "1", "content": [HOLOGRAM]}, lambda v: v.content[0], "$.content[0]"),
    ],
    ids=["chunk", "prompt", "wrapped", "tool call"],
)
def test_content_of_an_unknown_type_is_kept_whole(tp: Any, sample: Json, reach: Any, path: str) -> None:
    value, [repair] = read(tp, sample)
    block = reach(value)
    assert type(block) is schema.UnknownContent
    assert block.raw == HOLOGRAM
    assert (block.type, block.frames, block.field_meta) == ("hologram", [1, None], {"k": 1})
    assert (repair.path, repair.action) == (path, "kept")
    assert json.loads(encode(value)) == sample


def test_content_without_a_type_is_an_error() -> None:
    with pytest.raises(ValidationError) as caught:
        read(schema.ContentChunk, {"content": {"text": "t"}})
    assert caught.value.path == "$.content"
    assert "type" in caught.value.reason


@pytest.mark.parametrize(
    ("tp", "raw", "cls"),
    [
        (schema.CreateElicitationResponse, {"action": "_later", "when": 5}, schema.OtherElicitationResponse),
        (schema.StateUpdate, {"state": "dreaming", "depth": 2}, schema.OtherStateUpdate),
        (schema.ElicitationPropertySchema, {"type": "colour", "palette": []}, schema.ElicitationOtherPropertySchema),
        (schema.MultiSelectItems, {"type": "colour", "palette": []}, schema.OtherMultiSelectItems),
        (
            schema.CreateElicitationRequest,
            {"mode": "_voice", "message": "m", "sessionId": "s", "extra": None},
            schema.CreateOtherElicitationRequest,
        ),
    ],
)
def test_open_unions_of_the_schema_keep_what_they_do_not_know_without_repair(tp: Any, raw: Json, cls: Any) -> None:
    value = strictly(tp, raw)
    assert type(value) is cls
    assert isinstance(value, tp)
    assert json.loads(encode(value)) == raw
    assert read(tp, raw) == (value, [])


def test_a_known_name_with_a_bad_body_is_no_unknown_variant() -> None:
    with pytest.raises(ValidationError) as caught:
        read(schema.CreateElicitationRequest, {"mode": "form", "message": "m", "sessionId": "s"})
    assert "requestedSchema" in str(caught.value)


def test_values_of_open_types_read_like_models() -> None:
    block = schema.UnknownContent({"type": "hologram", "frameRate": 25, "_meta": {"a": 1}})
    assert (block.type, block.frame_rate, block.frameRate, block.field_meta) == ("hologram", 25, 25, {"a": 1})
    with pytest.raises(AttributeError, match="has no field 'colour'"):
        _ = block.colour
    assert block == schema.UnknownContent(type="hologram", frame_rate=25, field_meta={"a": 1})
    assert block != schema.UnknownUpdate(block.raw)
    assert block.model_dump() == block.raw
    assert json.loads(block.model_dump_json()) == block.raw
    copy = block.model_copy(update={"frameRate": 50})
    assert (copy.frame_rate, block.frame_rate) == (50, 25)
    assert "hologram" in repr(block)


# -- dialects seen in the wild ------------------------------------------------------------------------------------

BARE = {"type": "text", "text": "out"}


@pytest.mark.parametrize(("told", "meant"), [("write", "edit"), ("command", "execute"), ("task", "think")])
@pytest.mark.parametrize("update", ["tool_call", "tool_call_update"])
def test_kinds_of_other_dialects_are_translated(update: str, told: str, meant: str) -> None:
    raw = {"sessionUpdate": update, "toolCallId": "1", "title": "t", "kind": told}
    value, [repair] = read(schema.SessionUpdate, raw)
    assert value.kind == meant
    assert repair.action == "mended"
    assert told in repair.reason
    assert meant in repair.reason


@pytest.mark.parametrize(
    ("tp", "raw", "expected", "reason"),
    [
        (
            schema.ToolCallUpdate,
            {"toolCallId": "1", "content": [BARE]},
            schema.ToolCallUpdate(tool_call_id="1", content=[{"type": "content", "content": BARE}]),
            "wrapped",
        ),
        (
            schema.ContentBlock,
            {"type": "image", "data": "aGk=", "mediaType": "image/png"},
            schema.ImageContentBlock(data="aGk=", mime_type="image/png"),
            "mimeType",
        ),
        (
            schema.ContentBlock,
            {"type": "audio", "data": "aGk=", "mediaType": "audio/wav"},
            schema.AudioContentBlock(data="aGk=", mime_type="audio/wav"),
            "mimeType",
        ),
        (
            schema.PlanEntry,
            {"content": "c", "priority": None},
            schema.PlanEntry(content="c", priority="medium", status="pending"),
            "medium",
        ),
        (schema.InitializeRequest, {"protocolVersion": "1"}, schema.InitializeRequest(protocol_version=1), "'1'"),
        (
            schema.InitializeResponse,
            {"protocolVersion": "2025-06-18"},
            schema.InitializeResponse(protocol_version=1),
            "2025-06-18",
        ),
    ],
)
def test_dialects_are_mended_and_reported(tp: Any, raw: Json, expected: Any, reason: str) -> None:
    value, [repair] = read(tp, raw)
    assert value == expected
    assert repair.action == "mended"
    assert reason in repair.reason


def test_a_dialect_does_not_touch_what_is_right() -> None:
    raw = {"type": "image", "data": "aGk=", "mimeType": "image/png", "mediaType": "image/gif", "uri": 5}
    value, report = read(schema.ContentBlock, raw)
    assert value.mime_type == "image/png"
    assert [repair.path for repair in report] == ["$.uri"]


# -- the walk without a report ------------------------------------------------------------------------------------


def test_python_values_are_read_by_either_name_but_not_mended() -> None:
    by_name = {"tool_call_id": "1", "raw_input": {"a": 1}, "content": [{"type": "diff", "path": "/a", "new_text": "n"}]}
    by_alias = {"toolCallId": "1", "rawInput": {"a": 1}, "content": [{"type": "diff", "path": "/a", "newText": "n"}]}
    assert lenient.strict(schema.ToolCallUpdate, by_name) == strictly(schema.ToolCallUpdate, by_alias)
    for spoilt in ({"kind": "write"}, {"status": "cancelled"}, {"content": [BARE]}, {"content": ["noise"]}):
        with pytest.raises(ValidationError):
            lenient.strict(schema.ToolCallUpdate, {"toolCallId": "1", **spoilt})


@pytest.mark.parametrize("raw", [b"{", b'{"text": "\xff"}', b"[" * 100_000, b""])
def test_what_is_no_json_is_a_validation_error(raw: bytes) -> None:
    with pytest.raises(ValidationError):
        lenient.decode(schema.TextContent, raw)


def test_a_value_nested_too_deeply_is_a_validation_error() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(ValidationError):
        lenient.strict(list[schema.TextContent], deep)


def test_a_choice_is_told_apart_by_tag_then_by_key() -> None:
    assert schema.McpServer.pick({"type": "http"}) is schema.HttpMcpServer
    assert schema.McpServer.pick({"type": "carrier pigeon"}) is schema.McpServerStdio
    assert schema.EmbeddedResourceResource.pick({"blob": ""}) is schema.BlobResourceContents
    assert isinstance(schema.TextResourceContents(uri="u", text="t"), schema.EmbeddedResourceResource)
    assert not isinstance("text", schema.EmbeddedResourceResource)
    for wrong in ({}, {"uri": "u"}, [], None, "text"):
        with pytest.raises(ValidationError):
            schema.EmbeddedResourceResource.pick(wrong)
    with pytest.raises(ValidationError, match="`str`"):
        schema.McpServer.pick({"type": 5})
    assert isinstance(schema.CreateElicitationRequest, Choice)


# -- through a connection -----------------------------------------------------------------------------------------


class Listener:
    """A client that keeps what it is told."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.offered: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, options: Any, **_: Any) -> Any:
        self.offered = options
        return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome())


async def nothing(method: str, params: Any, is_notification: bool) -> Any:
    raise RequestError.method_not_found(method)


async def test_what_was_mended_or_kept_is_reported_by_the_connection() -> None:
    ours, theirs = memory_pair()
    listener, reports = Listener(), list[Diagnostic]()
    raws = [*FUTURE_UPDATES, {"sessionUpdate": "agent_message_chunk", "content": HOLOGRAM}]

    async def agent(method: str, params: Any, is_notification: bool) -> Any:
        for raw in raws:
            await peer.send_notification("session/update", {"sessionId": "s", "update": raw})
        return {"stopReason": "stop_sequence", "usage": "plenty"}

    peer = Connection(agent, theirs)
    async with asyncio.timeout(30), peer, ClientSideConnection(listener, ours, on_diagnostic=reports.append) as client:
        response = await client.prompt(session_id="s", prompt=[])
    assert response.stop_reason == "stop_sequence"
    assert response.usage is None
    assert [update.raw for update in listener.updates[:-1]] == FUTURE_UPDATES
    assert listener.updates[-1].content.raw == HOLOGRAM
    told = [(report.kind, report.method, report.message.partition(": ")[0]) for report in reports]
    updates = [("repair", "session/update", "$.update")] * len(FUTURE_UPDATES)
    updates.append(("repair", "session/update", "$.update.content"))
    assert told[: len(updates)] == updates
    assert set(told[len(updates) :]) == {
        ("repair", "session/prompt", "$.stopReason"),
        ("repair", "session/prompt", "$.usage"),
    }


async def test_a_request_with_a_bad_required_field_is_refused_by_its_name_and_a_mendable_one_is_served() -> None:
    ours, theirs = memory_pair()
    listener, reports = Listener(), list[Diagnostic]()
    peer = Connection(nothing, theirs)
    option = {"optionId": "o", "name": "n", "kind": "allow_twice"}
    call = {"toolCallId": "1", "kind": "frobnicate"}
    async with asyncio.timeout(30), peer, ClientSideConnection(listener, ours, on_diagnostic=reports.append):
        good = {"sessionId": "s", "toolCall": call, "options": [option]}
        assert await peer.send_request("session/request_permission", good) == {"outcome": {"outcome": "cancelled"}}
        assert listener.offered[0].kind == "allow_twice"
        assert [report.message.partition(": ")[0] for report in reports] == ["$.toolCall.kind", "$.options[0].kind"]
        for bad, field in (
            ({"sessionId": "s", "toolCall": call}, "options"),
            ({"sessionId": 5, "toolCall": call, "options": []}, "sessionId"),
            ({"sessionId": "s", "toolCall": {}, "options": []}, "toolCall.toolCallId"),
            ({"sessionId": "s", "toolCall": call, "options": [{**option, "name": None}]}, "options[0].name"),
        ):
            with pytest.raises(RequestError) as caught:
                await peer.send_request("session/request_permission", bad)
            assert caught.value.code == -32602
            assert caught.value.data["field"] == field


async def test_an_agent_gets_the_blocks_of_a_prompt_that_it_does_not_know() -> None:
    class Reader:
        async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> Any:
            self.prompt = prompt
            return schema.PromptResponse(stop_reason="end_turn")

    ours, theirs = memory_pair()
    reader, reports = Reader(), list[Diagnostic]()
    peer = Connection(nothing, theirs)
    async with asyncio.timeout(30), peer, AgentSideConnection(reader, ours, on_diagnostic=reports.append):
        await peer.send_request("session/prompt", {"sessionId": "s", "prompt": [BARE, HOLOGRAM]})
    known, unknown = reader.prompt  # type: ignore[misc]
    assert known == schema.TextContentBlock(text="out")
    assert unknown.raw == HOLOGRAM
    assert [report.kind for report in reports] == ["repair"]


@pytest.mark.parametrize("odd", [{"a": 1}, ["text"], 7, None])
def test_tool_content_whose_type_is_no_text_is_dropped_and_reported(odd: object) -> None:
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [{"type": odd, "text": "x"}]}
    typed, repairs = repair(schema.SessionUpdate, update)
    assert typed.content == []
    assert [mended.path for mended in repairs] == ["$.content[0]"]
