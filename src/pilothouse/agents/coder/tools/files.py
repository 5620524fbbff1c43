"""Reading, writing and editing files, and patches over several of them.

A patch has the form that models are trained on (`*** Begin Patch`), or is a unified diff.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext

from ....acp import text_block, tool_content, tool_diff_content
from ....model.patches import FilePatch, PatchError, apply, parse_patch
from ...commands import Failure
from .. import work as documents
from ..host import Grant
from ..work import Call, Work
from .texts import fenced

LINES = 2000
CHARACTERS = 100_000
BARE = re.compile(r"(?<!\r)\n")


async def read(ctx: RunContext[Work], path: str, line: int = 1, limit: int = LINES) -> str:
    """Read a text file of the workspace.

    Args:
        path: The file, relative to the workspace or absolute.
        line: The first line to read, counted from 1.
        limit: How many lines to read at most.
    """
    work = ctx.deps
    first, count = max(line, 1), min(max(limit, 1), LINES)
    title = f"Read {path}" + (f" from line {first}" if first > 1 else "")
    where = work.workspace.point(path)
    raw_input = {"path": path, "line": line, "limit": limit}
    async with work.call(
        "read", title, "read", of=ctx.tool_call_id, raw_input=raw_input, paths=[(where, first)]
    ) as call:
        found = work.workspace.locate(path)
        await call.start()
        text = _part(await documents.read(work, found), first, count)
        await call.end(content=[tool_content(text_block(fenced(text)))])
        return text


async def write(ctx: RunContext[Work], path: str, content: str) -> str:
    """Create a file of the workspace, or replace all of its text. To change a part of a file, use edit.

    Args:
        path: The file, relative to the workspace or absolute. Directories are made as needed.
        content: The whole text of the file.
    """
    raw_input = {"path": path, "content": content}
    return await _change(ctx, "write", f"Write {path}", path, raw_input, lambda before: content)


async def edit(ctx: RunContext[Work], path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
    """Replace a passage of a file by another. Read the file first.

    Args:
        path: The file, relative to the workspace or absolute.
        old_string: The passage as it stands in the file, to the letter. It must occur once, so give enough around it.
        new_string: What takes its place.
        replace_all: Replace the passage wherever it occurs.
    """

    def replaced(before: str | None) -> str:
        if before is None:
            raise Failure(f"`{path}` could not be edited: there is no such file.")
        return _replaced(before, old_string, new_string, path, everywhere=replace_all)

    raw_input = {"path": path, "old_string": old_string, "new_string": new_string, "replace_all": replace_all}
    return await _change(ctx, "edit", f"Edit {path}", path, raw_input, replaced)


async def _change(
    ctx: RunContext[Work],
    name: str,
    title: str,
    path: str,
    raw_input: Mapping[str, object],
    change: Callable[[str | None], str],
) -> str:
    """Show what would change, ask, and write it."""
    work = ctx.deps
    where = work.workspace.point(path)
    async with work.call(name, title, "edit", of=ctx.tool_call_id, raw_input=raw_input, paths=[where]) as call:
        found = work.workspace.locate(path)
        before = await documents.read_if_any(work, found)
        after = change(before)
        await _show(call, found, before, after)
        real = str(found.resolve())  # a file that has two names is one
        await call.permit(Grant(("file", real), f"changes to {work.workspace.shown(found)}"))
        async with work.session.being_written[real]:
            if str(found.resolve()) != real:
                raise Failure(f"`{path}` is another file than the one that the user was asked about.")
            if await documents.read_if_any(work, found) != before:
                # the passage may be in there more often by now, or in a place that nobody was shown
                raise Failure(f"`{path}` has changed since the user was shown the change; read it again.")
            await call.start()
            await documents.write(work, found, after)
        await call.end(content=[tool_diff_content(str(found), after, before)])
        return f"{path} is written."


async def _show(call: Call, path: Path, before: str | None, after: str) -> None:
    if before == after:
        raise Failure(f"`{path.name}` would stay as it is.")
    await call.show(content=[tool_diff_content(str(path), after, before)])


def _replaced(before: str, old: str, new: str, path: str, *, everywhere: bool) -> str:
    if not old:
        raise Failure("`old_string` is empty; use write to make a file.")
    ends = before.count("\r\n")
    if ends and (ends == before.count("\n") or old not in before):
        # models write line feeds; the file keeps its own line ends
        old, new = (BARE.sub("\r\n", text) for text in (old, new))
    count = before.count(old)
    if count == 0:
        raise Failure(f"`old_string` is not in `{path}`; read the file and give the passage to the letter.")
    if count > 1 and not everywhere:
        raise Failure(f"`old_string` is in `{path}` {count} times; give more of what is around it, or replace_all.")
    return before.replace(old, new)


def _part(text: str, first: int, count: int) -> str:
    lines = text.removesuffix("\n").split("\n")
    last = min(first + count - 1, len(lines))
    part = "\n".join(lines[first - 1 : last])
    if len(part) > CHARACTERS:
        part = part[:CHARACTERS]
        return f"{part}\n[cut after {CHARACTERS} characters; ask for fewer lines]"
    if first == 1 and last == len(lines):
        return text
    if first > len(lines):
        return f"[there is nothing: the file has {len(lines)} lines]"
    return f"{part}\n[lines {first} to {last} of {len(lines)}]"


BOM = "\ufeff"


async def apply_patch(ctx: RunContext[Work], patch: str) -> str:
    """Change, create, delete or move several files at once.

    Args:
        patch: The patch. It begins with `*** Begin Patch` and ends with `*** End Patch`. In between, each file has a
            line `*** Add File: PATH` followed by its lines, each after a `+`; or `*** Delete File: PATH`; or
            `*** Update File: PATH`, perhaps `*** Move to: PATH`, and hunks: a line `@@`, lines that stay after a
            space, lines that go after a `-`, lines that come after a `+`.
    """
    work = ctx.deps
    parsed = parse_patch(patch)
    names = list(dict.fromkeys(file.move_to or file.path for file in parsed.files))
    title = f"Patch {', '.join(names)}" if names else "Patch"
    paths = [work.workspace.point(name) for name in names]
    async with work.call(
        "apply_patch", title, "edit", of=ctx.tool_call_id, raw_input={"patch": patch}, paths=paths
    ) as call:
        problems = "; ".join(f"line {at}: {why}" for at, why in parsed.errors[:5])
        if not parsed.files:
            raise Failure(f"The patch names no file; {problems}")
        changes = await _planned(work, parsed.files)
        if changes.after == changes.before:
            raise Failure(f"The patch changes nothing; {problems or 'all files are as it would make them'}.")
        await call.show(content=changes.diffs())
        await call.permit(changes.grant(work))
        async with AsyncExitStack() as locked:
            for real in sorted(set(changes.real.values())):
                await locked.enter_async_context(work.session.being_written[real])
            await changes.check(work)
            await call.start()
            await changes.carry_out(work)
        await call.end(content=changes.diffs(), raw_output={"files": sorted(map(str, changes.after))})
        return parsed.summary()


@dataclass
class _Changes:
    """Files as they are and as they will be; None is no file."""

    real: dict[Path, str] = field(default_factory=dict)
    before: dict[Path, str | None] = field(default_factory=dict)
    after: dict[Path, str | None] = field(default_factory=dict)

    def diffs(self) -> list[Any]:
        return [
            tool_diff_content(str(path), after or "", self.before[path])
            for path, after in self.after.items()
            if after != self.before[path]
        ]

    def grant(self, work: Work) -> Grant:
        """What it needs leave for. Leave to change one file, as edit and write ask for it, is none to delete it."""
        paths = sorted(self.real.values())
        touched = ", ".join(work.workspace.shown(path) for path in sorted(self.after))
        if len(paths) == 1 and None not in self.after.values():
            return Grant(("file", *paths), f"changes to {touched}")
        gone = [self.real[path] for path, after in self.after.items() if after is None]
        return Grant(("patch", *paths, "without", *sorted(gone)), f"patches of {touched}")

    async def check(self, work: Work) -> None:
        """What the user saw is still so. Raises Failure."""
        for path, before in self.before.items():
            if str(path.resolve()) != self.real[path] or await documents.read_if_any(work, path) != before:
                shown = work.workspace.shown(path)
                raise Failure(f"`{shown}` has changed since the user was shown the patch; read it again.")

    async def carry_out(self, work: Work) -> None:
        done: list[str] = []
        # what is new is there before what is old goes
        for path, after in sorted(self.after.items(), key=lambda item: item[1] is None):
            try:
                if after is None:
                    if self.before[path] is not None:
                        await documents.delete(work, path)
                elif after != self.before[path]:
                    await documents.write(work, path, after)
            except Failure as exc:
                finished = f"Done before: {', '.join(done)}." if done else "Nothing was changed."
                raise Failure(f"{str(exc).rstrip('.')}. {finished}") from exc
            done.append(work.workspace.shown(path))


async def _planned(work: Work, files: list[FilePatch]) -> _Changes:
    """What a patch comes to, with nothing done yet. Raises Failure when it does not fit."""
    changes = _Changes()
    for file in files:
        path = work.workspace.locate(file.path)
        target = work.workspace.locate(file.move_to) if file.move_to else path
        for one in (path, target):
            if one not in changes.before:
                changes.real[one] = str(one.resolve())
                if list(changes.real.values()).count(changes.real[one]) > 1:
                    raise Failure(f"`{work.workspace.shown(one)}` is in the patch under another name too.")
                changes.before[one] = changes.after[one] = await documents.read_if_any(work, one)
        _apply(changes, file, path, target)
    return changes


def _apply(changes: _Changes, file: FilePatch, path: Path, target: Path) -> None:
    now = changes.after[path]
    if file.kind == "add" and now is not None:
        raise Failure(f"`{file.path}` exists already; update it, or use write to replace it.")
    if file.kind != "add" and now is None:
        raise Failure(f"There is no file `{file.path}`.")
    if target != path and changes.after[target] is not None:
        raise Failure(f"`{file.move_to}` exists already; nothing is moved over it.")
    # a byte order mark is no part of the first line, as nobody sees it there
    mark = BOM if now is not None and now.startswith(BOM) else ""
    try:
        then = apply(file, now and now.removeprefix(mark))
    except PatchError as exc:
        raise Failure(f"The patch does not fit: {exc}") from exc
    if target != path:
        changes.after[path] = None
    changes.after[target] = then if then is None else mark + then
