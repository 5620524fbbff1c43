"""Agents that come with Pilothouse. They are programs on the protocol library; nothing of the hub is in them.

claude_bridge/ Claude Code through its own command line
coder/         the built-in agent, which works with a model
demo/          the scripted agent, which needs none
replay.py      a recorded session as an agent
sessions.py    sessions and their transcripts, as the coder and the demo agent keep them
toolcall.py    a tool call from its announcement to its end
commands.py    a shell command, in a terminal of the client or as a child process
"""
