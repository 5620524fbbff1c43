"""JSON with comments and trailing commas, as editors keep their settings: read with positions, edited in place.

An edit changes one member or one item of an array and leaves every other byte as it is. `take` and `take_item` are the
inverses of `put` and `add_item`: they restore the original text, but for a line break inside an object that was empty.
The result of an edit is parsed again before it is returned, so that a text with another meaning never leaves this
module.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DEPTH = 200
"""Deeper nesting is refused: no settings have it, and it would exhaust the stack."""

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])|(?:true|false|null)\b")
_LINE_REST = re.compile(r"(?:[ \t]|/\*(?:(?!\*/)[^\r\n])*\*/)*(?://[^\r\n]*)?(?=\r?\n)")
_BREAK = re.compile(r"\r?\n")
MARK = "\ufeff"


class JsoncError(ValueError):
    """The text is not what it should be; `line` and `column` count from one."""

    def __init__(self, text: str, at: int, message: str) -> None:
        super().__init__(message)
        self.line = text.count("\n", 0, at) + 1
        self.column = at - (text.rfind("\n", 0, at) + 1) + 1


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it stands. `members` is None for what is no object, `items` for what is no array."""

    start: int
    end: int
    plain: Any
    members: tuple[Member, ...] | None = None
    items: tuple[Value, ...] | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A key and its value; `comma` is where the comma behind it stands, None without one."""

    key: str
    start: int
    value: Value
    comma: int | None


def parse(text: str) -> Value:
    """The document. One of blanks and comments only is an empty object that stands nowhere. Raises JsoncError."""
    reader = _Reader(text)
    if reader.at == len(text):
        return Value(len(text), len(text), {}, ())
    value = reader.value(0)
    reader.skip()
    if reader.at != len(text):
        raise JsoncError(text, reader.at, "something stands behind the end of the document")
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith(MARK) else 0
        self.skip()

    def skip(self) -> None:
        found = _TRIVIA.match(self.text, self.at)
        self.at = found.end() if found else self.at
        if self.text.startswith("/*", self.at):
            raise JsoncError(self.text, self.at, "this comment has no end")

    def sees(self, mark: str) -> bool:
        return self.text.startswith(mark, self.at)

    def value(self, depth: int) -> Value:
        if depth > DEPTH:
            raise JsoncError(self.text, self.at, "this is nested too deeply")
        if self.sees("{"):
            return self._object(depth)
        if self.sees("["):
            return self._array(depth)
        start = self.at
        if self.sees('"'):
            plain = self._string()
            return Value(start, self.at, plain)
        found = _SCALAR.match(self.text, start)
        if found is None:
            raise JsoncError(self.text, start, f"expected a value, got {self._next()}")
        self.at = found.end()
        try:
            plain = json.loads(found[0])
        except ValueError:
            raise JsoncError(self.text, start, f"this number is too long, it has {len(found[0])} digits") from None
        return Value(start, self.at, plain)

    def _string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise JsoncError(self.text, self.at, "this string has no end on its line, or an escape that JSON has not")
        self.at = found.end()
        text: str = json.loads(found[0])
        return text

    def _object(self, depth: int) -> Value:
        start = self.at
        members: list[Member] = []
        self.at += 1
        self.skip()
        while not self.sees("}"):
            if members and members[-1].comma is None:
                raise JsoncError(self.text, self.at, f"expected `,` or `}}`, got {self._next()}")
            members.append(self._member(depth))
        self.at += 1
        return Value(start, self.at, {one.key: one.value.plain for one in members}, tuple(members))

    def _member(self, depth: int) -> Member:
        start = self.at
        if not self.sees('"'):
            raise JsoncError(self.text, start, f"expected a key in quotes, got {self._next()}")
        key = self._string()
        self.skip()
        if not self.sees(":"):
            raise JsoncError(self.text, self.at, f"expected `:`, got {self._next()}")
        self.at += 1
        self.skip()
        value = self.value(depth + 1)
        return Member(key, start, value, self._comma())

    def _array(self, depth: int) -> Value:
        start = self.at
        items: list[Value] = []
        comma: int | None = start
        self.at += 1
        self.skip()
        while not self.sees("]"):
            if comma is None:
                raise JsoncError(self.text, self.at, f"expected `,` or `]`, got {self._next()}")
            items.append(self.value(depth + 1))
            comma = self._comma()
        self.at += 1
        return Value(start, self.at, [one.plain for one in items], items=tuple(items))

    def _comma(self) -> int | None:
        self.skip()
        if not self.sees(","):
            return None
        comma = self.at
        self.at += 1
        self.skip()
        return comma

    def _next(self) -> str:
        return repr(self.text[self.at]) if self.at < len(self.text) else "the end of the file"


# -- edits --------------------------------------------------------------------------------------------------------


def table(text: str, path: tuple[str, ...]) -> dict[str, Any]:
    """The object at `path`, empty where there is none. Raises JsoncError where there is something else."""
    found, _ = _walk(text, parse(text), (*path, ""))
    there: dict[str, Any] = found[len(path) - 1].value.plain if len(found) >= len(path) else {}
    return there


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with `value` at `path`; objects on the way are made where there are none. Raises JsoncError.

    New members go to the head of their object, so what stands at its end, a comment or no comma, does not matter.
    """
    root = parse(text)
    if root.start == root.end:
        text += "" if text in ("", MARK) or text.endswith("\n") else "\n"
        return put(f"{text}{{}}\n", path, value)
    found, rest = _walk(text, root, path)
    if not rest:
        if found[-1].value.plain == value:
            return text
        old = found[-1].value
        given = pretty(value, _indent(text, found[-1].start), _unit(text, root), _newline(text))
        new = text[: old.start] + given + text[old.end :]
    else:
        for key in reversed(rest[1:]):
            value = {key: value}
        new = _with_member(text, root, found[-1].value if found else root, rest[0], value)
    return checked([new], _set(root.plain, path[: len(found)] + rest[:1], value))


