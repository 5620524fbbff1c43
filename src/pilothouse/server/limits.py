"""How much of anything one consumer may take. Each limit is an error or an ending that says so, never a silent loss."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Bytes, counts and seconds."""

    body: int = 8 << 20
    """Bytes of a JSON body."""
    upload: int = 64 << 20
    """Bytes of a file sent into the workspace."""
    frame: int = 8 << 20
    """Bytes of a WebSocket frame from a consumer."""
    connections: int = 1024
    """Streams and WebSockets in all."""
    per_caller: int = 256
    """Streams and WebSockets of one device."""
    subscriptions: int = 200
    """Sessions that one WebSocket may name."""
    stall: float = 30.0
    """Seconds after which a consumer that takes nothing is let go; its cursor stays good."""
    heartbeat: float = 15.0
    """Seconds of silence before a stream shows that it is alive."""
    headers: float = 10.0
    """Seconds a request's headers may take to arrive."""
    header_bytes: int = 64 << 10
    """Bytes of a request's line and headers."""
    sockets: int = 2048
    """Connections in all, also those that have not asked for anything yet."""
    per_address: int = 128
    """Connections of one address beyond this machine."""
