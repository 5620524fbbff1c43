"""Text that arrives in pieces.

Appending costs what is appended; the pieces are joined when somebody reads. On the wire it is a plain string.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["Text", "decode_text", "encode_text", "sound"]


MANY = 1_000
"""Pieces after which they are put together: a million short strings weigh ten times what their text does."""


class Text:
    """A string that grows. `str()` of it is its value."""

    __slots__ = ("_pieces", "_recent")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text] if text else []
        self._recent: list[str] = []

    def append(self, piece: str) -> None:
        if piece:
            self._recent.append(piece)
            if len(self._recent) > MANY:
                self._settle()

    def extend(self, pieces: Iterable[str]) -> None:
        """Append them all."""
        self._recent += filter(None, pieces)
        if len(self._recent) > MANY:
            self._settle()

    def _settle(self) -> None:
        """Put the recent pieces together, each once: a long text is not copied again and again."""
        if self._recent:
            self._pieces.append("".join(self._recent))
            self._recent = []

    def replace(self, text: str) -> None:
        """Forget what came before."""
        self._pieces, self._recent = [text] if text else [], []

    def __str__(self) -> str:
        self._settle()
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def __repr__(self) -> str:
        return f"Text({str(self)!r})"

    def __bool__(self) -> bool:
        return bool(self._pieces or self._recent)

    def __len__(self) -> int:
        return sum(map(len, self._pieces)) + sum(map(len, self._recent))

    def __contains__(self, part: str) -> bool:
        return part in str(self)

    def __getitem__(self, index: int | slice) -> str:
        return str(self)[index]

    def __add__(self, other: object) -> str:
        return str(self) + str(other)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, (Text, str)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def encode_text(value: Any) -> Any:
    """Hook of the encoder."""
    if isinstance(value, Text):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no place in a session's state")


def decode_text(kind: type, value: Any) -> Any:
    """Hook of the decoder."""
    if kind is Text and isinstance(value, str):
        return Text(value)
    raise NotImplementedError(f"{kind.__name__} has no place in a session's state")


def sound(value: Any) -> Any:
    """Plain values that UTF-8 can carry: half a surrogate pair becomes U+FFFD. Takes any depth."""
    if isinstance(value, str):
        return _whole(value)
    made: list[Any] = [value]
    places: list[tuple[Any, Any]] = [(made, 0)]
    for place, key in places:  # which grows meanwhile
        part = place[key]
        if isinstance(part, str):
            place[key] = _whole(part)
        elif isinstance(part, dict):
            copy = place[key] = {_whole(name): inner for name, inner in part.items()}
            places += ((copy, name) for name in copy)
        elif isinstance(part, list):
            items = place[key] = part.copy()
            places += ((items, index) for index in range(len(items)))
    return made[0]


def _whole(text: Any) -> Any:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(text, str) else text
