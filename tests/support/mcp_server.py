"""A small server of the Model Context Protocol: over stdio as a program, over HTTP and SSE in a thread.

Its tools: `shout` gives a text back in capitals, `fail` fails, `where` tells its directory and a variable, `count` how
often it was called in this process, `wait` never answers, `die` ends the server, `flood` says very much, `picture`
shows one; those of `ODD` tell their names.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING = {"type": "object", "properties": {}}
ODD = ["files.read", "files_read", "long" * 20, "long" * 21]
PIXEL = b"\x89PNG as good as any"
TOOLS = [
    {"name": "shout", "description": "A text in capitals", "inputSchema": TEXT, "annotations": {"readOnlyHint": True}},
    {"name": "fail", "description": "Fails", "inputSchema": NOTHING},
    {"name": "where", "description": "Its directory", "inputSchema": NOTHING},
    {"name": "count", "description": "How often", "inputSchema": NOTHING},
    {"name": "wait", "description": "For ever", "inputSchema": NOTHING},
    {"name": "die", "description": "The end", "inputSchema": NOTHING},
    {"name": "flood", "description": "Very much", "inputSchema": NOTHING},
    {"name": "picture", "description": "One", "inputSchema": NOTHING},
    *({"name": name, "description": "Its name", "inputSchema": NOTHING} for name in ODD),
]
counted = 0


def called(name: str, given: dict[str, Any]) -> dict[str, Any]:
    global counted
    if name == "fail":
        return {"content": [{"type": "text", "text": "it went wrong"}], "isError": True}
    if name == "count":
        counted += 1
    if name == "wait":
        threading.Event().wait()
    if name == "die":
        os._exit(1)
    if name == "picture":
        image = {"type": "image", "data": base64.b64encode(PIXEL).decode(), "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": "Look:"}, image]}
    if name in ODD:
        return {"content": [{"type": "text", "text": f"this is {name}"}]}
    texts = {
        "flood": lambda: "word " * 600_000,
        "shout": lambda: given["text"].upper(),
        "where": lambda: f"{os.getcwd()} {os.environ.get('MCP_MARK')}",
        "count": lambda: str(counted),
    }
    return {"content": [{"type": "text", "text": texts[name]()}]}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """None to a notification."""
    if "id" not in message:
        return None
    params = message.get("params") or {}
    match message.get("method"):
        case "initialize":
            version = params.get("protocolVersion", "2025-06-18")
            info = {"name": "lab", "version": "1"}
            result: dict[str, Any] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            result = called(params["name"], params.get("arguments") or {})
        case "ping":
            result = {}
        case method:
            error = {"code": -32601, "message": f"no method {method}"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Stop:
    """The last thing that is streamed."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.streamed: SimpleQueue[dict[str, Any] | Stop | None] = SimpleQueue()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        if self.path == "/sse":
            self._stream()
        else:
            self._send(405, None)

    def do_DELETE(self) -> None:
        self._send(405, None)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("X-Key") != "as given":
            self._send(401, {"error": "no key"})
            return
        told = answer(message)
        if self.path == "/messages":
            self._send(202, None)
            self.server.streamed.put(told)
        else:
            self._send(200 if told else 202, told)

    def _stream(self) -> None:
        """What is answered comes as events here; where to ask is the first of them."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
        while not isinstance(told := self.server.streamed.get(), Stop):
            if told is not None:
                self.wfile.write(f"event: message\ndata: {json.dumps(told)}\n\n".encode())

    def _send(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode() if value is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def mcp_over_http(path: str = "/mcp") -> Iterator[str]:
    """Its address; `/sse` is that of the older way."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{path}"
    finally:
        server.streamed.put(Stop())
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    for line in sys.stdin:
        told = answer(json.loads(line))
        if told is not None:
            print(json.dumps(told), flush=True)
