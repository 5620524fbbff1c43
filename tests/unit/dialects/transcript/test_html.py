"""A session as a page: all of it is there, and nothing of it runs."""

from __future__ import annotations

from pilothouse.dialects.transcript.html import to_html
from pilothouse.model.session import Session, fold
from tests.support.scenario import Drive, text

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
