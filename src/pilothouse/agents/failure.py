"""The one exception that the work of an agent raises by itself."""

from __future__ import annotations

__all__ = ["Failure"]


class Failure(Exception):
    """Something could not be done. The text says why; the user sees it, and so does the model where there is one."""
