#!/usr/bin/env python3
"""The page in a real Chromium: what it weighs, how a long session opens and scrolls, what a streamed message costs.

    python bench/web.py            all of it, about a minute
    python bench/web.py stream     some of: weight, open, stream

Main-thread time is what the browser itself counts (`Performance.getMetrics`, in time of that thread, so that a busy
machine does not count); a long task is what it reports as one.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.async_api import CDPSession, Page  # noqa: E402

from pilothouse.hub.agent.process import AgentSpec  # noqa: E402
from pilothouse.hub.hub import Hub  # noqa: E402
from pilothouse.server.app import application  # noqa: E402
from pilothouse.server.listener import Listener, tcp_socket  # noqa: E402
from pilothouse.server.state import Server  # noqa: E402
from tests.support.browsers import Desk, Size, browser  # noqa: E402
from tests.support.servers import TOKEN  # noqa: E402

WRITER = (sys.executable, "-P", str(ROOT / "bench" / "stacks" / "writer.py"))
BUILT = ROOT / "src" / "pilothouse" / "web"
EVENTS = 5_000
MESSAGE = 100_000
TEXTS = {"write": "as usual", "dense": "dense"}
"""What the writer is asked for, and how that is called here."""
FIRST_LOAD = 80 * 1024
LONG_TASKS = """
window.longTasks = [];
new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((one) => one.duration)))
  .observe({ type: "longtask", buffered: true });
"""


def weight() -> None:
    """What a browser loads before it shows anything: the page, and what it names."""
    page = (BUILT / "index.html").read_text()
    named = re.findall(r'(?:src|href)="([^"]+\.(?:js|css))"', page)
    sizes = {name: len(gzip.compress((BUILT / name).read_bytes(), 9)) for name in ["index.html", *named]}
    for name, size in sizes.items():
        print(f"  {name:<40} {size / 1024:7.1f} KB gzip")
    total = sum(sizes.values())
    print(f"  first load {total / 1024:.1f} KB gzip of at most {FIRST_LOAD / 1024:.0f}: {total / FIRST_LOAD:.2f} of it")


class Stage:
    """A hub with the writer, and a browser before it."""

    def __init__(self, hub: Hub, port: int, launched: Any) -> None:
        self.hub = hub
        self.port = port
        self.browser = launched

    async def session(self, prompt: str, cwd: Path) -> Any:
        session = await self.hub.start_session("writer", str(cwd))
        if prompt:
            await session.prompt(prompt)
        return session


async def opening(stage: Stage, cwd: Path, size: Size) -> None:
    session = await stage.session(f"steps {EVENTS // 5}", cwd)
    seq = await stage.hub.log.last_seq(session.id)
    async with Desk(stage.browser, stage.port, size) as desk:
        await desk.context.add_init_script(LONG_TASKS)
        page = await desk.log_in()
        await page.wait_for_load_state("networkidle")
        began = time.perf_counter()
        await page.goto(f"{desk.origin}/#/session/{session.id}")
        await page.reload()
        await page.get_by_text(f"file {EVENTS // 5 - 1}").last.wait_for()
        opened = time.perf_counter() - began
        await page.wait_for_timeout(1500)
        at_open = await _longest(page)
        await _scroll(page)
        print(
            f"  {size:<6} {seq:,} events: end of the transcript seen after {opened:.2f} s, longest task"
            f" {at_open:.0f} ms at opening, {await _longest(page):.0f} ms with scrolling to the top (at most 200)"
        )


async def _longest(page: Page) -> float:
    longest: float = await page.evaluate("Math.max(0, ...window.longTasks)")
    return longest


async def _scroll(page: Page) -> None:
    await page.mouse.move(600 if (page.viewport_size or {}).get("width", 0) > 800 else 200, 400)
    for _ in range(60):
        await page.mouse.wheel(0, -1500)
        await page.wait_for_timeout(16)


async def streaming(stage: Stage, cwd: Path, size: Size) -> None:
    for text in TEXTS:
        await _stream(stage, cwd, size, text)


async def _stream(stage: Stage, cwd: Path, size: Size, text: str) -> None:
    session = await stage.session("", cwd)
    async with Desk(stage.browser, stage.port, size) as desk:
        await desk.context.add_init_script(LONG_TASKS)
        page = await desk.log_in()
        await page.goto(f"{desk.origin}/#/session/{session.id}")
        await page.wait_for_timeout(1500)
        cdp = await desk.context.new_cdp_session(page)
        await cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        before, began = await _spent(cdp), time.perf_counter()
        await session.prompt(f"{text} {MESSAGE}")
        await page.wait_for_timeout(1500)
        took, after = time.perf_counter() - began - 1.5, await _spent(cdp)
        spent = {name: after[name] - before[name] for name in after}
        parts = ", ".join(f"{name[:-8].lower()} {spent[name]:.2f} s" for name in spent if name != "TaskDuration")
        print(
            f"  {size:<6} {TEXTS[text]:<9} {MESSAGE // 1000} KB in 25s over {took:.1f} s:"
            f" main thread {spent['TaskDuration']:.2f} s ({parts}), at most 1;"
            f" longest task {await _longest(page):.0f} ms"
        )


async def _spent(cdp: CDPSession) -> dict[str, float]:
    metrics = (await cdp.send("Performance.getMetrics"))["metrics"]
    wanted = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
    return {one["name"]: one["value"] for one in metrics if one["name"] in wanted}


async def measure(wanted: set[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="bench") as directory:
        home, cwd = Path(directory) / "home", Path(directory) / "work"
        home.mkdir(mode=0o700)
        cwd.mkdir()
        agents = {"writer": AgentSpec(name="writer", command=WRITER, env={"PYTHONPATH": str(ROOT / "src")})}
        async with Hub(home=home, agents=agents) as hub, browser() as launched:
            server = Server(hub, token=TOKEN, agents=lambda: [{"name": "writer", "title": "writer", "installed": True}])
            socket = tcp_socket("127.0.0.1", 0)
            async with Listener(application(server), [socket], server.limits):
                stage = Stage(hub, socket.getsockname()[1], launched)
                for name, run in (("open", opening), ("stream", streaming)):
                    if name in wanted:
                        print(name)
                        for size in ("desk", "phone"):
                            await run(stage, cwd, size)
                server.connections.cut()


def main() -> None:
    wanted = set(sys.argv[1:]) or {"weight", "open", "stream"}
    print(f"machine: {os.cpu_count()} cores")
    if "weight" in wanted:
        print("weight")
        weight()
    if wanted & {"open", "stream"}:
        asyncio.run(measure(wanted))


if __name__ == "__main__":
    main()
