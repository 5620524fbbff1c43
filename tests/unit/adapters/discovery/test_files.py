"""A store of files of JSON lines: what is listed, what is read again, and that no file stands in the way of another."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pilothouse.adapters.discovery import files
from pilothouse.adapters.discovery.files import Glance, LineReader, LineStore, Translation
from pilothouse.adapters.discovery.store import Reader, Update, listed
from pilothouse.model.discovery import DiscoveredSession

Json = dict[str, Any]


class Words(Translation):
    def take(self, record: Json) -> Iterable[Update]:
        self.status = "idle" if record.get("end") else "running"
        if "raise" in record:
            raise ValueError("never seen before")
        return [{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": record["say"]}}]


class Shelf(LineStore):
    """Files `NAME.jsonl`, one folder deep."""

    agent = "shelf"
    depth = 1

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.described: list[str] = []

    @property
    def places(self) -> Sequence[Path]:
        return (self.root,)

    def session_of(self, name: str) -> str | None:
        return name.removesuffix(".jsonl") if name.endswith(".jsonl") else None

    def describe(self, glance: Glance) -> DiscoveredSession | None:
        self.described.append(glance.session_id)
        if any("bomb" in record for record in glance.records):
            raise KeyError("bomb")
        words = [record["say"] for record in glance.records if "say" in record]
        if not words:
            return None
        return listed("shelf", glance.session_id, "/w", created_at="", last_activity="", name=words[0], said=words[-1])

    def translation(self, session_id: str) -> Translation:
        return Words()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    (tmp_path / "root" / "one").mkdir(parents=True)
    return Shelf(tmp_path / "root")


def put(shelf: Shelf, name: str, *records: Any, folder: str = "one") -> Path:
    path = shelf.root / folder / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(
        b"".join(each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in records)
    )
    return path


def say(*words: str) -> list[Json]:
    return [{"say": word} for word in words]


def said(reader: Reader | None) -> list[str]:
    assert reader is not None
    found: list[str] = []
    while updates := reader.read().updates:
        found += (update["content"]["text"] for update in updates)
    return found


def test_sessions_are_listed_the_one_last_written_first(shelf: Shelf) -> None:
    put(shelf, "a", *say("first of a", "last of a"))
    path = put(shelf, "b", *say("only of b"), folder="two")
    os.utime(path, (1, 1))
    sessions = shelf.scan().sessions
    assert [(one.id, one.session_name, one.last_message) for one in sessions] == [
        ("a", "first of a", "last of a"),
        ("b", "only of b", "only of b"),
    ]


def test_only_what_changed_is_looked_into_again(shelf: Shelf) -> None:
    for name in "abc":
        put(shelf, name, *say(name))
    shelf.scan()
    assert sorted(shelf.described) == ["a", "b", "c"]
    shelf.described.clear()
    shelf.scan()
    assert shelf.described == []
    put(shelf, "b", *say("b", "more"))
    found = {one.id: one.last_message for one in shelf.scan().sessions}
    assert shelf.described == ["b"]
    assert found == {"a": "a", "b": "more", "c": "c"}
    (shelf.root / "one" / "a.jsonl").unlink()
    assert {one.id for one in shelf.scan().sessions} == {"b", "c"}


def test_of_a_long_file_only_the_ends_are_read(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    put(shelf, "a", *say("the first"), *({"pad": "x" * 1000} for _ in range(3000)), *say("the last"))
    read = 0
    opened = files.opened

    class Counting:
        def __init__(self, path: str) -> None:
            self._manager = opened(path)

        def __enter__(self) -> Any:
            self._file = self._manager.__enter__()
            return self

        def __exit__(self, *exc: Any) -> None:
            self._manager.__exit__(*exc)

        def fileno(self) -> int:
            return self._file.fileno()

        def seek(self, at: int) -> None:
            self._file.seek(at)

        def read(self, size: int) -> bytes:
            nonlocal read
            data = self._file.read(size)
            read += len(data)
            return data

    monkeypatch.setattr(files, "opened", Counting)
    (one,) = shelf.scan().sessions
    assert (one.session_name, one.last_message) == ("the first", "the last")
    assert read == files.HEAD + files.TAIL


def test_more_is_read_when_the_ends_hold_no_record(shelf: Shelf) -> None:
    long = {"pad": "x" * 200_000}
    put(shelf, "a", {"say": "first " + "y" * 100_000}, *(long for _ in range(20)), {"say": "last", **long})
    (one,) = shelf.scan().sessions
    assert one.last_message == "last"
    assert (one.session_name or "").startswith("first y")


def test_the_one_last_written_counts_of_two_files_of_a_session(shelf: Shelf) -> None:
    os.utime(put(shelf, "a", *say("old")), (1, 1))
    put(shelf, "a", *say("new"), folder="two")
    assert [one.last_message for one in shelf.scan().sessions] == ["new"]
    assert said(shelf.reader("a")) == ["new"]


BAD = {
    "binary": [bytes(range(256)) * 40 + b"\n"],
    "corrupt": [*say("fine"), b'{"say": "bro', b"ken\n", *say("fine again")],
    "list": [b"[1, 2]\n"],
    "unforeseen": [{"bomb": 1}],
    "deep": [b"[" * 100_000 + b"\n"],
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_problem_and_the_others_are_listed(shelf: Shelf, kind: str) -> None:
    path = put(shelf, "bad", *BAD[kind])
    put(shelf, "good", *say("good"))
    for _ in range(2):
        scan = shelf.scan()
        assert "good" in {one.id for one in scan.sessions}
        assert [problem.path for problem in scan.problems] == [str(path)]


def test_a_file_with_one_bad_line_is_still_a_session(shelf: Shelf) -> None:
    put(shelf, "a", *BAD["corrupt"])
    reader = shelf.reader("a")
    assert reader is not None
    step = reader.read()
    assert [update["content"]["text"] for update in step.updates] == ["fine", "fine again"]
    assert [problem.message for problem in step.problems] == ["line 2 is no JSON object and is left out"]
    assert shelf.scan().sessions[0].last_message == "fine again"


def test_a_line_that_grows_is_no_problem_until_nobody_writes_it_any_more(shelf: Shelf) -> None:
    path = put(shelf, "a", *say("whole"), b'{"say": "cut of')
    assert shelf.scan().problems == []
    long_ago = time.time() - 600
    os.utime(path, (long_ago, long_ago))
    assert [problem.message for problem in shelf.scan().problems] == ["its last line is cut off"]
    assert [one.last_message for one in shelf.scan().sessions] == ["whole"]


def test_what_is_no_file_is_a_problem_and_is_not_opened(shelf: Shelf) -> None:
    folder = shelf.root / "one"
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "link.jsonl").symlink_to(folder / "pipe.jsonl")
    (folder / "nowhere.jsonl").symlink_to(folder / "missing")
    (folder / "zeros.jsonl").symlink_to("/dev/zero")
    (folder / "folder.jsonl").mkdir()
    put(shelf, "good", *say("good"))
    scan = shelf.scan()
    assert [one.id for one in scan.sessions] == ["good"]
    found = {Path(problem.path).stem: problem.message for problem in scan.problems}
    odd = "it is no regular file"
    assert found == {"pipe": odd, "link": odd, "zeros": odd, "folder": odd, "nowhere": "it is gone"}


def test_a_link_to_a_session_is_read_and_a_circle_of_folders_ends(shelf: Shelf, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_text('{"say": "kept elsewhere"}\n')
    (shelf.root / "one" / "a.jsonl").symlink_to(elsewhere)
    (shelf.root / "loop").symlink_to(shelf.root)
    assert [one.last_message for one in shelf.scan().sessions] == ["kept elsewhere"]


def test_a_file_that_vanishes_between_two_looks_is_told_for_that_look(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(shelf, "a", *say("a"))
    put(shelf, "b", *say("b"))
    opened = files.opened

    def vanishing(name: str) -> Any:
        if name == str(path):
            path.unlink()
        return opened(name)

    monkeypatch.setattr(files, "opened", vanishing)
    scan = shelf.scan()
    assert [one.id for one in scan.sessions] == ["b"]
    assert [(problem.path, problem.message) for problem in scan.problems] == [(str(path), "it is gone")]
    monkeypatch.undo()
    assert shelf.scan().problems == []


def test_a_file_that_may_not_be_read_is_a_problem_until_it_may(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(shelf, "a", *say("a"))
    put(shelf, "b", *say("b"))
    really = os.open

    def denied(name: Any, *args: Any) -> int:
        if str(name) == str(path):
            raise PermissionError(13, "Permission denied")
        return really(name, *args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", denied)
        for _ in range(2):
            scan = shelf.scan()
            assert [one.id for one in scan.sessions] == ["b"]
            assert [problem.message for problem in scan.problems] == ["it cannot be read: Permission denied"]
    assert {one.id for one in shelf.scan().sessions} == {"a", "b"}


def test_a_folder_that_may_not_be_read_is_a_problem(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    put(shelf, "a", *say("a"), folder="closed")
    put(shelf, "b", *say("b"))
    really = os.scandir

    def denied(folder: str) -> Any:
        if folder.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return really(folder)

    monkeypatch.setattr(os, "scandir", denied)
    scan = shelf.scan()
    assert [one.id for one in scan.sessions] == ["b"]
    assert [Path(problem.path).name for problem in scan.problems] == ["closed"]


def test_a_place_that_does_not_exist_has_no_sessions(tmp_path: Path) -> None:
    scan = Shelf(tmp_path / "nowhere").scan()
    assert (list(scan.sessions), list(scan.problems)) == ([], [])


def test_an_empty_file_is_neither_a_session_nor_a_problem(shelf: Shelf) -> None:
    put(shelf, "a")
    scan = shelf.scan()
    assert (list(scan.sessions), list(scan.problems)) == ([], [])


def test_an_id_never_becomes_a_path(shelf: Shelf) -> None:
    put(shelf, "a", *say("a"))
    (shelf.root.parent / "secret.jsonl").write_text('{"say": "secret"}\n')
    for name in ("../secret", "../../secret", str(shelf.root.parent / "secret"), "", ".", "one/a", "b"):
        assert shelf.reader(name) is None
        assert shelf.files(name) == []


def test_a_session_can_be_read_before_anything_was_listed(shelf: Shelf) -> None:
    path = put(shelf, "a", *say("a"))
    assert shelf.files("a") == [path]
    assert said(shelf.reader("a")) == ["a"]


def test_a_changed_file_says_whose_it_is(shelf: Shelf) -> None:
    assert shelf.touched(shelf.root / "one" / "a.jsonl") == "a"
    assert shelf.touched(shelf.root / "one" / "notes.txt") is None
    assert shelf.touched(shelf.root.parent / "a.jsonl") is None


def test_a_session_that_grows_while_it_is_read_yields_each_event_once(shelf: Shelf) -> None:
    path = put(shelf, "a")
    reader = shelf.reader("a")
    told: list[str] = []
    for number in range(50):
        line = json.dumps({"say": f"é{number}"}, ensure_ascii=False).encode() + b"\n"
        for part in (line[:9], line[9:]):
            with path.open("ab") as file:
                file.write(part)
            told += said(reader)
    assert told == [f"é{number}" for number in range(50)]


def test_a_large_session_comes_in_steps(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    put(shelf, "a", *say(*(f"{number} " + "x" * 1000 for number in range(9000))))
    reader = shelf.reader("a")
    assert reader is not None
    sizes = []
    while updates := reader.read().updates:
        sizes.append(len(updates))
    assert sum(sizes) == 9000
    assert len(sizes) > 2


def test_a_restart_begins_the_translation_anew(shelf: Shelf) -> None:
    path = put(shelf, "a", *say("one"), {"say": "two", "end": True})
    reader = shelf.reader("a")
    assert reader is not None
    step = reader.read()
    assert (len(step.updates), step.status, step.restarted) == (2, "idle", False)
    path.write_text('{"say": "other"}\n')
    step = reader.read()
    assert ([update["content"]["text"] for update in step.updates], step.status) == (["other"], "running")
    assert step.restarted


def test_problems_of_a_kind_are_told_once_for_a_file(shelf: Shelf) -> None:
    path = put(shelf, "a", *([b"junk\n"] * 100), *({"raise": 1} for _ in range(100)), *say("end"))
    reader = LineReader(path, Words)
    step = reader.read()
    assert [update["content"]["text"] for update in step.updates] == ["end"]
    assert [problem.message for problem in step.problems] == [
        "line 1 is no JSON object and is left out",
        "line 101 is not understood: ValueError: never seen before",
    ]
    with path.open("ab") as file:
        file.write(b"junk\n")
    assert reader.read().problems == []
    path.unlink()
    assert [problem.message for problem in reader.read().problems] == ["it is gone"]
    assert reader.read().problems == []
    reader.close()


def rest(path: Path) -> None:
    """Nobody has written to it for a while."""
    then = time.time() - 60
    os.utime(path, (then, then))


def test_a_last_record_without_a_newline_is_told_once_when_nobody_writes(shelf: Shelf) -> None:
    path = put(shelf, "a", *say("one"))
    with path.open("ab") as file:
        file.write(b'{"say": "two"}')
    reader = shelf.reader("a")
    assert said(reader) == ["one"]  # more may follow
    rest(path)
    assert said(reader) == ["two"]
    assert said(reader) == []
    for more, told in ((b"\n", []), (b'{"say": "three"}\n', ["three"]), (b'{"say": "four"}', [])):
        with path.open("ab") as file:
            file.write(more)
        assert said(reader) == told
    rest(path)
    assert said(shelf.reader("a")) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("half", [b'{"say": "tw', b"[1]", b"no JSON", b"  "])
def test_a_last_line_that_is_no_whole_record_waits_for_its_rest(shelf: Shelf, half: bytes) -> None:
    path = put(shelf, "a", *say("one"))
    with path.open("ab") as file:
        file.write(half)
    rest(path)
    reader = shelf.reader("a")
    assert said(reader) == ["one"]
    assert reader is not None
    assert list(reader.read().problems) == []
    with path.open("ab") as file:
        file.write(b'o"}\n')
    assert said(reader) == (["two"] if half.startswith(b'{"say') else [])


def test_words_after_a_last_record_that_was_told_are_a_line_of_junk_and_cost_nothing_else(shelf: Shelf) -> None:
    path = put(shelf, "a", *say("one"))
    with path.open("ab") as file:
        file.write(b'{"say": "two"}')
    rest(path)
    reader = shelf.reader("a")
    assert said(reader) == ["one", "two"]
    with path.open("ab") as file:
        file.write(b'{"say": "three"}\n{"say": "four"}\n')
    assert said(reader) == ["four"]
