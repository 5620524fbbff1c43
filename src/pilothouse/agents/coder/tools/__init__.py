"""The tools of the model. Each is a function; its docstring is what the model is told of it.

Their names and the names of their arguments are those that models know best from other agents. Adding one means a
function here and, if it is to be had in the ask or plan mode, its name in modes.py.
"""

from __future__ import annotations

from .files import apply_patch, edit, read, write
from .planning import task, todo
from .search import glob, grep
from .shell import bash
from .web import web_fetch

__all__ = ["CHANGING", "FOR_SUB_AGENTS", "TOOLS"]

TOOLS = (read, write, edit, apply_patch, glob, grep, bash, web_fetch, todo, task)
FOR_SUB_AGENTS = tuple(tool for tool in TOOLS if tool not in (todo, task))
"""A sub-agent delegates nothing, and the plan is not its own."""
CHANGING = (write, edit, apply_patch, bash)
"""Of the calls of one answer these run alone, in their order; what stands between them runs side by side."""
