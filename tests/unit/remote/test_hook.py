"""The hook's side of a question: only a whole answer of the hub decides anything."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pilothouse.hub.agent.process import HUB as HUB_MARK
from pilothouse.remote import hook
from pilothouse.remote.hook import (
    Refusal,
    Target,
    Transcript,
    ask,
    find_target,
    is_for_the_hub,
    output,
    parse_question,
    read_question,
    url_target,
)
from pilothouse.remote.place import Place, write_place

QUESTION: dict[str, Any] = {
    "session_id": "s-1",
    "cwd": "/work",
    "hook_event_name": "PermissionRequest",
    "permission_mode": "default",
    "tool_name": "Bash",
    "tool_input": {"command": "touch T"},
}


@contextmanager
def hub(tmp_path: Path, act: Callable[[socket.socket, bytes], None]) -> Iterator[Target]:
    """Something that listens as a hub does, is healthy, takes one question and does this with the connection."""
    path = tmp_path / "hub.sock"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen()

    def serve() -> None:
        healthy, _ = listening.accept()
        with healthy:
            assert healthy.recv(65536).startswith(b"GET /healthz ")
            healthy.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        connection, _ = listening.accept()
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            length = int(next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))[15:])
            while len(body) < length:
                body += connection.recv(65536)
            act(connection, body)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Target(socket=str(path))
    finally:
        thread.join(10)
        listening.close()
    assert not thread.is_alive()


def answering(body: bytes, status: str = "200 OK", length: int | None = None) -> Callable[[socket.socket, bytes], None]:
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n".encode()
    return lambda connection, _: connection.sendall(head + body)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "CALL_PATIENCE", 0.0)
    monkeypatch.setattr(hook, "STEP", 0.02)


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_decision_of_the_hub_is_told(tmp_path: Path, decision: str) -> None:
    asked: list[Any] = []

    def act(connection: socket.socket, body: bytes) -> None:
        asked.append(json.loads(body))
        answering(json.dumps({"decision": decision, "reason": "because"}).encode())(connection, body)

    with hub(tmp_path, act) as target:
        told = json.loads(output(ask(target, QUESTION)))
    assert told["hookSpecificOutput"]["hookEventName"] == "PermissionRequest"
    expected = {"behavior": "allow"} if decision == "allow" else {"behavior": "deny", "message": "because"}
    assert told["hookSpecificOutput"]["decision"] == expected
    assert asked == [
        {
            "sessionId": "s-1",
            "cwd": "/work",
            "toolName": "Bash",
            "toolInput": {"command": "touch T"},
            "permissionMode": "default",
        }
    ]


ALLOW = b'{"decision": "allow"}'


@pytest.mark.parametrize(
    "act",
    [
        answering(b'{"decision": "none"}'),
        answering(b'{"decision": "Allow"}'),
        answering(b'{"decision": true}'),
        answering(b"[1]"),
        answering(b"rubbish"),
        answering(b""),
        answering(ALLOW, length=len(ALLOW) + 5),
        answering(ALLOW[:-4], length=len(ALLOW)),
        lambda connection, _: connection.sendall(b"allow\r\n\r\n" + ALLOW),
        lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n" + ALLOW),
        lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n" + ALLOW),
        lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + ALLOW),
        lambda connection, _: connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nContent-Length: 21\r\n\r\n" + ALLOW
        ),
        lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + ALLOW),
        answering(ALLOW + ALLOW, length=len(ALLOW)),
        answering(b'{"decision": "deny", "decision": "allow"}'),
        answering('{"decision": "allow"}'.encode("utf-16")),
        lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\n"),
        lambda connection, _: connection.close(),
        lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + ALLOW + b" " * hook.LARGEST),
        lambda connection, _: connection.sendall(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n15\r\n" + ALLOW + b"\r\n"
        ),
    ],
)
def test_anything_less_than_a_decision_is_none(tmp_path: Path, act: Callable[[socket.socket, bytes], None]) -> None:
    with hub(tmp_path, act) as target:
        assert output(ask(target, QUESTION)) == ""


@pytest.mark.parametrize(
    "status", ["401 Unauthorized", "403 Forbidden", "404 Not Found", "500 Oh", "503 No", "201 Created", "302 Found"]
)
def test_a_refusal_is_told_to_the_user_and_allows_nothing(tmp_path: Path, status: str) -> None:
    body = b'{"decision": "allow", "error": {"message": "a token is needed"}}'
    with hub(tmp_path, answering(body, status)) as target, pytest.raises(Refusal, match="a token is needed"):
        ask(target, QUESTION)


def test_no_hub_is_no_decision(tmp_path: Path) -> None:
    assert ask(Target(socket=str(tmp_path / "none.sock")), QUESTION) == {}
    assert find_target(tmp_path) is None


def test_a_whole_decision_is_said_or_none() -> None:
    for decision in ("allow", "deny"):
        told = output({"decision": decision})
        for end in range(1, len(told)):
            with pytest.raises(ValueError):
                json.loads(told[:end])
    for word in ("ask", "approve", "ALLOW", "allow ", None, 1, ["allow"], {"behavior": "allow"}):
        assert output({"decision": word}) == ""


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as there:
        there.bind(str(path))
        there.listen()
        yield there


def test_a_hub_that_hangs_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "CONNECT_TIMEOUT", 0.05)
    with listening(tmp_path / "hub.sock"):
        assert ask(Target(socket=str(tmp_path / "hub.sock")), QUESTION) == {}


def test_an_answer_that_comes_in_drops_keeps_nobody(tmp_path: Path) -> None:
    """The listener left before the first drop; so the hook hangs up, and the drops come to an end."""
    reader, writer = socket.socketpair()

    def act(connection: socket.socket, body: bytes) -> None:
        reader.close()
        with suppress(OSError):
            while True:
                connection.sendall(b"H")
                time.sleep(0.002)

    with writer, hub(tmp_path, act) as target:
        assert ask(target, QUESTION, listener=writer.fileno()) == {}


def test_another_user_at_the_socket_is_not_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    with listening(tmp_path / "hub.sock") as there:
        here = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: here + 1)
        monkeypatch.setattr(hook, "_ROOT", -1)
        assert ask(Target(socket=str(tmp_path / "hub.sock")), QUESTION) == {}
        connection, _ = there.accept()
        with connection:
            asked.append(connection.recv(100))
    assert asked == [b""]


def test_a_home_leads_only_to_a_socket_that_is_its_owners(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    write_place(home, Place(pid=1, host="192.0.2.1", port=80))  # a port may be anybody's by now
    assert find_target(home) is None
    write_place(home, Place(pid=1, socket=str(home / "hub.sock")))
    assert find_target(home) == Target(socket=str(home / "hub.sock"))
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o777)
    write_place(home, Place(pid=1, socket=str(public / "hub.sock")))
    assert find_target(home) is None
    write_place(home, Place(pid=1, socket=str(home / "hub.sock")))
    home.chmod(0o770)  # others could have written what it says
    assert find_target(home) is None


def test_questions_have_an_end() -> None:
    with open("/dev/zero", "rb") as endless, pytest.raises(Refusal, match="at most"):
        read_question(endless)
    for odd in (b"", b"{", b"[1]", b"\xff", b"[" * 100_000):
        with pytest.raises(Refusal):
            parse_question(odd)


def test_who_no_longer_listens_hangs_up(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def act(connection: socket.socket, body: bytes) -> None:
        reader.close()
        connection.settimeout(10)
        seen.append(connection.recv(100))

    reader, writer = socket.socketpair()
    with writer, hub(tmp_path, act) as target:
        assert ask(target, QUESTION, listener=writer.fileno()) == {}
    assert seen == [b""]


def use(call_id: str, name: str = "Bash", given: Any = None) -> str:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": given or QUESTION["tool_input"]}
    return json.dumps({"type": "assistant", "message": {"content": [block]}}) + "\n"


def result(call_id: str) -> str:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
    return json.dumps({"type": "user", "message": {"content": [block]}}) + "\n"


def test_a_question_that_was_answered_in_the_terminal_is_withdrawn(tmp_path: Path) -> None:
    transcript = tmp_path / "s-1.jsonl"
    transcript.write_text(use("t-0") + result("t-0") + use("t-1") + use("t-2", given={"command": "ls"}))
    asked: list[Any] = []

    def act(connection: socket.socket, body: bytes) -> None:
        asked.append(json.loads(body)["toolCallId"])
        with transcript.open("a") as file:
            file.write(result("t-1"))
        connection.settimeout(10)
        asked.append(connection.recv(100))

    with hub(tmp_path, act) as target:
        assert ask(target, {**QUESTION, "transcript_path": str(transcript)}) == {}
    assert asked == ["t-1", b""]


def test_the_record_of_a_session_may_be_anything(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    lines = ['{"tool_use": ', '{"message": {"content": "tool_use"}}', '{"message": {"content": [7, "tool_result"]}}']
    path.write_text("\n".join([*lines, '["tool_use"]', ""]) + use("t-1")[:-1])
    transcript = Transcript(str(path), "Bash", QUESTION["tool_input"])
    transcript.read_on()
    assert transcript.call_id is None  # its line is not whole yet
    with path.open("a") as file:
        file.write("\n" + result("t-1"))
    transcript.read_on()
    assert not transcript.has_ended  # what had ended before it was known is no call that is asked about
    os.mkfifo(tmp_path / "pipe")
    for odd in (None, 7, "\0", str(tmp_path), str(tmp_path / "none"), str(tmp_path / "pipe"), "/dev/zero"):
        Transcript(odd, "Bash", {}).read_on()


def test_questions_that_are_not_for_the_hub_are_left_alone() -> None:
    assert is_for_the_hub(QUESTION, {})
    assert not is_for_the_hub(QUESTION, {HUB_MARK: "hub_1"})
    assert not is_for_the_hub({**QUESTION, "hook_event_name": "PreToolUse"}, {})
    assert not is_for_the_hub({**QUESTION, "tool_name": "AskUserQuestion"}, {})
    assert not is_for_the_hub({}, {})


def test_what_a_write_would_replace_is_sent_along(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
    os.mkfifo(tmp_path / "pipe")
    for name, told in (("a.txt", "old\n"), ("b.bin", None), ("none", None), ("pipe", None)):
        given = {"file_path": str(tmp_path / name), "content": "new\n"}
        assert hook._old_text({**QUESTION, "tool_name": "Write", "tool_input": given}) == told
    assert (
        hook._old_text({**QUESTION, "tool_name": "Read", "tool_input": {"file_path": str(tmp_path / "a.txt")}}) is None
    )


@pytest.mark.parametrize("url", ["", "hub", "ftp://x", "http://", "http://x:abc", "http://[::1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Refusal):
        url_target(url, "token")
    with pytest.raises(Refusal, match="token"):
        url_target("http://127.0.0.1:1", None)


def test_another_machine_is_asked_by_tls_only() -> None:
    for url in ("http://127.0.0.1:7717", "http://localhost", "http://[::1]:7", "https://hub.example.org/here"):
        assert url_target(url, "token").token == "token"
    for url in ("http://hub.example.org", "http://10.0.0.1:7717", "http://127.0.0.1.example.org", "http://1270.0.0.1"):
        with pytest.raises(Refusal, match="https://"):
            url_target(url, "token")


def test_the_hook_loads_neither_a_loop_nor_the_hub() -> None:
    code = "import sys, pilothouse.cli, pilothouse.cli.commands.hooks, pilothouse.remote.hook\nprint(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    heavy = {"asyncio", "ssl", "sqlite3", "rich", "starlette", "psutil", "pilothouse.hub", "pilothouse.app"}
    assert not loaded & heavy


def test_the_hook_loads_little_as_somebody_waits_for_each_of_its_questions() -> None:
    code = "import sys, pilothouse.remote.hook; print(*(name for name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = ("asyncio", "pilothouse.acp", "pilothouse.adapters", "pilothouse.hub", "pilothouse.server", "ssl")
    assert [name for name in loaded if name.startswith(heavy)] == []


def test_lines_of_a_record_that_are_no_messages_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    odd: list[Any] = [
        {"type": "progress", "data": {"tool_use_id": "x"}},
        {"message": {"content": [{"type": "tool_result"}]}},
        {"message": "tool_"},
        ["tool_"],
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in odd) + use("t-1"))
    transcript = Transcript(str(path), "Bash", QUESTION["tool_input"])
    transcript.read_on()
    assert transcript.call_id == "t-1"
