"""Secrets: the owner's token in its file, and how every secret is made, kept and compared.

Each secret the hub makes has 256 random bits, so a plain hash of it is as good as a slow one. Only the owner's token
is kept as it is, in a file that nobody else can read. Two secrets are compared by `same` and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import MutableMapping
from pathlib import Path

from msgspec import Struct

__all__ = ["Token", "TokenError", "close_directory", "digest", "load_token", "new_secret", "same"]

FILE = "token"
VARIABLE = "PILOTHOUSE_TOKEN"
SHORTEST = 16
"""Characters of a token that somebody chose. Ours has 43."""


class TokenError(Exception):
    """There is no token that can be trusted; the message says what to do."""


class Token(Struct, frozen=True, kw_only=True):
    """The owner's token. `path` is None when the environment gave it; `notices` are for the owner to read."""

    value: str
    path: Path | None = None
    is_new: bool = False
    notices: tuple[str, ...] = ()


def new_secret() -> str:
    """256 random bits, safe in URLs, headers and cookies."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two secrets are equal, in a time that tells nothing of either, nor of their lengths."""
    return hmac.compare_digest(digest(one), digest(other))


def load_token(home: Path, environ: MutableMapping[str, str] = os.environ) -> Token:
    """The token of a home directory, made at the first call; `PILOTHOUSE_TOKEN` goes before it. Raises TokenError.

    That variable is taken out of the environment, so that no agent inherits it: call this once, before any starts.
    The directory is closed to others (0700), and so is the file (0600). A file that others could read is closed, and
    the owner told; one that others could write, or that is not the owner's, is refused.
    """
    chosen = environ.pop(VARIABLE, "").strip()
    path = home / FILE
    notices = close_directory(home)
    if chosen:
        return Token(value=_checked(chosen, VARIABLE), notices=notices)
    try:
        is_new = not _exists(path) and _create(path)
        value, more = _read(path)
    except OSError as exc:
        raise TokenError(f"{path}: the token cannot be kept there: {exc.strerror or exc}") from exc
    return Token(value=value, path=path, is_new=is_new, notices=(*notices, *more))


def close_directory(home: Path) -> tuple[str, ...]:
    """Close a home directory to others, and make it if there is none; what the owner is to be told of it.

    Raises TokenError for one that is somebody else's, or cannot be had.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = home.stat()
        if found.st_uid != os.geteuid():
            raise TokenError(f"{home}: the home directory belongs to another user; set PILOTHOUSE_HOME to your own")
        if not found.st_mode & 0o077:
            return ()
        home.chmod(0o700)
    except OSError as exc:
        raise TokenError(f"{home}: cannot be the home directory: {exc.strerror or exc}") from exc
    return (f"{home} was open to other users; it is closed now (0700)",)


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _create(path: Path) -> bool:
    """Whether it was this call that made it. The file appears whole or not at all."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(new_secret() + "\n")
            file.flush()
            os.fsync(fd)
        os.link(draft, path)  # refuses to replace one that another start made meanwhile
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    return True


def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        raise TokenError(f"{path}: cannot be read: {exc.strerror}; delete it, and a new one is made") from exc
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise TokenError(f"{path}: is not a file of yours; delete it, and a new one is made")
        if found.st_mode & 0o022:
            raise TokenError(f"{path}: others may have written it; delete it, and a new one is made")
        notices: tuple[str, ...] = ()
        if found.st_mode & 0o077:
            os.fchmod(fd, 0o600)
            notices = (f"{path} could be read by other users; it is closed now. Delete it to get a new token",)
        text = file.read(4096).decode("utf-8", "replace").strip()
    return _checked(text, str(path)), notices


def _checked(value: str, where: str) -> str:
    if len(value) < SHORTEST or not value.isascii() or not value.isprintable() or " " in value:
        raise TokenError(f"{where}: a token has at least {SHORTEST} characters: ASCII, without spaces")
    return value
