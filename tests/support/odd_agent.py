"""An ACP agent that misbehaves on command. Standard library only, so that it starts fast and owes us nothing.

    python odd_agent.py [HOW…]      HOW: how it misbehaves before any prompt, see `Agent.start`

The first word of a prompt is what it does, see `Agent.do_*`. It keeps nothing; with `resume` or `load` it takes any
session for one of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Agent:
    def __init__(self, how: set[str]) -> None:
        self.how = how
        self.lock = threading.Lock()
        self.answers: dict[Any, Any] = {}
        self.answered = threading.Condition()
        self.cancelled = threading.Event()
        self.last_id = -1
        self.session = f"odd-{os.getpid()}"
        self.authenticated = False

    # -- the wire --

    def write(self, data: bytes) -> None:
        with self.lock:
            while data:
                data = data[os.write(1, data) :]

    def send(self, message: dict[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def update(self, what: str, /, session: str | None = None, **fields: Any) -> None:
        params = {"sessionId": session or self.session, "update": {"sessionUpdate": what, **fields}}
        self.send({"method": "session/update", "params": params})

    def say(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def next_id(self) -> int:
        with self.answered:
            self.last_id += 1
            return self.last_id

    def call(self, method: str, params: dict[str, Any], request_id: Any = None) -> Any:
        request_id = self.next_id() if request_id is None else request_id
        self.send({"id": request_id, "method": method, "params": params})
        return self.wait(request_id)

    def wait(self, request_id: Any) -> Any:
        with self.answered:
            self.answered.wait_for(lambda: request_id in self.answers)
            return self.answers.pop(request_id)

    # -- the protocol --

    def serve(self) -> None:
        self.start()
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "method" not in message:
                with self.answered:
                    self.answers[message.get("id")] = message.get("result", {"error": message.get("error")})
                    self.answered.notify_all()
            else:
                self.handle(message)
        if "ignore-eof" in self.how:
            time.sleep(3600)

    def start(self) -> None:
        if "crash" in self.how:
            sys.stderr.write("odd: no licence found\n")
            sys.exit(3)
        if "crash-once" in self.how:
            marker = Path("crashed-once")
            if not marker.exists():
                marker.touch()
                sys.stderr.write("odd: not today\n")
                sys.exit(4)
        if "noise" in self.how:
            self.write(b"Welcome to odd!\n\x1b[1mbold\x1b[0m\n[]\nnull\n42\n{\n\xff\xfe\n\n")
        if "child" in self.how:
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)

    def handle(self, message: dict[str, Any]) -> None:
        method, params, request_id = message["method"], message.get("params") or {}, message.get("id")
        if method == "session/cancel":
            self.cancelled.set()
        elif method == "session/prompt":
            self.cancelled.clear()
            threading.Thread(target=self.prompt, args=(request_id, params), daemon=True).start()
        elif request_id is not None:
            answer = getattr(self, "on_" + method.replace("/", "_"), None)
            result = answer(params) if answer is not None else {"error": {"code": -32601, "message": "no such method"}}
            if result is not None:
                self.send({"id": request_id, **(result if "error" in result else {"result": result})})

    def on_initialize(self, params: dict[str, Any]) -> Any:
        if "hang" in self.how:
            sys.stderr.write("odd: waiting for a login that never comes\n")
            sys.stderr.flush()
            return None
        sessions = {"resume": {}} if "resume" in self.how else {}
        capabilities = {"loadSession": "load" in self.how or "die-on-load" in self.how, "sessionCapabilities": sessions}
        methods = [{"id": "key", "name": "Key"}] if "auth" in self.how else []
        return {"protocolVersion": 1, "agentCapabilities": capabilities, "authMethods": methods}

    def on_authenticate(self, params: dict[str, Any]) -> Any:
        self.authenticated = True
        return {}

    def on_session_new(self, params: dict[str, Any]) -> Any:
        if "hang-at-new" in self.how:
            return None
        if "slow-start" in self.how:
            time.sleep(3600)
        if "auth" in self.how and not self.authenticated:
            return {"error": {"code": -32000, "message": "Authentication required"}}
        if "early" in self.how:
            self.update("available_commands_update", availableCommands=[{"name": "early", "description": "e"}])
        return {"sessionId": self.session, "modes": MODES}

    def on_session_resume(self, params: dict[str, Any]) -> Any:
        self.session = params["sessionId"]
        return {"modes": MODES}

    def on_session_load(self, params: dict[str, Any]) -> Any:
        if "die-on-load" in self.how:
            os._exit(9)
        self.session = params["sessionId"]
        self.update("user_message_chunk", content={"type": "text", "text": "REPLAYED"})
        self.say("REPLAYED")
        self.update("available_commands_update", availableCommands=[{"name": "replayed", "description": "r"}])
        return {"modes": MODES}

    def on_session_set_mode(self, params: dict[str, Any]) -> Any:
        return {}

    def prompt(self, request_id: Any, params: dict[str, Any]) -> None:
        text = "".join(block.get("text", "") for block in params["prompt"])
        word, _, rest = text.partition(" ")
        result = getattr(self, "do_" + word.replace("-", "_"))(rest) or {"stopReason": "end_turn"}
        if result == "silence":
            return
        self.send({"id": request_id, **(result if "error" in result else {"result": result})})
        after = getattr(self, "after_" + word.replace("-", "_"), None)
        if after is not None:
            after(rest)

    # -- what a prompt can ask for --

    def do_echo(self, text: str) -> Any:
        self.say(text)

    def do_text(self, text: str) -> Any:
        """Talks until it is cancelled."""
        while not self.cancelled.wait(0.01):
            self.say("word ")
        return {"stopReason": "cancelled"}

    def do_text_end_turn(self, text: str) -> Any:
        """Ends as if nothing were when it is cancelled."""
        self.do_text(text)
        self.say("late ")
        return {"stopReason": "end_turn"}

    def do_text_error(self, text: str) -> Any:
        """Fails when it is cancelled."""
        self.do_text(text)
        return {"error": {"code": -32603, "message": "Internal error"}}

    def do_tool(self, text: str) -> Any:
        """Has a tool call open until it is cancelled, and never closes it."""
        self.update("tool_call", toolCallId="t1", title="Work", kind="execute", status="in_progress")
        self.cancelled.wait()
        return {"stopReason": "cancelled"}

    def do_deaf(self, text: str) -> Any:
        """Never answers."""
        self.say("deaf")
        time.sleep(3600)

    def do_flood(self, text: str) -> Any:
        for number in range(int(text)):
            self.say(f"{number} ")

    def ask(self, path: str, call: str = "w1", request_id: Any = None) -> dict[str, Any]:
        tool = {
            "toolCallId": call,
            "title": f"Write {path}",
            "kind": "edit",
            "rawInput": {"file_path": path, "content": "x"},
        }
        params = {"sessionId": self.session, "toolCall": tool, "options": OPTIONS}
        answer: dict[str, Any] = self.call("session/request_permission", params, request_id)
        return answer

    def do_write(self, path: str) -> Any:
        """Writes a file if it may."""
        answer = self.ask(path)
        outcome = answer.get("outcome", {})
        if outcome.get("outcome") == "cancelled":
            return {"stopReason": "cancelled"}
        if outcome.get("optionId") in ("yes", "always"):
            Path(path).write_text("x")
            self.update("tool_call_update", toolCallId="w1", status="completed")
        self.say("ANSWER " + json.dumps(answer))
        return None

    def do_run(self, command: str) -> Any:
        """Asks whether it may run a command, and says the answer."""
        tool = {"toolCallId": "r1", "title": command, "kind": "execute", "rawInput": {"command": command}}
        params = {"sessionId": self.session, "toolCall": tool, "options": OPTIONS}
        self.say("ANSWER " + json.dumps(self.call("session/request_permission", params)))

    def do_write_uncancelled(self, path: str) -> Any:
        """Asks again when it was cancelled."""
        for _ in range(2):
            answer = self.ask(path)
        self.say("ANSWER " + json.dumps(answer))
        return {"stopReason": "cancelled"}

    def do_only_reject(self, path: str) -> Any:
        tool = {"toolCallId": "w1", "title": "Write", "kind": "edit", "rawInput": {"file_path": path}}
        params = {"sessionId": self.session, "toolCall": tool, "options": OPTIONS[2:]}
        self.say("ANSWER " + json.dumps(self.call("session/request_permission", params)))

    def do_withdraw(self, path: str) -> Any:
        """Asks, and then no longer wants to know."""
        request_id = self.next_id()
        thread = threading.Thread(target=self.ask, args=(path, "w1", request_id), daemon=True)
        thread.start()
        time.sleep(0.2)
        self.send({"method": "$/cancel_request", "params": {"requestId": request_id}})
        thread.join()

    def do_ask_and_die(self, path: str) -> Any:
        threading.Thread(target=self.ask, args=(path,), daemon=True).start()
        time.sleep(0.2)
        sys.stderr.write("odd: dying with a question open\n")
        sys.stderr.flush()
        os._exit(7)

    def do_ask_tool(self, text: str) -> Any:
        """A tool that asks its user, and a permission about it."""
        raw = {"questions": [{"question": "Which?", "header": "h", "options": [{"label": "A"}, {"label": "B"}]}]}
        self.update(
            "tool_call", toolCallId="q1", title="AskUserQuestion", kind="other", status="in_progress", rawInput=raw
        )
        tool = {"toolCallId": "q1", "title": "AskUserQuestion", "rawInput": raw}
        params = {"sessionId": self.session, "toolCall": tool, "options": OPTIONS}
        self.say("ANSWER " + json.dumps(self.call("session/request_permission", params)))

    def do_question(self, text: str) -> Any:
        form = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}}
        params = {"sessionId": self.session, "mode": "form", "message": "Colour?", "requestedSchema": form}
        self.say("ANSWER " + json.dumps(self.call("elicitation/create", params)))

    def do_background(self, path: str) -> Any:
        self.say("later")

    def after_background(self, path: str) -> None:
        """Asks when its turn is over."""
        answer = self.ask(path)
        self.say("ANSWER " + json.dumps(answer))

    def do_die(self, code: str) -> Any:
        sys.stderr.write("odd: told to die\n")
        sys.stderr.flush()
        os._exit(int(code or "1"))

    def do_die_later(self, code: str) -> Any:
        self.say("not yet")

    def after_die_later(self, code: str) -> None:
        time.sleep(0.1)
        sys.stderr.write("odd: died in its sleep\n")
        sys.stderr.flush()
        os._exit(int(code or "1"))

    def do_late(self, text: str) -> Any:
        self.say("in time")

    def after_late(self, text: str) -> None:
        self.update("usage_update", used=5, size=100)
        self.say("late words")

    def do_noise(self, text: str) -> Any:
        for index, line in enumerate((b"not json\n", b"[]\n", b"null\n", b'{"jsonrpc":"2.0"}\n', b"\xff\xfe\n")):
            self.say(f"{index} ")
            self.write(line)

    def do_wrong_ids(self, text: str) -> Any:
        self.send({"id": 999, "result": {}})
        self.send({"id": "never", "result": {"stopReason": "end_turn"}})
        self.send({"id": None, "error": {"code": -32700, "message": "?"}})
        self.say("still here")

    def do_stderr(self, megabytes: str) -> Any:
        for _ in range(int(megabytes)):
            os.write(2, b"e" * 1024 * 1023 + b"\n")
        self.say("said it all")

    def do_line(self, megabytes: str) -> Any:
        self.say("x" * (int(megabytes) * 1024 * 1024))
        self.say("done")

    def do_foreign(self, text: str) -> Any:
        self.update("agent_message_chunk", session="somebody-else", content={"type": "text", "text": "not mine"})
        self.say("mine")

    def do_mode(self, mode: str) -> Any:
        self.update("current_mode_update", currentModeId=mode)

    def do_unasked(self, path: str) -> Any:
        """Does what it should have asked about."""
        raw = {"file_path": path, "content": "x"}
        self.update("tool_call", toolCallId="u1", title="Write", kind="edit", status="in_progress", rawInput=raw)
        self.update("tool_call_update", toolCallId="u1", status="completed")

    def do_terminal(self, command: str) -> Any:
        made = self.call("terminal/create", {"sessionId": self.session, "command": command})
        self.say("ANSWER " + json.dumps(made))

    def do_children(self, text: str) -> Any:
        """Leaves children behind, also one that left its group."""
        for own in (True, False):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=own)
        self.say("done")


MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "yolo", "name": "Yolo"}]}

if __name__ == "__main__":
    Agent(set(sys.argv[1:])).serve()
