"""One side of a JSON-RPC conversation, without I/O.

The driver hands every received line to `receive` and acts on what comes back; for sending it asks `request`,
`notify`, `respond` or `cancel` for the bytes. Ids, correlation and the rules about malformed input live here and
can be tested without a loop.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .errors import INVALID_REQUEST, PARSE_ERROR, RequestError
from .framing import Oversize
from .jsonrpc import (
    TOO_DEEP,
    Message,
    RequestId,
    decode_message,
    encode_error,
    encode_notification,
    encode_request,
    error_from_wire,
    is_too_deep,
    with_whole_characters,
)
from .methods import CANCEL_REQUEST
from .model import encode

__all__ = ["Malformed", "Message", "Peer", "Response", "Unmatched"]

T = TypeVar("T")

# An abandoned request is remembered so that its late answer is not reported as a stray one; a peer that never
# answers must not make that memory grow.
MAX_ABANDONED = 1024
EXCERPT = 500

_DEEP_ANSWER = Raw(encode({"code": PARSE_ERROR, "message": f"the answer is {TOO_DEEP}"}))


class Response(NamedTuple, Generic[T]):
    """An answer to a request of this side; `token` is what was given to `request`."""

    token: T
    result: Raw | None
    error: RequestError | None


class Unmatched(NamedTuple):
    """A response that belongs to no open request. `late` when the request was cancelled by this side."""

    id: Any
    late: bool
    error: RequestError | None


class Malformed(NamedTuple):
    """A line that is no message. `reply` is what a server owes its sender; None where nobody can wait for one."""

    reason: str
    excerpt: str
    reply: bytes | None


class Peer(Generic[T]):
    def __init__(self) -> None:
        self._next_id = 0
        self._open: dict[RequestId, T] = {}
        self._abandoned: dict[RequestId, None] = {}

    # -- sending --

    def request(self, method: str, params: Any, token: T) -> tuple[RequestId, bytes]:
        """The id and the bytes of a new request. The driver must send the bytes or call `abandon`."""
        request_id = self._next_id
        frame = encode_request(request_id, method, params)
        self._next_id += 1
        self._open[request_id] = token
        return request_id, frame

    def notify(self, method: str, params: Any = None) -> bytes:
        return encode_notification(method, params)

    def cancel(self, request_id: RequestId) -> bytes | None:
        """The bytes that ask the peer to drop a request, or None when it has been answered already."""
        if not self.abandon(request_id):
            return None
        return encode_notification(CANCEL_REQUEST, {"requestId": request_id})

    def abandon(self, request_id: RequestId) -> bool:
        """Forget a request; its answer, should it still come, is `Unmatched` and late."""
        if self._open.pop(request_id, None) is None:
            return False
        self._abandoned[request_id] = None
        if len(self._abandoned) > MAX_ABANDONED:
            del self._abandoned[next(iter(self._abandoned))]
        return True

    def close(self) -> list[T]:
        """The tokens of all open requests; none of them will be answered any more."""
        tokens = list(self._open.values())
        self._open.clear()
        return tokens

    # -- receiving --

    def receive(self, line: bytes | Oversize) -> Message | Response[T] | Unmatched | Malformed:
        """What a line means. A `Message` is a request when it has an id, else a notification."""
        if isinstance(line, Oversize):
            reason = f"line of {line.size} bytes is over the limit"
            return _malformed(INVALID_REQUEST, reason, line.head, _id_before_params(line.head))
        return self._read(line, is_mended=False)

    def _read(self, line: bytes, *, is_mended: bool) -> Message | Response[T] | Unmatched | Malformed:
        try:
            message = decode_message(line)
        except msgspec.ValidationError as exc:
            return _malformed(INVALID_REQUEST, f"not a JSON-RPC message: {exc}", line, _readable_id(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            # whoever cuts texts cuts characters, and some write a mark of their encoding before the first line; a
            # request or an answer must not be lost for that
            whole = line if is_mended else with_whole_characters(line.removeprefix(BOM_UTF8))
            if whole != line:
                return self._read(whole, is_mended=True)
            return _malformed(PARSE_ERROR, f"not JSON: {exc}", line, _id_before_params(line))
        except RecursionError:
            return self._too_deep(line, _outlined(line))
        if is_too_deep(line):
            return self._too_deep(line, message)
        if message.method is not UNSET:
            return message
        if message.id is UNSET:
            return _malformed(INVALID_REQUEST, "neither a method nor an id", line)._replace(reply=None)
        return self._response(message)

    def _too_deep(self, line: bytes, message: Message) -> Response[T] | Unmatched | Malformed:
        """Nothing of it is used but its id, so that whoever waits, on either side, is told."""
        if message.method is UNSET and message.id is not UNSET:
            return self._response(Message(id=message.id, error=_DEEP_ANSWER))
        if message.method is not UNSET and message.id is UNSET:
            return _malformed(PARSE_ERROR, TOO_DEEP, line)._replace(reply=None)
        request_id = None if isinstance(message.id, UnsetType) else message.id
        return _malformed(PARSE_ERROR, TOO_DEEP, line, request_id)

    def _response(self, message: Message) -> Response[T] | Unmatched:
        key = self._key(message.id)
        has_result = not isinstance(message.result, UnsetType)
        error = None
        if not isinstance(message.error, UnsetType) and not (has_result and bytes(message.error) == b"null"):
            error = error_from_wire(message.error)  # some peers send `"result": null` beside it, others the reverse
        if key not in self._open:
            late = key in self._abandoned
            self._abandoned.pop(key, None)
            return Unmatched(message.id, late, error)
        token = self._open.pop(key)
        if error is not None or isinstance(message.result, UnsetType):
            return Response(token, None, error)
        return Response(token, message.result, None)

    def _key(self, request_id: Any) -> RequestId:
        """Some peers echo a numeric id as a string, or as a number with a point."""
        if isinstance(request_id, float) and request_id.is_integer():
            return int(request_id)
        if (
            isinstance(request_id, str)
            and request_id not in self._open
            and request_id.isascii()
            and request_id.isdigit()
        ):
            return int(request_id) if len(request_id) < 20 else request_id
        return request_id  # type: ignore[no-any-return]


def _readable_id(line: bytes) -> RequestId:
    """The id of something that is no message but was meant as a request, so that its sender need not wait."""
    try:
        obj = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    request_id = obj.get("id") if isinstance(obj, dict) and "method" in obj else None
    return request_id if isinstance(request_id, (int, str)) and not isinstance(request_id, bool) else None


def _id_before_params(head: bytes) -> RequestId:
    """The id of a request of which only the beginning can be read, if it stands there as it does with most peers."""
    before, found, _ = head.partition(b'"params"')
    return _readable_id(before.rstrip().removesuffix(b",") + b"}") if found else None


_CONTENT = re.compile(rb'"(params|result|error)"')


def _outlined(line: bytes) -> Message:
    """What can be read of a message beside the part that cannot, where most peers write it: the id and the method."""
    content = _CONTENT.search(line)
    if content is None:
        return Message()
    try:
        message = decode_message(line[: content.start()].rstrip().removesuffix(b",") + b"}")
        if message.id is UNSET:
            message.id = decode_message(b"{" + line[line.rfind(b'"id"') :]).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Message()
    if content[1] == b"params" and message.method is UNSET:
        message.method = ""  # whichever it is, this is no answer
    return message


def _malformed(code: int, reason: str, line: bytes, request_id: RequestId = None) -> Malformed:
    excerpt = line[:EXCERPT].decode(errors="replace")
    title = "Parse error" if code == PARSE_ERROR else "Invalid request"
    return Malformed(reason, excerpt, encode_error(request_id, RequestError(code, title, {"reason": reason})))
