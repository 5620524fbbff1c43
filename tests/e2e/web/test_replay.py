"""A session of a real hub, played again in a real browser."""

from __future__ import annotations

import re

from tests.support.browsers import expect
from tests.support.web_talk import Talk


async def test_a_session_is_gone_through_from_its_end_to_its_beginning_and_back_to_now(talk: Talk) -> None:
    await talk.write("edit notes.txt")
    await talk.choose(re.compile("^Allow once"))
    await talk.sees("is written.")
    await talk.is_now("idle")
    page = await talk.desk.go(f"#/replay/{talk.id}")
    transcript = page.locator(".transcript")
    await expect(transcript).to_contain_text("is written.")
    await page.get_by_label("What happened when").click()
    await page.locator(".replay-contents [data-kind=approval] button").first.click()
    await expect(page.locator(".replay-asked")).to_contain_text("notes.txt")
    await expect(page.locator(".replay-asked button")).to_have_count(0)
    await expect(transcript).to_contain_text("Waiting for a decision")
    await expect(transcript).not_to_contain_text("is written.")
    await page.keyboard.press("Home")
    await expect(page.locator(".replay-facts")).to_contain_text("Event 0 of")
    await page.get_by_label("Speed").select_option("50")
    await page.get_by_label("Play", exact=True).click()
    await expect(transcript).to_contain_text("is written.")
    await expect(page.locator(".replay-asked")).to_have_count(0)
    await page.get_by_role("link", name="Back to live").click()
    await expect(page).to_have_url(re.compile(f"#/session/{re.escape(talk.id)}$"))
    await talk.sees("is written.")


async def test_a_session_that_is_not_there_is_said_to_be_so(talk: Talk) -> None:
    page = await talk.desk.go("#/replay/nobody")
    await expect(page.get_by_role("alert").filter(has_text="could not be read")).to_contain_text("no session 'nobody'")
    await expect(page.get_by_role("button", name="Try again")).to_be_visible()
