"""Places in a page: what was searched for is shown, what was put aside can be taken up, what falls beside is taken."""

from __future__ import annotations

import re

from playwright.async_api import Browser, Route

from tests.support.browsers import Desk, expect
from tests.support.servers import ServerProcess
from tests.support.web_talk import Talk, until

DROP = """([name, onto]) => {
  const data = new DataTransfer();
  data.items.add(new File(["words\\n"], name, { type: "text/plain" }));
  const told = ["dragover", "drop"].map(
    (type) => new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }),
  );
  for (const event of told) document.querySelector(onto).dispatchEvent(event);
  return told.every((event) => event.defaultPrevented);
}"""


async def test_what_was_found_is_shown_also_in_the_session_that_is_open(talk: Talk) -> None:
    for number in range(60):
        content = "echo the needle is here" if number == 30 else f"echo hay {number}"
        path = f"/sessions/{talk.id}/send-message"
        await talk.server.client.request("POST", path, {"content": content}, headers={"Prefer": "respond-async"})
    await until(lambda: talk.has_said("hay 59"))
    await talk.sees(re.compile("^hay 59"))
    await talk.is_now("idle")
    needle = talk.said(re.compile("^the needle is here"))
    for _ in range(2):
        if talk.is_narrow:
            await talk.desk.go("#/")
        await talk.page.get_by_placeholder(re.compile("Search")).fill("needle")
        await talk.page.locator(".session-snippet").first.click()
        await expect(talk.transcript.locator(".unread")).to_contain_text("Found")
        # what is above is drawn meanwhile, and is higher or lower than was thought
        await expect(talk.transcript.locator(".transcript-chunk:not(.transcript-drawn)")).to_have_count(0)
        await expect(needle).to_be_in_viewport()
        await talk.transcript.evaluate("box => { box.scrollTop = box.scrollHeight }")
        await expect(needle).not_to_be_in_viewport()


async def test_an_archived_session_says_so_and_can_be_brought_back(talk: Talk) -> None:
    await talk.write("echo put aside")
    await talk.hears("put aside")
    head = talk.page.locator(".main .head")
    await head.get_by_role("button", name=re.compile("^Actions")).click()
    await talk.page.get_by_role("menuitem", name="Archive").click()
    await expect(head.get_by_text("archived", exact=True)).to_be_visible()
    await head.get_by_role("button", name=re.compile("^Actions")).click()
    await talk.page.get_by_role("menuitem", name="Bring back").click()
    await expect(head.get_by_text("archived", exact=True)).to_have_count(0)


async def test_a_file_that_falls_beside_the_composer_goes_with_the_message(talk: Talk) -> None:
    assert await talk.page.evaluate(DROP, ["notes.txt", ".transcript"]), "the browser would leave the page for the file"
    await expect(talk.field).to_have_value(re.compile("@.*notes.txt"))


async def test_a_file_that_falls_where_nobody_takes_it_does_not_end_the_page(talk: Talk) -> None:
    await talk.desk.visit("new")
    assert await talk.page.evaluate(DROP, ["notes.txt", "#new-prompt"])


async def test_a_session_whose_part_of_the_page_does_not_come_has_a_way_back_and_can_be_tried_again(
    shared_server: ServerProcess, chromium: Browser, talk: Talk
) -> None:
    async def lose(route: Route) -> None:
        await route.abort()

    async with Desk(chromium, shared_server.port, "phone") as desk:
        await desk.context.add_init_script("delete Navigator.prototype.serviceWorker")  # it would have the files
        await desk.context.route("**/assets/session-*", lose)
        await desk.log_in()
        await desk.go(f"#/session/{talk.id}")
        await expect(desk.page.get_by_text("could not be loaded")).to_be_visible()
        await expect(desk.page.get_by_role("link", name="All sessions")).to_be_visible()
        await desk.context.unroute_all()
        await desk.page.get_by_role("button", name="Try again").click()
        await expect(desk.page.get_by_role("log")).to_be_visible()


async def test_a_session_that_is_gone_says_so_in_words_and_leads_to_the_others(talk: Talk) -> None:
    await talk.server.client.request("DELETE", f"/sessions/{talk.id}")
    await expect(talk.page.get_by_text("It was deleted, or the link is of another hub.")).to_be_visible()
    await expect(talk.page.get_by_role("link", name="All sessions").last).to_be_visible()
