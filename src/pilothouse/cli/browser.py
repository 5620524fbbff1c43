"""The user's browser, opened without telling the link to everybody on the machine.

The arguments of a process can be read by other users, and whoever is first with a login link has it. So the browser
is given a file that only its owner can read, which leads on to the link.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import webbrowser
from html import escape
from pathlib import Path

__all__ = ["open_browser"]

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
