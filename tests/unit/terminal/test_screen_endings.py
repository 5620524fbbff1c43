"""The line at the end of a turn."""

from __future__ import annotations

import io

from rich.console import Console

from pilothouse.dialects.acp import Translator
from pilothouse.terminal.screen import Screen

NOW = "2026-01-01T00:00:00.000Z"


def test_tokens_are_those_of_the_turn_and_not_of_the_session() -> None:
    printed = io.StringIO()
    screen = Screen(Console(file=printed, width=100), live=False)
    events = Translator("s", workspace="/work")
    found = events.started(NOW, agent="demo", result={})
    for number, (given, made) in enumerate(((1000, 200), (30, 4))):
        found += events.prompt("go", NOW, turn_id=str(number))
        usage = {"inputTokens": given, "outputTokens": made, "totalTokens": given + made}
        found += events.result({"stopReason": "end_turn", "usage": usage}, NOW)
    for seq, event in enumerate(found, 1):
        event.seq = seq
        screen.show(event)
    ends = [line.strip() for line in printed.getvalue().splitlines() if "Done" in line]
    assert [end.rpartition(" · ")[2] for end in ends] == ["1,200 tokens", "34 tokens"]
