"""The built-in agent and a server of Chat Completions, down to the bytes: what is sent, and answers without an end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilothouse.acp import RequestError
from pilothouse.agents.coder.host import Options
from pilothouse.agents.coder.models import resolve
from tests.support.coders import Client, Script, coder

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def piece(text: str, reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


@asynccontextmanager
async def serving(pieces: Sequence[dict[str, Any] | bytes]) -> AsyncIterator[tuple[str, list[Any]]]:
    """A model's name, and the bodies of the requests to it. Each is answered with these pieces, and closed."""
    bodies: list[Any] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        (length,) = [line.partition(":")[2] for line in head.split("\r\n") if line.startswith("content-length:")]
        bodies.append(json.loads(await reader.readexactly(int(length))))
        said = [one if isinstance(one, bytes) else b"data: %s\n\n" % json.dumps(one).encode() for one in pieces]
        writer.write(HEAD + b"".join(said))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"openai:m@http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", bodies


def talking(model: str, cwd: Path) -> AbstractAsyncContextManager[Client]:
    return coder(Script([]), cwd, options=Options(model=model), resolve=resolve)


@pytest.mark.parametrize("reason", ["stop", None])
async def test_an_answer_without_an_end_is_told_of(tmp_path: Path, reason: str | None) -> None:
    async with serving([piece("Hello "), piece("wor", reason)]) as (model, _), talking(model, tmp_path) as client:
        await client.say("go")
    assert client.text == "Hello wor"
    assert ("did not send its answer to the end" in client.thoughts) == (reason is None)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"<html>Log in first</html>", "no answer; at an address of your own, look whether that is the right one"),
        (b"data: {oops\n\n", "What the model's server sent cannot be read: Expecting property name"),
        (b'data: {"caf\xe9": 1}\n\n', "What the model's server sent cannot be read: 'utf-8' codec"),
    ],
)
async def test_what_is_no_answer_of_a_model_is_told_as_that(tmp_path: Path, said: bytes, told: str) -> None:
    async with serving([said]) as (model, _), talking(model, tmp_path) as client:
        with pytest.raises(RequestError) as caught:
            await client.say("go")
    assert told in caught.value.message
    assert "reached" not in caught.value.message


async def test_a_call_of_a_tool_without_a_name_is_shown_as_that(tmp_path: Path) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "", "arguments": "{}"}}
    whole = piece("", "tool_calls")
    whole["choices"][0]["delta"] = {"role": "assistant", "tool_calls": [call]}
    async with serving([whole]) as (model, _), talking(model, tmp_path) as client:
        with pytest.raises(RequestError):  # it says the same again and again
            await client.say("go")
    assert {call["title"] for call in client.calls.values()} == {"A tool without a name"}
    assert client.is_settled()


async def test_what_the_model_is_told_of_its_work_is_one_message(tmp_path: Path) -> None:
    async with serving([piece("Yes.", "stop")]) as (model, bodies), talking(model, tmp_path) as client:
        await client.say("go")
    (body,) = bodies
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "You are a coding agent" in body["messages"][0]["content"]
    assert "code mode" in body["messages"][0]["content"]