def take(text: str, path: tuple[str, ...], *, alone: bool = False) -> str:
    """The text without the member at `path`, and without an object that this leaves empty at the head of its own.

    `alone` leaves that object. A text that has no such member is given back as it is. Raises JsoncError.
    """
    root = parse(text)
    found, rest = _walk(text, root, path)
    if rest:
        return text
    holder = found[-2].value if len(found) > 1 else root
    new = checked(_without_member(text, holder, found[-1]), _set(root.plain, path, None, drop=True))
    if alone or len(path) == 1:
        return new
    root = parse(new)
    above, _ = _walk(new, root, path[:-1])
    owner = above[-2].value if len(above) > 1 else root
    is_first = (owner.members or (None,))[0] is above[-1]
    return take(new, path[:-1]) if is_first and _is_bare(new, above[-1]) else new


def pretty(value: Any, indent: str = "", unit: str = "  ", newline: str = "\n") -> str:
    """JSON for people: a line for each member, lists on one."""
    if not isinstance(value, Mapping) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + unit
    lines = [f"{inner}{json.dumps(k, ensure_ascii=False)}: {pretty(v, inner, unit, newline)}" for k, v in value.items()]
    return f"{{{newline}{f',{newline}'.join(lines)}{newline}{indent}}}"


def _walk(text: str, root: Value, path: tuple[str, ...]) -> tuple[list[Member], tuple[str, ...]]:
    """The members along a path as far as there are any, and the rest of the path."""
    found: list[Member] = []
    here = root
    for depth, key in enumerate(path):
        if here.members is None:
            where = f"`{path[depth - 1]}`" if depth else "the document"
            raise JsoncError(text, here.start, f"{where} should be an object")
        same = [one for one in here.members if one.key == key]
        if len(same) > 1:
            raise JsoncError(text, same[1].start, f"`{key}` is there twice")
        if not same:
            return found, path[depth:]
        found.append(same[0])
        here = same[0].value
    return found, ()


def _with_member(text: str, root: Value, holder: Value, key: str, value: Any) -> str:
    head, newline, unit = holder.start + 1, _newline(text), _unit(text, root)
    name = json.dumps(key, ensure_ascii=False)
    first = holder.members[0] if holder.members else None
    if first is not None and not _begins_line(text, first.start):
        is_tight = first.start == head
        lead = "" if is_tight else text[head : first.start] if not text[head : first.start].strip() else " "
        new = f"{lead}{name}: {json.dumps(value, ensure_ascii=False)},{' ' if is_tight else ''}"
        return text[:head] + new + text[head:]
    base = _indent(text, holder.start)
    indent = _indent(text, first.start) if first is not None else base + unit
    given = f"{newline}{indent}{name}: {pretty(value, indent, unit, newline)}"
    line = _LINE_REST.match(text, head)
    point = line.end() if line and line.end() < holder.end else head
    if first is not None:
        given += ","
    elif "\n" not in text[point : holder.end]:
        given += newline + base
    return text[:point] + given + text[point:]


