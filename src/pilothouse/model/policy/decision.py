"""The decision: denials first, then allowances, otherwise ask.

`decide` applies the rules in that order and says in one sentence what it did and why. A script is denied when any of
its commands is, and allowed only when every command in it, and every file it writes by redirection, is covered by some
rule. A policy that cannot be read, a command that cannot be parsed and a tool nobody knows are asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ..errors import ValidationError
from ..shell import Script, parse
from .calls import Call, read_call
from .denial import MAYBE
from .files import cover_path, search_refusal
from .globs import command_glob, generous, is_wild, path_glob, tool_name_matches
from .moves import Site, foreign, leaves_workspace, moves_to
from .places import path_denied, path_free, place
from .rules import Policy, Rule, compile_policy, parse_policy
from .scripts import Judge, script_denied, shown

__all__ = ["Decision", "decide"]

Outcome = Literal["allow", "deny", "ask"]
Rules = tuple[Rule, ...]


class Decision(Struct, frozen=True):
    """What a policy says about one tool call, the rule that decided if one did, and why in one sentence."""

    outcome: Outcome
    rule: str | None = None
    reason: str = ""

    @property
    def allowed(self) -> bool:
        return self.outcome == "allow"


def decide(
    policy: Policy | Mapping[str, Any] | Sequence[Rule] | None,
    name: object,
    input: object = None,  # noqa: A002
    workspace: str | None = None,
) -> Decision:
    """What `policy` says about a call of the tool `name` with `input`, in a session whose directory is `workspace`.

    No rules, given as None, as an empty list or as an empty policy, means that everything is asked about.
    Paths are compared by their letters. Links on the disk cannot be seen here: who has the disk resolves them first.
    Never raises for any JSON; a policy that cannot be read asks, and its reason names the member.
    """
    try:
        rules = _rules(policy)
    except ValidationError as error:
        return Decision("ask", None, f"Ask: the policy cannot be read: {error}.")
    call = read_call(name, input)
    base = workspace if isinstance(workspace, str) and workspace else None
    if call.kind == "command":
        return _decide_command(rules, call, base)
    return _decide_tool(rules, call, base)


def _rules(policy: object) -> Rules:
    if isinstance(policy, list | tuple) and all(isinstance(rule, Rule) for rule in policy):
        for rule in policy:
            _readable(rule)
        return tuple(policy)
    return compile_policy(parse_policy(policy))


def _readable(rule: Rule) -> None:
    readers = {"commands": command_glob, "reads": path_glob, "writes": path_glob}
    try:
        readers.get(rule.subject, str)(rule.pattern) if rule.pattern is not None else None
    except ValueError as error:
        raise ValidationError(str(error), rule.source or rule.subject) from None


def _pick(rules: Rules, effect: str, *subjects: str) -> list[Rule]:
    return [rule for rule in rules if rule.effect == effect and rule.subject in subjects]


# Sentences -----------------------------------------------------------------------------------------------------------


def _ask(what: str, why: str) -> Decision:
    return Decision("ask", None, f"Ask: {shown(what)} is not covered by a rule{', because ' + why if why else ''}.")


def _deny(what: str, rule: Rule) -> Decision:
    pattern = f"matches the rule {shown(rule.pattern)}" if rule.pattern is not None else f"falls under `{rule.label}`"
    return Decision("deny", rule.label, f"Denied: {shown(what)} {pattern}.")


def _allow(what: str, used: list[Rule]) -> Decision:
    if not used:
        return Decision("allow", "no rule needed", f"Allowed: {shown(what)} does nothing.")
    labels = list(dict.fromkeys(rule.label for rule in used))
    patterns = list(dict.fromkeys(shown(rule.pattern) if rule.pattern is not None else rule.label for rule in used))
    if len(patterns) == 1:
        why = f"matches the rule {patterns[0]}" if used[0].pattern is not None else f"falls under `{patterns[0]}`"
    else:
        why = f"is covered by the rules {', '.join(patterns)}"
    return Decision("allow", ", ".join(labels), f"Allowed: {shown(what)} {why}.")


# Tools ---------------------------------------------------------------------------------------------------------------

_DENIED_BY = {"reads": ("reads",), "writes": ("writes",), "searches": ("searches", "reads"), "web": ("searches",)}


def _decide_tool(rules: Rules, call: Call, workspace: str | None) -> Decision:
    what = f"{call.name or 'the tool'} {' '.join(call.paths)}".strip()
    for rule in _pick(rules, "deny", "tools", *_DENIED_BY.get(call.kind, ("reads", "writes"))):
        if _tool_denied(rule, call, workspace):
            return _deny(what, rule)
    if call.doubt:
        return _ask(what, call.doubt)
    named = _pick(rules, "allow", "tools")
    if call.kind == "other":
        answer, used = _other(named, call, workspace)
    else:
        subjects = {"web": ("searches",), "reads": ("reads", "searches") if call.tool == "LS" else ("reads",)}
        covering = _pick(rules, "allow", *subjects.get(call.kind, (call.kind,)))
        answer, used = _covered(covering, call, workspace)
        if answer is not None:
            # a tool that reads or writes must be named in full
            literal = [rule for rule in named if rule.pattern and not is_wild(rule.pattern)]
            other, found = _other(literal, call, workspace)
            answer, used = (None, found) if other is None else (answer, used)
    return _allow(what, used) if answer is None else _ask(what, answer)


def _tool_denied(rule: Rule, call: Call, workspace: str | None) -> bool:
    if rule.subject == "tools":
        pattern = rule.pattern or "*"
        return any(tool_name_matches(generous(pattern), generous(name)) for name in (call.name, call.tool))
    if rule.pattern is None:
        return rule.subject == call.kind or (rule.subject == "searches" and call.kind == "web")
    glob = path_glob(rule.pattern)
    return any(path_denied(glob, path, workspace) for path in call.paths)


def _other(named: list[Rule], call: Call, workspace: str | None) -> tuple[str | None, list[Rule]]:
    rule = next((one for one in named if one.pattern and tool_name_matches(one.pattern, call.name)), None)
    if rule is None or not call.name.isascii():
        return "", []
    for path in call.paths:
        if (answer := path_free(path, workspace, writing=call.kind != "reads")) is not None:
            return answer, []
    return None, [rule]


def _covered(rules: list[Rule], call: Call, workspace: str | None) -> tuple[str | None, list[Rule]]:
    if not rules:
        return "", []
    if call.kind in ("searches", "web"):
        answers = [search_refusal(path, workspace) for path in call.paths] if call.kind == "searches" else []
        return next((answer for answer in answers if answer is not None), None), rules[:1]
    if not call.paths:
        if call.tool == "LS":
            return None, rules[:1]
        return "it names no path", []
    used: list[Rule] = []
    for path in call.paths:
        answer, rule = cover_path(rules, path, workspace, writing=call.kind == "writes")
        if rule is None:
            return answer, []
        used.append(rule)
    return None, used


# Commands ------------------------------------------------------------------------------------------------------------


def _decide_command(rules: Rules, call: Call, workspace: str | None) -> Decision:
    text = call.command or call.name
    for rule in _pick(rules, "deny", "tools"):
        if _tool_denied(rule, call, workspace):
            return _deny(text, rule)
    if call.doubt and not call.command:
        return _ask(text, call.doubt)
    script, written = parse(call.command), parse(call.command, unwrapped=False)
    everything = (*script.commands, *written.commands)
    doubt = None
    for rule in _pick(rules, "deny", "commands", "reads", "writes"):
        answer = script_denied(rule, script, everything, call.command, workspace)
        if answer == "yes":
            return _deny(text, rule)
        if answer == MAYBE:
            doubt = doubt or f"it may be what `{rule.label}` denies"
    if any(not place(directory, workspace).inside for directory in call.directories):
        doubt = doubt or "it starts outside the workspace"
    elif any(foreign(place(directory, workspace).parts) for directory in call.directories):
        doubt = doubt or "it starts among files that the project did not write"
    doubt = call.doubt or _unreadable(script) or doubt
    if doubt is None:
        allowing = _pick(rules, "allow", "commands", "writes")
        start = moves_to(script.commands, workspace)
        for directory in call.directories:
            parts = place(directory, workspace).parts
            start = "/".join(parts) if parts and not start else "?" if parts else start
        site = Site(workspace, leaves_workspace(everything, workspace), start)
        doubt, used = Judge(allowing, call.command, site, written).script(script.commands)
        if doubt is None:
            return _allow(text, used)
    return _ask(text, doubt)


def _unreadable(script: Script) -> str | None:
    if script.errors:
        return f"it cannot be read with certainty: {script.errors[0]}"
    if "lookalike" in script.features:
        return "it has characters that look like others"
    return None if script.commands else "it runs nothing"
