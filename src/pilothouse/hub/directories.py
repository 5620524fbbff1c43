"""The directory of a session: what its agent is started in. It is checked before anything is stored of the session."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ..model.session import sound
from .errors import HubError

__all__ = ["check_directory"]


async def check_directory(cwd: str | Path) -> Path:
    """Where a session can work. Raises HubError."""
    directory = Path(cwd)
    if (wrong := await asyncio.to_thread(_wrong_with, directory)) is not None:
        raise HubError(f"{str(cwd)!r} {wrong}", field="cwd", cwd=str(cwd))
    if sound(str(directory)) != str(directory):  # no message could name it to an agent
        message = f"the name of {str(cwd)!r} is not UTF-8; rename the directory"
        raise HubError(message, field="cwd", cwd=ascii(str(cwd)))
    return directory


def _wrong_with(directory: Path) -> str | None:
    """Why no session can work there; None if one can."""
    if not directory.is_absolute():
        return "is not absolute; give the absolute path of the project's directory"
    # os.path's say no, where the path's own raise, to a name that no system takes
    if os.path.isdir(directory):  # noqa: PTH112
        return None
    what = "is no directory" if os.path.exists(directory) else "does not exist"  # noqa: PTH110
    return f"{what}; give the absolute path of the project's directory"
