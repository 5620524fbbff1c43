"""A hub that kills itself at a chosen point between a decision and the record of its act: `python dying_hub.py HOME
PROJECT POINT KIND`. It runs one turn of the rogue agent and allows all of its requests.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pilothouse.hub.approvals.approvals import Approvals
from pilothouse.hub.approvals.authorization import Authorization
from pilothouse.hub.client import workspace
from pilothouse.hub.client.terminals import Terminals
from pilothouse.hub.recording.recorder import Recorder
from tests.support.rogue import allow, ask, do, rogue_hub, run_turn

POINTS = (
    "before the decision is stored",
    "after the decision is stored",
    "before the act is stored",
    "after the act is stored",
    "after the act",
)
PROGRAMS = {
    "write": (
        ask("c1", title="Work", kind="edit", rawInput={"file_path": "made", "content": "x\n"}),
        do("fs/write_text_file", path="made", content="x\n"),
    ),
    "command": (
        ask("c1", title="Work", kind="execute", rawInput={"command": "sh -c 'echo x >> made'"}),
        do("terminal/create", command="sh", args=["-c", "echo x >> made"]),
    ),
}


def die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str) -> None:
    """Patch the hub so that it kills itself at this point."""
    if point == POINTS[0]:
        Approvals._resolve = die  # type: ignore[method-assign]
    elif point == POINTS[1]:
        Authorization.allow = die  # type: ignore[method-assign]
    elif point == POINTS[2]:
        noted = Recorder.note

        def note(self: Recorder, name: str, data: dict[str, Any], **more: Any) -> Any:
            return die() if name == "act_allowed" else noted(self, name, data, **more)

        Recorder.note = note  # type: ignore[method-assign]
    elif point == POINTS[3]:
        workspace.Workspace._write = die  # type: ignore[method-assign]
        Terminals.start = die  # type: ignore[method-assign]
    else:
        wrote, started = workspace.Workspace._write, Terminals.start

        def write(self: Any, *args: Any, **options: Any) -> Any:
            wrote(self, *args, **options)
            die()

        async def start(self: Any, *args: Any) -> Any:
            terminal = await started(self, *args)
            await self.wait(terminal)
            die()

        workspace.Workspace._write = write  # type: ignore[method-assign]
        Terminals.start = start  # type: ignore[method-assign]


async def main(home: str, project: str, point: str, kind: str) -> None:
    async with rogue_hub(Path(home)) as hub:
        session = await hub.start_session("rogue", project)
        print(session.id, flush=True)
        arm(point)
        question, act = PROGRAMS[kind]
        await run_turn(hub, session, f"{question}\n{act}", allow)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
