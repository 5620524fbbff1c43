"""The program's own log: quiet by default, for people or one JSON object a line for programs."""

from __future__ import annotations

import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from .exits import Exit, Failure

__all__ = ["LEVELS", "log_to"]

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
