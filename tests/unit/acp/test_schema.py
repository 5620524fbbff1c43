"""The generated types against the schema they come from.

Instances of every definition are made from the vendored schema, read by our types without any repair, written again,
and checked with an independent validator. Nothing a definition names may get lost on the way; on the raw path not
even what it does not name.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from msgspec import Raw

from pilothouse.acp import (
    AgentSideConnection,
    ClientSideConnection,
    Connection,
    RequestError,
    StreamDirection,
    StreamEvent,
    lenient,
    memory_pair,
    methods,
    schema,
)
from pilothouse.acp.methods import Method
from pilothouse.acp.model import Model, encode
from tests.support.schema_samples import (
    UNKNOWN,
    Full,
    Minimal,
    Null,
    Schema,
    Seeded,
    Source,
    extended,
    instances,
    stable,
    unstable,
    without_unknown,
)

SCHEMAS = {"stable": stable(), "unstable": unstable(), "with legacy": extended()}
# Messages as a whole have no type: the envelope is read by hand. Modes are read as part of their request.
ENVELOPES = {
    f"{side}{kind}" for side in ("Agent", "Client", "Proxy") for kind in ("Request", "Response", "Notification")
}
MODES = {
    ("ElicitationFormMode", (0,)): schema.ElicitationFormSessionMode,
    ("ElicitationFormMode", (1,)): schema.ElicitationFormRequestMode,
    ("ElicitationUrlMode", (0,)): schema.ElicitationUrlSessionMode,
    ("ElicitationUrlMode", (1,)): schema.ElicitationUrlRequestMode,
}
DEFINITIONS = [
    pytest.param(rules, name, id=f"{label}-{name}")
    for label, rules in SCHEMAS.items()
    for name in rules.defs
    if name not in ENVELOPES and not (label == "with legacy" and rules.defs[name] == unstable().defs.get(name))
]
METHODS = [pytest.param("agent", m, id=f"agent {m.wire}") for m in methods.AGENT]
METHODS += [pytest.param("client", m, id=f"client {m.wire}") for m in methods.CLIENT]
bounded = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
# over connections a failure may be a wait; making it smaller would multiply that
unshrunk = settings(bounded, phases=[Phase.generate])


def type_of(name: str, path: tuple[int, ...]) -> Any:
    return MODES.get((name, path)) or getattr(schema, name)


def strictly(tp: Any, value: Any) -> Any:
    """Read a value as the fast path does: no rule bends for it."""
    return msgspec.json.Decoder(tp, dec_hook=lenient.dec_hook).decode(json.dumps(value))


def with_tag(tp: Any, sample: Any) -> Any:
    """Definitions that are members of a union do not name the tag their union gives them; our types carry it."""
    config = getattr(tp, "__struct_config__", None)
    return sample if config is None or config.tag_field is None else {config.tag_field: config.tag, **sample}


def sources(path: tuple[int, ...]) -> list[Source]:
    return [Minimal(path), Full(path), Null(path), *(Seeded(path, random.Random(seed)) for seed in range(3))]


def models_in(value: Any) -> set[type]:
    if isinstance(value, Model):
        inner = [models_in(getattr(value, name)) for name in value.__struct_fields__]
        return {type(value)}.union(*inner)
    if isinstance(value, lenient.Open):
        return {type(value)}
    if isinstance(value, (list, dict)):
        return set().union(*map(models_in, value.values() if isinstance(value, dict) else value))
    return set()


# -- fixed samples ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rules", "name"), DEFINITIONS)
def test_instances_of_a_definition_are_read_strictly_and_written_validly(rules: Schema, name: str) -> None:
    for path in rules.paths(name):
        tp = type_of(name, path)
        for source in sources(path):
            sample = with_tag(tp, rules.make(name, source))
            assert rules.errors(name, sample) == [], "the sample itself must be valid"
            written = json.loads(encode(strictly(tp, sample)))
            assert rules.errors(name, written) == []
            assert rules.lost(sample, written) == []


@pytest.mark.parametrize(("rules", "name"), DEFINITIONS)
def test_properties_that_nobody_knows_do_not_break_reading(rules: Schema, name: str) -> None:
    for path in rules.paths(name):
        tp = type_of(name, path)
        sample = with_tag(tp, rules.make(name, Seeded(path, random.Random(7), extra=True)))
        written = json.loads(encode(strictly(tp, sample)))
        assert rules.errors(name, written) == []
        assert rules.lost(without_unknown(sample), without_unknown(written)) == []


@pytest.mark.parametrize(("rules", "name"), DEFINITIONS)
def test_every_way_to_build_an_instance_gives_the_same(rules: Schema, name: str) -> None:
    for path in rules.paths(name):
        for source in (Minimal(path), Full(path), Null(path)):
            sample = with_tag(type_of(name, path), rules.make(name, source))
            read = strictly(type_of(name, path), sample)
            if not isinstance(read, Model):
                continue
            cls = type(read)
            fields = {field: getattr(read, field) for field in read.__struct_fields__}
            assert cls(**fields) == read
            assert cls.model_validate(sample) == read
            assert cls.model_validate_json(json.dumps(sample)) == read
            assert cls(**read.model_dump()) == read
            assert cls(**read.model_dump(mode="json", by_alias=True, exclude_none=True)) == read
            dumped = read.model_dump(mode="json", by_alias=True, exclude_none=True)
            assert rules.errors(name, dumped) == []
            assert extended().lost(sample, dumped) == []  # a dump spells out defaults, unstable ones too


@pytest.mark.parametrize("source", [Minimal, Full])
def test_every_generated_type_has_been_built(source: type[Source]) -> None:
    rules = extended()
    built: set[type] = set()
    for name in rules.defs.keys() - ENVELOPES:
        for path in rules.paths(name):
            tp = type_of(name, path)
            built |= models_in(strictly(tp, with_tag(tp, rules.make(name, source(path)))))
    # An authentication method of former times is no variant of today's union any more.
    env_var = {"type": "env_var", **rules.make("AuthMethodEnvVar", source())}
    built |= models_in(strictly(schema.AuthMethod, env_var))
    generated = {
        value
        for value in vars(schema).values()
        if isinstance(value, type) and issubclass(value, (Model, lenient.Open)) and value.__module__ == schema.__name__
    }
    assert sorted(cls.__name__ for cls in generated - built) == []


def test_types_exist_for_every_definition_of_the_schema() -> None:
    modes = {name for name, _ in MODES}
    assert [n for n in unstable().defs if n not in schema.__all__ and n not in ENVELOPES | modes] == []
    # of what both know, nothing is taken for unstable that is stable
    assert {n for n in stable().defs if n in schema.__all__} == set(schema.STABLE)


def test_methods_are_those_of_the_schema() -> None:
    served = {("agent", m.wire): m for m in methods.AGENT} | {("client", m.wire): m for m in methods.CLIENT}
    listed = {(side, wire) for side, wire, _ in extended().messages if side in ("agent", "client")}
    assert served.keys() == listed
    for (side, wire), method in served.items():
        parts = {part: name for (s, w, part), name in extended().messages.items() if (s, w) == (side, wire)}
        expected = parts.get("params") or parts["notification"]
        assert method.params is getattr(schema, expected)
        assert method.result is (getattr(schema, parts["result"]) if "result" in parts else None)
        assert method.stable == ((side, wire) in {(s, w) for s, w, _ in stable().messages})


# -- messages that hypothesis makes up -----------------------------------------------------------------------------


def names_of(side: str, method: Method) -> list[str]:
    """The definitions of a method's parameters and, for a request, its result."""
    return [name for (s, wire, _), name in extended().messages.items() if (s, wire) == (side, method.wire)]


