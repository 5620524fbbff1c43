"""How a hub's process takes memory from the system and gives it back.

Events are short-lived and of all sizes, and glibc by itself learns from them to keep ever larger pieces in its heap,
in an arena for each thread: a hub that was busy once stays large, and each busy hour leaves it a little larger. With
these bounds what is freed goes back. Only whoever owns the process may set them, so the hub as a library does not.
"""

from __future__ import annotations

import ctypes
import os

__all__ = ["bound_heap"]

_MMAP_THRESHOLD, _TRIM_THRESHOLD, _ARENA_MAX = -3, -1, -8
_BOUNDS = {
    _MMAP_THRESHOLD: 256 << 10,  # larger pieces are the system's, and go back at once; to set it ends the learning
    _TRIM_THRESHOLD: 512 << 10,
    _ARENA_MAX: 2,
}


def bound_heap() -> bool:
    """Set the bounds where the C library has them; true if it has."""
    if "CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", ()):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    taken = [mallopt(name, value) for name, value in _BOUNDS.items()]
    return all(taken)
