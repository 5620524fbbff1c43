"""JSON-RPC 2.0 messages: one line of bytes to a `Message` and back.

Params, results and errors stay raw JSON here, so that each message is decoded into its type exactly once, and a proxy
can pass it on untouched. JSON that is nested too deeply is not read: decoders and encoders recurse for each level, and
one fixed limit makes sure that what is read can be handled everywhere.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from .errors import INTERNAL_ERROR, RequestError
from .model import encode

DEEPEST = 128
"""Levels of objects and lists. What people and programs write has a few; what a program makes of itself some dozens."""
TOO_DEEP = f"nested too deeply: more than {DEEPEST} objects and lists in one another"


def is_deep(value: Any) -> bool:
    """Whether a value, as the decoder gives it, is nested more deeply than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST + 1):
        outer = [part for part in level if type(part) is dict or type(part) is list]
        if not outer:
            return False
        level = [inner for part in outer for inner in (part.values() if type(part) is dict else part)]
    return True


def is_too_deep(data: bytes) -> bool:
    """The same for JSON, most of which needs no look; for what is no JSON it does not matter."""
    if len(data) <= 2 * DEEPEST or data.count(b"{") + data.count(b"[") <= DEEPEST:
        return False
    try:
        return is_deep(msgspec.json.decode(data))
    except RecursionError:
        return True
    except (msgspec.DecodeError, UnicodeError):
        return False


RequestId = int | float | str | None


class Message(Struct, gc=False):
    """The envelope of a request (`method` and `id`), a notification (`method`) or a response (`id`)."""

    method: str | UnsetType = UNSET
    id: int | float | str | UnsetType | None = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


decode_message = msgspec.json.Decoder(Message).decode
"""Raises msgspec.DecodeError for what is no JSON, msgspec.ValidationError for JSON that is no message."""


_ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def with_whole_characters(line: bytes) -> bytes:
    """A line in which every half of a surrogate pair, which no decoder takes, is U+FFFD; all else is as it was."""
    if b"\\ud" not in line and b"\\uD" not in line:
        return line
    return _ESCAPE.sub(lambda found: found[0] if found[2] is None else b"\\ufffd", line)


@cache
def _head(method: str) -> bytes:
    return encode(method)


def _body(value: Any) -> bytes:
    if isinstance(value, (Raw, bytes, bytearray, memoryview)):
        raw = bytes(value)
        # one message is one line: JSON that was written over several is folded
        return msgspec.json.format(raw, indent=-1) if b"\n" in raw or b"\r" in raw else raw
    return encode(value)


def encode_notification(method: str, params: Any = None) -> bytes:
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}\n' % _head(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (_head(method), _body(params))


def encode_request(request_id: RequestId, method: str, params: Any = None) -> bytes:
    if params is None:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}\n' % (encode(request_id), _head(method))
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}\n' % (encode(request_id), _head(method), _body(params))


def encode_result(request_id: RequestId, result: Any) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode(request_id), _body(result))


def encode_error(request_id: RequestId, error: RequestError) -> bytes:
    try:
        body = encode(error.to_error_obj())
    except (TypeError, ValueError, RecursionError):
        # not JSON, or text with lone surrogates, as file names may have: said as well as it can be
        body = encode({"code": error.code, "message": _printable(error.message), "data": _printable(repr(error.data))})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (encode(request_id), body)


def _printable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def error_from_wire(raw: Raw) -> RequestError:
    """Read an error member, whatever it is: objects as specified, but also bare texts and numbers."""
    try:
        error = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RequestError(INTERNAL_ERROR, "Error", {"raw": bytes(raw)[:1000].decode(errors="replace")})
    if isinstance(error, dict):
        code = error.get("code")
        message = error.get("message")
        return RequestError(
            code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
            message if isinstance(message, str) else "Error",
            error.get("data") if isinstance(message, str) else error,
        )
    return RequestError(INTERNAL_ERROR, error if isinstance(error, str) else f"Error: {error!r}")
