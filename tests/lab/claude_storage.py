"""Records what Claude Code's own CLI keeps of its sessions, for the goldens of discovery: short, and without the words
that it sends to its model.

    python -m tests.lab.claude_storage DIRECTORY

The CLI runs in a terminal, as its users run it. Ids are numbered, times and paths are made up. The last session is
killed in the middle of a tool call.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.agents import AGENTS, CLEAN, LAB, programs, spec
from tests.lab.claude_cases import bash, raw, script
from tests.lab.model.server import model_server

Json = dict[str, Any]
PATIENCE = 60
KEY = "sk-ant-none"


class Terminal:
    """The CLI in a terminal of its own."""

    def __init__(self, home: Path, work: Path, url: str) -> None:
        self.home, self.work = home, work
        folder = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        keys = {"approved": [KEY], "rejected": []}
        known = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": keys}
        command = spec(AGENTS["claude-code"], LAB, home, url).command
        (home / ".claude.json").write_text(json.dumps({**known, "projects": {str(work): folder}}))
        variables = command[command.index(CLEAN) + 1 : command.index("--")]
        program = str(programs(LAB, "claude-code") / "claude")
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(work)
            os.execv(sys.executable, [sys.executable, "-S", "-E", CLEAN, *variables, "--", program])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    @property
    def told(self) -> Json:
        """What the process says of itself."""
        try:
            found: Json = json.loads((self.home / f".claude/sessions/{self.pid}.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    @property
    def records(self) -> str:
        files = (self.home / ".claude/projects").rglob("*.jsonl")
        return "\n".join(path.read_text() for path in files)

    def until(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: {self.told}")
            self._drain(0.1)
        self._drain(0.3)

    def _drain(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                with contextlib.suppress(OSError):  # it has ended
                    os.read(self._terminal, 1 << 16)

    def press(self, keys: bytes) -> None:
        os.write(self._terminal, keys)
        self._drain(0.5)

    def choose(self) -> None:
        """Take the first of what is offered; a dialog that has just opened hears nothing."""
        while self.told.get("status") == "waiting":
            self.press(b"1")

    def say(self, words: str, recorded: str, status: str = "idle") -> None:
        """Type a prompt; go on when the records hold these words and the CLI has the status."""
        before = self.records.count(recorded)
        self.press(words.encode())
        self.press(b"\r")
        self.until(lambda: self.records.count(recorded) > before and self.told.get("status") == status, words)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


def said(words: str) -> str:
    """As the model's words are recorded, other than those of a prompt."""
    return f'"type":"text","text":"{words}"'


def record(terminal: Terminal) -> None:
    say, work = terminal.say, terminal.work
    question = {"question": "Which?", "header": "Pick", "multiSelect": False}
    options = [{"label": label, "description": label.lower()} for label in "AB"]
    sub = raw("Agent", description="Sub job", prompt=script("From below."), subagent_type="general-purpose")
    terminal.until(lambda: terminal.told.get("status") == "idle", "the start")
    looking = {"think": "Hm.", "text": "Let me see.", "calls": [bash("echo a"), bash("echo b")]}
    say(script(looking, "Both done."), said("Both done."))
    say(script({"op": "write", "path": str(work / "new.txt"), "content": "one\n"}, "Written."), "tool_use", "waiting")
    terminal.choose()
    terminal.until(lambda: said("Written.") in terminal.records, "the file is written")
    say(script(sub, "Sub is done."), said("Sub is done."))
    say(script(raw("AskUserQuestion", questions=[{**question, "options": options}]), "Chosen."), "Which?", "waiting")
    terminal.choose()
    terminal.until(lambda: said("Chosen.") in terminal.records, "the question is answered")
    say("/rename Mend the pump", "Session renamed")
    say("! echo shell", "bash-stdout")
    say("/compact", "compact_boundary")
    say("/clear", "/clear")
    waiting = bash("touch one; for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done")
    say(script({"text": "This takes long.", "calls": [waiting]}, "Never."), "touch one", "waiting")
    terminal.choose()
    terminal.until(lambda: terminal.told.get("status") == "busy", "the command runs")
    terminal.press(b"\x1b")
    terminal.until(lambda: "[Request interrupted" in terminal.records, "the interruption")
    say(script({"text": "Now to the end.", "calls": [bash("touch two")]}, "Never."), "touch two", "waiting")


# -- made the same each time --------------------------------------------------------------------------------------

IDS = re.compile(r"(toolu_|msg_|req_|agent-)\w{8,}|([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})")
CUT = {
    "usage",
    "diagnostics",
    "context_management",
    "requestId",
    "gitBranch",
    "rendered",
    "snapshot",
    "shape",
    "params",
}
LONG = 300
BARE = {"attachment", "api-request", "api-request-shape", "api-request-blob", "file-history-snapshot", "cost-state"}
"""Records that are kept without what is in them."""


class Scrubbing:
    def __init__(self, work: Path, home: Path) -> None:
        folder = re.sub(r"[^a-zA-Z0-9]", "-", str(work))
        self._paths = ((str(work), "/work/project"), (str(home), "/home/user"), (folder, "-work-project"))
        self._ids: dict[str, str] = {}
        self._prompts: dict[str, str] = {}
        self._lines = 0

    def line(self, text: str) -> str:
        record = json.loads(text)
        self._lines += 1
        if record["type"] in BARE:
            kind = (record.get("attachment") or {}).get("type")
            kept = {key: record[key] for key in ("type", "uuid", "sessionId", "isSidechain") if key in record}
            record = {**kept, "attachment": {"type": kind}} if kind else kept
        if "timestamp" in record:
            record["timestamp"] = f"2026-01-01T00:{self._lines // 60:02}:{self._lines % 60:02}.000Z"
        return json.dumps(self.value(record), ensure_ascii=False, separators=(",", ":"))

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items() if key not in CUT}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, str):
            return value
        if value.startswith("@@fake"):
            return self._prompts.setdefault(value, f"Prompt {len(self._prompts) + 1}")
        if value.startswith("This session is being continued"):
            return "The summary of what was said."
        for old, new in self._paths:
            value = value.replace(old, new)
        return IDS.sub(self.identity, value)[:LONG]

    def identity(self, found: re.Match[str]) -> str:
        number = len(self._ids) + 1
        made = f"{found[1]}{number}" if found[1] else f"00000000-0000-4000-8000-{number:012}"
        return self._ids.setdefault(found[0], made)


def main(directory: str) -> None:
    with model_server() as model, tempfile.TemporaryDirectory() as place:
        home, work = Path(place) / "home", Path(place) / "work"
        home.mkdir()
        work.mkdir()
        terminal = Terminal(home, work, model.url)
        try:
            record(terminal)
        finally:
            terminal.kill()
        target, scrubbing = Path(directory) / "home", Scrubbing(work, home)
        shutil.rmtree(target, ignore_errors=True)
        files = sorted((home / ".claude/projects").rglob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
        for path in files:
            lines = [scrubbing.line(line) for line in path.read_text().splitlines()]
            below = path.relative_to(home / ".claude/projects").parts[1:]
            kept = target / "projects" / "-work-project" / IDS.sub(scrubbing.identity, "/".join(below))
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text("\n".join(lines) + "\n")
            print(f"{kept.relative_to(target)}: {len(lines)} lines")
        told = {key: terminal.told[key] for key in ("pid", "sessionId", "cwd", "startedAt", "status", "waitingFor")}
        (target / "sessions").mkdir()
        fixed = {**told, "pid": 4242, "startedAt": 1767225600000}
        (target / "sessions" / "4242.json").write_text(json.dumps(scrubbing.value(fixed)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
