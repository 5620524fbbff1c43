"""Questions of the model to the user as a form, and the filled form as the answers that the CLI expects.

Each question is a choice and, beside it, a field for an answer of one's own; what is typed there counts before what is
chosen, and is added to it where several may be chosen.
"""

from __future__ import annotations

from typing import Any

from .reading import items, mapping, text

__all__ = ["answers_of", "form_of", "message_of"]

Question = dict[str, Any]


def questions_in(given: dict[str, Any]) -> list[Question]:
    asked = [mapping(item) for item in items(given.get("questions"))]
    return [one for one in asked if text(one.get("question"))]


def message_of(given: dict[str, Any]) -> str:
    asked = questions_in(given)
    return text(asked[0]["question"]) if len(asked) == 1 else f"Claude has {len(asked)} questions."


def form_of(given: dict[str, Any]) -> dict[str, Any] | None:
    """The form for all questions of a call; None when it asks nothing that can be read."""
    properties: dict[str, Any] = {}
    for number, question in enumerate(questions_in(given), 1):
        title = text(question.get("header")) or f"Question {number}"
        options = _options(question)
        head = {"title": title, "description": text(question["question"])}
        if not options:
            properties[f"q{number}"] = {"type": "string", **head}
            continue
        if question.get("multiSelect") is True:
            properties[f"q{number}"] = {"type": "array", **head, "items": {"anyOf": options}}
        else:
            properties[f"q{number}"] = {"type": "string", **head, "oneOf": options}
        properties[f"q{number}_other"] = {"type": "string", "title": f"{title}: another answer"}
    return {"type": "object", "properties": properties} if properties else None


def _options(question: Question) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for option in map(mapping, items(question.get("options"))):
        label, description = text(option.get("label")), text(option.get("description"))
        if label:
            found.setdefault(label, {"const": label, "title": label})
            if description:
                found[label]["description"] = description
    return list(found.values())


def answers_of(given: dict[str, Any], content: dict[str, Any]) -> dict[str, str]:
    """The answers by question, as the CLI takes them. A question that was passed over has none."""
    answers: dict[str, str] = {}
    for number, question in enumerate(questions_in(given), 1):
        chosen = content.get(f"q{number}")
        labels = [one for one in (chosen if isinstance(chosen, list) else [chosen]) if isinstance(one, str) and one]
        own = text(content.get(f"q{number}_other")).strip()
        if own and question.get("multiSelect") is not True:
            labels = []
        said = ", ".join([*labels, own] if own else labels)
        if said:
            answers[text(question["question"])] = said
    return answers
