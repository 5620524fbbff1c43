"""An ACP agent that plays a recording: `python replay_agent.py RECORDING SENT`. Standard library only.

A recording is lines of JSON with `dir` (`c2a`, `a2c`, `stderr`, `note`) and `msg`, or `line` for what was no JSON. What
the agent had sent is sent again, in order; where the client had to do something first, that is waited for. A client
need not repeat everything: calls that it does not make are left out with their answers. What was sent of updates goes
to the file SENT as well, a line each, so that a test can look for all of it.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any

OPENING = ("session/new", "session/load", "session/resume")
PLAYED = ("initialize", "session/prompt", *OPENING)


class Client:
    """What the client sends, by kind."""

    def __init__(self) -> None:
        self.requests: dict[str, queue.Queue[dict[str, Any]]] = {}
        self.answers: dict[Any, dict[str, Any]] = {}
        self.cancels = 0
        self.changed = threading.Condition()
        self.closed = False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            with self.changed:
                if "method" not in message:
                    self.answers[message.get("id")] = message
                elif message["method"] == "session/cancel":
                    self.cancels += 1
                elif "id" in message:
                    kind = "open" if message["method"] in OPENING else message["method"]
                    if kind not in ("open", *PLAYED):
                        write({"id": message["id"], "error": {"code": -32601, "message": "not in the recording"}})
                    self.requests.setdefault(kind, queue.Queue()).put(message)
                self.changed.notify_all()
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def request(self, kind: str) -> dict[str, Any]:
        with self.changed:
            self.wait_for(lambda: not self.requests.setdefault(kind, queue.Queue()).empty())
            return self.requests[kind].get_nowait()

    def has(self, method: str) -> bool:
        with self.changed:
            return not self.requests.setdefault(method, queue.Queue()).empty()

    def answer(self, request_id: Any) -> dict[str, Any]:
        with self.changed:
            self.wait_for(lambda: request_id in self.answers)
            return self.answers.pop(request_id)

    def cancel(self, count: int) -> None:
        with self.changed:
            self.wait_for(lambda: self.cancels >= count)

    def wait_for(self, condition: Any) -> None:
        self.changed.wait_for(lambda: self.closed or condition())
        if not condition():
            os._exit(0)  # the client has gone


def write(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


class Replay:
    def __init__(self, recording: Path, sent: Path) -> None:
        self.lines = [json.loads(line) for line in recording.read_text().splitlines() if line.strip()]
        self.sent = sent.open("w")
        self.client = Client()
        self.swaps: dict[str, str] = {}
        self.once: set[str] = set()
        self.played: dict[Any, dict[str, Any] | None] = {}
        self.prompts: list[Any] = []
        self.asked: dict[Any, str] = {}
        self.cancels = 0
        answers = [line["msg"] for line in self.lines if line["dir"] == "a2c" and isinstance(line.get("msg"), dict)]
        self.succeeded = {message.get("id") for message in answers if "result" in message}
        self.answered = {message.get("id") for message in answers if "method" not in message}
        for line in self.lines:
            if line["dir"] == "note" and isinstance(line.get("msg"), dict) and "cwd" in line["msg"]:
                self.swaps[line["msg"]["cwd"]] = str(Path.cwd())
                break

    def swap(self, message: Any) -> Any:
        text = json.dumps(message)
        for old, new in self.swaps.items():
            text = text.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1])
        return json.loads(text)

    def run(self) -> None:
        for line in self.lines:
            message = line.get("msg")
            if line["dir"] == "stderr":
                sys.stderr.write(str(message if message is not None else line.get("line")) + "\n")
                sys.stderr.flush()
            elif line["dir"] == "c2a" and isinstance(message, dict):
                self.from_client(message)
            elif line["dir"] == "a2c":
                self.to_client(message if message is not None else line.get("line"))
        self.afterwards()

    def from_client(self, message: dict[str, Any]) -> None:
        method, request_id = message.get("method"), message.get("id")
        if method == "session/cancel":
            if self.prompts:
                self.cancels += 1
                self.client.cancel(self.cancels)
        elif method is None:
            if request_id in self.asked:
                self.client_answered(request_id, message)
        elif method in ("initialize", *OPENING):
            kind = "open" if method in OPENING else method
            if request_id in self.succeeded and kind not in self.once:
                self.once.add(kind)
                self.played[request_id] = self.await_request(kind)
        elif method == "session/prompt" and request_id in self.answered:
            self.played[request_id] = None if self.prompts else self.await_request(method)
            self.prompts.append(request_id)

    def await_request(self, kind: str) -> dict[str, Any]:
        """The client's next request of a kind. What it has to do before, and the recording has not, is answered."""
        for before in ("initialize", "open"):
            if before == kind:
                break
            if before not in self.once:
                self.once.add(before)
                request = self.client.request(before)
                result = self.recorded_result(before)
                write({"id": request["id"], "result": result})
        return self.client.request(kind)

    def recorded_result(self, kind: str) -> dict[str, Any]:
        if kind == "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {}}
        return {"sessionId": self.known_session()}

    def client_answered(self, request_id: Any, recorded: dict[str, Any]) -> None:
        answer = self.client.answer(request_id)
        if self.asked.pop(request_id) == "terminal/create" and "result" in answer and "result" in recorded:
            self.swaps[recorded["result"]["terminalId"]] = answer["result"]["terminalId"]

    def to_client(self, message: Any) -> None:
        if not isinstance(message, dict):
            text = message if isinstance(message, str) else json.dumps(message)
            sys.stdout.buffer.write(text.encode(errors="surrogateescape") + b"\n")
            sys.stdout.buffer.flush()
            return
        message = self.swap(message)
        message.pop("jsonrpc", None)
        if "method" not in message and message.get("id") is not None:
            self.answer(message)
            return
        if message.get("method") == "session/update":
            self.sent.write(json.dumps(message["params"]) + "\n")
            self.sent.flush()
        elif "id" in message and "method" in message:
            self.asked[message["id"]] = message["method"]
        write(message)

    def answer(self, message: dict[str, Any]) -> None:
        key = message["id"]
        if key not in self.played:
            return  # to something that this client did not ask
        if message["id"] in self.prompts:
            self.prompts.remove(message["id"])
            request = self.played.pop(key)
            if request is None:
                # the client waits until the turn before is over: that one is ended first, if it still is not
                others = [one for one in self.prompts if self.played.get(one) is not None]
                if others and not self.client.has("session/prompt"):
                    self.prompts.append(message["id"])
                    self.played[key] = None
                    request = self.played[others[0]]
                    self.played[others[0]] = None
                else:
                    request = self.await_request("session/prompt")
        else:
            request = self.played.pop(key)
        assert request is not None
        if request["method"] in OPENING and isinstance(message.get("result"), dict):
            message["result"].setdefault("sessionId", self.known_session())
        write({**message, "id": request["id"]})

    def known_session(self) -> str:
        for line in self.lines:
            message = line.get("msg")
            params = message.get("params") if isinstance(message, dict) else None
            if isinstance(params, dict) and isinstance(params.get("sessionId"), str):
                return str(params["sessionId"])
        return "replayed"

    def afterwards(self) -> None:
        """The recording is over: whatever is still asked gets the shortest answer."""
        for request in self.played.values():
            if request is not None:
                write({"id": request["id"], "result": {"stopReason": "end_turn"}})
        self.sent.close()
        Path(f"{self.sent.name}.end").touch()
        while True:
            for kind in ("initialize", "open", "session/prompt"):
                while self.client.has(kind):
                    request_id = self.client.request(kind)["id"]
                    if kind == "session/prompt":
                        write({"id": request_id, "result": {"stopReason": "end_turn"}})
                    else:
                        write({"id": request_id, "error": {"code": -32603, "message": "not in the recording"}})
            with self.client.changed:
                if self.client.closed:
                    return
                self.client.changed.wait(0.05)


if __name__ == "__main__":
    Replay(Path(sys.argv[1]), Path(sys.argv[2])).run()
