"""What keys and pastes make of a line."""

from __future__ import annotations

import pytest

from pilothouse.terminal.keyboard import Line, _rows


def typed(*parts: bytes) -> Line:
    line = Line()
    for part in parts:
        line.feed(part)
    return line


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (b"hello\r", "hello"),
        (b"helli\x7fo\n", "hello"),
        (b"one two \x17\r", "one "),
        (b"wrong\x15right\r", "right"),
        (b"a\x1b[D\x1b[1;5C\x1bOP\x1bxb\r", "ab"),
        ("gr\u00fc\u00dfe\r".encode(), "gr\u00fc\u00dfe"),
        (b"\xff\xfe\r", "\ufffd\ufffd"),
        (b"a\x04b\r", "ab"),
        (b"\x1b[200~one\r\ntwo\rthree\x1b[201~ more\r", "one\ntwo\nthree more"),
        (b"\x1b[200~\n\x1b[31mred\x07\x1b[201~\r", "[31mred"),
    ],
)
def test_keys_make_a_line_however_they_are_cut(keys: bytes, text: str) -> None:
    for line in (typed(keys), typed(*(keys[index : index + 1] for index in range(len(keys))))):
        assert (line.text, line.is_ended, line.is_over) == (text, True, False)


def test_a_paste_ends_no_line() -> None:
    line = typed(b"\x1b[200~rm -rf /\n\x1b[201~")
    assert (line.text, line.is_ended) == ("rm -rf /\n", False)


def test_ctrl_d_on_an_empty_line_is_the_end() -> None:
    assert typed(b"a\x7f\x04").is_over


def test_what_was_typed_ahead_is_the_next_line_unless_it_is_dropped() -> None:
    line = typed(b"one\rtwo\rthree")
    line.begin()
    assert (line.text, line.is_ended) == ("two", True)
    line.clear()
    line.begin()
    assert (line.text, line.is_ended) == ("", False)


@pytest.mark.parametrize(
    ("text", "indent", "rows"), [("", 2, 0), ("x" * 8, 2, 0), ("x" * 9, 2, 1), ("a\nb", 2, 1), ("日本語" * 2, 0, 1)]
)
def test_rows_are_counted_as_the_terminal_breaks_them(text: str, indent: int, rows: int) -> None:
    assert _rows(text, indent, 10) == rows
