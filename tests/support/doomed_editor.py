"""An editor to be killed: it starts a bridge and a turn, prints the bridge's pid and the session, and stays.

python doomed_editor.py CWD PROMPT
"""

from __future__ import annotations

import json
import subprocess
import sys


def main(cwd: str, prompt: str) -> None:
    command = [sys.executable, "-m", "pilothouse.cli", "acp", "-a", "demo"]
    bridge = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert bridge.stdin is not None
    assert bridge.stdout is not None

    def ask(number: int, method: str, params: object) -> None:
        assert bridge.stdin is not None
        bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
        bridge.stdin.write(b"\n")
        bridge.stdin.flush()

    ask(0, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    ask(1, "session/new", {"cwd": cwd, "mcpServers": []})
    for line in bridge.stdout:
        message = json.loads(line)
        if message.get("id") == 1:
            session = message["result"]["sessionId"]
            ask(2, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
        if message.get("params", {}).get("update", {}).get("sessionUpdate") == "agent_message_chunk":
            print(bridge.pid, session, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
