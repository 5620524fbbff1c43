"""The rules that "always" stored: find, describe, narrow, keep and revoke them, with a running hub or without one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .exits import Exit, Failure

if TYPE_CHECKING:
    from ..config import Config
    from ..hub.hub import Hub
    from ..log.records import Rule
    from ..remote.hub import RemoteHub


NAMED = re.compile(rb"always:(rule_\w+)")
"""How an event names the rule that decided."""
SCOPES = {"session": "this session", "project": "this project", "everywhere": "everywhere"}


async def kept_rules(config: Config, *, everything: bool = False) -> list[dict[str, Any]]:
    """The stored rules, oldest first, in the shape of `GET /rules`; with `everything` also expired and revoked ones."""
    from ..app.stored_sessions import open_archive

    async with open_archive(config) as archive:  # correct even while a hub runs: the stored rules are those in force
        found = await (archive.rules.list() if everything else archive.rules.active())
        now = archive.now()
    return [_row(record, now) for record in found]


def _row(record: Rule, now: str) -> dict[str, Any]:
    from ..acp.naming import camel
    from ..hub.recording.rules import rule_fields

    return {camel(key): value for key, value in rule_fields(record, now).items()}


def what_rule(rule: dict[str, Any]) -> str:
    """The text that was shown when the rule was stored; a description for a rule without one."""
    from ..model.policy import describe_rule

    return describe_rule(rule["rule"])


async def rule_words(config: Config) -> dict[str, str]:
    """The text that names each rule where it decided a request, by rule id."""
    return {
        str(rule["id"]): f"your rule “{what_rule(rule)}” (always, {SCOPES.get(rule['scope'], rule['scope'])})"
        for rule in await kept_rules(config, everything=True)
    }


async def revoke_rule(config: Config, beginning: str) -> dict[str, Any]:
    """Revoke a rule, by the beginning of its id; the rule as it was. Raises Failure."""
    rule = await _find_rule(config, beginning)

    async def ask_hub(hub: RemoteHub) -> None:
        await hub.revoke_rule(rule["id"])

    async def change_log(hub: Hub) -> None:
        await hub.revoke_rule(rule["id"])

    await _with_hub(config, ask_hub, change_log)
    return rule


async def change_wide_rule(config: Config, beginning: str, *, narrow: bool) -> dict[str, Any]:
    """Narrow a wide rule, or keep it as it is, by the beginning of its id; the rule as it is now. Raises Failure."""
    rule = await _find_rule(config, beginning)
    if not rule["isWide"]:
        text = f"{rule['id']} covers only what it says ({what_rule(rule)})"
        raise Failure(f"{text}; only rules marked in `pilothouse policy rules` can be narrowed or kept", Exit.USAGE)

    async def ask_hub(hub: RemoteHub) -> dict[str, Any]:
        return await (hub.narrow_rule if narrow else hub.keep_rule)(rule["id"])

    async def change_log(hub: Hub) -> dict[str, Any]:
        from ..hub.recording.rules import keep_rule, narrow_rule

        changed = await (narrow_rule if narrow else keep_rule)(hub.log, rule["id"])
        return _row(changed, hub.log.now())

    changed: dict[str, Any] = await _with_hub(config, ask_hub, change_log)
    return changed


async def _find_rule(config: Config, beginning: str) -> dict[str, Any]:
    """The active rule whose id starts with `beginning`, with or without `rule_`. Raises Failure."""
    known = await kept_rules(config)
    found = [rule for rule in known if beginning and rule["id"].startswith((beginning, f"rule_{beginning}"))]
    exact = [rule for rule in found if rule["id"] == beginning]
    if len(exact or found) != 1:
        what = f"{beginning!r} matches {len(found)} rules" if found else f"No rule matches {beginning!r}"
        raise Failure(f"{what}. List them with: pilothouse policy rules", Exit.USAGE)
    return (exact or found)[0]


async def _with_hub(
    config: Config,
    ask_hub: Callable[[RemoteHub], Awaitable[Any]],
    change_log: Callable[[Hub], Awaitable[Any]],
) -> Any:
    """Let the running hub make a change, or make it here if none runs."""
    from ..app.composition import open_hub
    from ..app.stored_sessions import find_hub

    running = await find_hub(config)
    if running is not None:
        return await ask_hub(running)
    async with open_hub(config, []) as own:
        return await change_log(own)
