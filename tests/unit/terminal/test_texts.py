"""Text for a terminal: foreign text steers nothing and hides nothing, and streams are cut where they may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.terminal.drawing import diff_text, display_path, output_tail, split_diff
from pilothouse.terminal.texts import Blocks, clean, duration, shown, size_of, title_of


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
    assert shown("rm -rf /\x1b[2K\recho hi") == "rm -rf /␛[2K␍echo hi"
    assert shown("a\u202eb\u200bc") == "a⟨U+202E⟩b⟨U+200B⟩c"
    assert shown("x\x7f\x85") == "x␡⟨U+0085⟩"
    assert title_of("two\n  lines\x07") == "two lines␇"


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


# -- diffs --------------------------------------------------------------------------------------------------------

DIFF = "--- a/work/p/a.sql\n+++ b/work/p/a.sql\n@@ -1,2 +1,1 @@\n keep\n--- a comment taken out\n+++ an odd line\n"
NEW = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+one\n"


def test_a_line_that_looks_like_a_header_is_not_hidden() -> None:
    assert split_diff(DIFF) == [
        ("work/p/a.sql", ["@@ -1,2 +1,1 @@", " keep", "--- a comment taken out", "+++ an odd line"])
    ]
    assert diff_text(DIFF, "/work/p/a.sql", "/work/p").plain == (
        "a.sql\n keep\n--- a comment taken out\n+++ an odd line"
    )


def test_each_file_of_a_diff_stands_under_its_name() -> None:
    assert diff_text(DIFF + NEW, "first", "/work/p").plain.split("\n")[4:] == ["new.txt (new)", "+one"]
    assert diff_text("+bare\n", "/work/p/x", "/work/p").plain == "x\n+bare"


def test_a_long_diff_is_cut_with_a_count() -> None:
    long = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + "".join(f"+{number}\n" for number in range(100))
    assert diff_text(long, "x", limit=3).plain == "x\n+0\n+1\n+2\n… 97 more lines"


def test_paths_inside_the_root_are_short_and_others_whole() -> None:
    assert display_path("/work/p/src/a.py", "/work/p/") == "src/a.py"
    assert display_path("/work/other/a.py", "/work/p") == "/work/other/a.py"
    assert display_path("a.py", "") == "a.py"


def test_of_a_long_output_the_end_is_shown() -> None:
    tail = output_tail("\n".join(map(str, range(100))) + "\n\n").plain.split("\n")
    assert tail[0] == "… 88 earlier lines"
    assert tail[-1] == "99"
