"""Where the hub of a home directory is reached: a file in the home that the hub writes when it listens.

The home belongs to its owner alone, so what the file says can be trusted as far as the file itself; a socket outside
of the home (its path would be too long for the system) must lie in a directory that is the owner's alone as well,
because others can put files into the directory above it. A file left by a hub that died is no error: nobody answers.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

FILE = "hub.json"
SOCKET = "hub.sock"
ACP_SOCKET = "acp.sock"
LONGEST = 103
"""Bytes of a socket's path: macOS has room for 104 with the zero at the end, Linux for 108."""
HAS_SOCKETS = hasattr(socket, "AF_UNIX")


class Place(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where one hub listens. `socket` is for its owner; `host` and `port` need the token; `url` is for browsers.

    `acp` is for its owner's editors: a socket on which ACP is spoken, one message a line.
    """

    pid: int
    socket: str | None = None
    acp: str | None = None
    host: str | None = None
    port: int | None = None
    url: str | None = None
    started: str = ""


def read_place(home: Path) -> Place | None:
    """What the home says of its hub; None when it says nothing that can be used. Whether it lives is another matter."""
    try:
        if HAS_SOCKETS and not _is_mine(home.stat(), 0o022):  # what it says could be anybody's
            return None
        place = msgspec.json.decode((home / FILE).read_bytes(), type=Place)
        return place if all(_is_safe(home, path) for path in _sockets(place)) else None
    except (OSError, ValueError, msgspec.DecodeError):  # also text that is no UTF-8, and no path
        return None


def write_place(home: Path, place: Place) -> None:
    """Say where this hub listens, at once and whole. Raises OSError."""
    draft = home / f"{FILE}.{os.getpid()}.new"
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(place) + b"\n")
    draft.replace(home / FILE)


def remove_place(home: Path) -> None:
    """Take back what this process said, and the socket with it."""
    place = read_place(home)
    if place is None or place.pid != os.getpid():
        return
    with contextlib.suppress(OSError):
        (home / FILE).unlink()
    _remove_sockets(home, place)


def clear_place(home: Path) -> None:
    """Take away what a hub that died has left. Only for whoever holds the home's lock."""
    place = read_place(home)
    with contextlib.suppress(OSError):
        (home / FILE).unlink()
    if place is not None:
        _remove_sockets(home, place)


def socket_path(home: Path) -> Path:
    """Where this home's socket is to be: in it, or in a new private directory when that path would be too long."""
    path = home / SOCKET
    if len(os.fsencode(path)) <= LONGEST:
        return path
    return Path(tempfile.mkdtemp(prefix="pilothouse-", dir=_short_directory())) / SOCKET


def acp_path(path: Path) -> Path:
    """Where editors are awaited: beside the home's socket."""
    return path.with_name(ACP_SOCKET)


def _short_directory() -> str:
    """A directory that goes when its user logs out, where the platform has one; else that for temporary files.

    Variables may name one that is too long as well; the system's own is not.
    """
    given, usual = os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()
    if given and _is_short(given) and is_private(Path(given)):
        return given
    return usual if _is_short(usual) else "/tmp"  # noqa: S108 - what is made there is private


def _is_short(directory: str) -> bool:
    """Whether the path of a socket in a new directory there is one that the system takes."""
    return len(os.fsencode(directory)) < LONGEST // 2


def is_private(directory: Path) -> bool:
    """Whether only this user can look into a directory or change it."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and _is_mine(found, 0o077)


def _is_mine(found: os.stat_result, others: int) -> bool:
    """Whether this user owns it, and others have none of these rights."""
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return mine and not found.st_mode & others


def _sockets(place: Place) -> list[Path]:
    return [Path(path) for path in (place.socket, place.acp) if path is not None]


def _is_safe(home: Path, path: Path) -> bool:
    return path.is_absolute() and (path in (home / SOCKET, home / ACP_SOCKET) or is_private(path.parent))


def _remove_sockets(home: Path, place: Place) -> None:
    for path in _sockets(place):
        with contextlib.suppress(OSError):
            path.unlink()
    for directory in {path.parent for path in _sockets(place)} - {home}:
        with contextlib.suppress(OSError):
            directory.rmdir()
