"""Our models next to the official SDK's: whoever wrote for those finds the same verbs and the same answers.

The official schema is an older one; what only one side knows is left out of the comparison.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import acp.schema as official
import msgspec
import pydantic
import pytest

import pilothouse.acp.schema as ours
from pilothouse.acp import NULL, Model, RequestError, ValidationError, lenient
from pilothouse.acp.model import encode, to_wire
from tests.support.schema_samples import Full, Minimal, Source, extended

SIDES = {"official": official, "ours": ours}
both = pytest.mark.parametrize("m", SIDES.values(), ids=SIDES)
# properties that the schema gained, and lost, since the one the official package was made from
LATER = {"name", "subagents", "notices", "compaction", "systemPrompt", "system_prompt", "models", "archive", "status"}
LATER |= {"title", "archived"}
EARLIER = {"nes", "positionEncoding", "position_encoding", "positionEncodings", "position_encodings"}
# `mcp/message` has been redesigned; the type of a command's input is a wrapper there
DIFFERENT = {"MessageMcpNotification", "MessageMcpRequest", "AvailableCommandInput"}
OPTIONS = ("mode", "by_alias", "exclude_none", "exclude_unset", "exclude_defaults")


def differences(our: Any, their: Any, path: str = "$") -> list[str]:
    """Where two dumps differ in what both sides know."""
    if isinstance(our, dict) and isinstance(their, dict):
        found = []
        for key in our.keys() | their.keys():
            where = f"{path}.{key}"
            if key in our and key in their:
                found += differences(our[key], their[key], where)
            elif key in our and not (key in LATER and our[key] is None):
                found.append(f"{where} is only in ours: {our[key]!r}")
            elif key in their and not (key in EARLIER and their[key] is None) and their[key] != {}:
                found.append(f"{where} is only in theirs: {their[key]!r}")
        return found
    if isinstance(our, list) and isinstance(their, list) and len(our) == len(their):
        pairs = enumerate(zip(our, their, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{path}[{i}]")]
    if isinstance(their, pydantic.AnyUrl):
        their = str(their)
    return [] if our == their and type(our) is type(their) else [f"{path}: {our!r} is {their!r} there"]


def instances(source: type[Source]) -> dict[str, Model]:
    """An instance of every type, taken from instances of every definition."""
    found: dict[str, Model] = {}

    def collect(value: Any) -> None:
        if isinstance(value, Model):
            found.setdefault(type(value).__name__, value)
            for name in value.__struct_fields__:
                collect(getattr(value, name))
        elif isinstance(value, (list, dict)):
            for item in value.values() if isinstance(value, dict) else value:
                collect(item)

    rules = extended()
    for name in rules.defs:
        tp = getattr(ours, name, None)
        config = getattr(tp, "__struct_config__", None)
        tag = {} if config is None or config.tag_field is None else {config.tag_field: config.tag}
        for path in rules.paths(name) if tp is not None else ():
            sample = rules.make(name, source(path))
            value = {**tag, **sample} if isinstance(sample, dict) else sample
            collect(msgspec.convert(value, tp, dec_hook=lenient.dec_hook))
    return found


def shared_types() -> Iterator[Any]:
    full, minimal = instances(Full), instances(Minimal)
    for name in sorted(full):
        theirs = getattr(official, name, None)
        is_model = isinstance(theirs, type) and issubclass(theirs, pydantic.BaseModel)
        if is_model and not issubclass(theirs, pydantic.RootModel) and name not in DIFFERENT:
            yield pytest.param(theirs, getattr(ours, name), [full[name], minimal.get(name, full[name])], id=name)


SHARED = list(shared_types())
each_shared_type = pytest.mark.parametrize(("theirs", "our", "samples"), SHARED)


def wire_of(theirs: Any, sample: Model) -> Any:
    """The JSON of a sample with only what the official type knows."""
    return theirs.model_validate(to_wire(sample)).model_dump(mode="json", by_alias=True, exclude_unset=True)


def test_most_types_are_shared() -> None:
    assert len(SHARED) > 170


# -- every shared type, every option --------------------------------------------------------------------------------


@each_shared_type
def test_dumps_agree_in_every_combination_of_options(theirs: Any, our: Any, samples: list[Model]) -> None:
    for wire in (wire_of(theirs, sample) for sample in samples):
        one, other = our.model_validate(wire), theirs.model_validate(wire)
        for values in itertools.product(("python", "json"), *[(False, True)] * 4):
            options: Any = dict(zip(OPTIONS, values, strict=True))
            assert differences(one.model_dump(**options), other.model_dump(**options)) == [], options
            if options.pop("mode") == "json":
                texts = [json.loads(model.model_dump_json(**options)) for model in (one, other)]
                assert differences(*texts) == [], options


@each_shared_type
def test_models_are_read_by_alias_by_name_and_from_json(theirs: Any, our: Any, samples: list[Model]) -> None:
    for wire in (wire_of(theirs, sample) for sample in samples):
        one = our.model_validate(wire)
        assert our.model_validate_json(json.dumps(wire)) == one
        assert our.model_validate_json(json.dumps(wire).encode()) == one
        assert our.model_validate(theirs.model_validate(wire).model_dump(mode="json")) == one
        assert our(**theirs.model_validate(wire).model_dump(mode="json", exclude_none=True)) == one
        assert our.model_validate(one) is one


@each_shared_type
def test_fields_have_the_same_names_and_discriminators_the_same_values(
    theirs: Any, our: Any, samples: list[Model]
) -> None:
    for wire in (wire_of(theirs, sample) for sample in samples):
        one, other = our.model_validate(wire), theirs.model_validate(wire)
        for name in theirs.model_fields.keys() - EARLIER:
            value, their_value = getattr(one, name), getattr(other, name)
            if isinstance(their_value, (str, int, float)):
                assert value == their_value


@each_shared_type
def test_copies_are_equal_and_changes_stay_in_them(theirs: Any, our: Any, samples: list[Model]) -> None:
    for sample in samples:
        for made in (
            sample.model_copy(),
            sample.model_copy(deep=True),
            copy.copy(sample),
            copy.deepcopy(sample),
            pickle.loads(pickle.dumps(sample)),
        ):
            assert made == sample
            assert type(made) is type(sample)
            assert made is not sample


# -- single verbs ---------------------------------------------------------------------------------------------------


def chunk(m: Any) -> Any:
    block = m.TextContentBlock(type="text", text="hi", annotations=m.Annotations(priority=0.5))
    return m.AgentMessageChunk(session_update="agent_message_chunk", content=block, field_meta={"a": 1})


def progress(m: Any) -> Any:
    return m.ToolCallProgress(session_update="tool_call_update", tool_call_id="1", title="t", status=None)


SELECTIONS: dict[str, Any] = {
    "include": {"include": {"content", "tool_call_id"}},
    "include the tag": {"include": {"session_update"}},
    "include nothing": {"include": set()},
    "exclude": {"exclude": {"field_meta", "content"}},
    "exclude the tag": {"exclude": {"session_update"}},
    "both": {"include": {"content", "field_meta", "title"}, "exclude": {"content"}, "exclude_none": True},
    "by alias": {"include": {"tool_call_id", "field_meta"}, "by_alias": True},
    "include within": {"include": {"content": {"text"}}},
    "exclude within": {"exclude": {"content": {"annotations", "field_meta"}}},
    "exclude deep within": {"exclude": {"content": {"annotations": {"priority"}}}},
    "exclude by true": {"exclude": {"content": True}},
    "include by dots": {"include": {"content": ...}},
}


@pytest.mark.parametrize("build", [chunk, progress])
@pytest.mark.parametrize("options", SELECTIONS.values(), ids=SELECTIONS)
def test_including_and_excluding_agree(build: Callable[[Any], Any], options: Any) -> None:
    assert differences(build(ours).model_dump(**options), build(official).model_dump(**options)) == []


def test_exclude_unset_knows_what_was_given_even_when_it_is_the_default() -> None:
    for m in SIDES.values():
        given = progress(m).model_dump(exclude_unset=True)
        assert given == {"session_update": "tool_call_update", "tool_call_id": "1", "title": "t", "status": None}
        assert progress(m).model_fields_set - {"session_update"} == {"tool_call_id", "title", "status"}


@both
def test_json_text_can_be_indented_and_keeps_letters(m: Any) -> None:
    block = m.TextContentBlock(type="text", text="漢字 🛳 é")
    text = block.model_dump_json(indent=2, exclude_none=True)
    assert "漢字 🛳 é" in text
    assert text.count("\n  ") == 2
    assert json.loads(text) == {"type": "text", "text": "漢字 🛳 é"}
    assert "\n" not in block.model_dump_json()


@both
def test_copying_with_an_update_replaces_fields_without_checking_them(m: Any) -> None:
    original = chunk(m)
    changed = original.model_copy(update={"content": m.TextContentBlock(type="text", text="new"), "message_id": 5})
    assert (changed.content.text, changed.message_id) == ("new", 5)
    assert (original.content.text, original.message_id) == ("hi", None)
    shallow, deep = original.model_copy(), original.model_copy(deep=True)
    original.content.text = "changed"
    original.field_meta["a"] = 2
    assert (shallow.content.text, shallow.field_meta["a"]) == ("changed", 2)
    assert (deep.content.text, deep.field_meta["a"]) == ("hi", 1)
    assert type(deep) is m.AgentMessageChunk


@both
def test_an_updated_copy_counts_the_update_as_set(m: Any) -> None:
    copied = m.ToolCallUpdate(tool_call_id="1").model_copy(update={"title": None})
    assert copied.model_dump(exclude_unset=True) == {"tool_call_id": "1", "title": None}


@both
def test_equality_is_by_type_and_value(m: Any) -> None:
    assert chunk(m) == chunk(m)
    assert m.TextContentBlock(type="text", text="a") == m.TextContentBlock(type="text", text="a", annotations=None)
    assert m.TextContentBlock(type="text", text="a") != m.TextContentBlock(type="text", text="b")
    assert m.TextContentBlock(type="text", text="a") != m.TextContent(text="a")
    one = m.AgentMessageChunk(session_update="agent_message_chunk", content=m.TextContentBlock(type="text", text="a"))
    other = m.AgentThoughtChunk(session_update="agent_thought_chunk", content=m.TextContentBlock(type="text", text="a"))
    assert one != other
    with pytest.raises(TypeError):
        hash(one)


@both
def test_discriminators_are_arguments_and_attributes(m: Any) -> None:
    assert chunk(m).session_update == "agent_message_chunk"
    assert chunk(m).content.type == "text"
    assert m.AllowedOutcome(outcome="selected", option_id="o").outcome == "selected"
    assert m.HttpMcpServer(type="http", name="n", url="u", headers=[]).type == "http"
    with pytest.raises(ValueError, match="type"):
        m.TextContentBlock(type="image", text="a")


def test_discriminators_may_be_left_out() -> None:
    assert ours.TextContentBlock(text="a") == ours.TextContentBlock(type="text", text="a")
    assert ours.ToolCallStart(tool_call_id="1", title="t").session_update == "tool_call"
    assert ours.DeniedOutcome().outcome == "cancelled"


@both
def test_fields_can_be_assigned(m: Any) -> None:
    update = chunk(m)
    update.field_meta = {"echo": True}
    update.content.field_meta = {"echo": [1]}
    update.content.text = "new"
    dumped = update.model_dump(mode="json", by_alias=True, exclude_none=True)
    block = {"type": "text", "text": "new", "annotations": {"priority": 0.5}, "_meta": {"echo": [1]}}
    assert dumped == {"sessionUpdate": "agent_message_chunk", "content": block, "_meta": {"echo": True}}


@both
@pytest.mark.parametrize("name", ["tittle", "rawInput"])
def test_a_misspelt_assignment_is_an_error(m: Any, name: str) -> None:
    update = m.ToolCallUpdate(tool_call_id="1")
    with pytest.raises((ValueError, AttributeError)):
        setattr(update, name, {"lost": True})


@both
def test_fields_can_be_read_by_their_camel_case_names(m: Any) -> None:
    update = m.ToolCallUpdate(tool_call_id="1", raw_input={"a": 1})
    assert (update.toolCallId, update.rawInput) == ("1", {"a": 1})
    with pytest.raises(AttributeError):
        _ = update.noSuchField


# -- what constructors take -------------------------------------------------------------------------------------------


@both
def test_constructors_take_names_and_aliases(m: Any) -> None:
    by_name = m.ToolCallUpdate(tool_call_id="1", raw_input=3, field_meta={"a": 1})
    by_alias = m.ToolCallUpdate(toolCallId="1", rawInput=3, _meta={"a": 1})
    assert by_name == by_alias


@both
def test_nested_dicts_become_models(m: Any) -> None:
    call = m.ToolCallStart(
        session_update="tool_call",
        tool_call_id="1",
        title="t",
        content=[
            {"type": "content", "content": {"type": "text", "text": "x", "field_meta": {"a": 1}}},
            {"type": "diff", "path": "/a", "new_text": "n", "old_text": None},
            {"type": "diff", "path": "/a", "newText": "n"},
            m.TerminalToolCallContent(type="terminal", terminal_id="7"),
        ],
        locations=[{"path": "/a", "line": 1}],
    )
    assert [type(item) for item in call.content] == [
        m.ContentToolCallContent,
        m.FileEditToolCallContent,
        m.FileEditToolCallContent,
        m.TerminalToolCallContent,
    ]
    assert call.content[0].content == m.TextContentBlock(type="text", text="x", field_meta={"a": 1})
    assert call.content[1] == call.content[2]
    assert call.locations == [m.ToolCallLocation(path="/a", line=1)]


@both
def test_dicts_of_unions_without_a_tag_become_the_right_member(m: Any) -> None:
    servers = [{"name": "n", "command": "c", "args": [], "env": [{"name": "K", "value": "v"}]}]
    servers.append({"type": "http", "name": "n", "url": "u", "headers": []})
    request = m.NewSessionRequest(cwd="/w", mcp_servers=servers)
    assert [type(server) for server in request.mcp_servers] == [m.McpServerStdio, m.HttpMcpServer]
    assert request.mcp_servers[0].env == [m.EnvVariable(name="K", value="v")]
    for member, resource in ((m.TextResourceContents, {"text": "t"}), (m.BlobResourceContents, {"blob": "Yg=="})):
        block = m.EmbeddedResourceContentBlock(type="resource", resource={"uri": "u", **resource})
        assert type(block.resource) is member


@both
@pytest.mark.parametrize("made_into", [list, tuple, iter], ids=["list", "tuple", "iterator"])
def test_lists_may_come_as_other_sequences(m: Any, made_into: Any) -> None:
    update = m.ToolCallUpdate(tool_call_id="1", locations=made_into([m.ToolCallLocation(path="/a")]))
    assert update.locations == [m.ToolCallLocation(path="/a")]
    assert isinstance(update.locations, list)


@both
@pytest.mark.parametrize(("given", "kept"), [(5, 5), (5.0, 5)])
def test_whole_numbers_are_integers(m: Any, given: float, kept: int) -> None:
    assert m.ToolCallLocation(path="/a", line=given).line == kept
    assert type(m.ToolCallLocation(path="/a", line=given).line) is int


@both
def test_none_means_not_given_where_null_is_not_allowed(m: Any) -> None:
    request = m.InitializeRequest(
        protocol_version=1, client_capabilities=m.ClientCapabilities(fs=None, terminal=None), client_info=None
    )
    wire = request.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    assert wire["protocolVersion"] == 1
    assert not {"fs", "terminal"} & wire.get("clientCapabilities", {}).keys()
    with pytest.raises(ValueError, match="text"):
        m.TextContentBlock(type="text", text=None)


def test_none_keeps_the_default_so_that_it_can_be_read() -> None:
    capabilities = ours.ClientCapabilities(fs=None, terminal=None)
    assert capabilities.fs == ours.FileSystemCapabilities()
    assert capabilities.fs.read_text_file is False
    assert capabilities.terminal is False
    assert ours.InitializeResponse(protocol_version=1, agent_capabilities=None).agent_capabilities.load_session is False


def test_an_argument_that_is_no_field_is_ignored_with_a_warning() -> None:
    assert official.TextContentBlock(type="text", text="a", colour="red").model_dump(exclude_none=True) == {
        "type": "text",
        "text": "a",
    }
    with pytest.warns(UserWarning, match=r"TextContentBlock has no field 'colour'") as caught:
        block = ours.TextContentBlock(type="text", text="a", colour="red")
    assert block == ours.TextContentBlock(text="a")
    assert caught[0].filename == __file__


def test_null_is_sent_where_none_is_left_out() -> None:
    update = ours.SessionInfoUpdate(title=NULL, updated_at=None)
    assert json.loads(encode(update)) == {"sessionUpdate": "session_info_update", "title": None}
    assert json.loads(encode(ours.SessionInfoUpdate())) == {"sessionUpdate": "session_info_update"}
    update = ours.ToolCallProgress(tool_call_id="1", content=NULL, locations=NULL, raw_output=NULL)
    assert json.loads(encode(update)) == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "1",
        "content": None,
        "locations": None,
        "rawOutput": None,
    }
    update = ours.SessionInfoUpdate(title="t")
    update.title = NULL
    assert update.model_dump(mode="json", by_alias=True)["title"] is None
    assert json.loads(encode(update))["title"] is None


def test_paths_and_enumerations_stand_for_their_text() -> None:
    class Kind(Enum):
        READ = "read"

    assert ours.ToolCallLocation(path=Path("/a/b")).path == "/a/b"
    assert ours.TextContentBlock(text=Kind.READ).text == "read"


def test_values_that_hold_anything_are_written_as_json() -> None:
    inner = ours.TextContentBlock(text="t")
    call = ours.ToolCallUpdate(tool_call_id="1", raw_input={"path": Path("/a"), "block": inner, "pair": (1, 2)})
    expected = {"path": "/a", "block": {"type": "text", "text": "t"}, "pair": [1, 2]}
    assert json.loads(encode(call))["rawInput"] == expected
    assert call.model_dump(mode="json", exclude_none=True)["raw_input"] == expected
    assert call.raw_input["block"] is inner


@both
def test_what_cannot_be_written_as_json_is_a_mistake_of_the_caller(m: Any) -> None:
    call = m.ToolCallUpdate(tool_call_id="1", raw_input={"what": object()})
    with pytest.raises((TypeError, ValueError)):
        call.model_dump_json()


# -- what they refuse -------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("cls", "arguments", "field"),
    [
        ("TextContentBlock", {"type": "text"}, "text"),
        ("TextContentBlock", {"type": "text", "text": 5}, "text"),
        ("PromptResponse", {"stop_reason": "nope"}, "stop_reason"),
        ("PermissionOption", {"option_id": "o", "name": "n", "kind": "perhaps"}, "kind"),
        ("SessionNotification", {"session_id": "s"}, "update"),
        ("AgentMessageChunk", {"session_update": "agent_message_chunk", "content": {"type": "text"}}, "text"),
        ("AgentMessageChunk", {"session_update": "agent_message_chunk", "content": "text"}, "content"),
        ("RequestPermissionResponse", {"outcome": {"outcome": "selected"}}, "option_?[iI]d"),
        ("RequestPermissionResponse", {"outcome": {"outcome": "perhaps"}}, "outcome"),
        ("PromptRequest", {"session_id": "s", "prompt": "text"}, "prompt"),
        ("PromptRequest", {"session_id": "s", "prompt": [{"type": "text"}]}, "text"),
        ("UsageUpdate", {"session_update": "usage_update", "used": -1, "size": 1}, "used"),
        ("InitializeRequest", {"protocol_version": 70000}, "protocol_?[vV]ersion"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_wrong_argument_is_a_value_error_that_names_it(m: Any, cls: str, arguments: Any, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        getattr(m, cls)(**arguments)
    if m is ours:
        with pytest.raises(ValidationError):
            getattr(m, cls)(**arguments)


@both
@pytest.mark.parametrize("value", [None, 5, "text", [], {}, {"type": "text"}, {"type": "image", "text": "t"}])
def test_validating_what_does_not_fit_is_a_value_error(m: Any, value: Any) -> None:
    with pytest.raises(ValueError):
        m.TextContentBlock.model_validate(value)
    with pytest.raises(ValueError):
        m.TextContentBlock.model_validate_json(json.dumps(value))


@both
@pytest.mark.parametrize("text", ["", "{", "{]}", b"\xff"])
def test_validating_what_is_no_json_is_a_value_error(m: Any, text: Any) -> None:
    with pytest.raises(ValueError):
        m.TextContentBlock.model_validate_json(text)


def test_a_validation_error_tells_the_place_as_pydantic_does() -> None:
    wrong = {"sessionId": "s", "toolCall": {"toolCallId": "1"}, "options": [{"optionId": "o", "kind": "allow_once"}]}
    wrong["options"][0]["name"] = 5  # type: ignore[index]
    with pytest.raises(ValidationError) as caught:
        ours.RequestPermissionRequest.model_validate(wrong)
    with pytest.raises(pydantic.ValidationError) as their:
        official.RequestPermissionRequest.model_validate(wrong)
    assert [str(part) for part in their.value.errors()[0]["loc"]] == list(caught.value.errors()[0]["loc"])
    assert caught.value.path == "$.options[0].name"
    assert isinstance(caught.value, ValueError)


@both
def test_reading_is_lenient_where_the_schema_says_so(m: Any) -> None:
    raw = {"toolCallId": "1", "kind": "frobnicate", "status": 5, "locations": [{"path": "/a"}, {"line": 1}]}
    call = m.ToolCallUpdate.model_validate(raw)
    assert (call.kind, call.status, call.locations) == (None, None, [m.ToolCallLocation(path="/a")])


def test_writing_is_strict() -> None:
    for wrong in ({"kind": "frobnicate"}, {"status": 5}, {"locations": [{"line": 1}]}, {"content": ["x"]}):
        with pytest.raises(ValidationError):
            ours.ToolCallUpdate(tool_call_id="1", **wrong)


def test_model_construct_trusts_its_caller() -> None:
    made = ours.PromptResponse.model_construct(stop_reason="anything")
    assert made.stop_reason == "anything"
    assert made.usage is None


@both
def test_models_can_be_subclassed(m: Any) -> None:
    class Shouted(m.TextContentBlock):
        def shout(self) -> str:
            return str(self.text.upper())

    block = Shouted(type="text", text="a")
    assert block.shout() == "A"
    assert isinstance(block, m.TextContentBlock)
    update = m.AgentMessageChunk(session_update="agent_message_chunk", content=block)
    dumped = update.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert dumped["content"] == {"type": "text", "text": "a"}


def test_request_errors_are_built_as_there() -> None:
    import acp

    for name in ("parse_error", "invalid_request", "invalid_params", "internal_error", "auth_required"):
        one, other = getattr(RequestError, name)({"a": 1}), getattr(acp.RequestError, name)({"a": 1})
        assert one.to_error_obj() == other.to_error_obj()
    for name, argument in (("method_not_found", "x/y"), ("resource_not_found", "file:///a")):
        one, other = getattr(RequestError, name)(argument), getattr(acp.RequestError, name)(argument)
        assert one.to_error_obj() == other.to_error_obj()
