"""What `pilothouse hook` does: it sends a permission request of Claude Code to the hub, and prints the hub's answer.

It runs once for each request, so it loads little: no event loop, nothing of the hub. Only a complete answer of a hub
allows anything; after any failure Claude Code asks its user itself. A request that the user has answered there is
withdrawn by closing the connection. The record that Claude Code keeps of the session shows which call a request is
about and when the call ended; it is never a reason to allow anything.

The server must be the hub: a home is asked over its socket only, in a directory that only this user can change, and
another address over TLS, unless it is on this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from ..model.marks import HUB
from .http_parser import Body, BrokenAnswer, Head, parse_head, request_head
from .place import read_place


class Transcript:
    """The session's own record, read on: which call the question is about, and whether that has ended.

    The question does not name its call, and nobody tells the hook that its user has answered in the terminal; both
    show here, the call a moment after the question.
    """

    TAIL = 1 << 20

    def __init__(self, path: Any, name: Any, given: Any) -> None:
        self._path = path if isinstance(path, str) else ""
        self._asked = (name, given)
        self._at: int | None = None
        self._rest = b""
        self._calls: dict[str, None] = {}
        self._ended: set[str] = set()
        self._known: str | None = None

    @property
    def call_id(self) -> str | None:
        """The newest call of that tool with that input that has not ended. Once found it stays the one."""
        if self._known is None:
            self._known = next((one for one in reversed(self._calls) if one not in self._ended), None)
        return self._known

    @property
    def has_ended(self) -> bool:
        return self.call_id is not None and self.call_id in self._ended

    def read_on(self) -> None:
        if not Path(self._path).is_file():  # a pipe or a device has no end
            return
        with contextlib.suppress(OSError, ValueError), open(self._path, "rb") as file:  # noqa: PTH123
            if self._at is None:
                self._at = max(0, file.seek(0, os.SEEK_END) - self.TAIL)
            file.seek(self._at)
            data = file.read()
            self._at += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._note(line)

    def _note(self, line: bytes) -> None:
        if b'"tool_' not in line:
            return
        with contextlib.suppress(ValueError, RecursionError, AttributeError, TypeError, LookupError):
            for block in json.loads(line)["message"]["content"]:
                if block.get("type") == "tool_use" and (block.get("name"), block.get("input")) == self._asked:
                    self._calls[str(block["id"])] = None
                elif block.get("type") == "tool_result":
                    self._ended.add(str(block["tool_use_id"]))


EVENT = "PermissionRequest"
DIALOGS = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that ask for more than yes or no: only Claude Code's own dialog can take the answer."""
PATH = "/hooks/claude"
HEALTH = "/healthz"
CONNECT_TIMEOUT = 3.0
"""Seconds in which a hub that lives says so; after that a person may take as long as he likes."""
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds and tries after which a machine that says nothing any more is taken for gone."""
STEP = 0.25
"""Seconds between two looks whether somebody still waits for the answer."""
LARGEST = 1 << 20
LONGEST = 8 << 20
"""Bytes of a question; the hub takes no more either."""


class Refusal(Exception):
    """The hub cannot be asked, and its user should know why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the hub listens: a socket of the file system, or an address and the token that it wants there."""

    socket: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    tls: bool = False
    root: str = ""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return "localhost" if self.socket is not None else f"{host}:{self.port}"


def url_target(url: str, token: str | None) -> Target:
    """Raises Refusal."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as exc:
        raise Refusal(f"{url!r} is no address of a hub: {exc}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refusal(f"expected http://… or https://…, got {url!r}")
    if not token:
        raise Refusal(f"{url} wants a token; put it into a file and name that by --token-file")
    tls = parts.scheme == "https"
    if not tls and not _is_here(parts.hostname):
        raise Refusal(f"{url} is on another machine: without https:// anybody between could answer in the hub's name")
    return Target(host=parts.hostname, port=port, token=token, tls=tls, root=parts.path.rstrip("/"))


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


def find_target(home: Path) -> Target | None:
    """The hub of a home directory; None when none has said that it listens.

    Only its socket counts: a port that it had may be anybody's by now.
    """
    place = read_place(home)
    return Target(socket=place.socket) if place is not None and place.socket is not None else None


# -- the question -------------------------------------------------------------------------------------------------


def read_question(stream: IO[bytes]) -> dict[str, Any]:
    """What Claude Code says on standard input. Raises Refusal, OSError."""
    data = stream.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise Refusal(f"expected at most {LONGEST:,} bytes on standard input")
    return parse_question(data)


def parse_question(data: bytes) -> dict[str, Any]:
    """Raises Refusal."""
    try:
        question = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise Refusal(f"expected the JSON of a hook on standard input: {exc}") from None
    if not isinstance(question, dict):
        raise Refusal(f"expected a JSON object on standard input, got {type(question).__name__}")
    return question


def is_for_the_hub(question: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
    """Whether this is a question that the hub should hear of, and has not heard already: what it runs asks it."""
    if environ.get(HUB) or question.get("hook_event_name") != EVENT:
        return False
    return question.get("tool_name") not in DIALOGS


def output(answer: Mapping[str, Any]) -> str:
    """What Claude Code is told; nothing unless the hub has decided."""
    decision, reason = answer.get("decision"), answer.get("reason")
    told: dict[str, Any] = {"behavior": decision}
    if decision == "deny":
        told["message"] = reason if isinstance(reason, str) and reason else "Denied in Pilothouse."
    elif decision != "allow":
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": EVENT, "decision": told}})


# -- asking -------------------------------------------------------------------------------------------------------

CALL_PATIENCE = 0.5
"""Seconds in which the call of a question should show in the session's record."""


def ask(target: Target, question: Mapping[str, Any], *, listener: int | None = None) -> dict[str, Any]:
    """Put a question to the hub and wait for its answer, for as long as somebody wants it; empty for none.

    `listener` is the descriptor that the answer is to be written to. Raises Refusal when the hub said no.
    """
    if not _is_up(target):
        return {}
    transcript = Transcript(question.get("transcript_path"), question.get("tool_name"), question.get("tool_input"))
    deadline = time.monotonic() + CALL_PATIENCE
    transcript.read_on()
    while transcript.call_id is None and time.monotonic() < deadline:
        time.sleep(0.02)
        transcript.read_on()
    try:
        connection = _connect(target)
    except OSError:
        return {}
    with connection:
        connection.settimeout(CONNECT_TIMEOUT)
        try:
            connection.sendall(_request(target, question, transcript.call_id))
            answer = _answer(connection, lambda: _is_wanted(transcript, listener))
        except (OSError, BrokenAnswer, ValueError):
            return {}
    return answer


def _connect(target: Target) -> socket.socket:
    """Raises OSError."""
    if target.socket is not None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_TIMEOUT)
        try:
            connection.connect(target.socket)
            if not _is_this_users(connection):
                raise PermissionError("another user listens there")
        except OSError:
            connection.close()
            raise
        return connection
    connection = socket.create_connection((target.host, target.port), CONNECT_TIMEOUT)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if not target.tls:
        return connection
    import ssl

    return ssl.create_default_context().wrap_socket(connection, server_hostname=target.host)


_ROOT = 0


def _is_this_users(connection: socket.socket) -> bool:
    """Whether this user, or root, is at the other end; where the system does not tell, the directory has to do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    return user in (os.getuid(), _ROOT)


def _is_up(target: Target) -> bool:
    """Whether a hub answers at once: one that hangs must not keep the question from its user."""
    try:
        with _connect(target) as connection:
            deadline = time.monotonic() + CONNECT_TIMEOUT
            headers = {"Host": target.authority, "Connection": "close", "Pilothouse-Client": "hook"}
            connection.sendall(request_head("GET", target.root + HEALTH, headers))
            data = b""
            while b"\r\n\r\n" not in data and len(data) < LARGEST:
                connection.settimeout(max(0.01, deadline - time.monotonic()))
                part = connection.recv(65536)
                if not part or time.monotonic() > deadline:
                    return False
                data += part
            return parse_head(data.partition(b"\r\n\r\n")[0]).status == 200
    except (OSError, BrokenAnswer, ValueError):
        return False


FIELDS = {
    "sessionId": "session_id",
    "cwd": "cwd",
    "toolName": "tool_name",
    "toolInput": "tool_input",
    "permissionMode": "permission_mode",
}


def _request(target: Target, question: Mapping[str, Any], call_id: str | None) -> bytes:
    body = {name: question[key] for name, key in FIELDS.items() if question.get(key) is not None}
    more = {"toolCallId": call_id, "oldText": _old_text(question)}
    data = json.dumps(body | {name: value for name, value in more.items() if value is not None}).encode()
    headers = {
        "Host": target.authority,
        "Accept": "application/json",
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(data)),
        "Pilothouse-Client": "hook",
    }
    if target.token is not None:
        headers["Authorization"] = f"Bearer {target.token}"
    return request_head("POST", target.root + PATH, headers) + data


def _old_text(question: Mapping[str, Any]) -> str | None:
    """What is in the file now that would be written, so that a person sees the change; None where that is no text."""
    given = question.get("tool_input")
    if (
        question.get("tool_name") != "Write"
        or not isinstance(given, dict)
        or not isinstance(given.get("file_path"), str)
    ):
        return None
    with contextlib.suppress(OSError, ValueError):
        path = Path(str(question.get("cwd") or ""), given["file_path"])
        if path.is_file() and path.stat().st_size <= LARGEST:
            return path.read_text("utf-8")
    return None


def _is_wanted(transcript: Transcript, listener: int | None) -> bool:
    """Whether somebody still waits for the answer."""
    transcript.read_on()
    if transcript.has_ended:
        return False
    if listener is None or not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(listener, 0)  # only its end is told
    return not poll.poll(0)


def _answer(connection: socket.socket, is_wanted: Callable[[], bool]) -> dict[str, Any]:
    """The hub's answer, when it comes; empty for none. Raises Refusal, BrokenAnswer, OSError."""
    connection.settimeout(STEP)
    data, looked = b"", time.monotonic()
    while True:
        part = None
        with contextlib.suppress(TimeoutError):
            part = connection.recv(65536)
        if part == b"":
            break
        data += part or b""
        if len(data) > LARGEST:
            return {}
        if time.monotonic() - looked >= STEP:  # also while it comes in drops
            if not is_wanted():
                return {}
            looked = time.monotonic()
    head, separator, rest = data.partition(b"\r\n\r\n")
    if not separator:
        return {}
    return _parsed(parse_head(head), rest)


def _parsed(head: Head, rest: bytes) -> dict[str, Any]:
    body = Body(head)
    text = body.feed(rest)
    try:
        answer = json.loads(text.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        answer = None
    if head.status != 200:
        told = answer.get("error") if isinstance(answer, dict) else None
        why = told.get("message") if isinstance(told, dict) else None
        raise Refusal(f"the hub answered {head.status}{f': {why}' if why else ''}")
    if not body.done or body.exceeded or not isinstance(answer, dict):
        return {}  # cut off in the middle, or nobody knows where it ends: the hub always tells
    return answer


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError for an object that says something twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found
