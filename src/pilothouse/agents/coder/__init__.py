"""The built-in coding agent: any model that pydantic-ai speaks, its work done through the client.

    agent.py       the protocol: sessions, prompts, cancellation          (needs no pydantic-ai, starts at once)
    session.py     one conversation: settings, remembered permissions, turns; and the sessions on disk
    host.py        the client: its capabilities and configuration, and its answers to permission requests
    modes.py       ask, plan, code, and the options a client may set
    turn.py        one prompt: the text and the calls of the model, sent as updates
    worker.py      the model with its tools and instructions, and retries
    work.py        one tool call: announced, permitted, ended
    tools/         the tools of the model; workspace.py has the directories and files that they use
    models.py      models of pydantic-ai, by their names in model_names.py
    memory.py      the conversation as a model has it; content.py and compaction.py prepare it
    errors.py      the errors of a model, as clients receive them

`turn` and all below it import pydantic-ai, so `agent` imports them when a session has been open for a moment, or a
prompt comes.
"""

from __future__ import annotations

from .agent import CoderAgent, serve

__all__ = ["CoderAgent", "serve"]
