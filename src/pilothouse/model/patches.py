"""Patches as coding agents write them (`*** Begin Patch`): read, applied, summed up. Unified diffs are read too.

Models are sloppy: fences around the patch, a missing end, blank context lines without their leading space, context
that differs from the file in white space, counts of lines that are wrong. All of that is read. What could not be read
is in `errors` with its line; a patch that does not fit its file raises `PatchError`. A line that stays is taken from
the file, never from the patch.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from heapq import merge
from typing import Any, Literal

import msgspec

from ..acp.naming import camel
from .diffs import unified_diff
from .tools import relative_path

PatchKind = Literal["add", "update", "delete", "move"]
_LETTERS = {"add": "A", "update": "M", "delete": "D", "move": "M"}


class PatchError(ValueError):
    """A patch does not fit the file it is for."""


class Hunk(msgspec.Struct, kw_only=True):
    """Lines that stay (` `), go (`-`) or come (`+`), after the lines of context that `@@` names one after another.

    `line` is the number of the first old line as a unified diff tells it: of several like places the nearest is meant.
    """

    context: list[str] = []
    lines: list[tuple[str, str]] = []
    end_of_file: bool = False
    line: int | None = None


class FilePatch(msgspec.Struct, kw_only=True):
    """What a patch does to one file."""

    path: str
    kind: PatchKind
    move_to: str | None = None
    hunks: list[Hunk] = []

    @property
    def additions(self) -> int:
        return sum(mark == "+" for hunk in self.hunks for mark, _ in hunk.lines)

    @property
    def deletions(self) -> int:
        return sum(mark == "-" for hunk in self.hunks for mark, _ in hunk.lines)


class Patch(msgspec.Struct, kw_only=True):
    """A patch's files in order, and what could not be read: the line's number and why."""

    files: list[FilePatch] = []
    errors: list[tuple[int, str]] = []

    def summary(self) -> str:
        """One line per file: `A path`, `M path` (where it is now) or `D path`."""
        return "\n".join(f"{_LETTERS[file.kind]} {file.move_to or file.path}" for file in self.files)


# -- reading ------------------------------------------------------------------------------------------------------

_FILE = re.compile(r"\s*\*\*\* (Add|Update|Delete) File:(.*\S.*)")
_MOVE = re.compile(r"\s*\*\*\* (?:Move to|Move File to):(.*\S.*)")
_END_OF_FILE = re.compile(r"\s*\*\*\* End of File\s*")
_MARKERS = re.compile(r"\s*\*\*\* (?:Begin|End) Patch\s*|\s*```\w*\s*|\s*(?:EOF|PATCH)\s*")
_CONTEXT = re.compile(r"@@(?: -[\d,]+ \+[\d,]+ @@)? ?(.*)")
_UNIFIED_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
NO_FILE = "expected `*** Update File: PATH` and the like, or a diff with `--- PATH` and `+++ PATH`"
_NAMES: dict[str, PatchKind] = {"Add": "add", "Update": "update", "Delete": "delete"}


def parse_patch(text: object) -> Patch:
    """Read a patch; never raises."""
    if not isinstance(text, str):
        return Patch(errors=[(0, "a patch is text")])
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if not any(_FILE.fullmatch(line) for line in lines):
        return _Unified(lines).patch
    return _parse_envelope(lines)


def _parse_envelope(lines: list[str]) -> Patch:
    patch = Patch()
    file: FilePatch | None = None
    for number, line in enumerate(lines, 1):
        started = _FILE.fullmatch(line)
        if started and not line.startswith((" ", "+", "-")):
            file = FilePatch(path=started[2].strip(), kind=_NAMES[started[1]])
            patch.files.append(file)
        elif _MARKERS.fullmatch(line) and (file is None or not line.startswith((" ", "+", "-"))):
            # only what follows the last file's lines may be noise; an end means that no file is open any more
            file = None if "End Patch" in line or line.startswith("```") else file
        elif file is None:
            _complain_unless_blank(patch, number, line)
        else:
            _take_line(patch, file, number, line)
    return patch


def _complain_unless_blank(patch: Patch, number: int, line: str) -> None:
    # the wrapper some models put around a patch is a shell here-document
    if line.strip() and "apply_patch" not in line:
        patch.errors.append((number, f"outside of any file: {line[:80]!r}"))


def _take_line(patch: Patch, file: FilePatch, number: int, line: str) -> None:
    moved = _MOVE.fullmatch(line)
    if moved and not line.startswith(("+", "-")):
        file.kind, file.move_to = "move", moved[1].strip()
    elif file.kind == "delete":
        _complain_unless_blank(patch, number, line)
    elif file.kind == "add":
        # a bare blank line separates files far more often than it is a line of the new one
        if line:
            _open_hunk(file).lines.append(("+", line.removeprefix("+")))
            if not line.startswith("+"):
                patch.errors.append((number, "a line of a new file starts with '+'; taken as if it did"))
    else:
        _take_update_line(patch, file, number, line)


def _open_hunk(file: FilePatch) -> Hunk:
    if not file.hunks:
        file.hunks.append(Hunk())
    return file.hunks[-1]


def _take_update_line(patch: Patch, file: FilePatch, number: int, line: str) -> None:
    context = _CONTEXT.fullmatch(line)
    if context:
        hunk = file.hunks[-1] if file.hunks and not file.hunks[-1].lines else None
        if hunk is None:
            hunk = Hunk()
            file.hunks.append(hunk)
        if context[1].strip():
            hunk.context.append(context[1])
    elif _END_OF_FILE.fullmatch(line):
        _open_hunk(file).end_of_file = True
    elif line[:1] in {" ", "+", "-"}:
        _open_hunk(file).lines.append((line[0], line[1:]))
    else:
        if line:
            patch.errors.append((number, "a line of a hunk starts with ' ', '+' or '-'; taken as context"))
        _open_hunk(file).lines.append((" ", line))


class _Unified:
    """A reader of `---`, `+++` and `@@ -1,2 +1,2 @@`, and of what git says of renames.

    The header's counts say where a hunk ends, unless lines of a hunk go on, or the next file begins.
    """

    def __init__(self, lines: list[str]) -> None:
        self.patch = Patch()
        self.old: str | None = None
        self.left = [0, 0]
        for number, line in enumerate(lines, 1):
            if self.is_body(line, lines[number : number + 2]):
                self.body(line)
            else:
                self.head(number, line)
        if not self.patch.files and not self.patch.errors:
            self.patch.errors.append((1, NO_FILE))

    def is_body(self, line: str, following: list[str]) -> bool:
        hunks = self.patch.files[-1].hunks if self.patch.files and self.old is None else ()
        begins_file = line.startswith("--- ") and [one[:3] for one in following] == ["+++", "@@ "]
        if not hunks or begins_file:
            return False
        if any(left > 0 for left in self.left):
            return line[:1] in {" ", "+", "-", ""}
        # `-- ` is the end of a mail
        return line[:1] in {" ", "+", "-"} and not line.startswith(("--- ", "+++ ")) and line.rstrip() != "--"

    def body(self, line: str) -> None:
        mark = line[:1] or " "
        self.left[0] -= mark != "+"
        self.left[1] -= mark != "-"
        self.patch.files[-1].hunks[-1].lines.append((mark, line[1:]))

    def head(self, number: int, line: str) -> None:
        hunk = _UNIFIED_HUNK.fullmatch(line)
        if hunk and self.patch.files:
            self.left = [int(hunk[2] or 1), int(hunk[4] or 1)]
            self.patch.files[-1].hunks.append(Hunk(line=int(hunk[1])))
        elif hunk or line.startswith("@@"):
            self.patch.errors.append((number, "a hunk without a file or without its counts"))
        elif line.startswith("--- "):
            self.old = _unified_name(line)
        elif line.startswith("+++ ") and self.old is not None:
            self.begin(_unified_file(self.old, _unified_name(line)))
        elif line.startswith("rename from "):
            self.old = line.removeprefix("rename from ").strip()
        elif line.startswith("rename to ") and self.old is not None:
            self.begin(_unified_file(self.old, line.removeprefix("rename to ").strip()))

    def begin(self, file: FilePatch) -> None:
        self.old, self.left = None, [0, 0]
        last = self.patch.files[-1] if self.patch.files else None
        # git names a file that is renamed and changed twice
        if last is None or last.hunks or (last.path, last.move_to) != (file.path, file.move_to):
            self.patch.files.append(file)


def _unified_name(line: str) -> str:
    name = line[4:].partition("\t")[0].strip()
    return name[2:] if name.startswith(("a/", "b/")) else name


def _unified_file(old: str, new: str) -> FilePatch:
    if old == "/dev/null":
        return FilePatch(path=new, kind="add")
    if new == "/dev/null":
        return FilePatch(path=old, kind="delete")
    return FilePatch(path=old, kind="update") if old == new else FilePatch(path=old, kind="move", move_to=new)


# -- applying -----------------------------------------------------------------------------------------------------

_PUNCTUATION = str.maketrans(
    {**dict.fromkeys("‐‑‒–—―−", "-"), **dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), "\u00a0": " "}
)
# from exact to loose: the first that finds the lines wins
_VIEWS: tuple[Callable[[str], str], ...] = (
    lambda line: line,
    str.rstrip,
    str.strip,
    lambda line: line.translate(_PUNCTUATION).strip(),
)


def apply(file: FilePatch, before: str | None) -> str | None:
    """The file after the patch, None when it is deleted.

    As the agents' own tools do, a file that is changed ends in a newline. Raises PatchError when a hunk's lines are
    not in the file, or when a diff that deletes a file has only some of its lines.
    """
    if file.kind == "add":
        return "".join(f"{line}\n" for hunk in file.hunks for _, line in hunk.lines)
    if file.kind == "delete":
        if before is not None and file.hunks and (rest := _changed(file, before)):
            raise PatchError(f"{file.path}: it would be deleted, but {rest.count(chr(10))} of its lines would stay")
        return None
    return _changed(file, before or "")


def _changed(file: FilePatch, text: str) -> str:
    if not any(mark != " " for hunk in file.hunks for mark, _ in hunk.lines):
        return text
    lines = text.removesuffix("\n").split("\n") if text else []
    ending = "\r" if text.count("\r\n") * 2 > text.count("\n") else ""
    if lines and not text.endswith("\n"):
        lines[-1] += ending
    result: list[str] = []
    done = 0
    for start, length, hunk in sorted(_places(file, lines), key=lambda place: place[0]):
        if start < done:
            raise PatchError(f"{file.path}: two hunks change line {start + 1}")
        result += lines[done:start]
        result += _replaced(hunk, lines[start : start + length], ending)
        done = start + length
    return "".join(f"{line}\n" for line in result + lines[done:])


def _replaced(hunk: Hunk, old: list[str], ending: str) -> Iterator[str]:
    kept = iter(old)
    for mark, line in hunk.lines:
        if mark == "+":
            yield line + ending if ending and not line.endswith(ending) else line
        else:
            stays = next(kept, None)
            if mark == " " and stays is not None:
                yield stays


def _places(file: FilePatch, lines: list[str]) -> Iterator[tuple[int, int, Hunk]]:
    """Where each hunk goes: the first old line and how many there are."""
    at = 0
    drift = 0
    """How many lines further down than a unified diff says the last hunk was found."""
    places = _Places(lines)
    for number, hunk in enumerate(file.hunks, 1):
        for context in hunk.context:
            found = places.seek([context], at)
            if found is None:
                raise PatchError(f"{file.path}: hunk {number} starts after {context[:80]!r}, which is not in the file")
            at = found + 1
        old = [line for mark, line in hunk.lines if mark != "+"]
        if not old:
            yield _insertion(hunk, at, len(lines), drift), 0, hunk
            continue
        near = hunk.line - 1 + drift if hunk.line is not None else None
        place = places.seek(old, at, near, end=hunk.end_of_file)
        if place is None and not old[-1]:  # the blank line before the next hunk is not always meant
            old = old[:-1]
            place = places.seek(old, at, near, end=hunk.end_of_file) if old else None
        if place is None:
            raise PatchError(f"{file.path}: hunk {number} does not fit, its lines are not in the file")
        yield place, len(old), hunk
        at = place + len(old)
        drift = place - hunk.line + 1 if hunk.line is not None else 0


def _insertion(hunk: Hunk, at: int, end: int, drift: int) -> int:
    """Where lines go that have no old ones beside them."""
    if hunk.line is not None:
        return min(max(hunk.line + drift, at), end)  # a unified diff names the line before them
    return at if hunk.context and not hunk.end_of_file else end


class _Places:
    """Where lines are in a file, looked up by line; each looser view of the file is made when it is first needed."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.views: list[tuple[list[str], dict[str, list[int]]]] = []

    def view(self, index: int) -> tuple[list[str], dict[str, list[int]]]:
        while len(self.views) <= index:
            seen = [_VIEWS[len(self.views)](line) for line in self.lines]
            places: dict[str, list[int]] = {}
            for place, line in enumerate(seen):
                places.setdefault(line, []).append(place)
            self.views.append((seen, places))
        return self.views[index]

    def seek(self, wanted: list[str], start: int, near: int | None = None, *, end: bool = False) -> int | None:
        """Where the wanted lines are: with `end` at the end of the file, else at or after `start`, else before it.

        Lines after `start` that fit loosely are better than lines before it that fit well: hunks come in order. Of
        several like places the first is taken, or the one that is nearest to `near`.
        """
        patterns = [[loosen(line) for line in wanted] for loosen in _VIEWS]
        last = len(self.lines) - len(wanted)
        spans = ((start, last + 1), (0, min(start, last + 1)))
        for low, high in ((last, last + 1), *spans) if end and last >= 0 else spans:
            for index, pattern in enumerate(patterns):
                place = self.place(pattern, index, low, high, low if near is None else near)
                if place is not None:
                    return place
        return None

    def place(self, pattern: list[str], index: int, low: int, high: int, near: int) -> int | None:
        seen, places = self.view(index)
        # by its rarest line: most files have hundreds of blank ones
        rarest = min(range(len(pattern)), key=lambda at: len(places.get(pattern[at], ())))
        starts = places.get(pattern[rarest], [])
        first, last = bisect_left(starts, low + rarest), bisect_left(starts, high + rarest)
        middle = min(max(bisect_left(starts, near + rarest), first), last)
        nearest_first = merge(
            range(middle, last), range(middle - 1, first - 1, -1), key=lambda at: abs(starts[at] - rarest - near)
        )
        for at in nearest_first:
            start = starts[at] - rarest
            if seen[start : start + len(pattern)] == pattern:
                return start
        return None


