"""The files of a session's directory: listed, downloaded, put there. Nothing outside of it is reached.

A name in a path is a file's name or part of it; what it leads to is found out by the hub, never here.
"""

from __future__ import annotations

import asyncio
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta
from starlette.responses import Response

from ...hub.client.browse import FileEntry, Listing, OpenFile, WorkspaceFiles
from ...hub.client.refusals import AlreadyThere
from ...log.records import SessionRecord
from ..errors import HttpError
from ..http.downloads import HEAD, attachment, download, inert_type
from ..http.operations import Call, Operation, Query, json_response, read_body

UPLOAD_TIMEOUT = 300.0
"""Seconds a file may take to arrive."""


class Listed(Query):
    """A directory, by default the session's own; `after` is the `next` of the page before."""

    path: Annotated[str, Meta(max_length=8192)] = "."
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=5000)] = 1000


class Put(Query):
    """Whether a file that is there may be replaced."""

    overwrite: bool = False


async def files_of(call: Call) -> tuple[SessionRecord, WorkspaceFiles]:
    """A session's record, and its directory. Raises UnknownSession."""
    hub = call.server.hub
    record = await hub.log.sessions.get(call.path["id"])
    limit = call.server.limits.upload
    return record, await asyncio.to_thread(lambda: WorkspaceFiles(record.cwd, home=hub.home, file_limit=limit))


async def opened(files: WorkspaceFiles, path: str) -> tuple[OpenFile, str]:
    """A file, and the inert type of what is in it; whoever gets it closes it. Raises WorkspaceError."""
    file = await files.open(path)
    try:
        return file, inert_type(file.name, await asyncio.to_thread(file.read, 0, HEAD))
    except BaseException:
        file.close()
        raise


async def find(call: Call) -> Listing:
    query: Listed = call.query
    _, files = await files_of(call)
    return await files.list(query.path or ".", after=query.after, limit=query.limit)


async def read(call: Call) -> Response:
    _, files = await files_of(call)
    file, media_type = await opened(files, call.path["path"])
    headers = {"Content-Disposition": attachment(file.name)}
    return download(call, file, media_type, headers)


async def put(call: Call) -> Response:
    record, files = await files_of(call)
    query: Put = call.query
    match = call.request.headers.get("if-match")
    async with call.server.uploads:
        data = await read_body(call.request, call.server.limits.upload, timeout=UPLOAD_TIMEOUT)
        try:
            entry, is_new = await files.put(call.path["path"], data, overwrite=query.overwrite, match=match)
        except AlreadyThere as exc:
            message = f"{exc}: by `?overwrite=true`, or by `If-Match` with its ETag"
            raise HttpError(409, "exists", message, **exc.data) from None
    place = f"{call.server.root_path}/sessions/{record.id}/files/{quote(entry.path)}"
    return json_response(entry, 201 if is_new else 200, {"Location": place, "ETag": entry.etag or ""})


_FILES = "/sessions/{id}/files"
OPERATIONS = (
    Operation(
        method="GET",
        path=_FILES,
        handler=find,
        query=Listed,
        answer=Listing,
        errors=(409,),
        summary="List a directory of the session",
        tag="files",
    ),
    Operation(
        method="GET",
        path=f"{_FILES}/{{path:path}}",
        handler=read,
        answer=bytes,
        media_type="*/*",
        headers={"Range": "One range of bytes.", "If-None-Match": "The ETag of what the caller has."},
        also={206: bytes, 304: None},
        errors=(409, 416),
        summary="Download a file of the session",
        tag="files",
    ),
    Operation(
        method="PUT",
        path=f"{_FILES}/{{path:path}}",
        handler=put,
        scope="prompt",
        query=Put,
        body=bytes,
        headers={"If-Match": "Replace the file if its ETag is this."},
        answer=FileEntry,
        status=201,
        also={200: FileEntry},
        errors=(409, 412, 507),
        summary="Put a file into the session's directory, as a whole or not at all",
        tag="files",
    ),
)
