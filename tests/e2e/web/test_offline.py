"""The page without its hub: it opens, shows what was read last, goes on when the hub is back, forgets for strangers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page

from pilothouse.server.page import PageFile, page_files
from tests.support.browsers import Desk, expect
from tests.support.servers import ServerProcess, server_process, serving
from tests.support.web_talk import Talk, until

WORKING = "navigator.serviceWorker.ready.then(({ active }) => active?.scriptURL)"
KEPT = """async ([words, place]) => {
  for (const name of await caches.keys()) {
    if (!name.startsWith("pilothouse-kept ")) continue;
    const cache = await caches.open(name);
    for (const key of (await cache.keys()).filter(({ url }) => url.endsWith(place)))
      if ((await (await cache.match(key))?.text())?.includes(words)) return true;
  }
  return false;
}"""


async def kept(page: Page, words: str, *, place: str = "", wanted: bool = True) -> None:
    """Until something with these words is kept, in a place or anywhere, or nothing any more."""

    async def is_so() -> bool:
        return bool(await page.evaluate(KEPT, [words, place])) == wanted

    await until(is_so)


async def test_a_session_can_be_read_without_the_hub_and_goes_on_with_it(chromium: Browser, tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    workspace.mkdir()
    async with Desk(chromium, 0) as desk:
        async with server_process(home) as server:
            desk.port, desk.origin = server.port, f"http://127.0.0.1:{server.port}"
            await desk.log_in()
            talk = await Talk.begin(server, desk, workspace)
            await talk.write("echo words that last")
            await talk.hears("words that last")
            await talk.is_now("idle")
            assert await desk.page.evaluate(WORKING) == f"{desk.origin}/sw.js"
            await desk.page.reload()
            await talk.hears("words that last")
            await kept(desk.page, "words that last")
        await desk.page.reload()
        await expect(desk.page.locator("[data-phase=connecting]").first).to_be_attached()
        await talk.hears("words that last")
        async with server_process(home, port=desk.port) as server:
            await expect(desk.page.locator("[data-phase=live]").first).to_be_attached(timeout=60_000)
            await talk.write("echo and more")
            await talk.hears("and more")
            await talk.hears("words that last")


async def test_the_list_and_a_session_are_there_as_they_were_last(chromium: Browser, tmp_path: Path) -> None:
    async with Desk(chromium, 0) as desk:
        async with server_process(tmp_path / "home") as server:
            desk.port, desk.origin = server.port, f"http://127.0.0.1:{server.port}"
            page = await desk.log_in()
            talk = await Talk.begin(server, desk, tmp_path)
            await talk.write("echo the first of all")
            await talk.hears("the first of all")
            await talk.is_now("idle")
            await page.evaluate(WORKING)
            await kept(page, "the first of all")
            await talk.write("echo and the last")
            await talk.hears("and the last")
            await desk.visit("approvals")  # nothing is loaded anew, and nothing hidden
            await kept(page, "and the last")
            await kept(page, "the first of all", place="/rows")
        await desk.go("#/")
        await page.reload()
        await expect(page.locator(".session-row").first).to_contain_text("the first of all")
        await talk.desk.go(f"#/session/{talk.id}")
        await talk.hears("and the last")


async def test_what_was_kept_is_forgotten_when_the_hub_does_not_know_the_browser(
    server: ServerProcess, chromium: Browser, tmp_path: Path
) -> None:
    async with Desk(chromium, server.port) as desk:
        page = await desk.log_in()
        talk = await Talk.begin(server, desk, tmp_path)
        await talk.write("echo a secret")
        await talk.hears("a secret")
        await page.reload()
        await kept(page, "a secret")
        await page.evaluate("fetch('logout', { method: 'POST' }).then(({ status }) => status)")
        await page.reload()
        await expect(page.get_by_text(re.compile("not logged in", re.IGNORECASE)).first).to_be_visible()
        await kept(page, "a secret", wanted=False)


async def test_who_logs_out_leaves_neither_a_draft_nor_what_was_read(
    server: ServerProcess, chromium: Browser, tmp_path: Path
) -> None:
    async with Desk(chromium, server.port) as desk:
        page = await desk.log_in()
        talk = await Talk.begin(server, desk, tmp_path)
        await talk.write("echo a secret")
        await talk.hears("a secret")
        await talk.field.fill("half a secret")
        await desk.visit("devices")
        await page.get_by_role("button", name="Log out").click()
        await page.get_by_role("dialog").get_by_role("button", name="Log out").click()
        await expect(page.get_by_text(re.compile("not logged in", re.IGNORECASE)).first).to_be_visible()
        await kept(page, "a secret", wanted=False)
        assert "secret" not in await page.evaluate("JSON.stringify(localStorage)")


async def test_below_a_path_everything_is_below_it(chromium: Browser, tmp_path: Path) -> None:
    async with serving(tmp_path, root_path="/hub") as served, Desk(chromium, served.port) as desk:
        link = (await served.client.request("POST", "/hub/login-links")).json()["url"]
        assert "/hub/login" in link
        await desk.page.goto(link)
        await expect(desk.page.locator("[data-phase=live]").first).to_be_attached()
        assert await desk.page.evaluate(WORKING) == f"{desk.origin}/hub/sw.js"
        assert (
            await desk.page.evaluate("navigator.serviceWorker.ready.then(({ scope }) => scope)")
            == f"{desk.origin}/hub/"
        )
        await desk.page.reload()
        await expect(desk.page.locator("[data-phase=live]").first).to_be_attached()


async def test_a_newer_version_waits_until_it_is_wanted(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as served, Desk(chromium, served.port) as desk:
        page = await desk.log_in()
        await page.evaluate(WORKING)
        await page.reload()  # from now on the worker has it
        shown = page.locator("html")
        version = await shown.get_attribute("data-version") or ""
        assert version
        for name in ("index.html", "sw.js"):
            newer = page_files()[name].content.replace(version.encode(), b"newer")
            monkeypatch.setitem(page_files(), name, PageFile(name, newer))
        await page.evaluate("navigator.serviceWorker.ready.then((registration) => registration.update())")
        again = page.get_by_role("button", name="Reload")
        await expect(again).to_be_visible()
        await expect(shown).to_have_attribute("data-version", version)
        await again.click()
        await expect(shown).to_have_attribute("data-version", "newer")
        await expect(again).to_have_count(0)
