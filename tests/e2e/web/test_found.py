"""Sessions that were begun elsewhere, in a browser: found, watched as they go on, continued, forked and taken over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page

from pilothouse.hub.external.writer_lock import Leases
from tests.support.browsers import Desk, Size, expect
from tests.support.cli import Cli
from tests.support.records import Holders, append, finder, holder_of, program, says
from tests.support.served import serving as serving_process
from tests.support.servers import Served, agent_specs, serving

CLAUDE = "00000000-0000-4000-8000-00000000000f"


@pytest_asyncio.fixture(loop_scope="session")
async def begun(tmp_path: Path) -> str:
    """A session that the demo agent of another hub had; its id."""
    async with serving(tmp_path / "elsewhere") as served:
        session = await served.hub.start_session("demo", tmp_path)
        await session.prompt("echo said elsewhere")
        assert session.agent_session_id is not None
        return session.agent_session_id


@contextlib.asynccontextmanager
async def hub_that_looks(tmp_path: Path, holders: Holders) -> AsyncIterator[Served]:
    """A hub that finds what the other one's demo agent keeps, and could go on with it."""
    async with serving(tmp_path / "home") as served:
        served.hub.agents["demo"] = agent_specs(tmp_path / "elsewhere")["demo"]
        made = finder(tmp_path / "elsewhere" / "demo", tmp_path, holders)
        served.hub.discovery.prepare(lambda: made, Leases(tmp_path / "leases", tmp_path / "home"))
        await served.hub.discovery.begin()
        yield served


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    process = program()
    yield process
    process.kill()
    process.communicate()


async def unfold(page: Page) -> Locator:
    """The part of the list that has them; its row."""
    button = page.get_by_role("button", name="Found on this machine")
    await expect(button).to_have_attribute("aria-expanded", "false")
    await button.click()
    row = page.locator(".found-row")
    await expect(row).to_have_count(1)
    return row


async def find(page: Page, words: str, action: str) -> None:
    """By the palette, with the keyboard alone. It is fetched when it is first wanted, so keys have to wait for it."""
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Find a session or an action")).to_be_focused()
    await page.keyboard.type(words)
    await expect(page.get_by_role("option", selected=True)).to_contain_text(action)
    await page.keyboard.press("Enter")


async def test_one_is_watched_as_it_goes_on_and_then_continued(
    tmp_path: Path, chromium: Browser, size: Size, begun: str
) -> None:
    async with hub_that_looks(tmp_path, Holders()) as served, Desk(chromium, served.port, size) as desk:
        page = await desk.log_in()
        row = await unfold(page)
        await expect(row).to_contain_text(re.compile("Found.*demo", re.DOTALL))
        await row.get_by_role("button", name="Watch").click()
        transcript = page.get_by_role("log")
        await expect(transcript).to_contain_text("said elsewhere")
        banner = page.get_by_label("This session is watched")
        await expect(banner).to_contain_text("No program has it at the moment")
        await expect(page.get_by_label("Message to the agent")).to_have_count(0)
        here = page.url.rpartition("/")[2]
        for archived in (True, False):  # it is watched wherever it is listed
            await served.client.request("PATCH", f"/sessions/{here}", {"archived": archived})
            chip = page.locator(".main .head").get_by_text("archived", exact=True)
            await expect(chip).to_have_count(1 if archived else 0)
            await page.reload()
            await expect(banner).to_contain_text("No program has it at the moment")
            await expect(page.get_by_label("Message to the agent")).to_have_count(0)
        record = tmp_path / "elsewhere" / "demo" / f"{begun}.jsonl"
        append(record, {"update": says("More from there", "u9", user=True)}, {"update": says("Went on.", "a9")})
        await expect(transcript).to_contain_text("Went on.")
        await banner.get_by_role("button", name="Continue").click()
        field = page.get_by_label("Message to the agent")
        await expect(field).to_be_visible()
        await expect(banner).to_have_count(0)
        await field.fill("echo said here")
        await page.get_by_role("button", name="Send", exact=True).click()
        await expect(transcript.locator(".said-agent", has_text="said here")).to_be_visible()
        await expect(page.get_by_text("Done in another program")).to_have_count(0)
        append(record, {"update": says("Meanwhile there", "u10", user=True)}, {"update": says("Done there.", "a10")})
        await field.fill("echo said here again")
        await page.get_by_role("button", name="Send", exact=True).click()
        await expect(transcript.locator(".said-agent", has_text="said here again")).to_be_visible()
        await expect(transcript).to_contain_text(re.compile("Done in another program.*Meanwhile there", re.DOTALL))
        await page.reload()
        await expect(transcript).to_contain_text("Meanwhile there")
        await expect(page.get_by_text("Done in another program")).to_have_count(1)
        if size == "desk":  # it is in the list itself by now, and only there
            await expect(page.locator(".found-row")).to_have_count(0)


