"""Runs of updates, made once for all clients that have a session open.

The pieces of a message are nearly all that an agent sends, they are the same for every client, and they come in runs.
A link that can do more with a whole run than take its lines one by one has `send_run`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw

from ...acp.jsonrpc import encode_notification
from ...log.entries import Entry
from ..frame_cache import FrameCache


class Run:
    """Consecutive updates as lines; `framed` and `joined` are the same as links write it, made when one first asks."""

    __slots__ = ("_framed", "_joined", "lines", "size")

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines
        self.size = sum(map(len, lines))
        self._framed: bytes | None = None
        self._joined: bytes | None = None

    def framed(self, frame: Callable[[bytes], bytes]) -> bytes:
        if self._framed is None:
            self._framed = b"".join([frame(line[:-1]) for line in self.lines])
        return self._framed

    def joined(self) -> bytes:
        if self._joined is None:
            self._joined = b"".join(self.lines)
        return self._joined


def encode_run(session_id: str, entries: Sequence[Entry], cache: FrameCache) -> Run:
    """The updates that these events carry with them, encoded once for all clients."""
    key = (Run, session_id, entries[0].position, entries[-1].position)
    run: Run | None = cache.get(key)
    if run is None:
        run = Run(_lines(session_id, entries))
        cache.put(key, run, run.size)
    return run


def _lines(session_id: str, entries: Sequence[Entry]) -> list[bytes]:
    """Nearly always there is nothing to look at in any of them, which a few looks at all of them tell."""
    head = update_head(session_id)
    said = [entry for entry in entries if entry.source]
    sources: list[bytes] = [entry.source for entry in said]  # type: ignore[misc]  # those that have one
    together = b"".join(sources)
    if any(mark in together for mark in _CAREFUL) or {source[-1:] for source in sources} != {b"}"}:
        return [notification(head, source, entry.seq) for source, entry in zip(sources, said, strict=True)]
    start = encode_notification("session/update", head + b"}")[: -len(b"}}\n")]
    seqs = " ".join([str(entry.seq) for entry in said]).encode().split()
    join = b"".join  # several times as fast as a format
    return [
        join((start, source[:-1], b',"_meta":{"pilothouse":{"seq":', seq, b"}}}}}\n"))
        for source, seq in zip(sources, seqs, strict=True)
    ]


_CAREFUL = (b'"_meta"', b"\n", b"\r")
"""What an update may have that keeps a seq from being put just before its end."""


def update_head(session_id: str) -> bytes:
    """The beginning of the params of all updates of a session."""
    return b'{"sessionId":%b,"update":' % _encode(session_id)


def notification(head: bytes, update: bytes, seq: int, *, more: bool = False) -> bytes:
    """An update as a line."""
    return encode_notification("session/update", head + numbered(update, seq, more=more) + b"}")


def numbered(update: bytes, seq: int, *, more: bool = False) -> bytes:
    """The update with its seq in its `_meta`, and otherwise as it came. `more`: others of the same event follow.

    In the update and not beside it: clients made with the official Python SDK hand what is beside it to their handler
    as an argument, and not every handler takes one.
    """
    if b"\n" in update or b"\r" in update:  # one message is one line where the link is a pipe
        update = msgspec.json.format(update, indent=-1)
    ours = b'{"seq":%d,"more":true}' % seq if more else b'{"seq":%d}' % seq
    if b'"_meta"' not in update:
        return update.rstrip()[:-1] + b',"_meta":{"pilothouse":%b}}' % ours
    fields = _fields_of(update)
    try:
        meta = _fields_of(fields.get("_meta", b"{}"))
    except msgspec.DecodeError:  # null, or nothing that can be added to
        meta = {}
    fields["_meta"] = Raw(_encode({**meta, "pilothouse": Raw(ours)}))
    return _encode(fields)


_fields_of = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode
