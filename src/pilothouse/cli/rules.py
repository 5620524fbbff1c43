"""The rules that "always" made: found with a hub or without one, taken back, and told in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .exits import Exit, Failure

if TYPE_CHECKING:
    from ..config import Config

__all__ = ["NAMED", "kept_rules", "revoke_rule", "rule_words", "what_rule"]

NAMED = re.compile(rb"always:(rule_\w+)")
"""How an event names the rule that decided."""
SCOPES = {"session": "this session", "project": "this project", "everywhere": "everywhere"}


async def kept_rules(config: Config, *, everything: bool = False) -> list[dict[str, Any]]:
    """Rules as the hub tells them, oldest first; with `everything` also those that answer nothing any more."""
    import msgspec

    from ..acp.naming import camel
    from ..app.archive import open_archive

    async with open_archive(config) as archive:  # also right while a hub runs: what is stored is what holds
        found = await (archive.rules.list() if everything else archive.rules.active())
        now = archive.now()
    rows = []
    for record in found:
        row = {camel(key): value for key, value in msgspec.structs.asdict(record).items()}
        rows.append({**row, "active": record.active(now)})
    return rows


def what_rule(rule: dict[str, Any]) -> str:
    """What a rule is about, in a word or two."""
    pattern = rule["rule"].get("pattern")
    return str(pattern) if pattern is not None else f"all {rule['rule'].get('subject')}"


async def rule_words(config: Config) -> dict[str, str]:
    """What each rule is called where it decides, by its id."""
    return {
        str(rule["id"]): f"your rule `{what_rule(rule)}` (always, {SCOPES.get(rule['scope'], rule['scope'])})"
        for rule in await kept_rules(config, everything=True)
    }


async def revoke_rule(config: Config, beginning: str) -> dict[str, Any]:
    """Take a rule back, by the beginning of its id; the rule as it was. Raises Failure."""
    from ..app.composition import open_hub
    from ..app.running import find_hub

    known = await kept_rules(config)
    found = [rule for rule in known if beginning and rule["id"].startswith((beginning, f"rule_{beginning}"))]
    exact = [rule for rule in found if rule["id"] == beginning]
    if len(exact or found) != 1:
        what = "no rule in force fits" if not found else f"{len(found)} rules in force fit"
        raise Failure(f"{what} {beginning!r}; `pilothouse policy rules` lists them", Exit.USAGE)
    (rule,) = exact or found
    hub = await find_hub(config)
    if hub is not None:
        await hub.revoke_rule(rule["id"])
    else:
        async with open_hub(config, []) as own:
            await own.revoke_rule(rule["id"])
    return rule
