"""A program that speaks Claude Code's stream-json wire as the real CLI does. Standard library only.

    python fake_claude.py -p … [--session-id ID | --resume ID [--fork-session --session-id ID]] [--permission-mode M] …

The first word of a prompt is what it does, see `Turn.do_*`; `play NAME` plays what the real CLI wrote in a recording of
`tests/golden/claude`. It keeps its sessions in files as the CLI does. FAKE_CLAUDE says how it misbehaves at its start:
`mute`, `crash`, `noisy`, `chatty`.
"""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "claude"
MODELS = [
    {"value": "default", "displayName": "Default", "resolvedModel": "fake-large"},
    {"value": "large", "displayName": "Large", "resolvedModel": "fake-large"},
    {"value": "small", "displayName": "Small", "resolvedModel": "fake-small"},
]
MODES = ("acceptEdits", "default", "dontAsk", "plan")
Json = dict[str, Any]


class Interrupted(Exception):
    """The host wants the turn to end."""


class Cli:
    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.lock = threading.Lock()
        self.mode = self.flag("--permission-mode") or "default"
        self.model = self.flag("--model") or "fake-large"
        self.inbox: queue.Queue[Json] = queue.Queue()
        self.answers: queue.Queue[Json] = queue.Queue()
        self.interrupted = threading.Event()
        self.asking: str | None = None
        self.deaf = self.answers_late = False
        self.allowed: set[str] = set()
        self.count = 0
        self.id = self.flag("--session-id") or self.flag("--resume") or ""
        self.servers = ""

    def flag(self, name: str) -> str | None:
        return self.words[self.words.index(name) + 1] if name in self.words else None

    # -- the record --

    @property
    def folder(self) -> Path:
        home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path(os.environ["HOME"]) / ".claude")
        return home / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", os.getcwd())

    def record(self, kind: str, content: Any, **fields: Any) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        message = {"role": kind, "content": content, **({"id": f"m{self.count}"} if kind == "assistant" else {})}
        line = {"type": kind, "message": message, "cwd": os.getcwd(), "sessionId": self.id, "isSidechain": False}
        with (self.folder / f"{self.id}.jsonl").open("a") as file:
            file.write(json.dumps({**line, **fields}) + "\n")

    def recorded(self) -> list[Json]:
        path = self.folder / f"{self.id}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def take_up(self) -> None:
        """What the flags say of the conversation, refused as the CLI refuses it."""
        known, forked = self.flag("--resume"), "--fork-session" in self.words
        if known is not None and not (self.folder / f"{known}.jsonl").exists():
            self.fail(f"No conversation found with session ID: {known}")
        if known is None and (self.folder / f"{self.id}.jsonl").exists():
            self.fail(f"Error: Session ID {self.id} is already in use.")
        if forked and known is not None:
            (self.folder / f"{self.id}.jsonl").write_text((self.folder / f"{known}.jsonl").read_text())

    def fail(self, words: str) -> None:
        print(words, file=sys.stderr, flush=True)
        os._exit(1)

    # -- the wire --

    def write(self, data: bytes) -> None:
        with self.lock:
            while data:
                data = data[os.write(1, data) :]

    def send(self, kind: str, **fields: Any) -> None:
        self.write(json.dumps({"type": kind, "session_id": self.id, **fields}).encode() + b"\n")

    def reply(self, request_id: str, response: Json | None = None, error: str | None = None) -> None:
        told: Json = {"subtype": "error", "error": error} if error else {"subtype": "success", "response": response}
        self.send("control_response", response={"request_id": request_id, **told})

    def serve(self) -> None:
        how = os.environ.get("FAKE_CLAUDE", "").split()
        if "crash" in how:
            self.fail("fake: no licence found")
        if "chatty" in how:
            self.write(b'{"type":"keep_alive"}\nWelcome!\nPlease log in\n')
            os._exit(3)
        self.take_up()
        servers = self.flag("--mcp-config")
        self.servers = Path(servers).read_text() if servers else ""
        if "noisy" in how:
            self.write(b'Welcome to the fake!\n[1, 2]\n\n{"type": \n')
        threading.Thread(target=self.work, daemon=True).start()
        for line in sys.stdin.buffer:
            message = json.loads(line)  # one that is no JSON ends the CLI, and this too
            if message["type"] == "user":
                self.lifecycle(message, "queued")
                self.inbox.put(message)
            elif message["type"] == "control_response":
                self.answers.put(message["response"])
            elif message["type"] == "control_request" and "mute" not in how:
                self.control(message["request_id"], message["request"])
        os._exit(0)

    def control(self, request_id: str, request: Json) -> None:
        subtype = request["subtype"]
        if self.deaf:
            return
        if subtype == "initialize":
            commands = [{"name": "review", "description": "Review it", "argumentHint": "[file]"}]
            self.reply(request_id, {"commands": commands, "models": MODELS, "current_permission_mode": self.mode})
        elif subtype == "get_settings":
            self.reply(request_id, {"applied": {"model": self.model}})
        elif subtype == "set_permission_mode" and request["mode"] in MODES:
            self.mode = request["mode"]
            self.reply(request_id, {"mode": self.mode})
        elif subtype == "set_model":
            self.model = next((one["resolvedModel"] for one in MODELS if one["value"] == request["model"]), "")
            self.reply(
                request_id, {"model": self.model} if self.model else None, None if self.model else "no such model"
            )
        elif subtype == "interrupt":
            if self.asking is not None:
                self.send("control_cancel_request", request_id=self.asking)
            self.reply(request_id, {"still_queued": []})
            self.interrupted.set()
        else:
            self.reply(request_id, error=f"Unsupported control request: {request}")

    def lifecycle(self, message: Json, state: str) -> None:
        if "uuid" in message:
            self.send("command_lifecycle", command_uuid=message["uuid"], state=state)

    # -- turns --

    def work(self) -> None:
        while True:
            message = self.inbox.get()
            self.interrupted.clear()
            content = message["message"]["content"]
            self.record("user", content)
            self.lifecycle(message, "started")
            self.send(
                "system", subtype="init", cwd=os.getcwd(), model=self.model, permissionMode=self.mode, tools=["Write"]
            )
            words = content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
            name, _, rest = words.partition(" ")
            turn = Turn(self)
            try:
                getattr(turn, f"do_{name.lstrip('/')}")(rest)
            except Interrupted:
                turn.aborted()
            self.lifecycle(message, "completed")


