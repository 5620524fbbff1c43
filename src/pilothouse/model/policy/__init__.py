"""Policy: which tool calls are answered without asking a user.

    decide(policy, name, input, workspace) → allow | deny | ask, with the rule and one sentence
    offer_rules(name, input, workspace) → the rules that "always" can store for a request, or why there are none

Order: every denial first, then every allowance; a call that no rule covers is asked about. `rules` holds the grammar of
a policy, `globs` its patterns, `calls` reads tool calls, `places` locates paths, `web` reads origins,
`sharp` and its table `options` list the words no wildcard stands for, `matching` compares commands, `scripts` applies
rules to a script, `decision` puts it together, `offers` makes rules of requests. Doubt never allows.

`reads: true` covers reading inside the workspace, no credentials; without a known workspace also absolute paths that
are no system files. `writes` covers writing and editing (not deleting or moving) inside the workspace, and redirections
of commands. `searches` covers listing, grep, glob and web searches. `web` lists origins that pages may be fetched from;
fetching any other page is asked about. `commands` lists patterns; `true` stands for every command of low or medium risk
that has no wrapper for other rights, no assignment in front and stays in the workspace. A command without effect
(`true`, `exit 1`, a `cd` inside the workspace) needs no rule of its own next to an allowed one. `tools` names other
tools, such as `mcp__github__get_*`.
"""

from __future__ import annotations

from .decision import Decision, decide
from .offers import describe_rule, offer_rules
from .rules import AutoApprove, DenyRules, Policy, Rule, compile_policy, parse_policy

__all__ = [
    "AutoApprove",
    "Decision",
    "DenyRules",
    "Policy",
    "Rule",
    "compile_policy",
    "decide",
    "describe_rule",
    "offer_rules",
    "parse_policy",
]