@pytest.mark.parametrize(("side", "method"), METHODS)
@bounded
@given(data=st.data())
def test_typed_reading_and_writing_keeps_every_known_property(side: str, method: Method, data: st.DataObject) -> None:
    rules = extended()
    for name in names_of(side, method):
        sample = data.draw(instances(rules, name, extra=True))
        note(f"{name}: {sample!r}")
        assert rules.errors(name, sample) == []
        written = json.loads(encode(strictly(getattr(schema, name), sample)))
        assert rules.errors(name, written) == []
        assert rules.lost(without_unknown(sample), without_unknown(written)) == []


class RawDispatcher:
    """A dispatcher that wants no message decoded."""

    decode_update = None

    def updates(self) -> Any:
        raise AssertionError("nothing is decoded here")


class Passing(RawDispatcher):
    """Hands everything on to another connection, untouched."""

    def __init__(self) -> None:
        self.onward: Connection

    def notification(self, method: str, params: Raw | None) -> tuple[None, Any, dict[str, Any]]:
        return None, self.onward.send_notification, {"method": method, "params": params}

    def request(self, method: str, params: Raw | None) -> tuple[None, Any, dict[str, Any], Any]:
        return None, self.onward.request, {"method": method, "params": params}, lambda value: value


class Answering(RawDispatcher):
    """The far end: keeps what arrives, answers what it is told to."""

    def __init__(self) -> None:
        self.got: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue()
        self.answer: Raw | RequestError

    def notification(self, method: str, params: Raw | None) -> tuple[None, Any, dict[str, Any]]:
        return None, self._take, {"method": method, "params": params}

    def request(self, method: str, params: Raw | None) -> tuple[None, Any, dict[str, Any], Any]:
        return None, self._take, {"method": method, "params": params}, lambda value: value

    async def _take(self, method: str, params: Raw | None) -> Raw:
        await self.got.put((method, None if params is None else bytes(params)))
        if isinstance(self.answer, RequestError):
            raise self.answer
        return self.answer