class Turn:
    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        cli.count += 1
        self.tool = ""

    # -- what a model says --

    def say(self, words: str, chunk: int = 4, delay: float = 0.0) -> None:
        """By token, and then all of it again, as the CLI does."""
        message_id = f"m{self.cli.count}-{time.monotonic_ns()}"
        self.stream("message_start", message={"id": message_id})
        self.stream("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for at in range(0, len(words), chunk):
            delta = {"type": "text_delta", "text": words[at : at + chunk]}
            self.stream("content_block_delta", index=0, delta=delta)
            if self.cli.interrupted.wait(delay):
                raise Interrupted
        self.assistant({"type": "text", "text": words}, message_id)
        self.stream("content_block_stop", index=0)
        self.stream("message_stop")

    def stream(self, kind: str, **fields: Any) -> None:
        self.cli.send("stream_event", event={"type": kind, **fields}, parent_tool_use_id=None)

    def assistant(self, block: Json, message_id: str = "m", **fields: Any) -> None:
        message = {"role": "assistant", "id": message_id, "model": self.cli.model, "content": [block]}
        self.cli.send("assistant", message=message, parent_tool_use_id=None, **fields)
        self.cli.record("assistant", [block])

    def use(self, name: str, **given: Any) -> None:
        self.tool = f"toolu_{os.getpid()}_{self.cli.count}_{time.monotonic_ns()}"
        self.assistant({"type": "tool_use", "id": self.tool, "name": name, "input": given})

    def returned(self, words: str, *, error: bool = False) -> None:
        block = {"type": "tool_result", "tool_use_id": self.tool, "content": words, "is_error": error}
        self.cli.send("user", message={"role": "user", "content": [block]}, parent_tool_use_id=None)
        self.cli.record("user", [block])
        self.tool = ""

    def ask(self, name: str, given: Json, **fields: Any) -> Json:
        """The host's answer to a permission."""
        request_id = self.cli.asking = f"ask-{self.tool}"
        request = {"subtype": "can_use_tool", "tool_name": name, "tool_use_id": self.tool, "input": given, **fields}
        self.cli.send("control_request", request_id=request_id, request=request)
        while not self.cli.interrupted.is_set():
            try:
                answer = self.cli.answers.get(timeout=0.02)
            except queue.Empty:
                continue
            if answer["request_id"] == request_id:
                self.cli.asking = None
                told: Json = answer["response"]
                return told
        self.cli.asking = None
        raise Interrupted

    def result(self, subtype: str = "success", **fields: Any) -> None:
        known: Json = {"is_error": subtype != "success", "result": "", "terminal_reason": "completed", "num_turns": 1}
        self.cli.send("result", subtype=subtype, **{**known, **fields})

    def aborted(self) -> None:
        if self.tool:
            self.returned("The user doesn't want to proceed with this tool use.", error=True)
        text = {"type": "text", "text": "[Request interrupted by user]"}
        self.cli.send("user", message={"role": "user", "content": [text]}, parent_tool_use_id=None)
        self.result("error_during_execution", terminal_reason="aborted_streaming")

    # -- what a prompt can ask for --

    def do_say(self, words: str) -> None:
        self.say(words)
        self.result(result=words)

    def do_clear(self, _: str) -> None:
        """Another conversation, under another id, as the CLI does it."""
        self.cli.send("conversation_reset", trigger="clear")
        self.cli.id = str(uuid.uuid4())
        self.cli.send("system", subtype="init", cwd=os.getcwd(), model=self.cli.model, permissionMode=self.cli.mode)
        self.cli.record("user", "<command-name>/clear</command-name>")
        self.result(num_turns=0)

    def do_model(self, name: str) -> None:
        """The command `/model`, of which only words tell; `/model locked` is refused, as a policy does it."""
        if name != "locked":
            self.cli.model = next((one["resolvedModel"] for one in MODELS if one["value"] == name), name)
        self.do_say(f"Model: {self.cli.model}")

    def do_talk(self, _: str) -> None:
        self.say("tick " * 10_000, delay=0.01)

    def do_write(self, path: str) -> None:
        given = {"file_path": path, "content": "written\n"}
        self.use("Write", **given)
        if self.cli.mode != "acceptEdits" and "Write" not in self.cli.allowed:
            suggested = [{"type": "addRules", "rules": [{"toolName": "Write"}], "destination": "session"}]
            answer = self.ask("Write", given, permission_suggestions=suggested)
            if answer["behavior"] == "deny":
                self.returned(answer["message"], error=True)
                if answer.get("interrupt"):
                    raise Interrupted
                self.do_say("Well then.")
                return
            if answer.get("updatedPermissions"):
                self.cli.allowed.add("Write")
            given = answer["updatedInput"]
        Path(given["file_path"]).write_text(given["content"])
        self.returned("File created")
        self.do_say("Written.")

    def do_delegate(self, _: str) -> None:
        """A sub-agent that runs one command; its record is in a file of its own."""
        self.use("Agent", description="Look around", prompt="Look")
        folder = self.cli.folder / self.cli.id / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        used = {"type": "tool_use", "id": f"{self.tool}-1", "name": "Bash", "input": {"command": "ls"}}
        returned = {"type": "tool_result", "tool_use_id": used["id"], "content": "a b"}
        talk = (("user", "Look"), ("assistant", [used]), ("user", [returned]))
        records = ({"type": kind, "message": {"role": kind, "content": each}} for kind, each in talk)
        lines = (json.dumps({**record, "isSidechain": True, "agentId": "a1"}) + "\n" for record in records)
        (folder / "agent-a1.jsonl").write_text("".join(lines))
        (folder / "agent-a1.meta.json").write_text(json.dumps({"toolUseId": self.tool}))
        self.returned("Seen.")
        self.do_say("Done.")

    def do_question(self, _: str) -> None:
        options = [{"label": label, "description": ""} for label in ("Red", "Blue")]
        question = {"question": "Which one?", "header": "Colour", "options": options, "multiSelect": False}
        self.use("AskUserQuestion", questions=[question])
        answer = self.ask("AskUserQuestion", {"questions": [question]})
        self.returned("answered")
        self.do_say(json.dumps(answer.get("updatedInput", {}).get("answers")))

    def do_work(self, marker: str) -> None:
        """A command that runs until it is interrupted, and leaves a process of its own behind."""
        self.use("Bash", command="sleep 3600")
        with subprocess.Popen(["sleep", "3600"], start_new_session=True) as child:
            Path(marker).write_text(str(child.pid))
            self.cli.interrupted.wait()
            child.kill()
        raise Interrupted

    def do_deaf(self, marker: str) -> None:
        """Hears nothing any more, while a command of its own runs on."""
        self.cli.deaf = True
        child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        Path(marker).write_text(str(child.pid))
        child.wait()

    def do_late(self, _: str) -> None:
        """Agrees to an interrupt, and ends its turn only when the next prompt is there."""
        self.say("Working")
        while self.cli.inbox.empty():
            time.sleep(0.01)
        self.result("error_during_execution", terminal_reason="aborted_streaming")

    def do_die(self, code: str) -> None:
        self.use("Bash", command="exit")
        print("fake: out of memory", file=sys.stderr, flush=True)
        os._exit(int(code))

    def do_limit(self, _: str) -> None:
        """Ends at a limit, and the process with it, as the CLI does; a little later, so that a prompt can cross it."""
        self.say("So far")
        self.result("error_max_turns", errors=["Reached maximum number of turns (1)"])
        while self.cli.inbox.empty() and not Path("gone").exists():
            time.sleep(0.01)
        os._exit(1)

    def do_fail(self, status: str) -> None:
        words = f"API Error: {status} it is said"
        error = {"400": "invalid_request", "401": "authentication_failed", "429": "rate_limit"}.get(
            status, "server_error"
        )
        fields = {"error": error, "is_api_error_message": True, "api_error_status": int(status)}
        message = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": words}]}
        self.cli.send("assistant", message=message, parent_tool_use_id=None, **fields)
        self.result(is_error=True, terminal_reason="api_error", result=words, api_error_status=int(status))

    def do_junk(self, words: str) -> None:
        lines = [
            b"Segmentation fault",
            b"null",
            b"{",
            b"[" * 5000,
            b"\xff\xfe\x00",
            b'{"type":"news_of_tomorrow","a":1}',
        ]
        self.cli.write(b"\n".join(lines) + b"\n" + b'{"type":"assistant"}\n')
        self.do_say(words)

    def do_long(self, size: str) -> None:
        words = "x" * int(size)
        self.assistant({"type": "text", "text": words})
        self.result(result=words)

    def do_stderr(self, size: str) -> None:
        for _ in range(int(size) // 65536):
            sys.stderr.write("e" * 65535 + "\n")
        sys.stderr.flush()
        self.do_say("Quiet again.")

    def do_recall(self, _: str) -> None:
        prompts = [record for record in self.cli.recorded() if isinstance(record["message"]["content"], str)]
        self.do_say(f"{len(prompts)} prompts, mode {self.cli.mode}, model {self.cli.model}, words {self.cli.words}")

    def do_servers(self, _: str) -> None:
        self.do_say(self.cli.servers)

    def do_play(self, name: str) -> None:
        """The first turn of a recording of the real CLI."""
        for message in turn_of(name):
            self.cli.write(json.dumps(message).encode() + b"\n")


def turn_of(name: str) -> Iterator[Json]:
    """What the real CLI wrote for the first prompt of a recording, without what needs an answer."""
    for line in (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        message = entry.get("msg")
        if entry["dir"] == "a2c" and isinstance(message, dict) and not message["type"].startswith("control_"):
            yield message
            if message["type"] == "result":
                return


if __name__ == "__main__":
    Cli(sys.argv[1:]).serve()
