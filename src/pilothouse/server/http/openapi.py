"""The OpenAPI document: made from the same table of operations that is served, so it cannot say anything else.

Types come from the structs that requests are read as and answers are written from; statuses from what the frame does
with every operation, and from what each declares beyond that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from ... import __version__
from ...acp.lenient import Choice
from ...model.commands import COMMANDS
from ...model.session.items import Text
from ..auth.browser_logins import NAME
from ..errors import Refusal
from .operations import Call, Operation

JSON = "application/json"
OFTEN = (400, 403, 421, 422, 429, 431, 500, 503)
"""What any request may be refused with: no HTTP, origin or scope, host, parameters, number, size, or our own fault."""
WITH_BODY = (408, 413, 415)
_REF = "#/components/schemas/"
_PARAMETER = re.compile(r"{(\w+)(?::(\w+))?}")
_PLAIN = (None, bytes, str)
_COMMAND_ID = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "Chosen by the caller. The same id again gets the same answer, and nothing is done.",
}

Schema = dict[str, Any]


class ErrorBody(Struct, kw_only=True):
    """What every refusal has as its body."""

    error: Refusal


def document(operations: Sequence[Operation], *, url: str = "") -> Schema:
    """The document of these operations, served at `url`."""
    schemas = Schemas(operations)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = _PARAMETER.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pilothouse",
            "version": __version__,
            "summary": "Coding agents, their sessions, and what they ask.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": url or "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in operations)],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The hub's token, or a device's own."},
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": NAME,
                    "description": "What a browser gets from a login link; its name ends with the hub's port.",
                },
            },
        },
    }


class Schemas:
    """The schemas of all types that operations name."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        types = list(dict.fromkeys(kind for operation in operations for kind in _types(operation)))
        found, self.components = msgspec.json.schema_components(
            [*types, ErrorBody], schema_hook=_foreign, ref_template=f"{_REF}{{name}}"
        )
        self._found = dict(zip([*types, ErrorBody], found, strict=True))
        for command in COMMANDS.values():
            if command.__name__ in self.components:
                self.components[command.__name__]["properties"]["commandId"] = _COMMAND_ID
        self._queries = {
            kind: self.components.pop(self._found[kind]["$ref"].removeprefix(_REF))
            for kind in dict.fromkeys(operation.query for operation in operations)
            if kind is not None
        }

    def of(self, kind: Any) -> Schema:
        found: Schema = {} if kind is Any else self._found[kind]
        return found

    def query(self, kind: Any) -> Schema:
        found: Schema = self._queries[kind]
        return found


def _types(operation: Operation) -> Iterator[Any]:
    for kind in (operation.query, operation.schema, operation.body, operation.answer, *operation.also.values()):
        if kind is not Any and kind not in _PLAIN:
            yield kind


def _foreign(kind: type) -> Schema:
    if issubclass(kind, Text):
        return {"type": "string"}
    if isinstance(kind, Choice):
        return {"type": "object", "description": f"{kind.__name__} of the Agent Client Protocol."}
    raise NotImplementedError(kind)


# -- one operation ----------------------------------------------------------------------------------------------------


def _operation(operation: Operation, schemas: Schemas) -> Schema:
    module = operation.handler.__module__.rpartition(".")[2]
    made: Schema = {
        "operationId": f"{module}_{getattr(operation.handler, '__name__', 'handler')}",
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [*_path(operation), *_query(operation, schemas), *_headers(operation)],
        "responses": {str(status): answer for status, answer in sorted(_responses(operation, schemas).items())},
        "security": [] if operation.scope is None else [{"token": []}, {"cookie": []}],
    }
    if operation.scope is not None:
        made["x-scope"] = operation.scope
    if operation.body is not None:
        made["requestBody"] = _body(operation, schemas)
    return made


def _path(operation: Operation) -> Iterator[Schema]:
    for name, converter in _PARAMETER.findall(operation.path):
        schema = {"type": "string", "minLength": 1}
        about = {"description": "May have slashes."} if converter == "path" else {}
        yield {"name": name, "in": "path", "required": True, "schema": schema, **about}


def _query(operation: Operation, schemas: Schemas) -> Iterator[Schema]:
    if operation.query is None:
        return
    query = schemas.query(operation.query)
    for name, schema in query["properties"].items():
        yield {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": _given(schema)}


def _given(schema: Schema) -> Schema:
    """A parameter that is not given is left out; it is never null."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if not options:
        return schema
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**options[0], **rest} if len(options) == 1 else {"anyOf": options, **rest}


def _headers(operation: Operation) -> Iterator[Schema]:
    for name, meaning in operation.headers.items():
        yield {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": meaning}


def _body(operation: Operation, schemas: Schemas) -> Schema:
    if operation.body is bytes:
        return {"required": True, "content": {"application/octet-stream": {"schema": {}}}}
    kind = operation.schema if operation.schema is not None else operation.body
    return {"required": not operation.optional_body, "content": {JSON: {"schema": schemas.of(kind)}}}


def _responses(operation: Operation, schemas: Schemas) -> dict[int, Schema]:
    is_empty = operation.answer is None and operation.stream is None and operation.media_type is None
    status = 204 if is_empty and operation.status == 200 else operation.status
    answers = {status: operation.answer, **operation.also}
    found = {code: _answer(code, kind, operation, schemas) for code, kind in answers.items()}
    if operation.stream is not None:
        found[status].setdefault("content", {})[operation.stream] = {"schema": {"type": "string"}}
    refusal = {"content": {JSON: {"schema": schemas.of(ErrorBody)}}}
    return {code: {"description": HTTPStatus(code).phrase, **refusal} for code in _refusals(operation)} | found


def _answer(code: int, kind: Any, operation: Operation, schemas: Schemas) -> Schema:
    about: Schema = {"description": HTTPStatus(code).phrase}
    if kind in (bytes, str):
        about["content"] = {operation.media_type or "*/*": {"schema": {"type": "string"} if kind is str else {}}}
    elif kind is not None:
        about["content"] = {JSON: {"schema": schemas.of(kind)}}
    return about


def _refusals(operation: Operation) -> set[int]:
    codes = {*OFTEN, *operation.errors}
    if operation.scope is not None:
        codes.add(401)
    if "{" in operation.path:
        codes.add(404)
    if operation.method not in ("GET", "HEAD"):
        codes |= set(WITH_BODY)
    return codes


# -- served -----------------------------------------------------------------------------------------------------------


async def openapi(call: Call) -> Response:
    state = call.request.app.state
    if not hasattr(state, "openapi"):
        state.openapi = msgspec.json.encode(document(state.operations, url=call.server.root_path))
    return Response(state.openapi, media_type=JSON)


OPERATIONS = (
    Operation(
        method="GET",
        path="/openapi.json",
        handler=openapi,
        answer=Mapping[str, Any],
        summary="This document",
        tag="hub",
    ),
)
