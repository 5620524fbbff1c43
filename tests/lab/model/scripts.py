"""What the model says next. The script is in the prompt; tool results since then say how far it has come.

    @@fake [STEP, …]      JSON on one line, in the newest user text that holds a marker

A step is one answer of the model: a text, an operation, or an object with any of `redacted` (thinking
that nobody may read), `think`, `text`, `calls` (operations),
`chunk` (characters to a delta), `delay` (seconds between deltas), `hang` (seconds before the first byte), `error`
(`status`, `message`: an HTTP error instead) and `drop` (frames after which the connection breaks). Operations are in
`operations.py`. `{scripts}` in a text is the number of user texts with a script that the agent sent along, so that a
session says how much of it was kept; `{model}` is the model that was asked for.

Nothing is kept between requests, so a session that is resumed goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from .operations import Call, Tool, call_of, placeholder

MARK = "@@fake"


@dataclass
class Step:
    redacted: str = ""
    think: str = ""
    text: str = ""
    calls: list[Any] = field(default_factory=list)
    chunk: int = 12
    delay: float = 0.0
    hang: float = 0.0
    error: dict[str, Any] | None = None
    drop: int | None = None


@dataclass
class Heard:
    """What a request says, whichever interface it came by. `items` are (`user` or `result`, text)."""

    model: str = "fake"
    system: str = ""
    items: list[tuple[str, str]] = field(default_factory=list)
    tools: dict[str, Tool] = field(default_factory=dict)
    schema: Any = None


@dataclass
class Reply:
    """One answer of the model. `key` is the same for the same request and script."""

    step: Step
    calls: list[Call]
    key: str

    @property
    def text(self) -> str:
        return self.step.text

    def deltas(self, text: str) -> list[str]:
        return pieces(text, self.step.chunk)


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def find_script(text: str) -> list[Step] | None:
    """The last script in a text."""
    found, at = None, 0
    while (at := text.find(MARK, at)) >= 0:
        at += len(MARK)
        start = at + len(text[at:]) - len(text[at:].lstrip())
        try:
            value, at = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            continue
        found = [_step(item) for item in (value if isinstance(value, list) else [value])]
    return found


def _step(item: Any) -> Step:
    if isinstance(item, str):
        return Step(text=item)
    return Step(calls=[item]) if "op" in item else Step(**item)


def answer(heard: Heard) -> Reply:
    """What is said to a request. One that offers no tools wants a title or a summary and gets a short text."""
    if not heard.tools:
        text = json.dumps(placeholder(heard.schema, "")) if heard.schema else "A short title"
        return Reply(Step(text=text), [], _key(heard, text))
    at, script = _newest(heard.items)
    if script is None:
        last = next((text for kind, text in reversed(heard.items) if kind == "user"), "")
        return Reply(Step(text=f"You said: {last[-200:]}"), [], _key(heard, last))
    told = sum(kind == "user" and MARK in text for kind, text in heard.items)
    done = sum(kind == "result" for kind, _ in heard.items[at:])
    step, calls = _at(script, heard.tools, done)
    step.text = step.text.replace("{scripts}", str(told)).replace("{model}", heard.model)
    key = _key(heard, repr(step))
    named = [call._replace(id=f"{key[:16]}{number:02}") for number, call in enumerate(calls)]
    return Reply(step, named, key)


def _newest(items: list[tuple[str, str]]) -> tuple[int, list[Step] | None]:
    for at in range(len(items) - 1, -1, -1):
        kind, text = items[at]
        script = find_script(text) if kind == "user" else None
        if script is not None:
            return at, script
    return 0, None


def _at(script: list[Step], tools: dict[str, Tool], done: int) -> tuple[Step, list[Call]]:
    """The step that is due after so many tool results, and its calls."""
    for step in script:
        calls = [call for operation in step.calls if (call := call_of(operation, tools)) is not None]
        if step.calls and not calls:
            return Step(text=f"[no tool here for {step.calls}]"), []
        if not calls or done < len(calls):
            return step, calls
        done -= len(calls)
    return Step(text="(end of script)"), []


def _key(heard: Heard, said: str) -> str:
    counted = f"{said}|{len(heard.items)}"
    return hashlib.sha256(counted.encode()).hexdigest()
