"""JSON made from the vendored schema: the smallest, the fullest and random instances of any definition.

A `Source` decides wherever the schema leaves a choice; `Schema.make` follows the schema and asks it. The same walk
serves fixed samples (`Minimal`, `Full`), seeded ones (`Seeded`) and hypothesis (`instances`, `messages`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2] / "schema"
Json = dict[str, Any]
UNKNOWN = "x-future"
"""The name of the properties that `extra` sources add: no version of the schema has it."""
UNIONS = ("anyOf", "oneOf")
RANGES = {
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
FREE = frozenset({"_meta", "rawInput", "rawOutput", "data", "params", "result"})
"""Properties that hold any JSON; nothing in them may change."""


# -- who decides --------------------------------------------------------------------------------------------------


class Source:
    """Decides what the schema leaves open. `path` fixes the first choices between variants."""

    extra = False

    def __init__(self, path: tuple[int, ...] = ()) -> None:
        self._path = list(path)

    def variant(self, options: list[Json]) -> int:
        if self._path:
            return self._path.pop(0)
        return self.pick_variant(options)

    def pick_variant(self, options: list[Json]) -> int:
        return next((i for i, option in enumerate(options) if option.get("type") != "null"), 0)

    def include(self) -> bool:
        """Whether an optional property is there."""
        return False

    def null(self) -> bool:
        """Whether null is taken where the schema allows it."""
        return False

    def items(self, variants: int) -> list[tuple[int, ...]]:
        """The items of an array, each by the variant it takes."""
        return []

    def text(self) -> str:
        return "s"

    def integer(self, low: int, high: int) -> int:
        return max(low, min(1, high))

    def number(self) -> float:
        return 0.5

    def flag(self) -> bool:
        return True

    def anything(self) -> Any:
        return {}

    def fork(self, path: tuple[int, ...]) -> Source:
        return type(self)(path)


class Minimal(Source):
    """Only what is required, and little of that."""


class Full(Source):
    """Every property, and in every list one item of each variant."""

    def include(self) -> bool:
        return True

    def items(self, variants: int) -> list[tuple[int, ...]]:
        return [(i,) for i in range(variants)] if variants > 1 else [(), ()]

    def text(self) -> str:
        return 'häß\u2028\n\t"\\ 漢字 🛳'

    def anything(self) -> Any:
        return {"null": None, "list": [1, -2.5, "x", None, True], "deep": {"": {}, "a b": []}}


class Null(Full):
    """Every property, null wherever null is allowed."""

    def null(self) -> bool:
        return True


class Seeded(Source):
    """Chosen by a random generator; the same seed gives the same instance."""

    TEXTS = ("", "s", "two words", "\u0000\u001f", "é\u2028\u2029", "🛳️", '"\\/', "null", "x" * 300, "../a\r\nb")
    VALUES = (None, True, 0, -1, 1.5, 2**53 + 1, "", "text", [], [None, [1]], {}, {"k": {"": None}})

    def __init__(self, path: tuple[int, ...] = (), rng: random.Random | None = None, *, extra: bool = False) -> None:
        super().__init__(path)
        self.rng = rng or random.Random(0)
        self.extra = extra

    def pick_variant(self, options: list[Json]) -> int:
        return self.rng.randrange(len(options))

    def include(self) -> bool:
        return self.rng.random() < 0.6

    def null(self) -> bool:
        return self.rng.random() < 0.3

    def items(self, variants: int) -> list[tuple[int, ...]]:
        return [()] * self.rng.randrange(4)

    def text(self) -> str:
        return self.rng.choice(self.TEXTS)

    def integer(self, low: int, high: int) -> int:
        return self.rng.choice((low, high, self.rng.randint(low, high)))

    def number(self) -> float:
        return self.rng.choice((0, -0.0, 1, 1.5, -2.25e-7, 1e300))

    def flag(self) -> bool:
        return self.rng.random() < 0.5

    def anything(self) -> Any:
        return self.rng.choice(self.VALUES)

    def fork(self, path: tuple[int, ...]) -> Source:
        return type(self)(path, self.rng, extra=self.extra)


class Drawn(Source):
    """Chosen by hypothesis."""

    LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=6)
    VALUES = st.recursive(
        LEAVES | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
        max_leaves=4,
    )

    def __init__(self, draw: Callable[..., Any], path: tuple[int, ...] = (), *, extra: bool = False) -> None:
        super().__init__(path)
        self.draw = draw
        self.extra = extra

    def pick_variant(self, options: list[Json]) -> int:
        return int(self.draw(st.integers(0, len(options) - 1)))

    def include(self) -> bool:
        return bool(self.draw(st.booleans()))

    def null(self) -> bool:
        return self.draw(st.integers(0, 3)) == 3

    def items(self, variants: int) -> list[tuple[int, ...]]:
        return [()] * self.draw(st.integers(0, 2))

    def text(self) -> str:
        return str(self.draw(st.text(max_size=8)))

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def number(self) -> float:
        return float(self.draw(st.floats(allow_nan=False, allow_infinity=False)))

    def flag(self) -> bool:
        return bool(self.draw(st.booleans()))

    def anything(self) -> Any:
        return self.draw(self.VALUES)

    def fork(self, path: tuple[int, ...]) -> Source:
        return type(self)(self.draw, path, extra=self.extra)


class _Recorder(Source):
    """Follows a path and notes how many variants the choice after it offers."""

    def __init__(self, path: tuple[int, ...] = ()) -> None:
        super().__init__(path)
        self.next: int | None = None

    def pick_variant(self, options: list[Json]) -> int:
        if self.next is None:
            self.next = len(options)
        return 0


# -- following the schema -----------------------------------------------------------------------------------------


class Schema:
    """One vendored schema file."""

    def __init__(self, *names: str) -> None:
        self.defs: Json = {}
        for name in names:
            document = json.loads((ROOT / name).read_text())
            self.defs |= document["$defs"]
            for owner, properties in document.get("fields", {}).items():
                self.defs[owner]["properties"] |= properties
        self._validators: dict[str, Draft202012Validator] = {}

    # -- checking --

    def validator(self, name: str) -> Draft202012Validator:
        if name not in self._validators:
            self._validators[name] = self.node_validator({"$ref": f"#/$defs/{name}"})
        return self._validators[name]

    def node_validator(self, node: Json) -> Draft202012Validator:
        return Draft202012Validator({**node, "$defs": self.defs})

    def errors(self, name: str, value: Any) -> list[str]:
        """What is wrong with an instance of a definition."""
        return [f"{error.json_path}: {error.message}" for error in self.validator(name).iter_errors(value)]

    # -- making --

    def make(self, name: str, source: Source) -> Any:
        return self._value({"$ref": f"#/$defs/{name}"}, source)

    def paths(self, name: str) -> list[tuple[int, ...]]:
        """Each way through the unions that a definition itself is made of."""
        return self._paths({"$ref": f"#/$defs/{name}"})

    def _paths(self, node: Json) -> list[tuple[int, ...]]:
        done: list[tuple[int, ...]] = []
        todo: list[tuple[int, ...]] = [()]
        while todo:
            path = todo.pop(0)
            recorder = _Recorder(path)
            self._flat(node, recorder)
            if recorder.next is None:
                done.append(path)
            else:
                todo += [(*path, i) for i in range(recorder.next)]
        return done

    def _flat(self, node: Json, source: Source) -> Json:
        """A node with its references, `allOf` and chosen variants merged into it."""
        flat = {k: v for k, v in node.items() if k not in ("$ref", "allOf", *UNIONS)}
        flat["properties"] = dict(flat.get("properties", {}))
        parts = [self.defs[node["$ref"].rsplit("/", 1)[1]]] if "$ref" in node else []
        parts += node.get("allOf", ())
        for union in UNIONS:
            if union in node:
                parts.append(node[union][source.variant(node[union])])
        for part in parts:
            other = self._flat(part, source)
            properties = {**flat["properties"], **other.pop("properties")}
            required = [*flat.get("required", ()), *other.pop("required", ())]
            flat = {**flat, **other, "properties": properties, "required": required}
        return flat

    def _value(self, node: Json, source: Source) -> Any:
        flat = self._flat(node, source)
        if "const" in flat:
            return flat["const"]
        kind = flat.get("type")
        if isinstance(kind, list):
            rest = [k for k in kind if k != "null"]
            kind = None if "null" in kind and source.null() else rest[0]
            if kind is None:
                return None
        if kind == "object" or flat["properties"]:
            return self._object(flat, source)
        if kind == "array":
            variants = len(self._paths(flat["items"]))
            return [self._value(flat["items"], source.fork(path)) for path in source.items(variants)]
        if kind == "integer":
            low, high = RANGES.get(flat.get("format", ""), (-(2**53), 2**53))
            return source.integer(max(low, flat.get("minimum", low)), min(high, flat.get("maximum", high)))
        if kind == "string":
            text = "https://example.com/a?b=c" if flat.get("format") == "uri" else source.text()
            return text if len(text) >= flat.get("minLength", 0) else "x" * flat["minLength"]
        makers = {"number": source.number, "boolean": source.flag, "null": lambda: None, None: source.anything}
        return makers[kind]()

    def _object(self, flat: Json, source: Source) -> Json:
        required = set(flat.get("required", ()))
        reserved = set(_consts(flat.get("not", {})))
        made: Json = {}
        for key, prop in flat["properties"].items():
            if key not in required and not source.include():
                continue
            if not (key in required and reserved) and _nullable(prop) and source.null():
                made[key] = None
                continue
            value = self._value(prop, source.fork(()))
            # an open variant is any tag but those the schema knows
            made[key] = f"_{value}" if key in reserved else value
        values = flat.get("additionalProperties")
        if isinstance(values, dict):
            for i, path in enumerate(source.items(len(self._paths(values)))):
                made[f"key {i}"] = self._value(values, source.fork(path))
        elif values is True and not flat["properties"]:
            free = source.anything()
            made |= free if isinstance(free, dict) else {"free": free}
        elif source.extra and flat["properties"]:
            made[UNKNOWN] = source.anything()
        return made

    # -- methods --

    @cached_property
    def messages(self) -> dict[tuple[str, str, str], str]:
        """(side that serves it, method, "params" or "result" or "notification") to the definition."""
        found: dict[tuple[str, str, str], str] = {}
        for name, node in self.defs.items():
            if "x-method" in node:
                part = "params"
                if name.endswith("Response"):
                    part = "result"
                elif name.endswith("Notification"):
                    part = "notification"
                found[node["x-side"], node["x-method"], part] = name
        return found

    @cached_property
    def defaults(self) -> dict[str, list[Any]]:
        """The defaults that properties of a name have anywhere."""
        found: dict[str, list[Any]] = {}
        for _, key, prop, _ in self.properties():
            if "default" in prop:
                found.setdefault(key, []).append(prop["default"])
        return found

    def properties(self) -> Iterator[tuple[str, str, Json, bool]]:
        """(definition, property, its node, whether it is required) of everything, variants included."""
        for name, node in self.defs.items():
            stack = [node]
            while stack:
                part = stack.pop()
                for key, prop in part.get("properties", {}).items():
                    yield name, key, prop, key in part.get("required", ())
                stack += [branch for union in (*UNIONS, "allOf") for branch in part.get(union, ())]

    def lost(self, sent: Any, kept: Any, path: str = "$") -> list[str]:
        """How `kept` differs from `sent`, apart from nulls and defaults, which go without saying."""
        if isinstance(sent, dict) and isinstance(kept, dict):
            found: list[str] = []
            for key, value in sent.items():
                where = f"{path}.{key}"
                if key not in kept:
                    if not self._goes_without_saying(key, value):
                        found.append(f"{where} is gone: {value!r}")
                elif key in FREE:
                    found += [] if _same(value, kept[key]) else [f"{where}: {value!r} became {kept[key]!r}"]
                else:
                    found += self.lost(value, kept[key], where)
            added = [key for key in kept if key not in sent and not self._goes_without_saying(key, kept[key])]
            return found + [f"{path}.{key} was made up: {kept[key]!r}" for key in added]
        if isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
            pairs = enumerate(zip(sent, kept, strict=True))
            return [line for i, (a, b) in pairs for line in self.lost(a, b, f"{path}[{i}]")]
        return [] if _same(sent, kept) else [f"{path}: {sent!r} became {kept!r}"]

    def _goes_without_saying(self, key: str, value: Any) -> bool:
        if value is None or value in self.defaults.get(key, ()):
            return True
        if isinstance(value, dict) and {} in [_emptied(d) for d in self.defaults.get(key, ())]:
            return all(self._goes_without_saying(inner, item) for inner, item in value.items())
        return False


def _emptied(value: Any) -> Any:
    return {} if isinstance(value, dict) else value


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON values: true is not 1, but 1 is 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _consts(node: Json) -> Iterator[str]:
    """The properties whose known values a `not` excludes."""
    for branch in node.get("anyOf", ()):
        for key, prop in branch.get("properties", {}).items():
            if "const" in prop:
                yield key


def _nullable(node: Json) -> bool:
    kind = node.get("type")
    return (isinstance(kind, list) and "null" in kind) or any(b.get("type") == "null" for b in node.get("anyOf", ()))


def without_unknown(value: Any) -> Any:
    """A value made with `extra`, without what that added."""
    if isinstance(value, dict):
        return {key: without_unknown(item) for key, item in value.items() if key != UNKNOWN}
    return [without_unknown(item) for item in value] if isinstance(value, list) else value


@cache
def stable() -> Schema:
    return Schema("acp-v1.schema.json")


@cache
def unstable() -> Schema:
    return Schema("acp-v1.unstable.schema.json")


@cache
def extended() -> Schema:
    """The unstable schema with the types that only older peers still send."""
    return Schema("acp-v1.unstable.schema.json", "legacy.json")


@st.composite
def instances(draw: Callable[..., Any], schema: Schema, name: str, *, extra: bool = False) -> Any:
    """Random instances of a definition; with `extra` their objects also carry a property nobody knows."""
    return schema.make(name, Drawn(draw, extra=extra))
