"""What a client says when it opens a session: what is meant for the hub, and what for the agent.

MCP servers are programs that the agent starts without asking, and `_meta` can tell some agents to ask for nothing at
all. So only who may have something done, and may approve it, may give them; from others they are left out, and the
answer says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ...acp.errors import RequestError
from ...acp.model import to_wire
from ...hub.agent.inputs import Provisions, without_ours
from ..callers import Caller, Scope

__all__ = ["Given", "cursor_in", "given_by", "ours", "own_requests"]

MOST_OWN = 100


def ours(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is in `_meta` for the hub."""
    own = (meta or {}).get("pilothouse")
    return own if isinstance(own, dict) else {}


def cursor_in(meta: Mapping[str, Any] | None) -> int | None:
    """The seq after which a client wants to be told what was. Raises RequestError."""
    after = ours(meta).get("after")
    if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
        raise _invalid("_meta.pilothouse.after", f"expected a seq, got {after!r}")
    return after


def own_requests(meta: Mapping[str, Any] | None) -> list[str]:
    """The ids of requests by which a client has prompted before, over another connection. Raises RequestError."""
    own = ours(meta).get("own")
    if own is None:
        return []
    if not isinstance(own, list) or len(own) > MOST_OWN or not all(isinstance(one, str) for one in own):
        raise _invalid("_meta.pilothouse.own", f"expected the ids of at most {MOST_OWN} prompts, got {own!r:.200}")
    return own


class Given:
    """What a client gives for the agent; `refused` is what of it that may not be given by this one."""

    def __init__(self, provisions: Provisions, refused: list[dict[str, Any]]) -> None:
        self.provisions = provisions
        self.refused = refused


def given_by(
    caller: Caller, servers: Sequence[Any] | None, directories: Sequence[str] | None, meta: Mapping[str, Any] | None
) -> Given:
    """Raises RequestError for a directory that is no absolute path."""
    for index, directory in enumerate(directories or ()):
        if not os.path.isabs(directory) or "\0" in directory:  # noqa: PTH117 - a text of the wire
            raise _invalid(f"additionalDirectories[{index}]", f"expected an absolute path, got {directory!r}")
    given = Provisions(
        servers=tuple(to_wire(list(servers or ()))), directories=tuple(directories or ()), meta=without_ours(meta)
    )
    needed: tuple[Scope, ...] = ("prompt", "approve")
    lacking = [scope for scope in needed if not caller.may(scope)]
    if not lacking:
        return Given(given, [])
    named = {"mcpServers": given.servers, "additionalDirectories": given.directories, "_meta": given.meta}
    reason = f"{caller.name} may not give the agent this; it needs `{'` and `'.join(lacking)}`"
    return Given(Provisions(), [{"field": name, "reason": reason} for name, value in named.items() if value])


def _invalid(field: str, reason: str) -> RequestError:
    return RequestError.invalid_params({"field": field, "reason": reason})
