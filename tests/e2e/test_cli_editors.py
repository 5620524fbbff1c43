"""`pilothouse setup`: what editors are told, merged into their own files, and taken out again."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli

PROGRAM = [sys.executable, "-P", "-m", "pilothouse.cli"]

SETTINGS = """// Zed settings
{
  "theme": "One Dark", // dark
  "agent_servers": {
    /* mine */
    "Mine": {"command": "mine", "args": [],},
  },
}
"""


class Desk(Cli):
    """A command line with a home directory of its own, and no home of Pilothouse but the usual one."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.user = directory / "user"
        self.user.mkdir()
        self.environment["HOME"] = str(self.user)
        for name in ("PILOTHOUSE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            self.environment.pop(name, None)
        self.zed = self.user / ".config" / "zed" / "settings.json"
        self.jetbrains = self.user / ".jetbrains" / "acp.json"

    def has(self, text: str, mode: int = 0o644) -> None:
        self.zed.parent.mkdir(parents=True, exist_ok=True)
        self.zed.write_text(text)
        self.zed.chmod(mode)

    def json(self, *args: object) -> Any:
        return json.loads(self("setup", *args, "--json").stdout)

    @property
    def copies(self) -> list[Path]:
        return sorted(self.zed.parent.glob("*.bak"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def entry(*more: str, **rest: Any) -> dict[str, Any]:
    return {"type": "custom", "command": PROGRAM[0], "args": [*PROGRAM[1:], "acp", *more], **rest}


# -- printing -----------------------------------------------------------------------------------------------------


def test_the_entry_is_printed_and_two_lines_say_what_to_do_next(desk: Desk) -> None:
    done = desk("setup", "zed")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"agent_servers": {"Pilothouse": entry()}}
    said = done.stderr.strip().splitlines()
    assert "~/.config/zed/settings.json; --write merges it" in said[0]
    assert len(said) == 3
    assert not desk.zed.parent.exists()


def test_jetbrains_has_its_own_file_and_no_kinds_of_entries(desk: Desk) -> None:
    told = desk.json("jetbrains")
    (pilothouse,) = told["entries"]
    assert told["file"] == str(desk.jetbrains)
    assert (pilothouse["name"], pilothouse["state"]) == ("Pilothouse", "absent")
    assert "type" not in pilothouse["entry"]
    assert len(told["next"]) == 2


def test_single_agents_get_entries_of_their_own(desk: Desk) -> None:
    told = desk.json("zed", "-a", "demo", "--agent", "claude", "-a", "demo")
    assert {one["name"]: one["entry"] for one in told["entries"]} == {
        "Pilothouse": entry(),
        "Pilothouse (demo)": entry("-a", "demo"),
        "Pilothouse (claude)": entry("-a", "claude"),
    }
    unknown = desk("setup", "zed", "-a", "nobody")
    assert unknown.returncode == 2
    assert "no agent 'nobody' is known" in unknown.stderr


def test_another_home_goes_into_the_entry(desk: Desk) -> None:
    desk.environment["PILOTHOUSE_HOME"] = str(desk.home)
    (told,) = desk.json("zed")["entries"]
    assert told["entry"]["env"] == {"PILOTHOUSE_HOME": str(desk.home)}


def test_the_entry_starts_this_program_wherever_an_editor_is(desk: Desk) -> None:
    """A project's own modules are not imported, whatever they are called."""
    for name in ("click.py", "pilothouse.py", "msgspec.py"):
        (desk.project / name).write_text("raise SystemExit('the project was imported')\n")
    (told,) = entries_told(desk)
    command = [told["entry"]["command"], *told["entry"]["args"], "--standalone", "-a", "demo"]
    asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    done = subprocess.run(
        command,
        cwd=desk.project,
        env={"HOME": str(desk.user), "PATH": os.defpath},
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1


def entries_told(desk: Desk) -> list[dict[str, Any]]:
    """Asked for from elsewhere: the project is not fit to run Python in."""
    done = subprocess.run(
        desk.command("setup", "zed", "--json"), cwd=desk.user, env=desk.environment, capture_output=True, check=True
    )
    entries: list[dict[str, Any]] = json.loads(done.stdout)["entries"]
    return entries


@pytest.mark.parametrize(("editor", "words"), [("neovim", "acp_providers = {"), ("emacs", "(acp-make-client")])
def test_code_is_printed_and_never_written(desk: Desk, editor: str, words: str) -> None:
    done = desk("setup", editor, "-a", "demo")
    assert done.returncode == 0
    assert words in done.stdout
    assert len(done.stderr.splitlines()) == 2
    refused = desk("setup", editor, "-a", "demo", "--write")
    assert refused.returncode == 2
    assert refused.stdout == done.stdout
    assert "configured by code, which is not edited" in refused.stderr
    told = desk.json(editor)
    assert [one["language"] for one in told["snippets"]] == (["lua"] * 3 if editor == "neovim" else ["elisp"])
    assert "--file is for Zed" in desk("setup", editor, "--file", "x").stderr
    failed = desk("setup", editor, "--write", "--json")
    assert (failed.returncode, "do it by hand" in json.loads(failed.stdout)["problem"]) == (2, True)
    assert list(desk.user.iterdir()) == []


@pytest.mark.parametrize(("editor", "name"), [("neovim", "pilothouse_demo"), ("emacs", "pilothouse-demo")])
def test_what_was_never_written_is_not_taken_out_but_named(desk: Desk, editor: str, name: str) -> None:
    done = desk("setup", editor, "-a", "demo", "--remove")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is taken out of them" in done.stdout
    assert name in done.stdout
    told = desk.json(editor, "-a", "demo", "--remove")
    assert (told["changed"], name in [one["name"] for one in told["entries"]]) == (False, True)


def test_what_is_refused_is_told_as_json_too(desk: Desk) -> None:
    desk.has("{")
    for more in (("--write",), ("--remove",), ("-a", "nobody")):
        done = desk("setup", "zed", *more, "--json")
        assert done.returncode == 2
        told = json.loads(done.stdout)
        assert (told["editor"], told["changed"]) == ("zed", False)
        assert told["problem"] in done.stderr


def test_the_port_that_was_chosen_goes_into_the_entry(desk: Desk) -> None:
    desk.environment |= {"PILOTHOUSE_PORT": "7800", "PILOTHOUSE_HOME": str(desk.project / "hub")}
    (one,) = desk.json("zed")["entries"]
    assert one["entry"]["env"] == {"PILOTHOUSE_HOME": str(desk.project / "hub"), "PILOTHOUSE_PORT": "7800"}


@pytest.mark.parametrize("options", [("--write", "--remove"), ("--print", "--write"), ("--force",)])
def test_options_that_contradict_each_other_are_refused(desk: Desk, options: tuple[str, ...]) -> None:
    assert desk("setup", "zed", *options).returncode == 2


# -- writing ------------------------------------------------------------------------------------------------------


def test_an_entry_is_merged_and_everything_else_is_kept(desk: Desk) -> None:
    desk.has(SETTINGS, 0o640)
    done = desk("setup", "zed", "--write")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Pilothouse: added\n"
    text = desk.zed.read_text()
    head, tail = SETTINGS.split('"agent_servers": {')
    assert text.startswith(head + '"agent_servers": {\n    "Pilothouse": {\n      "type": "custom",')
    assert text.endswith("}," + tail)
    (copy,) = desk.copies
    assert copy.read_text() == SETTINGS
    assert {stat.S_IMODE(file.stat().st_mode) for file in (copy, desk.zed)} == {0o640}
    assert {file.name for file in desk.zed.parent.iterdir()} == {"settings.json", copy.name}


def test_what_is_there_already_is_not_written_again(desk: Desk) -> None:
    desk.has(SETTINGS)
    desk("setup", "zed", "--write")
    before = desk.zed.stat()
    again = desk("setup", "zed", "--write")
    assert again.stdout == "Pilothouse: already there\n"
    assert (desk.zed.stat().st_ino, desk.zed.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert len(desk.copies) == 1
    assert "is in ~/.config/zed/settings.json already" in desk("setup", "zed").stderr


def test_taking_it_out_gives_the_file_back_as_it_was(desk: Desk) -> None:
    desk.has(SETTINGS)
    desk("setup", "zed", "--write", "-a", "demo")
    one = desk("setup", "zed", "--remove", "-a", "demo")
    assert one.stdout == "Pilothouse (demo): removed\n"
    assert '"Pilothouse": {' in desk.zed.read_text()
    rest = desk("setup", "zed", "--remove")
    assert rest.stdout == "Pilothouse: removed\n"
    assert desk.zed.read_text() == SETTINGS
    nothing = desk.json("zed", "--remove")
    assert [one["state"] for one in nothing["entries"]] == ["not there"]
    assert (nothing["changed"], nothing["backup"]) == (False, None)
    assert len(desk.copies) == 3


def test_a_file_that_is_not_there_is_made_for_its_owner_only(desk: Desk) -> None:
    told = desk.json("jetbrains", "--write")
    assert (told["changed"], told["backup"]) == (True, None)
    assert json.loads(desk.jetbrains.read_text())["agent_servers"].keys() == {"Pilothouse"}
    assert stat.S_IMODE(desk.jetbrains.stat().st_mode) == 0o600
    assert desk("setup", "jetbrains", "--remove").returncode == 0
    assert desk.jetbrains.read_text() == "{}\n"
    assert desk("setup", "zed", "--remove").stdout == "Pilothouse: not there\n"
    assert not desk.zed.exists()


def test_a_link_stays_a_link_and_its_file_is_changed(desk: Desk) -> None:
    dotfiles = desk.user / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "zed.json").write_text(SETTINGS)
    desk.zed.parent.mkdir(parents=True)
    desk.zed.symlink_to("../../dotfiles/zed.json")
    assert desk("setup", "zed", "--write").returncode == 0
    assert desk.zed.readlink() == Path("../../dotfiles/zed.json")
    assert '"Pilothouse"' in (dotfiles / "zed.json").read_text()
    assert [copy.read_text() for copy in desk.copies] == [SETTINGS]
    assert list(dotfiles.iterdir()) == [dotfiles / "zed.json"]


def test_an_entry_that_differs_is_replaced_only_by_force(desk: Desk) -> None:
    old = {"type": "custom", "command": "/old/pilothouse", "args": ["acp"], "env": {"API_KEY": "secret"}}
    text = json.dumps({"agent_servers": {"Pilothouse": old}})
    desk.has(text)
    refused = desk("setup", "zed", "--write")
    assert refused.returncode == 2
    assert '-    "command": "/old/pilothouse"' in refused.stderr
    assert f'+    "command": "{PROGRAM[0]}"' in refused.stderr
    assert "API_KEY" in refused.stderr
    assert "secret" not in refused.stderr
    assert "--force replaces it" in refused.stderr
    assert (desk.zed.read_text(), desk.copies) == (text, [])
    assert '-    "command": "/old/pilothouse"' in desk("setup", "zed").stderr
    forced = desk("setup", "zed", "--write", "--force")
    assert forced.stdout == "Pilothouse: replaced\n"
    assert json.loads(desk.zed.read_text()) == {"agent_servers": {"Pilothouse": entry()}}
    assert [copy.read_text() for copy in desk.copies] == [text]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('{\n  "theme": "x"\n  "agent_servers": {}\n}', "settings.json:3: column 3", "expected `,` or `}`"),
        ('{"agent_servers": []}', "settings.json:1: column 19", "`agent_servers` should be an object"),
        ("[]", "settings.json:1: column 1", "the document should be an object"),
    ],
)
def test_a_broken_file_is_named_and_left_alone(desk: Desk, text: str, place: str, words: str) -> None:
    desk.has(text)
    for options in (("--write",), ("--write", "--force"), ("--remove",)):
        done = desk("setup", "zed", *options)
        assert done.returncode == 2
        assert place in done.stderr
        assert words in done.stderr
    assert (desk.zed.read_text(), desk.copies) == (text, [])
    shown = desk("setup", "zed")
    assert shown.returncode == 0
    assert words in shown.stderr
    assert json.loads(shown.stdout)["agent_servers"]


def test_a_file_that_nobody_may_write_is_left_alone_by_everybody(desk: Desk) -> None:
    desk.has("{}\n", mode=0o444)
    done = desk("setup", "zed", "--write")
    assert done.returncode == 2
    assert "is read-only" in done.stderr
    assert desk.zed.read_text() == "{}\n"
    assert desk.copies == []


def test_a_file_elsewhere_can_be_named(desk: Desk) -> None:
    file = desk.project / "other.json"
    assert desk("setup", "jetbrains", "--write", "--file", "other.json").returncode == 0
    assert "Pilothouse" in json.loads(file.read_text())["agent_servers"]
    assert not desk.jetbrains.exists()
    file.write_bytes(b"\xff{}")
    assert "is not in UTF-8" in desk("setup", "jetbrains", "--write", "--file", file).stderr
    assert "is no file" in desk("setup", "jetbrains", "--write", "--file", desk.project).stderr


# -- other commands -----------------------------------------------------------------------------------------------


def test_agents_do_not_take_us_over_from_an_editor(desk: Desk) -> None:
    desk.has(SETTINGS)
    desk("setup", "zed", "--write", "-a", "demo")
    done = desk("agents", "import", desk.zed, "--dry-run")
    assert "would add mine" in done.stdout
    assert "passed over Pilothouse: it is Pilothouse itself" in done.stderr
    assert "passed over Pilothouse (demo)" in done.stderr


def test_doctor_tells_what_editors_run(desk: Desk) -> None:
    def told() -> list[tuple[str, str]]:
        findings = json.loads(desk("doctor", "--json").stdout)
        return [(one["state"], one["text"]) for one in findings if one["what"] == "editor"]

    assert told() == []
    desk.has(SETTINGS)
    ((state, text),) = told()
    assert (state, "no entry for Pilothouse; `pilothouse setup zed`" in text) == ("note", True)
    desk("setup", "zed", "--write")
    assert told() == [("ok", "Zed, ~/.config/zed/settings.json: 'Pilothouse' runs this program")]
    desk.has('{"agent_servers": {"P": {"command": "/gone/pilothouse", "args": ["acp"]}}}')
    assert told()[0][0] == "problem"
    assert "'P' runs '/gone/pilothouse', which is not there" in told()[0][1]
    other = desk.project / "pilothouse"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    desk.has(json.dumps({"agent_servers": {"P": {"command": str(other), "args": ["acp"]}}}))
    assert told() == [("note", f"Zed, ~/.config/zed/settings.json: 'P' runs another one: {other} acp")]
    desk.has("{")
    assert "settings.json:1: column 2" in told()[0][1]