class Relay:
    """near ↔ proxy ↔ far, all in memory."""

    def __init__(self) -> None:
        near_link, left = memory_pair()
        right, far_link = memory_pair()
        inward, outward, self.far_end = Passing(), Passing(), Answering()
        self.near = Connection(Answering(), near_link)
        inner, outer = Connection(inward, left), Connection(outward, right)
        inward.onward, outward.onward = outer, inner
        self.connections = [self.near, inner, outer, Connection(self.far_end, far_link)]

    async def close(self) -> None:
        for connection in self.connections:
            await connection.close()


def spelled(value: Any, style: int) -> bytes:
    """The same JSON as different programs would write it."""
    if style == 0:
        return encode(value)
    return json.dumps(value, ensure_ascii=style == 1, separators=(" , ", " : ") if style == 2 else None).encode()


@pytest.mark.parametrize(("side", "method"), METHODS)
@unshrunk
@given(data=st.data(), style=st.integers(0, 3))
def test_a_proxy_passes_messages_on_byte_by_byte(side: str, method: Method, data: st.DataObject, style: int) -> None:
    params, *result = (data.draw(instances(extended(), name, extra=True)) for name in names_of(side, method))
    sent = spelled(params, style)
    answered = spelled(result[0] if result else None, style)

    async def scenario() -> None:
        relay = Relay()
        relay.far_end.answer = Raw(answered)
        async with asyncio.timeout(30):
            if method.is_notification:
                await relay.near.send_notification(method.wire, Raw(sent))
            else:
                got = await relay.near.request(method.wire, Raw(sent))
                assert got is not None
                assert bytes(got) == answered
            assert await relay.far_end.got.get() == (method.wire, sent)
            await relay.close()

    asyncio.run(scenario())


async def test_a_proxy_keeps_the_meaning_of_json_that_was_written_over_several_lines() -> None:
    relay = Relay()
    value = {"text": "a\nb", UNKNOWN: [1, {"deep": None}]}
    relay.far_end.answer = Raw(json.dumps(value, indent=2).encode())
    async with asyncio.timeout(30):
        got = await relay.near.request("session/prompt", Raw(json.dumps(value, indent=4).encode()))
        assert got is not None
        assert json.loads(bytes(got)) == value
        _, arrived = await relay.far_end.got.get()
        assert arrived is not None
        assert json.loads(arrived) == value
        await relay.close()


