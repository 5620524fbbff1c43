"""What a session made that is worth showing by itself, downloaded or shown in a sandbox.

A page or a drawing that an agent made is a stranger's program. It is only ever shown under a policy that takes it out
of our origin and lets no script run (`SANDBOX`), or downloaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from starlette.responses import Response

from ...acp.naming import camel
from ...dialects.packets import artifact_id, artifacts_of
from ...hub.client.browse import BINARY, OpenFile, known_type
from ...hub.session.session import HubSession
from ..errors import HttpError
from ..http.downloads import attachment, download
from ..http.operations import Call, Operation
from .files import files_of, opened

SANDBOX = (
    "sandbox; default-src 'none'; img-src data:; media-src data:; font-src data:; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_PAGES = {"text/html": "text/html; charset=utf-8", "image/svg+xml": "image/svg+xml"}


class ArtifactRow(Struct, kw_only=True, rename=camel):
    """`type` is `image`, `web_app`, `nextjs_app` or `file`; the URLs are relative to the server's."""

    id: str
    type: str
    name: str
    path: str
    mime_type: str
    content_url: str
    preview_url: str | None


class Artifacts(Struct, kw_only=True):
    """In the order in which they were made."""

    artifacts: list[ArtifactRow]


async def find(call: Call) -> Artifacts:
    session = await call.server.hub.session(call.path["id"])
    return Artifacts(artifacts=[_row(call, session.id, made) for made in _made(session).values()])


async def content(call: Call) -> Response:
    file, media_type = await _opened(call)
    headers = {"Content-Disposition": attachment(file.name)}
    return download(call, file, media_type, headers)


async def preview(call: Call) -> Response:
    file, media_type = await _opened(call)
    media_type = _PAGES.get(known_type(file.name), media_type)
    if media_type == BINARY:
        file.close()
        raise HttpError(422, "no_preview", f"{file.name!r} cannot be shown; download it")
    headers = {"Content-Security-Policy": SANDBOX, "Content-Disposition": "inline", "X-Content-Type-Options": "nosniff"}
    return download(call, file, media_type, headers)


async def _opened(call: Call) -> tuple[OpenFile, str]:
    session = await call.server.hub.session(call.path["id"])
    artifact_id = call.path["artifactId"]
    made = _made(session).get(artifact_id)
    if made is None:
        raise HttpError(404, "unknown_artifact", f"the session has no artifact {artifact_id!r}", artifactId=artifact_id)
    _, files = await files_of(call)
    return await opened(files, made["path"])


def _made(session: HubSession) -> dict[str, dict[str, Any]]:
    """The artifacts of a session by id: told by an event, or a file that it made.

    What the hub told of itself is found among the files, unless it was deleted or became part of an application.
    """
    told = [made for made in _sound(item.artifact for item in session.state.artifacts) if not _is_ours(made)]
    found = _sound(artifacts_of(session.state.files.values()))
    return {made["id"]: made for made in (*told, *found)}


def _is_ours(made: dict[str, Any]) -> bool:
    return bool(made["id"] == artifact_id(made["path"]))


def _sound(found: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for made in found:
        if isinstance(made, dict) and all(isinstance(made.get(name), str) for name in ("id", "path")):
            yield {"type": "file", "name": made["path"].rsplit("/", 1)[-1], **made}


def _row(call: Call, session_id: str, made: dict[str, Any]) -> ArtifactRow:
    place = f"{call.server.root_path}/sessions/{session_id}/artifacts/{quote(made['id'], safe='')}"
    is_file = made["type"] != "nextjs_app"  # an application is a directory
    return ArtifactRow(
        id=made["id"],
        type=str(made["type"]),
        name=str(made["name"]),
        path=made["path"],
        mime_type=known_type(made["path"]) if is_file else "inode/directory",
        content_url=place,
        preview_url=f"{place}/preview" if is_file else None,
    )


_ARTIFACT = "/sessions/{id}/artifacts/{artifactId}"
_SENT = {"Range": "One range of bytes.", "If-None-Match": "The ETag of what the caller has."}
OPERATIONS = (
    Operation(
        method="GET",
        path="/sessions/{id}/artifacts",
        handler=find,
        answer=Artifacts,
        summary="List what the session made that can be shown or downloaded",
        tag="files",
    ),
    Operation(
        method="GET",
        path=_ARTIFACT,
        handler=content,
        answer=bytes,
        media_type="*/*",
        headers=_SENT,
        also={206: bytes, 304: None},
        errors=(409, 416),
        summary="Download an artifact",
        tag="files",
    ),
    Operation(
        method="GET",
        path=f"{_ARTIFACT}/preview",
        handler=preview,
        answer=bytes,
        media_type="*/*",
        headers=_SENT,
        also={206: bytes, 304: None},
        errors=(409, 416),
        summary="Show an artifact in a sandbox: no script of it runs, and it has no origin",
        tag="files",
    ),
)
