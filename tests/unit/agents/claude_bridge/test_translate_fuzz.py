"""Lines that were once right: whatever comes, the translator goes on, and what it sends fits the schema."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from pilothouse.agents.claude_bridge.actions import Ask, Ended, Send, Update
from pilothouse.agents.claude_bridge.translate import Translator
from tests.support.mutation import Mutator
from tests.support.schema_check import FrameChecker
from tests.unit.agents.claude_bridge.playing import SESSION, entries_of

GOLDEN = Path(__file__).parents[3] / "golden" / "claude"
LINES = 100_000
SECONDS = 8.0
"""A slow machine does as many as it can in this time."""
CHECKED = 25
"""One of so many updates is held against the whole schema, which takes a hundred times as long as making it."""


def corpus() -> list[dict[str, Any]]:
    paths = sorted(path for path in GOLDEN.glob("*.jsonl") if not path.stem.endswith(".acp"))
    lines = [entry["msg"] for path in paths for entry in entries_of(path) if entry["dir"] == "a2c"]
    return sorted(lines, key=lambda line: len(str(line)))[: len(lines) * 9 // 10]


def test_a_hundred_thousand_spoilt_lines_break_nothing() -> None:
    mutator = Mutator(corpus(), seed=6)
    checker = FrameChecker("agent")
    end = time.monotonic() + SECONDS
    translator, done, updates = Translator(SESSION), 0, 0
    for done in range(1, LINES + 1):
        if done % 500 == 0:
            translator = Translator(SESSION)
            translator.prompt("go")
        # every other line is JSON, or most would not get past the first look
        for action in translator.read(mutator.structural() if done % 2 else mutator.line()):
            to_builtins(action)
            if isinstance(action, Update):
                updates += 1
                if updates % CHECKED == 0:
                    check(checker, action.update)
            elif isinstance(action, Ask):
                assert all(isinstance(sent, Send) for sent in translator.refuse(action.request_id, "fuzz"))
            elif isinstance(action, Ended):
                translator.prompt("again")
        if done % 100 == 0 and time.monotonic() > end:
            break
    assert done >= 2000
    assert updates > done // 50


def check(checker: FrameChecker, update: dict[str, Any]) -> None:
    params = {"sessionId": SESSION, "update": update}
    checker.sent({"jsonrpc": "2.0", "method": "session/update", "params": params})
