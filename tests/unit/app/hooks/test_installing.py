"""Claude Code's settings on disk: given back to the byte, and never lost."""

from __future__ import annotations

import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.app.hooks import installing as records
from pilothouse.app.hooks.entries import entry
from pilothouse.app.hooks.installing import inspect, install, settings_file, uninstall
from pilothouse.config import ConfigError

from .test_entries import documents

ENTRY = entry(["/opt/pilothouse", "hook"])
NOW = datetime(2026, 11, 16, 12, 0, 0)
ODD = '{ "model":"opus",// mine\r\n  "hooks": { },\n"x": [1,\n2,], }'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "claude" / "settings.json"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_settings_in_a_directory_whose_name_is_no_text_get_the_entry_and_lose_it_again(
    tmp_path: Path, home: Path
) -> None:
    path = written(tmp_path / os.fsdecode(b"caf\xe9") / "settings.json", "{}")
    assert install(path, ENTRY, home, NOW).changed
    assert install(path, ENTRY, home, NOW).changed is False
    assert uninstall(path, home, NOW).changed
    assert path.read_text() == "{}"


@pytest.mark.parametrize(
    "text", [ODD, "", "{}", '{"hooks": {}}', '{"hooks": {"PermissionRequest": []}}', "// none yet\n"]
)
def test_settings_that_nobody_changed_are_given_back_to_the_byte(path: Path, home: Path, text: str) -> None:
    written(path, text).chmod(0o640)
    done = install(path, ENTRY, home, NOW)
    assert done.changed
    assert done.backup is not None
    assert done.backup.read_bytes() == text.encode()
    assert install(path, ENTRY, home, NOW).changed is False
    assert uninstall(path, home, NOW).exact
    assert path.read_bytes() == text.encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["settings.json"]
    assert uninstall(path, home, NOW).changed is False
    assert not (home / "hooks.json").exists()


def test_settings_that_were_not_there_go_again_with_the_directories_made_for_them(path: Path, home: Path) -> None:
    assert install(path, ENTRY, home, NOW).backup is None
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.command for one in inspect(path) or []] == ["/opt/pilothouse hook"]
    assert uninstall(path, home, NOW).exact
    assert not path.parent.exists()


def test_a_directory_that_was_there_or_is_used_meanwhile_stays(path: Path, home: Path) -> None:
    install(path, ENTRY, home, NOW)
    (path.parent / "history").touch()
    uninstall(path, home, NOW)
    assert os.listdir(path.parent) == ["history"]


def test_what_its_user_changed_meanwhile_stays(path: Path, home: Path) -> None:
    written(path, '{"model": "opus"}')
    install(path, ENTRY, home, NOW)
    settings = json.loads(path.read_text())
    settings["theme"] = "dark"
    settings["hooks"]["Stop"] = []
    path.write_text(json.dumps(settings, indent=2))
    done = uninstall(path, home, NOW)
    assert (done.changed, done.exact) == (True, False)
    assert json.loads(path.read_text()) == {"model": "opus", "theme": "dark", "hooks": {"Stop": []}}
    assert done.backup is not None
    assert json.loads(done.backup.read_text()) == settings


def test_new_settings_that_their_user_went_on_with_are_not_removed(path: Path, home: Path) -> None:
    install(path, ENTRY, home, NOW)
    settings = json.loads(path.read_text()) | {"theme": "dark"}
    path.write_text(json.dumps(settings))
    uninstall(path, home, NOW)
    assert json.loads(path.read_text())["theme"] == "dark"
    assert inspect(path) == []


@pytest.mark.parametrize("lost", ["record", "backup", "backup changed"])
def test_without_the_record_or_the_copy_only_what_is_ours_is_taken_out(path: Path, home: Path, lost: str) -> None:
    written(path, '{\n  "model": "opus"\n}\n')
    backup = install(path, ENTRY, home, NOW).backup
    assert backup is not None
    if lost == "record":
        (home / "hooks.json").write_text("rubbish")
    elif lost == "backup":
        backup.unlink()
    else:
        backup.write_text("{}")
    assert not uninstall(path, home, NOW).exact
    assert path.read_text() == '{\n  "model": "opus"\n}\n'


