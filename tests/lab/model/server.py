"""The scripted model behind HTTP on a free port of 127.0.0.1, in a thread of its own.

It is also the proxy that agents are given: whatever they want from elsewhere is refused at once, and kept in `refused`.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .interfaces import CHAT, GEMINI, MESSAGES, RESPONSES, Body
from .scripts import Reply, answer

BY_PATH = {"/messages": MESSAGES, "/responses": RESPONSES, "/chat/completions": CHAT}
GEMINI_PATH = re.compile(r"/models/[^:/]+:(\w+)$")
MODEL = {"id": "fake-model", "object": "model", "created": 0, "owned_by": "lab", "type": "model"}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.refused: list[str] = []
        self.problems: list[str] = []
        self.stopping = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Agents go away in the middle of things; anything else is a defect here."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            self.problems.append(repr(error))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    # -- requests --

    def do_CONNECT(self) -> None:
        self._refuse()

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        if self.path.startswith("http"):
            self._refuse()
        elif path.endswith("/models"):
            self._json({"object": "list", "data": [MODEL], "models": [{"name": "models/fake"}], "has_more": False})
        else:
            self._json({"error": {"type": "not_found_error", "message": path}}, 404)

    def do_POST(self) -> None:
        data = self._body()
        path = self.path.partition("?")[0]
        try:
            if self.path.startswith("http"):
                self._refuse()
            elif path.endswith(("/count_tokens", ":countTokens")):
                self._json({"input_tokens": len(data) // 4, "totalTokens": len(data) // 4})
            else:
                self._model(path, json.loads(data or b"{}"))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception as exc:  # a defect here must be seen in the test, not taken for the agent's
            self.server.problems.append(f"{path}: {exc!r}")
            self.close_connection = True

    def _model(self, path: str, body: Body) -> None:
        streams = bool(body.get("stream"))
        interface = next((found for end, found in BY_PATH.items() if path.endswith(end)), None)
        if interface is None and (found := GEMINI_PATH.search(path)):
            interface, streams = GEMINI, found[1] == "streamGenerateContent"
        if interface is None:
            self._json({"error": {"type": "not_found_error", "message": path}}, 404)
            return
        heard = interface.hear(body)
        reply = answer(heard)
        self.server.stopping.wait(reply.step.hang)
        if reply.step.error is not None:
            self._fail(reply.step.error)
        elif streams:
            self._stream(interface.frames(heard, reply), reply)
        elif reply.step.drop is not None:
            self._break()
        else:
            self._json(interface.whole(heard, reply))

    def _body(self) -> bytes:
        data = b""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    # -- answers --

    def _refuse(self) -> None:
        self.server.refused.append(f"{self.command} {self.path}")
        self._json({"error": "there is no network here"}, 403)

    def _fail(self, error: Body) -> None:
        status = error.get("status", 500)
        told = {"type": "api_error", "message": error.get("message", "as told"), "code": status}
        self._json({"type": "error", "error": told}, status)

    def _json(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, frames: Iterator[Any], reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        left = reply.step.drop
        for frame in frames:
            if frame is None:
                time.sleep(reply.step.delay)
                continue
            if left is not None:
                if left == 0:
                    self._break()
                    return
                left -= 1
            name, data = frame
            event = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self._chunk(f"{event}data: {text}\n\n".encode())
        self._chunk(b"")

    def _break(self) -> None:
        """The connection ends where nobody would end it."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


@contextmanager
def model_server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="model server", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
