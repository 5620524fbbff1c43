"""Whatever an agent says, names or prints is shown as text: nothing runs, and the policy has nothing to stop."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser

from pilothouse.hub.agent.process import AgentSpec
from tests.support import hostile_agent
from tests.support.browsers import Desk, expect
from tests.support.servers import Served, serving

AGENT = Path(hostile_agent.__file__)
ALARM = """
window.alarm = [];
for (const name of ["alert", "confirm", "prompt"]) window[name] = (text) => window.alarm.push(`${name} ${text}`);
Object.defineProperty(window, "pwned", { set: (value) => window.alarm.push(`pwned ${value}`) });
"""
STRAY = """
[...document.querySelectorAll("*")].filter((element) =>
  (element.localName === "script" && !element.getAttribute("src")?.includes("assets/")) ||
  (element.localName === "iframe" && !element.hasAttribute("sandbox")) ||
  ["object", "embed", "base", "frame", "template"].includes(element.localName) ||
  (element.localName === "form" && element.hasAttribute("action")) ||
  (element.localName === "style" && element.closest("#app")) ||
  [...element.attributes].some(({ name }) => name.startsWith("on")) ||
  (element.localName === "a" && element.hasAttribute("href") &&
    !/^(https?:|mailto:|#|blob:|sessions\\/)/.test(element.getAttribute("href")))
).map((element) => element.outerHTML.slice(0, 200))
"""

UNFOLD = """() => {
  for (const button of document.querySelectorAll("[role=log] [aria-expanded=false]")) button.click();
  for (const details of document.querySelectorAll("[role=log] details")) details.open = true;
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "home") as served:
        yield served


async def test_no_script_of_an_agent_runs_anywhere(
    served: Served, chromium: Browser, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    cwd = tmp_path / "<img src=x onerror=pwned=1>"
    cwd.mkdir()
    served.hub.agents["hostile"] = AgentSpec(name="hostile", command=(sys.executable, str(AGENT)))
    session = await served.hub.start_session("hostile", str(cwd), title="<script>pwned=1</script><b>title</b>")
    async with Desk(chromium, served.port) as desk:
        await desk.context.add_init_script(ALARM)
        page = await desk.log_in()
        await desk.go(f"#/session/{session.id}")
        prompt = await session.send("<script>pwned=1</script> [x](javascript:pwned=1) <img src=x onerror=pwned=1>")
        await expect(page.locator(".asks .ask")).to_be_visible()
        await _unfold(desk)
        assert await page.evaluate("document.querySelector('[role=log]').innerText.includes('pwned=1')")
        await page.locator(".asks .ask").get_by_role("button", name=re.compile("^Deny")).first.click()
        await asyncio.wait_for(asyncio.shield(prompt.done), 20)
        for view in (f"session/{session.id}", "", "approvals", f"replay/{session.id}", "new"):
            await desk.visit(view)
            assert await page.evaluate("window.alarm") == [], view
            assert await page.evaluate(STRAY) == [], view
    tally("hostile texts, in a dozen places each, shown in a browser without effect", len(hostile_agent.SCRIPTS))


async def _unfold(desk: Desk) -> None:
    """Open all that is folded, and what is folded in it, so that all of it is drawn."""
    await desk.rest()
    for _ in range(3):
        await desk.page.evaluate(UNFOLD)
        await desk.rest()
