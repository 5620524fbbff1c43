"""A file as an answer: in pieces, whole or a range of it, with headers that keep a browser from running it.

Rules a change must not break: a name never reaches a header but as letters, digits and a few marks, or percent-encoded;
what a browser could run as a script or a page is never sent under its own type, except by a preview in a sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from email.utils import formatdate
from typing import NamedTuple
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...hub.client.browse import BINARY, OpenFile, known_type
from ..errors import HttpError
from .operations import Call
from .sse import listening

PIECE = 256 << 10
HEAD = 8192
"""Bytes of a file by which text is told from anything else."""
TEXT = "text/plain; charset=utf-8"
_INERT = re.compile(r"image/(png|jpeg|gif|webp|avif|bmp|x-icon|vnd\.microsoft\.icon|tiff)|audio/.+|video/.+")
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_ENTITY_TAG = re.compile(r'(?:W/)?("[^"]*")|\*')


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
    """Sends a part of an open file while the consumer is there. `held` is closed at the end, whatever that is.

    One who takes nothing for `stall` seconds is let go: the connection is closed before the announced length is sent.
    """

    def __init__(
        self,
        file: OpenFile,
        part: Part,
        status: int,
        headers: Mapping[str, str],
        *,
        stall: float,
        held: contextlib.ExitStack,
    ) -> None:
        super().__init__(None, status, {**headers, "Content-Length": str(part.size)})
        self._file = file
        self._part = part
        self._stall = stall
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] == "HEAD" or not self._part.size:
                await send({"type": "http.response.body"})
                return
            with contextlib.suppress(ClientDisconnect):
                async with listening(receive):
                    await self._pieces(send)

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


def download(call: Call, file: OpenFile, media_type: str, headers: Mapping[str, str]) -> Response:
    """The file as the request wants it: all, a range, or only that it has not changed. Closes it in any case.

    It counts as a stream, so that it can be cut.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(file.close)
        return _answer(call, file, media_type, headers, stack)


def _answer(
    call: Call, file: OpenFile, media_type: str, headers: Mapping[str, str], stack: contextlib.ExitStack
) -> Response:
    about = {
        **headers,
        "Content-Type": media_type,
        "ETag": file.etag,
        "Last-Modified": formatdate(max(file.modified, 0), usegmt=True),
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
    }
    if _names(call.request.headers.get("if-none-match", ""), file.etag):
        return Response(status_code=304, headers=about)
    part, status = _part(call.request, file), 206
    if part is None:
        part, status = Part(0, file.size), 200
    else:
        about["Content-Range"] = f"bytes {part.start}-{part.start + part.size - 1}/{file.size}"
    stack.enter_context(call.server.connections.hold(call.caller))
    return Download(file, part, status, about, stall=call.server.limits.stall, held=stack.pop_all())


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
