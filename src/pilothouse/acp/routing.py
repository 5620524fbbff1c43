"""From method names to handlers: which of an object's methods serves what, and with which arguments.

Handlers are called with keyword arguments in snake_case. `_meta` reaches a handler only through `**kwargs`, and a
key of it never replaces a parameter. A method that the object does not implement, be it absent or only inherited
from the `Agent` and `Client` interfaces, is answered with "method not found".
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from . import lenient, schema
from .errors import RequestError, ValidationError
from .lanes import Handler, Updates
from .methods import Method
from .naming import camel

__all__ = ["Router"]

Report = Callable[[str, "list[lenient.Repair]"], None]
LEGACY_UPDATE = "acp/notification/session_update"


@cache
def decoder(tp: Any) -> Callable[[Any], Any]:
    """The strict decoder of a type; building one is not free, so each is built once."""
    return msgspec.json.Decoder(tp, dec_hook=lenient.dec_hook).decode


class UpdateMessage(msgspec.Struct, tag_field="method", tag="session/update", gc=False):
    """A whole `session/update` message. No id fits its type, so that one sent as a request is refused here."""

    params: schema.SessionNotification
    id: Literal["\0"] | msgspec.UnsetType = msgspec.UNSET


class Router:
    """The dispatcher of one handler object."""

    def __init__(self, target: Any, methods: tuple[Method, ...], interface: type) -> None:
        self._target = target
        self.report: Report = lambda method, repairs: None
        self._requests: dict[str, Route] = {}
        self._notifications: dict[str, Route] = {}
        for method in methods:
            handler, legacy = _find(target, method.handler, interface)
            if handler is not None:
                table = self._notifications if method.is_notification else self._requests
                table[method.wire] = Route(method, handler, legacy)
        self.decode_update: Callable[[bytes], Any] | None = None
        update = self._notifications.get("session/update")
        if update is not None:
            self._notifications[LEGACY_UPDATE] = update
            if update.takes_plain_updates:
                self.decode_update = decoder(UpdateMessage)
        self._ext_method, _ = _find(target, "ext_method", interface)
        self._ext_notification, _ = _find(target, "ext_notification", interface)

    def updates(self) -> Updates:
        route = self._notifications["session/update"]
        return Updates(route.handler, route.meta_arguments)

    def notification(self, method: str, params: Raw | None) -> tuple[str | None, Handler, dict[str, Any]] | None:
        route = self._notifications.get(method)
        if route is not None:
            if method == LEGACY_UPDATE:
                self.report(method, [lenient.Repair("method", "mended", "read as session/update")])
            value = self._decode(route, params)
            return value.session_id if route.in_session else None, route.handler, route.arguments(value, params)
        if method.startswith("_") and self._ext_notification is not None:
            values = _object(params)
            return _session(values), self._ext_notification, {"method": method[1:], "params": values}
        return None

    def request(
        self, method: str, params: Raw | None
    ) -> tuple[str | None, Handler, dict[str, Any], Callable[[Any], Any]]:
        route = self._requests.get(method)
        if route is not None:
            try:
                value = self._decode(route, params)
            except ValidationError as exc:
                raise _invalid_params(exc) from None
            session = value.session_id if route.in_session else getattr(value, "session_id", None)
            return session, route.handler, route.arguments(value, params), route.result
        if method.startswith("_") and self._ext_method is not None:
            try:
                values = _object(params)
            except ValidationError as exc:
                raise _invalid_params(exc) from None
            return _session(values), self._ext_method, {"method": method[1:], "params": values}, _as_is
        raise RequestError.method_not_found(method)

    def _decode(self, route: Route, params: Raw | None) -> Any:
        raw: Any = b"{}" if params is None else params
        try:
            return route.decode(raw)
        except (msgspec.DecodeError, ValidationError, UnicodeDecodeError, RecursionError):
            value, repairs = lenient.decode(route.method.params, b"{}" if bytes(raw) == b"null" else raw)
            self.report(route.method.wire, repairs)
            return value


class Route:
    """How one method reaches its handler."""

    __slots__ = ("arguments", "decode", "handler", "in_session", "method")

    def __init__(self, method: Method, handler: Handler, legacy: bool) -> None:
        self.method = method
        self.handler = _warning_handler(handler) if legacy else handler
        self.decode = decoder(method.params)
        self.in_session = "session_id" in getattr(method.params, "__struct_fields__", ())
        self.arguments = _argument_builder(method, handler, legacy)

    @property
    def takes_plain_updates(self) -> bool:
        """Whether the handler takes just a session id and an update, which needs no look at each message."""
        return self.arguments in (_update_arguments, _plain_update_arguments)

    def result(self, value: Any) -> Any:
        """What a handler answered, as it may be sent. Raises when it does not fit the method's result."""
        if isinstance(value, Struct):
            return value
        return lenient.strict(self.method.result, {} if value is None else value, f"result of {self.method.wire}")

    def meta_arguments(self, value: Any) -> dict[str, Any]:
        return self.arguments(value, None)