# -- what happened to each file -----------------------------------------------------------------------------------


class PatchedFile(msgspec.Struct, kw_only=True, rename=camel):
    """One file of an apply_patch result, as `rawOutput.metadata.files` has it."""

    file_path: str = ""
    relative_path: str = ""
    type: PatchKind = "update"
    diff: str = ""
    before: str = ""
    after: str = ""
    additions: int = 0
    deletions: int = 0
    move_path: str | None = None


def patched_files(patch: Patch, before: Mapping[str, str], workspace: str | None = None) -> list[PatchedFile]:
    """The files a patch changes, with their text before and after where `before` holds it and the patch fits."""
    return [_patched(file, before.get(file.path), workspace) for file in patch.files]


def _patched(file: FilePatch, before: str | None, workspace: str | None) -> PatchedFile:
    record = PatchedFile(
        file_path=file.path,
        relative_path=relative_path(file.path, workspace),
        type=file.kind,
        before=before or "",
        additions=file.additions,
        deletions=file.deletions,
        move_path=file.move_to,
    )
    if before is None and file.kind != "add":
        return record
    try:
        after = apply(file, before)
    except PatchError:
        return record
    diff = unified_diff(before, after, file.path, new_path=file.move_to)
    record.after, record.diff = after or "", diff.text
    record.additions, record.deletions = diff.added, diff.removed
    return record


