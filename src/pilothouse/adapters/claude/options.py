"""The options of a permission, and what each one tells the CLI.

An option grants what its name says and nothing else: the CLI suggests rules, directories and a change of mode in one
list, and whoever allows a command for good has not asked for every edit to be accepted.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .reading import items, mapping, shortened, text

__all__ = ["Choice", "mode_choices", "permission_choices", "set_mode"]

_SCOPES = {
    "session": "in this session",
    "localSettings": "in this project",
    "projectSettings": "in this project, for everyone",
    "userSettings": "everywhere",
}
_NAME = 120


class Choice(Struct, frozen=True):
    """One option: how it is shown, and what choosing it means."""

    id: str
    name: str
    kind: str
    permissions: tuple[dict[str, Any], ...] = ()
    stop: bool = False

    @property
    def allows(self) -> bool:
        return self.kind.startswith("allow")

    def option(self) -> dict[str, Any]:
        return {"optionId": self.id, "name": self.name, "kind": self.kind}


def set_mode(mode: str) -> dict[str, Any]:
    return {"type": "setMode", "mode": mode, "destination": "session"}


def permission_choices(suggested: Any) -> list[Choice]:
    """Options for a tool. The one that binds least comes first of its kind: who decides by kind takes the first."""
    wishes = [wish for wish in items(suggested) if isinstance(wish, dict)]
    modes = [wish for wish in wishes if wish.get("type") == "setMode" and text(wish.get("mode"))]
    grants = [wish for wish in wishes if wish.get("type") != "setMode"]
    choices = [Choice("allow", "Allow", "allow_once")]
    if grants:
        choices.append(Choice("allow_always", _grant_name(grants), "allow_always", tuple(grants)))
    for wish in modes:
        name = _MODE_NAMES.get(wish["mode"], f"Allow, and switch to mode {wish['mode']}")
        choices.append(Choice(f"mode:{wish['mode']}", name, "allow_always", (wish,)))
    return [*choices, *_REJECT]


_REJECT = (
    Choice("reject", "Reject", "reject_once"),
    Choice("stop", "Reject and stop", "reject_once", stop=True),
)
_MODE_NAMES = {
    "acceptEdits": "Allow, and accept all edits in this session",
    "bypassPermissions": "Allow, and never ask again in this session",
}


def _grant_name(grants: list[dict[str, Any]]) -> str:
    rules = [mapping(rule) for grant in grants for rule in items(grant.get("rules"))]
    what = [_rule_name(rule) for rule in rules if text(rule.get("toolName"))]
    what += [f"access to {text(one)}" for grant in grants for one in items(grant.get("directories")) if text(one)]
    scopes = {_SCOPES.get(text(grant.get("destination")), "") for grant in grants} - {""}
    scope = scopes.pop() if len(scopes) == 1 else ""
    return shortened(" ".join(filter(None, ("Always allow", ", ".join(what), scope))), _NAME)


def _rule_name(rule: dict[str, Any]) -> str:
    content = text(rule.get("ruleContent"))
    return f"{rule['toolName']}({content})" if content else text(rule["toolName"])


def mode_choices() -> list[Choice]:
    """Options for a plan: which mode the work begins in, or that planning goes on."""
    return [
        Choice("default", "Approve, and ask before edits", "allow_once", (set_mode("default"),)),
        Choice("acceptEdits", "Approve, and accept all edits", "allow_always", (set_mode("acceptEdits"),)),
        Choice("plan", "Keep planning", "reject_once"),
        Choice("stop", "Reject and stop", "reject_once", stop=True),
    ]
