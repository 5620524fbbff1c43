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
from ..tools import file_paths
from .calls import Call, are_same_arguments, read_call
from .globs import generous, is_wild, path_glob, tool_name_matches
from .matching import Site, foreign, leaves_workspace, moves_to
from .places import path_denied, path_free, place
from .rules import Policy, Rule, check_rule, compile_policy, cover_path, parse_policy, search_refusal
from .scripts import MAYBE, Judge, mentions_denied, script_denied, shown
from .web import fetched_origin, mentions_origin, parse_origin

Outcome = Literal["allow", "deny", "ask"]
Rules = tuple[Rule, ...]


class Decision(Struct, frozen=True):
    """What a policy says about one tool call, the rule that decided if one did, and why in one sentence."""

    outcome: Outcome
    rule: str | None = None
    reason: str = ""
    may_be_denied: bool = False
    """Whether a rule may deny it, which is not known before it runs; only the user can allow it."""

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
            check_rule(rule)
        return tuple(policy)
    return compile_policy(parse_policy(policy))


def _pick(rules: Rules, effect: str, *subjects: str) -> list[Rule]:
    return [rule for rule in rules if rule.effect == effect and rule.subject in subjects]


# Sentences -----------------------------------------------------------------------------------------------------------


def _ask(what: str, why: str, *, may_be_denied: bool = False) -> Decision:
    reason = f"Ask: {shown(what)} is not covered by a rule{', because ' + why if why else ''}."
    return Decision("ask", None, reason, may_be_denied)


def _rule_text(rule: Rule) -> str:
    if rule.pattern is None:
        return rule.label
    return f"{shown(rule.pattern)} with exactly these arguments" if rule.arguments is not None else shown(rule.pattern)


def _deny(what: str, rule: Rule) -> Decision:
    name = _rule_text(rule)
    why = f"matches the rule {name}" if rule.pattern is not None else f"falls under `{name}`"
    return Decision("deny", rule.label, f"Denied: {shown(what)} {why}.")


def _allow(what: str, used: list[Rule]) -> Decision:
    if not used:
        return Decision("allow", "no rule needed", f"Allowed: {shown(what)} does nothing.")
    labels = list(dict.fromkeys(rule.label for rule in used))
    patterns = list(dict.fromkeys(_rule_text(rule) for rule in used))
    if len(patterns) == 1:
        why = f"matches the rule {patterns[0]}" if used[0].pattern is not None else f"falls under `{patterns[0]}`"
    else:
        why = f"is covered by the rules {', '.join(patterns)}"
    return Decision("allow", ", ".join(labels), f"Allowed: {shown(what)} {why}.")


# Tools ---------------------------------------------------------------------------------------------------------------

_DENIED_BY = {
    "reads": ("reads",),
    "writes": ("writes",),
    "searches": ("searches", "reads"),
    "web_search": ("searches",),
}


def _decide_tool(rules: Rules, call: Call, workspace: str | None) -> Decision:
    what = f"{call.name or 'the tool'} {' '.join(call.paths)}".strip()
    for rule in _pick(rules, "deny", "tools", *_DENIED_BY.get(call.kind, ("reads", "writes", "web"))):
        if _tool_denied(rule, call, workspace):
            return _deny(what, rule)
    if call.doubt:
        return _ask(what, call.doubt)
    named = _pick(rules, "allow", "tools")
    if call.kind == "other":
        answer, used = _named(named, call, workspace)
    else:
        subjects = {
            "web_search": ("searches",),
            "fetch": ("web",),
            "reads": ("reads", "searches") if call.tool == "LS" else ("reads",),
        }
        covering = _pick(rules, "allow", *subjects.get(call.kind, (call.kind,)))
        answer, used = _covered(covering, call, workspace)
        if answer is not None:
            if call.kind != "fetch":
                # a tool that reads or writes must be named in full
                named = [rule for rule in named if rule.arguments is not None or not is_wild(rule.pattern or "*")]
            other, found = _named(named, call, workspace)
            answer, used = (None, found) if other is None else (answer or other, used)
    return _allow(what, used) if answer is None else _ask(what, answer)


