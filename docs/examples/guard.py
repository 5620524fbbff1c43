"""Run an agent under a policy and print its session as unified events, one a line.

What the policy does not allow is rejected. Usage: guard.py PROMPT COMMAND [ARG...]
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from pilothouse import decide
from pilothouse.acp import (
    AllowedOutcome,
    Client,
    ConnectionClosed,
    DeniedOutcome,
    PermissionOption,
    RequestError,
    RequestPermissionResponse,
    SpawnError,
    spawn_agent_process,
    text_block,
)
from pilothouse.dialects.acp import Translator
from pilothouse.model import ApprovalRequestedEvent, Event, encode_event
from pilothouse.model import utc_now as now

POLICY = {
    "autoApprove": {
        "reads": True,
        "searches": True,
        "writes": ["*.txt", "pilothouse-demo/*.py"],
        "commands": ["python3 -B -m unittest"],
    },
    "deny": {"commands": ["rm *"]},
}


class Notification(msgspec.Struct):
    update: msgspec.Raw


class Guard(Client):
    def __init__(self, workspace: Path) -> None:
        self.workspace = str(workspace)
        self.translator = Translator("guarded", workspace=self.workspace, status="idle")
        self.requests = 0
        self.seq = 0

    def log(self, events: list[Event]) -> None:
        for event in events:
            self.seq += 1
            event.seq = self.seq
            print(encode_event(event).decode(), flush=True)

    async def session_update(self, session_id: str, update: Any, raw_params: bytes, **kwargs: Any) -> None:
        raw = msgspec.json.decode(raw_params, type=Notification).update
        self.log(self.translator.update(bytes(raw), now()))

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], raw_params: bytes, **kwargs: Any
    ) -> RequestPermissionResponse:
        self.requests += 1
        request_id = f"request-{self.requests}"
        events = self.translator.permission(bytes(raw_params), now(), request_id=request_id)
        self.log(events)
        (asked,) = (event for event in events if isinstance(event, ApprovalRequestedEvent))
        decision = decide(POLICY, asked.tool_name, asked.tool_input, self.workspace)
        wanted = "allow_once" if decision.outcome == "allow" else "reject_once"
        option = next((option for option in options if option.kind == wanted), None)
        approved = option is not None and wanted == "allow_once"
        resolved = self.translator.resolve(
            request_id, now(), approved=approved, resolved_by="policy", reason=decision.reason
        )
        self.log(resolved)
        if option is None:  # nothing that stands for this decision was offered
            return RequestPermissionResponse(outcome=DeniedOutcome())
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=option.option_id))


async def main(prompt: str, command: list[str]) -> None:
    guard = Guard(Path.cwd())
    async with spawn_agent_process(guard, *command) as (agent, _):
        await agent.initialize()  # no files and no terminals are lent: what the agent does, it does itself, and asks
        session = await agent.new_session(cwd=guard.workspace)
        guard.log(guard.translator.prompt(prompt, now(), turn_id="turn-1"))
        try:
            response = await agent.prompt(session.session_id, [text_block(prompt)])
        except RequestError as error:
            guard.log(guard.translator.failed({"code": error.code, "message": str(error), "data": error.data}, now()))
        except ConnectionClosed as end:
            guard.log(guard.translator.died(now(), exit_code=end.exit_code, stderr_tail=end.stderr_tail or ""))
        else:
            guard.log(guard.translator.result(response, now()))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2:]))
    except SpawnError as error:
        sys.exit(str(error))
