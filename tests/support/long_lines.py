"""The memory of a hub whose agent sends a long line: `python long_lines.py HOME MEGABYTES`.

Prints, as JSON, the peak of what it held in mebibytes before the line and after it, how many characters the agent said
in all, how the turn ended, and what was diagnosed.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from tests.support.hubs import facts, history, odd_hub, said


def peak() -> int:
    """Mebibytes that this process held at most."""
    status = Path("/proc/self/status")
    if status.exists():  # the other number begins with that of whoever started this
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 * 1024)


async def main(home: Path, megabytes: str) -> None:
    async with odd_hub(home, "resume") as hub:
        session = await hub.start_session("odd", home)
        await session.prompt("echo warm")
        before = peak()
        result = await session.prompt(f"line {megabytes}")
        after = peak()
        assert (await session.prompt("echo still here")).stop_reason == "end_turn"
        events = await history(hub.log, session.id)
        diagnostics = [data["reason"] for data in facts(events, "diagnostic")]
        print(json.dumps([before, after, len(said(events)), result.stop_reason, diagnostics]))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
