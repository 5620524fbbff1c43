"""The agent of the benchmarks: prepared lines as fast as the pipe takes them, or one at a time. No dependencies.

Prompts: `flood N` · `ping N SECONDS` · `line BYTES` (one line of that length).
"""

import json
import sys
import time

out = sys.stdout.buffer


def answer(request, result):
    out.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n")
    out.flush()


def update(text):
    content = {"type": "text", "text": text}
    params = {"sessionId": "bench", "update": {"sessionUpdate": "agent_message_chunk", "content": content}}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"


def prompt(word, count, pause="0.002"):
    if word == "flood":
        lines = [update(f"chunk number {i} of the answer") for i in range(int(count))]
        out.write(update(f"begin {time.time()} "))
        out.writelines(lines)
    elif word == "line":
        out.write(update("x" * int(count)))
    else:
        for _ in range(int(count)):
            out.write(update(f"sent {time.time()} "))
            out.flush()
            time.sleep(float(pause))


for line in sys.stdin.buffer:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        answer(request, {"protocolVersion": 1, "agentCapabilities": {}})
    elif method == "session/new":
        answer(request, {"sessionId": "bench"})
    elif method == "session/prompt":
        prompt(*request["params"]["prompt"][0]["text"].split())
        answer(request, {"stopReason": "end_turn"})
