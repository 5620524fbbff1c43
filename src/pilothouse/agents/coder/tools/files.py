"""Reading, writing and editing files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic_ai import RunContext

from ....acp import text_block, tool_content, tool_diff_content
from ...failure import Failure
from .. import documents
from ..permission import Grant
from ..work import Call, Work
from .texts import fenced

__all__ = ["edit", "read", "write"]

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
