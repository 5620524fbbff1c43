"""What is said, as it comes: the agent's Markdown, its thoughts, and the user's own words.

In a terminal a block is printed when it is whole, and the open one is left to the live region. Elsewhere the agent's
text goes out letter by letter.
"""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ..dialects.texts import clean, title_of
from ..model.records import TextContent
from .drawing import Blocks, Prose, Trimmed, size_of
from .printing import Printer

OPEN_TEXT = 1500
"""Characters that are shown of a block while it grows."""


class Speech:
    """Follows who speaks. `echo` shows what the user says as well."""

    def __init__(self, printer: Printer, *, echo: bool) -> None:
        self._printer = printer
        self.echo = echo
        self._blocks = Blocks()
        self._speaker = ""
        self._heard: set[tuple[str, str]] = set()
        self._is_streaming, self._held = False, ""

    def add(self, speaker: str, message_id: str, text: str, block: Any = None) -> None:
        """A piece of a message: text, or a block that is none."""
        if speaker == "user" and not self.echo:
            return
        self._heard.add((speaker, message_id))
        if speaker != self._speaker:
            self.close()
            self._speaker = speaker
        if text and self._printer.plain and speaker == "assistant":
            self._stream(clean(text))
        elif text:
            for closed in self._blocks.feed(clean(text)):
                self._print(closed)
        elif block is not None and not isinstance(block, TextContent):
            self.close()
            self._printer.put(Text(f"[{block_name(block)}]", style="cyan"), "note")

    def knows(self, speaker: str, message_id: str) -> bool:
        """Whether pieces of this message have come already."""
        return (speaker, message_id) in self._heard

    def close(self) -> None:
        """Nothing more comes for now."""
        if self._is_streaming:
            self._printer.verbatim("\n")
        self._is_streaming, self._held = False, ""
        self._print(self._blocks.close())
        self._speaker = ""

    @property
    def open(self) -> RenderableType | None:
        """The block that still grows."""
        text = self._blocks.tail(OPEN_TEXT).strip()
        if not text:
            return None
        return self._styled(text) if len(text) < OPEN_TEXT else Text(f"…{text}")

    def _stream(self, text: str) -> None:
        text = text if self._is_streaming else text.lstrip("\n")
        if not text:
            return
        if not self._is_streaming:
            self._printer.gap("text")
            self._is_streaming = True
        body = (self._held + text).rstrip("\n")
        self._held = (self._held + text)[len(body) :]
        self._printer.verbatim(body)

    def _print(self, text: str) -> None:
        if not text.strip():
            return
        if self._speaker == "user":
            words = text.strip("\n").replace("\n", "\n  ")
            self._printer.put(Text("› ", style="bold cyan").append(words, style="bold"), "user")
        elif not self._printer.plain:
            self._printer.put(self._styled(text), "text")
        else:
            self._printer.put(Text("\n".join(f"… {line}" for line in text.splitlines())), "text")

    def _styled(self, text: str) -> RenderableType:
        if self._speaker != "assistant":
            return Text(text.strip(), style="dim italic")
        return Trimmed(Prose(text, code_theme="ansi_dark", hyperlinks=False))


def block_name(block: Any) -> str:
    kind = str(block.__struct_config__.tag)
    url = getattr(block, "url", None) or getattr(block, "uri", None) or ""
    if isinstance(url, str) and url.startswith("data:"):
        return f"{getattr(block, 'mime_type', None) or kind}, {size_of(len(url) * 3 / 4)}"
    return title_of(f"{kind} {url}".strip())
