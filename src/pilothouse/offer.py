"""What Pilothouse offers ACP clients, as the result of `initialize`: one table for all who answer it.

The hub answers clients that come to it, the editor bridge answers before it has a hub; both must say the same. Plain
values and no imports: the bridge starts in the time this takes.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as checkers know it, without the cost of importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PROTOCOL_VERSION = 1
TOKEN_METHOD = "pilothouse-token"  # noqa: S105 - the name of a way, not a secret
TOKEN_WAY = {
    "id": TOKEN_METHOD,
    "name": "Pilothouse token",
    "description": "The hub's token, or the credential of a paired device, as `token` in `_meta`.",
}
"""How those authenticate whom nothing else tells from strangers."""

CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {
        name: {} for name in ("list", "resume", "close", "delete", "fork", "additionalDirectories")
    },
}
"""What some agent can do; who asks for it at one that cannot is told so."""


def offer(
    *, version: str, auth_methods: Sequence[Mapping[str, Any]] = (), meta: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The result of `initialize`, in the names of the wire. `meta` are our own facts, without those that are None."""
    answer: dict[str, Any] = {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": CAPABILITIES,
        "authMethods": list(auth_methods),
        "agentInfo": {"name": "pilothouse", "title": "Pilothouse", "version": version},
    }
    facts = {name: value for name, value in (meta or {}).items() if value is not None}
    return {**answer, "_meta": {"pilothouse": facts}} if facts else answer
