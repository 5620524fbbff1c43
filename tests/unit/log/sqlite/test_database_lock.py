"""The lock of a log: refused while its holder runs, waited for while that is on its way out."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pilothouse.log import LogLocked
from pilothouse.log.sqlite import database as lock
from pilothouse.log.sqlite.database import FileLock


def test_the_lock_of_a_process_that_runs_is_refused_at_once_and_names_it(tmp_path: Path) -> None:
    held, other = FileLock(tmp_path / "hub.db"), FileLock(tmp_path / "hub.db")
    assert held.acquire() is None
    with pytest.raises(LogLocked) as caught:
        other.acquire()
    assert caught.value.pid == os.getpid()
    held.release()
    assert other.acquire() is None
    other.release()


@pytest.mark.parametrize("holder", ["", "nobody"])
def test_a_lock_whose_holder_is_going_is_waited_for(tmp_path: Path, holder: str) -> None:
    ended = subprocess.Popen(["true"])
    try:
        while not lock._is_exiting(ended.pid):  # it has ended, and is still listed because nobody took note of that
            time.sleep(0.01)
        os.kill(ended.pid, 0)
        going = FileLock(tmp_path / "hub.db")
        descriptor = os.open(going.path, os.O_RDWR | os.O_CREAT)
        os.write(descriptor, holder.encode() or str(ended.pid).encode())
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        letting_go = threading.Timer(0.1, os.close, (descriptor,))
        letting_go.start()
        assert going.acquire() is None
        letting_go.join()
        going.release()
    finally:
        ended.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that a process is on its way out")
def test_a_process_that_runs_is_not_on_its_way_out() -> None:
    assert not lock._is_exiting(os.getpid())
    assert not lock._is_exiting(2**22 + 1)
