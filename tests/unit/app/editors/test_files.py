"""Settings files of editors: where they are, which program they start, and how a file is replaced."""

from __future__ import annotations

import stat
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from pilothouse.app.editors import files
from pilothouse.app.editors.files import entry_environment, is_passing, is_this_program, running_program, settings_files
from pilothouse.config import ConfigError

NOW = datetime(2026, 1, 2, 3, 4, 5)


# -- places -----------------------------------------------------------------------------------------------------------


def test_zed_is_where_the_platform_has_it(tmp_path: Path) -> None:
    usual = tmp_path / ".config" / "zed" / "settings.json"
    xdg = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert settings_files("zed", tmp_path, {}, "linux")[0] == usual
    assert settings_files("zed", tmp_path, xdg, "linux")[0] == tmp_path / "xdg" / "zed" / "settings.json"
    assert settings_files("zed", tmp_path, xdg, "darwin") == [usual]
    assert settings_files("zed", tmp_path, {"XDG_CONFIG_HOME": "relative"}, "linux")[0] == usual


def test_zed_of_flatpak_is_found_where_it_is_the_only_one(tmp_path: Path) -> None:
    usual, flatpak = settings_files("zed", tmp_path, {}, "linux")
    flatpak.parent.mkdir(parents=True)
    assert settings_files("zed", tmp_path, {}, "linux") == [flatpak, usual]
    usual.parent.mkdir(parents=True)
    assert settings_files("zed", tmp_path, {}, "linux") == [usual, flatpak]
    flatpak.write_text("{}")
    assert settings_files("zed", tmp_path, {}, "linux") == [flatpak, usual]
    usual.write_text("{}")
    assert settings_files("zed", tmp_path, {}, "linux") == [usual, flatpak]


def test_jetbrains_has_one_file(tmp_path: Path) -> None:
    assert settings_files("jetbrains", tmp_path, {}, "darwin") == [tmp_path / ".jetbrains" / "acp.json"]


def test_the_program_is_the_script_as_it_was_called_links_included(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "venv" / "pilothouse"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    link = tmp_path / "pilothouse"
    link.symlink_to(script)
    python = (str(tmp_path / "python"), "-P", "-m", "pilothouse.cli")
    assert running_program(str(link), python[0]) == python, "what cannot be run is no program"
    script.chmod(0o755)
    assert running_program(str(link), python[0]) == (str(link),)
    monkeypatch.chdir(tmp_path)
    assert running_program("venv/pilothouse", python[0]) == (str(script),)
    assert running_program("/x/pilothouse/cli/__main__.py", "python") == python


def test_this_program_is_known_by_all_its_ways(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
        (place / "pilothouse").write_text("#!/bin/sh\n")
        (place / "pilothouse").chmod(0o755)
        (place / "python").symlink_to("/usr/bin/env")
    (tmp_path / "pilothouse").symlink_to(places[0] / "pilothouse")
    module = ["-P", "-m", "pilothouse.cli", "acp"]
    scripts = [str(place / "pilothouse") for place in places]
    pythons = [str(place / "python") for place in places]
    for argv0 in (scripts[0], str(tmp_path / "pilothouse"), "/x/__main__.py"):
        known = partial(is_this_program, argv0=argv0, executable=pythons[0])
        assert known([scripts[0], "acp", "-a", "x"])
        assert known([str(tmp_path / "pilothouse"), "acp"])
        assert known([pythons[0], *module])
        assert not known([scripts[1], "acp"])
        assert not known([pythons[1], *module])
        assert not known([scripts[0], "serve"])
        assert not known([pythons[0], "acp"])


def test_a_program_in_a_cache_is_known_as_such() -> None:
    assert is_passing(("/home/me/.cache/uv/archive-v0/x/bin/pilothouse",))
    assert is_passing(("/Users/me/Library/Caches/pipx/x/bin/python", "-m"))
    assert not is_passing(("/home/me/.local/bin/pilothouse",))


def test_only_an_unusual_home_goes_into_an_entry(tmp_path: Path) -> None:
    assert entry_environment(tmp_path / ".local" / "share" / "pilothouse", tmp_path, {}, "linux") == {}
    mac = tmp_path / "Library" / "Application Support" / "pilothouse"
    assert entry_environment(mac, tmp_path, {}, "darwin") == {}
    assert entry_environment(mac, tmp_path, {}, "linux") == {"PILOTHOUSE_HOME": str(mac)}
    chosen = {"PILOTHOUSE_HOME": str(mac), "PILOTHOUSE_PORT": "7800"}
    assert entry_environment(mac, tmp_path, {"PILOTHOUSE_PORT": " 7800 "}, "linux") == chosen


def test_the_home_that_is_found_without_a_word_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from pilothouse.config import home_directory

    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert entry_environment(home_directory({}), Path.home(), {}) == {}


# -- files ------------------------------------------------------------------------------------------------------------


def test_copies_never_replace_each_other(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("0")
    names = []
    for number in range(3):
        copy = files.replace(file, str(number), str(number + 1), NOW)
        assert copy is not None
        assert copy.read_text() == str(number)
        names.append(copy.name)
    stem = "settings.json.20260102-030405"
    assert names == [f"{stem}.bak", f"{stem}-2.bak", f"{stem}-3.bak"]
    assert file.read_text() == "3"


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("theirs")
    with pytest.raises(ConfigError, match="changed by somebody else"):
        files.replace(file, "as it was read", "ours", NOW)
    with pytest.raises(ConfigError, match="changed by somebody else"):
        files.replace(file, None, "ours", NOW)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("settings.json", "theirs")]


def test_a_link_to_nothing_makes_the_file_it_leads_to(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "dotfiles" / "real.json")
    assert files.read(link) is None
    assert files.replace(link, None, "{}", NOW) is None
    assert link.is_symlink()
    assert stat.S_IMODE((tmp_path / "dotfiles" / "real.json").stat().st_mode) == 0o600


def test_what_cannot_be_written_is_said_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        files.replace(tmp_path / "file" / "settings.json", None, "{}", NOW)
    with pytest.raises(ConfigError, match="not in UTF-8"):
        files.replace(tmp_path / "new.json", None, "\udcff", NOW)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_line_ends_and_marks_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b"\xef\xbb\xbf{\r\n}\r\n")
    text = files.read(file)
    assert text == "\ufeff{\r\n}\r\n"
    files.replace(file, text, text + "// x\r\n", NOW)
    assert file.read_bytes() == b"\xef\xbb\xbf{\r\n}\r\n// x\r\n"
