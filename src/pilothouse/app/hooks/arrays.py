"""Items of arrays in JSON with comments, added and taken out in place. Pure.

`take_item` is the inverse of `add_item`: what was there before is there again, to the byte. An edit is read again
before it is given out, so a text that means something else than was asked for never leaves this module.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from ..editors.jsonc import JsoncError, Value, checked, parse

__all__ = ["Path", "add_item", "take_item"]

Path = tuple[str | int, ...]
"""Keys of objects and numbers of items, from the outside in."""


def add_item(text: str, path: Path, value: Any) -> str:
    """The text with `value` as the first item of the array at `path`, which has to be there. Raises JsoncError."""
    root = parse(text)
    array = _array(text, root, path)
    items, given = array.items or (), json.dumps(value, ensure_ascii=False)
    at = array.start + 1
    if items and _begins_line(text, items[0].start):
        line = text.rfind("\n", 0, items[0].start)
        newline = "\r\n" if text[line - 1 : line] == "\r" else "\n"
        given = f"{newline}{text[line + 1 : items[0].start]}{given},"
    elif items:
        given += ", "
    return checked([text[:at] + given + text[at:]], _changed(root.plain, path, lambda there: [value, *there]))


def take_item(text: str, path: Path) -> str:
    """The text without the item that `path` leads to, which has to be there. Raises JsoncError."""
    root = parse(text)
    *above, number = path
    array, index = _array(text, root, tuple(above)), int(number)
    wanted = _changed(root.plain, tuple(above), lambda there: there[:index] + there[index + 1 :])
    return checked(_without(text, array, index), wanted)


def _without(text: str, array: Value, index: int) -> Iterator[str]:
    """Texts without an item, the one that undoes `add_item` first; a comment may make one unfit."""
    items = array.items or ()
    start, end = items[index].start, items[index].end
    limit = items[index + 1].start if index + 1 < len(items) else array.end
    afters = [at + 1 for at in _commas(text, end, limit)]
    if index + 1 == len(items) and index > 0:  # the last one goes with the comma before it
        for before in _commas(text, items[index - 1].end, start):
            yield text[:before] + text[end:]
            yield text[:before] + text[before + 1 : start] + text[end:]
    for after in [*afters, end]:
        if _begins_line(text, start):
            line = text.rfind("\n", 0, start)
            yield text[: line - (text[line - 1 : line] == "\r")] + text[after:]
        if after != end and text[after : after + 1] == " ":
            yield text[:start] + text[after + 1 :]
        yield text[:start] + text[after:]


def _commas(text: str, start: int, end: int) -> list[int]:
    """Where commas stand, also those of comments."""
    return [at for at in range(start, end) if text[at] == ","]


def _array(text: str, root: Value, path: Path) -> Value:
    """Raises JsoncError when there is no array."""
    here = root
    for step in path:
        found = _step(text, here, step)
        if found is None:
            raise JsoncError(text, here.start, f"expected to find {step!r} here")
        here = found
    if here.items is None:
        raise JsoncError(text, here.start, f"`{path[-1] if path else 'the document'}` should be an array")
    return here


def _step(text: str, here: Value, step: str | int) -> Value | None:
    """Raises JsoncError for a key that is there twice: nobody knows which of them counts."""
    if isinstance(step, int):
        return here.items[step] if here.items is not None and step < len(here.items) else None
    same = [member for member in here.members or () if member.key == step]
    if len(same) > 1:
        raise JsoncError(text, same[1].start, f"`{step}` is there twice")
    return same[0].value if same else None


def _changed(plain: Any, path: Path, change: Any) -> Any:
    """A copy of a document in which the array at `path` is what `change` makes of it."""
    whole = copy.deepcopy(plain)
    if not path:
        return change(whole)
    here = whole
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = change(here[path[-1]])
    return whole


def _begins_line(text: str, at: int) -> bool:
    head = text[text.rfind("\n", 0, at) + 1 : at]
    return not head.strip(" \t") and "\n" in text[:at]
