"""What `--allow` grants: the one file and the one command, as real agents tell of them, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilothouse.app.probing.client import COMMAND, FILE, WORD, find_strays, fits, is_the_command
from pilothouse.app.probing.report import Mask

PLACE = Path("/tmp/probe")
PATH = str(PLACE / FILE)


@pytest.mark.parametrize(
    "words",
    [
        [f"/bin/bash -lc '{COMMAND}'"],
        ["echo", WORD],
        [COMMAND],
        [f"echo '{WORD}'"],
        ["sh", "-c", COMMAND],
        ["/bin/bash", "-lc", f" {COMMAND} "],
    ],
)
def test_the_command_is_known_in_every_dress(words: list[str]) -> None:
    assert is_the_command(words)


@pytest.mark.parametrize(
    "words",
    [
        [f"{COMMAND}; rm -rf ~"],
        [f"{COMMAND} # {WORD}"],
        [f"bash -c '{COMMAND}' x"],
        [f"echo\n{WORD}"],
        [f"echo `id` {WORD}"],
        ["sh", "-c", f"{COMMAND} > x"],
        ["./sh", "-c", COMMAND],
        ["/tmp/sh", "-c", COMMAND],
        ["sh", "-x", COMMAND],
        ["echo", WORD, WORD],
        [f"echo '{WORD}"],
        [],
    ],
)
def test_what_only_looks_like_the_command_is_another(words: list[str]) -> None:
    assert not is_the_command(words)


@pytest.mark.parametrize(
    "tool",
    [
        {"rawInput": {"file_path": PATH, "content": "hello"}},
        {"rawInput": {"path": FILE, "file_text": "hello", "command": "write"}},
        {"content": [{"type": "diff", "path": PATH, "newText": "hello"}], "locations": [{"path": PATH}]},
        {"rawInput": {"changes": {PATH: {"add": {"content": "hello"}}}}},
        {"rawInput": {"command": COMMAND, "description": "Say it"}},
        {"rawInput": {"command": ["/bin/bash", "-lc", COMMAND], "cwd": str(PLACE)}},
    ],
)
def test_the_one_thing_is_granted(tool: dict[str, Any]) -> None:
    assert fits(PLACE, tool)
    assert find_strays(PLACE, tool) == []


@pytest.mark.parametrize(
    "tool",
    [
        {},
        None,
        {"title": f"Write {FILE}"},
        {"rawInput": {"file_path": f"/home/me/{FILE}"}},
        {"rawInput": {"file_path": f"{PLACE}/../{FILE}"}},
        {"rawInput": {"file_path": f"~/{FILE}"}},
        {"rawInput": {"file_path": PATH, "also": "/etc/passwd"}},
        {"rawInput": {"file_path": PATH, "command": "rm -rf /"}},
        {"rawInput": {"changes": {PATH: {}, "/home/me/.bashrc": {}}}},
        {"rawInput": {"command": f"{COMMAND} && id"}},
        {"rawInput": {"command": COMMAND, "path": "/etc/passwd"}},
        {"rawInput": {"cmd": [COMMAND, {"x": 1}]}},
    ],
)
def test_what_is_more_or_elsewhere_is_not(tool: Any) -> None:
    assert not fits(PLACE, tool)


def test_a_file_of_that_name_elsewhere_is_named() -> None:
    assert find_strays(PLACE, {"locations": [{"path": PATH}, {"path": f"/etc/{FILE}"}]}) == [f"/etc/{FILE}"]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("api_key=abcdefgh", "api_key=…"),
        ('{"token": "abcdefgh"}', '{"token": "…"}'),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic …"),
        ("see https://me:hunter22@example.com/", "see https://…@example.com/"),
        ("ghp_abcdefghijklmnop1234", "…"),
        ("AIzaSyA1234567890abcdefg", "…"),
        ("the value is hunter2hunter2", "the value is …"),
        ("usage: tokens 15, skill-building sky-high", "usage: tokens 15, skill-building sky-high"),
    ],
)
def test_secrets_are_masked_and_other_words_are_not(text: str, masked: str) -> None:
    mask = Mask({"MY_PASSWORD": "hunter2hunter2", "TOKEN": "x", "PATH": "usage"})
    assert mask(text) == masked
    assert mask(masked) == masked
