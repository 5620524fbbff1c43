"""How fast sessions of other programs are found and read: `python bench/discovery.py`. Each figure has its baseline.

- first index ever: 5,000 session files of Claude Code and Codex, none of them known, against reading all to the end
- first listing of a new process: the same with the index that one before has kept, without what Python needs to start
- later listing: the same when nothing changed, against a plain walk that looks at each file's size and time
- after ten changes: the same when ten files have grown
- finder: the same through everything, with the processes of this machine looked through
- one session of 50 MB: its records as updates of the protocol, against decoding its lines
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from pilothouse.adapters.discovery.claude import ClaudeStore
from pilothouse.adapters.discovery.codex import CodexStore
from pilothouse.adapters.discovery.finder import Finder
from pilothouse.adapters.discovery.store import Store

FILES = 5_000
FOLDERS = 50
TURNS = 4
LARGE = 50 * 10**6
WORDS = "Words as a model says them, neither few nor very many, and now and then a name like src/main.py. " * 4

Json = dict[str, Any]


def session_id(number: int) -> str:
    return str(uuid.UUID(int=number + 1, version=4))


def claude_turn(number: int, name: str) -> Iterator[Json]:
    """A prompt, a tool call with its result, an answer."""
    about = {"cwd": "/work/project", "sessionId": name, "timestamp": "2026-01-01T00:00:00.000Z", "isSidechain": False}
    call = f"toolu_{number}"
    told = {"role": "assistant", "model": "some-model", "id": f"msg_{number}"}
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"echo {number}"}}
    result = {"type": "tool_result", "tool_use_id": call, "content": WORDS}
    stdout = {"stdout": WORDS, "stderr": "", "interrupted": False}
    text = {"type": "text", "text": WORDS}
    yield {"type": "user", "message": {"role": "user", "content": f"Prompt {number}: {WORDS}"}, **about}
    yield {"type": "assistant", "message": {**told, "content": [use], "stop_reason": "tool_use"}, **about}
    yield {"type": "user", "message": {"role": "user", "content": [result]}, "toolUseResult": stdout, **about}
    yield {"type": "assistant", "message": {**told, "content": [text], "stop_reason": "end_turn"}, **about}


def codex_turn(number: int, name: str) -> Iterator[Json]:
    def item(kind: str, **payload: Any) -> Json:
        return {"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}

    said = [{"type": "input_text", "text": f"Prompt {number}: {WORDS}"}]
    arguments = json.dumps({"cmd": f"echo {number}"})
    if number == 0:
        yield item("session_meta", id=name, cwd="/work/project", timestamp="2026-01-01T00:00:00.000Z")
    yield item("turn_context", cwd="/work/project", model="some-model")
    yield item("response_item", type="message", role="user", content=said)
    yield item("response_item", type="function_call", name="exec_command", call_id=f"c{number}", arguments=arguments)
    yield item("response_item", type="function_call_output", call_id=f"c{number}", output=WORDS)
    answer = [{"type": "output_text", "text": WORDS}]
    yield item("response_item", type="message", role="assistant", content=answer)
    yield item("event_msg", type="task_complete", last_agent_message="done")


def write(path: Path, turn: Callable[[int, str], Iterator[Json]], name: str, *, size: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        number = 0
        while number < TURNS or file.tell() < size:
            file.writelines(msgspec.json.encode(record) + b"\n" for record in turn(number, name))
            number += 1


def make(root: Path) -> None:
    for number in range(FILES // 2):
        name = session_id(number)
        write(root / "claude/projects" / f"-work-{number % FOLDERS}" / f"{name}.jsonl", claude_turn, name)
        day = Path("2026") / f"{number % 12 + 1:02}" / f"{number % 28 + 1:02}"
        file = f"rollout-2026-01-01T00-00-00-{name}.jsonl"
        write(root / "codex/sessions" / day / file, codex_turn, name)


def taken(work: Callable[[], Any], tries: int = 3) -> tuple[float, Any]:
    """The best of some tries: other programs run here too."""
    best, result = float("inf"), None
    for _ in range(tries):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def walk(root: Path) -> list[os.stat_result]:
    """What the list costs at the least: each file's entry."""
    return [Path(folder, name).stat() for folder, _, names in os.walk(root) for name in names]


