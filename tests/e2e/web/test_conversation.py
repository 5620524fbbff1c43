"""A conversation in a real browser, on a desk and on a phone: what is said, asked, done, stopped, queued."""

from __future__ import annotations

import re

from tests.support.browsers import expect
from tests.support.web_talk import Talk


async def test_a_tour_shows_text_plan_diff_and_output(talk: Talk) -> None:
    await talk.write("tour")
    await talk.is_now("waiting for you")
    await expect(talk.ask).to_contain_text("cart.py")
    while True:  # the tour asks for an edit, then to run the tests, as often as it takes
        await expect(talk.ask.or_(talk.page.locator(".head .session-word", has_text="idle"))).to_be_visible()
        if not await talk.ask.count():
            break
        card = await talk.ask.element_handle()
        await talk.choose(re.compile("^Allow once"))
        await card.wait_for_element_state("hidden")
    await talk.is_now("idle")
    assert (talk.workspace / "pilothouse-demo" / "cart.py").exists()
    last = (await talk.texts())[-1].strip().splitlines()[-1]
    await talk.sees(re.compile(re.escape(re.sub(r"[`*]", "", last)[:40])))
    await expect(talk.page.get_by_text("5 of 5")).to_be_visible()
    assert (await talk.snapshot())["todos"]


async def test_an_edit_that_is_allowed_is_shown_as_a_diff_and_written(talk: Talk) -> None:
    (talk.workspace / "notes.txt").write_text("first line\n")
    await talk.write("edit notes.txt")
    await expect(talk.ask).to_contain_text("notes.txt")
    await expect(talk.ask).to_contain_text("The scripted agent was here.")
    await expect(talk.ask).to_contain_text("first line")
    assert (talk.workspace / "notes.txt").read_text() == "first line\n"
    await talk.choose(re.compile("^Allow once"))
    await talk.sees("is written.")
    assert (talk.workspace / "notes.txt").read_text() == "first line\nThe scripted agent was here.\n"
    await talk.transcript.get_by_role("button", name=re.compile("notes.txt")).first.click()
    await talk.sees("The scripted agent was here.")


async def test_an_edit_that_is_denied_is_not_written_and_the_reason_reaches_the_agent(talk: Talk) -> None:
    await talk.write("edit notes.txt")
    await talk.choose(re.compile("Deny with a reason"))
    await talk.ask.get_by_role("textbox").fill("not this file")
    await talk.choose(re.compile("^Deny"))
    await talk.sees(re.compile("Nothing was written"))
    assert not (talk.workspace / "notes.txt").exists()
    await expect(talk.ask).to_have_count(0)
    approval = next(item for item in (await talk.snapshot())["items"] if item["type"] == "approval")
    assert (approval["approved"], approval["reason"]) == (False, "not this file")


async def test_always_makes_a_rule_that_answers_the_next_time(talk: Talk) -> None:
    await talk.write("bash echo one")
    await talk.choose(re.compile("^Always…"))
    await talk.choose("This session")
    await talk.sees(re.compile("It ended with"))
    await talk.write("bash echo one")
    await expect(talk.said(re.compile("It ended with"))).to_have_count(2)
    await expect(talk.ask).to_have_count(0)
    approvals = [item for item in (await talk.snapshot())["items"] if item["type"] == "approval"]
    assert [one["resolvedBy"] for one in approvals] == ["user", "policy"]


async def test_a_question_is_answered_by_its_form(talk: Talk) -> None:
    await talk.write("question")
    await expect(talk.ask).to_contain_text("Tell me about yourself.")
    name = talk.ask.get_by_label("Name")
    await name.fill("Ada")
    await talk.ask.get_by_label("Blue").check()
    await talk.choose("Send")
    await talk.sees(re.compile("'Ada'"))
    await talk.sees(re.compile("'blue'"))
    await expect(talk.ask).to_contain_text("Please look at this page.")
    await talk.choose(re.compile("Decline"))
    await talk.is_now("idle")


async def test_a_flood_is_shown_whole(talk: Talk) -> None:
    await talk.write("flood 3000")
    await talk.sees(re.compile(r"\b2999\b"))
    await talk.is_now("idle")
    shown = await talk.transcript.inner_text()
    numbers = [int(word) for word in re.findall(r"\d+", shown) if word.isdigit()]
    assert [number for number in range(3000) if number not in set(numbers)] == []
    assert "".join(await talk.texts()) == "".join(f"{number}\n" for number in range(3000))


async def test_an_error_is_a_banner_and_the_next_prompt_works(talk: Talk) -> None:
    await talk.write("error")
    await expect(talk.transcript.locator(".banner")).to_be_visible()
    await talk.is_now("failed")
    await talk.write("echo still here")
    await talk.hears("still here")
    await talk.is_now("idle")


async def test_an_agent_that_dies_is_told_with_its_exit_code_and_comes_back(talk: Talk) -> None:
    await talk.write("crash 3")
    await expect(talk.transcript.locator(".banner").first).to_contain_text(re.compile(r"\b3\b"))
    await talk.is_now("failed")
    await talk.row_is("failed")
    await talk.write("echo back again")
    await talk.hears("back again")
    await talk.is_now("idle")


async def test_stop_ends_the_turn_and_says_so(talk: Talk) -> None:
    await talk.write("wait")
    await talk.hears("Waiting until you cancel.")
    await talk.is_now("working")
    await talk.page.get_by_role("button", name="Stop", exact=True).click()
    await talk.is_now("idle")
    await talk.sees(re.compile("cancelled|stopped", re.IGNORECASE))
    await talk.write("echo goes on")
    await talk.hears("goes on")


