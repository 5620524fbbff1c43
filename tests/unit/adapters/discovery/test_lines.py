"""Files of lines that another program writes, read incrementally, and the stored index of them."""

from __future__ import annotations

import json
import os
import random
import stat
import threading
from pathlib import Path

import pytest

from pilothouse.adapters.discovery import lines as index
from pilothouse.adapters.discovery.claude import ClaudeStore
from pilothouse.adapters.discovery.gemini import GeminiStore
from pilothouse.adapters.discovery.lines import FEW, Lines, Look

from .test_files import Shelf, put, say

# -- lines ------------------------------------------------------------------------------------------------------------


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


# -- index ------------------------------------------------------------------------------------------------------------


def filled(tmp_path: Path, count: int = FEW) -> Path:
    root = tmp_path / "root"
    (root / "one").mkdir(parents=True)
    for number in range(count):
        put(Shelf(root), f"s{number:03}", *say(f"title {number}", f"last {number}"))
    return root


def opened(root: Path, tmp_path: Path) -> Shelf:
    """The store of a new process."""
    shelf = Shelf(root)
    shelf.keep(tmp_path / "home" / "discovery")
    return shelf


def kept_file(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "home" / "discovery").iterdir()
    return found


def test_a_new_process_looks_into_no_file_that_has_not_changed(tmp_path: Path) -> None:
    root = filled(tmp_path)
    first = opened(root, tmp_path)
    found = first.scan()
    assert len(first.described) == FEW
    later = opened(root, tmp_path)
    assert later.scan() == found
    assert later.described == []


def test_a_new_process_looks_into_what_was_changed_replaced_or_added_meanwhile(tmp_path: Path) -> None:
    root = filled(tmp_path)
    opened(root, tmp_path).scan()
    put(Shelf(root), "s000", *say("title 0", "said since"))
    replaced = root / "one" / "s001.jsonl"
    before = replaced.stat()
    other = replaced.with_name("other")
    other.write_bytes(replaced.read_bytes().replace(b"last 1", b"LAST 1"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))  # as large and as old, and yet another file
    other.replace(replaced)
    put(Shelf(root), "new", *say("new"))
    later = opened(root, tmp_path)
    words = {one.id: one.last_message for one in later.scan().sessions}
    assert sorted(later.described) == ["new", "s000", "s001"]
    assert (words["s000"], words["s001"], words["new"]) == ("said since", "LAST 1", "new")


def test_what_is_known_of_a_file_that_has_gone_is_not_kept(tmp_path: Path) -> None:
    root = filled(tmp_path)
    opened(root, tmp_path).scan()
    assert b"title 7" in kept_file(tmp_path).read_bytes()
    (root / "one" / "s007.jsonl").unlink()
    later = opened(root, tmp_path)
    assert "s007" not in {one.id for one in later.scan().sessions}
    assert b"title 7" not in kept_file(tmp_path).read_bytes()