def decode(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for line in file if msgspec.json.decode(line) is not None)


def decode_all(root: Path) -> int:
    return sum(decode(path) for path in root.rglob("*.jsonl"))


def opened(root: Path, keep: Path | None = None) -> list[Store]:
    stores: list[Store] = [ClaudeStore(root / "claude"), CodexStore(root / "codex")]
    for store in stores if keep is not None else ():
        store.keep(keep or root)
    return stores


def listed_anew(root: Path, keep: Path) -> float:
    """Seconds that the first listing takes in a process of its own."""
    answer = subprocess.run(
        [sys.executable, __file__, str(root), str(keep)], check=True, capture_output=True, text=True, timeout=300
    )
    return float(answer.stdout)


def scan(stores: list[Store]) -> int:
    return sum(len(store.scan().sessions) for store in stores)


def grow(root: Path, count: int) -> None:
    for path in list(root.rglob("*.jsonl"))[:: FILES // count][:count]:
        with path.open("ab") as file:
            file.write(b'{"type":"mode","mode":"normal"}\n')


def read(store: Store, name: str) -> tuple[int, int]:
    """The updates of a session, and in how many steps they came."""
    reader = store.reader(name)
    assert reader is not None
    updates = steps = 0
    while more := len(reader.read().updates):
        updates, steps = updates + more, steps + 1
    return updates, steps


def show(what: str, ours: str, beside: str = "", ratio: str = "") -> None:
    print(f"{what:<46}{ours:>14}  {beside:<56}{ratio}", flush=True)


def show_times(what: str, ours: float, beside: str, other: float) -> None:
    show(what, f"{ours * 1000:,.0f} ms", f"{beside}: {other * 1000:,.0f} ms", f"{ours / other:.1f} × as long")


async def found(stores: list[Store]) -> tuple[float, int]:
    finder = Finder(stores)
    await finder.sessions()
    start = time.perf_counter()
    count = len((await finder.sessions()).sessions)
    return time.perf_counter() - start, count


def main(root: Path) -> None:
    make(root)
    amount = sum(state.st_size for state in walk(root))
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores; {FILES:,} files, {amount / 1e6:,.0f} MB\n")
    keep = root / "kept"
    stores = opened(root, keep)
    walking, _ = taken(lambda: walk(root))
    reading, _ = taken(lambda: decode_all(root))
    first, count = taken(lambda: scan(opened(root)))
    scan(stores)
    assert count == FILES
    show_times("first index ever", first, "all files read and decoded", reading)
    anew = min(listed_anew(root, keep) for _ in range(3))
    show_times("first listing of a new process", anew, "a walk that looks at each file", walking)
    size = sum(path.stat().st_size for path in keep.iterdir())
    show("", f"{size / 1e6:,.1f} MB", "of index on the disk")
    again, _ = taken(lambda: scan(stores))
    show_times("later listing", again, "a walk that looks at each file", walking)
    grow(root, 10)
    changed, _ = taken(lambda: scan(stores), tries=1)
    show_times("listing after 10 files changed", changed, "a walk that looks at each file", walking)
    seconds, _ = asyncio.run(found(stores))
    show("the same by the finder, with processes", f"{seconds * 1000:,.0f} ms")

    name = session_id(FILES)
    path = root / "claude/projects/-work-0" / f"{name}.jsonl"
    write(path, claude_turn, name, size=LARGE)
    plain, lines = taken(lambda: decode(path))
    ours, (updates, steps) = taken(lambda: read(stores[0], name))
    show_times(f"a session of {path.stat().st_size / 1e6:.0f} MB", ours, f"its {lines:,} lines decoded", plain)
    show("", f"{updates:,} updates", f"in {steps} steps")
    listing, _ = taken(lambda: stores[0].scan(), tries=1)
    show("that session in the list", f"{listing * 1000:,.0f} ms")


def listing(root: Path, keep: Path) -> None:
    """What a new process does first."""
    start = time.perf_counter()
    count = scan(opened(root, keep))
    assert count == FILES
    print(time.perf_counter() - start)


if __name__ == "__main__" and len(sys.argv) == 3:
    listing(*map(Path, sys.argv[1:]))
elif __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(Path(directory))
