"""Where things are on this machine: an editor's settings, and the program that is running now. Looks, never writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...config import runs_pilothouse

__all__ = ["entry_environment", "is_passing", "is_this_program", "running_program", "settings_files"]

USUAL_HOMES = {"darwin": "Library/Application Support/pilothouse"}
"""The home of a program that is told nothing, by platform; see `config.home_directory`."""
USUAL_HOME = ".local/share/pilothouse"

FLATPAK_ZED = ".var/app/dev.zed.Zed/config/zed"


def settings_files(
    editor: str, user: Path, environ: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> list[Path]:
    """The files in which an editor may keep its agents, the one to use first."""
    if editor == "jetbrains":
        return [user / ".jetbrains" / "acp.json"]
    given = environ.get("XDG_CONFIG_HOME", "")
    is_given = platform != "darwin" and Path(given).is_absolute()
    places = [(Path(given) if is_given else user / ".config") / "zed"]
    if platform.startswith("linux"):
        places.append(user / FLATPAK_ZED)
    files = [place / "settings.json" for place in places]
    return sorted(files, key=lambda file: (not file.exists(), not file.parent.exists()))


def running_program(argv0: str | None = None, executable: str | None = None) -> tuple[str, ...]:
    """How this program is started from anywhere: its script as it was called, else Python with the module.

    Links are kept: what pipx or a package puts on PATH stays when the environment behind it is made anew. `-P` keeps
    the directory that an editor starts it in, somebody's project, from being imported from.
    """
    script = Path(sys.argv[0] if argv0 is None else argv0).absolute()
    if script.name == "pilothouse" and script.is_file() and os.access(script, os.X_OK):
        return (str(script),)
    python = Path(sys.executable if executable is None else executable).absolute()
    return (str(python), "-P", "-m", "pilothouse.cli")


def is_this_program(command: Sequence[str], argv0: str | None = None, executable: str | None = None) -> bool:
    """Whether a command is `acp` of this installation, by whichever of its ways to be started."""
    python = Path(sys.executable if executable is None else executable).absolute()
    for script in (running_program(argv0, str(python))[0], str(python.with_name("pilothouse"))):
        # a link is as good as its script; but the Pythons of two environments may be links to the same one
        if list(command[1:2]) == ["acp"] and os.path.realpath(command[0]) == os.path.realpath(script):
            return script != str(python)
    return command[0] == str(python) and runs_pilothouse(command)


def is_passing(program: tuple[str, ...]) -> bool:
    """Whether a program lies in a cache, as `uvx` and `pipx run` have it, and may be gone tomorrow."""
    return not {".cache", "Caches"}.isdisjoint(Path(program[0]).parts)


def entry_environment(
    home: Path, user: Path, environ: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> dict[str, str]:
    """The environment that an editor's entry needs: this home, unless it is the one that is found without it, and the
    port that was chosen.

    Editors are often started from a desktop, and have not the variables of a shell; the hub that one of them starts
    has those of its entry.
    """
    usual = user / USUAL_HOMES.get(platform, USUAL_HOME)
    port = environ.get("PILOTHOUSE_PORT", "").strip()
    given = {} if home == usual else {"PILOTHOUSE_HOME": str(home)}
    return given | ({"PILOTHOUSE_PORT": port} if port else {})
