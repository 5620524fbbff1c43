"""Words for the search: which text of an event is indexed, how a query is read, what a hit shows. Pure.

Every term of a query must occur, each as the start of a word, whatever the case. Whatever a user types is a query;
nothing in it is an operator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ..model.events import Event, MessageCompleteEvent, ToolCallErrorEvent, ToolCallResultEvent, ToolCallStartEvent
from ..model.patterns import searching

TEXT_LIMIT = 32_768
OUTPUT_LIMIT = 8_192
"""Characters indexed of a message and of a tool's output: enough to find it by, and an index stays small."""

SNIPPET_BEFORE = 40
SNIPPET_LENGTH = 160
QUERY_TERMS = 32
TERM_LENGTH = 200

_words = re.compile(r"\w+")
# Scripts written without spaces between words: a tokenizer takes a whole sentence for one word.
_unspaced = searching(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)


def _message(event: Any) -> str:
    pieces = (getattr(block, "text", None) for block in event.content)
    return "\n".join(piece for piece in pieces if isinstance(piece, str))[:TEXT_LIMIT]


def _tool(event: Any) -> str:
    return "\n".join(filter(None, (event.title, event.description, event.name)))[:TEXT_LIMIT]


def _output(event: Any) -> str:
    return str(event.output)[:OUTPUT_LIMIT]


def _failure(event: Any) -> str:
    return "\n".join(filter(None, (event.error.message, event.output)))[:OUTPUT_LIMIT]


_TEXT: dict[type[Event], Callable[[Any], str]] = {
    MessageCompleteEvent: _message,
    ToolCallStartEvent: _tool,
    ToolCallResultEvent: _output,
    ToolCallErrorEvent: _failure,
}


def texts_of(events: Sequence[Event]) -> list[tuple[int, str]]:
    """What can be searched for, with the index of the event that has it; of most there is nothing."""
    found = [index for index, event in enumerate(events) if type(event) in _TEXT]
    return [(index, text) for index in found if (text := text_of(events[index]))]


def text_of(event: Event) -> str:
    """What of an event can be searched for; empty for most, deltas above all."""
    extract = _TEXT.get(type(event))
    return extract(event) if extract else ""


def terms_of(query: str) -> list[str]:
    """The terms of a query; those without a letter or digit say nothing."""
    plain = query.encode(errors="replace").decode().replace("\0", " ")
    return [term[:TERM_LENGTH] for term in plain.split() if _words.search(term[:TERM_LENGTH])][:QUERY_TERMS]


def match_expression(terms: list[str]) -> str:
    """The terms for FTS5: each a quoted phrase whose last word may go on."""
    return " ".join('"' + term.replace('"', '""') + '"*' for term in terms)


def needs_substrings(terms: list[str]) -> bool:
    """Whether the index can't find these terms, because their script has no spaces between words."""
    return any(_unspaced(term) for term in terms)


def like_pattern(term: str) -> str:
    """The term anywhere in a text, for LIKE … ESCAPE '\\'."""
    return "%" + re.sub(r"([\\%_])", r"\\\1", term[:TERM_LENGTH]) + "%"


def matches(text: str, terms: list[str]) -> bool:
    """Whether a text has all terms; the plain way, without an index."""
    return all(_pattern(term).search(text) for term in terms)


def snippet(text: str, terms: list[str]) -> str:
    """The neighbourhood of the first term found, on one line."""
    found = [match.start() for match in (_pattern(term).search(text) for term in terms) if match]
    start = max(0, min(found, default=0) - SNIPPET_BEFORE)
    piece = " ".join(text[start : start + SNIPPET_LENGTH].split())
    return ("…" if start else "") + piece + ("…" if start + SNIPPET_LENGTH < len(text) else "")


def _pattern(term: str) -> re.Pattern[str]:
    words = r"\W+".join(map(re.escape, _words.findall(term)))
    start = "" if _unspaced(term) else r"(?<!\w)"
    return re.compile(start + words, re.IGNORECASE)
