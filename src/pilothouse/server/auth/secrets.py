"""Secrets: how every one is made, kept and compared, the owner's token in its file, and tickets that work once.

Each secret the hub makes has 256 random bits, so a plain hash of it is as good as a slow one. Only the owner's token is
kept as it is, in a file that only the owner can read. Two secrets are compared by `same` and nothing else.

Tickets log a browser in or pair a device. They are kept in memory only: a hub that restarts accepts none, which is the
safe side. A ticket may have a code that is shown on the host; too many wrong codes end the ticket, so that the code may
be short.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

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


LIFETIME = 300.0
"""Seconds in which a ticket must be used, unless told."""
TRIES = 5
"""Wrong codes that end a ticket: one chance in 200,000 to guess six digits."""
AT_ONCE = 64
"""Tickets that wait to be used; one more drops the oldest."""

Purpose = Literal["login", "pair"]
State = Literal["pending", "used", "withdrawn", "locked", "expired"]


class TicketRefused(Exception):
    """A ticket that is unknown, used, withdrawn or expired (`left` is None), or a wrong code (`left` tries)."""

    def __init__(self, message: str, left: int | None = None) -> None:
        super().__init__(message)
        self.left = left


class Ticket(Struct, kw_only=True, eq=False):
    """`grant` is what its use gives; `result` what came of it. Its secret is known to whoever was handed it.

    `issuer` is the device that asked for it, None for the owner: what a device hands on ends with its own rights.
    """

    id: str
    purpose: Purpose
    digest: str
    code: str | None
    expires: float
    grant: Any
    issuer: str | None = None
    tries: int = TRIES
    state: State = "pending"
    result: Any = None


class Tickets:
    """Those that were issued and are not long over. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tickets: dict[str, Ticket] = {}

    def issue(
        self,
        purpose: Purpose,
        grant: Any = None,
        *,
        issuer: str | None = None,
        with_code: bool = False,
        lifetime: float = LIFETIME,
    ) -> tuple[Ticket, str]:
        """A ticket and its secret, which is not kept."""
        self._tidy()
        while len(self._tickets) >= AT_ONCE:
            del self._tickets[next(iter(self._tickets))]
        secret = new_secret()
        ticket = Ticket(
            id=f"tkt_{secrets.token_hex(8)}",
            purpose=purpose,
            digest=digest(secret),
            code=f"{secrets.randbelow(10**6):06}" if with_code else None,
            expires=self._clock() + lifetime,
            grant=grant,
            issuer=issuer,
        )
        self._tickets[ticket.id] = ticket
        return ticket, secret

    def redeem(self, purpose: Purpose, secret: str, code: str | None = None) -> Ticket:
        """The ticket, which is used from now on. Raises TicketRefused."""
        ticket = self._find(purpose, secret)
        if ticket is None or ticket.state != "pending":
            raise TicketRefused("the ticket is unknown, used, withdrawn or too old; ask for a new one")
        if ticket.code is not None and not same(ticket.code, code or ""):
            ticket.tries -= 1
            if ticket.tries <= 0:
                ticket.state = "locked"
            raise TicketRefused("the code is not the one that the host shows", ticket.tries)
        ticket.state = "used"
        return ticket

    def get(self, purpose: Purpose, ticket_id: str) -> Ticket | None:
        """A ticket by its id, which is no secret."""
        self._tidy()
        ticket = self._tickets.get(ticket_id)
        return ticket if ticket is not None and ticket.purpose == purpose else None

    def pending(self, purpose: Purpose) -> list[Ticket]:
        self._tidy()
        return [ticket for ticket in self._tickets.values() if ticket.purpose == purpose and ticket.state == "pending"]

    def withdraw(self, ticket: Ticket) -> None:
        if ticket.state == "pending":
            ticket.state = "withdrawn"

    def withdraw_all(self, issuer: str) -> None:
        """Those that a device asked for."""
        for ticket in self._tickets.values():
            if ticket.issuer == issuer:
                self.withdraw(ticket)

    def left(self, ticket: Ticket) -> float:
        """Seconds in which it can still be used."""
        return max(0.0, ticket.expires - self._clock())

    def _find(self, purpose: Purpose, secret: str) -> Ticket | None:
        """All are looked at, each in constant time."""
        self._tidy()
        given = digest(secret)
        found = None
        for ticket in self._tickets.values():
            if hmac.compare_digest(ticket.digest, given) and ticket.purpose == purpose:
                found = ticket
        return found

    def _tidy(self) -> None:
        now = self._clock()
        for ticket in list(self._tickets.values()):
            if ticket.state == "pending" and ticket.expires <= now:
                ticket.state = "expired"
            if ticket.expires + LIFETIME <= now:  # until then one may ask what became of it
                del self._tickets[ticket.id]
