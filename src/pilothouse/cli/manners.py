"""How a conversation in the terminal is held: what the options of a command come to."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Manners"]


class Manners(Struct, frozen=True, kw_only=True):
    """How a conversation is held.

    `parks`: what nobody here can answer is left to others, not denied, if the hub is elsewhere. `echo`: prompts are
    shown. `hint` says what Ctrl-C does.
    """

    as_json: bool = False
    approve_all: bool = False
    approve_reads: bool = False
    parks: bool = False
    echo: bool = False
    hint: str = "Ctrl-C stops"
