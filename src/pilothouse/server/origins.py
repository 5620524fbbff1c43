"""From where a request may come: which names the hub answers to (`Host`), and which pages may call it (`Origin`).

Host first: a page whose name was made to point at this machine sends that name, and is refused by it. An address of
this machine is no such name: a page that has it as its host was loaded from here. Pure; both rules fail closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["host_allowed", "normal_origin", "origin_allowed", "own_origin"]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
PORTS = {"http": "80", "https": "443"}
_PLAIN = {"ws": "http", "wss": "https"}
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_-])?)(?::([0-9]{1,5}))?", re.ASCII)
_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)")


def host_allowed(host: str, local_address: str | None, allowed: Iterable[str] = ()) -> bool:
    """Whether the hub answers to a `Host`. `local_address` is where the connection arrived.

    A name that is allowed without a port is allowed with any: tunnels and containers have others than ours.
    """
    found = _AUTHORITY.fullmatch(host.lower())
    if found is None:
        return False
    name = found[1]
    if name in LOOPBACK or name == _literal(local_address):
        return True
    return any(entry.lower() in (name, found[0]) for entry in allowed)


def origin_allowed(origin: str, own: str | None, allowed: Iterable[str] = ()) -> bool:
    """Whether pages of an origin may call: those that the hub itself serves, and those that are configured."""
    given = normal_origin(origin)
    if given is None:
        return False
    return given == own or given in {normal_origin(entry) for entry in allowed}


def own_origin(scheme: str, host: str, url: str | None = None) -> str | None:
    """The origin of the pages that the hub serves under a `Host`.

    With TLS in a proxy before us the scheme of the connection is not that of the page; the hub's public `url` tells.
    """
    given = normal_origin("/".join((url or "").split("/", 3)[:3]))
    if given is not None and given == normal_origin(f"{given.partition(':')[0]}://{host}"):
        return given
    return normal_origin(f"{_PLAIN.get(scheme, scheme)}://{host}")


def normal_origin(text: str) -> str | None:
    """An origin with its port unless that is the usual one; None for what is none, such as `null`."""
    found = _ORIGIN.fullmatch(text.lower())
    authority = _AUTHORITY.fullmatch(found[2]) if found else None
    if found is None or authority is None:
        return None
    scheme, (name, port) = found[1], authority.groups()
    return f"{scheme}://{name}" if port in (None, PORTS[scheme]) else f"{scheme}://{name}:{port}"


def _literal(address: str | None) -> str:
    text = (address or "").lower().partition("%")[0].removeprefix("::ffff:")
    return f"[{text}]" if ":" in text else text