async def test_escape_stops_once_and_forces_the_second_time(talk: Talk) -> None:
    await talk.write("stubborn 60")
    await talk.hears("I am busy")
    await talk.is_now("working")
    await talk.field.focus()
    await expect(talk.field).to_be_focused()
    await talk.page.keyboard.press("Escape")
    await expect(talk.page.get_by_text(re.compile("press again to force"))).to_be_visible()
    await talk.page.keyboard.press("Escape")
    await expect(talk.status).not_to_have_text(re.compile("^working"))
    snapshot = await talk.snapshot()
    assert snapshot["turn"]["open"] is False


async def test_prompts_wait_in_a_queue_that_can_be_changed(talk: Talk) -> None:
    await talk.write("wait")
    await talk.hears("Waiting until you cancel.")
    await talk.write("echo second")
    await talk.write("echo third")
    queue = talk.page.locator(".composer-queue li")
    await expect(queue).to_have_count(2)
    await queue.filter(has_text="echo second").get_by_role("button", name="Edit").click()
    await expect(talk.field).to_have_value("echo second")
    await talk.field.fill("echo changed")
    await talk.page.get_by_role("button", name="Save").click()
    await expect(queue.filter(has_text="echo changed")).to_have_count(1)
    await queue.filter(has_text="echo third").get_by_role("button", name="Remove").click()
    await expect(queue).to_have_count(1)
    await talk.page.get_by_role("button", name="Stop", exact=True).click()
    await talk.hears("changed")
    await talk.is_now("idle")
    assert "third" not in "".join(await talk.texts())


async def test_a_draft_survives_leaving_and_reloading(talk: Talk) -> None:
    await talk.field.fill("half a thou")
    await talk.page.reload()
    await expect(talk.field).to_have_value("half a thou")
    await talk.desk.go("#/")
    await talk.open()
    await expect(talk.field).to_have_value("half a thou")


async def test_markdown_is_rendered_and_thoughts_are_folded(talk: Talk) -> None:
    await talk.write("markdown")
    await expect(talk.transcript.locator("table")).to_be_visible()
    await expect(talk.transcript.locator("pre").first).to_be_visible()
    await talk.write("think")
    await talk.hears("42")
    await expect(talk.transcript.get_by_text(re.compile("^Thought"))).to_be_visible()


async def test_the_transcript_lets_go_when_somebody_scrolls_up(talk: Talk) -> None:
    await talk.write("flood 400")
    await talk.sees(re.compile(r"\b399\b"))
    await talk.is_now("idle")
    await talk.write("slow 4")
    await talk.hears("0.3 s")
    await talk.transcript.evaluate("box => { box.scrollTop -= 600; box.dispatchEvent(new Event('scroll')) }")
    before = await talk.transcript.evaluate("box => box.scrollTop")
    await talk.hears("4.0 s")
    await talk.is_now("idle")
    assert abs(await talk.transcript.evaluate("box => box.scrollTop") - before) < 5
    await talk.page.get_by_role("button", name=re.compile("Jump to latest")).click()
    await expect(talk.said(re.compile(r"4\.0 s")).last).to_be_in_viewport()


async def test_who_sends_a_prompt_while_scrolled_up_is_at_the_end_again(talk: Talk) -> None:
    await talk.write("flood 4000")
    await talk.sees(re.compile(r"\b3999\b"))
    await talk.is_now("idle")
    await talk.desk.rest()
    await talk.transcript.evaluate("box => { box.scrollTop = 0; box.dispatchEvent(new Event('scroll')) }")
    await expect(talk.page.get_by_role("button", name=re.compile("Jump to latest"))).to_be_visible()
    await talk.write("echo down here")
    await expect(talk.transcript.locator(".said-agent", has_text="down here").last).to_be_in_viewport()


async def test_what_is_unfolded_at_the_end_stays_in_sight(talk: Talk) -> None:
    await talk.write("flood 60")
    await talk.sees(re.compile(r"\b59\b"))
    await talk.write("edit notes.txt")
    await talk.choose(re.compile("^Allow once"))
    await talk.sees("is written.")
    await talk.is_now("idle")
    card = talk.transcript.get_by_role("button", name=re.compile("notes.txt")).last
    await expect(talk.ask).to_have_count(0)
    await talk.desk.rest()
    before = await card.bounding_box()
    await card.click()
    await expect(talk.transcript.locator(".diff-rows")).to_be_in_viewport()
    await talk.desk.rest()
    after = await card.bounding_box()
    assert before
    assert after
    assert abs(after["y"] - before["y"]) < 3


async def test_what_a_command_prints_is_shown_while_it_runs(talk: Talk) -> None:
    waits = "while [ ! -e go{0} ]; do sleep 0.05; done; echo printed {0}"
    await talk.write(f"bash echo printed 0; {waits.format(1)}; {waits.format(2)}; {waits.format(3)}")
    await talk.choose(re.compile("^Allow once"))
    output = talk.transcript.locator(".term-output")
    for step in range(3):
        await expect(output).to_contain_text(f"printed {step}")
        await expect(talk.transcript.locator(".call-executing")).to_have_count(1)
        (talk.workspace / f"go{step + 1}").touch()
    await expect(talk.transcript.locator(".call-completed")).to_have_count(1)
    # what it showed while it happened is what somebody finds who comes later
    head = talk.transcript.locator(".call-head")
    lived = await head.inner_text()
    await talk.page.reload()
    await expect(head).to_have_text(re.compile("^Ran"))
    await talk.desk.rest()
    assert await head.inner_text() == lived
