from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from pilothouse.model.commands import COMMANDS, ACPCommand
from pilothouse.server.app import OPERATIONS
from pilothouse.server.http.openapi import document
from pilothouse.server.http.operations import Body, Call, Operation, Query


class Thing(Struct):
    name: str
    parts: list[Thing] = []


class Wish(Body):
    thing_name: str


class Page(Query):
    limit: Annotated[int, Meta(ge=1)] = 5
    before: str | None = None


async def handle(call: Call) -> None: ...


def paths(*operations: Operation) -> dict[str, Any]:
    made: dict[str, Any] = document(operations)["paths"]
    return made


def test_an_operation_is_described_by_what_it_declares() -> None:
    operation = Operation(
        method="POST",
        path="/things/{id}/{place:path}",
        handler=handle,
        scope="prompt",
        query=Page,
        body=Wish,
        answer=Thing,
        status=201,
        also={200: Thing, 304: None},
        headers={"If-Match": "the one that is meant"},
        errors=(409,),
        summary="Make a thing",
        tag="things",
    )
    told = paths(operation)["/things/{id}/{place}"]["post"]
    assert [(one["name"], one["in"], one["required"]) for one in told["parameters"]] == [
        ("id", "path", True),
        ("place", "path", True),
        ("limit", "query", False),
        ("before", "query", False),
        ("If-Match", "header", False),
    ]
    assert told["parameters"][3]["schema"] == {"type": "string"}
    assert set(told["responses"]) == {
        *("200", "201", "304", "400", "401", "403", "404", "408", "409", "413", "415"),
        *("421", "422", "429", "431", "500", "503"),
    }
    assert "content" not in told["responses"]["304"]
    assert told["responses"]["409"]["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorBody")
    assert told["requestBody"]["required"] is True
    assert (told["x-scope"], told["security"]) == ("prompt", [{"token": []}, {"cookie": []}])


def test_what_everybody_may_do_needs_no_credential() -> None:
    told = paths(Operation(method="GET", path="/x", handler=handle, scope=None, summary="x"))["/x"]["get"]
    assert told["security"] == []
    assert "401" not in told["responses"]
    assert "204" in told["responses"]
    assert "requestBody" not in told


def test_a_stream_and_a_page_of_it_are_two_contents_of_one_answer() -> None:
    operation = Operation(
        method="GET", path="/x", handler=handle, answer=Thing, stream="text/event-stream", summary="x"
    )
    content = paths(operation)["/x"]["get"]["responses"]["200"]["content"]
    assert set(content) == {"application/json", "text/event-stream"}


def test_every_command_may_have_an_id() -> None:
    operation = Operation(method="POST", path="/x", handler=handle, body=Any, schema=ACPCommand, summary="x")
    schemas = document([operation])["components"]["schemas"]
    for command in COMMANDS.values():
        assert "commandId" in schemas[command.__name__]["properties"]
        assert "commandId" not in schemas[command.__name__]["required"]


def test_parameters_are_no_components() -> None:
    made = document([Operation(method="GET", path="/x", handler=handle, query=Page, answer=Thing, summary="x")])
    assert set(made["components"]["schemas"]) == {"Thing", "ErrorBody", "Refusal"}


PAGE_FILE = Path(__file__).parents[4] / "docs" / "reference" / "http.md"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
def test_the_reference_says_what_every_operation_does(operation: Operation) -> None:
    path = operation.path.replace(":path}", "}")
    row = f"| `{operation.method} {path}` | {operation.scope or 'none'} | {operation.summary} |"
    assert row in PAGE_FILE.read_text().splitlines()


def test_the_reference_has_no_operation_that_there_is_not() -> None:
    rows = [line for line in PAGE_FILE.read_text().splitlines() if re.match(r"\| `[A-Z]+ /", line)]
    assert len(rows) == len(OPERATIONS)
