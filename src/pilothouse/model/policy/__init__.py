"""Policy: which tool calls are answered without asking a person.

    decide(policy, name, input, workspace) → allow | deny | ask, with the rule and one sentence

Order: every denial first, then every allowance, and what no rule speaks of is asked. `rules` holds what a policy may
say, `globs` its patterns, `calls` what a tool call is about, `places` where paths point, `sharp` the words no wildcard
stands for, `matching` and `denial` compare commands, `files` and `scripts` apply rules, `decision` puts it together.
Doubt never allows.

`reads: true` covers reading inside the workspace, no credentials; without a known workspace also absolute paths that
are no system files. `writes` covers writing and editing (not deleting or moving) inside the workspace, and redirections
of commands. `searches` covers listing, grep, glob and web searches; fetching a page is asked about. `commands` lists
patterns; `true` stands for every command of low or medium risk that has no wrapper for other rights, no assignment in
front and stays in the workspace. What does nothing by itself (`true`, `exit 1`, a `cd` inside the workspace) needs no
rule of its own beside one that allows a command. `tools` names other tools, such as `mcp__github__get_*`.
"""

from __future__ import annotations

from .decision import Decision, decide
from .rules import AutoApprove, DenyRules, Policy, Rule, compile_policy, parse_policy

__all__ = ["AutoApprove", "Decision", "DenyRules", "Policy", "Rule", "compile_policy", "decide", "parse_policy"]
