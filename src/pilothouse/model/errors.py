"""Errors as facts: the record that events, HTTP bodies and commands carry when something failed.

An agent's failure is an event with one of these; a Python exception is for the caller who did something wrong, and
for that the protocol library's `ValidationError`, which names the field, serves this package too.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..acp.errors import ValidationError
from ..acp.naming import camel

__all__ = ["ACPError", "ValidationError"]


class ACPError(Struct, kw_only=True, omit_defaults=True, rename=camel):
    """What went wrong, for programs (`code`) and for people (`message`), and whether the session can go on."""

    code: str
    message: str
    recoverable: bool
    details: Any = None
    agent_code: str | None = None
