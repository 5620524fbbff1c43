"""Untrusted text made safe to show: cut to a length, in one line, as Markdown; and quantities in words.

Rules a change must not break: nothing that `clean` or `shown` returns can steer a terminal, and no text that a user
decides on looks like another one. The length of what is left out is always shown.

Text cannot break out of Markdown, because all of it goes through one of three functions: `fenced` for output (a fence
longer than any in the text), `code` and `plain` for words inside a line, `prose` for Markdown itself. Prose that might
leave something open, such as a fence or an HTML tag, is quoted: the end of the quotation closes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from ..model.previews import make_visible
from ..model.records import ApprovalPreview, CommandPreview, TokenUsage
from ..model.session import Session

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


class Limits(Struct, frozen=True, kw_only=True):
    """Most characters of each kind of text, and most members of a list or object of an input; None is no limit."""

    message: int | None = None
    output: int | None = 32_000
    value: int | None = 4_000
    members: int | None = 200
    diff: int | None = 64_000


WHOLE = Limits(output=None, value=None, members=None, diff=None)
"""Nothing is left out, as replays need it."""

_DEPTH = 64
"""Levels of nested values. JSON from agents may be nested as deep as its reader allows."""


class Clipped(NamedTuple):
    """A text that fits, and how much is not in it: characters, or lines of `clip_lines`."""

    text: str
    omitted: int = 0


def clip(text: str, limit: int | None) -> Clipped:
    """Keep the head and the tail, of which the head is two thirds, and say in between what is missing.

    Cuts go to line ends where one is near. The note comes on top of the limit.
    """
    if limit is None or len(text) <= limit:
        return Clipped(text)
    limit = max(limit, 0)
    head, tail = limit * 2 // 3, len(text) - (limit - limit * 2 // 3)
    head = _near(text.rfind("\n", 0, head) + 1, head, limit)
    tail = _near(text.find("\n", tail) + 1, tail, limit)
    omitted = tail - head
    lines = text.count("\n", head, tail)
    about = f"{omitted:,} characters" + (f" in {lines + 1:,} lines" if lines else "")
    before, after = text[:head], text[tail:]
    glue = "\n" if before and not before.endswith("\n") else ""
    return Clipped(f"{before}{glue}… {about} left out …\n{after}", omitted)


def shorten_middle(text: str, limit: int) -> str:
    """A line of at most about `limit` characters: head and tail, with the number of characters left out between.

    Neither end can be pushed out of sight. The note comes on top of the limit.
    """
    head = limit - limit // 2
    omitted = len(text) - limit
    if omitted <= 0:
        return text
    return f"{text[:head]} … {omitted:,} character{'s' * (omitted > 1)} left out … {text[len(text) - limit // 2 :]}"


def shorten_lines(lines: Sequence[str], limit: int) -> list[str]:
    """At most `limit` lines of a text, two thirds of them its head, and a line with the number left out between."""
    omitted = len(lines) - limit
    if omitted <= 0:
        return list(lines)
    tail = limit // 3
    note = f"… {omitted:,} line{'s' * (omitted > 1)} left out …"
    return [*lines[: limit - tail], note, *lines[len(lines) - tail :]]


def _near(line_end: int, position: int, limit: int) -> int:
    """The line end, if it is not far and there is one."""
    return line_end if line_end and abs(line_end - position) <= limit // 4 else position


def clip_lines(text: str, limit: int | None) -> Clipped:
    """As many whole lines as fit; `omitted` counts the others. For text that a note in the middle would break."""
    if limit is None or len(text) <= limit:
        return Clipped(text)
    end = text.rfind("\n", 0, max(limit, 0)) + 1
    rest = text[end:]
    return Clipped(text[:end], rest.count("\n") + (not rest.endswith("\n")))


def clip_values(value: Any, limits: Limits, depth: int = _DEPTH) -> Any:
    """A JSON value with its long texts and long lists cut, each with a note where it was cut."""
    if isinstance(value, str):
        return clip(value, limits.value).text
    if not isinstance(value, (dict, list)):
        return value
    if depth == 0:
        return "… more levels left out …"
    most = len(value) if limits.members is None else limits.members
    more = len(value) - most
    if isinstance(value, list):
        kept = [clip_values(inner, limits, depth - 1) for inner in value[:most]]
        return [*kept, f"… {more:,} more left out …"] if more > 0 else kept
    pairs = {key: clip_values(inner, limits, depth - 1) for key, inner in list(value.items())[:most]}
    return {**pairs, "…": f"{more:,} more left out"} if more > 0 else pairs


_LINE_END = re.compile(r"\r\n?")
_TICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~&$^])")
_FENCE = re.compile(r"(`{3,}|~{3,})([^\n]*)")
_INDENTED_FENCE = re.compile(r"^[\s>*+\-\d.)]+(?:```|~~~)", re.MULTILINE)
_HTML = re.compile(r"<[A-Za-z/!?]")
_HEADING = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")


def fenced(text: str, language: str = "") -> str:
    """A code block."""
    text = _LINE_END.sub("\n", text)
    fence = "`" * max(3, _longest(text) + 1)
    language = re.sub(r"[^\w+#.-]", "", language)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{fence}"


def code(text: str) -> str:
    """Code inside a line."""
    text = " ".join(text.split())
    if not text:
        return ""
    ticks = "`" * (_longest(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def plain(text: str) -> str:
    """Words inside a line, that mean nothing but themselves."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def prose(text: str) -> str:
    """Markdown as its author wrote it, quoted where it might not end by itself.

    Headings go down two levels: those above are the document's, and nobody else's words may look like them.
    """
    text = _LINE_END.sub("\n", text).strip("\n")
    return _demoted(text) if _ends_by_itself(text) else quoted(text)


def _demoted(text: str) -> str:
    lines, fence, before = [], "", ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is not None and not fence:
            fence = found[1]
        elif found is not None and found[1].startswith(fence):
            fence = ""
        elif not fence and (heading := _HEADING.match(line)):
            line = heading[1] + "#" * min(6, len(heading[2]) + 2) + line[heading.end(2) :]  # noqa: PLW2901
        elif not fence and before.strip() and _UNDERLINE.fullmatch(line):
            line = "\\" + line.lstrip(" ")  # noqa: PLW2901
        lines.append(line)
        before = line
    return "\n".join(lines)


def quoted(text: str) -> str:
    """A quotation."""
    text = _LINE_END.sub("\n", text)
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def _ends_by_itself(text: str) -> bool:
    """Whether every fence is closed. Only fences at the very left are followed: those inside of lists and quotations
    end with these, and which of the two a line belongs to is more than this reader wants to know."""
    if _HTML.search(text) or _INDENTED_FENCE.search(text):
        return False
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is None:
            continue
        marks, rest = found[1], found[2]
        if not fence:
            fence = "" if marks[0] == "`" and "`" in rest else marks
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip(" \t"):
            fence = ""
    return not fence
