"""A hub in the background: started and waited for, its log output, and the user's browser.

The process that starts it stays until the hub can be reached, or has failed. The link for the browser is passed in a
file, because arguments are visible to all users of the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import webbrowser
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from ...editor.hub_connection import KILLED, LARGEST, open_journal
from ..exits import Exit, Failure


def detach(home: Path) -> Callable[[], None]:
    """Go on in a process of its own, whose words go to the home's journal. Call the answer when the hub is there.

    Only that process returns. Raises Failure when the journal cannot be written.
    """
    if not hasattr(os, "fork"):
        raise Failure("this platform cannot detach a process; start `pilothouse serve` in a terminal", Exit.USAGE)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        journal = open_journal(home)
    except OSError as exc:
        raise Failure(f"{home} can't be written: {exc.strerror or exc}", Exit.HOME) from exc
    sys.stdout.flush()
    sys.stderr.flush()
    told, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        os._exit(_outcome(told, child))
    os.setsid()
    os.close(told)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, stream in ((null, 0), (journal, 1), (journal, 2)):
        os.dup2(descriptor, stream)
    os.close(journal)
    logging.getLogger().addHandler(Turning(home))

    def ready() -> None:
        with contextlib.suppress(BrokenPipeError):  # who waited for it was ended; the hub is there all the same
            os.write(tell, b"1")
        os.close(tell)

    return ready


class Launcher:
    """Who started this hub in order to use it, as seen by the pipe on its input. Make it before `detach`."""

    def __init__(self) -> None:
        self._pipe = os.dup(0)

    async def wants_it(self) -> bool:
        """Wait until it has reached this hub, or another one, or is gone without."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._pipe, _set, told)
        try:
            await told
            return os.read(self._pipe, 32) == b"%d" % os.getpid()
        finally:
            loop.remove_reader(self._pipe)
            os.close(self._pipe)


def _set(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)


class Turning(logging.Handler):
    """Begins a new journal when this one is large: a hub that runs for months may have much to say."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # the home may be gone; there is nobody to tell
            if os.fstat(2).st_size > LARGEST:
                journal = open_journal(self._home)
                for stream in (1, 2):
                    os.dup2(journal, stream)
                os.close(journal)


def _outcome(told: int, child: int) -> int:
    """How it went: 0 when the hub is there, else how its process ended, as shells tell it."""
    if os.read(told, 1):
        return Exit.OK
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else KILLED - code


FILE = "open.html"


async def open_browser(home: Path, url: str) -> bool:
    """Open a link that works once; whether that could be tried. The file may stay: it is worth nothing then."""
    if not _has_screen():
        return False
    page = home / FILE
    try:
        page.unlink(missing_ok=True)
        descriptor = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_page(url))
    except OSError:
        return False
    return await asyncio.to_thread(_open, page.as_uri())


def _has_screen() -> bool:
    """Without one a browser in the terminal would take it over, or nothing would happen."""
    if os.environ.get("BROWSER") or sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _page(url: str) -> str:
    link = escape(url, quote=True)
    return (
        '<!doctype html><meta charset="utf-8"><title>Pilothouse</title>'
        f'<meta http-equiv="refresh" content="0; url={link}"><a href="{link}">Go on to Pilothouse</a>\n'
    )


def _open(uri: str) -> bool:
    with contextlib.suppress(webbrowser.Error, OSError):
        return webbrowser.open(uri)
    return False


LEVELS = ("error", "warning", "info", "debug")
NOISY = ("asyncio", "uvicorn", "uvicorn.error", "websockets", "watchfiles")
"""Loggers of others: what they say below a warning is about themselves."""


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message, and the fields of an audit record."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        told = getattr(record, "audit", None)
        if isinstance(told, dict):
            line |= {"message": str(told.get("audit")), "audit": told}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=repr).decode()


class Plain(logging.Formatter):
    """For people: one line each, whatever is in it, and a trace below."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is given
        text = super().formatMessage(record)
        return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def log_to(*, level: str = "warning", as_json: bool = False, file: Path | None = None) -> None:
    """Send the log to stderr, or to a file that only its owner can read. Raises Failure."""
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if file is not None:
        try:
            handler = logging.FileHandler(file, encoding="utf-8", delay=False)
            if os.name == "posix":
                file.chmod(0o600)
        except OSError as exc:
            raise Failure(f"{file}: the log can't be written there: {exc.strerror or exc}", Exit.USAGE) from exc
    handler.setFormatter(JsonLines() if as_json else Plain())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
