#!/usr/bin/env python3
"""The whole road, from an agent's standard output through the log to consumers over HTTP and WebSocket, in one run.

    python bench/server.py              all of it, a few minutes
    python bench/server.py flood many   some of: flood, latency, many, sockets, replay, idle, neighbours, start

Other stacks stand beside it, in `stacks/`. *By hand* is what a user would write instead: the official SDK, FastAPI,
sse-starlette, one commit for each update. *Relay* frames the same lines from the pipe to the socket and keeps nothing.
*Bare* has all frames in memory and only writes them: what the cores allow where there are many consumers. Agent, stack
and consumers are three processes each time; the consumers only look for marks in the bytes.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STACKS = Path(__file__).resolve().parent / "stacks"
TOKEN = "bench"
PYTHON = [sys.executable, "-P"]
"""`-P`: a file beside this one is called like the official package."""
AGENT = [*PYTHON, str(STACKS / "agent.py")]

FLOOD = 200_000
BY_HAND = 4_000
PINGS = 1_000
REPLAY = 100_000
RIVAL_50 = 1_059
"""Updates a second that each of 50 WebSocket clients gets of hydra-acp 0.1.161, its best run on a like machine."""

AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


class Stack:
    """One running side. `events` is the path of its stream."""

    def __init__(self, process: subprocess.Popen[str], home: str) -> None:
        self.process = process
        self.home = home
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{process.args} did not start:\n{(Path(home) / 'stderr').read_text()}")
        self.port = int(line)
        self.events = "/events"

    def call(self, method: str, path: str, body: Any = None, *, wait: bool = True, **headers: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        data = json.dumps(body).encode() if body is not None else None
        given = {**AUTHORIZED, "Content-Type": "application/json", **headers}
        connection.request(method, path, data, given)
        if not wait:
            return connection
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text) if text else None

    def prompt(self, text: str) -> Any:
        return self.call("POST", "/prompt", {"content": text}, wait=False)

    def request(self, path: str | None = None) -> bytes:
        return (
            f"GET {path or self.events} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
            "Accept: text/event-stream\r\n\r\n"
        ).encode()

    @property
    def rss(self) -> int:
        statm = Path(f"/proc/{self.process.pid}/statm").read_text()
        return int(statm.split()[1]) * resource.getpagesize()


class Hub(Stack):
    """Ours, with one session."""

    def __init__(self, process: subprocess.Popen[str], home: str) -> None:
        super().__init__(process, home)
        self.session = self.new_session()
        self.events = f"/sessions/{self.session}/events"

    def new_session(self) -> str:
        session: str = self.call("POST", "/sessions", {"agent": "bench", "cwd": self.home})["id"]
        return session

    def prompt(self, text: str, session: str | None = None) -> Any:
        path = f"/sessions/{session or self.session}/send-message"
        return self.call("POST", path, {"content": text}, Prefer="respond-async")

    def finish(self, session: str | None = None) -> None:
        """Until the turn is over."""
        while self.call("GET", f"/sessions/{session or self.session}")["status"] not in ("idle", "error"):
            time.sleep(0.05)

    def socket_request(self, after: int) -> bytes:
        """The upgrade, and the frame that subscribes."""
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n"
        )
        text = json.dumps({"type": "subscribe", "sessionIds": [self.session], "after": after}).encode()
        length = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
        return head.encode() + b"\x81" + length + bytes(4) + text  # masked with zeros


@contextlib.contextmanager
def stack(kind: str) -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="bench") as home:
        commands = {
            "hub": [*PYTHON, str(STACKS / "served.py"), str(Path(home) / "data"), *AGENT],
            "by hand": [*PYTHON, str(STACKS / "by_hand.py"), home, *AGENT],
            "relay": [*PYTHON, str(STACKS / "relay.py"), *AGENT],
        }
        # what is ended in the middle of its work complains; that is no news
        errors = open(Path(home) / "stderr", "w")  # noqa: PTH123, SIM115
        process = subprocess.Popen(commands[kind], stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield (Hub if kind == "hub" else Stack)(process, home)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            errors.close()


class Consumers:
    """So many consumers of one stream, in a process of their own."""

    def __init__(self, port: int, request: bytes, count: int, mark: str, times: int) -> None:
        command = [*PYTHON, str(STACKS / "consumer.py"), str(port), str(count), mark, str(times)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(request)
        self._process.stdin.close()
        if self._process.stdout.readline() != b"ready\n":
            raise SystemExit("the consumers could not connect")

    def result(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        text = self._process.stdout.read()
        if self._process.wait():
            raise SystemExit("the consumers did not get all")
        found: dict[str, Any] = json.loads(text)
        return found

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def best(times: int, measure: Callable[[], float]) -> float:
    return max(measure() for _ in range(times))


def flooded(kind: str, count: int, consumers: int = 1, *, socket: bool = False) -> float:
    """Updates a second that each consumer gets."""
    with stack(kind) as side:
        request = side.socket_request(0) if socket else side.request()
        reading = Consumers(side.port, request, consumers, "chunk number ", count)
        running = side.prompt(f"flood {count}")
        found = reading.result()
        del running
        return count / float(found["ended"] - found["began"])


def flood() -> None:
    hub = best(3, lambda: flooded("hub", FLOOD))
    hand = best(2, lambda: flooded("by hand", BY_HAND))
    relay = best(3, lambda: flooded("relay", FLOOD))
    row("one SSE consumer, updates/s", f"hub {hub:,.0f}", f"by hand {hand:,.0f}", f"{hub / hand:.1f} × (target 30)")
    row("", f"hub {hub:,.0f}", f"relay {relay:,.0f}", f"{hub / relay:.2f} × (target 0.25)")


def pinged(kind: str) -> list[float]:
    with stack(kind) as side:
        reading = Consumers(side.port, side.request(), 1, "sent ", PINGS)
        running = side.prompt(f"ping {PINGS} 0.002")
        ages: list[float] = reading.result()["ages"]
        del running
        return ages


def latency() -> None:
    ages = {kind: min((pinged(kind) for _ in range(2)), key=statistics.median) for kind in ("hub", "relay", "by hand")}
    p50 = {kind: statistics.median(each) * 1e3 for kind, each in ages.items()}
    p99 = {kind: each[int(len(each) * 0.99)] * 1e3 for kind, each in ages.items()}
    ratio = f"{p50['hub'] / p50['relay']:.2f} × (target at most 3)"
    row("one at a time, p50 ms", f"hub {p50['hub']:.2f}", f"relay {p50['relay']:.2f}", ratio)
    row("  p99 ms", f"hub {p99['hub']:.2f}", f"relay {p99['relay']:.2f}", f"by hand {p99['by hand']:.2f}")


def many() -> None:
    one = best(3, lambda: flooded("hub", 50_000))
    hundred = best(3, lambda: flooded("hub", 50_000, 100))
    allowed = best(3, lambda: bare(50_000, 100))
    ratio = f"{hundred / one:.2f} × (target 0.33 × as cores allow)"
    row("100 SSE consumers, updates/s each", f"hub {hundred:,.0f}", f"one {one:,.0f}", ratio)
    cores = f"{os.cpu_count() or 1} cores allow"
    row("  in all", f"{hundred * 100:,.0f}/s", f"bare: {cores} {allowed:,.0f} each", f"{hundred / allowed:.2f} ×")


def bare(count: int, consumers: int) -> float:
    """Updates a second that each consumer gets when nothing but writing them is done."""
    with stack("hub") as side:
        reading = Consumers(side.port, side.request(), 1, "chunk number ", 1000)
        side.prompt("flood 1000")
        size = reading.result()["size"] // 1000
    command = [*PYTHON, str(STACKS / "bare.py"), str(consumers), str(size), str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        found = Consumers(port, b"GET / HTTP/1.1\r\n\r\n", consumers, "chunk number ", count).result()
        return count / float(found["ended"] - found["began"])
    finally:
        process.kill()
        process.wait()


def sockets() -> None:
    one = best(2, lambda: flooded("hub", FLOOD, socket=True))
    fifty = best(2, lambda: flooded("hub", 50_000, 50, socket=True))
    row("one WebSocket consumer, updates/s", f"hub {one:,.0f}", "", "")
    ratio = f"{fifty / RIVAL_50:.1f} × (target 10; their figure was measured elsewhere)"
    row("50 WebSocket consumers, each", f"hub {fifty:,.0f}", f"hydra-acp {RIVAL_50:,}", ratio)


def replay() -> None:
    with stack("hub") as side:
        side.prompt(f"flood {REPLAY}")
        side.finish()
        request = side.request(f"{side.events}?after=0")
        took, size = [], 0
        for _ in range(3):
            began = time.time()
            found = Consumers(side.port, request, 1, '"type":"message:delta"', REPLAY).result()
            took.append(found["ended"] - began)
            size = found["size"]
        (Path(side.home) / "plain").write_bytes(os.urandom(1 << 16) * (size >> 16) + b"the end")
        plain = []
        for _ in range(3):
            began = time.time()
            path = f"/sessions/{side.session}/files/plain"
            found = Consumers(side.port, side.request(path), 1, "the end", 1).result()
            plain.append(found["ended"] - began)
    ratio = f"{min(took) / min(plain):.1f} × (target at most 3)"
    shown = f"the same {size / 1e6:.0f} MB of a file {min(plain):.2f}"
    row(f"replay of {REPLAY:,}, s", f"hub {min(took):.2f}", shown, ratio)


def idle() -> None:
    count = 200
    with stack("hub") as side:
        Consumers(side.port, side.request(), 5, "-", 1).stop()
        before = side.rss
        streams = Consumers(side.port, side.request(), count, "-", 1)
        each = (side.rss - before) / count
        streams.stop()
        time.sleep(0.5)
        before = side.rss
        waiting = Consumers(side.port, side.socket_request(0), count, "-", 1)
        socket_each = (side.rss - before) / count
        waiting.stop()
    row("idle SSE consumer, KiB", f"hub {each / 1024:.1f}", "", "(target at most 64)")
    row("idle WebSocket consumer, KiB", f"hub {socket_each / 1024:.1f}", "", "(target at most 64)")


def neighbours() -> None:
    for name, prompt in (
        ("alone", None),
        ("beside a flood", f"flood {FLOOD}"),
        ("beside a 20 MB line", "line 20000000"),
    ):
        with stack("hub") as side:
            other = side.new_session()
            side.prompt("ping 1 0", other)
            side.finish(other)
            reading = Consumers(side.port, side.request(), 1, "sent ", 500)
            side.prompt("ping 500 0.01")
            if prompt is not None:
                time.sleep(0.5)
                side.prompt(prompt, other)
            ages = reading.result()["ages"]
        p50, p99 = statistics.median(ages) * 1e3, ages[int(len(ages) * 0.99)] * 1e3
        row(f"100/s {name}, p50 / p99 / max ms", f"{p50:.2f} / {p99:.2f} / {ages[-1] * 1e3:.1f}", "", "(target p99 20)")


def start() -> None:
    """Until `/healthz` is answered, with compiled modules at hand as an installed package has them."""
    bare = min(_timed([sys.executable, "-c", "pass"]) for _ in range(5))
    with tempfile.TemporaryDirectory(prefix="bench") as home:
        took = min(_served_after(home) for _ in range(3))
    row("serve to /healthz, s", f"hub {took:.2f}", f"python -c pass {bare:.3f}", "(target 0.5)")


def _timed(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def _served_after(home: str) -> float:
    port = 20_000 + os.getpid() % 20_000
    env = {**os.environ, "PILOTHOUSE_HOME": f"{home}/data", "PILOTHOUSE_PORT": str(port)}
    env["PYTHONPYCACHEPREFIX"] = f"{home}/compiled"  # the first start fills it, the best one counts
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    command = [sys.executable, "-m", "pilothouse.cli", "serve"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            try:
                connection.request("GET", "/healthz")
                assert connection.getresponse().status == 200
                return time.perf_counter() - began
            except ConnectionError:
                if process.poll() is not None or time.perf_counter() - began > 20:
                    raise SystemExit("`pilothouse serve` did not start") from None
                time.sleep(0.005)
            finally:
                connection.close()
    finally:
        process.terminate()
        process.wait(20)


def row(what: str, ours: str, theirs: str, ratio: str) -> None:
    print(f"{what:36} {ours:26} {theirs:34} {ratio}", flush=True)


PARTS: dict[str, Callable[[], None]] = {
    "flood": flood,
    "latency": latency,
    "many": many,
    "sockets": sockets,
    "replay": replay,
    "idle": idle,
    "neighbours": neighbours,
    "start": start,
}


def main(argv: list[str]) -> None:
    if argv[:1] == ["--rate"]:  # for bench/hub.py, which compares with the same stacks
        print(flooded(argv[1], int(argv[2])))
        return
    unknown = [name for name in argv if name not in PARTS]
    if unknown:
        raise SystemExit(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for name in argv or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
