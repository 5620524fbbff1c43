"""What a session made: seen in the page, pages of an agent without their scripts."""

from __future__ import annotations

import re

from tests.support.browsers import expect
from tests.support.web_talk import Talk

HOSTILE = "<h1>A_report</h1><script>top.document.title='pwned'</script><img/src=x/onerror=parent.pwned=1>"


async def test_what_was_made_is_listed_and_shown_without_running(talk: Talk) -> None:
    for name, text in (("report.html", HOSTILE), ("table.csv", "name,size")):
        await talk.write(f"edit {name} {text}")
        await talk.choose(re.compile("^Allow once"))
        await talk.sees(re.compile(f"{re.escape(name)} is written"))
    cards = talk.page.locator(".row-artifact .artifact")
    await expect(cards).to_have_count(2)  # each once, in the turn that made it
    await expect(cards.first.get_by_role("link", name="Download report.html")).to_be_visible()
    await talk.page.get_by_role("button", name="2 files were changed").click()
    sheet = talk.page.get_by_role("dialog", name="Files")
    await expect(sheet.get_by_role("button", name=re.compile("^table.csv"))).to_be_visible()
    await sheet.get_by_role("button", name=re.compile("^report.html")).click()
    frame = sheet.frame_locator("iframe")
    await expect(frame.get_by_role("heading", name="A_report")).to_be_visible()
    assert await talk.page.title() != "pwned"
    assert await talk.page.evaluate("window.pwned") is None
    await sheet.get_by_role("button", name=re.compile("^table.csv")).click()
    await expect(sheet.get_by_role("columnheader", name="size")).to_be_visible()
    async with talk.page.expect_download() as started:
        await sheet.get_by_role("link", name="Download report.html").click()
    assert (await started.value).suggested_filename == "report.html"
    # the browser tells what the frame's sandbox and policy stopped; nothing else may be told
    assert all("/artifacts/" in one for one in talk.desk.troubles), talk.desk.troubles
    talk.desk.troubles.clear()
