"""Where Claude Code keeps its settings: for its user, for a project, and for a user's own copy of one. Looks only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["SCOPES", "settings_file"]

SCOPES = ("user", "project", "local")
"""`project` is what a project's people share, `local` what is only for this machine."""


def settings_file(scope: str, project: Path, user: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The settings of a scope, be they there or not. `CLAUDE_CONFIG_DIR` moves those of the user, as for the CLI."""
    if scope == "user":
        given = environ.get("CLAUDE_CONFIG_DIR", "").strip()
        return (Path(given).expanduser().absolute() if given else user / ".claude") / "settings.json"
    return project / ".claude" / ("settings.json" if scope == "project" else "settings.local.json")
