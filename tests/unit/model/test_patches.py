"""Patches as agents write them: read, applied to the file they are for, and summed up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.model.diffs import unified_diff
from pilothouse.model.patches import (
    FilePatch,
    PatchedFile,
    PatchError,
    apply,
    parse_patch,
    patched_files,
    read_patched_files,
)

WHOLE = """*** Begin Patch
*** Add File: docs/new.md
+# New
+
+text
*** Update File: src/app.py
*** Move to: src/main.py
@@ class App:
@@ def run(self):
     pass
-    return 1
+    return 2
+    # two
@@
 last
+end
*** End of File
*** Delete File: old.txt
*** End Patch
"""


def only(text: str) -> FilePatch:
    patch = parse_patch(text)
    assert patch.errors == []
    [file] = patch.files
    return file


def update(*lines: str) -> FilePatch:
    return only("\n".join(["*** Begin Patch", "*** Update File: f", *lines, "*** End Patch"]))


def test_a_whole_patch_is_read_file_by_file() -> None:
    patch = parse_patch(WHOLE)
    assert patch.errors == []
    assert [(file.path, file.kind, file.move_to, file.additions, file.deletions) for file in patch.files] == [
        ("docs/new.md", "add", None, 3, 0),
        ("src/app.py", "move", "src/main.py", 3, 1),
        ("old.txt", "delete", None, 0, 0),
    ]
    first, second = patch.files[1].hunks
    assert first.context == ["class App:", "def run(self):"]
    assert (second.context, second.end_of_file) == ([], True)
    assert patch.summary() == "A docs/new.md\nM src/main.py\nD old.txt"


def test_a_new_file_is_its_added_lines() -> None:
    assert apply(parse_patch(WHOLE).files[0], None) == "# New\n\ntext\n"


def test_a_deleted_file_is_no_more() -> None:
    assert apply(parse_patch(WHOLE).files[2], "anything") is None


def test_context_after_the_marks_says_which_of_two_like_places_is_meant() -> None:
    before = "def run(self):\n    pass\n    return 1\nclass App:\n  def run(self):\n    pass\n    return 1\nlast\n"
    after = apply(parse_patch(WHOLE).files[1], before)
    same, changed = before[: before.index("class")], before[before.index("class") :]
    assert after == same + changed.replace("return 1\n", "return 2\n    # two\n") + "end\n"


def test_lines_with_other_white_space_are_found_and_the_files_own_stay() -> None:
    assert apply(update(" a", "-b", "+c"), "\ta  \nb \nz") == "\ta  \nc\nz\n"


def test_typographic_quotes_and_dashes_are_found() -> None:
    assert apply(update('-say "x" - y', "+z"), "say “x” – y\n") == "z\n"


def test_a_file_with_carriage_returns_keeps_them() -> None:
    assert apply(update(" a", "-b", "+c"), "a\r\nb\r\nd\r\n") == "a\r\nc\r\nd\r\n"
    assert apply(update(" a", "-b", "+c"), "a\r\nb\r\nd") == "a\r\nc\r\nd\r\n"


def test_an_addition_without_old_lines_goes_after_its_context_or_to_the_end() -> None:
    assert apply(update("@@ a", "+x"), "a\nb\n") == "a\nx\nb\n"
    assert apply(update("+x"), "a\nb") == "a\nb\nx\n"


def test_the_end_of_the_file_is_preferred_when_the_patch_names_it() -> None:
    assert apply(update("-a", "+x", "*** End of File"), "a\nb\na\n") == "a\nb\nx\n"


def test_hunks_out_of_order_are_found() -> None:
    assert apply(update("@@", "-c", "+C", "@@", "-a", "+A"), "a\nb\nc\n") == "A\nb\nC\n"


def test_a_hunk_that_does_not_fit_is_an_error_that_names_it() -> None:
    with pytest.raises(PatchError, match="f: hunk 1 does not fit"):
        apply(update("-not there", "+x"), "a\n")
    with pytest.raises(PatchError, match="starts after 'nowhere'"):
        apply(update("@@ nowhere", "+x"), "a\n")
    with pytest.raises(PatchError, match="two hunks change line 1"):
        apply(update("@@", "-a", "+x", "@@", "-a", "+y"), "a\n")


@pytest.mark.parametrize(
    "text",
    [
        "*** Update File: f\n@@\n-a\n+b",  # no begin, no end
        "```diff\n*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch\n```",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch\nEOF",
        "*** Begin Patch\r\n*** Update File: f\r\n@@\r\n-a\r\n+b\r\n*** End Patch\r\n",
        "  *** Begin Patch\n*** Update File:f\n@@ -1,1 +1,1 @@\n-a\n+b\n*** End Patch",
        "*** Begin Patch\n*** Update File: f\n-a\n+b\n\n*** End Patch",
    ],
)
def test_what_models_get_wrong_is_read_all_the_same(text: str) -> None:
    assert apply(only(text), "a\n") == "b\n"


def test_blank_context_lines_may_have_lost_their_space() -> None:
    assert apply(update(" a", "", "-b", "+c"), "a\n\nb\n") == "a\n\nc\n"


def test_what_cannot_be_read_is_reported_with_its_line() -> None:
    patch = parse_patch(
        "hello\n*** Begin Patch\n*** Add File: a\nno plus\n*** Update File: b\nodd\n*** Delete File: c\nx"
    )
    assert [number for number, _ in patch.errors] == [1, 4, 6, 8]
    assert patch.files[0].hunks[0].lines == [("+", "no plus")]


def test_long_lines_and_many_like_lines_are_read_in_linear_time() -> None:
    name = f"a{' ' * 100_000}b"
    assert parse_patch(f"*** Begin Patch\n*** Update File: {name}  \n-x\n").files[0].path == name
    hunks = ["@@", "-a", "+b"] * 1000
    assert apply(update(*hunks), "a\n" * 5000) == "b\n" * 1000 + "a\n" * 4000


def test_marks_inside_lines_are_text() -> None:
    patch = parse_patch("*** Begin Patch\n*** Add File: a\n+*** Update File: b\n+*** End Patch\n*** End Patch")
    assert [file.path for file in patch.files] == ["a"]
    assert patch.files[0].additions == 2


@pytest.mark.parametrize("text", ["", None, 7, [], "no patch at all"])
def test_no_patch_is_no_files(text: Any) -> None:
    assert parse_patch(text).files == []


LIKE = "a\nb\n1\n2\n3\n4\n5\n6\n7\na\nb\n"


@pytest.mark.parametrize(
    ("hunks", "after"),
    [
        ("@@ -10,2 +10,2 @@\n a\n-b\n+c\n", LIKE[:-2] + "c\n"),
        ("@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\nc" + LIKE[3:]),
        # the file has grown or shrunk since: what is nearest is meant
        ("@@ -8,2 +8,2 @@\n a\n-b\n+c\n", LIKE[:-2] + "c\n"),
        ("@@ -3,2 +3,2 @@\n a\n-b\n+c\n", "a\nc" + LIKE[3:]),
        ("@@ -99,2 +99,2 @@\n a\n-b\n+c\n", LIKE[:-2] + "c\n"),
        # one hunk after the other, and so far off as the one before
        ("@@ -1 +1 @@\n-a\n+A\n@@ -2 +2 @@\n-b\n+B\n", "A\nB" + LIKE[3:]),
        ("@@ -5 +5 @@\n-1\n+eins\n@@ -12,2 +12,2 @@\n a\n-b\n+c\n", LIKE[:-2].replace("1", "eins") + "c\n"),
        # lines that have no old ones beside them
        ("@@ -4,0 +5 @@\n+new\n", LIKE.replace("2\n", "2\nnew\n")),
        ("@@ -0,0 +1 @@\n+new\n", "new\n" + LIKE),
    ],
)
def test_a_unified_diff_changes_the_place_that_it_names(hunks: str, after: str) -> None:
    (file,) = parse_patch(f"--- a/x\n+++ b/x\n{hunks}").files
    assert apply(file, LIKE) == after


def test_a_diff_that_deletes_a_file_has_all_of_its_lines() -> None:
    (file,) = parse_patch("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n").files
    assert apply(file, "a\n") is None
    with pytest.raises(PatchError, match="1 of its lines would stay"):
        apply(file, "a\nand what the patch does not know\n")
    with pytest.raises(PatchError, match="does not fit"):
        apply(file, "b\n")


def test_a_rename_is_read_with_and_without_changes() -> None:
    rename = "diff --git a/old b/new\nsimilarity index 90%\nrename from old\nrename to new\n"
    change = "--- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n"
    for text, after in ((rename, "a\n"), (rename + change, "b\n")):
        (file,) = parse_patch(text).files
        assert (file.path, file.kind, file.move_to, apply(file, "a\n")) == ("old", "move", "new", after)
    assert len(parse_patch(rename + rename.replace("old", "other") + change.replace("old", "third")).files) == 3


@pytest.mark.parametrize("counts", ["-1 +1", "-1,2 +1,2", "-1,9 +1,9"])
def test_counts_of_a_unified_diff_may_be_wrong(counts: str) -> None:
    second = "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-y\n+z\n"
    files = parse_patch(f"--- a/x\n+++ b/x\n@@ {counts} @@\n a\n-b\n+c\n d\n{second}-- \n2.40").files
    assert [apply(file, text) for file, text in zip(files, ("a\nb\nd\n", "y\n"), strict=True)] == ["a\nc\nd\n", "z\n"]


@pytest.mark.parametrize("text", ["garbage", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"])
def test_what_names_no_file_says_what_would(text: str) -> None:
    patch = parse_patch(text)
    assert patch.files == []
    assert "--- PATH" in patch.errors[0][1]


def test_a_unified_diff_is_read_too() -> None:
    diff = unified_diff("a\n-- b\nc\n", "a\n++ b\nc\n", "x").text + unified_diff(None, "n\n", "new").text
    patch = parse_patch("Index: x\n=====\n" + diff)
    assert [(file.path, file.kind, file.additions, file.deletions) for file in patch.files] == [
        ("x", "update", 1, 1),
        ("new", "add", 1, 0),
    ]
    assert apply(patch.files[0], "a\n-- b\nc\n") == "a\n++ b\nc\n"


@settings(max_examples=200, deadline=None)
@given(
    old=st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), new=st.lists(st.sampled_from("abcd"), max_size=12)
)
def test_replacing_a_whole_file_gives_the_new_one(old: list[str], new: list[str]) -> None:
    file = update("@@", *(f"-{line}" for line in old), *(f"+{line}" for line in new), "*** End of File")
    assert apply(file, "\n".join(old) + "\n") == "".join(f"{line}\n" for line in new)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["*** Begin Patch", "*** End Patch", "*** Add File: a", "*** Update File: b", "*** Delete File: c",
             "*** Move to: d", "@@", "@@ x", " x", "+y", "-x", "", "x", "*** End of File", "--- a/x", "+++ b/x",
             "@@ -1,2 +1 @@", "\ud800", "```"]
        ),
        max_size=14,
    )
)  # fmt: skip
def test_any_lines_are_read_and_either_fit_or_say_why(lines: list[str]) -> None:
    patch = parse_patch("\n".join(lines))
    for file in patch.files:
        try:
            after = apply(file, "x\ny\n")
        except PatchError:
            continue
        assert (after is None) == (file.kind == "delete")
    assert len(patch.summary().splitlines()) == len(patch.files)


def test_the_files_of_a_patch_are_filled_with_before_and_after() -> None:
    files = patched_files(parse_patch(WHOLE), {"old.txt": "1\n2\n"}, workspace="/w")
    assert [(file.type, file.additions, file.deletions, bool(file.diff)) for file in files] == [
        ("add", 3, 0, True),
        ("move", 3, 1, False),  # its text is not known
        ("delete", 0, 2, True),
    ]
    assert files[0].after == "# New\n\ntext\n"
    assert files[1].move_path == "src/main.py"


def test_a_patch_that_does_not_fit_still_gives_its_counts() -> None:
    [file] = patched_files(parse_patch("*** Begin Patch\n*** Update File: f\n-a\n+b\n"), {"f": "other\n"})
    assert (file.before, file.after, file.additions, file.deletions) == ("other\n", "", 1, 1)


def test_stored_records_are_completed_from_what_they_hold() -> None:
    files = read_patched_files(
        {
            "files": [
                {"type": "add", "before": "", "after": "// new\n", "additions": 230, "deletions": 0},
                {"file_path": "/a/b", "before": "x\n", "after": "y\nz\n", "additions": "many"},
                {"filePath": 7, "type": "odd", "before": None},
                "nothing",
            ]
        }
    )
    assert files == [
        PatchedFile(type="add", after="// new\n", additions=230),
        PatchedFile(file_path="/a/b", relative_path="a/b", before="x\n", after="y\nz\n", additions=2, deletions=1),
        PatchedFile(),
    ]
    assert read_patched_files(None) == []
    assert read_patched_files({"files": {}}) == []
