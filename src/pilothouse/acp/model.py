"""The base of every schema type: a msgspec struct that can be used as people use pydantic models.

Decoding from the wire never passes through here: msgspec builds the objects in C. A constructor call does, and
it checks its arguments, because an agent author's slip should fail where it is made and not at the peer.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache, partial
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, get_args, get_origin

import msgspec
from msgspec import Struct, StructMeta, field

from . import lenient
from .errors import ValidationError
from .naming import camel, snake

__all__ = ["NULL", "Model", "encode", "to_wire"]

NULL: Any = msgspec.Raw(b"null")
"""Assign it to an optional field to send an explicit `null` ("clear this"); `None` leaves the field out."""


def _enc_hook(obj: Any) -> Any:
    if isinstance(obj, lenient.Open):
        return obj.raw
    dump = getattr(obj, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True)
    if isinstance(obj, os.PathLike):
        return os.fspath(obj)
    raise TypeError(f"cannot encode {type(obj).__name__} as JSON: {obj!r:.200}")


_encoder = msgspec.json.Encoder(enc_hook=_enc_hook)
encode: Callable[[Any], bytes] = _encoder.encode
"""Encode a model, or anything made of JSON values and models, as the bytes that go on the wire."""


def to_wire(obj: Any) -> Any:
    """The same as plain dicts and lists."""
    return msgspec.to_builtins(obj, enc_hook=_enc_hook, str_keys=True)


class ModelMeta(StructMeta):
    """Makes discriminators readable and lets constructors check what they are given."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> ModelMeta:
        cls = super().__new__(mcs, name, bases, namespace, **config)
        struct_config = cls.__struct_config__
        if struct_config.tag_field is not None:
            setattr(cls, snake(struct_config.tag_field), struct_config.tag)
        for field_name, key in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
            # Wire names read too, as they do in the SDK: `update.toolCallId`. (A `__getattr__` would slow every read.)
            if key != field_name and key.isidentifier() and key not in namespace:
                setattr(cls, key, property(attrgetter(field_name)))
        return cls

    @property
    def model_fields(cls) -> dict[str, FieldInfo]:
        """The fields of a model by name."""
        defaults = _defaults(cls)
        return {
            name: FieldInfo(tp, key, defaults[name]() if name in defaults else None, name not in defaults)
            for name, key, tp, _ in lenient.fields_of(cls)
        }

    if not TYPE_CHECKING:  # a checker sees the plain dataclass-like constructor

        def __call__(cls, *root: Any, **kwargs: Any) -> Any:
            checks = _checks(cls)
            if root or ("root" in kwargs and "root" not in checks):
                # the SDK wraps some types in a root model; ours are the type itself
                if len(root) + len(kwargs) > 1:
                    raise TypeError(f"{cls.__name__} takes its fields as keyword arguments")
                return lenient.strict(cls, root[0] if root else kwargs["root"], cls.__name__)
            values: dict[str, Any] = {}
            for name, value in kwargs.items():
                check = checks.get(name) or _foreign(cls, name)
                if check is not None:
                    check(values, value)
            try:
                instance = super().__call__(**values)
            except TypeError as exc:
                raise ValidationError(f"{cls.__name__}: {exc}", "") from None
            instance.__dict__["given"] = frozenset(values)
            return instance


class FieldInfo(NamedTuple):
    """What `Model.model_fields` tells of a field."""

    annotation: Any
    alias: str
    default: Any
    required: bool

    def is_required(self) -> bool:
        return self.required