def read_patched_files(metadata: object) -> list[PatchedFile]:
    """The records of an apply_patch result's metadata; a field that is missing or odd is filled from the others."""
    files = metadata.get("files") if isinstance(metadata, Mapping) else None
    return [_read_file(item) for item in (files if isinstance(files, list) else ()) if isinstance(item, Mapping)]


def _read_file(item: Mapping[str, Any]) -> PatchedFile:
    texts = {
        name: next((value for key in (camel(name), name) if isinstance(value := item.get(key), str)), None)
        for name in ("file_path", "relative_path", "type", "diff", "before", "after", "move_path")
    }
    before, after = texts["before"], texts["after"]
    counts = [item.get("additions"), item.get("deletions")]
    if not all(_is_count(count) for count in counts):
        diff = unified_diff(before, after, "")
        counts = [diff.added, diff.removed]
    path = texts["file_path"] or texts["relative_path"] or ""
    return PatchedFile(
        file_path=path,
        relative_path=texts["relative_path"] or relative_path(path),
        type=_read_kind(texts["type"], before, after),
        diff=texts["diff"] or "",
        before=before or "",
        after=after or "",
        additions=counts[0],  # type: ignore[arg-type]
        deletions=counts[1],  # type: ignore[arg-type]
        move_path=texts["move_path"],
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _read_kind(said: str | None, before: str | None, after: str | None) -> PatchKind:
    if said in _LETTERS:
        return said  # type: ignore[return-value]
    if before == "" and after:
        return "add"
    return "delete" if before and after == "" else "update"
