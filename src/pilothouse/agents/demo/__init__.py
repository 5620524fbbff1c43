"""The scripted agent: a prompt's first word is a command, the rest its arguments.

It needs no model and no network, does the same thing every time, and yet really reads, writes and runs things through
its client. It is the fixture for everything that talks to agents, and the first agent a newcomer meets.

    agent.py    the protocol: sessions, prompts, cancellation
    store.py    sessions and their history, in memory or in a directory
    turn.py     what a command can do: talk, open tool calls, ask
    script.py   the table of commands, and the tour
    talk.py     commands that only write, and commands that fail on purpose
    status.py   commands about the session, and commands that ask the client
    work.py     commands that act: files, shell commands, tool calls of every kind
"""

from __future__ import annotations

from .agent import DemoAgent, serve

__all__ = ["DemoAgent", "serve"]
