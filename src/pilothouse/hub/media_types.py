"""What a file's name says that it is."""

from __future__ import annotations

import mimetypes
from functools import cache

__all__ = ["BINARY", "known_type"]

BINARY = "application/octet-stream"


def known_type(name: str) -> str:
    """The media type of a file of that name."""
    last = name.replace("\0", "").rpartition("/")[2]  # all of it could be taken for an address, which may be a bad one
    return _types().guess_type(last, strict=False)[0] or BINARY


@cache
def _types() -> mimetypes.MimeTypes:
    """Made when it is first wanted: it reads files."""
    return mimetypes.MimeTypes()
