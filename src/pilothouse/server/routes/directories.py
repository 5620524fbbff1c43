"""Directories of this machine, by name, so that the working directory of a new session can be completed while it is
typed. Whoever may start sessions may choose any directory for them, and sees by this what there is to choose from.

Only names are told, never what is in a file; what cannot be read is refused or passed over, and nothing is waited for.
"""

from __future__ import annotations

import asyncio
import os
from itertools import islice
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from ...acp.naming import camel
from ...model.errors import ValidationError
from ..errors import HttpError
from ..http.operations import Call, Operation, Query

LOOKED_AT = 20_000
"""Names of one directory that are looked at: typing another letter must not take seconds."""
RECENT = 10
RECENT_SESSIONS = 200
"""Sessions that are looked at for their directories."""


class Wanted(Query):
    """`path` is what was typed so far: absolute, or in the home directory by `~`; with `/` at its end it is a whole
    directory's name, otherwise the last part may be incomplete."""

    path: Annotated[str, Meta(max_length=4096)] = ""
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


class DirectoryEntry(Struct, kw_only=True, rename=camel):
    name: str
    path: str
    is_repository: bool


class Directories(Struct, kw_only=True):
    """What is in the directory `path` and fits, by name; `truncated` when there is more. `recent`: where sessions
    worked last, told while nothing is typed."""

    path: str
    entries: list[DirectoryEntry]
    truncated: bool
    recent: list[str]


async def find(call: Call) -> Directories:
    query: Wanted = call.query
    recent = await _recent(call) if not query.path.strip() else []
    found = await asyncio.to_thread(complete, query.path.strip(), query.limit)
    found.recent = recent
    return found


async def _recent(call: Call) -> list[str]:
    page = await call.server.hub.sessions(archived=None, limit=RECENT_SESSIONS)
    places = list(dict.fromkeys(record.cwd for record in page.sessions))
    return await asyncio.to_thread(lambda: list(islice(filter(os.path.isdir, places), RECENT)))


def complete(path: str, limit: int = 100) -> Directories:
    """The directories that a path may mean. Raises ValidationError, HttpError."""
    place, prefix = _split(path)
    names, more = _names(place, prefix)
    entries = [
        DirectoryEntry(name=name, path=str(place / name), is_repository=os.path.lexists(place / name / ".git"))
        for name in names[:limit]
    ]
    return Directories(path=str(place), entries=entries, truncated=more or len(names) > limit, recent=[])


def _split(path: str) -> tuple[Path, str]:
    """The directory to look into, and how the names in it begin that are meant."""
    if "\0" in path or not _sound(path):
        raise ValidationError("no file can have this name", "path")
    if path in ("", "~") or path.startswith("~/"):
        path = str(Path.home()) + (path[1:] or "/")
    if not path.startswith("/"):
        raise ValidationError("expected an absolute path, or one that begins with ~/", "path")
    place, _, prefix = path.rpartition("/")
    if prefix in (".", ".."):
        place, prefix = path, ""
    # `//` at the start would mean something else to some systems
    return Path(os.path.normpath("/" + place.strip("/"))), prefix


def _names(place: Path, prefix: str) -> tuple[list[str], bool]:
    begin = prefix.casefold()
    names = []
    looked_at = 0
    try:
        with os.scandir(place) as found:
            for entry in found:
                looked_at += 1
                if looked_at > LOOKED_AT:
                    break
                if entry.name.startswith(".") and not begin.startswith("."):
                    continue
                if entry.name.casefold().startswith(begin) and _sound(entry.name) and _is_directory(entry):
                    names.append(entry.name)
    except PermissionError:
        raise HttpError(403, "unreadable", f"{place} cannot be read", path=str(place)) from None
    except OSError as exc:
        reason = (exc.strerror or "it cannot be read").lower()
        raise HttpError(404, "not_found", f"{place} cannot be listed: {reason}", path=str(place)) from None
    return sorted(names, key=lambda name: (name.casefold(), name)), looked_at > LOOKED_AT


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads nowhere, or to where nobody may look
        return False


def _sound(name: str) -> bool:
    """Whether it can be written as JSON: names may be any bytes."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/directories",
        handler=find,
        scope="prompt",
        query=Wanted,
        answer=Directories,
        errors=(404,),
        summary="Complete the path of a directory on the hub's machine, for a new session",
        tag="files",
    ),
)
