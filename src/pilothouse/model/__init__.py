"""Nouns and rules of sessions, without any I/O: events, commands, the fold, tools, risk, policy."""
