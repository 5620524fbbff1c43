"""Which text is found, and by what."""

from __future__ import annotations

import pytest

from pilothouse.log.search import (
    OUTPUT_LIMIT,
    QUERY_TERMS,
    like_pattern,
    match_expression,
    matches,
    needs_substrings,
    snippet,
    terms_of,
    text_of,
)
from pilothouse.model.events import MessageCompleteEvent, MessageDeltaEvent, ToolCallResultEvent, ToolCallStartEvent
from pilothouse.model.records import ImageContent, TextContent

HEAD = {"seq": 0, "session_id": "s", "timestamp": "t"}


def test_text_comes_from_whole_messages_and_tools_and_never_from_deltas() -> None:
    image = ImageContent(url="data:image/png;base64,")
    message = MessageCompleteEvent(
        **HEAD, message_id="m", role="user", content=[TextContent(text="one"), image, TextContent(text="two")]
    )
    start = ToolCallStartEvent(**HEAD, tool_call_id="t", name="Bash", category="execute", description="list files")
    result = ToolCallResultEvent(**HEAD, tool_call_id="t", name="Bash", output="y" * 100_000, duration=1)
    assert text_of(message) == "one\ntwo"
    assert text_of(start) == "list files\nBash"
    assert len(text_of(result)) == OUTPUT_LIMIT
    assert text_of(MessageDeltaEvent(**HEAD, message_id="m", role="user", delta="one")) == ""


def test_terms_are_words_whatever_stands_between_them() -> None:
    assert terms_of(' a\t"b"\n-- c\0d *') == ["a", '"b"', "c", "d"]
    assert terms_of("") == []
    assert len(terms_of("x " * 1000)) == QUERY_TERMS
    assert terms_of("\ud800x") == ["?x"]


def test_every_term_is_quoted_for_the_index() -> None:
    assert match_expression(['a"b', "NEAR(x"]) == '"a""b"* "NEAR(x"*'


def test_a_pattern_takes_wildcards_for_themselves() -> None:
    assert like_pattern(r"50%_a\b") == r"%50\%\_a\\b%"


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("Fix the LOGIN form", "login fix", True),
        ("Fix the login form", "log", True),
        ("Fix the login form", "gin", False),
        ("see src/app.py now", "app.py", True),
        ("see src/app.py now", "src/app", True),
        ("设计数据库", "数据", True),
        ("nothing", "else", False),
    ],
)
def test_a_text_matches_when_each_term_begins_a_word(text: str, query: str, found: bool) -> None:
    assert matches(text, terms_of(query)) is found


def test_scripts_without_spaces_are_looked_for_inside_words() -> None:
    assert needs_substrings(["数据"])
    assert not needs_substrings(["daten", "données", "данные"])


def test_a_snippet_shows_the_neighbourhood_on_one_line() -> None:
    text = "before " * 50 + "the\nneedle\there " + "after " * 50
    shown = snippet(text, ["needle"])
    assert "the needle here" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) < 200
    assert snippet("short needle", ["needle"]) == "short needle"
    assert snippet("no such thing", ["needle"]) == "no such thing"
