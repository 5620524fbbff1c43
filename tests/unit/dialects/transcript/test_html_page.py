"""A session in the page that plays it: all events are there, and no text of theirs is taken for markup."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from pilothouse.dialects.transcript.html import STYLE, to_page
from pilothouse.model.events import encode_event
from pilothouse.model.session import Session, fold
from tests.support.scenario import Drive, text

TEMPLATE = """<!doctype html>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{{plain-style-hash}}'">
<title>{{title}}</title>
<style>{{plain-style}}</style>
<main id="plain">{{plain}}</main>
<script type="application/json" id="recording">{{recording}}</script>
<script>own({ a: {} })</script>
"""
EVIL = (
    "</script><script>alert(1)</script><!--<script> --></title></style></main> {{recording}} {{title}} "
    "<img src=x onerror=alert(1)> &lt;b&gt; \u2028\u2029 \x1b]0;x\x07 ]]> {{plain}} \\u003c"
)


def drive() -> Drive:
    made = Drive()
    made.prompt(EVIL)
    made.say(EVIL)
    made.call("c", title=EVIL, kind="execute", status="in_progress", rawInput={"command": EVIL, EVIL: EVIL})
    made.progress("c", status="completed", content=text(EVIL), locations=[{"path": EVIL}])
    made.call("d", title=EVIL)
    made.ask("d")
    made.decide(approved=False, reason=EVIL)
    made.end()
    return made


class Elements(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in ("script", "style", "title"):
            self.within = tag
            self.texts.append((tag, ""))
        assert not {name for name, _ in attrs if name.startswith("on")}

    def handle_data(self, data: str) -> None:
        if self.within:
            tag, before = self.texts[-1]
            self.texts[-1] = (tag, before + data)

    def handle_endtag(self, tag: str) -> None:
        if tag == self.within:
            self.within = ""


def page() -> tuple[str, Elements, Drive]:
    driven = drive()
    session = fold(driven.events)
    session.title = EVIL
    made = to_page(TEMPLATE, session, driven.events)
    elements = Elements()
    elements.feed(made)
    return made, elements, driven


def test_every_event_is_in_the_page_as_it_is() -> None:
    _, elements, driven = page()
    recording = json.loads(elements.texts[2][1])
    assert recording["title"] == EVIL
    assert recording["events"] == [json.loads(encode_event(event)) for event in driven.events]


def test_nothing_in_a_session_ends_an_element_or_begins_one() -> None:
    made, elements, _ = page()
    assert elements.tags.count("script") == 2
    assert [tag for tag, _ in elements.texts] == ["title", "style", "script", "script"]
    assert elements.texts[3][1] == "own({ a: {} })"
    assert "img" not in elements.tags
    recording = made.partition('id="recording">')[2].partition("</script>")[0]
    assert "<" not in recording
    assert not {"\u2028", "\u2029"} & set(recording)


def test_a_marker_that_a_session_quotes_stays_a_text() -> None:
    made, elements, _ = page()
    assert made.count('id="plain"') == 1
    assert "{{recording}}" in elements.texts[2][1]


def test_the_style_of_the_plain_transcript_is_allowed_by_its_hash() -> None:
    made, elements, _ = page()
    found = re.search(r"style-src '(sha256-[^']+)'", made)
    assert found is not None
    assert elements.texts[1] == ("style", STYLE)
    assert found[1] == "sha256-" + b64encode(sha256(STYLE.encode()).digest()).decode()


def test_half_a_character_does_not_keep_a_page_from_being_written() -> None:
    session = Session(id="x")
    session.title = "half \ud83d"
    assert "half \ufffd" in to_page(TEMPLATE, session, []).encode().decode()


@pytest.mark.parametrize("template", ["", TEMPLATE + "{{title}}", TEMPLATE.replace("{{plain}}", "")])
def test_a_file_that_is_no_template_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="expected a template with each of"):
        to_page(template, Session(id="x"), [])
