"""The seam between a connection and what handles its messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from .errors import RequestError
from .lanes import Handler, Updates

__all__ = ["Dispatcher", "FunctionDispatcher", "JsonValue", "MethodHandler", "session_of"]

JsonValue = Any
MethodHandler = Callable[[str, JsonValue | None, bool], Awaitable[JsonValue | None]]


class Dispatcher(Protocol):
    """Turns received methods into handler calls."""

    decode_update: Callable[[bytes], Any] | None
    """Decodes a line that is a `session/update` and nothing else, raising for all others; None to not be asked.

    A dispatcher that also has `decode_updates` is given many lines at once as one JSON array, and answers a list.
    """

    def updates(self) -> Updates:
        """A new run of updates for the handler, to be filled with what `decode_update` answers."""
        ...

    def notification(self, method: str, params: Raw | None) -> tuple[str | None, Handler, dict[str, Any]] | None:
        """The session a notification belongs to and how to handle it; None when nobody wants it."""
        ...

    def request(
        self, method: str, params: Raw | None
    ) -> tuple[str | None, Handler, dict[str, Any], Callable[[Any], Any]]:
        """The same for a request, with what turns the handler's value into a result. Raises RequestError."""
        ...


class FunctionDispatcher:
    """Serves every method by one function of decoded values."""

    decode_update: Callable[[bytes], Any] | None = None

    def __init__(self, handler: MethodHandler) -> None:
        self._handler = handler

    def updates(self) -> Updates:
        raise AssertionError("not asked for without decode_update")

    def notification(self, method: str, params: Raw | None) -> tuple[str | None, Handler, dict[str, Any]]:
        values = _decoded(params)
        return session_of(values), self._call, {"method": method, "params": values, "is_notification": True}

    def request(
        self, method: str, params: Raw | None
    ) -> tuple[str | None, Handler, dict[str, Any], Callable[[Any], Any]]:
        values = _decoded(params)
        kwargs = {"method": method, "params": values, "is_notification": False}
        return session_of(values), self._call, kwargs, lambda value: value

    async def _call(self, method: str, params: Any, is_notification: bool) -> Any:
        return await self._handler(method, params, is_notification)


def _decoded(params: Raw | None) -> Any:
    try:
        return None if params is None else msgspec.json.decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise RequestError.invalid_params({"reason": str(exc)}) from None


def session_of(params: Any) -> str | None:
    session = params.get("sessionId") if isinstance(params, dict) else getattr(params, "session_id", None)
    return session if isinstance(session, str) else None
