"""Finding files by their names and lines by a pattern.

The search is a program of its own (`finder.py`): a pattern may take for ever, and a program can be ended.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
from pydantic_ai import RunContext

from ....acp import ToolCallLocation, text_block, tool_content
from ...commands import Child, Failure
from ..work import Work
from .texts import cut, fenced

PROGRAM = str(Path(__file__).with_name("finder.py"))
SECONDS = 30.0
"""After which the program is ended; one that gets on at all ends a little earlier with what it has."""
SEARCHING = 25.0
RESULTS = 500
CHARACTERS = 30_000
LOCATIONS = 50
LEFT_OUT = 20
MAGIC = re.compile(r"[*?\[{]")


async def glob(ctx: RunContext[Work], pattern: str, path: str = ".", ignored: bool = False) -> str:
    """Find files by name. What git ignores is left out, and so are the usual directories of dependencies and caches.

    Args:
        pattern: Such as `**/*.py`, `src/**/test_*.ts` or `*.{toml,cfg}`. Without a slash it is the name at any depth.
        path: The directory to search in.
        ignored: Search also what is otherwise left out.
    """
    raw_input = {"pattern": pattern, "path": path, "ignored": ignored}
    where = ("" if path == "." else f" in {path}") + (" (ignored files too)" if ignored else "")
    return await _search(ctx, "glob", f"Find {pattern}{where}", path, {"glob": pattern, "ignored": ignored}, raw_input)


async def grep(
    ctx: RunContext[Work],
    pattern: str,
    path: str = ".",
    glob: str | None = None,
    ignore_case: bool = False,
    ignored: bool = False,
) -> str:
    """Find lines in files by a regular expression (Python's). It leaves out the same files as glob.

    Args:
        pattern: The regular expression.
        path: The file or directory to search in.
        glob: Only files whose names fit, such as `*.py`.
        ignore_case: Take upper and lower case for the same.
        ignored: Search also what is otherwise left out.
    """
    wanted = {"pattern": pattern, "glob": glob, "ignore_case": ignore_case, "ignored": ignored}
    raw_input = {**wanted, "path": path}
    where = ("" if path == "." else f" in {path}") + (f" ({glob})" if glob else "")
    where += " (ignored files too)" if ignored else ""
    return await _search(ctx, "grep", f"Search for “{pattern}”{where}", path, wanted, raw_input)


class _Found(msgspec.Struct):
    """What the program answers. A match of a name has no line."""

    matches: list[tuple[str, int, str]] = []
    more: bool = False
    too_large: list[str] = []
    error: str | None = None


async def _search(
    ctx: RunContext[Work], name: str, title: str, path: str, wanted: dict[str, Any], raw_input: dict[str, Any]
) -> str:
    work = ctx.deps
    path, wanted["glob"] = _from_where(path, wanted["glob"])
    at = work.workspace.point(path)
    async with work.call(name, title, "search", of=ctx.tool_call_id, raw_input=raw_input, paths=[at]) as call:
        root = work.workspace.locate(path)
        await call.start()
        found = await _run({**wanted, "root": str(root), "limit": RESULTS, "seconds": SEARCHING})
        text = _told(work, found)
        places = [ToolCallLocation(path=file, line=line or None) for file, line, _ in found.matches[:LOCATIONS]]
        await call.end(content=[tool_content(text_block(fenced(text)))], locations=places or None)
        return text


def _from_where(path: str, pattern: str | None) -> tuple[str, str | None]:
    """Where to search, and for what: a pattern may itself say where, from the root or upwards."""
    if pattern is None or not pattern.startswith(("/", "../")):
        return path, pattern
    names = pattern.split("/")
    fixed = next((at for at, name in enumerate(names[:-1]) if MAGIC.search(name)), len(names) - 1)
    return posixpath.join(path, "/".join(names[:fixed]) or "/"), "./" + "/".join(names[fixed:])


async def _run(request: dict[str, Any]) -> _Found:
    output = bytearray()

    async def take(data: bytes) -> None:
        output.extend(data)

    command = (sys.executable, "-I", "-S", PROGRAM, msgspec.json.encode(request).decode())
    try:
        child = await Child.start(command, cwd="/", on_output=take)
    except OSError as exc:
        raise Failure(f"The search could not be started: {exc.strerror}.") from exc
    try:
        async with asyncio.timeout(SECONDS):
            await child.wait()
    except TimeoutError:
        raise Failure(f"The search took longer than {SECONDS:.0f} seconds; search in less of it.") from None
    finally:
        await child.close()
    try:
        found = msgspec.json.decode(bytes(output), type=_Found)
    except msgspec.MsgspecError as exc:
        raise Failure(f"The search failed: {output[-300:].decode(errors='replace')}") from exc
    if found.error:
        raise Failure(found.error)
    return found


def _told(work: Work, found: _Found) -> str:
    left_out = ", ".join(work.workspace.shown(Path(file)) for file in found.too_large[:LEFT_OUT])
    too_large = f"[too large to be searched: {cut(left_out, CHARACTERS)}]" if left_out else ""
    if not found.matches:
        slow = " Not all was searched: it took too long." if found.more else ""
        return f"Nothing was found.{slow} {too_large}".rstrip()
    shown = ((work.workspace.shown(Path(file)), line, text) for file, line, text in found.matches)
    lines = [f"{file}:{line}: {text}" if line else file for file, line, text in shown]
    if found.more:
        lines.append(f"[only the first {len(found.matches)}; there may be more]")
    lines += [too_large] if too_large else []
    return cut("\n".join(lines), CHARACTERS)
