"""A session as an HTML page and as a page that replays it: both are complete, and no text of the session is markup."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from pilothouse.dialects.transcript.html import STYLE, to_html, to_page
from pilothouse.model.events import encode_event
from pilothouse.model.session import Session, fold
from tests.support.scenario import Drive, text

# -- page -------------------------------------------------------------------------------------------------------------

EVIL = "<script>alert(1)</script> [l](javascript:alert(1)) ![p](http://evil/p.png) \x1b[31mred"


def page() -> str:
    drive = Drive()
    drive.prompt(EVIL)
    drive.say(f"**bold** {EVIL}")
    drive.call("c", kind="execute", status="in_progress", rawInput={"command": EVIL})
    drive.progress("c", status="completed", content=text(EVIL))
    drive.update("plan", entries=[{"content": EVIL, "status": "completed", "priority": "low"}])
    drive.call("d", title=EVIL)
    drive.ask("d")
    drive.decide(approved=False, reason=EVIL)
    drive.end()
    session = fold(drive.events)
    session.title = EVIL
    return to_html(session)


def test_what_others_wrote_is_text_and_nothing_else() -> None:
    made = page()
    assert "<script" not in made
    assert "javascript:" not in made.replace("(javascript:", "")  # as text, in the brackets it was written in
    assert "<img" not in made
    assert 'src="http' not in made
    assert "\x1b" not in made
    assert made.count("&lt;script&gt;") >= 7


def test_the_page_says_what_happened_and_forbids_the_browser_to_run_anything() -> None:
    made = page()
    assert "default-src 'none'" in made
    for part in ("<strong>bold</strong>", 'class="user"', "☑", "not allowed by user"):
        assert part in made


def test_a_session_of_which_nothing_is_known_is_a_page_too() -> None:
    assert "<h1>Session x</h1>" in to_html(Session(id="x"))


def test_a_cancelled_turn_is_told_once_and_plainly() -> None:
    drive = Drive()
    drive.prompt("Go")
    drive.call("c", title="Write it", kind="execute", rawInput={"command": "make"})
    drive.ask("c")
    drive.end("cancelled")
    made = to_html(fold(drive.events))
    assert "not allowed" not in made
    assert "risk · cancelled<" in made
    assert made.index("? Write it") < made.index("Running command")
    assert '<p class="dim">Cancelled · 0.' in made


def test_a_fence_around_an_output_is_not_shown() -> None:
    drive = Drive()
    drive.prompt("Go")
    drive.call("c", kind="read", status="completed", rawInput={"path": "/a"}, content=text("```\nlines\n```"))
    drive.end()
    assert '<pre class="wrap">lines</pre>' in to_html(fold(drive.events))


def test_an_approval_has_the_command_that_its_title_does_not_show() -> None:
    drive = Drive()
    drive.ask("c", title="List files", kind="execute", rawInput={"command": "rm -rf <b>victim\u202e"})
    drive.ask("d", "r2", title="`make`", kind="execute", rawInput={"command": "make"})
    made = to_html(fold(drive.events))
    assert '<pre class="wrap">rm -rf &lt;b&gt;victim⟨U+202E⟩</pre>' in made
    assert made.count('<pre class="wrap">') == 1


# -- replay page ------------------------------------------------------------------------------------------------------

TEMPLATE = """<!doctype html>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{{plain-style-hash}}'">
<title>{{title}}</title>
<style>{{plain-style}}</style>
<main id="plain">{{plain}}</main>
<script type="application/json" id="recording">{{recording}}</script>
<script>own({ a: {} })</script>
"""
HOSTILE = (
    "</script><script>alert(1)</script><!--<script> --></title></style></main> {{recording}} {{title}} "
    "<img src=x onerror=alert(1)> &lt;b&gt; \u2028\u2029 \x1b]0;x\x07 ]]> {{plain}} \\u003c"
)


def drive() -> Drive:
    made = Drive()
    made.prompt(HOSTILE)
    made.say(HOSTILE)
    made.call("c", title=HOSTILE, kind="execute", status="in_progress", rawInput={"command": HOSTILE, HOSTILE: HOSTILE})
    made.progress("c", status="completed", content=text(HOSTILE), locations=[{"path": HOSTILE}])
    made.call("d", title=HOSTILE)
    made.ask("d")
    made.decide(approved=False, reason=HOSTILE)
    made.end()
    return made


class Elements(HTMLParser):
    """What a browser would find in a replay."""

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


def replay() -> tuple[str, Elements, Drive]:
    driven = drive()
    session = fold(driven.events)
    session.title = HOSTILE
    made = to_page(TEMPLATE, session, driven.events)
    elements = Elements()
    elements.feed(made)
    return made, elements, driven


def test_every_event_is_in_the_page_as_it_is() -> None:
    _, elements, driven = replay()
    recording = json.loads(elements.texts[2][1])
    assert recording["title"] == HOSTILE
    assert recording["events"] == [json.loads(encode_event(event)) for event in driven.events]


def test_nothing_in_a_session_ends_an_element_or_begins_one() -> None:
    made, elements, _ = replay()
    assert elements.tags.count("script") == 2
    assert [tag for tag, _ in elements.texts] == ["title", "style", "script", "script"]
    assert elements.texts[3][1] == "own({ a: {} })"
    assert "img" not in elements.tags
    recording = made.partition('id="recording">')[2].partition("</script>")[0]
    assert "<" not in recording
    assert not {"\u2028", "\u2029"} & set(recording)


def test_a_marker_that_a_session_quotes_stays_a_text() -> None:
    made, elements, _ = replay()
    assert made.count('id="plain"') == 1
    assert "{{recording}}" in elements.texts[2][1]


def test_the_style_of_the_plain_transcript_is_allowed_by_its_hash() -> None:
    made, elements, _ = replay()
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
