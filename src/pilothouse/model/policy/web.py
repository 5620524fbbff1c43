"""Origins of web pages: which one a fetch tool asks for, and which ones a denial recognises.

An origin is scheme, host and port, written `https://example.com` or `http://localhost:8080`. To allow, a URL is read
strictly: anything that two programs could read differently (userinfo, a backslash, an unusual character, a host with
a trailing dot) has no origin. To deny, it is read generously: every host that a program could take from it counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from ..tools.names import spelling

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_AUTHORITY = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]{{2,45}}\])(?::(?P<port>[1-9][0-9]{{0,4}}))?",
    re.IGNORECASE | re.ASCII,
)
# the path has to begin with a slash: some programs take `https://a.example?@b.example` for a page of b.example
_REST = re.compile(r"(?:/[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*)?", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL_KEYS = frozenset({"url", "uri"})
# arguments of fetch tools that choose how a page is read, not which one, nor what is sent to it
_READING_KEYS = frozenset(
    {
        *("prompt", "description", "question", "instructions", "objective", "format", "outputformat", "raw"),
        *("timeout", "timeoutms", "maxlength", "maxchars", "maxtokens", "startindex", "offset", "limit"),
    }
)
_ADDRESS_LIKE = re.compile(r":[/\\]|^\s*[/\\]{2}|\bwww\.", re.IGNORECASE)
_MAX_URL = 8_000
_MAX_DEPTH = 12


@lru_cache(maxsize=4096)
def parse_origin(text: str) -> str:
    """An origin in its normal form: lower case, without a default port.

    Raises:
        ValueError: it is not a scheme (http, https), a host and perhaps a port; a pattern is not an origin either.
    """
    found = _AUTHORITY.fullmatch(text.removesuffix("/"))
    origin = _origin(found) if found else None
    if origin is None:
        raise ValueError(f"expected an origin such as https://example.com or http://localhost:8080, got {text!r}")
    return origin


def url_origin(url: object) -> str | None:
    """The origin of a URL, if every program reads the same one from it."""
    if not isinstance(url, str) or len(url) > _MAX_URL:
        return None
    found = _AUTHORITY.match(url)
    return _origin(found) if found and _REST.fullmatch(url, found.end()) else None


def _origin(found: re.Match[str]) -> str | None:
    scheme, host = found["scheme"].lower(), found["host"].lower()
    port = int(found["port"]) if found["port"] else _DEFAULT_PORTS[scheme]
    if port > 65535:
        return None
    return f"{scheme}://{host}" if port == _DEFAULT_PORTS[scheme] else f"{scheme}://{host}:{port}"


def fetched_origin(raw: object) -> str | None:
    """The only origin that a fetch tool's input requests; None if other arguments do more than say how to read it."""
    if not isinstance(raw, Mapping):
        return None
    urls = [value for key, value in raw.items() if key in _URL_KEYS]
    others = [(key, value) for key, value in raw.items() if key not in _URL_KEYS]
    if len(urls) != 1 or not all(_is_about_reading(key, value) for key, value in others):
        return None
    return url_origin(urls[0])


def _is_about_reading(key: object, value: object) -> bool:
    if not isinstance(key, str) or not key.isascii() or spelling(key) not in _READING_KEYS:
        return False
    if isinstance(value, str):
        return _ADDRESS_LIKE.search(value) is None
    return value is None or isinstance(value, bool | int | float)


# Denials -----------------------------------------------------------------------------------------------------------

_ADDRESS_KEY = re.compile(r"ur[li]s?$|^ur[li]|href|link|address|website|endpoint", re.IGNORECASE)
_STOPPED_BY_BACKSLASH = re.compile(r"(https?):[/\\]*([^/\\?#\s]*)", re.IGNORECASE)
_STOPPED_BY_SLASH = re.compile(r"(https?):[/\\]*([^/?#\s]*)", re.IGNORECASE)
# punctuation that may follow an address in prose
_PUNCTUATION = ".,;:!)>]}'\"`"


def mentions_origin(raw: object, origin: str, *, everywhere: bool) -> bool:
    """Whether any text of an input could lead to an origin; without `everywhere` only those named as an address."""
    return any(
        origin in _possible_origins(text, is_address=_ADDRESS_KEY.search(key) is not None)
        for key, text in _texts(raw, "", _MAX_DEPTH)
        if everywhere or _ADDRESS_KEY.search(key)
    )


def _texts(value: Any, key: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif depth <= 0:
        return
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, name if isinstance(name, str) else "", depth - 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, key, depth - 1)


def _possible_origins(text: str, *, is_address: bool) -> set[str]:
    """Every origin that some program could read from a text."""
    plain = unicodedata.normalize("NFKC", text).replace("\u3002", ".")
    plain = "".join(one for one in plain if unicodedata.category(one) != "Cf")
    joined = re.sub(r"[\x00-\x1f\x7f]", "", plain)  # browsers drop tabs and line breaks inside of a URL
    readings = {plain, joined}
    if is_address and not re.match(r"\s*[a-z][a-z0-9+.-]*:[/\\]", plain, re.IGNORECASE):
        bare = joined.strip().lstrip("/\\")
        readings |= {f"https://{bare}", f"http://{bare}"}
    found: set[str] = set()
    for reading in readings:
        for pattern in (_STOPPED_BY_BACKSLASH, _STOPPED_BY_SLASH):
            for scheme, authority in pattern.findall(reading):
                # programs differ in which side of an @ is the host
                for part in (authority, *authority.split("@")):
                    found |= set(_loose_origin(scheme.lower(), part))
    return found


def _loose_origin(scheme: str, authority: str) -> Iterator[str]:
    host = unquote(authority).casefold().split("\\")[0]
    for text in (host, host.rstrip(_PUNCTUATION)):
        name, _, port = text.rpartition(":") if re.search(r":\d*$", text) else (text, "", "")
        number = int(port) if port.isdecimal() and len(port) < 9 else _DEFAULT_PORTS[scheme]
        shown = "" if number == _DEFAULT_PORTS[scheme] else f":{number}"
        yield f"{scheme}://{name.rstrip('.')}{shown}"
