"""Approvals and questions put to the user at a terminal, one line of answer each.

Choices have Pilothouse's labels: allow once, deny, always with the exact reach of its rule. The agent's own labels are
shown only as the agent's. An empty line, the end of input and an unclear line never allow anything. A question with
typed answers is a JSON schema from an agent, and any part of it may be malformed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from rich.text import Text

from ..dialects.texts import shown, title_of
from ..dialects.transcript import shorten_middle
from ..model.commands import OfferId, Remember
from ..model.events import ApprovalRequestedEvent, UserQuestionEvent
from ..model.previews import label_option
from ..model.records import Option, RuleOffer
from .calls import member_line
from .drawing import Quoted, risk_text
from .keyboard import Keyboard
from .screen import Screen


class Field:
    """One field of a form."""

    def __init__(self, name: str, schema: Any, *, required: bool) -> None:
        self.name = name
        self.required = required
        self._schema: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        self.kind = self._schema.get("type")
        self.default = self._schema.get("default")

    @property
    def choices(self) -> list[str]:
        """The values that may be chosen; empty when any will do."""
        if self.kind == "boolean":
            return ["yes", "no"]
        items = self._schema.get("items")
        source = items if self.kind == "array" and isinstance(items, Mapping) else self._schema
        plain = source.get("enum")
        if isinstance(plain, list):
            return [value for value in plain if isinstance(value, str)]
        titled = source.get("oneOf") or source.get("anyOf")
        values = [item.get("const") for item in titled if isinstance(item, Mapping)] if isinstance(titled, list) else []
        return [value for value in values if isinstance(value, str)]

    @property
    def question(self) -> str:
        """The field on one line: what it is, what may be chosen, what is taken if nothing is typed."""
        title = self._schema.get("title")
        parts = [title_of(title if isinstance(title, str) and title else self.name)]
        if self.choices:
            parts.append(f"({' / '.join(map(title_of, self.choices))})")
        if isinstance(self.default, bool):
            parts.append("[yes]" if self.default else "[no]")
        elif self.default is not None:
            value = ", ".join(map(str, self.default)) if isinstance(self.default, list) else str(self.default)
            parts.append(f"[{title_of(value)}]")
        return " ".join(parts)

    def parse(self, text: str) -> Any:
        """The value that a line stands for. Raises ValueError with what was expected."""
        offered = self.choices
        if self.kind == "boolean":
            return _chosen(text, offered) == "yes"
        if self.kind == "array":
            return self._split_values(text, offered)
        if self.kind in ("integer", "number"):
            return self._number(text)
        return _chosen(text, offered) if offered else text

    def _split_values(self, text: str, offered: Sequence[str]) -> list[str]:
        """Values separated by commas, or by spaces if there is no comma; a choice may contain spaces."""
        words = [word for part in text.split(",") if (word := part.strip())]
        if len(words) == 1 and not any(choice.lower() == words[0].lower() for choice in offered):
            words = words[0].split()
        return [_chosen(word, offered) for word in words] if offered else words

    def _number(self, text: str) -> int | float:
        whole = self.kind == "integer"
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            raise ValueError(f"expected a {'whole ' * whole}number") from None
        low, high = (self._schema.get(key) for key in ("minimum", "maximum"))
        below = isinstance(low, int | float) and value < low
        above = isinstance(high, int | float) and value > high
        if below or above or not math.isfinite(value):
            raise ValueError(f"expected a number from {low} to {high}")
        return value


def fields_of(form: Any) -> list[Field]:
    """The fields of a form in its order."""
    properties = form.get("properties") if isinstance(form, Mapping) else None
    required = form.get("required") if isinstance(form, Mapping) else None
    names = required if isinstance(required, list) else []
    if not isinstance(properties, Mapping):
        return []
    return [Field(str(name), schema, required=name in names) for name, schema in properties.items()]


def _chosen(word: str, offered: Sequence[str]) -> str:
    """One of what is offered, by its place, its name or the beginning of its name."""
    word = word.strip()
    if word.isdecimal() and 0 < int(word) <= len(offered):
        return offered[int(word) - 1]
    found = [choice for choice in offered if choice.lower() == word.lower()]
    found = found or [choice for choice in offered if choice.lower().startswith(word.lower())]
    if len(found) != 1 or not word:
        raise ValueError(f"expected one of {', '.join(offered)}")
    return found[0]


CRITICAL = "This request is critical: it can only be allowed once."
NO_RULE = "No rule can be stored for this request. Allow it once."
LEFT = "The user left without an answer."
DECLINED = "The user declined to answer."
HELP = "  a: {allow}   d REASON: deny   ?: explain the choices"
SCOPES = {"session": "in this session", "project": "in this project, in all its sessions"}
LONGEST_LABEL = 100
"""Characters of an agent's own label for an option."""
DENY = ("d REASON", "deny; the reason is sent to the agent")
ALWAYS = (
    ("A", "always allow in this session; the exact rule is shown first"),
    ("P", "always allow in this project, in all its sessions; the exact rule is shown first"),
)


