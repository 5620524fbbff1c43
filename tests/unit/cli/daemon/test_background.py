"""The program's own log: each record is one line, whatever is in it."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from pilothouse.cli.daemon.background import JsonLines, Plain


def record(message: str, *args: Any, **extra: Any) -> logging.LogRecord:
    return logging.getLogger("pilothouse.x").makeRecord(
        "pilothouse.x", logging.WARNING, __file__, 1, message, args, None, extra=extra
    )


def test_json_has_the_fields_of_a_record_and_of_an_audit() -> None:
    line = json.loads(JsonLines().format(record("%s\nforged", "a", audit={"audit": "login", "by": "cli"})))
    assert (line["level"], line["logger"], line["message"]) == ("warning", "pilothouse.x", "login")
    assert line["audit"] == {"audit": "login", "by": "cli"}
    assert line["time"].endswith("+00:00")


def test_json_stays_one_line_with_a_trace() -> None:
    try:
        raise ValueError("no\ngood")
    except ValueError:
        broken = record("it failed")
        broken.exc_info = sys.exc_info()
    text = JsonLines().format(broken)
    assert "\n" not in text
    assert "ValueError: no\ngood" in json.loads(text)["trace"]


def test_what_is_logged_for_people_cannot_forge_a_line_or_steer_the_terminal() -> None:
    text = Plain().format(record("%s", "a\nERROR forged \x1b[2J"))
    assert "\n" not in text
    assert "\x1b" not in text
    assert "a\\nERROR forged" in text
