"""A file of lines that somebody else writes: whatever becomes of it, each whole line is told once and nothing waits."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from pilothouse.adapters.discovery.lines import Lines, Look


def texts(look: Look) -> list[bytes]:
    return [line.data for line in look.lines]


def all_of(lines: Lines) -> list[bytes]:
    found: list[bytes] = []
    while more := texts(lines.read()):
        found += more
    return found


def test_a_file_is_told_to_its_end_and_then_only_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n")
    lines = Lines(path)
    assert texts(lines.read()) == [b"one", b"two"]
    assert lines.read() == Look()
    with path.open("ab") as file:
        file.write(b"three\n")
    look = lines.read()
    assert texts(look) == [b"three"]
    assert look.lines[0].number == 3


def test_a_line_is_told_when_it_is_whole_wherever_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = '{"say": "Grüße — 漢字 🚢"}\n{"next": 1}\n'.encode()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        lines = Lines(path)
        first = all_of(lines)
        with path.open("ab") as file:
            file.write(whole[cut:])
        assert first + all_of(lines) == whole.splitlines()


def test_a_file_that_grows_by_any_pieces_yields_each_line_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.touch()
    chance = random.Random(8)
    wanted = [os.urandom(chance.randrange(60)).hex().encode() for _ in range(300)]
    data = b"".join(line + b"\n" for line in wanted)
    lines, told, at = Lines(path, step=64), [], 0
    while at < len(data):
        size = chance.randrange(1, 200)
        with path.open("ab") as file:
            file.write(data[at : at + size])
        at += size
        told += all_of(lines)
    assert told == [line for line in wanted if line]


def test_a_file_that_was_cut_is_told_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n")
    lines = Lines(path)
    all_of(lines)
    path.write_bytes(b"new\n")
    look = lines.read()
    assert look.restarted
    assert texts(look) == [b"new"]
    assert not lines.read().restarted


def test_a_file_that_was_written_anew_and_is_longer_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n")
    lines = Lines(path)
    all_of(lines)
    path.write_bytes(b"ONE\nTWO\nTHREE\n")
    look = lines.read()
    assert look.restarted
    assert texts(look) == [b"ONE", b"TWO", b"THREE"]


def test_another_file_in_its_place_is_told_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n")
    lines = Lines(path)
    all_of(lines)
    path.rename(tmp_path / "a.jsonl.1")
    path.write_bytes(b"after the rotation\nmore\n")
    look = lines.read()
    assert look.restarted
    assert texts(look) == [b"after the rotation", b"more"]


def test_a_copy_that_goes_on_in_the_files_place_is_no_restart(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n")
    lines = Lines(path)
    all_of(lines)
    copy = tmp_path / "copy"
    copy.write_bytes(b"one\ntwo\nthree\n")
    copy.replace(path)
    look = lines.read()
    assert not look.restarted
    assert texts(look) == [b"three"]


def test_a_line_beyond_the_limit_is_left_out_and_told_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n" + b"x" * 1000 + b"\nthree\n")
    lines = Lines(path, limit=100, step=64)
    problems: list[str] = []
    told: list[bytes] = []
    while True:
        look = lines.read()
        problems += look.problems
        if not look.lines:
            break
        told += texts(look)
    assert told == [b"one", b"three"]
    assert problems == ["line 2 is longer than 100 bytes and is left out"]


def test_a_line_without_end_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 28)  # zeros, which takes no room on the disk
    lines = Lines(path, limit=1 << 20, step=1 << 20)
    look = lines.read()
    assert (texts(look), len(look.problems)) == ([], 1)
    assert len(lines._rest) == 0
    assert lines.read() == Look()


def test_a_file_that_goes_away_is_a_problem_and_its_return_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")
    lines = Lines(path)
    all_of(lines)
    path.unlink()
    assert lines.read().problems == ["it is gone"]
    path.write_bytes(b"again\n")
    look = lines.read()
    assert (look.restarted, texts(look)) == (True, [b"again"])


def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        assert Lines(tmp_path / name).read().problems == ["it is no regular file"]
    assert Lines(Path("/dev/zero")).read().problems == ["it is no regular file"]
    assert Lines(tmp_path).read().problems == ["it is no regular file"]


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\n")

    def denied(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    lines = Lines(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", denied)
        assert lines.read().problems == ["it cannot be read: Permission denied"]
    assert texts(lines.read()) == [b"one"]
