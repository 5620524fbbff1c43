"""An operation: one method on one path, declared as a value, so that routing, checks and the OpenAPI document agree.

What holds for all of them is done here, in this order: the caller's scope, the query, the body's size, type and
shape, the work, the answer. A handler gets a `Call` and returns a value to be sent as JSON, or a response.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ...acp.jsonrpc import TOO_DEEP, is_deep
from ...acp.naming import camel
from ...model.errors import ValidationError
from ..auth.callers import Caller, Scope
from ..errors import HttpError, error_response
from ..state import Server

BODY_TIMEOUT = 30.0
"""Seconds a body may take to arrive."""

S = TypeVar("S", bound=Struct)


class Body(Struct, kw_only=True, rename=camel, forbid_unknown_fields=True):
    """Base of request bodies: camelCase on the wire. An unknown field is an error: it may be a misspelt one."""


class Query(Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of query parameters, as they are written."""


class Call(Struct, kw_only=True):
    """One request that passed all checks. `query` and `body` are of the types that its operation declares."""

    server: Server
    caller: Caller
    request: Request
    path: Mapping[str, str]
    query: Any = None
    body: Any = None


Handler = Callable[[Call], Awaitable[Any]]


class Operation(Struct, frozen=True, kw_only=True):
    """`scope` is what the caller must be allowed: None for everybody, `any` where the handler finds out itself.

    `stream` is the media type of an endless answer. `errors` are the statuses beyond those that every operation may
    give (400, 401, 403, 421, 422, 429, 431, 500, 503), one with a parameter in its path (404), and one that is no GET
    (408, 413, 415).
    """

    method: str
    path: str
    handler: Handler
    summary: str
    scope: Scope | Literal["any"] | None = "read"
    query: type[Query] | None = None
    any_query: bool = False
    """Parameters are not looked at: for what people's browsers open, with whatever others hang on an address."""
    body: Any = None
    """A type that the JSON body is read as; None for no body; `bytes` for any other content, which the handler reads by
    `read_body` when it has room for it."""
    schema: Any = None
    """The type of the body, for the document, where the handler reads it itself (`body=Any`)."""
    headers: Mapping[str, str] = {}
    """Request headers that the handler looks at, with what they do."""
    optional_body: bool = False
    max_body: int | None = None
    answer: Any = None
    """The type of the JSON answer, for the document; None for none."""
    status: int = 200
    stream: str | None = None
    media_type: str | None = None
    """Of an answer that is not JSON."""
    also: Mapping[int, Any] = {}
    """Other statuses of success, with the type of their answer; None for none, `bytes` for the same media type."""
    errors: tuple[int, ...] = ()
    tag: str = "sessions"


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json", headers=dict(headers or {}))


def route(operation: Operation) -> Route:
    return Route(operation.path, endpoint(operation), methods=[operation.method])


def endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    """The ASGI side of an operation."""

    async def run(request: Request) -> Response:
        try:
            call = await _call(operation, request)
            answer = await operation.handler(call)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody is there to read it
        except Exception as exc:
            return error_response(exc)
        if isinstance(answer, Response):
            return answer
        if answer is None:
            return Response(status_code=204)
        return json_response(answer, operation.status)

    return run


async def _call(operation: Operation, request: Request) -> Call:
    server: Server = request.app.state.server
    caller: Caller | None = request.scope.get("caller")
    if operation.scope is not None:
        if caller is None:
            message = "the token is not valid" if request.scope.get("refused") else "a token is needed"
            raise HttpError(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})
        if operation.scope != "any":
            need(caller, operation.scope)
    return Call(
        server=server,
        caller=caller or Caller(name="nobody", scopes=frozenset()),
        request=request,
        path=request.path_params,
        query=_query(operation, request),
        body=await _body(operation, request, operation.max_body or server.limits.body),
    )


def need(caller: Caller, scope: Scope) -> None:
    """Raises HttpError 403 unless the caller has the scope."""
    if not caller.may(scope):
        message = f"{caller.name} may not do this; it needs the scope `{scope}`"
        raise HttpError(403, "forbidden", message, scope=scope)


def _query(operation: Operation, request: Request) -> Any:
    given = request.query_params
    if operation.query is None and (operation.any_query or not given):
        return None
    for name in given:
        if len(given.getlist(name)) > 1:
            raise ValidationError("given twice", name)
    return checked(dict(given), operation.query or Query, strict=False, whole="query")


async def _body(operation: Operation, request: Request, limit: int) -> Any:
    if operation.method in ("GET", "HEAD"):
        return None
    if operation.body is bytes:
        return None
    data = await read_body(request, limit)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # also of nothing: a page of another site can send any other type unasked, and no body at all
    if (data or "content-type" in request.headers) and kind != "application/json":
        raise HttpError(415, "unsupported_media_type", f"send application/json, not {kind or 'nothing'}")
    if operation.body is None:
        return None
    if not data:
        if operation.optional_body:
            return checked({}, operation.body)
        raise ValidationError("a JSON object is needed", "body")
    value = parsed(data, "body")
    return value if operation.body is Any else checked(value, operation.body)


def parsed(data: bytes | str, what: str) -> Any:
    """JSON from outside, called `what` in errors. Raises HttpError 400; ValidationError if it is nested too deeply."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError) as exc:
        raise HttpError(400, "malformed", f"the {what} is no JSON: {exc}") from None
    except RecursionError:
        raise ValidationError(TOO_DEEP, what) from None
    if is_deep(value):
        raise ValidationError(TOO_DEEP, what)
    return value


async def read_body(request: Request, limit: int, *, timeout: float = BODY_TIMEOUT) -> bytes:
    """The whole body. Raises HttpError 413 as soon as it is known to be too long, 408 when it does not come, 401 when
    its device was revoked, or its browser logged out, while it came: a body may be sent as slowly as one likes."""
    announced = request.headers.get("content-length", "")
    too_long = HttpError(413, "too_large", f"the body may have {limit:,} bytes", limit=limit)
    if announced.isdecimal() and int(announced) > limit:
        raise too_long
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise too_long
                parts.append(part)
    except TimeoutError:
        raise HttpError(408, "timeout", "the body did not arrive in time") from None
    caller: Caller | None = request.scope.get("caller")
    if caller is not None:
        request.app.state.server.connections.check(caller)
    return b"".join(parts)


def checked(value: Any, kind: type[S], *, strict: bool = True, whole: str = "body") -> S:
    """A value as a struct. Raises ValidationError that names the field, or `whole` for what is no object at all."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as exc:
        reason, _, place = str(exc).partition(" - at `$")
        path = place.rstrip("`").lstrip(".")
        if named := _NAMED.match(reason):
            path = ".".join(filter(None, (path, named["name"])))
            reason = _NAMED_REASONS[named["what"]]
        elif reason.startswith("Invalid enum value") and (words := _words(kind).get(path)):
            reason = f"{reason}, expected one of: {', '.join(words)}"
        raise ValidationError(_printable(reason[:1].lower() + reason[1:]), _printable(path or whole)) from None


_NAMED = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>.*)`\Z", re.DOTALL)
_NAMED_REASONS = {"missing required": "this field is needed", "contains unknown": "there is no such field"}


@cache
def _words(kind: type[Struct]) -> dict[str, tuple[str, ...]]:
    """The fields that take one of a few words."""
    hints = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    return {name: tuple(_literals(hint)) for name, hint in hints.items()}


def _literals(hint: Any) -> Iterator[str]:
    for part in get_args(hint):
        if isinstance(part, str):
            yield part
        else:
            yield from _literals(part)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
