"""Lines of the CLI as tests write them: only what matters."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ask",
    "assistant",
    "block_start",
    "delta",
    "init",
    "message_start",
    "result",
    "stream",
    "system",
    "text",
    "tool_result",
    "use",
    "user",
]

Json = dict[str, Any]


def init(**fields: Any) -> Json:
    known = {"cwd": "/work", "model": "opus", "permissionMode": "default", "session_id": "s"}
    return {"type": "system", "subtype": "init", **known, **fields}


def system(subtype: str, **fields: Any) -> Json:
    return {"type": "system", "subtype": subtype, "session_id": "s", **fields}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def use(name: str, call_id: str = "t1", **given: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def assistant(*blocks: Json, parent: str | None = None, message_id: str = "m1", **fields: Any) -> Json:
    message = {"role": "assistant", "id": message_id, "model": "opus", "content": list(blocks)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent, **fields}


def user(content: Any, **fields: Any) -> Json:
    return {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None, **fields}


def tool_result(content: Any, call_id: str = "t1", *, error: bool = False, told: Any = None, **fields: Any) -> Json:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": error}
    return user([block], tool_use_result=told, **fields)


def result(subtype: str = "success", **fields: Any) -> Json:
    known = {"is_error": subtype != "success", "result": "", "terminal_reason": "completed"}
    return {"type": "result", "subtype": subtype, **known, **fields}


def stream(kind: str, parent: str | None = None, **fields: Any) -> Json:
    return {"type": "stream_event", "event": {"type": kind, **fields}, "parent_tool_use_id": parent}


def message_start(message_id: str = "m1", parent: str | None = None) -> Json:
    return stream("message_start", parent, message={"id": message_id})


def block_start(kind: str, index: int = 0, parent: str | None = None, **fields: Any) -> Json:
    return stream("content_block_start", parent, index=index, content_block={"type": kind, **fields})


def delta(words: str, index: int = 0, kind: str = "text", parent: str | None = None) -> Json:
    key = {"text": "text", "thinking": "thinking", "input_json": "partial_json"}[kind]
    return stream("content_block_delta", parent, index=index, delta={"type": f"{kind}_delta", key: words})


def ask(name: str, call_id: str = "t1", request_id: str = "r1", given: Json | None = None, **fields: Any) -> Json:
    request = {"subtype": "can_use_tool", "tool_name": name, "tool_use_id": call_id, "input": given or {}, **fields}
    return {"type": "control_request", "request_id": request_id, "request": request}
