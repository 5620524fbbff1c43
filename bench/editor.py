#!/usr/bin/env python3
"""A session in an editor: `pilothouse acp` between the editor and the agent, beside the same agent spoken to directly.

    python bench/editor.py            all of it, about four minutes
    python bench/editor.py flood      some of: flood, latency, start

The editor is a process of its own (`stacks/editor.py`) and the same on both sides: one that only reads lines, one made
with this library, one made with the official SDK. Directly it starts the agent; otherwise it starts `pilothouse acp`,
which speaks with a hub that commits every update before the editor sees it. The agent is one that makes an update when
it sends it, with either library, as agents do; or one that has all lines at hand and only writes them, faster than any
agent that does something.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STACKS = Path(__file__).resolve().parent / "stacks"
PYTHON = [sys.executable, "-P"]
"""`-P`: a file beside this one is called like the official package."""
AGENTS = {
    "prepared": [*PYTHON, str(STACKS / "agent.py")],
    "library": [*PYTHON, str(STACKS / "talker.py"), "pilothouse"],
    "sdk": [*PYTHON, str(STACKS / "talker.py"), "sdk"],
}
BRIDGE = [*PYTHON, "-m", "pilothouse.cli", "acp", "-a"]

EDITORS = ("lines", "pilothouse", "sdk")
FLOOD, BY_SDK = 100_000, 20_000
"""Updates of a flood; fewer where the official SDK has a part in it."""
PINGS = 1_000
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'


@contextlib.contextmanager
def home(*, serving: bool = True) -> Iterator[dict[str, str]]:
    """The environment of a home of its own that knows the agent; its hub runs, unless a bridge is to start it."""
    with tempfile.TemporaryDirectory(prefix="bench") as directory:
        port = 20_000 + os.getpid() % 20_000
        agents = "".join(f"[agents.{name}]\ncommand = {json.dumps(command)}\n" for name, command in AGENTS.items())
        (Path(directory) / "config.toml").write_text(f"{agents}[server]\nport = {port}\n")
        Path(directory).chmod(0o700)
        env = {**os.environ, "PILOTHOUSE_HOME": directory}
        place = Path(directory) / "hub.json"
        if serving:
            hub = subprocess.Popen(
                [*PYTHON, "-m", "pilothouse.cli", "serve", "--quiet"],
                env=env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            while not place.exists():
                if hub.poll() is not None:
                    raise SystemExit("`pilothouse serve` did not start")
                time.sleep(0.01)
        try:
            yield env
        finally:
            end_hub(place)
            if serving:
                hub.wait(20)


def end_hub(place: Path) -> None:
    """End the hub of a home, whoever started it, and wait until it has gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(json.loads(place.read_text())["pid"], signal.SIGTERM)
    deadline = time.monotonic() + 20
    while place.exists() and time.monotonic() < deadline:
        time.sleep(0.02)


def edited(kind: str, prompt: str, command: list[str], env: dict[str, str]) -> dict[str, Any]:
    """What an editor of a kind got from a command."""
    editor = [*PYTHON, str(STACKS / "editor.py"), kind, prompt, *command]
    done = subprocess.run(editor, env=env, cwd=env["PILOTHOUSE_HOME"], stdout=subprocess.PIPE, check=True, timeout=120)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sides(agent: str) -> tuple[tuple[str, list[str]], ...]:
    return ("direct", AGENTS[agent]), ("bridge", [*BRIDGE, agent])


def flood() -> None:
    for agent in ("sdk", "library", "prepared"):
        for kind in EDITORS:
            count = BY_SDK if "sdk" in (agent, kind) else FLOOD
            rates, rss = flooded(agent, kind, count)
            ratio = f"{rates['direct'] / rates['bridge']:.1f} × slower (target at most 3)"
            what = f"flood, {AGENT_NAMES[agent]}, {NAMES[kind]}, updates/s"
            row(what, f"bridge {rates['bridge']:,.0f}", f"direct {rates['direct']:,.0f}", ratio)
    row("  bridge after the last, MB resident", f"{rss / 1e6:.1f}", "", "(target 45)")


