"""An editor of the benchmarks, in a process of its own: starts an agent, gives it one prompt, and tells what arrived.

    python editor.py lines|pilothouse|sdk PROMPT COMMAND…

`lines` only looks for marks in what it reads; `pilothouse` and `sdk` are clients made with this library and with the
official one, which hand each update to a method. Prints a line of JSON: when the agent began, when the prompt was
answered and all updates were handled, how many there were, their ages, and the resident bytes of the command.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BEGIN = re.compile(rb"begin (\d+\.\d+) ")
SENT = re.compile(rb"sent (\d+\.\d+) ")
MARK = b"chunk number "


class Seen:
    """What arrived."""

    def __init__(self) -> None:
        self.began = 0.0
        self.count = 0
        self.ages: list[float] = []

    def text(self, text: str) -> None:
        if text.startswith("begin "):
            self.began = float(text[6:])
        elif text.startswith("sent "):
            self.ages.append(time.time() - float(text[5:]))
        else:
            self.count += 1

    def told(self, pid: int) -> str:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return json.dumps(
            {
                "began": self.began,
                "ended": time.time(),
                "count": self.count,
                "ages": sorted(self.ages),
                "rss": pages * resource.getpagesize(),
            }
        )


def by_lines(prompt: str, command: list[str]) -> str:
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert agent.stdin is not None
    assert agent.stdout is not None
    calls = iter(range(1, 100))

    def call(method: str, params: dict[str, Any]) -> tuple[bytes, bytes]:
        number = next(calls)
        assert agent.stdin is not None
        agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
        agent.stdin.write(b"\n")
        return b'"id": %d,' % number, b'"id":%d,' % number

    def answer(marks: tuple[bytes, bytes], seen: Seen) -> bytes:
        assert agent.stdout is not None
        tail = b""
        while data := agent.stdout.read(1 << 16):
            now = time.time()
            tail += data
            whole, _, tail = tail.rpartition(b"\n")
            if found := BEGIN.search(whole):
                seen.began = float(found[1])
            seen.ages += [now - float(one[1]) for one in SENT.finditer(whole)]
            seen.count += whole.count(MARK)
            last = whole[whole.rfind(b"\n") + 1 :]
            if any(mark in last[:40] for mark in marks):
                return last
            for line in whole.splitlines() if any(mark in whole for mark in marks) else ():
                if any(mark in line[:40] for mark in marks):
                    return line
        raise SystemExit("the agent ended")

    seen = Seen()
    answer(call("initialize", {"protocolVersion": 1, "clientCapabilities": {}}), seen)
    new = answer(call("session/new", {"cwd": str(Path.cwd()), "mcpServers": []}), seen)
    session = json.loads(new)["result"]["sessionId"]
    answer(call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]}), seen)
    told = seen.told(agent.pid)
    agent.stdin.close()
    agent.kill()
    agent.wait()
    return told


async def by_client(package: str, prompt: str, command: list[str]) -> str:
    acp = importlib.import_module(package)
    seen = Seen()

    class Client(acp.Client):  # type: ignore[misc]  # one of two packages
        async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
            text = getattr(getattr(update, "content", None), "text", None)
            if text is not None and update.session_update == "agent_message_chunk":
                seen.text(text)

    async with acp.spawn_agent_process(Client(), *command, env=dict(os.environ)) as (agent, process):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=str(Path.cwd()), mcp_servers=[])
        await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(prompt)])
        words = prompt.split()
        while len(seen.ages if words[0] == "ping" else range(seen.count)) < int(words[1]):
            await asyncio.sleep(0.001)  # the official client answers a prompt before it has handled its updates
        return seen.told(process.pid)


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind == "lines":
        print(by_lines(rest[0], rest[1:]))
    else:
        package = {"pilothouse": "pilothouse.acp", "sdk": "acp"}[kind]
        print(asyncio.run(by_client(package, rest[0], rest[1:])))
