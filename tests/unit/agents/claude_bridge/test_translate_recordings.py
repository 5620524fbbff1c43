"""Recordings of the real CLI, judged by a checker that knows nothing of the translator.

Those of the repository always; PILOTHOUSE_TRACES names a directory with more of them, in its folder `claude`.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.agents.claude_bridge.actions import Ask, Ended, Update
from tests.support.claude_checker import Report, check
from tests.unit.agents.claude_bridge.playing import Play, entries_of

GOLDEN = Path(__file__).parents[3] / "golden" / "claude"
TRACES = os.environ.get("PILOTHOUSE_TRACES", "")
FOLDERS = [GOLDEN, *([Path(TRACES) / "claude"] if TRACES else [])]
Json = dict[str, Any]


def told(play: Play) -> list[Json]:
    """What a client was told, in the words of the checker."""
    found: list[Json] = []
    for action in play.actions:
        if isinstance(action, Update):
            found.append({"update": action.update})
        elif isinstance(action, Ask):
            found.append({"ask": {"method": action.method, "params": action.params}})
        elif isinstance(action, Ended):
            failure = msgspec.to_builtins(action.failure) if action.failure is not None else None
            found.append({"ended": {"response": action.response, "failure": failure}, "prompts": action.prompts})
    return found


def judged(path: Path) -> Report:
    entries = entries_of(path)
    return check(entries, told(Play(entries)))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: "ours" if folder == GOLDEN else "traces")
def test_every_recording_becomes_what_its_lines_say(folder: Path, tell: Callable[[str], None]) -> None:
    counts: Counter[str] = Counter()
    problems = []
    paths = sorted(path for path in folder.glob("*.jsonl") if not path.stem.endswith(".acp"))
    for path in paths:
        report = judged(path)
        counts += report.counts
        problems += [f"{path.stem}: {problem}" for problem in report.problems]
    assert not problems, "\n".join(problems)
    assert counts["calls"] > 20
    assert counts["results of parallel calls"] > 0
    tell(f"{len(paths)} recordings of Claude Code: {', '.join(f'{count:,} {what}' for what, count in counts.items())}")


# -- the checker itself: what it must not let pass --


def heard() -> tuple[list[Json], list[Json]]:
    entries = entries_of(GOLDEN / "parallel_tools.jsonl")
    return entries, copy.deepcopy(told(Play(entries)))


def drop_an_end(found: list[Json]) -> None:
    found.remove(next(one for one in found if one.get("update", {}).get("status") == "completed"))


def end_twice(found: list[Json]) -> None:
    found.append(next(one for one in found if one.get("update", {}).get("status") == "completed"))


def announce_twice(found: list[Json]) -> None:
    found.insert(0, next(one for one in found if one.get("update", {}).get("sessionUpdate") == "tool_call"))


def say_it_again(found: list[Json]) -> None:
    found.append(next(one for one in found if one.get("update", {}).get("sessionUpdate") == "agent_message_chunk"))


def lose_a_piece(found: list[Json]) -> None:
    found.remove(next(one for one in found if one.get("update", {}).get("sessionUpdate") == "agent_message_chunk"))


def empty_the_results(found: list[Json]) -> None:
    for one in found:
        if one.get("update", {}).get("sessionUpdate") == "tool_call_update":
            for name in ("content", "rawOutput", "_meta"):
                one["update"].pop(name, None)


def end_otherwise(found: list[Json]) -> None:
    next(one for one in found if "ended" in one)["ended"]["response"] = {"stopReason": "cancelled"}


def answer_nobody(found: list[Json]) -> None:
    found[:] = [one for one in found if "ended" not in one]


WRONGS = (
    drop_an_end,
    end_twice,
    announce_twice,
    say_it_again,
    lose_a_piece,
    empty_the_results,
    end_otherwise,
    answer_nobody,
)


@pytest.mark.parametrize("wrong", WRONGS, ids=lambda wrong: wrong.__name__)
def test_the_checker_sees_what_is_wrong(wrong: Callable[[list[Json]], None]) -> None:
    entries, found = heard()
    assert check(entries, found).problems == []
    wrong(found)
    assert check(entries, found).problems != []