def flooded(agent: str, kind: str, count: int) -> tuple[dict[str, float], int]:
    """The best rates of three runs on each side, taken in turns, and the resident bytes of the bridge."""
    rates = {"direct": 0.0, "bridge": 0.0}
    rss = 0
    with home() as env:
        for _ in range(3):
            for side, command in sides(agent):
                found = edited(kind, f"flood {count}", command, env)
                if found["count"] != count:
                    raise SystemExit(f"{side}: {found['count']:,} of {count:,} updates arrived")
                rates[side] = max(rates[side], count / (found["ended"] - found["began"]))
                rss = max(rss, found["rss"]) if side == "bridge" else rss
    return rates, rss


def latency() -> None:
    for kind in EDITORS:
        ages: dict[str, list[float]] = {}
        with home() as env:
            for side, command in sides("prepared"):
                runs = [edited(kind, f"ping {PINGS} 0.002", command, env)["ages"] for _ in range(2)]
                ages[side] = min(runs, key=statistics.median)
        p50 = {side: statistics.median(each) * 1e3 for side, each in ages.items()}
        p99 = {side: each[int(len(each) * 0.99)] * 1e3 for side, each in ages.items()}
        added = f"{p50['bridge'] - p50['direct']:+.2f} ms, {p50['bridge'] / p50['direct']:.1f} ×"
        row(
            f"one at a time, {NAMES[kind]}, p50 ms", f"bridge {p50['bridge']:.2f}", f"direct {p50['direct']:.2f}", added
        )
        row("  p99 ms", f"bridge {p99['bridge']:.2f}", f"direct {p99['direct']:.2f}", "")


def start() -> None:
    bare = min(_timed([sys.executable, "-c", "pass"]) for _ in range(5))
    with home() as env:
        warm = min((_initialized(env) for _ in range(5)), key=lambda found: found[0])
    colds = []
    for _ in range(3):
        with home(serving=False) as env:
            colds.append(_opened(env))
    theirs = f"python -c pass {bare:.3f}"
    row("acp to `initialize` answered, s", f"hub runs {warm[0]:.3f}", theirs, "(target 0.4)")
    cold = min(colds)
    row("  no hub runs yet", f"{cold[0]:.3f}", "", "(target 0.4)")
    row("  no hub runs yet: to session/new answered", f"{cold[1]:.3f}", "", "")
    row("bridge after `initialize`, MB resident", f"{warm[1] / 1e6:.1f}", "", "(target 45)")


def _timed(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


@contextlib.contextmanager
def _bridge(env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([*BRIDGE, "prepared"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)


def _initialized(env: dict[str, str]) -> tuple[float, int]:
    """Seconds until `initialize` was answered, and the resident bytes a moment later."""
    began = time.perf_counter()
    with _bridge(env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        process.stdout.readline()
        took = time.perf_counter() - began
        time.sleep(0.3)
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        return took, pages * os.sysconf("SC_PAGE_SIZE")


def _opened(env: dict[str, str]) -> tuple[float, float]:
    """Seconds until `initialize` and then `session/new` were answered, where the bridge has to start the hub."""
    began = time.perf_counter()
    with _bridge(env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        process.stdout.readline()
        first = time.perf_counter() - began
        params = {"cwd": env["PILOTHOUSE_HOME"], "mcpServers": []}
        request = {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("id") != 2:
            pass
        return first, time.perf_counter() - began


NAMES = {"lines": "lines only", "pilothouse": "our client", "sdk": "official client"}
AGENT_NAMES = {"prepared": "prepared lines", "library": "our agent", "sdk": "official agent"}
PARTS: dict[str, Callable[[], None]] = {"flood": flood, "latency": latency, "start": start}


def row(what: str, ours: str, theirs: str, ratio: str) -> None:
    print(f"{what:56} {ours:20} {theirs:22} {ratio}", flush=True)


def main(argv: list[str]) -> None:
    unknown = [name for name in argv if name not in PARTS]
    if unknown:
        raise SystemExit(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for name in argv or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
