"""An exported session opened from disk in a real browser: read, scrubbed and played; nothing is run, nothing loaded."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect

from pilothouse.dialects.transcript.html import to_page
from pilothouse.model.events import Event, decode_event
from pilothouse.model.session import fold
from tests.support.browsers import SIZES, Size
from tests.support.scenario import Drive, text

GOLDEN = Path(__file__).parents[2] / "golden" / "web"
AWAY = "http://127.0.0.1:9"
OWN = "document.documentElement.dataset.owned='1'"
EVIL = [
    f"<script>{OWN}</script>",
    f"</script><script>{OWN}</script>",
    f"<!--<script></title></style></main><img src={AWAY}/i.png onerror={OWN}>",
    f"<svg><script>{OWN}</script><image href={AWAY}/s.svg /></svg><svg/onload={OWN}>",
    f"<iframe srcdoc='<script>parent.{OWN}</script>'></iframe><iframe src={AWAY}/f></iframe><object data={AWAY}/o>",
    f"<link rel=stylesheet href={AWAY}/l.css><style>@import '{AWAY}/c.css';</style><base href={AWAY}/>",
    f"<meta http-equiv=refresh content='0;url={AWAY}/m'><form action={AWAY}/p><button autofocus onfocus={OWN}>",
    f"[link](javascript:{OWN}) ![picture]({AWAY}/m.png) <a href='javascript:{OWN}'>a</a> [x](data:text/html,<script>)",
    f"\x1b]8;;javascript:{OWN}\x07\x1b[31m<img src=x onerror={OWN}>\x1b[0m\x1b]0;{AWAY}\x07",
    "{{recording}} {{title}} \u2028 \u2029 </textarea></noscript> ]]> &lt;script&gt; \\u003cscript\\u003e",
]
ALL = "\n\n".join(EVIL)


def hostile() -> tuple[list[Event], str]:
    drive = Drive()
    drive.prompt([{"type": "text", "text": ALL}, {"type": "resource_link", "uri": f"{AWAY}/r", "name": EVIL[0]}])
    drive.say(ALL)
    drive.say(ALL, kind="agent_thought_chunk")
    drive.update(
        "agent_message_chunk", content={"type": "image", "data": "", "uri": f"{AWAY}/u.png", "mimeType": "image/png"}
    )
    for number, (kind, evil) in enumerate(zip(["read", "search", "fetch", "execute", "other"] * 2, EVIL, strict=True)):
        given = {"path": evil, "pattern": evil, "url": f"{AWAY}/{evil}", "command": evil, evil: [evil, {evil: evil}]}
        drive.call(f"c{number}", title=evil, kind=kind, rawInput=given, locations=[{"path": evil, "line": 1}])
        drive.progress(f"c{number}", status="completed" if number % 2 else "failed", content=text(ALL))
    diff = {"type": "diff", "path": f"/work/app/{EVIL[1]}.html", "oldText": ALL, "newText": f"{ALL}\n{ALL}"}
    drive.call("e", title=EVIL[2], kind="edit", rawInput={"path": EVIL[1]}, content=[diff])
    drive.ask("e", title=EVIL[3], rawInput={"command": ALL})
    drive.decide(approved=False, reason=ALL)
    drive.progress("e", status="completed", content=[diff])
    drive.update("plan", entries=[{"content": evil, "status": "in_progress", "priority": "high"} for evil in EVIL])
    drive.update("something_else", anything={EVIL[0]: ALL})
    drive.end()
    return drive.events, ALL


def golden(name: str) -> list[Event]:
    [case] = json.loads((GOLDEN / f"{name}.json").read_text())
    return [decode_event(json.dumps(event)) for event in case["events"]]


def written(place: Path, events: Sequence[Event], title: str | None = None) -> Path:
    template = resources.files("pilothouse").joinpath("web", "export.html").read_bytes().decode()
    session = fold(events)
    session.title = title or session.title
    file = place / "session.html"
    file.write_bytes(to_page(template, session, events).encode())
    return file


@contextlib.asynccontextmanager
async def opened(chromium: Browser, file: Path, size: Size = "desk", **options: Any) -> AsyncIterator[Page]:
    """The file, shown. Whatever it asks of anybody and whatever goes wrong in it fails the test."""
    context = await chromium.new_context(**SIZES[size], locale="en-GB", **options)
    troubles: list[str] = []
    page = await context.new_page()
    page.on("pageerror", lambda error: troubles.append(f"exception: {error}"))
    page.on("console", lambda said: troubles.append(f"console: {said.text}") if said.type == "error" else None)
    asked = lambda url: url != file.as_uri() and not url.startswith(("data:", "blob:"))  # noqa: E731
    page.on("request", lambda request: troubles.append(f"request: {request.url}") if asked(request.url) else None)
    page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
    try:
        await page.goto(file.as_uri())
        yield page
    finally:
        await context.close()
    assert not troubles, troubles


async def unfold(page: Page) -> int:
    """Open whatever can be opened in the transcript, and what is in it then; how much that was."""
    opened = 0
    folded = page.locator(".transcript [aria-expanded=false], .transcript details:not([open]) > summary")
    await expect(page.locator(".transcript :is([aria-expanded], summary)").first).to_be_visible()
    while await folded.count():
        await folded.first.click()
        opened += 1
        assert opened < 500
    return opened


async def test_a_hostile_session_runs_nothing_and_asks_for_nothing(
    chromium: Browser, size: Size, tmp_path: Path
) -> None:
    events, title = hostile()
    async with opened(chromium, written(tmp_path, events, title), size) as page:
        await expect(page.locator(".replay-title")).to_contain_text("<script>document")
        assert await unfold(page) > 5
        for key in ("Home", "ArrowRight", "Shift+ArrowRight", "ArrowRight", "ArrowRight", "End"):
            await page.keyboard.press(key)
        await page.get_by_label("What happened when").click()
        await expect(page.locator(".replay-contents li").first).to_be_visible()
        await page.keyboard.press("Escape")
        await unfold(page)
        await page.mouse.wheel(0, -5000)
        assert await page.evaluate("document.documentElement.dataset.owned") is None
        assert await page.locator("iframe, object, embed, form, base, svg script, link, .replay style").count() == 0
        assert await page.locator("script").count() == 2
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_all_of_it_is_there_at_once_and_can_be_gone_through(
    chromium: Browser, size: Size, tmp_path: Path
) -> None:
    async with opened(chromium, written(tmp_path, golden("tour")), size) as page:
        await expect(page.get_by_role("heading", name="What happened")).to_be_visible()
        await expect(page.locator("#plain")).to_have_count(0)
        await page.keyboard.press("Home")
        await expect(page.locator(".replay-facts")).to_contain_text("Event 0 of 134")
        await expect(page.get_by_role("heading", name="What happened")).to_have_count(0)
        await page.get_by_label("Next prompt").click()
        await expect(page.locator(".transcript")).to_contain_text("tour")
        await page.get_by_label("Speed").select_option("50")
        await page.get_by_label("Play", exact=True).click()
        await expect(page.get_by_role("heading", name="What happened")).to_be_visible()
        await expect(page.get_by_label("Play from the beginning")).to_be_visible()
        line = page.get_by_role("slider", name="Moment")
        await line.fill("1000")
        await expect(page.get_by_role("heading", name="What happened")).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_an_edit_is_shown_by_the_diff_viewer(chromium: Browser, tmp_path: Path) -> None:
    async with opened(chromium, written(tmp_path, golden("edit"))) as page:
        await unfold(page)
        await expect(page.locator(".transcript .diff").first).to_be_visible()


async def test_where_scripts_are_off_the_transcript_is_there_as_plain_html(chromium: Browser, tmp_path: Path) -> None:
    events, title = hostile()
    async with opened(chromium, written(tmp_path, [*golden("tour")]), java_script_enabled=False) as page:
        await expect(page.get_by_role("heading", name="What happened")).to_be_visible()
        await expect(page.locator("#plain .user")).to_have_css("white-space", "pre-wrap")
    async with opened(chromium, written(tmp_path, events, title), java_script_enabled=False) as page:
        await expect(page.locator("#plain h1")).to_contain_text("<script>document")
        assert await page.locator("#plain :is(script, img, iframe, svg, style, form, link, meta, base)").count() == 0
