"""Four ways to speak to a model: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini.

Each is a function that reads a request, one that makes the whole answer, and one that makes the frames of a streamed
one. No I/O; a frame is the event's name (None where the interface has none) and its data, and None is a pause.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .operations import Tool
from .scripts import Heard, Reply, pieces

Body = dict[str, Any]
Frame = tuple[str | None, Any] | None
ARGUMENT_CHUNK = 24


class Interface(NamedTuple):
    hear: Callable[[Body], Heard]
    whole: Callable[[Heard, Reply], Body]
    frames: Callable[[Heard, Reply], Iterator[Frame]]


def flat(content: Any) -> str:
    """The text in content of any nesting."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, dict):
        key = next((key for key in ("text", "content", "output", "refusal") if key in content), None)
        return flat(content[key]) if key else json.dumps(content)
    return "\n".join(map(flat, content))


# -- Anthropic Messages --


def hear_messages(body: Body) -> Heard:
    heard = Heard(body.get("model", "fake"), flat(body.get("system")))
    heard.tools = {
        tool["name"]: Tool(tool["input_schema"]) for tool in body.get("tools") or [] if "input_schema" in tool
    }
    for message in body.get("messages", []):
        content = message["content"]
        if message["role"] != "user":
            continue
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block.get("type") == "tool_result":
                heard.items.append(("result", flat(block.get("content"))))
            elif block.get("type") == "text":
                heard.items.append(("user", block["text"]))
    wanted = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    heard.schema = wanted.get("schema")
    return heard


def whole_message(heard: Heard, reply: Reply) -> Body:
    content: list[Body] = []
    if reply.step.redacted:
        content.append({"type": "redacted_thinking", "data": reply.step.redacted})
    if reply.step.think:
        content.append({"type": "thinking", "thinking": reply.step.think, "signature": "as told"})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    content += (
        {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": call.input} for call in reply.calls
    )
    return {
        "id": f"msg_{reply.key[:24]}",
        "type": "message",
        "role": "assistant",
        "model": heard.model,
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 20},
    }