def test_another_program_or_time_takes_the_place_of_the_old_one_and_the_first_text_comes_back(
    path: Path, home: Path
) -> None:
    written(path, ODD)
    install(path, ENTRY, home, NOW)
    assert install(path, entry(["/new/pilothouse", "hook"], 60), home, NOW).changed
    assert [(one.command, one.timeout) for one in inspect(path) or []] == [("/new/pilothouse hook", 60)]
    assert uninstall(path, home, NOW).exact
    assert path.read_bytes() == ODD.encode()
    assert os.listdir(path.parent) == ["settings.json"]


def test_a_link_is_followed_and_stays_a_link(path: Path, home: Path, tmp_path: Path) -> None:
    real = written(tmp_path / "dotfiles" / "claude.json", '{"model": "opus"}')
    path.parent.mkdir()
    path.symlink_to(real)
    install(path, ENTRY, home, NOW)
    assert path.is_symlink()
    assert "pilothouse hook" in real.read_text()
    assert uninstall(path, home, NOW).exact
    assert path.is_symlink()
    assert real.read_text() == '{"model": "opus"}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n"model": opus}', r"settings.json:2: column 10: expected a value"),
        ('{"hooks": {"PermissionRequest": 1}}', r"settings.json:1: column 33: .* should be an array"),
        ("[]", "the document should be an object"),
        ("{", "expected a key"),
        ("\udc80", "not in UTF-8"),
    ],
)
def test_settings_that_cannot_be_read_are_named_by_line_and_left_alone(
    path: Path, home: Path, text: str, words: str
) -> None:
    path.parent.mkdir()
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    for work in (lambda: install(path, ENTRY, home, NOW), lambda: inspect(path), lambda: uninstall(path, home, NOW)):
        with pytest.raises(ConfigError, match=words):
            work()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["settings.json"]


@settings(max_examples=150, deadline=None)
@given(documents() | st.text(max_size=20))
def test_whatever_the_settings_are_they_are_given_back_to_the_byte(text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path, home = written(Path(directory, "settings.json"), text), Path(directory, "home")
        try:
            assert install(path, ENTRY, home, NOW).changed
        except ConfigError:
            assert path.read_bytes() == text.encode()
            return
        after = path.read_bytes()
        assert install(path, ENTRY, home, NOW).changed is False
        assert path.read_bytes() == after
        install(path, entry(["/another/pilothouse", "hook"]), home, NOW)
        assert uninstall(path, home, NOW).exact
        assert path.read_bytes() == text.encode()
        assert sorted(os.listdir(directory)) == ["home", "settings.json"]


def test_an_installation_with_another_home_takes_over_and_leaves_nothing_behind(
    path: Path, home: Path, tmp_path: Path
) -> None:
    written(path, '{\n  "model": "opus"\n}\n')
    install(path, ENTRY, home, NOW)
    other, theirs = tmp_path / "other", entry(["/venv/bin/python", "-P", "-m", "pilothouse.cli", "hook"])
    install(path, theirs, other, NOW)
    assert [one.command for one in inspect(path) or []] == ["/venv/bin/python -P -m pilothouse.cli hook"]
    assert uninstall(path, other, NOW).changed
    assert path.read_text() == '{\n  "model": "opus"\n}\n'  # not with the entry that was there before theirs
    assert uninstall(path, home, NOW).changed is False


def test_many_that_install_at_once_leave_one_entry_and_one_copy(path: Path, home: Path) -> None:
    written(path, ODD)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: install(path, ENTRY, home, NOW), range(16)))
    assert [one.changed for one in done].count(True) == 1
    assert len(inspect(path) or []) == 1
    assert len(os.listdir(path.parent)) == 2
    assert uninstall(path, home, NOW).exact
    assert path.read_bytes() == ODD.encode()


