"""Where a hub is reached: told whole, believed only as far as nobody else could have written it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from pilothouse.remote.place import (
    LONGEST,
    Place,
    clear_place,
    is_private,
    read_place,
    remove_place,
    socket_path,
    write_place,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return home


def test_what_is_written_is_read_and_only_its_owner_can(home: Path) -> None:
    place = Place(pid=7, socket=str(home / "hub.sock"), url="http://127.0.0.1:1/", started="now")
    write_place(home, place)
    assert read_place(home) == place
    assert stat.S_IMODE((home / "hub.json").stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == ["hub.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1, "socket": "relative.sock"}'])
def test_what_makes_no_sense_is_no_place(home: Path, text: str) -> None:
    assert read_place(home) is None
    (home / "hub.json").write_text(text)
    assert read_place(home) is None


def test_a_socket_elsewhere_is_believed_only_in_a_private_directory(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    write_place(home, Place(pid=1, socket=str(other / "hub.sock")))
    assert read_place(home) is not None
    other.chmod(0o755)
    assert read_place(home) is None
    link = tmp_path / "link"
    other.chmod(0o700)
    link.symlink_to(other)
    write_place(home, Place(pid=1, socket=str(link / "hub.sock")))
    assert read_place(home) is None
    assert not is_private(tmp_path / "missing")


def test_a_home_that_others_can_write_to_says_nothing_that_is_believed(home: Path) -> None:
    write_place(home, Place(pid=os.getpid(), socket=str(home / "hub.sock")))
    assert read_place(home) is not None
    home.chmod(0o777)
    assert read_place(home) is None


def test_a_process_takes_back_only_what_it_said_itself(home: Path) -> None:
    socket = home / "hub.sock"
    socket.touch()
    write_place(home, Place(pid=os.getpid() + 1, socket=str(socket)))
    remove_place(home)
    assert socket.exists()
    write_place(home, Place(pid=os.getpid(), socket=str(socket)))
    remove_place(home)
    assert list(home.iterdir()) == []


def test_what_a_dead_hub_left_is_cleared(home: Path) -> None:
    (home / "hub.sock").touch()
    write_place(home, Place(pid=1, socket=str(home / "hub.sock")))
    clear_place(home)
    assert list(home.iterdir()) == []
    clear_place(home)


def test_a_path_that_is_too_long_leads_to_a_private_directory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert socket_path(home) == home / "hub.sock"
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime) if len(str(runtime)) < LONGEST // 2 else "")
    deep = home / ("d" * 100)
    deep.mkdir()
    path = socket_path(deep)
    try:
        assert path.parent != deep
        assert is_private(path.parent)
        assert len(os.fsencode(path)) <= LONGEST
        path.touch()
        write_place(deep, Place(pid=os.getpid(), socket=str(path)))
        assert json.loads((deep / "hub.json").read_text())["socket"] == str(path)
    finally:
        remove_place(deep)
    assert not path.parent.exists()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b'{"pid": 1, "so',
        b'{"pid":1,"acp":"\xff\xfe"}',
        b'{"pid":1,"acp":"/tmp/x\\u0000y/z"}',
        b"[" * 100_000,
        b"[]",
    ],
    ids=["empty", "half", "no text", "no path", "deep", "a list"],
)
def test_a_damaged_file_says_nothing_and_is_replaced(home: Path, text: bytes) -> None:
    (home / "hub.json").write_bytes(text)
    assert read_place(home) is None
    clear_place(home)
    assert not (home / "hub.json").exists()


def test_directories_for_sockets_whose_names_are_too_long_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * LONGEST)
    long.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr("tempfile.tempdir", str(long))
    path = socket_path(long)
    try:
        assert len(os.fsencode(path.with_name("acp.sock"))) <= LONGEST
        assert is_private(path.parent)
    finally:
        path.parent.rmdir()
