"""A session as one HTML page that can be read, scrubbed and played, from a template that the web build makes.

The template has the page's own script and styles, allowed by their hashes, and forbids everything else; so it must
be written as it is, but for its markers. What goes into them cannot end the element it goes into: HTML is escaped by
who makes it, and JSON has no `<`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from ...model.events import Event, encode_event
from ...model.session import Session, sound
from .html import STYLE, body_of, title_of

__all__ = ["to_page"]

_NAMES = ("plain-style-hash", "title", "plain-style", "plain", "recording")
_MARKER = re.compile("{{(" + "|".join(_NAMES) + ")}}")
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<\u2028\u2029"}


def to_page(template: str, session: Session, events: Iterable[Event]) -> str:
    """The template filled in. Raises ValueError if it is no such template."""
    texts, names = _divided(template)
    values = {
        "plain-style-hash": "sha256-" + b64encode(sha256(STYLE.encode()).digest()).decode(),
        "title": title_of(session),
        "plain-style": STYLE,
        "plain": body_of(session),
        "recording": _recording(session, events),
    }
    whole = [text + values[name] for text, name in zip(texts, names, strict=False)]
    page: str = sound("".join([*whole, texts[-1]]))
    return page


def _divided(template: str) -> tuple[list[str], list[str]]:
    """The texts between markers, and the markers. Done before anything is put in: a session may quote a marker."""
    parts = _MARKER.split(template)
    texts, names = parts[::2], parts[1::2]
    if sorted(names) != sorted(_NAMES):
        raise ValueError(f"expected a template with each of {', '.join(_NAMES)} once, got {', '.join(names) or 'none'}")
    return texts, names


def _recording(session: Session, events: Iterable[Event]) -> str:
    """What the script plays, as JSON in which no text can be taken for markup."""
    title = msgspec.json.encode(sound(session.title)).decode()
    listed = b",\n".join(map(encode_event, events)).decode()
    return f'{{"title":{title},"events":[\n{listed}\n]}}'.translate(_ESCAPES)
