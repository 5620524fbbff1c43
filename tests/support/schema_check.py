"""Holds what one side of a connection sends against the protocol's own schema.

The schema as published accepts a message with any `params`, because extensions may look like anything. Here the
definition that belongs to the method decides, and it is closed: a property that it does not name is an error, at any
depth, except in `_meta` and where the schema allows any JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

__all__ = ["FrameChecker", "Side", "check_frames"]

SCHEMA = Path(__file__).resolve().parents[2] / "schema" / "acp-v1.unstable.schema.json"
Json = dict[str, Any]
Side = Literal["agent", "client"]
OTHER: dict[Side, Side] = {"agent": "client", "client": "agent"}
UNKNOWN = "unevaluatedProperties"
COMBINERS = ("allOf", "anyOf", "oneOf")


class FrameChecker:
    """Checks the frames that `side` sends, in the order in which they pass."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._asked: dict[Any, str] = {}
        self.checked: set[str] = set()
        """The definitions that frames have been held against."""

    def received(self, frame: Json) -> None:
        """Remember what the other side asked: an answer does not say what it answers."""
        if "method" in frame and "id" in frame:
            self._asked[frame["id"]] = frame["method"]

    def sent(self, frame: Json) -> None:
        """Raises AssertionError that names the definition and the place where the frame does not fit it."""
        assert frame.get("jsonrpc") == "2.0", frame
        allowed = {"jsonrpc", "id", "method", "params"} if "method" in frame else {"jsonrpc", "id", "result", "error"}
        assert frame.keys() <= allowed, f"members that JSON-RPC does not know: {frame.keys() - allowed}"
        if "id" in frame:
            self._check("RequestId", frame["id"])
        if "method" in frame:
            kind = "Request" if "id" in frame else "Notification"
            self._check_method(frame["method"], OTHER[self._side], kind, frame.get("params", {}))
            return
        assert ("result" in frame) != ("error" in frame), f"either a result or an error: {frame}"
        assert frame["id"] in self._asked, f"an answer to nothing: {frame}"
        method = self._asked.pop(frame["id"])
        if "error" in frame:
            self._check("Error", frame["error"])
        else:
            self._check_method(method, self._side, "Response", frame["result"])

    def _check_method(self, method: str, side: str, kind: str, value: Any) -> None:
        if method.startswith("_"):
            return  # an extension: the schema has nothing to say
        name = definitions().get((method, side, kind)) or definitions().get((method, "protocol", kind))
        assert name is not None, f"{self._side} must not send {method} as a {kind.lower()}"
        self._check(name, value)

    def _check(self, name: str, value: Any) -> None:
        self.checked.add(name)
        # where a variant does not fit, its properties count as unknown too: that is the lesser news
        errors = sorted(validator(name).iter_errors(value), key=lambda error: error.validator == UNKNOWN)
        if errors:
            error = best_match(errors[:1])
            raise AssertionError(f"{name} at {error.json_path}: {error.message[:500]}")


def check_frames(side: Side, frames: Iterable[tuple[str, str]]) -> FrameChecker:
    """Check recorded frames, each given as its direction (`incoming`, `outgoing`) and its text.

    Of notifications that differ in digits only, one is checked: a flood would take minutes and show nothing new.
    """
    checker = FrameChecker(side)
    alike: set[str] = set()
    for direction, text in frames:
        if direction == "incoming":
            checker.received(json.loads(text))
            continue
        assert "\n" not in text, f"a frame is one line: {text[:200]!r}"
        frame, shape = json.loads(text), re.sub(r"\d+", "0", text)
        if "id" in frame or shape not in alike:
            alike.add(shape)
            checker.sent(frame)
    return checker


# -- the schema --


@cache
def schema() -> Json:
    """The schema with every object closed."""
    loaded: Json = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for definition in loaded["$defs"].values():
        _close_uses(definition, loaded["$defs"])
    return loaded


@cache
def definitions() -> dict[tuple[str, str, str], str]:
    """The definition for a method, the side that serves it, and the kind of message."""
    found: dict[tuple[str, str, str], str] = {}
    for name, definition in schema()["$defs"].items():
        if "x-method" in definition:
            kind = next(kind for kind in ("Request", "Response", "Notification") if name.endswith(kind))
            found[definition["x-method"], definition["x-side"], kind] = name
    return found


@cache
def validator(name: str) -> Draft202012Validator:
    use = {"$ref": f"#/$defs/{name}"}
    if _is_closable(use, schema()["$defs"]):
        use[UNKNOWN] = False
    return Draft202012Validator({"$defs": schema()["$defs"], **use})


def _close_uses(node: Json, defs: Json) -> None:
    """Close objects where they are used, as a property or an item: inside `allOf` a part must not close the whole."""
    values = [value for key in ("items", "additionalProperties") if isinstance(value := node.get(key), dict)]
    for use in (*node.get("properties", {}).values(), *values):
        if _is_closable(use, defs):
            use[UNKNOWN] = False
        _close_uses(use, defs)
    for combiner in COMBINERS:
        for part in node.get(combiner, ()):
            _close_uses(part, defs)


def _is_closable(node: Json, defs: Json) -> bool:
    """Whether a schema names properties; one that names none takes any JSON."""
    if "properties" in node:
        return True
    if "$ref" in node:
        return _is_closable(defs[node["$ref"].rpartition("/")[2]], defs)
    return any(_is_closable(part, defs) for combiner in COMBINERS for part in node.get(combiner, ()))
