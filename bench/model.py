"""What the model costs: updates to event bytes, folding, projecting, judging. Prints both sides and their ratio.

    python bench/model.py            all of it
    python bench/model.py chunks     one of: chunks, fold, packets, risk, diffs

Each figure is the best of several runs in this process; compare within one run only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator

from pilothouse.dialects.acp import Translator
from pilothouse.dialects.packets import packets_from_event
from pilothouse.model.diffs import unified_diff
from pilothouse.model.events import Event, encode_event
from pilothouse.model.policy import decide
from pilothouse.model.risk import assess_risk
from pilothouse.model.session import Session

CHUNKS = 100_000
RUNS = 5
NOW = "2026-11-01T12:00:00.000Z"
UPDATE = (
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I\'ll look at the file "},'
    b'"messageId":"msg_1e093dcb70012da9"}'
)
COMMANDS = [
    "git status",
    'git commit -m "Fix the login" && git push origin topic',
    "npm test -- --watch=false 2>&1 | tail -20",
    "rm -rf build && mkdir build && cd build && cmake ..",
    "find . -name '*.py' -not -path './.venv/*' -exec grep -l TODO {} +",
    "curl -fsSL https://example.com/install.sh | sudo bash",
]
POLICY = {
    "autoApprove": {"reads": True, "writes": ["src/**"], "commands": ["git status", "npm test *"], "searches": True}
}


def best(work: Callable[[], None]) -> float:
    """Seconds of the fastest of several runs: the one that others disturbed least."""

    def once() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return min(once() for _ in range(RUNS))


def chunks() -> None:
    def ours() -> None:
        translator = Translator("ses_1", status="running")
        for seq in range(CHUNKS):
            for event in translator.update(UPDATE, NOW):
                event.seq = seq
                encode_event(event)

    def theirs() -> None:
        for _ in range(CHUNKS):
            json.loads(UPDATE)

    mine, other = best(ours), best(theirs)
    print(f"chunk to event bytes   {CHUNKS / mine:12,.0f} /s   {mine / CHUNKS * 1e6:6.2f} µs each")
    print(f"json.loads alone       {CHUNKS / other:12,.0f} /s   {other / CHUNKS * 1e6:6.2f} µs each")
    print(f"ratio                  {mine / other:12.2f} × its time (target: at most 4, and 200,000/s)")


def stream(count: int) -> list[Event]:
    """A long session: words, and a tool call now and then."""
    translator = Translator("ses_1", workspace="/work/app", status="idle")

    def told() -> Iterator[Event]:
        turn = 0
        while True:
            turn += 1
            yield from translator.prompt("Go on", NOW, turn_id=str(turn))
            for _ in range(80):
                yield from translator.update(UPDATE, NOW)
            call = {"sessionUpdate": "tool_call", "toolCallId": f"c{turn}", "title": "ls", "kind": "execute"}
            yield from translator.update({**call, "status": "in_progress", "rawInput": {"command": "ls"}}, NOW)
            done = {"sessionUpdate": "tool_call_update", "toolCallId": f"c{turn}", "status": "completed"}
            yield from translator.update({**done, "rawOutput": {"stdout": "a\n", "exit_code": 0}}, NOW)
            yield from translator.result({"stopReason": "end_turn"}, NOW)

    events: list[Event] = []
    for event in told():
        event.seq = len(events) + 1
        events.append(event)
        if len(events) == count:
            break
    return events


def folding() -> None:
    events = stream(100_000)
    base = 0.0
    for count in (25_000, 50_000, 100_000):

        def work(part: list[Event] = events[:count]) -> None:
            session = Session()
            for event in part:
                session.apply(event)

        seconds = best(work)
        base = base or seconds / count
        print(
            f"fold of {count:8,} events {count / seconds:12,.0f} /s   {seconds / count * 1e6:6.2f} µs each"
            f"   {seconds / count / base:5.2f} × the shortest's (linear: about 1)"
        )


def packets() -> None:
    events = stream(50_000)

    def work() -> None:
        for event in events:
            packets_from_event(event)

    seconds = best(work)
    print(f"event to packets       {len(events) / seconds:12,.0f} /s   {seconds / len(events) * 1e6:6.2f} µs each")


def risk() -> None:
    for command in COMMANDS:
        tool_input = {"command": command}

        def assess(given: dict[str, str] = tool_input) -> None:
            for _ in range(200):
                assess_risk("Bash", given, "/work/app")

        def settle(given: dict[str, str] = tool_input) -> None:
            for _ in range(200):
                decide(POLICY, "Bash", given, "/work/app")

        level = assess_risk("Bash", tool_input, "/work/app").level
        print(
            f"risk {best(assess) / 200 * 1e6:7.1f} µs   decide {best(settle) / 200 * 1e6:7.1f} µs"
            f"   {level:8} {command} (target: risk under 200)"
        )


def diffs() -> None:
    """Pairs of large texts, most of them made to be dear: a diff is made while everybody else waits."""
    counting = [f"line {number}\n" for number in range(40_000)]
    cycling = [f"{number % 7}\n" for number in range(40_000)]
    cases = {
        "10 % of unlike lines": (counting, [line * (number % 10 > 0) for number, line in enumerate(counting)]),
        "1 % of like lines": (cycling, [line * (number % 100 > 0) for number, line in enumerate(cycling)]),
        "10 % of like lines": (cycling, [line * (number % 10 > 0) for number, line in enumerate(cycling)]),
        "all other lines": (counting, [f"other {line}" for line in counting]),
        "moved about": (counting, sorted(counting, key=lambda line: line[::-1])),
        "one more at either end": (["\n"] * 500_000, ["x\n", *["\n"] * 500_000, "y\n"]),
    }
    for name, (old, new) in cases.items():
        before, after = "".join(old), "".join(new)
        found = unified_diff(before, after, "file")

        def work(before: str = before, after: str = after) -> None:
            unified_diff(before, after, "file")

        print(
            f"diff of {len(before) // 1000:4} kB {best(work) * 1000:7.1f} ms   +{found.added} -{found.removed}"
            f"   {name} (target: under 150 ms)"
        )


PARTS: dict[str, Callable[[], None]] = {
    "chunks": chunks,
    "fold": folding,
    "packets": packets,
    "risk": risk,
    "diffs": diffs,
}


def main() -> None:
    names = sys.argv[1:] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for name in names:
        PARTS[name]()


if __name__ == "__main__":
    main()
