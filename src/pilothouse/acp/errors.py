"""What can go wrong, as one tree.

    ProtocolError
    ├── LocalProtocolError      this side used the library wrongly
    │   └── ValidationError     a value does not fit the schema (also a ValueError)
    ├── RemoteProtocolError     the peer broke the rules
    ├── SpawnError              a program could not be started
    └── ConnectionClosed        the peer is gone (also a ConnectionError)

    RequestError                a JSON-RPC error: raised by a handler to answer with it,
                                raised by a call when the peer answered with one

Every message says what was expected and what came.
"""

from __future__ import annotations

import signal
from typing import Any

__all__ = [
    "ConnectionClosed",
    "LocalProtocolError",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestError",
    "SpawnError",
    "ValidationError",
    "how_it_ended",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002

LAST_WORDS = 2000
"""Characters of a dead child's stderr in the text of an error; its `stderr_tail` has more."""


class ProtocolError(Exception):
    """Base of everything this library raises by itself."""


class LocalProtocolError(ProtocolError):
    """This side tried to do something the protocol does not allow."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that cannot be understood."""


class ValidationError(LocalProtocolError, ValueError):
    """A value does not fit its schema type; `path` names the field."""

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(f"{message} - at `{path}`" if path else message)
        self.reason = message
        self.path = path

    def errors(self) -> list[dict[str, Any]]:
        """The same facts in the shape that callers of pydantic read."""
        loc = tuple(part for part in self.path.lstrip("$").replace("[", ".").replace("]", "").split(".") if part)
        missing = self.reason.partition("missing required field `")[2].partition("`")[0]
        loc += (missing,) if missing else ()
        return [{"loc": loc, "msg": self.reason, "type": "value_error"}]


class SpawnError(ProtocolError, OSError):
    """A program could not be started; the message names it and where it was looked for."""


class ConnectionClosed(ProtocolError, ConnectionError):
    """The connection has ended, so no answer will come.

    `exit_code` and `stderr_tail` are known when the peer was a process that this side started.
    """

    def __init__(
        self,
        message: str = "Connection closed",
        *,
        exit_code: int | None = None,
        stderr_tail: str = "",
    ) -> None:
        parts = [message]
        if exit_code is not None:
            parts.append(f"exit code {exit_code}" if exit_code >= 0 else f"killed by signal {-exit_code}")
        text = ": ".join(parts)
        if stderr_tail:
            text = f"{text}\n--- stderr ---\n{stderr_tail.rstrip()[-LAST_WORDS:]}"
        super().__init__(text)
        self.reason = message
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


def with_cause(message: str, data: Any) -> str:
    """The message of an error, with the cause that came along in its `data`, if any."""
    if isinstance(data, dict):
        for key in ("details", "reason"):
            if isinstance(cause := data.get(key), str) and cause and cause not in message:
                return f"{message}: {cause}"
    return message


class RequestError(Exception):
    """A JSON-RPC error object as an exception."""

    def __init__(self, code: int, message: str, data: Any | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    @property
    def message(self) -> str:
        """The message as it stands on the wire."""
        return str(self.args[0])

    def __str__(self) -> str:
        """The message, with the cause that came along in `data`, if any."""
        return with_cause(self.message, self.data)

    def __repr__(self) -> str:
        return f"RequestError({self.code}, {self.args[0]!r}, {self.data!r})"

    @classmethod
    def parse_error(cls, data: dict[str, Any] | None = None) -> RequestError:
        return cls(PARSE_ERROR, "Parse error", data)

    @classmethod
    def invalid_request(cls, data: dict[str, Any] | None = None) -> RequestError:
        return cls(INVALID_REQUEST, "Invalid request", data)

    @classmethod
    def method_not_found(cls, method: str) -> RequestError:
        return cls(METHOD_NOT_FOUND, "Method not found", {"method": method})

    @classmethod
    def invalid_params(cls, data: dict[str, Any] | None = None) -> RequestError:
        return cls(INVALID_PARAMS, "Invalid params", data)

    @classmethod
    def internal_error(cls, data: dict[str, Any] | None = None) -> RequestError:
        return cls(INTERNAL_ERROR, "Internal error", data)

    @classmethod
    def auth_required(cls, data: dict[str, Any] | None = None) -> RequestError:
        return cls(AUTH_REQUIRED, "Authentication required", data)

    @classmethod
    def resource_not_found(cls, uri: str | None = None) -> RequestError:
        return cls(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri} if uri is not None else None)

    @classmethod
    def request_cancelled(cls, data: dict[str, Any] | None = None) -> RequestError:
        return cls(REQUEST_CANCELLED, "Request cancelled", data)

    def to_error_obj(self) -> dict[str, Any]:
        """The error object as it stands on the wire."""
        obj: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            obj["data"] = self.data
        return obj


def how_it_ended(exit_code: int) -> str:
    """In words; a process that a signal ended has the number of it, negative, for its exit code."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"