def _without_member(text: str, holder: Value, member: Member) -> Iterable[str]:
    """Texts without a member, the one that undoes `_with_member` first; a comment may make it unfit."""
    members = holder.members or ()
    at = members.index(member)
    start = _before_blanks(text, member.start)
    begins_line = _begins_line(text, member.start)
    if begins_line:
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
    end = member.value.end if member.comma is None else member.comma + 1
    if member.comma is None and at > 0:
        before = members[at - 1].comma or 0
        yield text[:before] + text[before + 1 : start] + text[end:]
        yield text[:before] + text[before + 1 : member.start] + text[end:]
        return
    if member.comma is None and begins_line and text[start - 1] == "{":
        tail = text[end : holder.end]
        added = _newline(text) + _indent(text, holder.start)
        if tail.startswith(added) and tail.count("\n") == 1:
            yield text[:start] + text[end + len(added) :]
    if member.comma is not None and start == member.start and text[end : end + 1] == " ":
        yield text[:start] + text[end + 1 :]
    yield text[:start] + text[end:]
    yield text[: member.start] + text[end:]


def _is_bare(text: str, member: Member) -> bool:
    """Whether a member is an empty object without comments, written as `put` writes one."""
    value = member.value
    head = text[member.start : value.start]
    return (
        head == f"{json.dumps(member.key, ensure_ascii=False)}: "
        and not text[value.start + 1 : value.end - 1].strip()
        and member.comma in (None, value.end)
    )


def checked(texts: Iterable[str], wanted: Any) -> str:
    """The first of several edits of a text that means what was wanted, found out by reading it again."""
    for text in texts:
        try:
            if parse(text).plain == wanted:
                return text
        except JsoncError:
            continue
    raise AssertionError("can't happen: an edit that gives another document than was asked for")


def _set(plain: Any, path: tuple[str, ...], value: Any, *, drop: bool = False) -> Any:
    """A copy of a plain value with one member set or dropped."""
    copy = dict(plain)
    if len(path) > 1:
        copy[path[0]] = _set(copy[path[0]], path[1:], value, drop=drop)
    elif drop:
        del copy[path[0]]
    else:
        copy[path[0]] = value
    return copy


# -- the look of a text -------------------------------------------------------------------------------------------


def _newline(text: str) -> str:
    found = _BREAK.search(text)
    return found[0] if found else "\n"


def _unit(text: str, root: Value) -> str:
    """What one level is indented by."""
    first = root.members[0] if root.members else None
    return (_indent(text, first.start) if first and _begins_line(text, first.start) else "") or "  "


def _before_blanks(text: str, at: int) -> int:
    while at and text[at - 1] in " \t":
        at -= 1
    return at


def _begins_line(text: str, at: int) -> bool:
    at = _before_blanks(text, at)
    return at > 0 and text[at - 1] == "\n"


def _indent(text: str, at: int) -> str:
    """The blanks at the head of the line that `at` is on."""
    start = text.rfind("\n", 0, at) + 1
    blanks = re.compile(r"[ \t]*").match(text, start)
    return blanks[0] if blanks else ""


Path = tuple[str | int, ...]
"""Keys of objects and numbers of items, from the outside in."""


def add_item(text: str, path: Path, value: Any) -> str:
    """The text with `value` as the first item of the array at `path`, which has to be there. Raises JsoncError."""
    root = parse(text)
    array = _array(text, root, path)
    items, given = array.items or (), json.dumps(value, ensure_ascii=False)
    at = array.start + 1
    if items and _is_first_on_line(text, items[0].start):
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
        if _is_first_on_line(text, start):
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


def _is_first_on_line(text: str, at: int) -> bool:
    head = text[text.rfind("\n", 0, at) + 1 : at]
    return not head.strip(" \t") and "\n" in text[:at]
