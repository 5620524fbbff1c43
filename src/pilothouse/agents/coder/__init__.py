"""The built-in coding agent: any model that pydantic-ai speaks, its work done through the client.

    agent.py       the protocol: sessions, prompts, cancellation          (needs no pydantic-ai, starts at once)
    session.py     one conversation: settings, what is always allowed, its turns
    history.py     sessions on disk
    modes.py       ask, plan, code, and the options a client may set
    turn.py        one prompt: what the model says and does, told as updates
    work.py        one tool call: announced, permitted, ended
    permission.py  the question before it, and what an "always" covers
    tools/         what the model can do; documents.py and disk.py are the files it does it with
    models.py      names of models; content.py, prompts.py, memory.py, compaction.py what goes to them and stays
    errors.py      what may go wrong with them, patience.py when to try again

`turn` and all below it import pydantic-ai, so `agent` imports them when a session has been open for a moment, or a
prompt comes.
"""

from __future__ import annotations

from .agent import CoderAgent, serve

__all__ = ["CoderAgent", "serve"]
