"""The text of files: through the client, which may hold unsaved buffers, where it offers that; else from disk.

What is written is what was shown: a file that changed between the question and the writing is not overwritten. Line
ends are kept as they are. On disk (see `disk.py`) no link is followed out of the workspace, also one that was put there
a moment ago, and nothing is waited for that is no file.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from ...acp import RequestError
from ..failure import Failure
from . import disk
from .work import Work

__all__ = ["delete", "read", "read_if_any", "write"]

LIMIT = 8 * 1024 * 1024
"""Bytes of a file that is read or written."""
NOT_FOUND = -32002


async def read(work: Work, path: Path) -> str:
    """The text of a file. Raises Failure with the reason."""
    shown = work.workspace.shown(path)
    try:
        if work.host.capabilities.fs.read_text_file:
            return (await work.client.read_text_file(session_id=work.session.id, path=str(path))).content
        data = await asyncio.to_thread(disk.read, work.workspace, path, LIMIT)
        if len(data) > LIMIT:
            raise ValueError(f"it is larger than {LIMIT} bytes.")
        return data.decode("utf-8")
    except RequestError as exc:
        reason = "there is no such file." if exc.code == NOT_FOUND else str(exc)
        raise Failure(f"`{shown}` could not be read: {reason}") from exc
    except (OSError, ValueError) as exc:
        raise Failure(f"`{shown}` could not be read: {_reason(exc)}") from exc


async def read_if_any(work: Work, path: Path) -> str | None:
    """The text of a file that may not exist yet."""
    try:
        return await read(work, path)
    except Failure:
        # clients do not agree on an error for a missing file, so the disk decides whether this is one
        if await asyncio.to_thread(os.path.lexists, path):
            raise
        return None


async def write(work: Work, path: Path, text: str) -> None:
    """Replace the text of a file. Raises Failure with the reason."""
    shown = work.workspace.shown(path)
    work.workspace.locate(str(path))  # a link may have been put in its way since it was asked about
    if len(text) > LIMIT:
        raise Failure(f"`{shown}` was not written: the text is longer than {LIMIT} characters.")
    try:
        if work.host.capabilities.fs.write_text_file:
            # the protocol makes files, not directories; where the disk is shared the agent can help
            with suppress(OSError):
                await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
            await work.client.write_text_file(session_id=work.session.id, path=str(path), content=text)
        else:
            await asyncio.to_thread(disk.write, work.workspace, path, text.encode("utf-8"))
    except (RequestError, OSError, ValueError) as exc:
        raise Failure(f"`{shown}` could not be written: {_reason(exc)}") from exc


async def delete(work: Work, path: Path) -> None:
    """Remove a file; the protocol has no way to ask a client for that. Raises Failure with the reason."""
    work.workspace.locate(str(path))
    try:
        await asyncio.to_thread(path.unlink)
    except OSError as exc:
        raise Failure(f"`{work.workspace.shown(path)}` could not be deleted: {_reason(exc)}") from exc


def _reason(exc: Exception) -> str:
    if isinstance(exc, FileNotFoundError):
        return "there is no such file."
    if isinstance(exc, UnicodeError):
        return "it is not text in UTF-8."
    return getattr(exc, "strerror", None) or str(exc)
