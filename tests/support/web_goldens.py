"""Sessions by which the page's fold is held to the hub's: `tests/golden/web/*.json`, events and what they fold to.

    python -m tests.support.web_goldens              fold the stored events and write the snapshots anew
    python -m tests.support.web_goldens --check      fail when a snapshot is not what the events give, naming the file
    python -m tests.support.web_goldens --record     let the scripted agent make the events anew, too

A file is a list of cases, one line for each event, so that a difference can be read. Ids, times and paths are made the
same for every recording.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.hub.hub import Hub
from pilothouse.hub.session.session import HubSession
from pilothouse.model.events import Event, decode_event, encode_event
from pilothouse.model.session import Session, fold

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "tests" / "golden" / "web"
Events = list[dict[str, Any]]


# -- files -------------------------------------------------------------------------------------------------------------


def snapshot_of(events: Events) -> dict[str, Any]:
    """What the hub folds from them, as JSON has it."""
    session: Session = fold(decode_event(event) for event in events)
    return json.loads(json.dumps(session.snapshot()))


def text_of(cases: list[Events]) -> str:
    return "[\n" + ",\n".join(map(_case, cases)) + "\n]\n"


def _case(events: Events) -> str:
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    snapshot = snapshot_of(events)
    items = ",\n".join(json.dumps(item, ensure_ascii=False) for item in snapshot.pop("items"))
    rest = json.dumps(snapshot, ensure_ascii=False)
    return f'{{"events": [\n{lines}\n],\n"items": [\n{items}\n],\n"rest": {rest}}}'


def cases_in(path: Path) -> list[Events]:
    return [case["events"] for case in json.loads(path.read_text(encoding="utf-8"))]


def stale() -> list[str]:
    """The names of the files that are not what their events give."""
    return [path.name for path in sorted(GOLDENS.glob("*.json")) if path.read_text("utf-8") != text_of(cases_in(path))]


# -- the scripted agent ------------------------------------------------------------------------------------------------


class Play(NamedTuple):
    """Prompts, one after the other; how approvals are decided, in turn; whether the last turn is cancelled."""

    prompts: tuple[str, ...]
    decisions: tuple[bool, ...] = (True,)
    cancel: bool = False


PLAYS = {
    "tour": Play(("tour",)),
    "talk": Play(("markdown", "think", "image", "echo Grüße 😀")),
    "plan": Play(("plan", "mode plan", "mode code")),
    "permission": Play(("permission", "permission"), (True, False)),
    "edit": Play(("edit notes.md Hello", "edit notes.md Good bye", "read notes.md"), (True, False, True)),
    "command": Play(("bash printf 'one\\ntwo\\n'; exit 3",)),
    "question": Play(("question",)),
    "tools": Play(("tools",)),
    "sub_agent": Play(("subagent",)),
    "settings": Play(("usage", "title Harbour", "notice warning Low tide", "notice warning Low tide", "compact")),
    "flood": Play(("flood 40",)),
    "cancel": Play(("wait",), cancel=True),
    "crash": Play(("crash 3", "echo back again")),
    "error": Play(("error", "refuse", "limit", "noise")),
}


async def record_plays() -> dict[str, list[Events]]:
    from .servers import agent_specs

    played = {}
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory) / "home"
        home.mkdir()
        async with Hub(home=home, agents=agent_specs(home), cancel_deadline=5.0) as hub:
            for name, play in PLAYS.items():
                workspace = Path(directory) / "app"
                workspace.mkdir(exist_ok=True)
                session = await hub.start_session("demo", workspace)
                async with asyncio.timeout(60):
                    events = await _play(session, play)
                played[name] = [_plain(events, directory, session.id)]
    return played


async def _play(session: HubSession, play: Play) -> list[Event]:
    events: list[Event] = []
    watching = asyncio.create_task(_watch(session, play, events))
    for prompt in play.prompts:
        try:
            await session.prompt(prompt)
        except Exception as exc:  # a turn that fails is told in the events
            print(f"  {prompt}: {exc}", file=sys.stderr)
    last = await session.committed()
    while not events or events[-1].seq < last:
        await asyncio.sleep(0.01)
    watching.cancel()
    return events


async def _watch(session: HubSession, play: Play, events: list[Event]) -> None:
    decided = 0
    async for event in session.events():
        events.append(event)
        if event.type == "approval:requested":
            approved = play.decisions[decided % len(play.decisions)]
            decided += 1
            reason = None if approved else "not now"
            await session.decide(event.request_id, approved=approved, by="phone", reason=reason)  # type: ignore[attr-defined]
        elif event.type == "interaction:question":
            session.answer(event.question_id, {"name": "Ada"}, by="phone")  # type: ignore[attr-defined]
        elif event.type == "message:start" and play.cancel and event.role == "assistant":  # type: ignore[attr-defined]
            await session.cancel()


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}(?:Z|\+00:00)")
_ID = re.compile(r"\b([a-z]{2,8})_([0-9a-zA-Z]{10,40})\b")


def _plain(events: list[Event], directory: str, session_id: str) -> Events:
    """The events without what is new in every recording."""
    known: dict[str, str] = {session_id: "ses_1"}

    def name(found: re.Match[str]) -> str:
        return known.setdefault(found[0], f"{found[1]}_{len(known) + 1}")

    plain = []
    for event in events:
        time = f"2026-03-01T10:{event.seq // 600:02}:{event.seq % 600 / 10:06.3f}Z"
        text = encode_event(event).decode().replace(directory, "/work").replace(session_id, "ses_1")
        plain.append(json.loads(_ID.sub(name, _TIME.sub(time, text))))
    return plain


# -- events that no sane agent sends -----------------------------------------------------------------------------------


def record_odd(count: int = 8) -> list[Events]:
    """Events of every type in any order, with ids used again, numbers missing and values of any kind."""
    from tests.unit.model.session.test_fold_properties import BY_KIND, CUSTOM_NAMES, customs, numbered

    kinds = [*BY_KIND, *map(customs, CUSTOM_NAMES)]
    found: list[Events] = []

    @settings(max_examples=40, database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.permutations(kinds).flatmap(lambda order: st.tuples(*order)).map(list))
    def collect(events: list[Event]) -> None:
        if len(found) % 3:
            numbered(events)
        plain = [json.loads(encode_event(event)) for event in events]
        if not any(abs(number) > 2**53 for number in _integers(plain)):  # a page has no larger ones
            found.append(plain)

    collect()
    return found[-count:]


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _integers(inner)


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Bash", {"command": "  npm test\n echo done "}),
    ("shell", {"command": ["bash", "-lc", "echo 'a b'; ls"], "args": ["", 3, True, None]}),
    ("functions.exec", {"cmd": "x" * 120 + "😀"}),
    ("run_shell_command", {"command": "ls", "script": "pwd", "commandLine": "ls"}),
    ("developer__shell", {"command": "make"}),
    ("mcp__files__read", {"path": "/a"}),
    ("other__read", {"path": "/a"}),
    ("read_file", {"path": "/src/a.py", "limit": 3}),
    ("Read", {"uri": "file:///src/a.py"}),
    ("Read", {"uri": "https://example.org/a"}),
    ("str_replace_editor", {"file_path": "/src/a.py", "old_string": "a"}),
    ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n*** Add File:  b c.py \n*** End Patch"}),
    ("apply_patch", {"changes": {"a.py": {}, "b.py": {}}}),
    ("MultiEdit", {"edits": [{"path": "a"}, {"path": "b"}, "c", 3], "paths": ["d"]}),
    ("Glob", {"pattern": None, "glob": "**/*.py"}),
    ("grep", {"pattern": "def \\w+"}),
    ("Task", {"prompt": "Look " + "around " * 20}),
    ("web_search", {"q": "tides"}),
    ("WebFetch", {"url": 7}),
    ("LS", {}),
    ("Überprüfe", {"path": "/a"}),
    ("constructor", {"path": "/a"}),
    ("__proto__", {"__proto__": {"path": "/a"}}),
)


def tool_names() -> list[Events]:
    """One call of each, for the line that describes it."""
    head = {"sessionId": "ses_1", "timestamp": "2026-03-01T10:00:00.000Z", "type": "tool:executing"}
    risk = {"riskLevel": "low", "requiresApproval": False}
    return [
        [
            {**head, "seq": seq, "toolCallId": f"c{seq}", "name": name, "input": given, **risk}
            for seq, (name, given) in enumerate(CALLS, 1)
        ]
    ]


def elsewhere() -> list[Events]:
    """Turns of the hub, one with a mark that says nothing, and two that another program did; the last goes on."""

    def began(turn: str, **more: Any) -> dict[str, Any]:
        return {
            "type": "custom",
            "namespace": "pilothouse",
            "eventName": "turn_started",
            "data": {"turnId": turn, **more},
        }

    def prompt(turn: str) -> dict[str, Any]:
        text = [{"type": "text", "text": f"prompt of {turn}"}]
        return {"type": "message:complete", "messageId": turn, "role": "user", "content": text, "stopReason": ""}

    ended = {"type": "custom", "namespace": "pilothouse", "eventName": "turn_ended", "data": {"stopReason": "end_turn"}}
    marks: list[dict[str, Any]] = [{}, {"elsewhere": True}, {"elsewhere": "yes"}, {"elsewhere": True}]
    turns = [[began(f"t{n}", **mark), prompt(f"t{n}"), ended] for n, mark in enumerate(marks)]
    head = {"sessionId": "ses_1", "timestamp": "2026-03-01T10:00:00.000Z"}
    events = [event for turn in turns for event in turn][:-1]
    return [[{**head, "seq": seq, **event} for seq, event in enumerate(events, 1)]]


# -- the program -------------------------------------------------------------------------------------------------------


def record() -> None:
    made = {"odd": record_odd(), "tool_names": tool_names(), "elsewhere": elsewhere()}
    for name, cases in {**asyncio.run(record_plays()), **made}.items():
        (GOLDENS / f"{name}.json").write_text(text_of(cases), encoding="utf-8")


def write() -> None:
    for path in sorted(GOLDENS.glob("*.json")):
        path.write_text(text_of(cases_in(path)), encoding="utf-8")


def main(argv: list[str]) -> int:
    if "--check" in argv:
        found = stale()
        for name in found:
            print(f"tests/golden/web/{name} is stale: run `python -m tests.support.web_goldens`", file=sys.stderr)
        return int(bool(found))
    action: Callable[[], None] = record if "--record" in argv else write
    action()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