@pytest.mark.parametrize("params", [None, Raw(b"null"), Raw(b"[]"), Raw(b'"text"'), Raw(b"1e3")])
async def test_a_proxy_does_not_care_what_parameters_are(params: Raw | None) -> None:
    relay = Relay()
    relay.far_end.answer = Raw(b"null")
    async with asyncio.timeout(30):
        assert await relay.near.request("_any/thing", params) == Raw(b"null")
        assert await relay.far_end.got.get() == ("_any/thing", None if params is None else bytes(params))
        await relay.close()


@unshrunk
@given(code=st.integers(-(2**31), 2**31 - 1), message=st.text(max_size=20), data=instances(extended(), "ExtRequest"))
def test_a_proxy_passes_errors_on(code: int, message: str, data: Any) -> None:
    async def scenario() -> None:
        relay = Relay()
        relay.far_end.answer = RequestError(code, message, data)
        async with asyncio.timeout(30):
            with pytest.raises(RequestError) as caught:
                await relay.near.request("session/prompt", Raw(b"{}"))
            assert caught.value.to_error_obj() == RequestError(code, message, data).to_error_obj()
            await relay.close()

    asyncio.run(scenario())


# -- what connections send ----------------------------------------------------------------------------------------


def answering_all(table: tuple[Method, ...], side: str, source: Source) -> Any:
    """An object that implements every method of a side and answers with an instance made by `source`."""

    def handler(method: Method) -> Any:
        async def handle(self: Any, **_: Any) -> Any:
            if method.is_notification:
                return None
            name = extended().messages[side, method.wire, "result"]
            return strictly(method.result, extended().make(name, source.fork(())))

        return handle

    return type("Everything", (), {method.handler: handler(method) for method in table})()


def arguments_for(call: Any, side: str, method: Method, source: Source) -> dict[str, Any]:
    """Keyword arguments for a typed call, taken from an instance of its parameters."""
    rules = stable() if method.stable else extended()
    part = "notification" if method.is_notification else "params"
    params = strictly(method.params, rules.make(rules.messages[side, method.wire, part], source))
    if method.wire == "elicitation/create":
        mode = schema.ElicitationFormSessionMode(
            **{name: getattr(params, name) for name in schema.ElicitationFormSessionMode.__struct_fields__}
        )
        return {"message": params.message, "mode": mode}
    names = inspect.signature(call).parameters
    return {name: getattr(params, name) for name in params.__struct_fields__ if name in names}


@pytest.mark.parametrize("source", [Minimal(), Full()], ids=["minimal", "full"])
@pytest.mark.parametrize("side", ["agent", "client"])
async def test_every_call_sends_what_the_schema_allows(side: str, source: Source) -> None:
    """Each typed call of a connection, with and without extra keywords, and each answer to it."""
    agent_link, client_link = memory_pair()
    frames: list[Any] = []

    def observe(event: StreamEvent) -> None:
        if event.direction is StreamDirection.OUTGOING:
            frames.append(event.message)

    agent = AgentSideConnection(answering_all(methods.AGENT, "agent", source), agent_link, observers=[observe])
    client = ClientSideConnection(answering_all(methods.CLIENT, "client", source), client_link, observers=[observe])
    caller: Any = client if side == "agent" else agent
    table = methods.AGENT if side == "agent" else methods.CLIENT
    called = [method for method in table if hasattr(caller, method.handler)]
    assert {m.wire for m in table if m.stable} <= {m.wire for m in called}, "every stable method has a typed call"
    async with asyncio.timeout(10), agent, client:
        for method in called:
            call = getattr(caller, method.handler)
            for extra in ({}, {"traceparent": "00-1", "nested": {"a": [None, 1]}}):
                frames.clear()
                answer = await call(**arguments_for(call, side, method, source.fork(())), **extra)
                request, *response = frames
                assert request["method"] == method.wire
                assert request["params"].get("_meta") == (extra or None)
                part = "notification" if method.is_notification else "params"
                name = extended().messages[side, method.wire, part]
                assert extended().errors(name, request["params"]) == []
                if method.stable:
                    assert stable().errors(name, request["params"]) == []
                if not method.is_notification:
                    result = extended().messages[side, method.wire, "result"]
                    assert extended().errors(result, response[0]["result"]) == []
                    assert isinstance(answer, method.result)
