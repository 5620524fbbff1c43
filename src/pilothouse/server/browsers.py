"""What a browser is called, by what it says of itself: `Chrome on Linux`, `Safari on iPhone`.

All words are of these tables, so nothing that was sent signs a decision.
"""

from __future__ import annotations

import re

__all__ = ["BROWSER", "browser_name"]

BROWSER = "browser"
"""One that says nothing that is known here."""

PROGRAMS = (
    ("Edge", r"\bEdg(?:e|A|iOS)?/"),
    ("Opera", r"\bOPR/|\bOPT/"),
    ("Samsung Internet", r"\bSamsungBrowser/"),
    ("Firefox", r"\bFirefox/|\bFxiOS/"),
    ("Chrome", r"Chrom(?:e|ium)/|\bCriOS/"),
    ("Safari", r"\bSafari/"),
)
"""In this order: most say that they are Chrome or Safari as well."""
SYSTEMS = (
    ("iPhone", r"\biPhone\b"),
    ("iPad", r"\biPad\b"),
    ("Android", r"\bAndroid\b"),
    ("ChromeOS", r"\bCrOS\b"),
    ("Windows", r"\bWindows\b"),
    ("Mac", r"\bMac OS X\b|\bMacintosh\b"),
    ("Linux", r"\bLinux\b|\bX11\b"),
)
LONGEST = 512


def browser_name(user_agent: str) -> str:
    program, system = (_first(names, user_agent[:LONGEST]) for names in (PROGRAMS, SYSTEMS))
    if program is None:
        return BROWSER
    return f"{program} on {system}" if system else program


def _first(names: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for name, pattern in names if re.search(pattern, text)), None)