class Verdict(Struct, frozen=True, kw_only=True):
    """The user's decision. `rule` is the offered rule that `remember` stores; `answers` are by question id."""

    approved: bool
    option_id: str | None = None
    reason: str | None = None
    remember: Remember = "once"
    rule: OfferId | None = None
    answers: dict[str, str | list[str]] | None = None


async def ask_approval(
    screen: Screen, keyboard: Keyboard, event: ApprovalRequestedEvent, questions: Sequence[UserQuestionEvent] = ()
) -> Verdict:
    """Show the whole request and read the decision. A line that is not clear is asked again.

    `questions` are those that the approval answers: with answers to all of them it is allowed, without it is denied.
    """
    screen.decisions.approval(event, whole=True)
    keyboard.forget()
    if questions:
        return await _ask_for_answers(screen, keyboard, questions)
    if event.chooses_mode:
        screen.listed(_option_rows(event))
    while True:
        line = await keyboard.line(screen.ask(_prompt(event)))
        if line is None:
            screen.say("")
            return Verdict(approved=False, reason=LEFT)
        if line.strip() == "?":
            _explain(screen, event)
            continue
        verdict = read_verdict(line, event)
        if verdict is None:
            screen.say(HELP.format(allow="allow" if _only_allows_always(event) else "allow once"), "dim")
        elif verdict.remember == "once":
            return verdict
        elif (confirmed := await _confirm_rule(screen, keyboard, event, verdict)) is not None:
            return confirmed


def read_verdict(line: str, event: ApprovalRequestedEvent) -> Verdict | None:
    """The decision that a line stands for, None for an unclear one. An "always" has no `rule` yet."""
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
        return _verdict_of_option(event.options[int(word) - 1], event, reason)
    return None


def _verdict_of_option(option: Option, event: ApprovalRequestedEvent, reason: str | None) -> Verdict:
    """What choosing an option means. An agent's own "always" has no known reach, so a rule replaces it."""
    allows = option.kind.startswith("allow")
    is_critical = event.risk_level == "critical" and allows
    if option.kind.endswith("_always") and (is_critical or not event.chooses_mode):
        return Verdict(approved=allows, remember="session", reason=reason)
    return Verdict(approved=allows, option_id=option.option_id, reason=reason)


# -- always -------------------------------------------------------------------------------------------------------


async def _confirm_rule(
    screen: Screen, keyboard: Keyboard, event: ApprovalRequestedEvent, verdict: Verdict
) -> Verdict | None:
    """Show the exact reach of the rule that would be stored and have it confirmed; None goes back to the prompt."""
    if event.risk_level == "critical" and verdict.approved:
        screen.say(f"  {CRITICAL}", "yellow")
        return None
    if not event.rule_offers:
        screen.say(f"  {event.rule_refusal or NO_RULE}", "yellow")
        return None
    offers = event.rule_offers
    screen.say(f"  Always {'allow' if verdict.approved else 'deny'}, {SCOPES[verdict.remember]}:", "bold")
    for number, offer in enumerate(offers, 1):
        label = f"{number}  " if len(offers) > 1 else ""
        screen.indented(Text.assemble((label, "bold"), shown(offer.text), overflow="fold"), 2)
        for name, value in (offer.arguments or {}).items():
            screen.out(member_line(name, value, " " * 6))
    keyboard.forget()  # an answer counts only once the reach was shown
    while True:
        line = await keyboard.line(screen.ask(_confirm_prompt(len(offers))))
        if line is None:
            screen.say("")
            return None
        word = line.strip().lower()
        if word in ("n", "no"):
            return None
        if (chosen := _choose_offer(word, offers)) is not None:
            return msgspec.structs.replace(verdict, rule=chosen.offer_id)


def _choose_offer(word: str, offers: Sequence[RuleOffer]) -> RuleOffer | None:
    if len(offers) == 1:
        return offers[0] if word in ("y", "yes") else None
    return offers[int(word) - 1] if word.isdecimal() and 1 <= int(word) <= len(offers) else None


def _confirm_prompt(count: int) -> Text:
    keys = [("y", "es, store it")] if count == 1 else [(str(number), "") for number in range(1, count + 1)]
    text = Text("  ")
    for key, word in (*keys, ("n", "o, go back")):
        _add_key(text, key, word, "bold cyan")
    return text.append("›", style="bold")