def message_frames(heard: Heard, reply: Reply) -> Iterator[Frame]:
    whole = whole_message(heard, reply)
    yield _typed("message_start", message={**whole, "content": [], "stop_reason": None})
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        if kind == "redacted_thinking":
            start, deltas = block, []
        elif kind in ("text", "thinking"):
            start = {"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}
            deltas = [{"type": f"{kind}_delta", kind: piece} for piece in reply.deltas(block[kind])]
            if kind == "thinking":
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            start = {**block, "input": {}}
            written = ["", *pieces(json.dumps(block["input"]), ARGUMENT_CHUNK)]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in written]
        yield _typed("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _typed("content_block_delta", index=index, delta=delta)
            yield None
        yield _typed("content_block_stop", index=index)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _typed("message_delta", delta=ending, usage=whole["usage"])
    yield _typed("message_stop")


def _typed(kind: str, **fields: Any) -> Frame:
    return kind, {"type": kind, **fields}


# -- OpenAI Responses --


def hear_responses(body: Body) -> Heard:
    heard = Heard(body.get("model", "fake"), body.get("instructions") or "")
    _offer(heard, body.get("tools"))
    told = body.get("input") or []
    for item in [{"role": "user", "content": told}] if isinstance(told, str) else told:
        kind, role = item.get("type", "message"), item.get("role")
        if kind == "additional_tools":
            _offer(heard, item.get("tools"))
        elif kind == "message" and role == "user":
            heard.items.append(("user", flat(item.get("content"))))
        elif kind == "message" and role in ("system", "developer"):
            heard.system += flat(item.get("content"))
        elif kind.endswith("_output"):
            heard.items.append(("result", flat(item.get("output"))))
    wanted = (body.get("text") or {}).get("format") or {}
    heard.schema = wanted.get("schema") if wanted.get("type") == "json_schema" else None
    return heard


def _offer(heard: Heard, tools: Any) -> None:
    for tool in tools or []:
        kind = tool.get("type", "function")
        if kind == "namespace":
            _offer(heard, tool.get("tools"))
        elif kind in ("function", "custom"):
            heard.tools[tool["name"]] = Tool(tool.get("parameters") or {}, kind)


def whole_response(heard: Heard, reply: Reply) -> Body:
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    details = {"input_tokens_details": {"cached_tokens": 20}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": f"resp_{reply.key[:24]}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": heard.model,
        "output": list(_output(reply)),
        "usage": {**usage, **details},
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
    }


def _output(reply: Reply) -> Iterator[Body]:
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        yield {
            "type": "message",
            "id": f"msg_{reply.key[:20]}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    for call in reply.calls:
        common = {"id": f"fc_{call.id}", "call_id": f"call_{call.id}", "name": call.name, "status": "completed"}
        if call.kind == "custom":
            yield {"type": "custom_tool_call", **common, "input": call.input}
        else:
            yield {"type": "function_call", **common, "arguments": json.dumps(call.input)}


WRITTEN = {
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}


def response_frames(heard: Heard, reply: Reply) -> Iterator[Frame]:
    for number, frame in enumerate(_response_frames(heard, reply)):
        if frame is None:
            yield None
        else:
            kind, data = frame
            yield kind, {**data, "sequence_number": number}


def _response_frames(heard: Heard, reply: Reply) -> Iterator[Frame]:
    whole = whole_response(heard, reply)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield _typed("response.created", response=begun)
    yield _typed("response.in_progress", response=begun)
    for index, item in enumerate(whole["output"]):
        where = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            where["content_index"] = 0
            part = item["content"][0]
            opened = {**item, "content": [], "status": "in_progress"}
            yield _typed("response.output_item.added", output_index=index, item=opened)
            yield _typed("response.content_part.added", **where, part={**part, "text": ""})
            for piece in reply.deltas(reply.text):
                yield _typed("response.output_text.delta", **where, delta=piece, logprobs=[])
                yield None
            yield _typed("response.output_text.done", **where, text=reply.text, logprobs=[])
            yield _typed("response.content_part.done", **where, part=part)
        else:
            key, name = WRITTEN[item["type"]]
            yield _typed(
                "response.output_item.added", output_index=index, item={**item, key: "", "status": "in_progress"}
            )
            for piece in pieces(item[key], ARGUMENT_CHUNK):
                yield _typed(f"{name}.delta", **where, delta=piece)
            yield _typed(f"{name}.done", **where, **{key: item[key]})
        yield _typed("response.output_item.done", output_index=index, item=item)
    yield _typed("response.completed", response=whole)


# -- OpenAI Chat Completions --


def hear_chat(body: Body) -> Heard:
    heard = Heard(body.get("model", "fake"))
    for tool in body.get("tools") or []:
        function = tool.get("function") or {}
        heard.tools[function["name"]] = Tool(function.get("parameters") or {})
    for message in body.get("messages", []):
        role, text = message.get("role"), flat(message.get("content"))
        if role in ("system", "developer"):
            heard.system += text
        elif role in ("user", "tool"):
            heard.items.append(("user" if role == "user" else "result", text))
    wanted = body.get("response_format") or {}
    heard.schema = (wanted.get("json_schema") or {}).get("schema")
    return heard


def _chat(heard: Heard, reply: Reply, kind: str) -> Body:
    return {"id": f"chatcmpl-{reply.key[:24]}", "object": kind, "created": 1, "model": heard.model}


CHAT_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def whole_chat(heard: Heard, reply: Reply) -> Body:
    message: Body = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {"id": f"call_{call.id}", "type": "function", "function": _function(call.name, json.dumps(call.input))}
            for call in reply.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    return {**_chat(heard, reply, "chat.completion"), "choices": [choice], "usage": CHAT_USAGE}


def _function(name: str, arguments: str) -> Body:
    return {"name": name, "arguments": arguments}


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def chat_frames(heard: Heard, reply: Reply) -> Iterator[Frame]:
    base = _chat(heard, reply, "chat.completion.chunk")

    def chunk(delta: Body, finish: str | None = None) -> Frame:
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in reply.deltas(reply.text):
        yield chunk({"content": piece})
        yield None
    for index, call in enumerate(reply.calls):
        opened = {"index": index, "id": f"call_{call.id}", "type": "function", "function": _function(call.name, "")}
        yield chunk({"tool_calls": [opened]})
        for piece in pieces(json.dumps(call.input), ARGUMENT_CHUNK):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(reply))
    yield None, {**base, "choices": [], "usage": CHAT_USAGE}
    yield None, "[DONE]"


# -- Gemini --


def hear_gemini(body: Body) -> Heard:
    heard = Heard("gemini", flat((body.get("systemInstruction") or {}).get("parts")))
    for tool in body.get("tools") or []:
        for function in tool.get("functionDeclarations") or []:
            named = ("parametersJsonSchema", "parameters_json_schema", "parameters")  # the Python SDK writes the second
            schema = next((function[name] for name in named if function.get(name)), {})
            heard.tools[function["name"]] = Tool(schema)
    for content in body.get("contents", []):
        for part in content.get("parts", []) if content.get("role") in (None, "user", "function") else ():
            if "functionResponse" in part:
                heard.items.append(("result", flat(part["functionResponse"].get("response"))))
            elif "text" in part:
                heard.items.append(("user", part["text"]))
    settings = body.get("generationConfig") or {}
    heard.schema = settings.get("responseJsonSchema") or settings.get("responseSchema")
    return heard


GEMINI_USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}


def _candidate(heard: Heard, reply: Reply, parts: list[Body], *, last: bool) -> Body:
    candidate: Body = {"content": {"role": "model", "parts": parts}, "index": 0}
    made: Body = {"candidates": [candidate], "modelVersion": heard.model, "responseId": reply.key[:20]}
    if last:
        candidate["finishReason"] = "STOP"
        made["usageMetadata"] = GEMINI_USAGE
    return made


def _parts(reply: Reply) -> list[Body]:
    said: list[Body] = [{"text": piece} for piece in reply.deltas(reply.text)]
    said += ({"functionCall": {"id": f"call_{call.id}", "name": call.name, "args": call.input}} for call in reply.calls)
    return said or [{"text": ""}]


def whole_gemini(heard: Heard, reply: Reply) -> Body:
    return _candidate(heard, reply, _parts(reply), last=True)


def gemini_frames(heard: Heard, reply: Reply) -> Iterator[Frame]:
    parts = _parts(reply)
    for number, part in enumerate(parts, 1):
        yield None, _candidate(heard, reply, [part], last=number == len(parts))
        yield None


MESSAGES = Interface(hear_messages, whole_message, message_frames)
RESPONSES = Interface(hear_responses, whole_response, response_frames)
CHAT = Interface(hear_chat, whole_chat, chat_frames)
GEMINI = Interface(hear_gemini, whole_gemini, gemini_frames)
