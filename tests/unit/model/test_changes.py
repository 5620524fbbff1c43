"""Changes of files: by texts, by inputs, by patches."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.model.changes import TEXT_LIMIT, content_of, diff_change, edit_changes, patch_changes, report_changes


@pytest.mark.parametrize(
    ("old", "new", "kind", "added", "removed"),
    [(None, "a\nb\n", "created", 2, 0), ("a\n", "b\n", "modified", 1, 1), ("a\nb\n", None, "deleted", 0, 2)],
)
def test_a_change_has_its_kind_and_counts(old: Any, new: Any, kind: str, added: int, removed: int) -> None:
    change = diff_change("/w/a", old, new)
    assert (change.change_type, change.lines_added, change.lines_removed) == (kind, added, removed)


def test_a_diff_names_files_as_the_workspace_does() -> None:
    assert "+++ b/src/a.py\n" in (diff_change("/w/src/a.py", "a\n", "b\n", "/w").diff or "")
    assert "+++ b/src/a.py\n" in (diff_change("/w/src/a.py", "a\n", "b\n", "/w/").diff or "")
    assert "/ww/a" in (diff_change("/ww/a", "a\n", "b\n", "/w").diff or "")


def test_the_end_of_a_snippet_is_not_the_end_of_the_file() -> None:
    assert "No newline" not in (diff_change("a", "x", "y").diff or "")
    assert "No newline" in (diff_change("a", "x\n", "y").diff or "")


def test_a_text_too_large_to_compare_is_a_change_without_a_diff() -> None:
    change = diff_change("a", "x" * TEXT_LIMIT, "y")
    assert (change.change_type, change.diff, change.lines_added) == ("modified", None, None)


@pytest.mark.parametrize(
    ("raw", "counts"),
    [
        ({"file_path": "a", "old_string": "x", "new_string": "y\nz"}, [(2, 1)]),
        ({"path": "a", "before": "x", "after": ""}, [(0, 1)]),
        ({"path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "p", "newText": "q"}, 7]}, [(2, 2)]),
        ({"path": "a", "content": "x"}, []),
        ({"old_string": "x", "new_string": "y"}, []),
        (None, []),
        ([1], []),
    ],
)
def test_edits_are_read_from_an_input(raw: Any, counts: Any) -> None:
    assert [(change.lines_added, change.lines_removed) for change in edit_changes(raw)] == counts


def test_the_whole_text_of_an_input() -> None:
    assert content_of({"file_text": "x"}) == "x"
    assert content_of({"content": 5}) is None
    assert content_of("x") is None


def test_a_patch_and_its_report_tell_of_each_file_and_of_both_names_of_a_moved_one() -> None:
    patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Delete File: c\n*** End Patch"
    told = [(change.path, change.change_type) for change in patch_changes(patch)]
    assert told == [("b", "modified"), ("a", "deleted"), ("c", "deleted")]
    report = {"files": [{"filePath": "/w/a", "type": "add", "before": "", "after": "x\n"}]}
    (change,) = report_changes(report)
    assert (change.path, change.change_type, change.lines_added) == ("/w/a", "created", 1)
