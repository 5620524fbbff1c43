"""Disks and rights for tests of storage: a file system with little room, and a user who may not write everything."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

PAGE = 4096
PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


@contextlib.contextmanager
def small_disk(place: Path, size: int) -> Iterator[bool]:
    """A file system of so many bytes, mounted on a directory; False where this user cannot mount one."""
    place.mkdir(mode=0o700, exist_ok=True)
    program = shutil.which("mount")
    mounted = False
    if program is not None:
        mount = [program, "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(place)]
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def as_ordinary_user() -> None:
    """To be called between fork and exec: afterwards permissions count, for root as for everybody."""
    if os.geteuid() == 0 and sys.platform == "linux":
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            if ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                os._exit(99)


def with_header(path: Path) -> None:
    _patch(path, 0, b"XXXX")


def with_schema_page(path: Path) -> None:
    _patch(path, 100, b"\xff" * (PAGE - 200))


def with_middle_page(path: Path) -> None:
    db = sqlite3.connect(path)
    (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'batches'").fetchone()
    db.close()
    _patch(path, (root - 1) * PAGE, b"\xff" * PAGE)


def with_newer_schema(path: Path) -> None:
    _patch(path, 60, struct.pack(">i", 999))


def with_foreign_tables(path: Path) -> None:
    path.unlink()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE recipes (name)")
    db.commit()
    db.close()


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // PAGE // 2 * PAGE)


def cut_to_a_stub(path: Path) -> None:
    os.truncate(path, 50)


def overwritten(path: Path) -> None:
    path.write_bytes(b"to do: water the plants\n")


def _patch(path: Path, place: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)


DAMAGES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "damaged header": (with_header, "header is damaged", "move it aside"),
    "damaged schema": (with_schema_page, "the database is damaged", "move it aside"),
    "damaged page": (with_middle_page, "the database is damaged", "move it aside"),
    "cut short": (cut_short, "the database is damaged", "move it aside"),
    "cut to a stub": (cut_to_a_stub, "header is damaged", "move it aside"),
    "overwritten": (overwritten, "not a SQLite database", "move it aside"),
    "newer schema": (with_newer_schema, "schema version 999", "update Pilothouse"),
    "of another program": (with_foreign_tables, "another program", "use another path"),
}
"""What can be wrong with a database: how it comes to be, what is said of it, and what is advised."""