class Model(Struct, metaclass=ModelMeta, kw_only=True, omit_defaults=True, rename=camel, dict=True):
    """Base class of the schema types."""

    __lenient__: ClassVar[Mapping[str, int]] = {}

    # -- the verbs that users of pydantic models know --

    @classmethod
    def model_validate(cls, obj: Any, **_: Any) -> Self:
        """Read a dict by the schema's lenient rules. Raises ValidationError naming the field.

        What a connection would keep although it does not know it, an unknown variant or word, is an error here.
        """
        if isinstance(obj, cls):
            return obj
        wire = lenient.alias_keys(cls, obj)
        value: Self
        value, repairs = lenient.repair(cls, wire, "$")
        for item in repairs:
            if item.action == "kept":
                raise ValidationError(item.reason, item.path)
        _remember(value, wire)
        return value

    @classmethod
    def model_validate_json(cls, data: str | bytes | bytearray, **_: Any) -> Self:
        try:
            wire = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise ValidationError(str(exc)) from None
        return cls.model_validate(wire)

    @classmethod
    def model_construct(cls, **values: Any) -> Self:
        """Build an instance from trusted values without checking them."""
        tag_field = cls.__struct_config__.tag_field
        if tag_field is not None:
            values.pop(snake(tag_field), None)
        instance: Self = StructMeta.__call__(cls, **values)
        return instance

    def model_dump(
        self,
        *,
        mode: str = "python",
        by_alias: bool = False,
        exclude_none: bool = False,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        include: Any = None,
        exclude: Any = None,
        **_: Any,
    ) -> dict[str, Any]:
        """The model as nested dicts.

        `exclude_unset` leaves out what was not given to the constructor or to `model_validate`; what came off the
        wire does not remember, and there a field counts as unset when it equals its default. `include` and
        `exclude` are sets of names, or dicts of them for what is nested.
        """
        dump = _Dump(mode == "json", by_alias, exclude_none, exclude_unset, exclude_defaults)
        return dump.struct(self, include, exclude)

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        data = encode(self.model_dump(mode="json", **options))
        return (msgspec.json.format(data, indent=indent) if indent else data).decode()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced; like its namesake it does not check the new values."""
        copy = deepcopy(self) if deep else msgspec.structs.replace(self)
        copy.__dict__["given"] = frozenset({*self.model_fields_set, *(update or ())})
        for name, value in (update or {}).items():
            setattr(copy, name, value)
        return copy

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Name and value of each field, for `dict(model)`."""
        return ((name, getattr(self, name)) for name in self.__struct_fields__)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Lets models be fields of pydantic models, as the SDK's are. Called by pydantic, so it is there to import."""
        core_schema = import_module("pydantic_core").core_schema
        serialize = core_schema.plain_serializer_function_ser_schema(
            lambda model: model.model_dump(mode="json", by_alias=True, exclude_none=True)
        )
        return core_schema.no_info_plain_validator_function(cls.model_validate, serialization=serialize)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__struct_fields__:
            raise ValidationError(f"{type(self).__name__} has no field {name!r}", "")
        super().__setattr__(name, value)

    @property
    def root(self) -> Self:
        """What the SDK's root models wrap; here nothing is wrapped."""
        return self

    @property
    def model_fields_set(self) -> set[str]:
        """The fields that were given, or whose value differs from their default."""
        return {name for name in self.__struct_fields__ if not _is_unset(self, name)}


