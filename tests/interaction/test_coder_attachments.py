"""What comes with a prompt besides words: the model gets it, or reads that it does not, and the session goes on."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import BinaryContent
from pydantic_ai.exceptions import ContentFilterError, ModelConnectionError, ModelHTTPError

from pilothouse.acp import (
    McpServerStdio,
    RequestError,
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
)
from tests.support.coders import Answer, Script, coder, prompts, results

LOOK: tuple[Any, ...] = ("look", image_block("aGk=", "image/png"))
WORDS = "[An attachment, type image/png, 2 bytes, was left out: the model's server did not take it.]"
BLIND = ModelHTTPError(400, "lab", {"message": "this model cannot see"})


def blob(uri: str, data: bytes, kind: str | None = None) -> Any:
    return resource_block(embedded_blob_resource(uri, base64.b64encode(data).decode(), mime_type=kind))


def image(data: bytes, kind: str) -> Any:
    return image_block(base64.b64encode(data).decode(), kind)


def seen(script: Script) -> list[list[str]]:
    """What the model was last told by the user, of attachments the type."""
    return [[getattr(one, "media_type", one) for one in content] for content in prompts(script.heard[-1])]


class Blind(Script):
    """A model whose server refuses every conversation with a picture in it."""

    def _next(self, messages: Any, info: Any) -> Answer:
        if not any(isinstance(one, BinaryContent) for content in prompts(messages) for one in content):
            return super()._next(messages, info)
        self.heard.append(list(messages))
        return Answer(error=BLIND)


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (blob("file:///a.zip", b"PK\x03\x04\xff", "application/zip"), "file:///a.zip, type application/zip, 5 bytes"),
        (blob("file:///a.bin", b"\0\1"), "file:///a.bin, type application/octet-stream, 2 bytes"),
        (image(b"\xff\xfe", "x/evil"), "prompt[1], type x/evil, 2 bytes"),
        (image(b"\xff\xfe", ""), "prompt[1], type application/octet-stream, 2 bytes"),
    ],
    ids=["zip", "no type", "odd type", "empty type"],
)
async def test_what_no_model_takes_is_told_to_it_in_words(tmp_path: Path, block: Any, told: str) -> None:
    script = Script(["I cannot see it.", "Yes."])
    async with coder(script, tmp_path) as client:
        assert (await client.say("look", block)).stop_reason == "end_turn"
        assert (await client.say("again")).stop_reason == "end_turn"
    assert prompts(script.heard[0]) == [
        ["look", f"[An attachment, {told}, was left out: models do not take this type.]"]
    ]


@pytest.mark.parametrize(
    ("block", "given"),
    [
        (blob("file:///a.json", b'{"a": 1}', "application/json"), '<file uri="file:///a.json">\n{"a": 1}\n</file>'),
        (blob("file:///LICENSE", b"free"), '<file uri="file:///LICENSE">\nfree\n</file>'),
        (resource_block(embedded_text_resource("file:///a", "x")), '<file uri="file:///a">\nx\n</file>'),
        (blob("file:///a.png", b"\x89P"), BinaryContent(b"\x89P", media_type="image/png")),
        (image(b"x", "IMAGE/PNG; q=1"), BinaryContent(b"x", media_type="image/png")),
        (audio_block("eA==", "audio/wav"), BinaryContent(b"x", media_type="audio/wav")),
        (blob("file:///a.pdf", b"%", "application/pdf"), BinaryContent(b"%", media_type="application/pdf")),
    ],
    ids=["json", "text without a type", "text", "type by name", "type with more", "sound", "pdf"],
)
async def test_an_attachment_may_be_all_that_is_said(tmp_path: Path, block: Any, given: Any) -> None:
    script = Script(["I see."])
    async with coder(script, tmp_path) as client:
        assert (await client.say("", block, " \n")).stop_reason == "end_turn"
    assert prompts(script.heard[0]) == [[given]]


@pytest.mark.parametrize("blocks", [(), ("",), (" \n", "")])
async def test_a_prompt_of_nothing_is_refused_and_not_remembered(tmp_path: Path, blocks: tuple[str, ...]) -> None:
    script = Script(["Yes."])
    async with coder(script, tmp_path) as client:
        with pytest.raises(RequestError) as caught:
            await client.say(*blocks)
        assert caught.value.data == {"field": "prompt", "reason": "there is nothing in it"}
        await client.say("hello")
    assert prompts(script.heard[0]) == [["hello"]]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (BLIND, "invalid_request"),
        (ModelHTTPError(404, "lab", "no endpoint takes images"), "not_found"),
        (ModelHTTPError(500, "lab", "image input is not supported"), "server_error"),
        (RuntimeError("Unsupported binary content type"), "invalid_request"),
        (AssertionError(), "invalid_request"),
        (ExceptionGroup("several", [KeyError("type")]), "invalid_request"),
    ],
    ids=["400", "404", "500", "library", "assertion", "group"],
)
async def test_a_refused_attachment_is_told_by_its_place_and_the_session_goes_on(
    tmp_path: Path, error: Exception, kind: str
) -> None:
    script = Script(["Yes.", Answer(error=error), "On we go."])
    home = tmp_path / "home"
    async with coder(script, tmp_path, home=home) as client:
        await client.say("hello")
        with pytest.raises(RequestError, match=r"left out from now on: prompt\[1\], type image") as caught:
            await client.say(*LOOK)
        assert caught.value.data["errorKind"] == kind
        assert caught.value.data["leftOut"] == ["prompt[1], type image/png, 2 bytes"]
        session = client.session
    async with coder(script, tmp_path, home=home, session=False) as client:
        client.session = session
        await client.agent.resume_session(session_id=session, cwd=str(tmp_path))
        assert (await client.say("never mind")).stop_reason == "end_turn"
    assert prompts(script.heard[-1]) == [["hello"], ["look", WORDS], ["never mind"]]


async def test_an_attachment_is_kept_where_it_is_not_the_reason(tmp_path: Path) -> None:
    script = Script([Answer(error=ModelConnectionError("lab", "nobody there")), "I see.", Answer(error=BLIND), "Yes."])
    async with coder(script, tmp_path) as client:
        with pytest.raises(RequestError) as caught:
            await client.say(*LOOK)
        assert "leftOut" not in caught.value.data
        await client.say("now?")
        # refused for what is new, and not for what was taken before
        with pytest.raises(RequestError, match=r"prompt\[0\], type audio/wav"):
            await client.say(audio_block("eA==", "audio/wav"))
        await client.say("on")
    assert seen(script) == [["look", "image/png"], ["now?"], [WORDS.replace("image/png, 2", "audio/wav, 1")], ["on"]]


async def test_a_model_that_does_not_take_what_another_took_goes_on_without_it(tmp_path: Path) -> None:
    seeing, blind = Script(["I see."]), Blind(["As you said.", "Yes."])
    models = {"lab:seeing": seeing, "lab:blind": blind}
    async with coder(seeing, tmp_path, resolve=lambda name: models.get(name, seeing).model()) as client:
        await client.say(*LOOK)
        await client.agent.set_config_option("model", client.session, "lab:blind")
        assert (await client.say("what was it?")).stop_reason == "end_turn"
        assert "trying again without its attachments" in client.thoughts
        await client.say("and on")
    assert prompts(blind.heard[-1]) == [["look", WORDS], ["what was it?"], ["and on"]]
    assert len(blind.heard) == 3


async def test_a_refusal_for_another_reason_costs_no_attachment(tmp_path: Path) -> None:
    script = Script(["I see.", Answer(error=BLIND), Answer(error=BLIND), "Yes."])
    async with coder(script, tmp_path) as client:
        await client.say(*LOOK)
        with pytest.raises(RequestError, match="cannot see"):
            await client.say("on")
        await client.say("again")
    assert seen(script) == [["look", "image/png"], ["on"], ["again"]]


SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "x", "version": "1"}
        case "tools/list":
            result = {"tools": [{"name": "draw", "inputSchema": {"type": "object"}}]}
        case _:
            result = {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_a_refused_picture_of_a_tool_is_left_out_too(tmp_path: Path) -> None:
    script = Script([[("lab__draw", {})], Answer(error=BLIND), "On we go."])
    server = McpServerStdio(name="lab", command=sys.executable, args=["-c", SERVER], env=[])
    async with coder(script, tmp_path, session=False) as client:
        client.session = (await client.agent.new_session(cwd=str(tmp_path), mcp_servers=[server])).session_id
        with pytest.raises(RequestError, match="left out from now on: type image/png"):
            await client.say("draw")
        assert client.is_settled()
        assert (await client.say("never mind")).stop_reason == "end_turn"
    assert results(script.heard[-1]) == [WORDS]


async def test_what_the_model_refuses_to_answer_is_not_said_to_it_again(tmp_path: Path) -> None:
    script = Script(["Yes.", Answer(error=ContentFilterError("filtered")), "Of course."])
    async with coder(script, tmp_path) as client:
        await client.say("hello")
        assert (await client.say("something bad", LOOK[1])).stop_reason == "refusal"
        assert (await client.say("something good")).stop_reason == "end_turn"
    assert prompts(script.heard[-1]) == [["hello"], ["something good"]]
