"""Text for a terminal: foreign text steers nothing and hides nothing, and streams are cut where they may be."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, Group
from rich.text import Text

from pilothouse.dialects.texts import clean, duration, shown, title_of
from pilothouse.model.previews import make_visible, split_sections
from pilothouse.terminal.drawing import Blocks, cut_middle, diff_text, display_path, output_tail, size_of, title_line


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;never ended\nnext line", "\nnext line"),
        ("\x1bPq\x1b\\x", "x"),
        ("\x9b2Jx", "x"),
        ("\x1b(Bx\x1b7y", "xy"),
        ("a\x00b\x07c\x08d\x7fe\x85f", "abcdef"),
        ("10%\r20%\r30%\nnext", "30%\nnext"),
        ("line\r\nline\r\n", "line\nline\n"),
        ("a\tb", "a   b"),
        ("\x1b", ""),
        ("héllo ✓ 🎉", "héllo ✓ 🎉"),
    ],
)
def test_nothing_that_steers_a_terminal_is_left(text: str, left: str) -> None:
    assert clean(text) == left


@given(st.text())
def test_no_control_character_ever_comes_through(text: str) -> None:
    for harmless in (clean(text), shown(text)):
        assert not any(ord(one) < 32 and one != "\n" for one in harmless)
        assert not any(0x7F <= ord(one) < 0xA0 for one in harmless)


def test_what_somebody_decides_on_shows_what_would_hide_in_it() -> None:
    assert shown("rm -rf /\x1b[2K\recho hi") == "rm -rf /⟨U+001B⟩[2K⟨U+000D⟩echo hi"
    assert shown("a\u202eb\u200bc") == "a⟨U+202E⟩b⟨U+200B⟩c"
    assert shown("x\x7f\x85") == "x⟨U+007F⟩⟨U+0085⟩"
    assert shown("a\xa0b\u3164c\U000e0041") == "a⟨U+00A0⟩b⟨U+3164⟩c⟨U+E0041⟩"
    assert title_of("two\n  lines\x07") == "two lines⟨U+0007⟩"


@given(st.text())
def test_text_for_a_decision_shows_every_character_that_could_hide(text: str) -> None:
    assert shown(text) == make_visible(text.replace("\r\n", "\n")).expandtabs(4)
    assert make_visible(shown(text)) == shown(text)


@pytest.mark.parametrize(
    ("milliseconds", "told"),
    [
        (0, "0.0 s"),
        (1234, "1.2 s"),
        (9949, "9.9 s"),
        (12_400, "12 s"),
        (65_000, "1 min 05 s"),
        (7_500_000, "2 h 05 min"),
    ],
)
def test_durations_read_well(milliseconds: int, told: str) -> None:
    assert duration(milliseconds) == told


def test_sizes_read_well() -> None:
    assert [size_of(count) for count in (12, 1500, 48_000, 3_400_000)] == ["12 bytes", "1.5 KB", "48 KB", "3.4 MB"]


# -- blocks -------------------------------------------------------------------------------------------------------


def test_a_blank_line_closes_a_block_but_not_inside_a_fence() -> None:
    blocks = Blocks()
    assert blocks.feed("one\n") == []
    assert blocks.feed("still one\n\ntwo") == ["one\nstill one"]
    assert blocks.feed("\n\n````\na\n\n```\n\nb\n") == ["two"]
    assert blocks.feed("````\n\n") == ["````\na\n\n```\n\nb\n````"]
    assert blocks.close() == ""


@given(st.lists(st.text(alphabet="ab`~\n ", max_size=12), max_size=20))
def test_blocks_lose_no_line_however_a_text_is_cut(pieces: list[str]) -> None:
    blocks = Blocks()
    closed = [block for piece in pieces for block in blocks.feed(piece)]
    text = "\n".join([*closed, blocks.close()])
    kept = [line for line in text.split("\n") if line.strip()]
    assert kept == [line for line in "".join(pieces).split("\n") if line.strip()]


def test_a_flood_is_not_held_back_for_its_end() -> None:
    assert Blocks().feed("x" * 20_000) == ["x" * 20_000]
    assert len(Blocks().feed("line\n" * 5_000)) == 1


def test_the_tail_of_an_open_block_is_short() -> None:
    blocks = Blocks()
    blocks.feed("first\nsecond")
    assert blocks.tail(100) == "first\nsecond"
    blocks.feed("y" * 300)
    assert blocks.tail(50) == "y" * 50


# -- titles -------------------------------------------------------------------------------------------------------


def test_a_title_that_fits_is_whole() -> None:
    assert cut_middle(Text("make all"), 8).plain == "make all"


def test_a_long_title_loses_its_middle_and_counts_what_is_left_out() -> None:
    command = "echo " + "x" * 200 + "; rm -rf /tmp/project"
    cut = cut_middle(Text(command), 60).plain
    assert cell_len(cut) <= 60
    head, count, tail = re.fullmatch(r"(.*) … (\d+) characters … (.*)", cut).groups()
    assert command.startswith(head)
    assert command.endswith(tail)
    assert tail.endswith("rm -rf /tmp/project"[-15:])
    assert len(head) + int(count) + len(tail) == len(command)


def test_a_title_of_wide_letters_fits_too() -> None:
    assert cell_len(cut_middle(Text("漢" * 100), 60).plain) <= 60


def test_a_line_too_narrow_for_both_ends_is_wrapped_instead() -> None:
    assert cut_middle(Text("y" * 50), 30).plain == "y" * 50


@pytest.mark.parametrize("warning", ["", "ran without asking (high risk)"])
def test_a_title_line_on_a_terminal_keeps_its_end_and_its_warning(warning: str) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    title = "`echo " + "x" * 200 + "; rm -rf /`"
    console.print(Group(title_line("✓", "green", title, suffix="1.5 s", warning=warning)))
    (line,) = out.getvalue().splitlines()
    assert line.startswith("✓ $ echo x")
    assert "characters …" in line
    assert "rm -rf /  1.5 s" in line
    assert line.rstrip().endswith(warning or "1.5 s")


# -- diffs --------------------------------------------------------------------------------------------------------

DIFF = "--- a/work/p/a.sql\n+++ b/work/p/a.sql\n@@ -1,2 +1,1 @@\n keep\n--- a comment taken out\n+++ an odd line\n"
NEW = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+one\n"


def test_a_line_that_looks_like_a_header_is_not_hidden() -> None:
    assert split_sections(DIFF) == [
        ("work/p/a.sql", False, ["@@ -1,2 +1,1 @@", " keep", "--- a comment taken out", "+++ an odd line"])
    ]
    assert diff_text(DIFF, "/work/p/a.sql", "/work/p").plain == (
        "a.sql\n keep\n--- a comment taken out\n+++ an odd line"
    )


def test_each_file_of_a_diff_stands_under_its_name() -> None:
    assert diff_text(DIFF + NEW, "first", "/work/p").plain.split("\n")[4:] == ["new.txt (new)", "+one"]
    assert diff_text("+bare\n", "/work/p/x", "/work/p").plain == "x\n+bare"


def test_a_long_diff_loses_its_middle_and_keeps_its_end() -> None:
    long = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + "".join(f"+{number}\n" for number in range(100))
    assert diff_text(long, "x", limit=3).plain == "x\n+0\n+1\n… 97 lines left out …\n+99"


def test_paths_inside_the_root_are_short_and_others_whole() -> None:
    assert display_path("/work/p/src/a.py", "/work/p/") == "src/a.py"
    assert display_path("/work/other/a.py", "/work/p") == "/work/other/a.py"
    assert display_path("a.py", "") == "a.py"


def test_of_a_long_output_the_end_is_shown() -> None:
    tail = output_tail("\n".join(map(str, range(100))) + "\n\n").plain.split("\n")
    assert tail[0] == "… 88 earlier lines"
    assert tail[-1] == "99"