# -- the prompt ---------------------------------------------------------------------------------------------------


def _prompt(event: ApprovalRequestedEvent) -> Text:
    word = "llow" if _only_allows_always(event) else "llow once"
    keys = [("a", word, "bold green"), ("d", "eny", "bold red")]
    if event.risk_level == "critical":
        keys = [("d", "eny", "bold reverse red"), ("a", word, "green")]
    elif event.rule_offers:
        keys += [("A", "lways in this session", "bold green"), ("P", " in this project", "bold green")]
    text = Text("  ")
    for key, word, style in (*keys, ("?", "", "bold cyan")):
        _add_key(text, key, word, style)
    return text.append("›", style="bold")


def _only_allows_always(event: ApprovalRequestedEvent) -> bool:
    """Whether the agent offers no way to allow only this request: it may not ask again."""
    kinds = {option.kind for option in event.options}
    return "allow_always" in kinds and "allow_once" not in kinds and not event.chooses_mode


def _add_key(text: Text, key: str, word: str, style: str) -> None:
    text.append("[", style="dim").append(key, style=style).append(f"]{word}  ", style="dim")


def _explain(screen: Screen, event: ApprovalRequestedEvent) -> None:
    is_critical = event.risk_level == "critical"
    screen.out(Quoted(risk_text(event.risk_level, event.risk_reasons), line="  "))
    allow = ("a", "allow" if _only_allows_always(event) else "allow once")
    rows = [DENY, allow] if is_critical else [allow, DENY]
    if not is_critical and event.rule_offers:
        rows += ALWAYS
    screen.listed([*rows, *_option_rows(event)])
    if is_critical:
        screen.indented(Text(CRITICAL, style="yellow"), 2)
    elif event.rule_offers:
        for offer in event.rule_offers:
            screen.indented(Text.assemble(("always: ", "dim"), shown(offer.text), overflow="fold"), 2)
    elif event.rule_refusal:
        screen.indented(Text(describe_refusal(event.rule_refusal), style="dim", overflow="fold"), 2)
    names = ", ".join(title_of(str(name)) for name in event.tool_input) or "none"
    screen.indented(Text(f"Tool: {title_of(event.tool_name)}. Arguments: {names}", style="dim", overflow="fold"), 2)


def _option_rows(event: ApprovalRequestedEvent) -> list[tuple[str, str]]:
    """The agent's options by number, without "always allow" for a critical request."""
    offered = [(str(number), option) for number, option in enumerate(event.options, 1)]
    is_critical = event.risk_level == "critical"
    return [
        (number, describe_option(option))
        for number, option in offered
        if not (is_critical and option.kind == "allow_always")
    ]


def describe_refusal(refusal: str) -> str:
    """Why no rule can be stored, in one sentence."""
    refusal = shown(refusal)
    return refusal if refusal.startswith("No rule") else f"No rule: {refusal}"


def describe_option(option: Option) -> str:
    """Pilothouse's label for an option, then the agent's own label, marked as the agent's."""
    labelled = label_option(option)
    own = shorten_middle(title_of(option.name), LONGEST_LABEL)
    if labelled.is_misleading:
        effect = "allows the request" if option.kind.startswith("allow") else "denies the request"
        return f"{labelled.label}. The agent labels this “{own}”, but it {effect}."
    is_same = own.casefold() == labelled.label.casefold()
    return labelled.label if not own or is_same else f"{labelled.label}. Agent's option: {own}"


# -- questions ----------------------------------------------------------------------------------------------------


async def _ask_for_answers(screen: Screen, keyboard: Keyboard, questions: Sequence[UserQuestionEvent]) -> Verdict:
    answers: dict[str, str | list[str]] = {}
    for question in questions:
        answer = await ask_question(screen, keyboard, question)
        if answer is None:
            return Verdict(approved=False, reason=DECLINED)
        answers[question.question_id] = [str(one) for one in answer] if isinstance(answer, list) else str(answer)
    return Verdict(approved=True, answers=answers)


async def ask_question(screen: Screen, keyboard: Keyboard, event: UserQuestionEvent) -> Any:
    """The answer: values by name for a form, a list where several options may be chosen, text otherwise.

    None when the user declines.
    """
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
        schema: dict[str, Any] = {"title": "Answer", "type": "string", **choices}
        if event.multi_select:
            schema = {"title": "Answers, separated by commas", "type": "array", "items": choices}
        fields = [Field("answer", schema, required=True)]
    screen.say("  Enter takes the value in brackets, Ctrl-D declines.")
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
