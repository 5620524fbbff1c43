"""Which of the files a session made are worth showing by themselves: images, pages, web applications, files.

An application is one artifact, its root: the files below it are not shown one by one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from .shapes import ArtifactType

__all__ = ["artifact_id", "artifacts_of", "detect_artifact"]

_IMAGES = frozenset({"png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "ico", "avif", "tif", "tiff"})
_NEXT_FILE = re.compile(
    r"(?:^|/)(?:next\.config\.(?:[cm]?js|ts)|(?:src/)?app/(?:page|layout)\.[jt]sx?|pages/_app\.[jt]sx?)$"
)
_WEB_FILE = re.compile(r"(?:^|/)vite\.config\.(?:[cm]?[jt]s)$|\.html?$")


def detect_artifact(path: object, mime: object = None, content: object = None) -> ArtifactType:
    """What a file is, by its name, and by its type and text where they are known."""
    name = path.replace("\\", "/") if isinstance(path, str) else ""
    kind = mime if isinstance(mime, str) else ""
    if kind.startswith("image/") or name.rpartition(".")[2].lower() in _IMAGES:
        return "image"
    if _NEXT_FILE.search(name) or (posixpath.basename(name) == "package.json" and _depends_on_next(content)):
        return "nextjs_app"
    if kind.partition(";")[0] == "text/html" or _WEB_FILE.search(name.lower()):
        return "web_app"
    return "file"


def _depends_on_next(content: object) -> bool:
    if not isinstance(content, str | bytes):
        return False
    try:
        package = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    wanted = package.get("dependencies") if isinstance(package, Mapping) else None
    return isinstance(wanted, Mapping) and "next" in wanted


def artifacts_of(changes: Iterable[object]) -> list[dict[str, Any]]:
    """The artifacts that some file changes made: records, events or JSON of them, or plain paths.

    Only files that are new make one. The id follows from the path, so the same file is the same artifact again.
    """
    made = [(path, detect_artifact(path, content=text)) for path, text in map(_created, changes) if path]
    roots = {_root(path) for path, kind in made if kind == "nextjs_app"}
    artifacts: dict[str, dict[str, Any]] = {}
    for path, kind in made:
        root = next((root for root in roots if root is not None and _below(path, root)), None)
        place = path if root is None else root
        artifacts.setdefault(place, _artifact(place or ".", kind if root is None else "nextjs_app"))
    return list(artifacts.values())


def artifact_id(path: str) -> str:
    """The id of what is made at a path."""
    return f"artifact-{blake2b(path.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def _artifact(path: str, kind: ArtifactType) -> dict[str, Any]:
    name = posixpath.basename(path.rstrip("/")) or path
    return {"id": artifact_id(path), "type": kind, "name": name, "path": path, "preview_url": None}


def _root(path: str) -> str:
    """The directory of the application that a file gives away."""
    folder = posixpath.dirname(path)
    if posixpath.basename(folder) in {"app", "pages"} and "config" not in posixpath.basename(path):
        folder = posixpath.dirname(folder)
        if posixpath.basename(folder) == "src":
            folder = posixpath.dirname(folder)
    return folder


def _below(path: str, root: str) -> bool:
    return not root or path == root or path.startswith(root.rstrip("/") + "/")


def _created(change: object) -> tuple[str, object]:
    """The path and the new text of a change that makes a file; no path for any other."""
    if isinstance(change, str):
        return change, None
    fields: Any = change if isinstance(change, Mapping) else _fields(change)
    path = next((fields[name] for name in ("path", "file_path", "filePath") if isinstance(fields.get(name), str)), "")
    how = next(
        (fields[name] for name in ("change_type", "changeType", "type") if isinstance(fields.get(name), str)), ""
    )
    return (path, fields.get("after")) if how in {"created", "add"} else ("", None)


def _fields(change: object) -> dict[str, Any]:
    return {name: getattr(change, name) for name in getattr(change, "__struct_fields__", ())}
