"""A hub at work that kills itself after a random number of records: `python stressed_hub.py HOME PROJECT SEED`.

The rogue agent asks for commands and writes, and does them once, twice, at once, unasked, before the answer, or after
its turn. Two clients decide each request at random, turns are cancelled, and the log fails now and then. A command
appends its word to `made`; a write makes `word-WORD`, which the agent turns into a line of `made`. It prints each
decision that a client was told of: `REQUEST 0|1`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pilothouse.hub.errors import HubError
from pilothouse.hub.hub import Hub
from pilothouse.hub.recording.recorder import Recorder
from pilothouse.hub.session.session import HubSession
from pilothouse.log.errors import LogError, LogFull
from pilothouse.model.events import ApprovalRequestedEvent, Event
from tests.support.rogue import ask, rogue_hub

MOST_RECORDS = 600
FAULTS = 0.01
"""How often the log begins to refuse what it gets, and for how many batches at most."""
MOST_REFUSED = 5


def act(word: str, chance: random.Random) -> tuple[str, str]:
    """A request for an act, and the act."""
    if chance.random() < 0.5:
        fields: dict[str, Any] = {"kind": "execute", "rawInput": {"command": f"echo {word} >> made"}}
        done = (
            f"a = agent.request('terminal/create', command='echo {word} >> made')\n"
            "if 'terminalId' in a: agent.request('terminal/wait_for_exit', terminalId=a['terminalId'])"
        )
    else:
        fields = {"kind": "edit", "rawInput": {"file_path": f"word-{word}", "content": word}}
        done = (
            f"agent.request('fs/write_text_file', path='word-{word}', content='{word}')\n"
            "try:\n"
            f"    os.rename('word-{word}', f'taken-{{threading.get_ident()}}')\n"  # only one thread counts a write
            "except OSError:\n"
            "    pass\n"
            "else:\n"
            f"    open('made', 'a').write('{word}\\n')"
        )
    return ask(f"c{word}", title="Work", **fields), done


def program(words: Sequence[str], chance: random.Random) -> str:
    lines = ["import threading"]
    for word in words:
        question, done = act(word, chance)
        body = done.replace("\n", "\n    ")
        ways = {
            "asked": [question, done],
            "unasked": [done],
            "twice": [question, done, done],
            "before the answer": [f"t = threading.Thread(target=lambda: {question}); t.start()", done, "t.join()"],
            "at once": [
                question,
                f"def act():\n    {body}",
                "ts = [threading.Thread(target=act) for _ in range(3)]",
                "[t.start() for t in ts]; [t.join() for t in ts]",
            ],
            "after the turn": [question, f"after = {done!r}"],
        }
        lines += ways[chance.choice(list(ways))]
    return "\n".join(lines)


def die_after(records: int) -> None:
    record = Recorder.record

    def counting(self: Recorder, *args: Any, **options: Any) -> None:
        nonlocal records
        record(self, *args, **options)
        records -= 1
        if records <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    Recorder.record = counting  # type: ignore[method-assign]


def let_log_fail(hub: Hub, chance: random.Random) -> None:
    append, refused = hub.log.append_nowait, 0

    def append_or_fail(*args: Any, **options: Any) -> asyncio.Future[int]:
        nonlocal refused
        if not refused and chance.random() < FAULTS:
            refused = chance.randint(1, MOST_REFUSED)
        if not refused:
            return append(*args, **options)
        refused -= 1
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_exception(LogFull())
        return done

    hub.log.append_nowait = append_or_fail  # type: ignore[method-assign]


async def decide(session: HubSession, chance: random.Random) -> None:
    """One client."""
    events = session.events(session.state.seq)
    async for event in events:
        if is_request(event):
            approved = chance.random() < 0.6
            with contextlib.suppress(HubError, LogError):
                await session.decide(event.request_id, approved=approved)  # type: ignore[attr-defined]
                os.write(1, f"{event.request_id} {int(approved)}\n".encode())  # type: ignore[attr-defined]


def is_request(event: Event) -> bool:
    return isinstance(event, ApprovalRequestedEvent)


async def work(hub: Hub, project: Path, seed: int) -> None:
    chance = random.Random(seed)
    session = await hub.start_session("rogue", project)
    clients = [asyncio.ensure_future(decide(session, random.Random(f"{seed} {one}"))) for one in range(2)]
    number = 0
    while not any(client.done() for client in clients):
        words = [f"w{seed}x{number + one}" for one in range(chance.randint(1, 4))]
        number += len(words)
        with contextlib.suppress(HubError, LogError):
            prompt = await session.send(program(words, chance))
            if chance.random() < 0.3:
                await asyncio.wait((prompt.done,), timeout=chance.random() / 4)
                await session.cancel(force=chance.random() < 0.5)
            await prompt.done


async def main(home: str, project: str, seed: str) -> None:
    chance = random.Random(seed)
    async with rogue_hub(Path(home), cancel_deadline=0.5) as hub:
        die_after(chance.randrange(50, MOST_RECORDS))
        let_log_fail(hub, chance)
        await asyncio.gather(*(work(hub, Path(project), int(seed) * 10 + one) for one in range(2)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
