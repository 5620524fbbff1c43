"""What a client gives an agent for a session beside its directory: MCP servers, further directories, `_meta`.

Kept in memory, so that an agent that is started anew has the same, and nowhere else: servers come with passwords in
their environment and headers, and the log must never hold one. After a restart of the hub the client that opens the
session gives them again. What an agent does not say that it can take is not sent to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

__all__ = ["Provisions", "without_ours"]

STDIO = "stdio"
"""The kind of server that every agent takes."""
SHORTEST = 4
"""Characters of a value that can be a secret; a shorter one is in every text."""


class Provisions(Struct, frozen=True):
    """Servers are as on the wire. `meta` goes along with every request that opens the session."""

    servers: tuple[dict[str, Any], ...] = ()
    directories: tuple[str, ...] = ()
    meta: Mapping[str, Any] = {}

    def joined(self, newer: Provisions) -> Provisions:
        """With what a later client gives in place of the same; one that gives nothing changes nothing."""
        return Provisions(
            newer.servers or self.servers, newer.directories or self.directories, {**self.meta, **newer.meta}
        )

    @property
    def means(self) -> tuple[Any, ...]:
        """What an agent works with, as opposed to what it is told along with that."""
        return self.servers, self.directories

    def scrubbed(self, value: Any) -> Any:
        """What an agent says, without the secrets that it was given: some quote in an error all that they got."""
        secrets = sorted({one for server in self.servers for one in _secrets(server)}, key=len, reverse=True)
        return _without(value, secrets) if secrets else value

    def params(self, capabilities: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a request that opens a session at an agent that can do so much."""
        servers = [server for server in self.servers if _takes(capabilities, server)]
        params: dict[str, Any] = {"mcpServers": servers}
        if self.directories and _takes_directories(capabilities):
            params["additionalDirectories"] = list(self.directories)
        return {**params, "_meta": dict(self.meta)} if self.meta else params

    def ignored(self, capabilities: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What such an agent was not given, and why; without anything that may be secret."""
        told: list[dict[str, Any]] = [
            {
                "field": "mcpServers",
                "name": server.get("name"),
                "reason": f"the agent takes no MCP servers by {_kind(server)}",
            }
            for server in self.servers
            if not _takes(capabilities, server)
        ]
        if self.directories and not _takes_directories(capabilities):
            told.append({"field": "additionalDirectories", "reason": "the agent takes no further directories"})
        return told


def _secrets(server: Mapping[str, Any]) -> Iterator[str]:
    """Values of its environment and headers, and its address, which may have a key in it."""
    given = [server.get("url")]
    for name in ("env", "headers"):
        pairs = server.get(name)
        given += [pair.get("value") for pair in pairs if isinstance(pair, dict)] if isinstance(pairs, list) else []
    yield from (one for one in given if isinstance(one, str) and len(one) >= SHORTEST)


def _without(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "…")
        return value
    if isinstance(value, dict):
        return {_without(name, secrets): _without(one, secrets) for name, one in value.items()}
    return [_without(one, secrets) for one in value] if isinstance(value, list) else value


def _kind(server: Mapping[str, Any]) -> str:
    return str(server.get("type") or STDIO)


def _takes(capabilities: Mapping[str, Any], server: Mapping[str, Any]) -> bool:
    offered = capabilities.get("mcpCapabilities")
    kind = _kind(server)
    return kind == STDIO or (kind in ("http", "sse") and isinstance(offered, dict) and offered.get(kind) is True)


def _takes_directories(capabilities: Mapping[str, Any]) -> bool:
    sessions: Any = capabilities.get("sessionCapabilities")
    return isinstance(sessions, dict) and sessions.get("additionalDirectories") is not None


def without_ours(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """`_meta` as it is handed on: what is meant for the hub stays here."""
    return {name: value for name, value in (meta or {}).items() if name != "pilothouse"}
