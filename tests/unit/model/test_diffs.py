"""Unified diffs: applying one to the old text gives the new text, and the counts are the diff's own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.model import diffs
from pilothouse.model.diffs import Search, change_type, split_lines, unified_diff

HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def apply(diff: str, old: str) -> str:
    """A strict applier: every context and removed line must be where the header says it is."""
    before, after, at = split_lines(old), [], 0
    lines = iter(split_lines(diff)[2:])
    body = next(lines, None)
    while body is not None:
        match = HEADER.fullmatch(body.rstrip("\n"))
        assert match, body
        start, length = int(match[1]), int(match[2] or 1)
        start -= 1 if length else 0
        after += before[at:start]
        at, end = start, start + length
        body = next(lines, None)
        while body is not None and not body.startswith("@@"):
            mark, text = body[0], body[1:]
            body = next(lines, None)
            if body == "\\ No newline at end of file\n":
                text, body = text[:-1], next(lines, None)
            if mark in " -":
                assert before[at] == text
                at += 1
            if mark in " +":
                after.append(text)
        assert at == end
        assert not match[4] or len(after) >= int(match[4])
    return "".join(after + before[at:])


def counts(diff: str) -> tuple[int, int]:
    body = [line for line in split_lines(diff)[2:] if not line.startswith("@@")]
    return sum(line[0] == "+" for line in body), sum(line[0] == "-" for line in body)


LINES = st.lists(
    st.sampled_from(["a", "b", "", "@@ -1 +1 @@", "--- a/x", "\\ x", "c\r", "\f", "\u2028", "+d"]), max_size=30
)
TEXT = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@settings(max_examples=300, deadline=None)
@given(old=TEXT, new=TEXT, context=st.integers(0, 4))
def test_a_diff_applied_to_the_old_text_gives_the_new_one(old: str, new: str, context: int) -> None:
    diff = unified_diff(old, new, "p", context=context)
    assert apply(diff.text, old) == new
    assert not diff.truncated
    if diff.text:
        assert counts(diff.text) == (diff.added, diff.removed)
    else:
        assert old == new


@settings(max_examples=300, deadline=None)
@given(old=TEXT, new=TEXT, context=st.integers(0, 4), comparisons=st.integers(0, 40), steps=st.integers(0, 60))
def test_a_search_that_would_cost_too_much_still_gives_a_diff_that_applies(
    old: str, new: str, context: int, comparisons: int, steps: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffs, "Search", lambda: Search(comparisons, steps))
        diff = unified_diff(old, new, "p", context=context)
    assert apply(diff.text, old) == new
    if diff.text:
        assert counts(diff.text) == (diff.added, diff.removed)


@settings(max_examples=100, deadline=None)
@given(old=TEXT, new=TEXT, context=st.integers(0, 4))
def test_texts_of_too_many_lines_are_replaced_where_they_differ(old: str, new: str, context: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffs, "LINES", 3)
        diff = unified_diff(old, new, "p", context=context)
    assert apply(diff.text, old) == new
    assert counts(diff.text) == (diff.added, diff.removed)


NUMBERS = st.lists(st.integers(0, 4), max_size=40)


@settings(max_examples=300, deadline=None)
@given(old=NUMBERS, new=NUMBERS)
def test_the_shortest_script_has_as_much_in_common_as_there_is(old: list[int], new: list[int]) -> None:
    search = Search()
    found = search._shortest(old, new)
    longest = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            longest[i + 1][j + 1] = longest[i][j] + 1 if one == other else max(longest[i][j + 1], longest[i + 1][j])
    assert sum(size for _, _, size in found) == longest[-1][-1]
    assert all(old[i : i + size] == new[j : j + size] for i, j, size in found)
    assert not search.is_coarse


LINES = [f"{number % 7}\n" for number in range(20_000)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\n" * 40_000, "a\nb\n" * 20_000),
        ("}\n\n" * 20_000, "\n}\n" * 20_001),
        ("".join(LINES), "".join(line * (1 + place % 3) for place, line in enumerate(LINES))),
        (
            "".join(f"{place}\n" + "a\n" * 20 for place in range(2000)),
            "".join(f"{place}\n" + "b\na\n" * 9 for place in range(2000)),
        ),
    ],
    ids=["every second", "shifted", "stretched", "many pieces"],
)
def test_no_search_does_more_than_it_may(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Search] = []

    def search() -> Search:
        made.append(Search())
        return made[-1]

    monkeypatch.setattr(diffs, "Search", search)
    diff = unified_diff(old, new, "p", limit=1 << 30)
    assert apply(diff.text, old) == new
    (done,) = made
    assert done.comparisons >= 0
    assert done.steps >= -max(len(split_lines(old)), len(split_lines(new)))  # the last step may be a long one


def test_the_plain_diff_of_one_line_is_as_every_tool_prints_it() -> None:
    diff = unified_diff("one\ntwo\nthree\n", "one\nTWO\nthree\n", "src/x.txt")
    assert diff.text == "--- a/src/x.txt\n+++ b/src/x.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
    assert (diff.added, diff.removed, diff.truncated) == (1, 1, False)


@pytest.mark.parametrize("old", [None, ""])
def test_a_new_file_comes_from_dev_null(old: str | None) -> None:
    diff = unified_diff(old, "a\nb", "x")
    assert diff.text == "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"
    assert change_type(old, "a") == "created"


def test_a_deleted_file_goes_to_dev_null() -> None:
    diff = unified_diff("a\n", None, "x")
    assert diff.text == "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert change_type("a\n", None) == "deleted"
    assert change_type("a\n", "") == "modified"


def test_a_final_newline_that_comes_or_goes_is_a_change_of_its_line() -> None:
    diff = unified_diff("a\nb", "a\nb\n", "x")
    assert diff.text.endswith("@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n")


def test_only_a_newline_ends_a_line() -> None:
    diff = unified_diff("a\r\nb\u2028c\x0cd\x85e\n", "a\nb\u2028c\x0cd\x85e\n", "x")
    assert (diff.added, diff.removed) == (1, 1)


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff("a\n", "a\n", "x").text == ""
    assert unified_diff(None, None, "x").text == ""


def test_a_name_cannot_forge_a_line_of_the_diff() -> None:
    head = unified_diff("a\n", "b\n", "x\n+++ b/etc/passwd").text.split("\n")
    assert head[0] == "--- a/x\\n+++ b/etc/passwd"
    assert head[2].startswith("@@")


def test_a_renamed_file_has_both_names() -> None:
    assert unified_diff("a\n", "b\n", "x", new_path="y").text.startswith("--- a/x\n+++ b/y\n")


def test_far_changes_are_hunks_of_their_own_and_near_ones_share_one() -> None:
    old = [f"{i}\n" for i in range(40)]
    far = "".join([*old[:5], "x\n", *old[6:30], "y\n", *old[31:]])
    near = "".join([*old[:5], "x\n", *old[6:12], "y\n", *old[13:]])
    assert unified_diff("".join(old), far, "p").text.count("@@ -") == 2
    assert unified_diff("".join(old), near, "p").text.count("@@ -") == 1


def test_a_diff_over_its_limit_is_cut_at_a_line_and_says_so() -> None:
    new = "".join(f"line {i}\n" for i in range(1000))
    diff = unified_diff(None, new, "p", limit=500)
    assert diff.truncated
    assert len(diff.text) < 600
    assert diff.added == 1000
    assert new.startswith(apply(diff.text, ""))


def test_a_large_file_with_scattered_changes_is_diffed_line_by_line() -> None:
    old = [f"line {i}" for i in range(30_000)]
    new = [line + "!" if i % 1000 == 0 else line for i, line in enumerate(old)]
    diff = unified_diff("\n".join(old), "\n".join(new), "p")
    assert (diff.added, diff.removed, diff.truncated) == (30, 30, False)
    assert apply(diff.text, "\n".join(old)) == "\n".join(new)


def test_repeated_lines_are_searched_as_far_as_may_be() -> None:
    old, new = "a\nb\n" * 5000, "a\na\nb\nb\n" * 2500
    diff = unified_diff(old, new, "p")
    assert diff.truncated
    assert 0 < diff.removed < 10_000
    assert apply(diff.text, old) == new


def test_a_large_repetitive_file_with_few_changes_has_a_small_diff() -> None:
    new = [*LINES[:100], "x\n", *LINES[100:9000], *LINES[9003:15_000], "y\n", *LINES[15_001:]]
    diff = unified_diff("".join(LINES), "".join(new), "p")
    assert (diff.added, diff.removed, diff.truncated) == (2, 4, False)
    assert apply(diff.text, "".join(LINES)) == "".join(new)


def test_patch_the_program_agrees(tmp_path: Path) -> None:
    old = "".join(f"{i % 7}\n" for i in range(60))
    new = old.replace("3\n", "three\n", 2).replace("6\n0\n", "", 3) + "end"
    (tmp_path / "p").write_text(old)
    diff = unified_diff(old, new, "p").text
    done = subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p").read_text() == new
