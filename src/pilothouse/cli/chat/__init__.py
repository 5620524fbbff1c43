"""Conversations in line mode: a session in the terminal."""
