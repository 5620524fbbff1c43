"""The scripted model of the lab says the same by each of its interfaces, streamed or whole."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.model.scripts import MARK, find_script
from tests.lab.model.server import Server, model_server

WRITE = {"type": "object", "properties": {"file_path": {}, "content": {}, "mode": {}}, "required": ["mode"]}
STEPS = ["Hello, ä 漢.", {"op": "write", "path": "/w/x", "content": "one\n"}, "Told {scripts}."]
CALL = {"file_path": "/w/x", "content": "one\n", "mode": "some mode"}
PATHS = {
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/m:generateContent",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with model_server() as server:
        yield server
    assert server.problems == []


def request_of(interface: str, script: list[Any], results: int) -> dict[str, Any]:
    """A request with a tool to write, a script, and so many results since then."""
    text = f"{MARK} {json.dumps(script)} and more words"
    if interface == "messages":
        content = [{"type": "tool_result", "content": [{"type": "text", "text": "done"}]}] * results
        messages = [{"role": "user", "content": text}, {"role": "user", "content": content}]
        return {"messages": messages, "tools": [{"name": "Write", "input_schema": WRITE}]}
    if interface == "responses":
        told: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": text}]}]
        told += [{"type": "function_call_output", "output": "done"}] * results
        return {"input": told, "tools": [{"type": "function", "name": "write_file", "parameters": WRITE}]}
    if interface == "chat":
        messages = [{"role": "user", "content": text}] + [{"role": "tool", "content": "done"}] * results
        return {"messages": messages, "tools": [{"function": {"name": "dev__write", "parameters": WRITE}}]}
    parts: list[Any] = [{"text": text}] + [{"functionResponse": {"response": {"output": "done"}}}] * results
    tools = [{"functionDeclarations": [{"name": "write_file", "parametersJsonSchema": WRITE}]}]
    return {"contents": [{"role": "user", "parts": parts}], "tools": tools}


def post(server: Server, path: str, body: dict[str, Any]) -> bytes:
    request = urllib.request.Request(server.url + path, json.dumps(body).encode())
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as response:
        data: bytes = response.read()
    return data


def whole(server: Server, interface: str, script: list[Any], results: int) -> tuple[str, list[Any]]:
    """The text and the arguments of the calls."""
    told = json.loads(post(server, PATHS[interface], request_of(interface, script, results)))
    if interface == "messages":
        blocks = told["content"]
        return "".join(block.get("text", "") for block in blocks), [b["input"] for b in blocks if "input" in b]
    if interface == "responses":
        texts = [item["content"][0]["text"] for item in told["output"] if item["type"] == "message"]
        calls = [json.loads(item["arguments"]) for item in told["output"] if item["type"] == "function_call"]
        return "".join(texts), calls
    if interface == "chat":
        message = told["choices"][0]["message"]
        calls = [json.loads(call["function"]["arguments"]) for call in message.get("tool_calls", ())]
        return message["content"] or "", calls
    parts = told["candidates"][0]["content"]["parts"]
    texts = [part.get("text", "") for part in parts]
    return "".join(texts), [part["functionCall"]["args"] for part in parts if "functionCall" in part]


@pytest.mark.parametrize("interface", PATHS)
def test_a_step_follows_the_other(server: Server, interface: str) -> None:
    script = [{"text": "First. ", "calls": [STEPS[1]]}, *STEPS[1:]]
    assert whole(server, interface, script, 0) == ("First. ", [CALL])
    assert whole(server, interface, script, 1) == ("", [CALL])
    assert whole(server, interface, script, 2) == ("Told 1.", [])
    assert whole(server, interface, [STEPS[1]], 1) == ("(end of script)", [])
    assert whole(server, interface, STEPS[:1], 0) == ("Hello, ä 漢.", [])


@pytest.mark.parametrize("interface", PATHS)
def test_a_stream_has_the_text_in_pieces(server: Server, interface: str) -> None:
    path = PATHS[interface].replace(":generateContent", ":streamGenerateContent?alt=sse")
    script = [{"text": "Hello there, world", "chunk": 5, "delay": 0.001}]
    body = {**request_of(interface, script, 0), "stream": True}
    lines = post(server, path, body).decode().splitlines()
    frames = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    pieces = ["Hello", " ther", "e, wo", "rld"]
    found = [frame for frame in frames if any(json.dumps(piece) in frame for piece in pieces)]
    assert len(found) == 4
    assert [piece in frame for piece, frame in zip(pieces, found, strict=True)] == [True] * 4


def test_what_is_not_for_the_model_is_refused_and_kept(server: Server) -> None:
    proxy = urllib.request.ProxyHandler({"http": server.url})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.build_opener(proxy).open("http://telemetry.invalid/x", timeout=10)
    assert refused.value.code == 403
    refused.value.close()
    assert server.refused == ["GET http://telemetry.invalid/x"]


def test_an_error_can_be_told_to_come(server: Server) -> None:
    with pytest.raises(urllib.error.HTTPError) as failed:
        whole(server, "chat", [{"error": {"status": 529, "message": "busy"}}], 0)
    assert failed.value.code == 529
    failed.value.close()


def test_the_last_script_of_a_text_counts_and_a_broken_one_does_not() -> None:
    found = find_script(f'{MARK} ["one"] then {MARK} ["two"] then {MARK} [broken')
    assert found is not None
    assert [step.text for step in found] == ["two"]
    assert find_script("no script") is None