class _Dump:
    def __init__(
        self, json: bool, by_alias: bool, exclude_none: bool, exclude_unset: bool, exclude_defaults: bool
    ) -> None:
        self.json = json
        self.by_alias = by_alias
        self.exclude_none = exclude_none
        self.exclude_unset = exclude_unset
        self.exclude_defaults = exclude_defaults

    def struct(self, obj: Struct, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        cls = type(obj)
        config = cls.__struct_config__
        dumped: dict[str, Any] = {}
        if config.tag_field is not None:
            name = snake(config.tag_field)
            if _is_wanted(name, include, exclude):
                dumped[config.tag_field if self.by_alias else name] = config.tag
        for name, key in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
            value = getattr(obj, name)
            if not _is_wanted(name, include, exclude) or self.is_left_out(obj, name, value):
                continue
            inner = self.value(value, _inner(include, name), _inner(exclude, name))
            dumped[key if self.by_alias else name] = inner
        return dumped

    def is_left_out(self, obj: Struct, name: str, value: Any) -> bool:
        if value is None and self.exclude_none:
            return True
        return (self.exclude_unset and _is_unset(obj, name)) or (self.exclude_defaults and _is_default(obj, name))

    def value(self, value: Any, include: Any = None, exclude: Any = None) -> Any:
        if isinstance(value, Struct):
            return self.struct(value, include, exclude)
        if isinstance(value, (list, tuple)):
            return [
                self.value(item, _inner(include, i), _inner(exclude, i))
                for i, item in enumerate(value)
                if _is_wanted(i, include, exclude)
            ]
        if isinstance(value, dict):
            return {
                key: self.value(item, _inner(include, key), _inner(exclude, key))
                for key, item in value.items()
                if _is_wanted(key, include, exclude)
            }
        if isinstance(value, lenient.Open):
            return self.value(value.raw)
        if isinstance(value, msgspec.Raw):
            return msgspec.json.decode(value)
        if self.json and not isinstance(value, (str, int, float, bool, type(None))):
            return to_wire(value)
        return value


def _is_wanted(key: Any, include: Any, exclude: Any) -> bool:
    """`include` and `exclude` as pydantic reads them: a dict tells what of a part, `True` or `...` all of it."""
    if include is not None and key not in include and "__all__" not in include:
        return False
    if exclude is None or key not in exclude:
        return not (isinstance(exclude, Mapping) and exclude.get("__all__") in (True, ...)) if exclude else True
    return isinstance(exclude, Mapping) and exclude[key] not in (True, ...)


def _inner(selection: Any, key: Any) -> Any:
    if not isinstance(selection, Mapping):
        return None
    inner = selection.get(key, selection.get("__all__"))
    return None if inner in (True, ...) else inner


def _remember(value: Any, wire: Any) -> None:
    """Note which fields of a validated model were present."""
    if isinstance(value, Model) and isinstance(wire, dict):
        present = [(name, key) for name, key, _, _ in lenient.fields_of(type(value)) if key in wire]
        value.__dict__["given"] = frozenset(name for name, _ in present)
        for name, key in present:
            _remember(getattr(value, name), wire[key])
    elif isinstance(value, list) and isinstance(wire, list) and len(value) == len(wire):
        for item, source in zip(value, wire, strict=True):
            _remember(item, source)
    elif isinstance(value, dict) and isinstance(wire, dict):
        for key, item in value.items():
            _remember(item, wire.get(key))


def _is_default(obj: Struct, name: str) -> bool:
    default = _defaults(type(obj)).get(name)
    return default is not None and bool(default() == getattr(obj, name))


def _is_unset(obj: Struct, name: str) -> bool:
    given = getattr(obj, "__dict__", {}).get("given", ())
    return name not in given and _is_default(obj, name)


@cache
def _defaults(cls: type[Struct]) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {}
    for info in msgspec.structs.fields(cls):
        if info.default is not msgspec.NODEFAULT:
            found[info.name] = partial(_itself, info.default)
        elif info.default_factory is not msgspec.NODEFAULT and info.default_factory is not empty_list:
            found[info.name] = info.default_factory
    return found


def _itself(value: Any) -> Any:
    return value


# -- constructor checks -------------------------------------------------------------------------------------------

Check = Callable[[dict[str, Any], Any], None]


@cache
def _checks(cls: Any) -> dict[str, Check]:
    checks: dict[str, Check] = {}
    for name, key, tp, required in lenient.fields_of(cls):
        check = _check(cls.__name__, name, tp, required)
        checks[name] = checks[key] = check
    config = cls.__struct_config__
    if config.tag_field is not None:
        check = _tag_check(cls.__name__, config.tag_field, config.tag)
        checks[config.tag_field] = checks[snake(config.tag_field)] = check
    return checks


def _check(owner: str, name: str, tp: Any, required: bool) -> Check:
    nullable = type(None) in get_args(tp)
    plain = lenient.plain_type(tp)
    if plain is Any:
        return lambda values, value: values.__setitem__(name, value)
    literals = frozenset(get_args(plain)) if get_origin(plain) is Literal else frozenset()
    items = get_args(plain)[0] if get_origin(plain) is list else None
    classes = _classes(items if items is not None else plain)
    text = plain is str

    def check(values: dict[str, Any], value: Any) -> None:
        if value is None:
            if nullable:
                values[name] = None
            elif required:
                raise ValidationError("Expected a value, got None", f"{owner}.{name}")
            return  # an optional field that may not be null keeps its default
        if literals:
            if isinstance(value, str) and value in literals:
                values[name] = value
                return
            if isinstance(value, str):
                raise ValidationError(f"Expected one of {sorted(literals)}, got {value!r}", f"{owner}.{name}")
        elif items is not None:
            if isinstance(value, list) and classes and all(isinstance(item, classes) for item in value):
                values[name] = value
                return
        elif classes and isinstance(value, classes):
            values[name] = value
            return
        if value is NULL:
            values[name] = value
            return
        if items is not None and isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict, list)):
            value = list(value)
        if text and not isinstance(value, (bool, int, float, bytes, list, tuple, dict)):
            # paths, URLs and string enums stand for their text
            text_value = getattr(value, "value", None)
            values[name] = text_value if isinstance(text_value, str) else str(value)
            return
        values[name] = lenient.strict(tp, value, f"{owner}.{name}")

    return check


def _classes(tp: Any) -> tuple[type, ...]:
    """The classes whose instances fit as they are; empty where only a conversion can tell."""
    if isinstance(tp, lenient.Choice):
        return (tp,)
    if tp is bool or tp is str:
        return (tp,)
    if get_origin(tp) is dict and get_args(tp)[1] is Any:
        return (dict,)
    if isinstance(tp, StructMeta):
        return (tp,)
    members = get_args(tp)
    if members and all(isinstance(member, StructMeta) for member in members):
        return (*members, lenient.Open)
    return ()


def _tag_check(owner: str, tag_field: str, tag: Any) -> Check:
    def check(values: dict[str, Any], value: Any) -> None:
        if value != tag:
            raise ValidationError(f"Expected {tag!r}, got {value!r}", f"{owner}.{tag_field}")

    return check


def _foreign(cls: Any, name: str) -> None:
    """An argument that is no field: ignored, as pydantic would, but not in silence."""
    message = f"{cls.__name__} has no field {name!r}; it has {sorted(cls.__struct_fields__)}"
    warnings.warn(message, UserWarning, stacklevel=3)


def empty_list() -> list[Any]:
    """Default of a list that must be sent even when empty (msgspec leaves out `list` defaults, not this one)."""
    return []


__all__ += ["empty_list", "field"]
