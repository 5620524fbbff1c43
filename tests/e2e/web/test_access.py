"""The page for everybody: axe-core finds nothing serious in any view, light or dark, and the keyboard reaches it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.support.browsers import Desk, Size, expect
from tests.support.servers import ServerProcess
from tests.support.web_talk import Talk

AXE = Path(__file__).parents[3] / "web" / "node_modules" / "axe-core" / "axe.min.js"
PROMPTS = ("markdown", "think", "tools", "plan", "subagent", "image", "error", "notice warning Mind this")
GRAVE = ("serious", "critical")


async def _violations(page: Page) -> list[str]:
    """What axe-core finds. It is run in a world of its own, past the content policy of the page."""
    found: dict[str, Any] = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['impact']}: {one['id']}: {node['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in GRAVE
        for node in one["nodes"][:3]
    ]


async def _arm(desk: Desk) -> None:
    await desk.context.add_init_script(path=AXE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_in_any_view(
    server: ServerProcess, chromium: Browser, size: Size, scheme: str, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with Desk(chromium, server.port, size, scheme=scheme) as desk:
        await _arm(desk)
        await desk.log_in()
        talk = await Talk.begin(server, desk, workspace)
        for prompt in PROMPTS:
            await talk.write(prompt)
        await expect(talk.transcript.locator(".banner", has_text="Mind this")).to_be_visible()
        await talk.is_now("idle")
        await desk.rest()
        seen = {"transcript": await _violations(desk.page)}
        await talk.write("edit notes.txt")
        await expect(talk.ask.get_by_role("button", name="Allow once")).to_be_enabled()
        await desk.rest()  # colours are others while something fades in
        seen["approval"] = await _violations(desk.page)
        for view in ("", "new", "approvals", "devices", f"replay/{talk.id}"):
            await desk.visit(view)
            seen[view or "sessions"] = await _violations(desk.page)
        if size == "desk":
            for key, name in (("Control+k", "palette"), ("?", "help")):
                await desk.page.keyboard.press(key)
                await expect(desk.page.locator("dialog[open]")).to_be_visible()
                await desk.rest()
                seen[name] = await _violations(desk.page)
                await desk.page.keyboard.press("Escape")
                await expect(desk.page.locator("dialog")).to_have_count(0)
        assert {view: found for view, found in seen.items() if found} == {}


async def test_an_approval_is_decided_by_one_key(server: ServerProcess, chromium: Browser, tmp_path: Path) -> None:
    async with Desk(chromium, server.port) as desk:
        await desk.log_in()
        talk = await Talk.begin(server, desk, tmp_path)
        await talk.write("edit keyed.txt")
        await expect(talk.ask.get_by_role("button", name="Allow once")).to_be_enabled()
        await talk.transcript.focus()
        await expect(talk.transcript).to_be_focused()
        await desk.page.keyboard.press("a")
        await talk.sees("is written.")
        await talk.write("edit other.txt")
        await expect(talk.ask).to_contain_text("other.txt")
        await expect(talk.ask.get_by_role("button", name="Allow once")).to_be_enabled()
        await talk.field.focus()
        await expect(talk.field).to_be_focused()
        await desk.page.keyboard.type("a d")  # typed, so it decides nothing
        await expect(talk.field).to_have_value("a d")
        await expect(talk.ask).to_be_visible()
        await talk.transcript.focus()
        await expect(talk.transcript).to_be_focused()
        await desk.page.keyboard.press("d")
        await talk.sees("Nothing was written")
        assert not (tmp_path / "other.txt").exists()


async def test_nothing_is_wider_than_a_small_phone(server: ServerProcess, chromium: Browser, tmp_path: Path) -> None:
    async with Desk(chromium, server.port, "phone") as desk:
        await desk.page.set_viewport_size({"width": 360, "height": 640})
        await desk.log_in()
        talk = await Talk.begin(server, desk, tmp_path)
        for prompt in (*PROMPTS, "edit notes.txt"):
            await talk.write(prompt)
        await expect(talk.ask).to_be_visible()
        for view in (f"session/{talk.id}", "", "new", "approvals", "devices", f"replay/{talk.id}"):
            await desk.visit(view)
            wide = await desk.page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
            assert wide <= 0, view


async def test_on_small_screens_nothing_is_squeezed_or_covered(
    server: ServerProcess, chromium: Browser, tmp_path: Path
) -> None:
    async with Desk(chromium, server.port, "phone") as desk:
        await desk.log_in()
        talk = await Talk.begin(server, desk, tmp_path)
        await talk.write("echo done")
        await talk.hears("done")
        await desk.page.set_viewport_size({"width": 320, "height": 640})
        await desk.visit(f"replay/{talk.id}")
        times = await desk.page.locator(".replay-time").bounding_box()
        pace = await desk.page.get_by_label("Speed").bounding_box()
        assert times
        assert pace
        assert times["x"] + times["width"] <= pace["x"] or times["y"] >= pace["y"] + pace["height"]
        await desk.page.set_viewport_size({"width": 820, "height": 1180})
        await desk.visit(f"session/{talk.id}")
        head = desk.page.locator(".side > .head")
        mark = await head.locator(".brand svg").bounding_box()
        assert mark
        assert mark["width"] == mark["height"]
        assert await head.evaluate("(head) => head.scrollWidth <= head.clientWidth")
