"""A conversation on a page, in the words of somebody who uses it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page

from .browsers import PATIENCE, Desk, expect
from .servers import ServerProcess

NARROW = 700
"""Pixels; the sizes of tests are far from it."""


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what no page tells."""
    async with asyncio.timeout(PATIENCE / 1000):
        while not await holds():
            await asyncio.sleep(0.05)


class Talk:
    def __init__(self, server: ServerProcess, desk: Desk, session_id: str, workspace: Path) -> None:
        self.server = server
        self.desk = desk
        self.page: Page = desk.page
        self.id = session_id
        self.workspace = workspace

    @classmethod
    async def begin(cls, server: ServerProcess, desk: Desk, workspace: Path) -> Talk:
        answer = await server.client.request("POST", "/sessions", {"agent": "demo", "cwd": str(workspace)})
        assert answer.status == 201, answer.body
        talk = cls(server, desk, answer.json()["id"], workspace)
        await talk.open()
        return talk

    async def open(self) -> None:
        await self.desk.go(f"#/session/{self.id}")
        await expect(self.field).to_be_editable()
        await expect(self.transcript).to_be_visible()

    # -- what can be seen --

    @property
    def is_narrow(self) -> bool:
        """Either the list or a session is shown."""
        size = self.page.viewport_size
        return size is not None and size["width"] < NARROW

    @property
    def field(self) -> Locator:
        return self.page.get_by_label("Message to the agent")

    @property
    def transcript(self) -> Locator:
        return self.page.get_by_role("log")

    @property
    def status(self) -> Locator:
        return self.page.locator(".head .session-word")

    @property
    def ask(self) -> Locator:
        return self.page.locator(".asks .ask")

    def said(self, text: str | re.Pattern[str]) -> Locator:
        return self.transcript.get_by_text(text)

    async def sees(self, text: str | re.Pattern[str]) -> None:
        """By whomever: a prompt that has these words is enough."""
        await expect(self.said(text).last).to_be_visible()

    async def hears(self, text: str | re.Pattern[str]) -> None:
        """From the agent."""
        await expect(self.transcript.locator(".said-agent", has_text=text).last).to_be_visible()

    async def is_now(self, word: str) -> None:
        """A session is idle also before a prompt has begun: have seen something of its turn first."""
        await expect(self.status).to_have_text(re.compile(f"^{word}"))

    async def row_is(self, word: str) -> None:
        """In the list, which a narrow page has in place of the session."""
        row = self.page.locator(".session-row", has=self.page.locator(f'a[href$="{self.id}"]'))
        if self.is_narrow:
            await self.desk.go("#/")
        await expect(row.locator(".session-word")).to_have_text(re.compile(f"^{word}"))
        if self.is_narrow:
            await self.open()

    # -- what can be done --

    async def write(self, text: str) -> None:
        await self.field.fill(text)
        await self.page.get_by_role("button", name=re.compile("^(Send|Queue)")).click()
        await expect(self.field).to_have_value("")

    async def choose(self, name: str | re.Pattern[str]) -> None:
        await self.ask.get_by_role("button", name=name).click()

    # -- what the hub knows --

    async def snapshot(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.server.client.request("GET", f"/sessions/{self.id}")).json()
        return found

    async def approvals(self) -> list[dict[str, Any]]:
        found = (await self.server.client.request("GET", "/approvals?state=all")).json()["approvals"]
        return [one for one in found if one["sessionId"] == self.id]

    async def texts(self) -> list[str]:
        """All that the agent said, by the hub."""
        items = (await self.snapshot())["items"]
        said = [item for item in items if item["type"] == "message" and item["role"] == "assistant"]
        return ["".join(block.get("text", "") for block in item["content"]) for item in said]

    async def has_said(self, words: str) -> bool:
        return any(words in text for text in await self.texts())
