"""A line being typed: keys and pastes become text, without a terminal in sight.

What is pasted stands between marks that the terminal sets, and is part of the line whatever it holds: only a key ends
a line. Sequences of keys without a meaning here are dropped, so none of them ever becomes text.
"""

from __future__ import annotations

import codecs
import re

__all__ = ["Line"]

PASTE, PASTED = b"\x1b[200~", b"\x1b[201~"
SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;:<=>?]*[ -/]*[@-~]|O[ -~]|[^\[O])", re.DOTALL)
TEXT = re.compile(rb"[^\x00-\x1f\x7f]+")
END_OF_INPUT, ERASE, ERASE_WORD, ERASE_ALL = b"\x04", (b"\x7f", b"\x08"), b"\x17", b"\x15"


class Line:
    """Feed it what comes from the keyboard; `text` is what the line holds. What lies beyond its end is kept."""

    def __init__(self) -> None:
        self.text = ""
        self.is_ended = False
        """Enter was pressed."""
        self.is_over = False
        """Nothing more will be typed: Ctrl-D on an empty line."""
        self._raw = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def begin(self) -> None:
        """The next line; what was typed ahead goes into it."""
        self.text, self.is_ended, self.is_over = "", False, False
        self.feed(b"")

    def put_back(self) -> None:
        """What was typed belongs to the next line: this one is not to be ended."""
        if self.text:
            self._raw = PASTE + self.text.encode() + PASTED + self._raw
            self.text = ""

    def clear(self) -> None:
        """Drop what was typed, also beyond the end."""
        self.text, self._raw = "", b""
        self._decoder.reset()

    def feed(self, data: bytes) -> None:
        self._raw += data
        while self._raw and not (self.is_ended or self.is_over):
            taken = self._take(self._raw)
            if not taken:
                return
            self._raw = self._raw[taken:]

    def _take(self, raw: bytes) -> int:
        """Use the beginning; how much that was, nothing while it is incomplete."""
        if raw.startswith(PASTE):
            end = raw.find(PASTED)
            if end < 0:
                return 0
            self._paste(raw[len(PASTE) : end])
            return end + len(PASTED)
        if raw[:1] == b"\x1b":
            found = SEQUENCE.match(raw)
            return found.end() if found is not None else 0
        if (run := TEXT.match(raw)) is not None:
            self.text += "".join(filter(str.isprintable, self._decoder.decode(run[0])))
            return run.end()
        self._key(raw[:1])
        return 1

    def _paste(self, data: bytes) -> None:
        text = data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        text = text if self.text else text.lstrip("\n")
        self.text += "".join(one for one in text if one.isprintable() or one in "\n\t")

    def _key(self, key: bytes) -> None:
        if key in (b"\r", b"\n"):
            self.is_ended = True
        elif key == END_OF_INPUT:
            self.is_over = not self.text
        elif key in ERASE:
            self.text = self.text[:-1]
        elif key == ERASE_WORD:
            self.text = re.sub(r"\S*\s*\Z", "", self.text)
        elif key == ERASE_ALL:
            self.text = ""
        elif key == b"\t":
            self.text += "\t"
