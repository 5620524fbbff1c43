"""Completing the path of a directory: what is offered, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilothouse.model.errors import ValidationError
from pilothouse.server.errors import HttpError
from pilothouse.server.routes import directories
from pilothouse.server.routes.directories import complete


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("alpha", "Alps", "beta", ".hidden", "beta/inner"):
        (tmp_path / name).mkdir()
    (tmp_path / "alpha" / ".git").mkdir()
    (tmp_path / "almanac.txt").write_text("no directory")
    return tmp_path


def names(path: Path | str, **options: int) -> list[str]:
    return [entry.name for entry in complete(str(path), **options).entries]


def test_a_directory_with_a_slash_is_listed(tree: Path) -> None:
    found = complete(f"{tree}/")
    assert [(entry.name, entry.is_repository) for entry in found.entries] == [
        ("alpha", True),
        ("Alps", False),
        ("beta", False),
    ]
    assert (found.path, found.truncated) == (str(tree), False)
    assert found.entries[0].path == str(tree / "alpha")


def test_a_last_part_may_be_incomplete_in_either_case(tree: Path) -> None:
    assert names(tree / "al") == ["alpha", "Alps"]
    assert names(tree / "BET") == ["beta"]
    assert names(tree / "beta") == ["beta"]
    assert names(f"{tree}/beta/") == ["inner"]
    assert names(tree / "nothing") == []


def test_hidden_ones_are_offered_to_who_asks_by_a_dot(tree: Path) -> None:
    assert names(f"{tree}/.h") == [".hidden"]
    assert names(f"{tree}/beta/..") == ["alpha", "Alps", "beta"]


def test_a_tilde_is_the_home_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tree))
    for path in ("", "~", "~/"):
        assert names(path) == ["alpha", "Alps", "beta"]
    assert names("~/b") == ["beta"]


def test_more_than_is_wanted_is_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = complete(f"{tree}/", 1)
    assert ([entry.name for entry in found.entries], found.truncated) == (["alpha"], True)
    monkeypatch.setattr(directories, "LOOKED_AT", 2)
    assert complete(f"{tree}/").truncated


def test_links_are_directories_if_they_lead_to_one(tree: Path) -> None:
    (tree / "gone").symlink_to(tree / "nowhere")
    (tree / "there").symlink_to(tree / "beta")
    (tree / "round").symlink_to(tree / "round")
    assert names(f"{tree}/") == ["alpha", "Alps", "beta", "there"]


def test_names_that_are_no_text_are_passed_over(tree: Path) -> None:
    os.mkdir(os.fsencode(tree) + b"/\xff\xfe")
    assert names(f"{tree}/") == ["alpha", "Alps", "beta"]


@pytest.mark.parametrize("path", ["relative", "./here", "~nobody/x", "a\0b", "/\ud800"])
def test_a_path_that_can_be_none_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match=r"path|name") as refused:
        complete(path)
    assert refused.value.path == "path"


def test_what_is_not_there_is_said(tree: Path) -> None:
    for path in (tree / "nowhere" / "x", tree / "almanac.txt" / "x", f"{tree}/{'x' * 300}/"):
        with pytest.raises(HttpError) as refused:
            complete(str(path))
        assert refused.value.status == 404


def test_what_cannot_be_read_is_refused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", forbidden)
    with pytest.raises(HttpError) as refused:
        complete(f"{tree}/")
    assert (refused.value.status, refused.value.record.code) == (403, "unreadable")
