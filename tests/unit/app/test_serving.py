"""The bounds of a hub's heap, in a process of their own: they hold for all of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

GIVE_BACK = """
import sys, threading
from pilothouse.app.serving import bound_heap

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if not bound_heap():
    sys.exit("no bounds")
pin = []
def fill():
    pieces = []
    for round in range(40):
        pieces += [bytes(600_000) for _ in range(5)]
        pin.append(bytes(600))
    pieces.clear()
before = resident()
for _ in range(3):
    threads = [threading.Thread(target=fill) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such bounds")
def test_what_a_busy_hour_took_goes_back_to_the_system() -> None:
    ran = subprocess.run([sys.executable, "-c", GIVE_BACK], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 20_000_000  # of 480 MB
