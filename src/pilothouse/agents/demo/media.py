"""A picture and a sound, made here so that their bytes are the same everywhere and need no files."""

from __future__ import annotations

import base64
import math
import struct
import zlib

__all__ = ["png", "wav"]


def png(size: int = 16) -> str:
    """A square of colour gradients as a base64 PNG."""
    step = 255 // (size - 1)
    rows = b"".join(b"\0" + b"".join(bytes((x * step, y * step, 160)) for x in range(size)) for y in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunks).decode()


def wav(milliseconds: int = 100, rate: int = 8000, pitch: int = 440) -> str:
    """A short beep as a base64 WAV, 8 bits mono."""
    count = rate * milliseconds // 1000
    samples = bytes(128 + round(90 * math.sin(2 * math.pi * pitch * i / rate)) for i in range(count))
    fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate, 1, 8)
    data = struct.pack("<4sI", b"data", len(samples)) + samples
    riff = struct.pack("<4sI4s", b"RIFF", 4 + len(fmt) + len(data), b"WAVE")
    return base64.b64encode(riff + fmt + data).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
