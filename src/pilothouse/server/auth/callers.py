"""The caller of a request and its rights: `admin` includes the other scopes; no other scope includes one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Scope = Literal["read", "prompt", "approve", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "prompt", "approve", "admin")


class Caller(Struct, frozen=True, kw_only=True):
    """An authenticated consumer. `name` is what decisions made by it are signed with.

    `device_id` is set for a paired device; the owner of the home, by token, cookie or local socket, has none.
    """

    name: str
    scopes: frozenset[str]
    device_id: str | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes

    def may_grant(self, scopes: Iterable[Scope]) -> bool:
        """Whether all of these are its own, so that nobody hands on more than they have."""
        return all(self.may(scope) for scope in scopes)


ADMIN = frozenset(SCOPES)


def in_order(scopes: Iterable[str]) -> list[Scope]:
    """Scopes without repetition, the least first. What is none is left out."""
    given = set(scopes)
    return [scope for scope in SCOPES if scope in given]
