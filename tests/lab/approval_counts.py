"""How often each agent asks in an ordinary turn: read, edit, write, shell command, denied write.

    PILOTHOUSE_LAB=DIR python -m tests.lab.approval_counts [AGENT…]

prints one line of JSON for each agent: the approval requests of the agent, those of the hub, and the flags. It works
with any version of the package on PYTHONPATH, so two versions can be compared.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pilothouse.hub.agent.process import AgentSpec
from pilothouse.hub.hub import Hub
from tests.lab.agents import AGENTS, spec
from tests.lab.model.server import model_server
from tests.support.hubs import facts, history

PATIENCE = 120


def own_agents(url: str) -> dict[str, AgentSpec]:
    python = (sys.executable, "-P", "-m", "pilothouse.cli")
    coder = (*python, "agent", "--model", f"openai:fake@{url}/v1")
    return {
        "demo": AgentSpec(name="demo", command=(*python, "demo-agent")),
        "coder": AgentSpec(name="coder", command=coder, env={"OPENAI_API_KEY": "none"}),
    }


def prompts(name: str, work: Path) -> list[str]:
    if name == "demo":
        return ["read hello.txt", "edit hello.txt HELLO", "edit new.txt one", "bash touch ran.txt", "edit never.txt x"]
    steps: list[Any] = [
        {"op": "read", "path": f"{work}/hello.txt"},
        {"op": "edit", "path": f"{work}/hello.txt", "old": "hello world", "new": "HELLO LAB"},
        {"op": "write", "path": f"{work}/new.txt", "content": "one\ntwo\n"},
        {"op": "bash", "cmd": f"touch {work}/ran.txt", "escalate": True},
        {"op": "write", "path": f"{work}/never.txt", "content": "x\n"},
        "Done.",
    ]
    return ["@@fake " + json.dumps(steps)]


async def count(agent: AgentSpec, place: Path) -> dict[str, Any]:
    work = place / "work"
    work.mkdir(parents=True)
    (work / "hello.txt").write_text("hello world\nsecond line\n")
    asked: list[Any] = []
    async with Hub(home=place / "hub", agents={agent.name: agent}) as hub, asyncio.timeout(PATIENCE):
        session = await hub.start_session(agent.name, work)
        mode = AGENTS[agent.name].mode if agent.name in AGENTS else None
        if mode is not None:
            await session.set_mode(mode)

        async def decide() -> None:
            async for event in session.events(session.state.seq):
                if event.type == "approval:requested":
                    asked.append(event)
                    is_denied = "never.txt" in json.dumps(event.tool_input) + str(event.preview)
                    await session.decide(event.request_id, approved=not is_denied)

        deciding = asyncio.ensure_future(decide())
        for prompt in prompts(agent.name, work):
            await session.prompt(prompt)
        deciding.cancel()
        flags = facts(await history(hub.log, session.id), "acted_without_asking")
    own = [event for event in asked if getattr(event, "origin", "agent") == "hub"]
    return {
        "agent": agent.name,
        "asked": len(asked) - len(own),
        "asked by the hub": [event.description for event in own],
        "flagged": [f"{flag['name']}{' (denied)' if flag.get('denied') else ''}" for flag in flags],
        "denied write": "written" if (work / "never.txt").exists() else "not written",
        "done": sorted(path.name for path in work.iterdir()),
    }


async def main(names: list[str]) -> None:
    lab = Path(os.environ["PILOTHOUSE_LAB"])
    with model_server() as server, tempfile.TemporaryDirectory() as directory:
        known = own_agents(server.url)
        for name in names or [*known, *AGENTS]:
            place = Path(directory) / name
            home = place / "home"
            home.mkdir(parents=True)
            agent = known[name] if name in known else spec(AGENTS[name], lab, home, server.url)
            try:
                print(json.dumps(await count(agent, place)), flush=True)
            except Exception as exc:
                print(json.dumps({"agent": name, "error": repr(exc)}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