def _tool_denied(rule: Rule, call: Call, workspace: str | None) -> bool:
    if rule.subject == "tools":
        return _is_denied_tool(rule, call)
    if rule.pattern is None:
        kinds = {"searches": ("searches", "web_search"), "web": ("fetch",)}
        return call.kind in kinds.get(rule.subject, (rule.subject,))
    if rule.subject == "web":
        return mentions_origin(call.raw, parse_origin(rule.pattern), everywhere=call.kind == "fetch")
    glob = path_glob(rule.pattern)
    return any(path_denied(glob, path, workspace) for path in call.paths)


def _is_denied_tool(rule: Rule, call: Call) -> bool:
    """Whether a denial names the tool, in any spelling, and, if it names arguments, exactly these."""
    pattern = generous(rule.pattern or "*")
    names = (generous(call.name), generous(call.tool))
    if rule.arguments is None:
        return any(tool_name_matches(pattern, name) for name in names)
    return pattern in names and are_same_arguments(rule.arguments, call.raw)


def _named(named: list[Rule], call: Call, workspace: str | None) -> tuple[str | None, list[Rule]]:
    """Why no rule that names the tool covers the call, or the rule that does."""
    why = ""
    for rule in named if call.name.isascii() else ():
        if rule.arguments is None:
            fits = bool(rule.pattern) and tool_name_matches(rule.pattern or "", call.name)
            paths: Sequence[str] = call.paths
        else:
            # a rule with arguments fits one tool name exactly, and its arguments name every path
            fits = rule.pattern == call.name and are_same_arguments(rule.arguments, call.raw)
            paths = file_paths(call.raw)
        if not fits:
            continue
        answers = (path_free(path, workspace, writing=call.kind != "reads") for path in paths)
        answer = next((one for one in answers if one is not None), None)
        if answer is None:
            return None, [rule]
        why = why or answer
    return why, []


def _covered(rules: list[Rule], call: Call, workspace: str | None) -> tuple[str | None, list[Rule]]:
    if not rules:
        return "", []
    if call.kind == "fetch":
        origin = fetched_origin(call.raw)
        fits = [rule for rule in rules if rule.pattern is not None and parse_origin(rule.pattern) == origin]
        return (None if fits else ""), fits[:1]
    if call.kind in ("searches", "web_search"):
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
    may_be_denied = False
    for rule in _pick(rules, "deny", "commands", "reads", "writes"):
        answer = script_denied(rule, script, everything, call.command, workspace)
        if answer == "yes":
            return _deny(text, rule)
        if answer == MAYBE:
            doubt = doubt or f"it may be what `{rule.label}` denies"
        may_be_denied = may_be_denied or answer == MAYBE or mentions_denied(rule, script, everything)
    if any(not place(directory, workspace).inside for directory in call.directories):
        doubt = doubt or "it starts outside the workspace"
    elif any(foreign(place(directory, workspace).parts) for directory in call.directories):
        doubt = doubt or "it starts among files that the project did not write"
    if not call.is_shell:
        return _decide_other_tool(rules, call, workspace, call.doubt or doubt)
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
    return _ask(text, doubt, may_be_denied=may_be_denied)


def _decide_other_tool(rules: Rules, call: Call, workspace: str | None, doubt: str | None) -> Decision:
    """Of a tool that is not a shell, only a rule with exactly these arguments allows a command."""
    if doubt is None:
        exact = [rule for rule in _pick(rules, "allow", "tools") if rule.arguments is not None]
        answer, used = _named(exact, call, workspace)
        if answer is None:
            return _allow(call.name, used)
        doubt = answer or f"it is not known where {call.name or 'its tool'} runs commands"
    return _ask(call.command, doubt)


def _unreadable(script: Script) -> str | None:
    if script.errors:
        return f"it cannot be read with certainty: {script.errors[0]}"
    if "lookalike" in script.features:
        return "it has characters that look like others"
    return None if script.commands else "it runs nothing"
