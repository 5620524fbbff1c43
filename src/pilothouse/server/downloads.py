"""A file as an answer: in pieces, whole or a range of it, with headers that keep a browser from running it.

Rules a change must not break: a name never reaches a header but as letters, digits and a few marks, or percent-encoded;
what a browser could run as a script or a page is never sent under its own type, except by a preview in a sandbox.
"""

from __future__ import annotations

import asyncio
import mimetypes
import re
from collections.abc import Mapping
from email.utils import formatdate
from typing import NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..hub.files import OpenFile
from .errors import HttpError

__all__ = ["BINARY", "TEXT", "Download", "attachment", "download", "inert_type", "known_type"]

PIECE = 256 << 10
HEAD = 8192
"""Bytes of a file by which text is told from anything else."""
BINARY = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"
_TYPES = mimetypes.MimeTypes()
_INERT = re.compile(r"image/(png|jpeg|gif|webp|avif|bmp|x-icon|vnd\.microsoft\.icon|tiff)|audio/.+|video/.+")
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_ENTITY_TAG = re.compile(r'(?:W/)?("[^"]*")|\*')


def known_type(name: str) -> str:
    """What a file's name says that it is."""
    return _TYPES.guess_type(name.replace("\0", ""), strict=False)[0] or BINARY


def inert_type(name: str, head: bytes) -> str:
    """A type under which a browser runs nothing: that of a picture, sound or film, plain text, or just bytes."""
    named = known_type(name)
    if _INERT.fullmatch(named):
        return named
    return TEXT if _is_text(head) else BINARY


def _is_text(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as exc:
        if len(head) < HEAD or exc.start < len(head) - 3:  # the last character may be cut
            return False
    return b"\0" not in head


def attachment(name: str) -> str:
    """The value of Content-Disposition for a file of that name, whatever is in it."""
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name)[:200] or "file"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace')[:600], safe='')}"


class Part(NamedTuple):
    start: int
    size: int


class Download(Response):
    """Sends a part of an open file, and closes it, whatever happens.

    One who takes nothing for `stall` seconds is let go: the connection is closed before the announced length is sent.
    """

    def __init__(self, file: OpenFile, part: Part, status: int, headers: Mapping[str, str], stall: float) -> None:
        super().__init__(None, status, {**headers, "Content-Length": str(part.size)})
        self._file = file
        self._part = part
        self._stall = stall

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] == "HEAD" or not self._part.size:
                await send({"type": "http.response.body"})
            else:
                await self._pieces(send)
        finally:
            self._file.close()

    async def _pieces(self, send: Send) -> None:
        start, left = self._part
        while left:
            data = await asyncio.to_thread(self._file.read, start, min(left, PIECE))
            if not data:
                return  # it has become shorter; that the rest is missing must be seen
            start, left = start + len(data), left - len(data)
            try:
                async with asyncio.timeout(self._stall):
                    await send({"type": "http.response.body", "body": data, "more_body": left > 0})
            except TimeoutError:
                return


def download(
    request: Request, file: OpenFile, media_type: str, headers: Mapping[str, str], *, stall: float
) -> Response:
    """The file as the request wants it: all, a range, or only that it has not changed. Closes it in any case."""
    about = {
        **headers,
        "Content-Type": media_type,
        "ETag": file.etag,
        "Last-Modified": formatdate(max(file.modified, 0), usegmt=True),
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
    }
    if _names(request.headers.get("if-none-match", ""), file.etag):
        file.close()
        return Response(status_code=304, headers=about)
    try:
        part = _part(request, file)
    except HttpError:
        file.close()
        raise
    if part is None:
        return Download(file, Part(0, file.size), 200, about, stall)
    end = part.start + part.size - 1
    about["Content-Range"] = f"bytes {part.start}-{end}/{file.size}"
    return Download(file, part, 206, about, stall)


def _names(header: str, etag: str) -> bool:
    return any(found[1] in (None, etag) for found in _ENTITY_TAG.finditer(header))


def _part(request: Request, file: OpenFile) -> Part | None:
    """The one range that is asked for; None for all of it. Raises HttpError 416."""
    wanted = _RANGE.fullmatch(request.headers.get("range", "").strip())
    condition = request.headers.get("if-range")
    if wanted is None or wanted[1] == wanted[2] == "" or (condition is not None and condition != file.etag):
        return None
    if wanted[1]:
        start, end = int(wanted[1]), int(wanted[2] or file.size - 1)
    else:
        start, end = max(0, file.size - int(wanted[2])), file.size - 1
    end = min(end, file.size - 1)
    if start > end:
        headers = {"Content-Range": f"bytes */{file.size}"}
        raise HttpError(416, "no_such_range", f"the file has {file.size:,} bytes", headers=headers)
    return Part(start, end - start + 1)
