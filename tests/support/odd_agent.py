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
        self.stops = False
        self.given: dict[str, Any] = {}
        self.heard: list[Any] = []
        self.mode = "ask"
        self.options: dict[str, Any] = {"model": "small", "web": False, "reach": "near"}

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
            if self.stops:
                time.sleep(3600)
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
        if "wakes-changed" in self.how:
            marker = Path("started-before")
            if marker.exists():
                self.mode, self.options = "yolo", {"model": "large", "web": True, "reach": "far"}
            marker.touch()
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
        else:
            self.heard.append([method, params])

    def on__odd_echo(self, params: dict[str, Any]) -> Any:
        return {"sessionId": params.get("sessionId"), "got": params}

    def on__odd_refuse(self, params: dict[str, Any]) -> Any:
        return {"error": {"code": -32099, "message": "not today", "data": {"why": "odd"}}}

    def on_session_fork(self, params: dict[str, Any]) -> Any:
        if "fork" not in self.how:
            return {"error": {"code": -32601, "message": "no such method"}}
        self.given = {"method": "session/fork", **params}
        self.session = f"{params['sessionId']}-fork"
        return {"sessionId": self.session, **self.chosen()}

    def on_initialize(self, params: dict[str, Any]) -> Any:
        junk = next((word.removeprefix("junk=") for word in self.how if word.startswith("junk=")), None)
        if junk is not None:
            sys.stderr.write("odd: never heard of that\n")
            sys.stderr.flush()
            self.write(b'{"jsonrpc":"2.0","id":0,' + junk.encode() + b"}\n")
            return None
        if "hang" in self.how:
            sys.stderr.write("odd: waiting for a login that never comes\n")
            sys.stderr.flush()
            return None
        sessions = {name: {} for name in ("resume", "fork", "additionalDirectories") if name in self.how}
        capabilities = {"loadSession": "load" in self.how or "die-on-load" in self.how, "sessionCapabilities": sessions}
        if "http" in self.how:
            capabilities["mcpCapabilities"] = {"http": True}
        methods = [{"id": "key", "name": "Key"}] if "auth" in self.how else []
        return {"protocolVersion": 1, "agentCapabilities": capabilities, "authMethods": methods}

    def on_authenticate(self, params: dict[str, Any]) -> Any:
        self.authenticated = True
        return {}

    def on_session_new(self, params: dict[str, Any]) -> Any:
        self.given = {"method": "session/new", **params}
        if "quotes" in self.how:
            quoted = {"code": -32602, "message": f"no: {json.dumps(params)}", "data": {"errors": [{"input": params}]}}
            return {"error": quoted}
        if "hang-at-new" in self.how:
            return None
        if "slow-start" in self.how:
            time.sleep(3600)
        if "auth" in self.how and not self.authenticated:
            return {"error": {"code": -32000, "message": "Authentication required."}}
        if "early" in self.how:
            self.update("available_commands_update", availableCommands=[{"name": "early", "description": "e"}])
        return {"sessionId": self.session, "_meta": {"odd": "new", "pilothouse": "spoofed"}, **self.chosen()}

    def chosen(self) -> dict[str, Any]:
        """What is offered and chosen, told as this agent tells it."""
        told: dict[str, Any] = {}
        if "no-modes" not in self.how:
            offered = [mode for mode in MODES if mode != "ask" or "no-ask" not in self.how]
            modes = [{"id": mode, "name": mode.title()} for mode in offered]
            told["modes"] = {"currentModeId": self.mode, "availableModes": modes}
        if "options" in self.how:
            told["configOptions"] = self.config_options()
        return told

    def config_options(self) -> list[dict[str, Any]]:
        def select(name: str, *values: str, **more: Any) -> dict[str, Any]:
            options = [{"value": value, "name": value} for value in values]
            return {"id": name, "name": name, "type": "select", "options": options, **more}

        current: dict[str, Any] = {**self.options, "mode": self.mode}
        options = [
            select("mode", *MODES, category="mode"),
            select("model", "small", "large", category="model"),
            select("reach", "near", "far"),
            {"id": "web", "name": "Web", "type": "boolean"},
        ]
        return [{**option, "currentValue": current[option["id"]]} for option in options]

    def on_session_resume(self, params: dict[str, Any]) -> Any:
        self.given = {"method": "session/resume", **params}
        self.session = params["sessionId"]
        if "tells-by-update" in self.how:
            self.update("current_mode_update", currentModeId=self.mode)
        return {} if {"untold", "tells-by-update"} & self.how else self.chosen()

    def on_session_load(self, params: dict[str, Any]) -> Any:
        if "die-on-load" in self.how:
            os._exit(9)
        self.session = params["sessionId"]
        self.update("user_message_chunk", content={"type": "text", "text": "REPLAYED"})
        self.say("REPLAYED")
        self.update("available_commands_update", availableCommands=[{"name": "replayed", "description": "r"}])
        return self.chosen()

    def on_session_set_mode(self, params: dict[str, Any]) -> Any:
        self.heard.append(["session/set_mode", params])
        if "stuck" in self.how and params["modeId"] == "ask":
            return {"error": {"code": -32603, "message": "never again"}}
        self.mode = params["modeId"]
        if "plans-instead" in self.how:
            self.mode = "plan"
            self.update("current_mode_update", currentModeId=self.mode)
        if "tells-by-options" in self.how:
            self.update("config_option_update", configOptions=self.config_options())
        return {}

    def on_session_set_config_option(self, params: dict[str, Any]) -> Any:
        if "options" not in self.how:
            return {"error": {"code": -32601, "message": "no such method"}}
        name, value = params["configId"], params["value"]
        if f"stuck-{name}" in self.how and value in ("small", "near"):
            return {"error": {"code": -32603, "message": "never again"}}
        if name == "mode":
            self.mode = "plan" if "plans-instead" in self.how else value
        else:
            self.options[name] = value
        return {"configOptions": self.config_options()}

    def prompt(self, request_id: Any, params: dict[str, Any]) -> None:
        self.prompted = params
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

    def do_pour(self, path: str) -> Any:
        """Talks fast, a lot, until it is cancelled, and keeps count of it in a file."""
        number = 0
        while not self.cancelled.is_set():
            self.say(f"{number} " + "x" * 10_000)
            number += 1
            if path:
                Path(path).write_text(str(number))
        return {"stopReason": "cancelled"}

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

    def do_babble(self, lines: str) -> Any:
        """Prints its progress where messages belong."""
        for start in range(0, int(lines), 1000):
            self.write(b"".join(b"%d of %s done\n" % (start + n, lines.encode()) for n in range(1000)))
        self.say("sorry")

    def do_nonsense(self, text: str) -> Any:
        for line in NONSENSE:
            self.write(line + b"\n")
        self.say("sorry")

    def do_close_stdout(self, text: str) -> Any:
        """Closes its end of the conversation and lives on."""
        self.say("bye")
        sys.stderr.write("odd: I have nothing more to say\n")
        sys.stderr.flush()
        os.close(1)
        time.sleep(3600)

    def do_leave_pipe(self, text: str) -> Any:
        """Dies, and leaves the pipes to a child that lives on."""
        self.say("bye")
        sys.stderr.write("odd: my child will go on\n")
        sys.stderr.flush()
        command = [sys.executable, "-S", "-c", "import time; time.sleep(3600)"]
        subprocess.Popen(command, stdout=1, stderr=2, start_new_session=True)
        os._exit(0)

    def do_stderr_and_die(self, megabytes: str) -> Any:
        self.do_stderr(megabytes)
        self.do_die("6")

    def do_stop_reading(self, text: str) -> Any:
        self.stops = True

    def do_stop(self, reason: str) -> Any:
        """Ends its turn for a reason of its own."""
        return {"stopReason": reason}

    def do_wrong_ids(self, text: str) -> Any:
        self.send({"id": 999, "result": {}})
        self.send({"id": "never", "result": {"stopReason": "end_turn"}})
        self.send({"id": None, "error": {"code": -32700, "message": "?"}})
        self.say("still here")

    def do_stderr(self, megabytes: str) -> Any:
        for _ in range(int(megabytes)):
            os.write(2, b"e" * 1024 * 1023 + b"\n")
        self.say("said it all")

    def do_line(self, text: str) -> Any:
        """Says so many mebibytes in one piece, once or several times."""
        megabytes, _, times = text.partition(" ")
        for _ in range(int(times or "1")):
            self.say("x" * (int(megabytes) * 1024 * 1024))
        self.say("done")

    def do_foreign(self, text: str) -> Any:
        self.update("agent_message_chunk", session="somebody-else", content={"type": "text", "text": "not mine"})
        self.say("mine")

    def do_mode(self, mode: str) -> Any:
        self.mode = mode
        self.update("current_mode_update", currentModeId=mode)

    def do_chosen(self, text: str) -> Any:
        """Says what is in force."""
        self.say(json.dumps({"mode": self.mode, **self.options}))

    def do_runs_then_asks(self, path: str) -> Any:
        """Says that a call runs, and asks only then."""
        raw = {"file_path": path, "content": "x"}
        self.update("tool_call", toolCallId="w1", title="Write", kind="edit", status="in_progress", rawInput=raw)
        self.ask(path)
        self.update("tool_call_update", toolCallId="w1", status="completed")

    def do_asks_and_does(self, path: str) -> Any:
        """Asks as it should, and does it whatever the answer."""
        raw = {"file_path": path, "content": "x"}
        self.update("tool_call", toolCallId="w1", title="Write", kind="edit", status="pending", rawInput=raw)
        self.ask(path)
        self.update("tool_call_update", toolCallId="w1", status="completed")

    def do_read(self, path: str) -> Any:
        self.say(json.dumps(self.call("fs/read_text_file", {"sessionId": self.session, "path": path})))

    def do_put(self, text: str) -> Any:
        """Has its client write a file, and says the answer."""
        path, _, content = text.partition(" ")
        params = {"sessionId": self.session, "path": path, "content": content}
        self.say("ANSWER " + json.dumps(self.call("fs/write_text_file", params)))

    def do_ask_put(self, text: str) -> Any:
        """Asks whether it may write a file, and has it written, or another one, whatever the answer is."""
        path, content, *other = text.split()
        self.ask(path)
        self.do_put(f"{other[0] if other else path} {content}")

    def do_terminal_calls(self, text: str) -> Any:
        """Makes a terminal, and then those calls on it that are named, or on one of the given id; says the answers."""
        command, _, rest = text.partition(" :: ")
        made = self.call("terminal/create", {"sessionId": self.session, "command": command}) if command else {}
        self.say("MADE " + json.dumps(made) + "\n")
        for name in rest.split():
            name, _, given = name.partition("=")
            if name == "go":
                while not Path(given).exists():
                    time.sleep(0.01)
                continue
            one = {"sessionId": self.session, "terminalId": given or made.get("terminalId")}
            self.say(f"{name} " + json.dumps(self.call(f"terminal/{name}", one)) + "\n")

    def do_terminal_question(self, command: str) -> Any:
        """Asks about a call that shows a terminal."""
        made = self.call("terminal/create", {"sessionId": self.session, "command": command})
        content = [{"type": "terminal", **made}, {"type": "content", "content": {"type": "text", "text": "may I?"}}]
        tool = {"toolCallId": "q1", "title": command, "kind": "execute", "content": content}
        params = {"sessionId": self.session, "toolCall": tool, "options": OPTIONS}
        self.call("session/request_permission", params)

    def do_given(self, text: str) -> Any:
        """Says with what its session was opened, how it was prompted, and what it heard."""
        self.say(json.dumps({"given": self.given, "prompted": self.prompted, "heard": self.heard}))
        return {"stopReason": "end_turn", "_meta": {"odd": "prompt", "pilothouse": "spoofed"}}

    def do_extend(self, method: str) -> Any:
        """Asks its client something that only that knows."""
        self.say("ANSWER " + json.dumps(self.call(method, {"sessionId": self.session, "x": 1})))

    def do_announce(self, method: str) -> Any:
        """Tells its client something that only that knows."""
        self.send({"method": method, "params": {"sessionId": self.session, "x": [1], "_meta": {"odd": 1}}})
        self.say("announced")

    def do_unasked(self, text: str) -> Any:
        """Does what it should have asked about."""
        path, _, call = text.partition(" ")
        call, raw = call or "u1", {"file_path": path, "content": "x"}
        self.update("tool_call", toolCallId=call, title="Write", kind="edit", status="in_progress", rawInput=raw)
        self.update("tool_call_update", toolCallId=call, status="completed")

    def do_terminal(self, command: str) -> Any:
        made = self.call("terminal/create", {"sessionId": self.session, "command": command})
        self.say("ANSWER " + json.dumps(made))

    def do_shell(self, text: str) -> Any:
        """Runs a command in a terminal of the client, and shows that terminal in a call: `early` from the start on,
        `late` when the command has ended, `end` with the end of the call alone, when the terminal is long released;
        `leave` ends the turn while it runs; `silent` shows it early and never says that the call runs or ends."""
        when, _, command = text.partition(" ")
        limit = {} if when != "limit" else {"outputByteLimit": 1000}
        made = self.call("terminal/create", {"sessionId": self.session, "command": command, **limit})
        one = {"sessionId": self.session, "terminalId": made["terminalId"]}
        shown = {"content": [{"type": "terminal", "terminalId": made["terminalId"]}]}
        status = {} if when == "silent" else {"status": "in_progress"}
        early = shown if when not in ("late", "end") else {}
        raw = {"command": command}
        self.update("tool_call", toolCallId="s1", title=command, kind="execute", rawInput=raw, **status, **early)
        if when == "leave":
            return
        self.call("terminal/wait_for_exit", one)
        if when == "late":
            self.update("tool_call_update", toolCallId="s1", **shown)
        self.call("terminal/release", one)
        if when != "silent":
            last = shown if when == "end" else {}
            self.update("tool_call_update", toolCallId="s1", status="completed", **last)

    def do_children(self, text: str) -> Any:
        """Leaves children behind, also one that left its group."""
        for own in (True, False):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=own)
        self.say("done")


NONSENSE = [
    b"\0" * 100,
    b"\xff\xfe\xfd",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"jsonrpc":"2.0","method":42}',
    b'{"jsonrpc":"2.0","method":"session/update"}',
    b'{"jsonrpc":"2.0","method":"session/update","params":[1,2]}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7,"update":"x"}}',
    b'{"jsonrpc":"2.0","id":{},"method":"fs/read_text_file","params":null}',
    b'{"jsonrpc":"2.0","id":1e999,"result":{}}',
    b'{"jsonrpc":"1.0","id":-5,"error":"no"}',
    b'[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":77,"result":0}]',
    b'"a string"',
    b"nan",
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"terminal/create","params":{}}',
]
MODES = ("ask", "plan", "yolo")

if __name__ == "__main__":
    Agent(set(sys.argv[1:])).serve()
