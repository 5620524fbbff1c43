"""Paths as people want to read them: from the workspace on, without the sandbox's long prefix."""

from __future__ import annotations

import posixpath
import re

from .values import text_of

_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_SESSION_ROOT = re.compile(rf"(?:^|/)(?:sandboxes/{_UUID}/)?sessions/{_UUID}(?:/|$)")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_TOKEN = re.compile(r"[^\s'\"`<>|,;()\[\]{}]+")
_KEPT_SEGMENTS = 3


def relative_path(path: object, workspace: object = None) -> str:
    """A path as people want to read it: from the workspace or the sandbox's session on, else its last three segments.

    Compared segment by segment after `..` is resolved, so `/work/ab` is never inside `/work/a`. A path that is
    relative already stays as it is.
    """
    text = _slashes(text_of(path))
    if not text:
        return ""
    inside = _inside(text, _slashes(text_of(workspace)))
    if inside is not None:
        return inside
    root = _last_session_root(text)
    if root is not None:
        return text[root:] or "."
    if not (text.startswith("/") or _WINDOWS.match(text)):
        return text
    return "/".join([part for part in posixpath.normpath(text).split("/") if part][-_KEPT_SEGMENTS:]) or "/"


def exact_path(path: str, workspace: str | None) -> str:
    """A path from the workspace on if it is inside, else the whole path.

    For requests to the user: a shortened path may look like one of the workspace. `..` stays, because the part in front
    of it may be a link.
    """
    root = (workspace or "").rstrip("/") + "/"
    is_inside = bool(workspace) and path.startswith(root) and ".." not in path.split("/")
    return (path[len(root) :] or path) if is_inside else path


def relative_paths_in_text(text: object, workspace: object = None) -> str:
    """Free text with the workspace and the sandbox's session taken off the paths in it; other paths stay whole."""
    result = text_of(text)
    root = text_of(workspace).rstrip("/\\")
    if root:
        bounded = rf"(?<![\w./\\~-]){re.escape(root)}(?:([/\\])(?=[\w.@+%~=-])|[/\\]?(?![\w~-]|\.\w))"
        result = re.sub(bounded, lambda match: "" if match[1] else ".", result)
    return _TOKEN.sub(_short_token, result) if "sessions/" in result else result


def _short_token(match: re.Match[str]) -> str:
    token = match[0]
    root = _last_session_root(token)
    if root is None:
        return token
    start = token.find("/")
    before = token[:start] if start < root and token[start - 1 : start] in {"=", ":", "@"} else ""
    return before + (token[root:] or ".")


def _last_session_root(path: str) -> int | None:
    end = None
    for match in _SESSION_ROOT.finditer(path):
        end = match.end()
    return end


def _slashes(path: str) -> str:
    return path.replace("\\", "/") if _WINDOWS.match(path) else path


def _inside(path: str, root: str) -> str | None:
    if not root or not path.startswith(("/", root[:1])):
        return None
    whole = posixpath.normpath(path).split("/")
    base = [part for part in posixpath.normpath(root).split("/") if part] if root.strip("/") else []
    parts = [part for part in whole if part]
    if path.startswith("/") != root.startswith("/") or parts[: len(base)] != base:
        return None
    return "/".join(parts[len(base) :]) or "."
