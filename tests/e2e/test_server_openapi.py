"""The OpenAPI document is true: each operation is called, and what it answers is what the document says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from pilothouse.server.app import OPERATIONS
from pilothouse.server.auth.callers import SCOPES
from pilothouse.server.http.openapi import document
from pilothouse.server.http.operations import Operation
from tests.support.http_client import Answer, Client
from tests.support.servers import Served
from tests.support.world import Ids, world


class Sample(NamedTuple):
    """One call. In `target`, names in braces are fields of `Ids`; `value` is sent as JSON, `body` as it is."""

    operation: str
    target: str
    value: Any = None
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    status: int = 200


JSON = {"Accept": "application/json"}
SAMPLES = [
    Sample("GET /healthz", "/healthz"),
    Sample("GET /", "/"),
    Sample("GET /openapi.json", "/openapi.json"),
    Sample("GET /agents", "/agents"),
    Sample("GET /directories", "/directories?path={workspace}/"),
    Sample("GET /discovered", "/discovered"),
    Sample("POST /discovered/watch", "/discovered/watch", {"agent": "demo", "sessionId": "none"}, status=404),
    Sample("POST /discovered/adopt", "/discovered/adopt", {"agent": "demo", "sessionId": "none"}, status=404),
    Sample("GET /search", "/search?q=page"),
    Sample("GET /metrics", "/metrics"),
    Sample("GET /sessions", "/sessions?limit=1"),
    Sample("POST /sessions", "/sessions", {"agent": "demo", "cwd": "{workspace}", "title": "é\u200d!"}, status=201),
    Sample("GET /sessions/{id}", "/sessions/{session}"),
    Sample("GET /sessions/{id}", "/sessions/{session}?items=false"),
    Sample("PATCH /sessions/{id}", "/sessions/{session}", {"title": "Another", "archived": True, "policy": None}),
    Sample("GET /sessions/{id}/queue", "/sessions/{session}/queue"),
    Sample("PATCH /sessions/{id}/queue/{promptId}", "/sessions/{session}/queue/{prompt}", {"content": "echo b"}),
    Sample("DELETE /sessions/{id}/queue/{promptId}", "/sessions/{session}/queue/{prompt}"),
    Sample("GET /sessions/{id}/events", "/sessions/{session}/events", headers=JSON),
    Sample("GET /sessions/{id}/packets", "/sessions/{session}/packets", headers=JSON),
    Sample("GET /sessions/{id}/messages", "/sessions/{session}/messages"),
    Sample("GET /events", "/events", headers=JSON),
    Sample("GET /sessions/{id}/files", "/sessions/{session}/files"),
    Sample("GET /sessions/{id}/files/{path}", "/sessions/{session}/files/notes.txt"),
    Sample(
        "GET /sessions/{id}/files/{path}",
        "/sessions/{session}/files/notes.txt",
        headers={"Range": "bytes=2-5"},
        status=206,
    ),
    Sample("PUT /sessions/{id}/files/{path}", "/sessions/{session}/files/a/new.bin", body=b"\0\1", status=201),
    Sample("PUT /sessions/{id}/files/{path}", "/sessions/{session}/files/a/new.bin?overwrite=true", body=b"\2"),
    Sample("GET /sessions/{id}/artifacts", "/sessions/{session}/artifacts"),
    Sample("GET /sessions/{id}/artifacts/{artifactId}", "/sessions/{session}/artifacts/{artifact}"),
    Sample("GET /sessions/{id}/artifacts/{artifactId}/preview", "/sessions/{session}/artifacts/{artifact}/preview"),
    Sample("GET /approvals", "/approvals?state=all"),
    Sample("GET /approvals/{id}", "/approvals/{approval}"),
    Sample("POST /approvals/{id}", "/approvals/{approval}", {"decision": "deny", "reason": "no"}),
    Sample(  # a hub that looks for no sessions watches none
        "POST /hooks/claude", "/hooks/claude", {"sessionId": "s", "cwd": "{workspace}", "toolName": "Bash"}, status=422
    ),
    Sample("GET /rules", "/rules"),
    Sample("POST /rules/{id}/narrow", "/rules/{rule}/narrow"),
    Sample("POST /rules/{id}/keep", "/rules/{rule}/keep"),
    Sample("DELETE /rules/{id}", "/rules/{rule}"),
    Sample("POST /sessions/{id}/commands", "/sessions/{spare}/commands", {"command": "pause", "commandId": "1"}),
    Sample("POST /sessions/{id}/cancel", "/sessions/{spare}/cancel"),
    Sample(
        "POST /sessions/{id}/send-message",
        "/sessions/{spare}/send-message",
        {"content": "echo"},
        headers={"Prefer": "respond-async"},
        status=202,
    ),
    Sample("DELETE /sessions/{id}", "/sessions/{spare}", status=204),
    Sample("POST /login-links", "/login-links", status=201),
    Sample("GET /login", "/login?ticket=none", status=303),
    Sample("POST /logout", "/logout", {}),
    Sample("GET /whoami", "/whoami"),
    Sample("POST /pairings", "/pairings", {"scopes": ["read"]}, status=201),
    Sample("GET /pairings/{id}", "/pairings/{pairing}"),
    Sample("DELETE /pairings/{id}", "/pairings/{pairing}"),
    Sample("POST /pair", "/pair", {"ticket": "none", "code": "none"}, status=403),
    Sample("GET /devices", "/devices"),
    Sample("PATCH /devices/{id}", "/devices/{device}", {"name": "phone"}),
    Sample("DELETE /devices/{id}", "/devices/{device}"),
]


def name_of(operation: Operation) -> str:
    return f"{operation.method} {operation.path}".replace(":path}", "}")


def test_every_operation_has_a_sample() -> None:
    assert {sample.operation for sample in SAMPLES} == set(map(name_of, OPERATIONS))


def test_every_operation_has_an_id_of_its_own() -> None:
    made = document(OPERATIONS)
    ids = [operation["operationId"] for path in made["paths"].values() for operation in path.values()]
    assert len(set(ids)) == len(ids) == len(OPERATIONS)


def test_the_schemas_are_schemas_and_every_reference_leads_somewhere() -> None:
    made = document(OPERATIONS)
    for schema in made["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    known = {f"#/components/schemas/{name}" for name in made["components"]["schemas"]}
    assert set(_references(made)) <= known


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [one for inner in value.values() for one in _references(inner)]
    return [one for inner in value for one in _references(inner)] if isinstance(value, list) else []


def complaints(made: dict[str, Any], name: str, answer: Answer) -> list[str]:
    """What of an answer is not as the document says."""
    method, path = name.split(" ")
    responses = made["paths"][path][method.lower()]["responses"]
    told = responses.get(str(answer.status))
    if told is None:
        return [f"{name}: {answer.status} is not in the document: {answer.body[:300]!r}"]
    content = told.get("content")
    if content is None:
        return [f"{name}: a body where there is to be none"] if answer.body else []
    kind = answer.headers["content-type"].partition(";")[0]
    if kind not in content and "*/*" not in content:
        return [f"{name}: {kind} is not in the document"]
    schema = content.get(kind, {}).get("schema")
    if kind != "application/json" or not schema:
        return []
    checker = Draft202012Validator({**schema, "components": made["components"]})
    return [f"{name}: {error.json_path}: {error.message[:300]}" for error in checker.iter_errors(answer.json())]


async def called(client: Client, sample: Sample, ids: Ids) -> Answer:
    value = sample.value
    if value is not None:
        value = json.loads(json.dumps(value).replace("{workspace}", str(ids.workspace)))
    target = sample.target.format(**ids._asdict())
    method = sample.operation.partition(" ")[0]
    return await client.request(method, target, value, headers=sample.headers, body=sample.body)


async def test_every_operation_answers_as_the_document_says(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):
        made = (await served.client.request("GET", "/openapi.json")).json()
        wrong: list[str] = []
        for sample in SAMPLES:
            answer = await called(served.client, sample, ids)
            if answer.status != sample.status:
                wrong.append(f"{sample.operation}: {answer.status} {answer.body[:300]!r}, expected {sample.status}")
            wrong += complaints(made, sample.operation, answer)
        assert wrong == []


async def _refused(served: Served, ids: Ids, client: Client, expected: int, *scopes: str) -> None:
    """Each operation that needs one of these scopes is refused to this client, as the document says."""
    made = document(OPERATIONS)
    wrong: list[str] = []
    count = 0
    for sample in SAMPLES:
        operation = next(one for one in OPERATIONS if name_of(one) == sample.operation)
        if operation.scope in scopes:
            answer = await called(client, sample, ids)
            wrong += complaints(made, sample.operation, answer)
            if answer.status != expected:
                wrong.append(f"{sample.operation}: {answer.status}, expected {expected}")
            count += 1
    assert wrong == []
    assert count > 10


async def test_no_operation_that_needs_a_scope_answers_a_stranger(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):
        await _refused(served, ids, Client(served.port), 401, *SCOPES, "any")


async def test_no_operation_answers_a_device_that_lacks_its_scope(tmp_path: Path) -> None:
    async with world(tmp_path) as (served, ids):
        reader = Client(served.port, token=ids.credential)
        await _refused(served, ids, reader, 403, "prompt", "approve", "admin")
        assert (await reader.request("GET", "/sessions")).status == 200


@pytest.mark.parametrize(
    ("command", "scope"),
    [
        ({"command": "rename", "title": "x"}, "prompt"),
        ({"command": "answer_question", "questionId": "q", "answer": None}, "approve"),
        ({"command": "approve_tool_call", "requestId": "a", "toolCallId": "b"}, "approve"),
        ({"command": "deny_tool_call", "requestId": "a", "toolCallId": "b"}, "approve"),
        ({"command": "set_permission_policy", "policy": {}}, "admin"),
        ({"command": "terminate"}, "admin"),
    ],
)
async def test_a_command_needs_its_own_scope(tmp_path: Path, command: dict[str, Any], scope: str) -> None:
    async with world(tmp_path) as (served, ids):
        reader = Client(served.port, token=ids.credential)
        answer = await reader.request("POST", f"/sessions/{ids.spare}/commands", command)
        assert (answer.status, answer.json()["error"]["details"]) == (403, {"scope": scope})