def _argument_builder(method: Method, handler: Handler, legacy: bool) -> Callable[[Any, Raw | None], dict[str, Any]]:
    if legacy:
        return lambda value, raw: {"params": value}
    names, takes_any = _parameters(handler)
    own = _own_name(handler)
    wants_raw = "raw_params" in names
    wants_meta = "field_meta" in names
    plain = not wants_raw and not wants_meta and own == "self"
    if method.wire == "session/update" and plain and {"session_id", "update"} <= names:
        return _update_arguments if takes_any else _plain_update_arguments
    fields_of = _elicitation_fields if method.wire == "elicitation/create" else _fields

    def build(value: Any, raw: Raw | None) -> dict[str, Any]:
        fields = fields_of(value)
        kwargs = {name: item for name, item in fields.items() if takes_any or name in names}
        if wants_raw:
            kwargs["raw_params"] = raw
        if wants_meta:
            kwargs["field_meta"] = value.field_meta
        elif takes_any and value.field_meta:
            _add_meta(kwargs, value.field_meta, {*fields, own})
        return kwargs

    return build


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__ if name != "field_meta"}


def _elicitation_fields(value: Any) -> dict[str, Any]:
    return {"message": value.message, "mode": elicitation_mode(value)}


def _update_arguments(value: Any, raw: Raw | None) -> dict[str, Any]:
    kwargs = {"session_id": value.session_id, "update": value.update}
    if value.field_meta:
        _add_meta(kwargs, value.field_meta, {"self"})
    return kwargs


def _plain_update_arguments(value: Any, raw: Raw | None) -> dict[str, Any]:
    return {"session_id": value.session_id, "update": value.update}


def elicitation_mode(request: Any) -> Any:
    """The mode of an elicitation request without its message, as handlers take it."""
    for cls, mode in ELICITATION_MODES.items():
        if isinstance(request, cls):
            return mode.model_construct(**{name: getattr(request, name) for name in mode.__struct_fields__})
    raise RequestError.invalid_params({"mode": getattr(request, "mode", None), "details": "unknown elicitation mode"})


ELICITATION_MODES: dict[Any, Any] = {
    schema.CreateFormSessionElicitationRequest: schema.ElicitationFormSessionMode,
    schema.CreateFormRequestElicitationRequest: schema.ElicitationFormRequestMode,
    schema.CreateUrlSessionElicitationRequest: schema.ElicitationUrlSessionMode,
    schema.CreateUrlRequestElicitationRequest: schema.ElicitationUrlRequestMode,
}


def _add_meta(kwargs: dict[str, Any], meta: dict[str, Any], taken: set[str]) -> None:
    for key, value in meta.items():
        if key not in kwargs and key not in taken:
            kwargs[key] = value


def _parameters(handler: Handler) -> tuple[set[str], bool]:
    """The names a handler takes by keyword, and whether it takes any others."""
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):
        return set(), True
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return names, any(p.kind is p.VAR_KEYWORD for p in parameters)


def _own_name(handler: Handler) -> str:
    """What a method calls its own object: no key of `_meta` may come by that name."""
    function = getattr(handler, "__func__", None)
    code = getattr(function, "__code__", None)
    return str(code.co_varnames[0]) if code is not None and code.co_argcount else "self"


def _find(target: Any, name: str, interface: type) -> tuple[Handler | None, bool]:
    """The handler of a name and whether it is of the old style: camelCase and one request object."""
    handler = getattr(target, name, None)
    if handler is not None and not _is_stub(handler, name, interface):
        return handler, _takes_request(handler, name)
    old_name = camel(name)
    if old_name != name:
        handler = getattr(target, old_name, None)
        if handler is not None:
            return handler, not name.startswith("ext_")
    return None, False


def _is_stub(handler: Any, name: str, interface: type) -> bool:
    return getattr(handler, "__func__", None) is getattr(interface, name, None)


def _takes_request(handler: Handler, name: str) -> bool:
    """Old handlers with a one-word name, like `prompt(self, params)`."""
    if name.startswith("ext_"):
        return False
    names, takes_any = _parameters(handler)
    return names == {"params"} and not takes_any


def _warning_handler(handler: Handler) -> Handler:
    owner = type(getattr(handler, "__self__", None)).__name__
    name = getattr(handler, "__name__", repr(handler))

    async def call(params: Any) -> Any:
        message = f"The old style method {owner}.{name} is deprecated: take keyword arguments in snake_case instead."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return await handler(params)

    return call


def _as_is(value: Any) -> Any:
    return value


def _object(params: Raw | None) -> dict[str, Any]:
    """The params of an extension. Raises ValidationError for what is no JSON after all, such as broken UTF-8."""
    if params is None:
        return {}
    try:
        values = msgspec.json.decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ValidationError(str(exc)) from None
    return values if isinstance(values, dict) else {}


def _session(values: dict[str, Any]) -> str | None:
    session = values.get("sessionId")
    return session if isinstance(session, str) else None


def _invalid_params(exc: ValidationError) -> RequestError:
    field = exc.path.lstrip("$").lstrip(".")
    missing = exc.reason.partition("missing required field `")[2].partition("`")[0]
    if missing:
        field = f"{field}.{missing}" if field else missing
    return RequestError(-32602, "Invalid params", {"field": field, "reason": exc.reason, "errors": exc.errors()})