def test_only_its_owner_may_read_the_index(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        opened(filled(tmp_path), tmp_path).scan()
    finally:
        os.umask(before)
    path = kept_file(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for place in (path.parent, path.parent.parent):  # and the home, where a look is the first that needs one
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def spoilt(data: bytes) -> dict[str, bytes]:
    middle = len(data) // 2
    return {
        "empty": b"",
        "cut": data[:-1],
        "one bit": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "junk": b"\xff" * 1000,
        "json": json.dumps({"format": 1}).encode(),
    }


@pytest.mark.parametrize("how", spoilt(b"12"))
def test_an_index_that_is_spoilt_is_made_anew(tmp_path: Path, how: str) -> None:
    root = filled(tmp_path)
    first = opened(root, tmp_path)
    found = first.scan()
    path = kept_file(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(spoilt(whole)[how])
    later = opened(root, tmp_path)
    assert later.scan() == found
    assert len(later.described) == FEW
    assert path.read_bytes() == whole


@pytest.mark.parametrize(("name", "value"), [("FORMAT", 99), ("__version__", "99.0")])
def test_an_index_of_another_version_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    root = filled(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(index, name, value)
        opened(root, tmp_path).scan()
    later = opened(root, tmp_path)
    assert len(later.scan().sessions) == len(later.described) == FEW


@pytest.mark.parametrize("what", ["file", "folder", "fifo", "link"])
def test_an_index_that_cannot_be_kept_keeps_no_session_from_being_found(tmp_path: Path, what: str) -> None:
    """A file where its directory should be; a directory, a pipe, or a link to itself where it should be."""
    root = filled(tmp_path)
    opened(root, tmp_path).scan()
    path = kept_file(tmp_path)
    path.unlink()
    if what == "file":
        path.parent.rmdir()
        path.parent.write_text("in the way")
    elif what == "folder":
        (path / "more").mkdir(parents=True)
    elif what == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(path.name)
    for _ in range(2):
        scan = opened(root, tmp_path).scan()
        assert (len(scan.sessions), list(scan.problems)) == (FEW, [])
    assert what not in ("file", "folder") or not [*path.parent.glob(".draft-*")]


def test_a_large_index_keeps_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = filled(tmp_path)
    for number, path in enumerate(sorted((root / "one").iterdir())):
        os.utime(path, (number, number))
    monkeypatch.setattr(index, "LARGEST", 1024 + 1500)
    opened(root, tmp_path).scan()
    assert kept_file(tmp_path).stat().st_size <= 1024 + 1500
    later = opened(root, tmp_path)
    assert len(later.scan().sessions) == FEW
    again = set(later.described)
    assert 0 < len(again) < FEW
    assert again == {f"s{number:03}" for number in range(len(again))}  # the oldest


def test_names_that_are_no_text_are_found_each_time(tmp_path: Path) -> None:
    root = filled(tmp_path)
    (root / "one" / os.fsdecode(b"bad\xff.jsonl")).write_bytes(b'{"say":"odd"}\n')
    opened(root, tmp_path).scan()
    later = opened(root, tmp_path)
    assert "odd" in {one.last_message for one in later.scan().sessions}
    assert len(later.described) == 1


def test_what_could_not_be_opened_is_not_kept_as_if_it_were_known(tmp_path: Path) -> None:
    root = filled(tmp_path)
    path = root / "one" / "s003.jsonl"
    real = path.with_name("real")
    path.rename(real)
    path.symlink_to("nowhere")
    assert len(opened(root, tmp_path).scan().sessions) == FEW - 1
    path.unlink()
    real.rename(path)
    assert len(opened(root, tmp_path).scan().sessions) == FEW


def test_a_few_changes_are_not_worth_writing_it_again(tmp_path: Path) -> None:
    root = filled(tmp_path, 2 * FEW)
    opened(root, tmp_path).scan()
    before = kept_file(tmp_path).stat().st_ino
    shelf = opened(root, tmp_path)
    for number in range(FEW):
        put(shelf, f"s{number:03}", *say("changed"))
        shelf.scan()
        assert (kept_file(tmp_path).stat().st_ino == before) is (number < FEW - 1)


def test_processes_that_keep_it_at_once_leave_a_whole_one(tmp_path: Path) -> None:
    root = filled(tmp_path)
    stores = [opened(root, tmp_path) for _ in range(8)]
    threads = [threading.Thread(target=store.scan) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    later = opened(root, tmp_path)
    assert len(later.scan().sessions) == FEW
    assert later.described == []


def test_a_draft_that_a_killed_process_left_is_taken_away(tmp_path: Path) -> None:
    root = filled(tmp_path)
    folder = tmp_path / "home" / "discovery"
    folder.mkdir(parents=True)
    (old, new) = (folder / ".draft-old", folder / ".draft-new")
    for draft in (old, new):
        draft.write_bytes(b"x")
    os.utime(old, (1, 1))
    opened(root, tmp_path).scan()
    assert (old.exists(), new.exists()) == (False, True)


def test_stores_of_other_places_have_an_index_of_their_own(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    paths = set()
    for name in ("a", "b"):
        root = filled(tmp_path / name)
        shelf = Shelf(root)
        shelf.keep(keep)
        shelf.scan()
        paths |= {*keep.iterdir()}
    assert len(paths) == 2


def test_a_session_whose_directory_is_written_down_later_gets_it(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "p" / "chats"
    chats.mkdir(parents=True)
    for number in range(FEW):
        meta = {"sessionId": f"id-{number}", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}
        prompt = {"id": "m", "type": "user", "content": "Hello"}
        lines = [json.dumps(meta), json.dumps(prompt)]
        (chats / f"session-2026-{number:03}.jsonl").write_text("\n".join(lines) + "\n")

    def listed() -> set[str]:
        store = GeminiStore(tmp_path / ".gemini")
        store.keep(tmp_path / "keep")
        return {one.project_path for one in store.scan().sessions}

    assert listed() == {""}
    (chats.parent / ".project_root").write_text("/work/p")
    assert listed() == {"/work/p"}


def test_the_built_in_stores_take_part(tmp_path: Path) -> None:
    home = tmp_path / "claude"
    folder = home / "projects" / "-w"
    folder.mkdir(parents=True)
    for number in range(FEW):
        name = f"00000000-0000-4000-8000-{number:012}"
        record = {"type": "user", "cwd": "/w", "sessionId": name, "message": {"role": "user", "content": "Hello"}}
        (folder / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
    store = ClaudeStore(home)
    store.keep(tmp_path / "keep")
    found = store.scan()
    assert len(found.sessions) == FEW
    later = ClaudeStore(home)
    later.keep(tmp_path / "keep")
    later.describe = None  # type: ignore[assignment]  # nobody may be asked
    assert later.scan() == found
