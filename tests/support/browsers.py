"""A real browser on a real hub: pages that are logged in, at the size of a desk or of a phone.

Whatever a page does that it should not do is noted and fails the test: an error in its console, an exception, a
violation of its content policy, a request to any other origin. Waiting by `wait_for_function` is such a violation: it
evaluates a text in the page, again and again. `expect` and `until` look from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from .http_client import Client
from .servers import TOKEN

__all__ = ["Desk", "Size", "browser", "chromium_program", "expect", "login_link"]

Size = Literal["desk", "phone"]
SIZES: dict[Size, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}
PATIENCE = 60_000
"""Milliseconds that a page has to show something, on a machine that is busy with other tests."""
expect.set_options(timeout=PATIENCE)
EXPECTED = ("net::ERR_", "WebSocket connection to", "responded with a status of 4", "responded with a status of 503")
"""What a browser says of itself when a hub is away or refuses; no page can prevent it."""
VIEWS = {
    "": ".session-row",
    "session": "[role=log]",
    "replay": ".replay-facts",
    "new": ".new-agents",
    "approvals": ".centre",
    "devices": ".access",
}
"""What is there once a view is drawn, by the first part of its address."""
REST = """async () => {
  await new Promise((done) => {
    let timer;
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => [watch.disconnect(), done()], 300);
    };
    const watch = new MutationObserver(wait);
    watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    wait();
  });
  const endless = (one) => one.effect?.getComputedTiming().endTime === Infinity;
  await Promise.allSettled(document.getAnimations().filter((one) => !endless(one)).map((one) => one.finished));
}"""
"""Until nothing of the page has changed for a moment, and what fades or slides has come to its end."""


def chromium_program() -> str | None:
    """Where the browser is, if there is one."""
    return os.environ.get("PILOTHOUSE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    program = chromium_program()
    if not program:
        raise SystemExit("no Chromium: install Debian's `chromium`, or say where one is by PILOTHOUSE_CHROMIUM")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        try:
            yield launched
        finally:
            await launched.close()


async def login_link(port: int, token: str = TOKEN) -> str:
    answer = await Client(port, token=token).request("POST", "/login-links")
    assert answer.status == 201, answer.body
    url: str = answer.json()["url"]
    return url


class Desk:
    """Somebody with a browser of their own: nothing is shared with others. Open it by `async with`."""

    def __init__(self, browser: Browser, port: int, size: Size = "desk", *, scheme: str = "light") -> None:
        self._browser = browser
        self._options = {**SIZES[size], "color_scheme": scheme, "locale": "en-GB", "reduced_motion": "no-preference"}
        self.port = port
        self.origin = f"http://127.0.0.1:{port}"
        self.troubles: list[str] = []
        self.context: BrowserContext
        self.page: Page

    async def __aenter__(self) -> Desk:
        self.context = await self._browser.new_context(**self._options)
        self.context.set_default_timeout(PATIENCE)
        self.context.on("page", self._watch)
        await self.context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) =>"
            " console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))"
        )
        self.page = await self.context.new_page()
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        await self.context.close()
        if kind is None:
            assert not self.troubles, self.troubles

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.troubles.append(f"exception: {error}"))
        page.on("console", lambda said: self._heard(said.type, said.text))
        page.on("request", lambda request: self._asked(request.url))

    def _heard(self, kind: str, text: str) -> None:
        if kind == "error" and not any(part in text for part in EXPECTED):
            self.troubles.append(f"console: {text}")

    def _asked(self, url: str) -> None:
        if not url.startswith((self.origin, "data:", "blob:", "about:")):
            self.troubles.append(f"request to {url}")

    async def log_in(self) -> Page:
        await self.page.goto(await login_link(self.port))
        return self.page

    async def go(self, place: str = "#/") -> Page:
        await self.page.goto(f"{self.origin}/{place}")
        return self.page

    async def visit(self, view: str) -> None:
        """Go to a view, such as `replay/ID`, and wait until all of it is drawn."""
        await self.go(f"#/{view}")
        await expect(self.page.locator(VIEWS[view.partition("/")[0]]).first).to_be_visible()
        await self.rest()

    async def rest(self) -> None:
        """Wait until the page has come to rest."""
        async with asyncio.timeout(PATIENCE / 1000):
            await self.page.evaluate(REST)

    async def show(self, path: Path) -> None:
        await self.page.screenshot(path=path)
