"""Approvals and questions put to a person, one line of answer each. Silence, an end of input and doubt never allow."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from rich.text import Text

from ..model.events import ApprovalRequestedEvent, UserQuestionEvent
from .drawing import risk_text
from .forms import Field, fields_of
from .keyboard import Keyboard
from .screen import Screen
from .texts import title_of

__all__ = ["Verdict", "ask_approval", "ask_question"]


KEYS = (
    ("a", "allow this once"),
    ("d WHY", "deny it; the agent is told why"),
    ("A", "allow the same from now on in this session"),
    ("P", "allow the same from now on in this project, in all sessions"),
)


class Verdict(Struct, frozen=True, kw_only=True):
    """What a person decided."""

    approved: bool
    option_id: str | None = None
    reason: str | None = None
    remember: Literal["once", "session", "project"] = "once"


async def ask_approval(screen: Screen, keyboard: Keyboard, event: ApprovalRequestedEvent) -> Verdict:
    """Show what is asked for and read the decision. A line that says nothing known is asked again."""
    screen.decisions.approval(event, whole=True)
    keyboard.forget()
    while True:
        line = await keyboard.line(screen.ask(_prompt(event)))
        if line is None:
            screen.say("")
            return Verdict(approved=False, reason="The user left without an answer.")
        if line.strip() == "?":
            _explain(screen, event)
            continue
        verdict = read_verdict(line, event)
        if verdict is not None:
            return verdict
        screen.say("  a allows, d denies (d and a reason tells the agent why), A always, ? explains", "dim")


def read_verdict(line: str, event: ApprovalRequestedEvent) -> Verdict | None:
    """The decision that a line stands for; None when it stands for none."""
    word, _, rest = line.strip().partition(" ")
    reason = rest.strip() or None
    if word in ("a", "y", "allow", "yes") and reason is None:
        return Verdict(approved=True)
    if word.lower() in ("d", "n", "deny", "no"):
        return Verdict(approved=False, reason=reason)
    if word in ("A", "always") and reason is None:
        return Verdict(approved=True, remember="session")
    if word == "P" and reason is None:
        return Verdict(approved=True, remember="project")
    if word.isdecimal() and 1 <= int(word) <= len(event.options):
        option = event.options[int(word) - 1]
        return Verdict(approved=option.kind.startswith("allow"), option_id=option.option_id, reason=reason)
    return None


def _prompt(event: ApprovalRequestedEvent) -> Text:
    text = Text("  ")
    for key, word, style in (
        ("a", "llow", "green"),
        ("d", "eny", "red"),
        ("A", "lways in this session", "green"),
        ("?", "", "cyan"),
    ):
        text.append("[", style="dim").append(key, style=f"bold {style}").append(f"]{word}  ", style="dim")
    return text.append("›", style="bold")


def _explain(screen: Screen, event: ApprovalRequestedEvent) -> None:
    screen.indented(risk_text(event.risk_level, event.risk_reasons))
    rows = [*KEYS]
    for number, option in enumerate(event.options, 1):
        kind = "allows" if option.kind.startswith("allow") else "denies"
        rows.append((str(number), f"the agent's own “{title_of(option.name)}”, which {kind}"))
    screen.listed(rows)
    names = ", ".join(title_of(str(name)) for name in event.tool_input) or "nothing"
    screen.indented(Text(f"It is {title_of(event.tool_name)}, called with {names}.", style="dim"), 2)


async def ask_question(screen: Screen, keyboard: Keyboard, event: UserQuestionEvent) -> Any:
    """The answer: values by name for a form, text otherwise, None when the person declines."""
    screen.decisions.question(event)
    keyboard.forget()
    fields = fields_of(event.form)
    if event.url is not None and not fields:
        line = await keyboard.line(screen.ask("  Open it, then Enter; n declines ›"))
        if line is None:
            screen.say("")
        return None if line is None or line.strip().lower() in ("n", "no") else {}
    if not fields:
        choices = {"enum": event.options} if event.options else {}
        fields = [Field("answer", {"title": "Answer", "type": "string", **choices}, required=True)]
    screen.say("  Enter takes what is in brackets, Ctrl-D declines.")
    values: dict[str, Any] = {}
    for field in fields:
        answered, value = await _ask_field(screen, keyboard, field)
        if not answered:
            return None
        if value is not None:
            values[field.name] = value
    return values if event.form is not None else values.get("answer")


async def _ask_field(screen: Screen, keyboard: Keyboard, field: Field) -> tuple[bool, Any]:
    """Whether there was an answer, and which; None for a field that was left out."""
    while True:
        line = await keyboard.line(screen.ask(f"  {field.question} ›"))
        if line is None:
            screen.say("")
            return False, None
        if not line.strip():
            if field.default is not None or not field.required:
                return True, field.default
            continue
        try:
            return True, field.parse(line.strip())
        except ValueError as exc:
            screen.say(f"  {exc}", "red")
