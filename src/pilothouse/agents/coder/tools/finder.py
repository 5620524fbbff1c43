"""The search itself, run as a program: `python -I -S finder.py REQUEST`; request and answer are JSON.

It uses nothing but the standard library and imports nothing of this package, so that it starts at once. It follows no
symbolic link to a place outside of the directory it searches, and asks git what is to be left out, without letting the
repository's own settings start anything.
"""

# half of the time of a search would be making objects of paths
# ruff: noqa: PTH112, PTH113, PTH114, PTH118, PTH119, PTH120, PTH123, PTH202

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

NEVER = {".git", ".hg", ".svn"}
SKIPPED = {"node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
SKIPPED |= {".cache", ".idea", ".gradle", ".next", "target"}
IGNORED = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
GIT = ("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
GIT_SECONDS = 5.0
LENGTHY = 50
"""Repositories inside of the directory after which git is asked about no more of them."""
LARGEST = 64 * 1024 * 1024
"""Bytes of a file whose lines are looked at; of one that is larger it is told."""
LINE = 300


def main() -> None:
    request = json.loads(sys.argv[1])
    try:
        answer = search(request)
    except (re.error, OverflowError, RecursionError) as exc:
        answer = {"error": f"The pattern is no regular expression: {exc}"}
    except OSError as exc:
        answer = {"error": f"{exc.filename} could not be searched: {exc.strerror}"}
    # a name need not be text; one that is not has a mark in it
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))


def search(request: dict[str, Any]) -> dict[str, Any]:
    root, limit = request["root"], request["limit"]
    until = time.monotonic() + request["seconds"]
    wanted = re.compile(glob_expression(request["glob"])) if request.get("glob") else None
    anywhere = "/" not in (request.get("glob") or "/")
    pattern = request.get("pattern")
    lines = re.compile(pattern, re.IGNORECASE if request.get("ignore_case") else 0) if pattern is not None else None
    matches: list[tuple[str, int, str]] = []
    too_large: list[str] = []
    for path, name in files(root, everything=bool(request.get("ignored"))):
        if wanted is not None and not wanted.fullmatch(os.path.basename(name) if anywhere else name):
            continue
        if lines is None:
            matches.append((path, 0, ""))
        elif is_too_large(path):
            too_large.append(path)
        else:
            matches += matching(path, lines, limit + 1 - len(matches))
        if len(matches) > limit or time.monotonic() > until:
            return {"matches": matches[:limit], "more": True, "too_large": too_large}
    return {"matches": matches, "more": False, "too_large": too_large}


def files(root: str, *, everything: bool = False) -> Iterator[tuple[str, str]]:
    """Every file below a directory, in order, with its name relative to it; or the one file that it is.

    What is ignored is only there with `everything`.
    """
    if os.path.isfile(root):
        yield root, os.path.basename(root)
        return
    if not os.path.isdir(root):
        raise FileNotFoundError(2, "there is no such file or directory", root)
    real = os.path.realpath(root)
    skipped = NEVER if everything else NEVER | SKIPPED
    ignored = ignored_below(root) if not everything and is_in_repository(real) else set()
    asked = LENGTHY if everything else 0
    for folder, folders, names in os.walk(root):
        if asked < LENGTHY and folder != root and ".git" in (*folders, *names):
            ignored |= ignored_below(folder)  # a repository inside of another has rules of its own
            asked += 1
        folders[:] = sorted(
            name for name in folders if name not in skipped and os.path.join(folder, name) not in ignored
        )
        for name in sorted(names):
            path = os.path.join(folder, name)
            if path in ignored or (os.path.islink(path) and not is_below(os.path.realpath(path), real)):
                continue
            yield path, os.path.relpath(path, root).replace(os.sep, "/")


def is_in_repository(folder: str) -> bool:
    parent = os.path.dirname(folder)
    return os.path.lexists(os.path.join(folder, ".git")) or (parent != folder and is_in_repository(parent))


def ignored_below(folder: str) -> set[str]:
    """The files and directories that git is told to ignore; none where it cannot be asked."""
    import subprocess  # only here: what is in no repository is found the faster without

    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
    try:
        told = subprocess.check_output(  # noqa: S603 - only the directory is the workspace's
            (*GIT, "-C", folder, *IGNORED),
            env=env,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=GIT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return set()
    # a directory that is ignored itself was asked for by its name
    names = [name for name in os.fsdecode(told).split("\0") if name.strip("./")]
    return {os.path.join(folder, os.path.normpath(name)) for name in names}


def is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def is_too_large(path: str) -> bool:
    with suppress(OSError):  # it may have gone meanwhile
        return os.path.isfile(path) and os.path.getsize(path) > LARGEST
    return False


def matching(path: str, lines: re.Pattern[str], limit: int) -> list[tuple[str, int, str]]:
    """The lines of a file that fit; none of one that is not text. A line ends where `read` and editors end it."""
    found: list[tuple[str, int, str]] = []
    with suppress(OSError):
        if not os.path.isfile(path):
            return found
        with open(path, "rb") as file:
            if b"\0" in file.read(8192):
                return found
            file.seek(0)
            for number, data in enumerate(file, 1):
                line = data.decode("utf-8", "replace").rstrip("\r\n")
                if lines.search(line):
                    found.append((path, number, line.strip()[:LINE]))
                    if len(found) >= limit:
                        break
    return found


def glob_expression(pattern: str) -> str:
    """A glob as a regular expression over a path with slashes."""
    out, at = [], 0
    pattern = pattern.removeprefix("./")
    while at < len(pattern):
        rest = pattern[at:]
        if rest.startswith("**/"):
            out.append("(?:.*/)?")
            at += 3
        elif rest.startswith("**"):
            out.append(".*")
            at += 2
        elif rest[0] == "*":
            out.append("[^/]*")
            at += 1
        elif rest[0] == "?":
            out.append("[^/]")
            at += 1
        elif rest[0] == "[" and (end := rest.find("]", 2)) > 0:
            inside = rest[1:end].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]")
            at += end + 1
        elif rest[0] == "{" and (end := rest.find("}")) > 0:
            out.append("(?:" + "|".join(glob_expression(part) for part in rest[1:end].split(",")) + ")")
            at += end + 1
        else:
            out.append(re.escape(rest[0]))
            at += 1
    return "".join(out)


if __name__ == "__main__":
    main()