async def test_who_has_it_is_named_and_ended_only_when_that_is_wanted(
    tmp_path: Path, chromium: Browser, size: Size, begun: str, busy: subprocess.Popen[bytes]
) -> None:
    holders = Holders()
    holders.by_id[begun] = holder_of(busy)
    async with hub_that_looks(tmp_path, holders) as served, Desk(chromium, served.port, size) as desk:
        page = await desk.log_in()
        row = await unfold(page)
        await expect(row).to_contain_text("open there")
        await row.get_by_role("button", name="Continue").click()
        dialog = page.get_by_role("dialog", name="Somebody else has it")
        await expect(dialog).to_contain_text(str(busy.pid))
        await expect(dialog.locator(".found-choices").get_by_role("button")).to_have_text(
            ["Watch", "Fork", "Take over…"]
        )
        await dialog.get_by_role("button", name="Take over…").click()
        sure = page.get_by_role("dialog", name="Take this session over?")
        await sure.get_by_role("button", name="Leave it").click()
        await expect(sure).to_have_count(0)
        assert busy.poll() is None

        await row.get_by_role("button", name=re.compile("^More for")).click()
        await page.get_by_role("menuitem", name="Take over…").click()
        await expect(sure).to_contain_text(f"process {busy.pid}")
        await sure.get_by_role("button", name="End it and take over").click()
        await expect(page.get_by_role("log")).to_contain_text("said elsewhere")
        await expect(page.get_by_label("Message to the agent")).to_be_visible()
        assert await asyncio.to_thread(busy.wait, 30) is not None


async def test_the_keyboard_alone_does_and_forks_leave_the_other_alone(
    tmp_path: Path, chromium: Browser, begun: str, busy: subprocess.Popen[bytes]
) -> None:
    holders = Holders()
    holders.by_id[begun] = holder_of(busy)
    async with hub_that_looks(tmp_path, holders) as served, Desk(chromium, served.port) as desk:
        page = await desk.log_in()
        await expect(page.get_by_role("button", name="Found on this machine")).to_be_visible()
        await find(page, "found on", "Found on this machine")
        row = page.locator(".found-row")
        await row.get_by_role("button", name="Watch").press("Enter")
        await expect(page.get_by_label("This session is watched")).to_contain_text(f"process {busy.pid}")
        await find(page, "fork this", "Fork this session")
        await expect(page.get_by_label("Message to the agent")).to_be_visible()
        await expect(page.get_by_role("log")).to_contain_text("said elsewhere")
        assert busy.poll() is None
        assert len((await served.client.request("GET", "/sessions")).json()["sessions"]) == 2


def claude_line(kind: str, uuid: str, project: Path, message: dict[str, Any]) -> str:
    stamp = "2026-01-01T10:00:00.000Z"
    about = {"cwd": str(project), "sessionId": CLAUDE, "version": "2.1.0", "isSidechain": False}
    return json.dumps({"type": kind, "uuid": uuid, "timestamp": stamp, "message": message, **about}) + "\n"


async def test_what_claude_code_keeps_is_found_by_the_real_command(
    tmp_path: Path, chromium: Browser, size: Size
) -> None:
    cli = Cli(tmp_path)
    user = tmp_path / "user"
    place = user / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(cli.project))
    place.mkdir(parents=True)
    said = {"id": "m1", "type": "message", "role": "assistant", "model": "some-model", "stop_reason": "end_turn"}
    record = place / f"{CLAUDE}.jsonl"
    record.write_text(
        claude_line("user", "u1", cli.project, {"role": "user", "content": "Mend the cart"})
        + claude_line(
            "assistant", "a1", cli.project, {**said, "content": [{"type": "text", "text": "It is **whole**."}]}
        )
    )
    (place / "broken.jsonl").write_bytes(b"\0\xff no record\n")
    cli.environment |= {"HOME": str(user), "PILOTHOUSE_LEASES": str(tmp_path / "leases")}
    cli.environment.pop("CLAUDE_CONFIG_DIR", None)
    with serving_process(cli) as served:
        port = int(served.url.rstrip("/").rpartition(":")[2])
        async with Desk(chromium, port, size) as desk:
            page = desk.page
            await page.goto(served.login)
            row = await unfold(page)
            await expect(row).to_contain_text("Mend the cart")
            await expect(row).to_contain_text("claude · project")
            await row.get_by_role("button", name="Watch").click()
            transcript = page.get_by_role("log")
            await expect(transcript.locator(".said-user")).to_contain_text("Mend the cart")
            await expect(transcript.locator(".said-agent strong")).to_have_text("whole")
            with record.open("a") as file:
                text = [{"type": "text", "text": "And painted."}]
                file.write(claude_line("assistant", "a2", cli.project, {**said, "id": "m2", "content": text}))
            await expect(transcript).to_contain_text("And painted.")
            wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
            assert not wide
