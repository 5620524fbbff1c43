"""The pictures: each is a view, and how one gets there."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Browser, Page

from ..browsers import Desk, Size, expect
from .mirror import hang_up
from .shrink import shrink
from .stage import NOW, Stage

__all__ = ["PICTURES", "Sitting"]

PHONE = (
    "Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36"
)
SETTLING = 600
"""Milliseconds for what is drawn late: the colours of code, the place scrolled to."""


class Sitting(Desk):
    """A browser that is shown the stage, at one size and in one theme."""

    def __init__(self, browser: Browser, stage: Stage, size: Size, scheme: str) -> None:
        super().__init__(browser, stage.port, size, scheme=scheme)
        # what a worker fetches would not pass the mirror
        self._options |= {"service_workers": "block", "timezone_id": "UTC", "reduced_motion": "reduce"}
        if size == "phone":
            self._options["user_agent"] = PHONE
        self.stage = stage
        self.size = size
        self.scheme = scheme

    async def __aenter__(self) -> Sitting:
        await super().__aenter__()
        await hang_up(self.context, self.stage.root)
        await self.context.clock.set_fixed_time(NOW)
        await self.log_in()
        await expect(self.page.locator(".session-row").first).to_be_attached()
        return self

    async def session(self, name: str, view: str = "session") -> Page:
        return await self.go(f"#/{view}/{self.stage.sessions[name]}")

    async def take(self, picture: Picture, folder: Path) -> Path:
        await self.page.goto("about:blank")
        await picture.reach(self)
        await self.page.mouse.move(0, 0)
        await self.page.evaluate("document.fonts.ready")
        await self.page.wait_for_timeout(SETTLING)
        path = folder / f"{picture.name}-{self.size}-{self.scheme}.png"
        path.write_bytes(shrink(await self.page.screenshot(caret="hide", animations="disabled")))
        return path


class Picture(NamedTuple):
    name: str
    reach: Callable[[Sitting], Awaitable[None]]
    sizes: tuple[Size, ...]


async def sessions(at: Sitting) -> None:
    page = await at.go("#/")
    if at.size == "desk":
        page = await at.session("fix")
        await expect(page.get_by_text("orders of last week")).to_be_visible()
    await expect(page.locator(".session-row").first).to_be_visible()


async def found(at: Sitting) -> None:
    page = await at.go("#/")
    if at.size == "desk":
        page = await at.session("fix")
        await expect(page.get_by_text("orders of last week")).to_be_visible()
    head = page.get_by_role("button", name="Found on this machine")
    await head.click()
    await expect(page.locator(".found-row").nth(2)).to_be_visible()
    await page.locator(".found-row").last.scroll_into_view_if_needed()


async def transcript(at: Sitting) -> None:
    page = await at.session("running")
    await expect(page.get_by_text("test_email").last).to_be_visible()


async def approval(at: Sitting) -> None:
    page = await at.session("approval")
    await expect(page.locator(".ask .diff").first).to_be_visible()


async def question(at: Sitting) -> None:
    page = await at.session("question")
    await expect(page.get_by_text("What belongs in them?")).to_be_visible()


async def diff(at: Sitting) -> None:
    page = await at.session("fix")
    head = page.locator(".call-head").filter(has_text=re.compile("Edited.*cart.py"))
    await head.click()
    await head.evaluate("head => head.scrollIntoView()")  # what is far from the screen is not drawn
    await expect(page.get_by_role("log").locator(".diff-rows")).to_be_visible()
    await head.evaluate("head => head.scrollIntoView()")


async def new(at: Sitting) -> None:
    page = await at.go("#/new")
    await page.get_by_label("Prompt").fill("Let customers pay by invoice, from 50 EUR on.")
    field = page.get_by_role("combobox", name="Directory")
    await field.click()
    await field.fill("~/projects/")
    await expect(page.locator(".new-option").filter(has_text="infra")).to_be_visible()


async def approvals(at: Sitting) -> None:
    page = await at.go("#/approvals")
    await expect(page.locator(".ask").nth(1)).to_be_visible()


async def devices(at: Sitting) -> None:
    page = await at.go("#/devices")
    await page.get_by_role("button", name="Show the QR code").click()
    await expect(page.locator(".qr")).to_be_visible()


async def pair(at: Sitting) -> None:
    await at.context.clear_cookies()  # somebody whom the hub does not know yet
    page = await at.go("#pair=this-ticket-is-for-a-picture")
    await expect(page.get_by_label("Code")).to_be_visible()


async def palette(at: Sitting) -> None:
    page = await at.session("fix")
    await expect(page.get_by_text("orders of last week")).to_be_visible()
    await page.keyboard.press("Control+k")
    await expect(page.locator("dialog").get_by_role("option").first).to_be_visible()


async def keys(at: Sitting) -> None:
    page = await at.session("fix")
    await expect(page.get_by_text("orders of last week")).to_be_visible()
    await page.get_by_role("log").focus()
    await page.keyboard.press("?")
    await expect(page.locator("dialog[open]")).to_be_visible()


async def replay(at: Sitting) -> None:
    page = await at.session("fix", "replay")
    await expect(page.get_by_text("orders of last week")).to_be_visible()
    await page.get_by_label("What happened when").click()
    await page.locator(".replay-contents [data-kind=approval] button").last.click()


BOTH: tuple[Size, ...] = ("desk", "phone")
PICTURES = (
    *(Picture(reach.__name__, reach, BOTH) for reach in (sessions, transcript, approval, question, diff)),
    *(Picture(reach.__name__, reach, BOTH) for reach in (new, approvals, devices, replay)),
    # keys are for keyboards; what was unfolded once stays so; whoever pairs comes by a camera, and is a stranger then
    *(Picture(reach.__name__, reach, ("desk",)) for reach in (palette, keys)),
    Picture(found.__name__, found, BOTH),
    Picture(pair.__name__, pair, ("phone",)),
)
