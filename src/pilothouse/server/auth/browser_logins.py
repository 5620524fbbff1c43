"""Browsers that are logged in: an opaque value in a cookie, of which the hub keeps the hash and the expiry.

Stored in the log's settings, so that a browser stays logged in when the hub restarts. A login that a device made
belongs to the device and ends with it; one of the owner belongs to the owner's token, and a new token ends it. A
browser is named by its user agent, in words of our own tables only, so that no sent text becomes the name on a
decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from ...log.contract import EventLog
from .secrets import digest, new_secret

BROWSER = "browser"
"""One that says nothing that is known here."""

PROGRAMS = (
    ("Edge", r"\bEdg(?:e|A|iOS)?/"),
    ("Opera", r"\bOPR/|\bOPT/"),
    ("Samsung Internet", r"\bSamsungBrowser/"),
    ("Firefox", r"\bFirefox/|\bFxiOS/"),
    ("Chrome", r"Chrom(?:e|ium)/|\bCriOS/"),
    ("Safari", r"\bSafari/"),
)
"""In this order: most say that they are Chrome or Safari as well."""
SYSTEMS = (
    ("iPhone", r"\biPhone\b"),
    ("iPad", r"\biPad\b"),
    ("Android", r"\bAndroid\b"),
    ("ChromeOS", r"\bCrOS\b"),
    ("Windows", r"\bWindows\b"),
    ("Mac", r"\bMac OS X\b|\bMacintosh\b"),
    ("Linux", r"\bLinux\b|\bX11\b"),
)
LONGEST = 512


def browser_name(user_agent: str) -> str:
    program, system = (_first(names, user_agent[:LONGEST]) for names in (PROGRAMS, SYSTEMS))
    if program is None:
        return BROWSER
    return f"{program} on {system}" if system else program


def _first(names: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for name, pattern in names if re.search(pattern, text)), None)


DAYS = 30
MOST = 64
"""Browsers logged in at once; one more drops the oldest."""
PREFIX = "login:"
NAME = "pilothouse"
VALUES = 4
"""Cookies of our name that are looked at: another site of this machine may have set one as well."""


class Login(Struct, frozen=True, kw_only=True, rename={"device_id": "deviceId"}):
    """`device_id` is None for the owner, whose browsers have names of their own. `key` names its setting; no secret."""

    key: str
    device_id: str | None
    owner: str
    created: str
    expires: str
    name: str = BROWSER


class Logins:
    def __init__(self, log: EventLog, token: str) -> None:
        self._log = log
        self._owner = digest(f"owner {token}")[:16]

    async def add(self, device_id: str | None, name: str = BROWSER) -> str:
        """Log a browser in. The value for its cookie, which is not kept."""
        await self._make_room()
        secret = new_secret()
        if await self._is_taken(name):
            name = f"{name} {digest(secret)[:4]}"
        now = self._log.now()
        until = datetime.fromisoformat(now) + timedelta(days=DAYS)
        expires = until.isoformat().replace("+00:00", "Z")
        value = {"deviceId": device_id, "owner": self._owner, "created": now, "expires": expires, "name": name}
        await self._log.settings.set(PREFIX + digest(secret), value)
        return secret

    async def find(self, secret: str) -> Login | None:
        """The login that this value stands for, unless it ended."""
        key = PREFIX + digest(secret)
        login = _login(key, await self._log.settings.get(key))
        return login if login is not None and self._is_alive(login) else None

    async def remove(self, login: Login) -> None:
        await self._log.settings.remove(login.key)

    async def remove_all(self, device_id: str | None) -> list[Login]:
        """End the logins of a device, or the owner's. Answers which there were."""
        found = [login for login in await self._all() if login.device_id == device_id]
        for login in found:
            await self.remove(login)
        return found

    async def names(self) -> set[str]:
        """What the browsers are called that are logged in."""
        return {login.name for login in await self._all() if self._is_alive(login)}

    async def _is_taken(self, name: str) -> bool:
        """Who decided must be plain: no two browsers have one name, nor has one the name of a device."""
        return name in await self.names() or name in {device.name for device in await self._log.devices.list()}

    async def _make_room(self) -> None:
        kept = []
        for login in await self._all():
            if self._is_alive(login):
                kept.append(login)
            else:
                await self.remove(login)
        kept.sort(key=lambda login: login.created)
        for login in kept[: max(0, len(kept) - MOST + 1)]:
            await self.remove(login)

    async def _all(self) -> list[Login]:
        stored = (_login(key, value) for key, value in (await self._log.settings.all()).items())
        return [login for login in stored if login is not None]

    def _is_alive(self, login: Login) -> bool:
        if login.device_id is None and login.owner != self._owner:
            return False
        return datetime.fromisoformat(login.expires) > datetime.fromisoformat(self._log.now())


def _login(key: str, value: Any) -> Login | None:
    if not key.startswith(PREFIX) or not isinstance(value, dict):
        return None
    try:
        return msgspec.convert({"key": key, **value}, Login)
    except msgspec.ValidationError:
        return None  # written by another version


# -- the cookie ---------------------------------------------------------------------------------------------------


def cookie_name(host: str) -> str:
    """Browsers do not tell ports apart, so the port is part of the name: two hubs on one machine have two cookies."""
    _, _, port = host.rpartition(":")
    return f"{NAME}-{port}" if port.isdecimal() and host.count(":") and not host.endswith("]") else NAME


def cookie(name: str, value: str | None, *, path: str, secure: bool) -> str:
    """The header that sets a cookie; None as the value takes it away."""
    age = DAYS * 86400 if value is not None else 0
    parts = [f"{name}={value or ''}", f"Path={path or '/'}", f"Max-Age={age}", "HttpOnly", "SameSite=Strict"]
    return "; ".join([*parts, "Secure"] if secure else parts)


def values(header: str, name: str) -> Iterator[str]:
    """What a `Cookie` header has under a name."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    found = [value for key, _, value in pairs if key == name and value]
    yield from found[:VALUES]
