"""Tickets: secrets that work once and not for long, to log a browser in or to pair a device.

They are kept in memory only: a hub that starts again knows none, which is the safe side. A ticket may have a code
that is shown on the host; too many wrong codes end the ticket, so that the code may be short.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from .tokens import digest, new_secret, same

__all__ = ["LIFETIME", "TRIES", "Ticket", "TicketRefused", "Tickets"]

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
