"""Whatever is sent to an operation, the hub does not fail: inputs made from the document by schemathesis, right and
wrong ones, over a real socket. No answer is a 500, and each is one that the document tells of.

The same inputs come every time. PILOTHOUSE_FUZZ=200 tries that many of each kind for each operation.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from pilothouse.acp.jsonrpc import DEEPEST
from pilothouse.server.app import OPERATIONS
from pilothouse.server.http.operations import Operation
from tests.support.http_client import Answer
from tests.support.servers import TOKEN
from tests.support.world import Ids, world

from .test_server_openapi import complaints, name_of

EXAMPLES = int(os.environ.get("PILOTHOUSE_FUZZ", "12"))
STANDING = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json", "Prefer": "respond-async"}
"""With these, no answer is an endless stream."""
SECONDS = 20
KEPT = {"DELETE /sessions/{id}", "DELETE /devices/{id}"}
"""Not tried on what others need."""


class Target(NamedTuple):
    url: str
    ids: Ids
    document: dict[str, Any]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A hub on a thread of its own."""
    ready: list[Target] = []
    started, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        async with world(tmp_path_factory.mktemp("fuzz")) as (served, ids):
            made = (await served.client.request("GET", "/openapi.json")).json()
            ready.append(Target(f"http://127.0.0.1:{served.port}", ids, made))
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert started.wait(60)
        yield ready[0]
    finally:
        ended.set()
        thread.join(60)


def real_ids(operation: Operation, ids: Ids) -> dict[str, str]:
    """What stands for the parameters of a path when something is to be found there."""
    noun = operation.path.split("/")[1]
    first = {"sessions": ids.spare, "approvals": ids.approval, "rules": ids.rule, "pairings": ids.pairing}
    known = {"promptId": ids.prompt, "artifactId": ids.artifact, "path": "notes.txt", "id": first.get(noun, "none")}
    if "promptId" in operation.path or "artifactId" in operation.path:
        known["id"] = ids.session
    return known


RIGHT, WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
TRIED = [(operation, RIGHT) for operation in OPERATIONS] + [
    (operation, WRONG)
    for operation in OPERATIONS
    if operation.query is not None or operation.body is not None or "{" in operation.path
]


@pytest.mark.parametrize(("operation", "mode"), TRIED, ids=lambda one: getattr(one, "value", None) or name_of(one))
def test_no_input_makes_the_hub_fail(operation: Operation, mode: GenerationMode, target: Target) -> None:
    name = name_of(operation)
    method, path = name.split(" ")
    tried = schemathesis.openapi.from_dict(target.document)[path][method]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=tried.as_strategy(generation_mode=mode), is_real=st.booleans())
    def run(case: Any, is_real: bool) -> None:
        if is_real and case.path_parameters and name not in KEPT:
            for parameter in case.path_parameters:
                case.path_parameters[parameter] = real_ids(operation, target.ids)[parameter]
        if isinstance(case.query, dict):
            case.query.pop("wait", None)  # which is how long an answer may take
        try:
            response = case.call(base_url=target.url, headers=STANDING, timeout=SECONDS, allow_redirects=False)
        except requests.exceptions.InvalidHeader:
            return  # the client does not send it
        headers = {key.lower(): values[0] for key, values in response.headers.items()}
        if response.status_code == 405 or (response.status_code == 404 and not _is_known(response)):
            return  # an empty parameter makes another path
        assert complaints(target.document, name, Answer(response.status_code, headers, response.content)) == []
        assert response.status_code != 500, (case.as_curl_command(), response.content)

    try:
        run()
    except schemathesis.errors.InvalidSchema:
        pytest.fail(f"schemathesis cannot read what the document says of {name}")


BODIES = [operation for operation in OPERATIONS if operation.body not in (None, bytes)]


@pytest.mark.parametrize("depth", [100, 200, 480, 900, 20_000])
@pytest.mark.parametrize("operation", BODIES, ids=name_of)
def test_no_depth_of_a_body_makes_the_hub_fail(operation: Operation, depth: int, target: Target) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    block = f'{{"type":"text","text":"echo deep","_meta":{deep}}}'
    path = operation.path.format(**real_ids(operation, target.ids))
    for body in (
        deep,
        f'{{"content":[{block}]}}',
        f'{{"command":"send_message","message":[{block}]}}',
        f'{{"command":"answer_question","questionId":"q","answer":{deep}}}',
    ):
        headers = {**STANDING, "Content-Type": "application/json"}
        response = requests.request(operation.method, target.url + path, data=body, headers=headers, timeout=SECONDS)
        answer = Answer(response.status_code, {"content-type": response.headers["content-type"]}, response.content)
        assert complaints(target.document, name_of(operation), answer) == []
        assert response.status_code < 500, response.content
        if depth > DEEPEST and response.status_code != 413:
            assert response.status_code == 422, response.content
            assert "nested too deeply" in response.json()["error"]["message"]


def _is_known(response: Any) -> bool:
    return bool(response.json()["error"]["code"] != "not_found")


def test_inputs_were_tried_on_a_hub_that_is_still_well(target: Target) -> None:
    assert requests.get(f"{target.url}/healthz", timeout=SECONDS).json()["status"] == "ok"
    session = requests.get(f"{target.url}/sessions/{target.ids.session}", headers=STANDING, timeout=SECONDS)
    assert session.status_code == 200
    assert Path(session.json()["cwd"]) == target.ids.workspace
