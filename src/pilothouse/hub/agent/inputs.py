"""Inputs of a session's agent beside its prompts: MCP servers, further directories, `_meta`; and what it can take.

They are kept in memory, so that an agent that restarts gets the same, and nowhere else: MCP servers come with passwords
in their environment and headers, and the log must never hold one. After a restart of the hub the client that opens the
session sends them again. An input that the agent does not declare support for is not sent to it; in a prompt, images
and audio are refused then, and an embedded text file becomes plain text after its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..client.editors import Editor
from ..errors import UnfitContent

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


_NEEDS = {"image": "image", "audio": "audio"}


def fitted(blocks: Sequence[Any], capabilities: Mapping[str, Any], agent: str) -> list[Any]:
    """Blocks as on the wire, as such an agent can take them. Raises UnfitContent."""
    offered = capabilities.get("promptCapabilities")
    offers = {name for name, value in offered.items() if value is True} if isinstance(offered, dict) else set()
    return [_fitted(block, offers, agent, place) for place, block in enumerate(blocks)]


def _fitted(block: Any, offers: set[str], agent: str, place: int) -> Any:
    kind = block.get("type") if isinstance(block, dict) else None
    needed = _NEEDS.get(str(kind))
    if needed is not None and needed not in offers:
        raise _refusal(agent, f"{kind}s" if kind == "image" else str(kind), place)
    if kind != "resource" or "embeddedContext" in offers:
        return block
    resource = block.get("resource")
    if not isinstance(resource, dict) or not isinstance(resource.get("text"), str):
        raise _refusal(agent, "embedded files that are no text", place)
    return {"type": "text", "text": f"{resource.get('uri')}:\n{resource['text']}"}


def _refusal(agent: str, what: str, place: int) -> UnfitContent:
    return UnfitContent(f"{agent} takes no {what}; send the prompt without", field=f"prompt[{place}]")


class Surroundings:
    """One for each session that was ever taken up; the hub lets go of those with nothing in them."""

    def __init__(self) -> None:
        self.editors: list[Editor] = []
        self.provisions = Provisions()
        self.agents: Mapping[str, Any] = {}
        """How each is started."""
        self.origin: str | None = None
        """An agent's own id of the session that this one is forked from."""

    @property
    def are_empty(self) -> bool:
        return not (self.editors or self.agents or self.origin) and self.provisions == Provisions()
