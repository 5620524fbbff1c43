"""Use the hub that runs on this machine: start a session, run a prompt, decide what the agent asks for.

python docs/examples/remote.py AGENT "a prompt"
"""

import asyncio
import sys
from pathlib import Path

from pilothouse.config import home_directory
from pilothouse.remote import NoHub, connect, end_of


async def main(agent: str, prompt: str) -> None:
    async with connect(home_directory()) as hub:
        session = await hub.start_session(agent, Path.cwd())
        turn = await session.send(prompt)
        async for event in session.events(after=turn.seq):
            if event.type == "message:delta" and event.role == "assistant":
                print(event.delta, end="", flush=True)
            elif event.type == "approval:requested":
                is_safe = event.risk_level == "low"
                await hub.decide(event.request_id, approved=is_safe, reason="only what is harmless", by="remote.py")
            elif end := end_of(event, turn.turn_id):
                print(f"\n({end.stop_reason}, event {end.seq})")
                break


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:3]))
    except NoHub as exc:
        sys.exit(f"{exc}; `pilothouse serve` starts one")
