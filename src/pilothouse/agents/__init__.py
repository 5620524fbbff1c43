"""Agents that come with Pilothouse. They are programs on the protocol library; nothing of the hub is in them.

coder/         the built-in agent, which works with a model
demo/          the scripted agent, which needs none
replay.py      a recorded session as an agent
sessions.py    what the first two do with sessions in the same way, and transcript.py what is kept of one
toolcall.py    a tool call from its announcement to its end
commands.py    a shell command, in a terminal of the client or as a child (child.py)
failure.py     what could not be done, and why
"""
