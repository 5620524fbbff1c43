"""Several browsers, a hub that dies, a page that slept: everybody sees the same, once."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import Browser

from tests.support.browsers import Desk, Size, expect
from tests.support.servers import ServerProcess, server_process
from tests.support.web_talk import Talk, until

COMING_BACK = 60_000
"""Milliseconds: a page waits for up to half a minute before it tries again."""


async def test_two_browsers_share_a_session_and_its_approvals(talk: Talk, chromium: Browser) -> None:
    async with Desk(chromium, talk.server.port, "phone") as other:
        await other.log_in()
        second = Talk(talk.server, other, talk.id, talk.workspace)
        await second.open()
        await talk.write("echo from the first")
        await second.hears("from the first")
        await second.write("edit shared.txt")
        await talk.sees("edit shared.txt")
        await expect(talk.ask).to_be_visible()
        await expect(second.ask).to_be_visible()
        await second.choose(re.compile("^Allow once"))
        await expect(talk.ask.get_by_role("button", name=re.compile("^Allow once"))).to_have_count(0)
        await talk.sees("is written.")
        await second.sees("is written.")


async def test_a_second_device_is_paired_by_link_and_code(talk: Talk, chromium: Browser) -> None:
    page = talk.page
    await talk.desk.go("#/devices")
    await page.get_by_role("button", name=re.compile("QR")).click()
    link = await page.locator(".invite-link code").inner_text()
    code = re.sub(r"\D", "", await page.locator(".invite-digits").inner_text())
    assert len(code) == 6
    async with Desk(chromium, talk.server.port, "phone") as phone:
        await phone.page.goto(link)
        await phone.page.get_by_label(re.compile("digits|code", re.IGNORECASE)).fill(code)
        await phone.page.get_by_label(re.compile("call|name", re.IGNORECASE)).fill("pocket")
        await phone.page.get_by_role("button", name=re.compile("^Pair")).click()
        await phone.page.get_by_role("button", name="Show the sessions").click()
        await expect(phone.page.get_by_text(re.compile("workspace")).first).to_be_visible()
        await expect(page.get_by_text("pocket").first).to_be_visible()
        row = page.locator("li", has_text="pocket")
        await row.get_by_role("button", name=re.compile("Revoke|Remove")).first.click()
        await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        await expect(phone.page.get_by_text(re.compile("not logged in", re.IGNORECASE))).to_be_visible()


async def test_a_hub_killed_under_an_open_page_comes_back_with_nothing_lost_or_doubled(
    chromium: Browser, size: Size, tmp_path: Path
) -> None:
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    workspace.mkdir()
    async with Desk(chromium, 0, size) as desk:
        async with server_process(home) as server:
            port = desk.port = server.port
            desk.origin = server.url
            await desk.log_in()
            talk = await Talk.begin(server, desk, workspace)
            await talk.write("echo before the kill")
            await talk.hears("before the kill")
            await talk.write("slow 30")
            await talk.hears("0.5 s")
            server.kill()
            await server.wait()
        await expect(desk.page.get_by_text(re.compile("Reconnecting"))).to_be_visible()
        await talk.hears("before the kill")
        async with server_process(home, port=port) as again:
            talk.server = again
            await expect(desk.page.get_by_text(re.compile("Reconnecting"))).to_have_count(0, timeout=COMING_BACK)
            await talk.is_now("idle")
            await talk.write("echo after the kill")
            await talk.hears("after the kill")
            await _shows_what_the_hub_has(talk)


async def test_a_page_that_slept_catches_up(talk: Talk) -> None:
    cdp = await talk.desk.context.new_cdp_session(talk.page)
    await talk.write("echo awake")
    await talk.hears("awake")
    await cdp.send("Page.setWebLifecycleState", {"state": "frozen"})
    path = f"/sessions/{talk.id}/send-message"
    for word in ("one", "two", "three"):
        await talk.server.client.request(
            "POST", path, {"content": f"echo slept {word}"}, headers={"Prefer": "respond-async"}
        )
    await until(lambda: talk.has_said("slept three"))
    await cdp.send("Page.setWebLifecycleState", {"state": "active"})
    await talk.hears("slept three")
    await _shows_what_the_hub_has(talk)


async def test_a_page_whose_network_was_away_catches_up(talk: Talk) -> None:
    await talk.write("echo online")
    await talk.hears("online")
    await talk.desk.context.set_offline(True)
    path = f"/sessions/{talk.id}/send-message"
    await talk.server.client.request("POST", path, {"content": "echo meanwhile"}, headers={"Prefer": "respond-async"})
    await talk.page.evaluate("window.dispatchEvent(new Event('offline'))")
    await talk.desk.context.set_offline(False)
    await talk.page.evaluate("window.dispatchEvent(new Event('online'))")
    await talk.hears("meanwhile")
    await _shows_what_the_hub_has(talk)


async def test_a_session_started_in_the_page_runs_the_prompt(talk: Talk) -> None:
    page = talk.page
    await talk.desk.go("#/new")
    await page.get_by_label("Directory", exact=True).fill(str(talk.workspace))
    await page.get_by_label("Prompt", exact=True).fill("echo a new one")
    await page.get_by_role("button", name=re.compile("^Start")).click()
    await expect(page).to_have_url(re.compile("#/session/"))
    await expect(page.get_by_role("log").get_by_text("a new one", exact=True)).to_be_visible()


async def test_what_waits_in_another_session_is_told_and_decided_in_the_centre(talk: Talk) -> None:
    page = talk.page
    await talk.write("edit centre.txt")
    await talk.is_now("waiting for you")
    await talk.desk.go("#/approvals")
    await page.get_by_role("button", name=re.compile("^Allow once")).click()
    await expect(page.get_by_text("No pending approvals")).to_be_visible()
    await until(lambda: talk.has_said("is written."))
    assert (talk.workspace / "centre.txt").exists()


async def _shows_what_the_hub_has(talk: Talk) -> None:
    """Each answer of the agent once, in order, when nothing more comes."""
    await until(lambda: _is_over(talk))
    said = [_plain(text.replace("`", "")) for text in await talk.texts()]
    answers = talk.transcript.locator(".said-agent .md")
    await expect(answers).to_have_text(said, use_inner_text=True)


async def _is_over(talk: Talk) -> bool:
    snapshot = await talk.snapshot()
    return snapshot["status"] == "idle" and not snapshot["turn"]["open"]


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


async def test_where_no_websocket_gets_through_the_page_polls(
    server: ServerProcess, chromium: Browser, tmp_path: Path
) -> None:
    async with Desk(chromium, server.port) as desk:
        await desk.context.route_web_socket(re.compile(".*/ws$"), lambda socket: socket.close())
        await desk.log_in()
        talk = await Talk.begin(server, desk, tmp_path)
        await talk.write("echo by polling")
        await talk.hears("by polling")
        await talk.write("edit polled.txt")
        await talk.choose(re.compile("^Allow once"))
        await talk.sees("is written.")
        await _shows_what_the_hub_has(talk)


async def test_a_stop_pressed_while_the_hub_is_out_of_reach_ends_no_later_turn(talk: Talk) -> None:
    await talk.write("wait")
    await expect(talk.page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    await talk.desk.context.set_offline(True)
    await expect(talk.page.locator(".connection")).to_have_attribute("data-phase", "reconnecting")
    await talk.page.get_by_role("button", name="Stop", exact=True).click()
    await expect(talk.page.get_by_text("Stopping as soon as the hub is reached again")).to_be_visible()

    await talk.server.client.request("POST", f"/sessions/{talk.id}/cancel")
    send, soon = f"/sessions/{talk.id}/send-message", {"Prefer": "respond-async"}
    later = (await talk.server.client.request("POST", send, {"content": "wait"}, headers=soon)).json()["turn_id"]

    async def has_begun() -> bool:
        turn = (await talk.snapshot())["turn"]
        return bool(turn["turnId"] == later and turn["open"])

    await until(has_begun)
    await talk.desk.context.set_offline(False)
    await expect(talk.page.locator(".connection")).to_have_attribute("data-phase", "live", timeout=COMING_BACK)
    await expect(talk.page.get_by_text("Stopping")).to_have_count(0)
    await talk.write("echo comes after it")  # by the same connection, so after whatever was sent on it before
    await expect(talk.page.get_by_text("1 prompt waits")).to_be_visible()
    assert await has_begun()
    await talk.page.get_by_role("button", name="Stop", exact=True).click()
    await talk.hears("comes after it")


async def test_what_is_typed_in_one_tab_outlives_another_one_that_goes(talk: Talk) -> None:
    other = await talk.desk.context.new_page()
    await other.goto(talk.page.url)
    field = other.get_by_label("Message to the agent")
    await field.fill("a thought that is not sent yet")
    await other.close(run_before_unload=True)

    async def is_kept() -> bool:
        return bool(await talk.page.evaluate(f"localStorage.getItem('pilothouse:draft:{talk.id}') !== null"))

    await until(is_kept)
    await talk.page.reload()
    await expect(talk.field).to_have_value("a thought that is not sent yet")
