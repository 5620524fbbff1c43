"""The prompts of a probe. Each asks for one thing only, so that what is seen after it can be told to be its effect."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COMMAND", "DEMO_SCRIPT", "FILE", "NOTE", "PROMPTS", "SCRIPT", "WORD", "Script"]

WORD = "pilothouse-probe"
"""Stands in every command and file of a probe."""
COMMAND = f"echo {WORD}"
"""What the agent is told to run."""
FILE = f"{WORD}.txt"
"""What the agent is told to write."""
NOTE = f"{WORD}-note.txt"
"""A file that is there, with a word in it that no prompt has."""
PROMPTS = 5


@dataclass(frozen=True, slots=True)
class Script:
    """`long` must keep the agent busy until it is cancelled."""

    say: str
    read: str
    write: str
    run: str
    long: str


SCRIPT = Script(
    say=f"Answer with the single word {WORD} and nothing else. Use no tools.",
    read=f"Read the file {NOTE} in the current directory and tell me the one word in it. Do nothing else.",
    write=f"Create the file {FILE} in the current directory with the content `hello`. Do nothing else.",
    run=f"Run the shell command `{COMMAND}` and tell me its output. Do nothing else.",
    long="Write a story of two thousand words about a lighthouse. Use no tools.",
)

DEMO_SCRIPT = Script(
    say=f"echo {WORD}", read=f"read {NOTE}", write=f"edit {FILE} hello", run=f"bash {COMMAND}", long="slow 60"
)
