"""Policies as typed values: `Policy` as it is written, `Rule` as it is applied.

A policy is the document's JSON (`{"autoApprove": {"reads": true, "writes": ["src/**/*.ts"], "commands": ["npm test"],
"searches": true}}`) with three additions of ours: `autoApprove.web` (origins that pages may be fetched from),
`autoApprove.tools` (names of other tools) and `deny`, which has the same members or is a plain list whose entries each
deny a tool and a command of that name. `compile_policy` turns it into rules, denials first; a rule keeps where it was
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from ...acp.naming import camel
from ..errors import ValidationError
from .globs import command_glob, is_wild, path_glob
from .places import may_expand_to_secret, path_covered, path_free
from .web import parse_origin

Subject = Literal["reads", "writes", "commands", "searches", "web", "tools"]
Effect = Literal["allow", "deny"]


class AutoApprove(Struct, frozen=True, kw_only=True, omit_defaults=True, rename=camel):
    """What is allowed without asking; `True` covers everything that may be covered, a list only what it names."""

    reads: bool | tuple[str, ...] = False
    writes: bool | tuple[str, ...] = False
    commands: bool | tuple[str, ...] = False
    searches: bool = False
    web: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class DenyRules(Struct, frozen=True, kw_only=True, omit_defaults=True, rename=camel):
    """What is denied without asking, whatever else allows it."""

    reads: bool | tuple[str, ...] = False
    writes: bool | tuple[str, ...] = False
    commands: bool | tuple[str, ...] = False
    searches: bool = False
    web: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Policy(Struct, frozen=True, kw_only=True, omit_defaults=True, rename=camel):
    """Which tool calls are answered without asking; the empty policy asks about everything."""

    auto_approve: AutoApprove = field(default_factory=AutoApprove)
    deny: DenyRules = field(default_factory=DenyRules)


STORED = "always:"
"""How the source of a stored "always" rule begins; its id follows."""


class Rule(Struct, frozen=True, omit_defaults=True, rename=camel):
    """One line of a policy: its subject, its pattern (none: all of the subject), and where it was written.

    `arguments` limits a rule about a tool to calls with exactly this input; without it any input is covered.
    """

    effect: Effect
    subject: Subject
    pattern: str | None = None
    source: str = ""
    arguments: dict[str, Any] | None = None

    @property
    def label(self) -> str:
        """How the rule is named to people, such as `autoApprove.commands[1]: npm test`."""
        where = self.source or f"{self.effect} {self.subject}"
        return where if self.pattern is None else f"{where}: {self.pattern}"


_PATTERNS: dict[str, Callable[[str], object]] = {
    "reads": path_glob,
    "writes": path_glob,
    "commands": command_glob,
    "web": parse_origin,
}
# what each member may be: a yes or no, a list of patterns, or either
_MEMBERS = {
    "reads": (bool, list),
    "writes": (bool, list),
    "commands": (bool, list),
    "searches": (bool,),
    "web": (list,),
    "tools": (list,),
}
_KINDS = {(bool, list): "true, false or a list of strings", (bool,): "true or false", (list,): "a list of strings"}


def parse_policy(value: Any) -> Policy:
    """The typed policy of a JSON value; `None` and `{}` give the policy that asks about everything.

    Raises:
        ValidationError: a member has the wrong type or is unknown, or a pattern cannot be read; it names the member.
    """
    if isinstance(value, Policy):
        compile_policy(value)
        return value
    if value is None:
        return Policy()
    members = _object(value, "policy", {"autoApprove", "auto_approve", "deny"})
    if "autoApprove" in members and "auto_approve" in members:
        raise ValidationError("expected one of `autoApprove` and `auto_approve`", "auto_approve")
    allow = members.get("autoApprove", members.get("auto_approve"))
    return Policy(auto_approve=AutoApprove(**_side(allow, "autoApprove")), deny=_deny(members.get("deny")))


def _object(value: Any, where: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValidationError(f"expected an object, got {_kind(value)}", where)
    for name in value:
        if name not in known:
            # a misspelt `deny` that is passed over would be a denial that never happens
            path = (str(name) or "''") if where == "policy" else f"{where}.{name}"
            raise ValidationError(f"unknown member; expected one of {', '.join(sorted(known))}", path)
    return value


def _deny(value: Any) -> DenyRules:
    if isinstance(value, list | tuple):
        entries = _strings(value, "deny")
        for index, entry in enumerate(entries):
            _check("commands", entry, f"deny[{index}]")
        names = tuple(entry for entry in entries if not any(one.isspace() for one in entry))
        return DenyRules(commands=entries, tools=names)
    return DenyRules(**_side(value, "deny"))


def _side(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    members = _object(value, where, set(_MEMBERS))
    return {name: _member(name, member, f"{where}.{name}") for name, member in members.items() if member is not None}


def _member(name: str, value: Any, where: str) -> bool | tuple[str, ...]:
    kinds = _MEMBERS[name]
    if bool in kinds and isinstance(value, bool):
        return value
    if list in kinds and isinstance(value, list | tuple):
        patterns = _strings(value, where)
        for index, pattern in enumerate(patterns):
            _check(name, pattern, f"{where}[{index}]")
        return patterns
    raise ValidationError(f"expected {_KINDS[kinds]}, got {_kind(value)}", where)


def _strings(values: list[Any] | tuple[Any, ...], where: str) -> tuple[str, ...]:
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise ValidationError(f"expected a string, got {_kind(value)}", f"{where}[{index}]")
        if not value.strip():
            raise ValidationError("expected a pattern, got an empty string", f"{where}[{index}]")
    return tuple(values)


def _check(name: str, pattern: str, where: str) -> None:
    try:
        _PATTERNS.get(name, str)(pattern)
    except ValueError as error:
        raise ValidationError(str(error), where) from None


def check_rule(rule: Rule) -> None:
    """Check a rule that was built by hand or read from a record.

    Raises:
        ValidationError: its pattern cannot be read, or it has arguments but does not name a tool.
    """
    if rule.arguments is not None and (rule.subject != "tools" or rule.pattern is None):
        raise ValidationError("expected arguments only with the name of a tool", rule.source or rule.subject)
    if rule.pattern is not None:
        _check(rule.subject, rule.pattern, rule.source or rule.subject)


def _kind(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", type(None): "null"}
    names |= {list: "a list", tuple: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def compile_policy(policy: Policy) -> tuple[Rule, ...]:
    """The rules of a policy in the order they are asked: every denial, then every allowance.

    Raises:
        ValidationError: a pattern cannot be read (a `Policy` that was built by hand is not checked before).
    """
    return (*_rules("deny", "deny", policy.deny), *_rules("allow", "autoApprove", policy.auto_approve))


def _rules(effect: Effect, where: str, side: AutoApprove | DenyRules) -> list[Rule]:
    found: list[Rule] = []
    subjects: tuple[Subject, ...] = ("tools", "web", "commands", "writes", "reads", "searches")
    for subject in subjects:
        value = _member(subject, getattr(side, subject), f"{where}.{subject}")
        if value is True:
            found.append(Rule(effect, subject, None, f"{where}.{subject}"))
        elif value is not False:
            found += [Rule(effect, subject, one, f"{where}.{subject}[{index}]") for index, one in enumerate(value)]
    return found


def cover_path(rules: list[Rule], path: str, workspace: str | None, *, writing: bool) -> tuple[str, Rule | None]:
    """The rule that covers a path, or why none does."""
    why = ""
    for rule in rules:
        if rule.pattern is None:
            answer = path_free(path, workspace, writing=writing)
        else:
            answer = path_covered(path_glob(rule.pattern), path, workspace, writing=writing)
        if answer is None and not writing and _may_be_secret(path):
            answer = "a wildcard in it may stand for a credential file"
        if answer is None:
            return "", rule
        why = why or answer
    return why, None


def search_refusal(path: str, workspace: str | None) -> str | None:
    try:
        choices = path_glob(path).alternatives
    except ValueError:
        return "its pattern cannot be read"
    answer = None
    for choice in choices:
        answer = answer or path_free("/".join(choice), workspace, writing=False)
    if answer is None and any(part.startswith(".") and is_wild(part) for part in path.split("/")):
        answer = "a wildcard in it may stand for a credential file"
    return answer


def _may_be_secret(path: str) -> bool:
    return any(is_wild(part) and may_expand_to_secret(part) for part in path.replace("\\", "/").split("/"))
