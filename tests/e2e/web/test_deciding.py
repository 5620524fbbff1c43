"""What somebody sees and presses who decides, in a real browser: a card hides nothing that matters for the answer."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator

from tests.support.browsers import expect
from tests.support.web_talk import Talk

PHRASE = "word " * 60
DESK = pytest.mark.parametrize("size", ["desk"])
"""A phone has no keys."""
DENY = re.compile("^Deny(?! with)")
SIDEWAYS = {"width": 844, "height": 390}


async def share_in_sight(found: Locator, box: Locator) -> float:
    """How much of it is within the box around it, from 0 to 1, by height."""
    inner, outer = await found.bounding_box(), await box.bounding_box()
    assert inner
    assert outer
    seen = min(inner["y"] + inner["height"], outer["y"] + outer["height"]) - max(inner["y"], outer["y"])
    return seen / inner["height"]


async def ask_for_a_change_in_the_middle(talk: Talk) -> None:
    lines = [f"{number} {PHRASE}" for number in range(20)]
    (talk.workspace / "notes.txt").write_text("".join(f"{line}\n" for line in lines))
    lines[10] = lines[10].replace("word", "changed", 1)
    await talk.write("edit notes.txt " + "\n".join(lines))
    await expect(talk.ask.locator(".diff-rows")).to_be_visible()
    await talk.desk.rest()


async def test_a_card_begins_with_what_would_be_changed_and_says_that_more_follows(talk: Talk) -> None:
    await ask_for_a_change_in_the_middle(talk)
    body = talk.ask.locator(".ask-body")
    assert await share_in_sight(talk.ask.locator(".diff-code.diff-removed").first, body) == 1
    await expect(talk.ask.get_by_role("button", name="more lines")).to_be_in_viewport()
    await expect(talk.ask.get_by_role("button", name="Allow once")).to_be_in_viewport()


async def test_a_page_of_little_height_shows_several_lines_of_a_change_and_the_answers(talk: Talk) -> None:
    await talk.page.set_viewport_size(SIDEWAYS)
    await ask_for_a_change_in_the_middle(talk)
    box = await talk.ask.locator(".ask-body").bounding_box()
    assert box
    assert box["height"] > 100
    assert await share_in_sight(talk.ask.get_by_role("button", name=DENY), talk.ask) == 1


async def test_a_page_of_little_height_shows_the_answers_that_are_opened(talk: Talk) -> None:
    await talk.page.set_viewport_size(SIDEWAYS)
    await ask_for_a_change_in_the_middle(talk)
    await talk.choose("Always…")
    assert await share_in_sight(talk.ask.get_by_role("button", name="This session"), talk.ask) == 1
    await talk.choose("Back")
    await talk.choose("Deny with a reason…")
    assert await share_in_sight(talk.ask.get_by_role("button", name="Deny", exact=True), talk.ask) == 1


async def test_why_a_long_command_is_risky_is_seen_before_anything_is_opened(talk: Talk) -> None:
    steps = " && ".join(f"echo step{number} > out{number}.txt" for number in range(120))
    await talk.write(f"bash {steps} && rm -rf ~/important")
    reason = talk.ask.locator(".ask-warning").get_by_text("rm -rf ~/important").first
    await expect(reason).to_be_in_viewport(ratio=1)
    more = talk.ask.get_by_role("button", name="more lines")
    await expect(more).to_be_in_viewport()
    await talk.ask.locator(".ask-body").evaluate("box => box.scrollTo(0, box.scrollHeight)")
    await expect(more).to_have_count(0)
    await expect(talk.ask.locator("pre")).to_contain_text("rm -rf ~/important")


@DESK
async def test_keys_decide_after_a_prompt_was_sent_and_the_field_has_the_focus_again(talk: Talk) -> None:
    await talk.field.fill("bash echo one")
    await talk.field.press("Enter")
    await expect(talk.ask).to_be_focused()
    await expect(talk.ask.locator("kbd").first).to_be_visible()
    await talk.page.keyboard.press("a")
    await talk.sees(re.compile("It ended with"))
    await expect(talk.field).to_be_focused()


@DESK
async def test_a_letter_on_its_way_to_the_field_arrives_there(talk: Talk) -> None:
    await talk.field.fill("bash echo one")
    await talk.field.press("Enter")
    await expect(talk.ask).to_be_focused()
    await talk.page.keyboard.type("add tests")
    await expect(talk.field).to_have_value("add tests")
    assert [one["state"] for one in await talk.approvals()] == ["pending"]


@DESK
async def test_the_first_escape_in_the_field_is_for_the_card_and_the_next_for_the_turn(talk: Talk) -> None:
    await talk.field.fill("bash echo one")
    await talk.field.press("Enter")
    await expect(talk.ask).to_be_visible()
    await talk.field.fill("what comes next")
    await talk.field.press("Escape")
    await expect(talk.ask).to_be_focused()
    await talk.is_now("waiting for you")
    await talk.page.keyboard.press("Escape")
    await expect(talk.ask).to_have_count(0)
    await expect(talk.field).to_have_value("what comes next")
