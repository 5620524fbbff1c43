"""An editor's settings file: found, read whole, and replaced in one step with a backup beside it.

A link is followed and its target replaced; mode and owner are kept. A file that another program changed after it was
read is left alone.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path

from ...config import ConfigError, runs_pilothouse

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


NEW_MODE = 0o600
"""Of a file that was not there: entries of others that come later may hold secrets."""


def read(path: Path) -> str | None:
    """The text, None where there is no file. Raises ConfigError."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(path, "is no file")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as exc:
        raise ConfigError(path, f"is not in UTF-8: {exc.reason} at byte {exc.start}") from None
    except OSError as exc:
        raise ConfigError(path, f"cannot be read: {exc.strerror or exc}") from exc


def replace(path: Path, old: str | None, new: str, now: datetime) -> Path | None:
    """Put `new` in the place of `old`. The answer is the copy of the old file, if there was one. Raises ConfigError."""
    try:
        return _replace(path, old, new.encode("utf-8"), now)
    except UnicodeEncodeError:
        raise ConfigError(path, "cannot be written: a path in it is not in UTF-8") from None
    except OSError as exc:
        raise ConfigError(path, f"cannot be written: {exc.strerror or exc}") from exc


def _replace(path: Path, old: str | None, new: bytes, now: datetime) -> Path | None:
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    before = real.stat() if old is not None else None
    # root may write everything; a file that nobody is to write is left alone by it too
    if before is not None and not (os.access(real, os.W_OK) and before.st_mode & 0o222):
        raise ConfigError(path, "is read-only; something else may write it, and the entry belongs there")
    descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
            _make_alike(file.fileno(), before)
        if read(path) != old:
            raise ConfigError(path, "was changed by somebody else just now; nothing was written")
        backup = _copy(path, old.encode("utf-8"), before, now) if old is not None else None
        draft.replace(real)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return backup


def _make_alike(descriptor: int, like: os.stat_result | None) -> None:
    if like is not None:
        with contextlib.suppress(OSError):  # only root may give a file away
            os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, like.st_mode & 0o7777 if like is not None else NEW_MODE)


def _copy(path: Path, data: bytes, like: os.stat_result | None, now: datetime) -> Path:
    """A copy under a name of its own, beside the file that was named."""
    stem = f"{path.name}.{now:%Y%m%d-%H%M%S}"
    for number in count(1):
        backup = path.with_name(f"{stem}{f'-{number}' if number > 1 else ''}.bak")
        try:
            descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            _make_alike(file.fileno(), like)
        return backup
    raise AssertionError("can't happen: counting ends")
