"""The session's files: through the client, which may hold unsaved buffers, where it offers that; else from disk."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from ...acp import RequestError
from .turn import Failure, Turn

__all__ = ["locate", "read", "read_if_any", "write"]


def locate(turn: Turn, name: str) -> Path:
    """The path of a file of the session. Raises Failure for anything outside of its directory."""
    root = turn.session.cwd
    path = root / name
    # The client gets the path in its own terms; only the check looks through symbolic links.
    if not path.resolve().is_relative_to(root.resolve()) or path.resolve() == root.resolve():
        raise Failure(f"`{name}` is not a file inside of `{root}`.")
    return path


async def read(turn: Turn, path: Path) -> str:
    """The text of a file. Raises Failure with the reason."""
    try:
        if turn.capabilities.fs.read_text_file:
            return (await turn.client.read_text_file(session_id=turn.session.id, path=str(path))).content
        return await asyncio.to_thread(path.read_text, encoding="utf-8")
    except (RequestError, OSError, UnicodeDecodeError) as exc:
        raise Failure(f"`{path.name}` could not be read: {_reason(exc)}") from exc


async def read_if_any(turn: Turn, path: Path) -> str | None:
    """The text of a file that may not exist yet."""
    try:
        return await read(turn, path)
    except Failure:
        # Clients do not agree on an error for a missing file, so the disk decides whether this is one.
        if await asyncio.to_thread(path.exists):
            raise
        return None


async def write(turn: Turn, path: Path, text: str) -> None:
    """Replace the text of a file. Raises Failure with the reason."""
    try:
        if turn.capabilities.fs.write_text_file:
            # The protocol makes files, not directories; where the disk is shared the agent can help.
            with suppress(OSError):
                await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
            await turn.client.write_text_file(session_id=turn.session.id, path=str(path), content=text)
        else:
            await asyncio.to_thread(_write, path, text)
    except (RequestError, OSError) as exc:
        raise Failure(f"`{path.name}` could not be written: {_reason(exc)}") from exc


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _reason(exc: Exception) -> str:
    if isinstance(exc, RequestError):
        if exc.code == -32002:
            return "there is no such file."
        details = exc.data.get("details") if isinstance(exc.data, dict) else None
        return f"{exc}: {details}" if details else str(exc)
    if isinstance(exc, FileNotFoundError):
        return "there is no such file."
    return getattr(exc, "strerror", None) or str(exc)
