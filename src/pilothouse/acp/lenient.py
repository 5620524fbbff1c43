"""Reading what peers really send.

The fast path decodes a message once, strictly, in C. Only when that fails does this module walk the value
again and mend it by two sets of rules: the schema's own (`x-deserialize-*`, carried by each generated class in
`__lenient__`) and the dialects seen in the wild. Every repair and every drop is reported; nothing is swallowed:
a variant that nobody knows becomes an `Open` value that keeps its raw object.

The same walk without a report is strict and serves values that come from Python code instead of the wire.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import Struct, StructMeta

from .errors import ValidationError
from .naming import camel, snake

__all__ = ["Choice", "Open", "Repair", "UnknownContent", "UnknownUpdate", "dec_hook", "decode", "strict"]

DEFAULT_ON_ERROR = 1
SKIP_INVALID_ITEMS = 2
DEFAULT_ON_NULL = 4

_PATH = re.compile(r" - at `(?P<path>[^`]*)`$")


class Repair(NamedTuple):
    """One departure from the schema that was mended or passed over while reading."""

    path: str
    action: Literal["mended", "defaulted", "dropped", "kept"]
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.action}: {self.reason}"


class Open:
    """A variant outside the schema, kept whole: its fields read as attributes and it encodes as it came."""

    __slots__ = ("raw",)
    tag_field: ClassVar[str] = "type"

    def __init__(self, raw: Mapping[str, Any] | None = None, **fields: Any) -> None:
        self.raw: dict[str, Any] = dict(raw or {})
        for name, value in fields.items():
            self.raw["_meta" if name == "field_meta" else camel(name)] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "raw":
            raise AttributeError(name)
        if name == "field_meta":
            return self.raw.get("_meta")
        for key in (name, camel(name)):
            if key in self.raw:
                return self.raw[key]
        raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {sorted(self.raw)}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Open) and self.raw == other.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return dict(self.raw)

    def model_dump_json(self, **_: Any) -> str:
        return msgspec.json.encode(self.raw).decode()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Open:
        return type(self)({**self.raw, **(update or {})})


class UnknownUpdate(Open):
    """A `session/update` whose `sessionUpdate` is unknown, or which lacks what its kind requires."""

    __slots__ = ()
    tag_field = "sessionUpdate"


class UnknownContent(Open):
    """A content block, or tool call content, of an unknown `type`."""

    __slots__ = ()


class Choice(type):
    """Metaclass of unions that JSON tells apart by more than one mandatory tag.

    msgspec resolves tagged unions itself; these need a look at the object: a tag that may be missing, a key
    that is present, or an open set of tags.
    """

    tag: str | None
    tags: Mapping[str, type]
    keys: Mapping[str, type]
    default: type | None

    def __new__(
        mcs,
        name: str,
        *,
        tag: str | None = None,
        tags: Mapping[str, type] | None = None,
        keys: Mapping[str, type] | None = None,
        default: type | None = None,
        module: str = __name__,
    ) -> Choice:
        cls = super().__new__(mcs, name, (), {"__slots__": (), "__module__": module})
        cls.tag, cls.tags, cls.keys, cls.default = tag, tags or {}, keys or {}, default
        return cls

    def __init__(cls, name: str, **_: Any) -> None:
        super().__init__(name, (), {})

    def members(cls) -> Iterable[type]:
        yield from cls.tags.values()
        yield from cls.keys.values()
        if cls.default is not None:
            yield cls.default

    def __instancecheck__(cls, instance: Any) -> bool:
        return any(isinstance(instance, member) for member in cls.members())

    def pick(cls, obj: Any) -> type:
        """The member that an object belongs to. Raises ValidationError when it is none."""
        if not isinstance(obj, dict):
            raise ValidationError(f"Expected `object`, got `{_json_name(obj)}`", "")
        if cls.tag is not None and cls.tag in obj:
            tag = obj[cls.tag]
            if not isinstance(tag, str):
                raise ValidationError(f"Expected `str`, got `{_json_name(tag)}` - at `$.{cls.tag}`", "")
            if tag in cls.tags:
                return cls.tags[tag]
        for key, member in cls.keys.items():
            if key in obj:
                return member
        if cls.default is not None and (cls.tag is None or cls.tag in obj or not issubclass(cls.default, Open)):
            return cls.default
        if cls.tag is not None and cls.tag not in obj:
            raise ValidationError(f"Object missing required field `{cls.tag}`", "")
        raise ValidationError(f"Expected one of the fields {sorted(cls.keys)}, got {sorted(obj)}", "")


def dec_hook(tp: Any, obj: Any) -> Any:
    """Give msgspec the member of a `Choice` for a decoded object."""
    if isinstance(tp, Choice):
        if tp.__instancecheck__(obj):
            return obj
        member: Any = tp.pick(obj)
        if isinstance(member, Choice):
            return dec_hook(member, obj)
        if issubclass(member, Open):
            return member(obj)
        return msgspec.convert(obj, member, dec_hook=dec_hook)
    if isinstance(tp, type) and issubclass(tp, Open):
        return tp(obj)
    raise NotImplementedError(f"no decoder for {tp!r}")


def decode(tp: Any, raw: bytes | msgspec.Raw | memoryview, path: str = "$") -> tuple[Any, list[Repair]]:
    """Decode JSON that the strict decoder refused. Raises ValidationError when it cannot be mended."""
    try:
        obj = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ValidationError(str(exc), path) from None
    return repair(tp, obj, path)


def repair(tp: Any, obj: Any, path: str = "$") -> tuple[Any, list[Repair]]:
    """Like `decode`, for a value that is JSON already decoded."""
    report: list[Repair] = []
    return _Walk(report).value(tp, obj, path), report


def strict(tp: Any, obj: Any, path: str = "$") -> Any:
    """Turn a Python value into `tp`, accepting field names in snake_case. Raises ValidationError."""
    return _Walk(None).value(tp, alias_keys(tp, obj), path)


class _Walk:
    def __init__(self, report: list[Repair] | None) -> None:
        self.report = report

    def note(self, path: str, action: Literal["mended", "defaulted", "dropped", "kept"], reason: str) -> None:
        assert self.report is not None
        self.report.append(Repair(path, action, reason))

    def value(self, tp: Any, obj: Any, path: str) -> Any:
        if type(obj) is float and obj.is_integer() and _wants_int(tp):
            obj = int(obj)  # JSON knows one kind of number: 3.0 is an integer
        try:
            return msgspec.convert(obj, tp, dec_hook=dec_hook)
        except (msgspec.ValidationError, ValidationError) as exc:
            failure = exc
        except RecursionError:
            raise ValidationError("nested too deeply", path) from None
        if get_origin(tp) is Annotated:
            tp = get_args(tp)[0]
        args = get_args(tp)
        origin = get_origin(tp)
        if isinstance(tp, Choice):
            return self.choice(tp, obj, path)
        if isinstance(tp, StructMeta):
            return self.struct(tp, obj, path)
        if origin is Union or origin is UnionType:
            return self.union(args, obj, path, failure)
        if origin is list and isinstance(obj, (list, tuple)):
            return [self.value(args[0], item, f"{path}[{i}]") for i, item in enumerate(obj)]
        if origin is dict and isinstance(obj, dict):
            return {key: self.value(args[1], item, f"{path}.{key}") for key, item in obj.items()}
        if origin is Literal and self.report is not None and isinstance(obj, str):
            self.note(path, "kept", f"{obj!r} is not one of {list(args)}")
            return obj
        raise _located(failure, path)

    def choice(self, tp: Choice, obj: Any, path: str) -> Any:
        try:
            member: Any = tp.pick(obj)
        except ValidationError as exc:
            raise _located(exc, path) from None
        return member(obj) if isinstance(member, type) and issubclass(member, Open) else self.value(member, obj, path)

    def union(self, args: tuple[Any, ...], obj: Any, path: str, failure: Exception) -> Any:
        structs = [a for a in args if isinstance(a, StructMeta)]
        if structs and isinstance(obj, dict):
            return self.tagged(structs, obj, path)
        for arg in args:
            if arg is type(None) or isinstance(arg, StructMeta):
                continue
            try:
                return self.value(arg, obj, path)
            except ValidationError as exc:
                failure = exc
        raise _located(failure, path)

    def tagged(self, structs: list[Any], obj: dict[str, Any], path: str) -> Any:
        tag_field = structs[0].__struct_config__.tag_field
        if tag_field is None:
            return self.struct(structs[0], obj, path)
        tags = {s.__struct_config__.tag: s for s in structs}
        if self.report is not None:
            obj = self.dialect("tagged:" + tag_field, obj, path, tags)
        tag = obj.get(tag_field)
        member = tags.get(tag) if isinstance(tag, str) else None
        unknown = UnknownUpdate if tag_field == "sessionUpdate" else UnknownContent
        if member is None:
            if self.report is None or not isinstance(tag, str) or tag_field not in ("sessionUpdate", "type"):
                raise ValidationError(f"Expected `{tag_field}` to be one of {sorted(tags)}, got {tag!r}", path)
            self.note(path, "kept", f"unknown {tag_field} {tag!r}")
            return unknown(obj)
        try:
            return self.struct(member, obj, path)
        except ValidationError as exc:
            # An update is never swallowed: what cannot be typed still reaches the handler with its raw object.
            if self.report is None or tag_field != "sessionUpdate":
                raise
            self.note(path, "kept", str(exc))
            return UnknownUpdate(obj)

    def struct(self, tp: Any, obj: Any, path: str) -> Any:
        if not isinstance(obj, dict):
            raise ValidationError(f"Expected `object`, got `{_json_name(obj)}`", path)
        if self.report is not None:
            for cls in tp.__mro__:
                obj = self.dialect(cls.__name__, obj, path, {})
        config = tp.__struct_config__
        if config.tag_field is not None and obj.get(config.tag_field, config.tag) != config.tag:
            got = obj[config.tag_field]
            raise ValidationError(f"Expected `{config.tag_field}` {config.tag!r}, got {got!r}", path)
        values: dict[str, Any] = {}
        for name, key, kind, required in fields_of(tp):
            if key not in obj:
                if required:
                    raise ValidationError(f"Object missing required field `{key}`", path)
                continue
            flags = tp.__lenient__.get(name, 0) if self.report is not None else 0
            try:
                values[name] = self.field(kind, obj[key], f"{path}.{key}", flags)
            except _UseDefault as exc:
                if required:
                    if get_origin(plain_type(kind)) is not list:
                        raise ValidationError(exc.reason, f"{path}.{key}") from None
                    values[name] = []
                self.note(f"{path}.{key}", "defaulted", exc.reason)
        return StructMeta.__call__(tp, **values)

    def field(self, tp: Any, obj: Any, path: str, flags: int) -> Any:
        if obj is None and flags & DEFAULT_ON_NULL:
            raise _UseDefault("null")
        if isinstance(obj, list) and flags & SKIP_INVALID_ITEMS:
            return self.items(_item_type(tp), obj, path)
        mark = len(self.report) if self.report is not None else 0
        try:
            if flags & DEFAULT_ON_ERROR and get_origin(plain_type(tp)) is Literal:
                return msgspec.convert(obj, tp)
            return self.value(tp, obj, path)
        except (ValidationError, msgspec.ValidationError) as exc:
            failure = _located(exc, path)
            if not flags & DEFAULT_ON_ERROR:
                raise failure from None
            if self.report is not None:
                del self.report[mark:]
            raise _UseDefault(failure.reason) from None

    def items(self, tp: Any, obj: list[Any], path: str) -> list[Any]:
        """The items that fit; the others are dropped."""
        assert self.report is not None
        items = []
        for i, item in enumerate(obj):
            mark = len(self.report)
            try:
                if get_origin(tp) is Literal:
                    items.append(msgspec.convert(item, tp))
                else:
                    items.append(self.value(tp, item, f"{path}[{i}]"))
            except (ValidationError, msgspec.ValidationError) as exc:
                del self.report[mark:]
                self.note(f"{path}[{i}]", "dropped", _located(exc, "").reason)
        return items

    def dialect(self, name: str, obj: dict[str, Any], path: str, tags: Mapping[str, Any]) -> dict[str, Any]:
        rule = DIALECTS.get(name)
        if rule is None:
            return obj
        changed, reason = rule(obj, tags)
        if reason:
            self.note(path, "mended", reason)
        return changed


class _UseDefault(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


# -- dialects seen in the wild ------------------------------------------------------------------------------------
# Each takes the object and answers the object to go on with and, when it changed something, what it changed.

_KINDS = {"write": "edit", "command": "execute", "task": "think"}
_BLOCKS = frozenset({"text", "image", "audio", "resource_link", "resource"})
Rule = Callable[[dict[str, Any], Mapping[str, Any]], tuple[dict[str, Any], str]]


def _tool_kind(obj: dict[str, Any], _: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    kind = obj.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        return obj, ""
    return {**obj, "kind": _KINDS[kind]}, f"kind {kind!r} read as {_KINDS[kind]!r}"


def _bare_tool_content(obj: dict[str, Any], tags: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    kind = obj.get("type")
    if "diff" in tags and isinstance(kind, str) and kind in _BLOCKS:
        return {"type": "content", "content": obj}, f"bare {kind} block wrapped as tool call content"
    return obj, ""


def _media_type(obj: dict[str, Any], _: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    if "mimeType" in obj or "mediaType" not in obj:
        return obj, ""
    return {**obj, "mimeType": obj["mediaType"]}, "`mediaType` read as `mimeType`"


def _plan_entry(obj: dict[str, Any], _: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    missing = {k: v for k, v in (("priority", "medium"), ("status", "pending")) if obj.get(k) is None}
    return (
        ({**missing, **{k: v for k, v in obj.items() if v is not None}}, f"{missing} assumed") if missing else (obj, "")
    )


def _protocol_version(obj: dict[str, Any], _: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    version = obj.get("protocolVersion")
    if not isinstance(version, str):
        return obj, ""
    number = int(version) if version.isascii() and version.isdigit() and len(version) < 5 else 1
    return {**obj, "protocolVersion": number}, f"protocolVersion {version!r} read as {number}"


DIALECTS: dict[str, Rule] = {
    "ToolCall": _tool_kind,
    "ToolCallUpdate": _tool_kind,
    "tagged:type": _bare_tool_content,
    "ImageContent": _media_type,
    "AudioContent": _media_type,
    "PlanEntry": _plan_entry,
    "InitializeRequest": _protocol_version,
    "InitializeResponse": _protocol_version,
}


# -- types --------------------------------------------------------------------------------------------------------


@cache
def fields_of(tp: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """(name, wire name, type, required) of each field of a struct."""
    return tuple((f.name, f.encode_name, f.type, f.required) for f in msgspec.structs.fields(tp))


def plain_type(tp: Any) -> Any:
    """`T` of `T | None` and of `Annotated[T, …]`."""
    if get_origin(tp) in (Union, UnionType):
        rest = [a for a in get_args(tp) if a is not type(None)]
        return plain_type(rest[0]) if len(rest) == 1 else tp
    return get_args(tp)[0] if get_origin(tp) is Annotated else tp


def _wants_int(tp: Any) -> bool:
    if get_origin(tp) in (Union, UnionType):
        return any(_wants_int(arg) for arg in get_args(tp)) and float not in get_args(tp)
    return tp is int or (get_origin(tp) is Annotated and get_args(tp)[0] is int)


def _item_type(tp: Any) -> Any:
    return get_args(plain_type(tp))[0]


def alias_keys(tp: Any, obj: Any) -> Any:
    """Rename snake_case keys of plain dicts to the wire names of the struct they stand for."""
    if isinstance(obj, Struct):
        return obj
    plain = plain_type(tp)
    if isinstance(obj, (list, tuple)) and get_origin(plain) is list:
        return [alias_keys(get_args(plain)[0], item) for item in obj]
    if not isinstance(obj, dict):
        return obj
    if get_origin(plain) is dict:
        return {key: alias_keys(get_args(plain)[1], item) for key, item in obj.items()}
    member = _member(plain, obj)
    if member is None:
        return obj
    known = {name: (key, kind) for name, key, kind, _ in fields_of(member)}
    known.update({key: (key, kind) for _, key, kind, _ in fields_of(member)})
    tag_field = member.__struct_config__.tag_field
    renamed: dict[str, Any] = {}
    for key, item in obj.items():
        if key in known:
            alias, kind = known[key]
            renamed[alias] = alias_keys(kind, item)
        elif tag_field is not None and camel(key) == tag_field:
            renamed[tag_field] = item
        else:
            renamed[key] = item
    return renamed


def _member(tp: Any, obj: dict[str, Any]) -> Any:
    if isinstance(tp, Choice):
        try:
            return _member(tp.pick({**{camel(k): v for k, v in obj.items()}, **obj}), obj)
        except ValidationError:
            return None
    if isinstance(tp, StructMeta):
        return tp
    for arg in get_args(tp):
        if isinstance(arg, StructMeta):
            config = arg.__struct_config__
            if config.tag_field is None:
                return arg
            if config.tag in (obj.get(config.tag_field), obj.get(snake(config.tag_field))):
                return arg
    return None


def _located(exc: Exception, path: str) -> ValidationError:
    """The failure with the full path: msgspec and inner walks count from their own root."""
    if isinstance(exc, ValidationError):
        if exc.path:
            return exc
        text = exc.reason
    else:
        text = str(exc)
    suffix = ""
    while match := _PATH.search(text):  # a hook's own path stands before that of the decoder that called it
        text, suffix = text[: match.start()], match["path"].lstrip("$") + suffix
    return ValidationError(text, path + suffix)


def _json_name(obj: Any) -> str:
    names = {dict: "object", list: "array", tuple: "array", str: "str", bool: "bool", int: "int", float: "float"}
    return "null" if obj is None else names.get(type(obj), type(obj).__name__)
