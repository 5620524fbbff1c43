"""Text and thinking: each word once, whether it is streamed, told whole, or both."""

from __future__ import annotations

import pytest

from tests.unit.agents.claude_bridge.lines import (
    assistant,
    block_start,
    delta,
    init,
    message_start,
    result,
    system,
    text,
    user,
)
from tests.unit.agents.claude_bridge.playing import play

THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "x"}


def test_text_is_told_by_token_and_not_again_with_the_whole_message() -> None:
    played = play(
        "go", init(), message_start(), block_start("text"), delta("Hel"), delta("lo"), assistant(text("Hello"))
    )
    assert [update["content"]["text"] for update in played.updates if "content" in update] == ["Hel", "lo"]
    assert {update["messageId"] for update in played.updates if "content" in update} == {"m1"}


def test_text_that_was_not_streamed_is_told_whole() -> None:
    assert play("go", init(), assistant(text("Hello"))).text() == "Hello"


def test_only_the_rest_of_a_message_is_told_that_was_streamed_in_part() -> None:
    played = play("go", init(), message_start(), block_start("text"), delta("Hel"), assistant(text("Hello")))
    assert played.text() == "Hello"
    assert played.updates[-1]["content"]["text"] == "lo"


def test_a_message_is_known_by_its_content_when_its_id_differs() -> None:
    lines = [message_start("m1"), block_start("text"), delta("Hello"), assistant(text("Hello"), message_id="other")]
    assert play("go", init(), *lines).text() == "Hello"


def test_the_rest_of_a_message_has_the_id_that_it_began_with() -> None:
    lines = [message_start("m1"), block_start("text"), delta("Hel"), assistant(text("Hello"), message_id="other")]
    assert play("go", init(), *lines).updates[-1]["messageId"] == "m1"


def test_space_at_the_ends_does_not_make_it_another_text() -> None:
    lines = [message_start(), block_start("text"), delta("\n\nHello "), assistant(text("Hello"))]
    assert play("go", init(), *lines).text() == "\n\nHello "


def test_blocks_of_one_message_are_matched_in_their_order() -> None:
    lines = [message_start(), block_start("text"), delta("Yes."), block_start("text", 1), delta("Yes.", 1)]
    assert play("go", init(), *lines, assistant(text("Yes."), text("Yes."), text("No."))).text() == "Yes.Yes.No."


def test_a_block_that_begins_like_another_is_not_taken_for_that_one() -> None:
    lines = [message_start(), block_start("text"), delta("Let me"), block_start("text", 1), delta("Let me see.", 1)]
    whole = [assistant(text("Let me see.")), assistant(text("Let me"))]
    assert play("go", init(), *lines, *whole).text() == "Let meLet me see."


def test_a_block_that_stayed_empty_is_not_taken_for_one_that_was_streamed() -> None:
    lines = [message_start(), block_start("text"), block_start("text", 1), delta("Hello", 1), assistant(text("Hello"))]
    assert play("go", init(), *lines).text() == "Hello"


def test_two_messages_with_the_same_words_are_both_told() -> None:
    once = [message_start(), block_start("text"), delta("Again."), assistant(text("Again."))]
    assert play("go", init(), *once, *once).text() == "Again.Again."


def test_an_api_call_made_again_from_the_start_does_not_repeat_what_was_shown() -> None:
    broken = [message_start("m1"), block_start("text"), delta("This wi")]
    again = [
        message_start("m2"),
        block_start("text"),
        delta("This "),
        delta("will do"),
        assistant(text("This will do")),
    ]
    played = play("go", init(), *broken, *again)
    assert played.text() == "This will do"


def test_an_api_call_made_again_that_says_something_else_is_told_whole() -> None:
    broken = [message_start("m1"), block_start("text"), delta("This wi")]
    again = [message_start("m2"), block_start("text"), delta("Th"), delta("at is it"), assistant(text("That is it"))]
    assert play("go", init(), *broken, *again).text() == "This wiThat is it"


def test_an_api_call_made_again_without_streaming_gives_the_rest() -> None:
    broken = [message_start("m1"), block_start("text"), delta("This wi")]
    assert play("go", init(), *broken, assistant(text("This will do"), message_id="m2")).text() == "This will do"


def test_thinking_is_a_thought_streamed_or_whole() -> None:
    streamed = [message_start(), block_start("thinking"), delta("Let me ", kind="thinking"), assistant(THOUGHT)]
    assert play("go", init(), *streamed).text("agent_thought_chunk") == "Let me see."
    assert play("go", init(), assistant(THOUGHT)).text("agent_thought_chunk") == "Let me see."


def test_withheld_thinking_is_told_without_what_is_in_it() -> None:
    played = play("go", init(), assistant({"type": "redacted_thinking", "data": "c2VjcmV0"}))
    assert played.kinds() == ["agent_thought_chunk"]
    assert played.updates[0]["_meta"]["claudeCode"]["redacted"] is True
    assert "c2VjcmV0" not in str(played.updates)


def test_a_sub_agents_words_are_marked_as_its_own() -> None:
    lines = [message_start(parent="t1"), block_start("text", parent="t1"), delta("Sub", parent="t1")]
    played = play("go", init(), *lines, assistant(text("Sub agent"), parent="t1"), assistant(text("Main")))
    assert played.text(parent="t1") == "Sub agent"
    assert played.text() == "Main"


def test_two_agents_that_speak_at_once_are_not_mixed_up() -> None:
    lines = [
        message_start("m1"),
        message_start("m2", parent="t1"),
        block_start("text"),
        block_start("text", parent="t1"),
        delta("Same"),
        delta("Same", parent="t1"),
        assistant(text("Same words"), parent="t1", message_id="m2"),
        assistant(text("Same"), message_id="m1"),
    ]
    played = play("go", init(), *lines)
    assert (played.text(), played.text(parent="t1")) == ("Same", "Same words")


def test_a_command_that_answers_only_in_its_result_is_heard() -> None:
    assert play("/cost", init(), result(result="Total cost: $0")).text() == "Total cost: $0"


def test_the_output_of_a_command_is_heard_in_every_form() -> None:
    told = system("local_command_output", content="Done.")
    assert play("/x", init(), told, result(result="Done.")).text() == "Done."
    typed = user("<local-command-stderr>\nNo such command\n</local-command-stderr>", isReplay=True)
    assert play("/x", init(), typed).text() == "No such command"


def test_the_result_does_not_repeat_the_last_message() -> None:
    assert play("go", init(), assistant(text("Hello")), result(result="Hello")).text() == "Hello"


@pytest.mark.parametrize("words", ["No response requested.", "\nNo response requested.\n"])
def test_what_the_cli_says_when_there_is_nothing_to_say_is_not_shown(words: str) -> None:
    line = assistant(text(words))
    line["message"]["model"] = "<synthetic>"
    assert play("go", init(), line).text() == ""
    assert play("go", init(), assistant(text(words))).text() == words
