"""Acts compare equal only if they have the same effect."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.model.acts import (
    CommandLine,
    Effects,
    FileEdit,
    apply_edits,
    command_from_text,
    command_from_words,
    core_of_edit,
    extra_variables,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ls -la", ("ls", "-la")),
        ("  ls\t-la\n", ("ls", "-la")),
        ("echo 'a b' \"c d\"", ("echo", "a b", "c d")),
        ("make X=1", ("make", "X=1")),
        ("bash -lc 'npm test'", ("npm", "test")),
        ("sh -c \"bash -c 'npm test'\"", ("npm", "test")),
    ],
)
def test_plain_words_need_no_shell(text: str, words: tuple[str, ...]) -> None:
    assert command_from_text(text) == CommandLine(words) == command_from_words(words)


@pytest.mark.parametrize(
    "text",
    [
        *("X=1 make", "ls *", "ls ~", "ls $HOME", "ls `pwd`", "ls; true", "ls | wc", "ls > a", "ls #", "ls &", "a\\ b"),
        *("echo {a,b}", 'echo "$x"', 'echo "a\\n"', "if true", "time ls", "! ls", "ls\nls", "ls\r", "\xa0ls", "(ls)"),
        *("'ls' -la", "ls [a]", "ls ?", "echo 'unclosed", "ls\x0b", "", "  ", "%1", "ls ^a^b"),
    ],
)
def test_anything_else_is_compared_letter_by_letter(text: str) -> None:
    assert command_from_text(text) == CommandLine((), text)


@pytest.mark.parametrize(
    "words",
    [
        ("bash", "-c"),
        ("bash", "-c", "ls", "x"),
        ("bash", "-xc", "ls"),
        ("./bash", "-c", "ls"),
        ("zsh", "-c", "ls"),
        ("bash", "-l", "-c", "ls"),
    ],
)
def test_only_known_shells_with_dash_c_are_unwrapped(words: tuple[str, ...]) -> None:
    assert command_from_words(words) == CommandLine(words)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_joined_words_parse_back_to_the_same_list(words: list[str]) -> None:
    line = command_from_text(shlex.join(words))
    assert line.words in ((), tuple(words), command_from_words(words).words)


def test_a_variable_counts_unless_it_is_known_with_this_value() -> None:
    own = {"LANG": "de_DE", "A": "1"}
    given_ones = [("NO_COLOR", "1"), ("NO_COLOR", "2"), ("A", "1"), ("PATH", "x"), ("LANG", "C.UTF-8")]
    assert extra_variables(given_ones, own) == (("NO_COLOR", "2"), ("PATH", "x"))


@pytest.mark.parametrize(
    ("base", "edits", "result"),
    [
        (None, [FileEdit("a", None, "x")], "x"),
        ("y", [FileEdit("a", None, "x")], "x"),
        ("one two", [FileEdit("a", "two", "2")], "one 2"),
        ("one two two", [FileEdit("a", "two", "2")], None),
        ("one two two", [FileEdit("a", "two", "2", True)], "one 2 2"),
        ("one aaa", [FileEdit("a", "aa", "b")], None),
        ("one", [FileEdit("a", "two", "2", True)], None),
        ("one", [FileEdit("a", "one", "1"), FileEdit("a", "1", "I")], "I"),
        ("a\r\nb\r\n", [FileEdit("a", "a\nb", "c")], "c\n"),
        ("\ufeffa", [FileEdit("a", "a", "b")], "b"),
        (None, [FileEdit("a", "x", "y")], None),
        ("a", [FileEdit("a", "a", None)], None),
    ],
)
def test_edits_have_one_result_or_none(base: str | None, edits: list[FileEdit], result: str | None) -> None:
    assert apply_edits(base, edits) == result


def test_an_edit_with_more_context_is_the_same_edit() -> None:
    one, other = FileEdit("a", "x", "y"), FileEdit("a", "before\nx\nafter", "before\ny\nafter")
    assert core_of_edit(one) == core_of_edit(other)
    assert Effects(edits=(one,)).is_same(Effects(edits=(other,)))
    assert not Effects(edits=(one,)).is_same(Effects(edits=(other._replace(path="b"),)))
