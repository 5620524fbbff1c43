"""An ACP agent that runs its prompt as a Python program, for misbehaviour that one test needs and no other.

The program has `agent`, which is the odd agent with a few more ways to ask; `result`, when set, is the answer to the
prompt, and `after` a second program that runs when that has been given.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from odd_agent import OPTIONS, Agent  # type: ignore[import-not-found]


class ScriptAgent(Agent):  # type: ignore[misc]
    def prompt(self, request_id: Any, params: dict[str, Any]) -> None:
        self.prompt_id = request_id
        text = "".join(block.get("text", "") for block in params["prompt"])
        names: dict[str, Any] = {"agent": self, "json": json, "os": os, "time": time}
        exec(text, names)
        self.send({"id": request_id, "result": names.get("result") or {"stopReason": "end_turn"}})
        exec(names.get("after", ""), names)

    def request(self, method: str, **params: Any) -> Any:
        return self.call(method, {"sessionId": self.session, **params})

    def permission(self, call: str, options: Any = OPTIONS, **fields: Any) -> Any:
        return self.request("session/request_permission", toolCall={"toolCallId": call, **fields}, options=options)

    def tool(self, call: str, **fields: Any) -> None:
        self.update("tool_call", toolCallId=call, title="Work", **fields)

    def on_session_new(self, params: dict[str, Any]) -> Any:
        if "terminal-and-fail" not in self.how:
            return super().on_session_new(params)
        command = [sys.executable, "-S", "-c", "import time; time.sleep(3600)"]
        self.send({"id": "t", "method": "terminal/create", "params": {
            "sessionId": "s", "command": command[0], "args": command[1:],
        }})  # fmt: skip
        time.sleep(0.2)  # it has been started when the failure is told
        return {"error": {"code": -32603, "message": "no session today"}}


if __name__ == "__main__":
    ScriptAgent(set(sys.argv[1:])).serve()
