"""What is shown of a file that would be overwritten, and what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilothouse.agents.claude_bridge.actions import Ask
from pilothouse.agents.claude_bridge.diffs import WHOLE_FILE, Originals
from tests.unit.agents.claude_bridge.driving import in_memory
from tests.unit.agents.claude_bridge.lines import ask, assistant, init, use
from tests.unit.agents.claude_bridge.playing import play


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (tmp_path / "secret").write_text("hush\n")
    return place


def test_a_file_of_the_workspace_is_shown_by_either_kind_of_path(work: Path) -> None:
    (work / "a").write_text("old ä\n")
    look = Originals(str(work))
    assert (look(f"{work}/a"), look("a"), look("none")) == ("old ä\n", "old ä\n", None)


def test_a_workspace_may_be_a_link(work: Path) -> None:
    (work / "a").write_text("old\n")
    link = work.parent / "link"
    link.symlink_to(work)
    for root in (work, link):
        assert [Originals(str(root))(f"{place}/a") for place in (work, link)] == ["old\n", "old\n"]


def test_nothing_outside_of_the_workspace_is_shown(work: Path) -> None:
    (work / "out").symlink_to(work.parent / "secret")
    look = Originals(str(work))
    for path in (f"{work.parent}/secret", "../secret", "out", f"{work}/../secret", "/etc/passwd"):
        assert look(path) is None


def test_what_is_no_short_text_is_not_shown(work: Path) -> None:
    (work / "long").write_bytes(b"x" * (WHOLE_FILE + 1))
    (work / "binary").write_bytes(b"\x00\xff\xfe")
    os.mkfifo(work / "pipe")
    look = Originals(str(work))
    for path in ("long", "binary", "pipe", ".", "a\0b", "\ud800"):
        assert look(path) is None


def test_who_is_asked_about_a_write_sees_what_it_would_replace() -> None:
    given = {"file_path": "/work/a", "content": "new\n"}
    lines = (init(), assistant(use("Write", **given)), ask("Write", given=given))
    played = play("go", *lines, look={"/work/a": "old\n"}.get)
    (asked,) = played.of(Ask)
    for shown in (played.calls()["t1"][0]["content"], asked.params["toolCall"]["content"]):
        assert shown == [{"type": "diff", "path": "/work/a", "oldText": "old\n", "newText": "new\n"}]


async def test_a_session_looks_at_its_workspace(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "cli-home"))
    (work / "a").write_text("old\n")
    async with in_memory(tmp_path) as (talk, _):
        await talk.prompt(f"write {work}/a")
        assert talk.watcher.asked[0]["call"]["content"][0]["oldText"] == "old\n"
