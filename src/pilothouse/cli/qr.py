"""A QR code in the terminal, black on white whatever the terminal's colours are."""

from __future__ import annotations

import io

__all__ = ["print_qr"]


def print_qr(text: str) -> None:
    import segno
    from rich.text import Text

    from .output import console

    drawn = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(drawn, border=2, compact=True)
    console().print(Text(drawn.getvalue().rstrip("\n"), style="bright_white on black"), no_wrap=True, crop=False)
