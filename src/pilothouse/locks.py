"""The lock of a file that several processes share: had by one of them, for as long as it keeps the file open.

The rule a change must not break: a wait for it ends. Where the system has no such locks nobody waits for anybody.
"""

from __future__ import annotations

import time

try:
    import fcntl

    LOCKS = True
except ImportError:  # Windows
    LOCKS = False

__all__ = ["LOCKS", "lock"]

STEP = 0.01
"""Seconds between two tries."""


def lock(descriptor: int, patience: float) -> None:
    """Have the lock of an open file; closing that gives it back. It blocks.

    Raises TimeoutError when another has it for longer than `patience` seconds, any other OSError where the file system
    has no locks.
    """
    if not LOCKS:
        return
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError("another process has it locked") from None
            time.sleep(STEP)
        else:
            return
