"""Questions with typed answers, asked as lines of text. A form is a JSON schema from an agent: any part may be odd."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..dialects.texts import title_of

__all__ = ["Field", "fields_of"]


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
