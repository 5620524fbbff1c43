"""Programs that a package runner such as npx fetches before it starts them: what to say while that takes its time, and
when it fails. Pure: nothing is fetched here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from msgspec import Struct

PATIENCE = 2.0
"""Seconds without an answer after which somebody is told what is being waited for."""
FETCH_TIMEOUT = 300.0
"""Seconds for a program that has to be fetched first."""

NODE, PNPM, BUN = ("Node.js", "npm install -g"), ("pnpm", "pnpm add -g"), ("Bun", "bun add -g")
UV, PIPX = ("uv", "uv tool install"), ("pipx", "pipx install")
RUNNERS = {
    ("npx",): NODE,
    ("npm", "exec"): NODE,
    ("pnpx",): PNPM,
    ("pnpm", "dlx"): PNPM,
    ("bunx",): BUN,
    ("bun", "x"): BUN,
    ("uvx",): UV,
    ("uv", "tool", "run"): UV,
    ("pipx", "run"): PIPX,
}
"""The words that begin a command which fetches, where the runner comes from, and how the same is installed for good."""
NAMING = ("-p", "--package", "--from", "--spec")
"""Options whose value is the package, where the program has another name."""


class Fetch(Struct, frozen=True):
    """What is fetched, and by whom; `source` is what the runner comes with, `install` how to have it without one."""

    package: str
    runner: str
    source: str
    install: str

    @property
    def waiting(self) -> str:
        return f"Fetching {self.package} with {self.runner}; the first time takes a while"

    @property
    def failed(self) -> str:
        return (
            f"{self.runner} did not start {self.package}; see that the network can be reached, or install it by "
            f"`{self.install} {self.package}`"
        )

    @property
    def missing(self) -> str:
        """What to do when there is no runner."""
        return f"{self.runner}, which is to fetch {self.package}, comes with {self.source}"


def fetch_of(command: Sequence[str]) -> Fetch | None:
    """What a command fetches before it runs; None for one that runs what is there."""
    if not command:
        return None
    program = PurePath(command[0].replace("\\", "/")).name
    words = [program.removesuffix(".cmd").removesuffix(".exe"), *command[1:]]
    for runner, about in RUNNERS.items():
        if tuple(words[: len(runner)]) == runner:
            package = _package(words[len(runner) :])
            return Fetch(package, " ".join(runner), *about) if package else None
    return None


def _package(words: list[str]) -> str:
    for place, word in enumerate(words):
        name, _, value = word.partition("=")
        if name in NAMING:
            return value or next(iter(words[place + 1 :]), "")
        if not word.startswith("-"):
            return word
    return ""
