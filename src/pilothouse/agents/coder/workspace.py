"""The directories of a session, and which paths are inside of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..failure import Failure

__all__ = ["Workspace"]


class Workspace:
    """A session's own directory, and those that the client added."""

    def __init__(self, cwd: str, directories: Sequence[str] = ()) -> None:
        self.cwd = Path(cwd)
        self.roots = (self.cwd, *map(Path, directories))

    def point(self, name: str) -> Path:
        """The path that a name stands for, wherever that is."""
        return self.cwd / _plain(name).replace("\0", "")

    def locate(self, name: str) -> Path:
        """The path that a name stands for, as the client would write it. Raises Failure when it is outside."""
        if "\0" in _plain(name):
            raise Failure(f"{name!r} is no path.")
        path = Path(os.path.normpath(self.point(name)))
        # the client gets the path in its own terms; only the check looks through symbolic links
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError) as exc:
            raise Failure(f"`{name}` cannot be followed: {exc}") from exc
        if not any(real.is_relative_to(root.resolve()) for root in self.roots):
            raise Failure(f"`{name}` is outside of the workspace `{self.cwd}`.")
        return path

    def shown(self, path: Path) -> str:
        """A path as a person reads it: relative to the session's directory where it is in there."""
        return path.relative_to(self.cwd).as_posix() if path.is_relative_to(self.cwd) else str(path)


def _plain(name: str) -> str:
    """A name without the marks of a URI, which is how clients name the files that they attach; `~` is the home."""
    if name.startswith("file:///"):
        return unquote(urlsplit(name).path)
    return os.path.expanduser(name) if name == "~" or name.startswith("~/") else name  # noqa: PTH111
