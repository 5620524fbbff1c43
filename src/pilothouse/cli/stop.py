"""`pilothouse stop`: the end of the hub that runs on this home, whoever started it and wherever."""

from __future__ import annotations

import os
import signal
import sys
import time

import click

from .exits import Exit, Failure, reported
from .output import say

__all__ = ["stop"]

PATIENCE = 30.0
"""Seconds that a hub has to end its agents in order and to let go of its home."""
STEP = 0.05


@click.command()
@reported
def stop() -> None:
    """Stop the hub that runs, also one that an editor started.

    As by Ctrl-C where it runs: turns under way are ended, and every session can be taken up again later. The next
    command, or editor, that needs a hub starts one.
    """
    from ..config import load_config
    from ..log.sqlite.reader import lock_holder

    if sys.platform == "win32":  # there a signal is no request, and nobody can tell who has a home open
        raise Failure("a hub on Windows is stopped by Ctrl-C where it runs", Exit.USAGE)
    config = load_config()
    pid = lock_holder(config.database)
    if pid is None:
        say(f"No hub runs on {config.home}.")
        return
    if not pid:
        raise Failure(f"{config.home} is in use, but by whom is not known; end it where it was started", Exit.HOME)
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it was just ending
    except PermissionError as exc:
        raise Failure(f"the hub is process {pid}, which belongs to another user", Exit.HOME) from exc
    deadline = time.monotonic() + PATIENCE
    while lock_holder(config.database) == pid:
        if time.monotonic() > deadline:
            raise Failure(f"the hub, process {pid}, was told to end and has not; see what it does", Exit.HOME)
        time.sleep(STEP)
    say(f"The hub of {config.home}, process {pid}, has ended. What needs a hub next starts one.")
