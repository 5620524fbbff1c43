"""A file as it is now, before a tool overwrites it: so that who is asked sees what would be lost.

Only files of the workspace are read, and only short texts: what is outside, or behind a link to the outside, is not
shown to anybody by this. Whatever cannot be read is not there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .diffs import WHOLE_FILE

__all__ = ["Originals"]

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a pipe must not keep us waiting


class Originals:
    """The files of a workspace."""

    def __init__(self, cwd: str) -> None:
        self._cwd = Path(cwd)

    def __call__(self, path: str) -> str | None:
        """What is in a file; None when that cannot be shown."""
        try:
            real = Path(os.path.realpath(self._cwd / path))
            if not real.is_relative_to(os.path.realpath(self._cwd)):
                return None
            with os.fdopen(os.open(real, _FLAGS), "rb") as file:
                is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                data = file.read(WHOLE_FILE + 1) if is_file else b"\xff"
            return data.decode() if len(data) <= WHOLE_FILE else None
        except (OSError, ValueError):  # it is not there, or no text
            return None
