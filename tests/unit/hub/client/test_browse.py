from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilothouse.hub.client import safe_dirs as folders
from pilothouse.hub.client.browse import WorkspaceFiles
from pilothouse.hub.client.refusals import AlreadyThere, BadPath, OutsideWorkspace, TooLarge
from pilothouse.hub.client.safe_dirs import Folder

LIMIT = 1000


@pytest.fixture
def workspace(tmp_path: Path) -> WorkspaceFiles:
    (tmp_path / "root").mkdir()
    return WorkspaceFiles(str(tmp_path / "root"), file_limit=LIMIT)


async def test_an_open_file_is_the_one_that_was_opened(workspace: WorkspaceFiles) -> None:
    (workspace.root / "a").write_text("before")
    file = await workspace.open("a")
    await workspace.put("a", b"after", overwrite=True)
    assert file.read(0, 100) == b"before"
    assert file.read(2, 2) == b"fo"
    file.close()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read(0, 1)


async def test_a_new_file_needs_no_hard_links(workspace: WorkspaceFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr(folders.os, "link", refuse)
    await workspace.put("a", b"one")
    assert (workspace.root / "a").read_bytes() == b"one"
    with Folder.open(workspace.root) as folder, pytest.raises(FileExistsError):
        folder.name_new("a", "a")
    with pytest.raises(AlreadyThere):
        await workspace.put("a", b"two")
    assert [one.name for one in workspace.root.iterdir()] == ["a"]


async def test_a_link_inside_is_written_through_and_its_target_keeps_its_name(workspace: WorkspaceFiles) -> None:
    (workspace.root / "target").write_text("before")
    (workspace.root / "link").symlink_to("target")
    entry, is_new = await workspace.put("link", b"after", overwrite=True)
    assert (entry.path, is_new) == ("target", False)
    assert (workspace.root / "link").is_symlink()
    assert (workspace.root / "target").read_text() == "after"


async def test_a_time_that_no_calendar_has_is_listed_all_the_same(workspace: WorkspaceFiles) -> None:
    (workspace.root / "a").touch()
    os.utime(workspace.root / "a", (-(2**40), -(2**40)))
    (entry,) = (await workspace.list()).entries
    assert entry.modified.endswith("Z")


async def test_what_is_too_large_or_too_deep_is_refused(workspace: WorkspaceFiles) -> None:
    with pytest.raises(TooLarge):
        await workspace.put("a", b"x" * (LIMIT + 1))
    deep = "/".join("d" for _ in range(200))
    with pytest.raises(BadPath):
        await workspace.put(f"{deep}/a", b"")
    (workspace.root / deep).mkdir(parents=True)
    with pytest.raises(BadPath):
        await workspace.list(deep)


async def test_the_hubs_own_directory_is_closed_unless_the_session_is_inside_of_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    (home / "token").write_text("secret")
    (home / "project" / "a").write_text("a")
    for root in (tmp_path, home):
        around = WorkspaceFiles(str(root), home=home, file_limit=LIMIT)
        for path in (str(home / "token"), str(home), str(home / "project" / "a")):
            with pytest.raises(OutsideWorkspace):
                await around.open(path)
            with pytest.raises(OutsideWorkspace):
                await around.list(path)
    inside = WorkspaceFiles(str(home / "project"), home=home, file_limit=LIMIT)
    assert [entry.name for entry in (await inside.list()).entries] == ["a"]
    with pytest.raises(OutsideWorkspace):
        await inside.open("../token")
