"""What both sides of a connection share: typed calls over the raw connection, and its life cycle."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

import msgspec
from msgspec import Raw

from . import lenient
from .connection import Connection
from .errors import RemoteProtocolError, ValidationError
from .methods import Method
from .naming import camel
from .routing import Router, decoder

__all__ = ["Side"]

C = TypeVar("C", bound=type)


class Side:
    """Base of `AgentSideConnection` and `ClientSideConnection`."""

    _calls: tuple[Method, ...]
    _build_router: Callable[..., Router]
    _replies_to_malformed: bool

    def __init__(
        self,
        target: Any,
        input_stream: Any,
        output_stream: Any = None,
        listening: bool = True,
        *,
        use_unstable_protocol: bool = True,
        **connection_kwargs: Any,
    ) -> None:
        """`input_stream` is what this side writes to, `output_stream` what it reads from.

        `use_unstable_protocol` is accepted for compatibility: a method is served when it is implemented.
        """
        handler = target(self) if callable(target) else target
        router = self._build_router(handler)
        connection_kwargs.setdefault("reply_to_malformed", self._replies_to_malformed)
        self._conn = Connection(router, input_stream, output_stream, listening=listening, **connection_kwargs)
        router.report = self._conn.report_repair
        on_connect = getattr(handler, "on_connect", None)
        if on_connect is not None:
            on_connect(self)

    # -- life cycle --

    @property
    def connection(self) -> Connection:
        """The connection beneath, for raw calls and observers."""
        return self._conn

    async def listen(self) -> None:
        """Receive until the peer closes its end. For connections made with `listening=False`."""
        await self._conn.main_loop()

    async def close(self) -> None:
        await self._conn.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- extensions --

    async def ext_method(self, method: str, params: dict[str, Any]) -> Any:
        """Call `_method` of the peer."""
        return await self._conn.send_request(f"_{method}", params)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        await self._conn.send_notification(f"_{method}", params)

    # -- typed calls --

    async def _request(self, method: str, params: Any, result: Any, *, ordered: bool = True) -> Any:
        session = getattr(params, "session_id", None) if ordered else None
        raw = await self._conn.request(method, params, session=session)
        return self._result(method, raw, result)

    async def _notify(self, method: str, params: Any) -> None:
        await self._conn.send_notification(method, params)

    def _result(self, method: str, raw: Raw | None, tp: Any) -> Any:
        if raw is None or bytes(raw) == b"null":
            raw = Raw(b"{}")  # `null` is a common way to say "done" where the schema wants an object
        try:
            return decoder(tp)(raw)
        except (msgspec.DecodeError, ValidationError, UnicodeDecodeError, RecursionError):
            pass
        try:
            value, repairs = lenient.decode(tp, raw)
        except ValidationError as exc:
            raise RemoteProtocolError(f"the answer to {method} does not fit the schema: {exc}") from None
        self._conn.report_repair(method, repairs)
        return value


def accepts_request_objects(cls: C) -> C:
    """Let calls also be made as in the first SDKs, with one request object: `newSession(NewSessionRequest(...))`."""
    for method in cls._calls:  # type: ignore[attr-defined]
        func = cls.__dict__.get(method.handler)
        if func is None:
            continue
        setattr(cls, camel(method.handler), _from_request(func, method.params))
    return cls


def _from_request(func: Callable[..., Awaitable[Any]], params: Any) -> Callable[..., Awaitable[Any]]:
    names = getattr(params, "__name__", str(params))
    if isinstance(params, lenient.Choice):
        names = " | ".join(member.__name__ for member in params.members())

    @functools.wraps(func)
    def call(self: Any, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        request = args[0] if len(args) == 1 and not kwargs else kwargs.get("params") if not args else None
        if not isinstance(request, params):
            return func(self, *args, **kwargs)
        message = f"Calling {func.__name__} with {names} parameter is deprecated: pass its fields by keyword."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        fields = {n: getattr(request, n) for n in type(request).__struct_fields__ if n != "field_meta"}
        meta = {k: v for k, v in (request.field_meta or {}).items() if k not in fields}
        return func(self, **fields, **meta)

    return call
