"""`pilothouse serve` and `stop`: start the hub of this home as a service, and stop it from any terminal."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..exits import Exit, Failure, reported
from ..output import say

if TYPE_CHECKING:
    from ..daemon.background import Launcher


FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--host", help="Where to listen; by default 127.0.0.1, which only this machine reaches.")
@click.option("--port", type=click.IntRange(0, 65535), help="By default PILOTHOUSE_PORT, else 7717; 0 for a free one.")
@click.option("--root-path", metavar="PATH", help="The path under which a proxy offers it, such as /pilothouse.")
@click.option("--public-url", metavar="URL", help="Its address behind a proxy or tunnel, for links and QR codes.")
@click.option("--tls-cert", type=FILE, help="Certificate for HTTPS, with its chain.")
@click.option("--tls-key", type=FILE, help="The key of the certificate.")
@click.option("--insecure-bind", is_flag=True, help="Listen beyond this machine without TLS.")
@click.option("--browser/--no-browser", default=False, help="Open it in the browser.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option(
    "--log-level",
    type=click.Choice(["error", "warning", "info", "debug"]),
    default="warning",
    show_default=True,
    help="`info` has every login, pairing, change and decision.",
)
@click.option("--log-json", is_flag=True, help="Log one JSON object a line.")
@click.option("--log-file", type=FILE, help="Log to this file, not to stderr.")
@click.option("--detach", is_flag=True, hidden=True, help="Go on without a terminal; what it says goes to hub.log.")
@click.option("--held", is_flag=True, hidden=True, help="Its input is held by whoever is about to use it.")
@reported
def serve(**options: Any) -> None:
    """Start the hub, for browsers, phones, editors and programs.

    It prints its address and a link that logs one browser in. If it runs already, the same is printed of that one.
    Ctrl-C stops it: turns under way are ended, and every session can be taken up again later.
    """
    ready = launcher = None
    if options["detach"]:
        from ...config import home_directory
        from ..daemon.background import Launcher, detach

        launcher = Launcher() if options["held"] else None
        ready = detach(home_directory())
    sys.exit(_run(ready, launcher, **options))


def serve_and_open() -> None:
    """What `pilothouse` without a command does."""
    sys.exit(reported(_run)(browser=sys.stdout.isatty()))


def _run(ready: Callable[[], None] | None = None, launcher: Launcher | None = None, **options: Any) -> int:
    """Start, without looking for garbage: what is loaded stays, and to look would only make the start longer."""
    gc.disable()
    try:
        from ..daemon.service import ServeOptions, start

        return start(ServeOptions(**options), ready, launcher)
    finally:
        gc.enable()  # the service did so when it was up; this is for a start that failed


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
    from ...config import load_config
    from ...log.sqlite.reader import lock_holder

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
