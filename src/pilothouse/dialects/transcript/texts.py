"""Other people's text made fit to be shown, and quantities in words.

The rule a change must not break: nothing that `clean` or `shown` gives can steer a terminal, and nothing that somebody
decides on looks like something else.
"""

from __future__ import annotations

import re

from ...model.labels import make_visible
from ...model.records import ApprovalPreview, CommandPreview, TokenUsage
from ...model.session import Session

__all__ = [
    "clean",
    "duration",
    "ending",
    "is_told",
    "shown",
    "standing",
    "title_of",
    "tokens",
    "totals",
    "undescribed_command",
    "unfenced",
]

_ENDINGS = {
    "end_turn": "Done",
    "cancelled": "Cancelled",
    "max_tokens": "Stopped at the limit of tokens",
    "max_turn_requests": "Stopped at the limit of requests",
    "refusal": "The agent refused",
    "error": "Failed",
    "interrupted": "Interrupted: the hub was stopped",
}
_FENCED = re.compile(
    r"\s*(?P<fence>`{3,}|~{3,})(?P<language>[\w+#.-]*)[ \t]*\n(?P<text>.*?)\n?(?P=fence)\s*", re.DOTALL
)

# sequences with parameters, strings for the terminal (titles, links, clipboard), and two-character ones
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|\x9b[0-?]*[@-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """What a program printed, without anything that steers a terminal. Lines that were overwritten show their end."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    return _CONTROLS.sub("", text).expandtabs(4)


def shown(text: str) -> str:
    """Text that a user reads before a decision: hidden characters are shown by their code, and nothing is removed."""
    return make_visible(text.replace("\r\n", "\n")).expandtabs(4)


def title_of(text: str) -> str:
    """A title on one line."""
    return " ".join(shown(text).split())


def undescribed_command(preview: ApprovalPreview | None, description: str) -> str:
    """The command of a request if its description, which is the agent's, does not have all of it."""
    if not isinstance(preview, CommandPreview) or title_of(preview.command) in title_of(description):
        return ""
    return shown(preview.command)


def duration(milliseconds: float) -> str:
    seconds = milliseconds / 1000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def ending(stop_reason: str | None, milliseconds: int | None) -> str:
    """How a turn ended, and after what time."""
    words = _ENDINGS.get(stop_reason or "error") or title_of(stop_reason or "")
    return words if milliseconds is None else f"{words} · {duration(milliseconds)}"


def unfenced(text: str) -> tuple[str, str]:
    """A text without the fence that is all around it, as some agents send what they read; and its language."""
    found = _FENCED.fullmatch(text)
    if found is None or found["fence"] in found["text"]:
        return text, ""
    return found["text"], found["language"]


def is_told(error: str, output: str) -> bool:
    """Whether what is said of a failure stands in the output already."""
    return " ".join(error.split()) in " ".join(output.split())


def tokens(usage: TokenUsage | None) -> list[str]:
    return [f"{usage.input_tokens + usage.output_tokens:,} tokens"] if usage is not None else []


def totals(session: Session) -> list[str]:
    """What the session used and changed so far."""
    return [*tokens(session.usage), *standing(session)]


def standing(session: Session) -> list[str]:
    """What the session cost and changed so far, and how full its context is."""
    facts = []
    if session.cost is not None and session.cost.total:
        facts.append(f"{session.cost.total:.4f} {title_of(session.cost.currency)}")
    if session.context_window is not None and session.context_window.limit:
        facts.append(f"context {session.context_window.percentage:.0f} %")
    if session.files:
        added = sum(file.lines_added for file in session.files.values())
        removed = sum(file.lines_removed for file in session.files.values())
        count = len(session.files)
        facts.append(f"{count} file{'s' * (count > 1)} changed +{added} −{removed}")
    return facts
