"""Sessions that were begun elsewhere: all that there are, and the one that somebody names.

A hub that runs is asked; without one the same is found out here. Only reading is done, in either case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .exits import Exit, Failure

if TYPE_CHECKING:
    from ..config import Config

__all__ = ["Found", "chosen", "look", "looked"]

Found = Mapping[str, Any]


async def look(config: Config, agent: str | None = None) -> dict[str, Any]:
    """`sessions`, the one last active first, and `problems`, as JSON has them."""
    from ..app.stored_sessions import find_hub

    hub = await find_hub(config)
    if hub is not None:
        return await hub.discovered(agent=agent, refresh=True)
    from ..app.composition import open_finder

    finder = open_finder(config)
    try:
        return await looked(config, finder, agent)
    finally:
        await finder.close()


async def looked(config: Config, finder: Any, agent: str | None) -> dict[str, Any]:
    import msgspec

    from ..app.composition import ask_agent
    from ..hub.external.records import keeper_of, key_of

    if agent is not None and agent not in finder.agents:
        sessions, problems = list(await ask_agent(config, agent)), []
        sessions.sort(key=lambda one: one.last_activity, reverse=True)
    else:
        found = await finder.sessions()
        sessions = [one for one in found.sessions if agent is None or keeper_of(one.agent) == keeper_of(agent)]
        problems = list(found.problems)
    here = await _here(config)
    rows = [msgspec.to_builtins(one) for one in sessions]
    for row in rows:
        if (key := key_of(row["agent"], row["id"])) in here:
            row["hubSessionId"] = here[key]
    return {"sessions": rows, "problems": msgspec.to_builtins(problems)}


async def _here(config: Config) -> dict[tuple[str, str], str]:
    """The sessions of this home, by their agents and what those call them."""
    from ..app.stored_sessions import open_archive
    from ..hub.external.records import ids_here
    from ..log.records import SessionRecord

    async with open_archive(config) as archive:
        return ids_here(await archive.find(SessionRecord, {"deleted": None}))


def chosen(found: Sequence[Found], beginning: str, agent: str | None = None) -> Found:
    """The session whose id, or whose id in the hub, begins so. Raises Failure."""
    from ..hub.external.records import keeper_of

    fitting = [one for one in found if agent is None or keeper_of(agent) == keeper_of(one["agent"])]
    fitting = fitting if beginning else []
    for ids in (lambda one: (one["id"],), lambda one: _own_ids(one.get("hubSessionId"))):
        exact = [one for one in fitting if beginning in ids(one)]
        matches = exact or [one for one in fitting if any(name.startswith(beginning) for name in ids(one))]
        if len(matches) == 1:
            return matches[0]
        if matches:
            some = ", ".join(f"{one['id']} ({one['agent']})" for one in matches[:4])
            more = ", …" if len(matches) > 4 else ""
            raise Failure(f"{len(matches)} sessions begin with {beginning!r}: {some}{more}", Exit.USAGE)
    where = f" of {agent}" if agent is not None else ""
    message = f"no session{where} on this machine begins with {beginning!r}; `pilothouse discover --all` lists them"
    raise Failure(message, Exit.USAGE)


def _own_ids(session_id: str | None) -> tuple[str, ...]:
    return () if session_id is None else (session_id, session_id.removeprefix("ses_"))