def test_who_holds_the_settings_for_too_long_is_named(path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PATIENCE", 0.0)
    with records.alone(home), pytest.raises(ConfigError, match=r"hooks\.lock: another"):
        install(path, ENTRY, home, NOW)
    assert not path.exists()


def test_places_that_are_no_files_are_named_and_left_alone(path: Path, home: Path, tmp_path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(ConfigError, match="is no file"):
        install(path, ENTRY, home, NOW)
    path.rmdir()
    path.symlink_to(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        install(path, ENTRY, home, NOW)
    with pytest.raises(ConfigError, match="cannot be read"):
        install(written(tmp_path / "file", "{}") / "settings.json", ENTRY, home, NOW)
    assert (tmp_path / "file").read_text() == "{}"


def test_a_link_that_leads_nowhere_is_followed_and_stays(path: Path, home: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(tmp_path / "dotfiles" / "settings.json")
    install(path, ENTRY, home, NOW)
    assert inspect(path)
    assert uninstall(path, home, NOW).exact
    assert path.is_symlink()
    assert not (tmp_path / "dotfiles").exists()


def test_a_home_that_cannot_be_written_to_costs_the_record_only(path: Path, tmp_path: Path) -> None:
    home = written(tmp_path / "home", "a file")
    written(path, '{"model": "opus"}')
    assert install(path, ENTRY, home, NOW).changed
    assert uninstall(path, home, NOW).changed
    assert path.read_text() == '{"model": "opus"}'


def test_scopes_have_their_files(tmp_path: Path) -> None:
    project, user = tmp_path / "p", tmp_path / "u"
    assert settings_file("user", project, user, {}) == user / ".claude/settings.json"
    assert settings_file("user", project, user, {"CLAUDE_CONFIG_DIR": "/c"}) == Path("/c/settings.json")
    assert settings_file("project", project, user, {"CLAUDE_CONFIG_DIR": "/c"}) == project / ".claude/settings.json"
    assert settings_file("local", project, user, {}) == project / ".claude/settings.local.json"


@pytest.mark.parametrize(
    "text",
    [
        '{"hooks": {"PermissionRequest": []}, "a": 1}',
        '{"hooks": {}, "a": 1}',
        '{"hooks": {"Stop": []}, "a": 1}',
        '{"a": 1}',
    ],
)
def test_what_was_empty_before_stays_also_when_its_user_changed_something_else(
    path: Path, home: Path, text: str
) -> None:
    written(path, text)
    install(path, ENTRY, home, NOW)
    install(path, entry(["/another/pilothouse", "hook"]), home, NOW)
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    done = uninstall(path, home, NOW)
    assert json.loads(path.read_text()) == json.loads(text) | {"a": 2}
    assert done.backup is not None
    assert sorted(os.listdir(path.parent)) == ["settings.json", done.backup.name]  # not the copy of the first text


def test_a_copy_that_somebody_has_changed_is_theirs(path: Path, home: Path) -> None:
    written(path, '{"a": 1}')
    backup = install(path, ENTRY, home, NOW).backup
    assert backup is not None
    backup.write_text("mine")
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    uninstall(path, home, NOW)
    assert backup.read_text() == "mine"


@pytest.mark.parametrize("text", ["", " \n", '{"model": "opus"}'])
def test_a_file_is_the_same_by_whichever_link_it_is_reached(path: Path, home: Path, tmp_path: Path, text: str) -> None:
    real = written(tmp_path / "dotfiles" / "claude.json", text)
    path.parent.mkdir()
    path.symlink_to(real)
    for first, second in ((path, real), (real, path)):
        install(first, ENTRY, home, NOW)
        assert uninstall(second, home, NOW).exact
        assert real.read_text() == text
        assert (os.listdir(path.parent), os.listdir(real.parent)) == (["settings.json"], ["claude.json"])


@pytest.mark.parametrize("text", ["", '{"hooks": {}}'])
def test_the_first_text_comes_back_though_two_homes_had_an_entry_after_each_other(
    path: Path, home: Path, tmp_path: Path, text: str
) -> None:
    written(path, text)
    other = tmp_path / "other"
    install(path, entry(["/opt/pilothouse", "hook", "--home", str(home)]), home, NOW)
    install(path, entry(["/opt/pilothouse", "hook", "--home", str(other)]), other, NOW)
    assert uninstall(path, other, NOW).exact
    assert path.read_text() == text
    assert os.listdir(path.parent) == ["settings.json"]
    assert uninstall(path, home, NOW).changed is False
    assert path.read_text() == text


def test_an_empty_file_needs_no_copy_to_be_empty_again(path: Path, home: Path) -> None:
    written(path, "")
    backup = install(path, ENTRY, home, NOW).backup
    assert backup is not None
    backup.unlink()
    assert uninstall(path, home, NOW).exact
    assert path.read_text() == ""


def test_a_record_under_the_name_of_a_link_still_counts(path: Path, home: Path, tmp_path: Path) -> None:
    real = written(tmp_path / "dotfiles" / "claude.json", "")
    path.parent.mkdir()
    path.symlink_to(real)
    install(path, ENTRY, home, NOW)
    kept = home / "hooks.json"
    kept.write_text(kept.read_text().replace(str(real), str(path)))
    assert uninstall(path, home, NOW).exact
    assert not kept.exists()
