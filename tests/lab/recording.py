"""Records what passes between Claude Code's own CLI and its host, for the goldens: short, and the same each time.

    python -m tests.lab.recording DIRECTORY [NAME …]

Each scenario talks to the CLI itself, without our bridge: what is recorded is what a CLI says, not what we make of it.
Ids are numbered, paths are made up, and what is long and of no use is cut.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab.agents import AGENTS, CLEAN, LAB, programs, spec
from tests.lab.claude_cases import bash, raw, script
from tests.lab.model.server import model_server

Json = dict[str, Any]
FLAGS = (
    *("-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"),
    *("--include-partial-messages", "--permission-prompt-tool", "stdio"),
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CELL = {"cell_type": "code", "id": "c1", "metadata": {}, "source": "1 + 1", "outputs": [], "execution_count": None}
NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"language_info": {"name": "python"}}, "cells": [CELL]}
PATIENCE = 60


def prompt(content: Any) -> Json:
    return {"type": "user", "message": {"role": "user", "content": content}}


def control(number: int, subtype: str, **fields: Any) -> Json:
    return {"type": "control_request", "request_id": f"req-{number}", "request": {"subtype": subtype, **fields}}


def _control(work: Path) -> list[Json]:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}
    return [
        control(1, "initialize", hooks=hooks, sdkMcpServers=["calc"]),
        control(2, "set_permission_mode", mode="acceptEdits"),
        control(3, "set_model", model="haiku"),
        control(4, "no_such_subtype"),
        prompt(script(bash("echo hi"), "Done.")),
    ]


def _faults(work: Path) -> list[Json]:
    overloaded = {"error": {"status": 529, "message": "Overloaded"}}
    return [prompt(script(overloaded)), prompt(script({"text": "Never heard.", "drop": 1}))]


def _image(work: Path) -> list[Json]:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    blocks = [{"type": "image", "source": source}, {"type": "text", "text": script(_read(work / "dot.png"), "Seen.")}]
    return [prompt(blocks)]


def _notebook(work: Path) -> list[Json]:
    path = str(work / "book.ipynb")
    change = raw("NotebookEdit", notebook_path=path, cell_id="c1", new_source="2 + 2")
    delete = raw("NotebookEdit", notebook_path=path, cell_id="c1", new_source="", edit_mode="delete")
    return [prompt(script(_read(Path(path)), change, delete, "Done."))]


def _thinking(work: Path) -> list[Json]:
    return [prompt(script({"redacted": "c2VjcmV0", "think": "Hm.", "text": "Well."}))]


def _read(path: Path) -> Json:
    return {"op": "read", "path": str(path)}


SCENARIOS: dict[str, Callable[[Path], list[Json]]] = {
    "control": _control,
    "api_faults": _faults,
    "images": _image,
    "notebook": _notebook,
    "redacted_thinking": _thinking,
}


async def record(name: str, place: Path, url: str) -> list[Json]:
    """The lines of a scenario in both directions. Requests of the CLI are answered as a host that has nothing does."""
    agent = AGENTS["claude-code"]
    work = place / "work"
    work.mkdir(parents=True)
    (work / "dot.png").write_bytes(base64.b64decode(PIXEL))
    (work / "book.ipynb").write_text(json.dumps(NOTEBOOK))
    command = spec(agent, LAB, place / "home", url).command
    variables = command[command.index(CLEAN) + 1 : command.index("--")]
    program = str(programs(LAB, agent.name) / agent.command[0])
    cli = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", "-E", CLEAN, *variables, "--", program, *FLAGS),
        cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 24,
    )  # fmt: skip
    entries: list[Json] = []

    def say(message: Json) -> None:
        entries.append({"dir": "c2a", "msg": message})
        cli.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]

    async def hear(last: Callable[[Json], bool]) -> None:
        while line := await cli.stdout.readline():  # type: ignore[union-attr]
            message = json.loads(line)
            entries.append({"dir": "a2c", "msg": message})
            if message["type"] == "control_request":
                say({"type": "control_response", "response": _answer(message)})
            elif last(message):
                return

    async with asyncio.timeout(PATIENCE):
        for message in SCENARIOS[name](work):
            say(message)
            wanted = "result" if message["type"] == "user" else "control_response"
            await hear(lambda heard, wanted=wanted: heard["type"] == wanted)  # type: ignore[misc]
        cli.stdin.close()  # type: ignore[union-attr]
        await cli.wait()
    return Shortening(work, place / "home").entries(entries)


def _answer(message: Json) -> Json:
    request, about = message["request"], {"subtype": "success", "request_id": message["request_id"]}
    if request["subtype"] == "can_use_tool":
        return {**about, "response": {"behavior": "allow", "updatedInput": request["input"]}}
    if request["subtype"] == "mcp_message":
        asked = request["message"]
        error = {"error": {"code": -32601, "message": "There is no such server."}} if "id" in asked else {"result": {}}
        return {**about, "response": {"mcp_response": {"jsonrpc": "2.0", "id": asked.get("id"), **error}}}
    return {**about, "response": {}}


IDS = re.compile(r"(toolu_|msg_)\w{8,}|([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})")
PORT = re.compile(r"127\.0\.0\.1:\d+")
KEPT = ("type", "subtype", "cwd", "session_id", "tools", "mcp_servers", "model", "permissionMode", "slash_commands")
CUT = {"uuid", "timestamp", "diagnostics", "context_management", "ttft_ms", "fast_mode_state", "user_message_uuids"}
LONG = {"description", "argumentHint"}
LISTS = {"commands": 2, "models": 3, "tools": 3, "slash_commands": 2, "agents": 1, "available_output_styles": 1}


class Shortening:
    """Makes recordings the same each time."""

    def __init__(self, work: Path, home: Path) -> None:
        folder = re.sub(r"[^a-zA-Z0-9]", "-", str(work))
        self._paths = ((str(work), "/work/project"), (str(home), "/home/user"), (folder, "-work-project"))
        self._ids: dict[str, str] = {}

    def entries(self, entries: list[Json]) -> list[Json]:
        kept = (entry for entry in entries if "input_json_delta" not in json.dumps(entry))  # paths, cut anywhere
        return [{"dir": entry["dir"], "msg": self._line(entry["msg"])} for entry in kept]

    def _line(self, message: Json) -> Json:
        if message.get("subtype") == "init":
            message = {key: message[key] for key in (*KEPT, "claude_code_version")}
        made: Json = self._value("", message)
        return made

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._value(name, item) for name, item in value.items() if name not in CUT}
        if isinstance(value, list):
            return [self._value(key, item) for item in value[: LISTS.get(key)]]
        if not isinstance(value, str):
            return value
        if value.startswith("@@fake"):
            return "go"
        for old, new in self._paths:
            value = value.replace(old, new)
        value = IDS.sub(self._numbered, PORT.sub("127.0.0.1:1", value))
        return value[:30] if key in LONG else value

    def _numbered(self, found: re.Match[str]) -> str:
        return self._ids.setdefault(found[0], f"{found[1] or 'id_'}{len(self._ids) + 1}")


def main(directory: str, *names: str) -> None:
    with model_server() as model, tempfile.TemporaryDirectory() as place:
        for name in names or SCENARIOS:
            entries = asyncio.run(record(name, Path(place) / name, model.url))
            lines = [json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries]
            (Path(directory) / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
            print(f"{name}: {len(lines)} lines")


if __name__ == "__main__":
    main(*sys.argv[1:])
