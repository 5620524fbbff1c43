"""A small terminal client for the scripted agent.

conversation.py drives it, client.py answers the agent, screen.py draws, keyboard.py reads, workspace.py holds the
files and terminals that the agent may use.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from .conversation import Conversation
from .keyboard import Keyboard
from .screen import Screen
from .workspace import Workspace

__all__ = ["run"]


def run(prompt: str = "", *, cwd: Path | None = None, approve_all: bool = False) -> int:
    """Talk to the scripted agent until the user leaves; the answer is an exit code."""
    if cwd is not None:
        return _run(prompt, cwd, approve_all)
    with tempfile.TemporaryDirectory(prefix="pilothouse-demo-") as directory:
        return _run(prompt, Path(directory), approve_all)


def _run(prompt: str, root: Path, approve_all: bool) -> int:
    console = Console(highlight=False)
    workspace = Workspace(root)
    screen = Screen(console, workspace.root, workspace.shown)
    keyboard = Keyboard() if sys.stdin.isatty() and console.is_terminal else None
    return asyncio.run(Conversation(screen, workspace, keyboard, approve_all=approve_all).run(prompt))
