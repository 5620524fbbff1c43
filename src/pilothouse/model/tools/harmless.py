"""Kinds and tools of calls that need no permission, for the flag "acted without asking".

Agents name their calls as they like, so a kind or a name excuses a call only if it shows no command and no edit, and
never a foreign tool (`mcp__server__tool`), whose approval covers no act of the hub. Nothing here grants anything.
"""

from __future__ import annotations

import re
from typing import cast

from ..risk import Level, worst
from .names import known, spelling

RISK: Level = "medium"
"""The lowest risk of a call that needs permission."""
HARMLESS_KINDS = frozenset({"read", "search", "think", "switch_mode"})
_OWN_NAMESPACE = re.compile(r"developer(?:__|: )|skills(?:__|: )")
_TOOLS = frozenset(
    {
        # they add text to the conversation, or report to the user
        *("slashcommand", "skill", "loadskill", "invalid", "reportintent", "attemptcompletion", "planmoderespond"),
        *("structuredoutput", "completetask", "taskcomplete"),
        # they stop or read what the agent itself has started, or write to its own sub-agents
        *("killshell", "killbash", "stopbash", "taskstop", "taskoutput", "sendmessage", "senddmail", "sendinput"),
        *("closeagent", "waitagent"),
        # they look things up
        *("lsp", "tree", "analyze", "codebaseretrieval"),
    }
)


def is_risky(level: str) -> bool:
    return worst([cast(Level, level), RISK]) == level


def is_foreign_tool(name: str) -> bool:
    """Whether a tool belongs to a server, not to the agent."""
    return "__" in name and known(name) is None and _OWN_NAMESPACE.match(name) is None


def is_harmless_tool(name: str) -> bool:
    """Whether this is an agent's own tool without effects, in any spelling; Goose adds the argument: `tree · src`."""
    own = _OWN_NAMESPACE.sub("", name.partition(" · ")[0], count=1)
    return spelling(own) in _TOOLS and not is_foreign_tool(name)
