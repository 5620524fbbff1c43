"""What a later reader must be able to find out: who came in, who did not, who was let go, and who changed what.

One line of JSON to the logger `pilothouse.audit` for each. No secret is ever an argument of `record`. Decisions are
events of their session as well, with the name of whoever decided, and devices are kept with their times.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

__all__ = ["record"]

logger = logging.getLogger("pilothouse.audit")


def record(action: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write down that something happened. As JSON, so that no name can forge a line."""
    if logger.isEnabledFor(level):
        told = {"audit": action} | {name: value for name, value in fields.items() if value is not None}
        logger.log(level, "%s", msgspec.json.encode(told).decode(), extra={"audit": told})
