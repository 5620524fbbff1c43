"""The command line as people and programs use it: run to its end, or typed at in a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["PATIENCE", "Cli", "Typist"]

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r")
PATIENCE = 60


class Cli:
    """`pilothouse` on a home of its own."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.project = directory / "project"
        self.project.mkdir(exist_ok=True)
        self.environment = {**os.environ, "PILOTHOUSE_HOME": str(self.home), "TERM": "xterm-256color"}
        self.environment |= {"COLUMNS": "100", "LINES": "40"}

    def command(self, *args: object) -> list[str]:
        return [sys.executable, "-W", "error", "-m", "pilothouse.cli", *map(str, args)]

    def __call__(
        self, *args: object, given: str | None = None, prepare: Callable[[], None] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, without a terminal. `prepare` is done in its process before it begins."""
        return subprocess.run(
            self.command(*args),
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.environment,
            cwd=self.project,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            preexec_fn=prepare,
        )


class Typist:
    """Sits at a pseudo-terminal: types, and reads until something appears. Without `terminal` it only reads a pipe."""

    def __init__(self, cli: Cli, *args: object, terminal: bool = True) -> None:
        self._master, slave = pty.openpty() if terminal else os.pipe()
        self.process = subprocess.Popen(
            cli.command(*args),
            stdin=slave if terminal else subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
            env=cli.environment,
            cwd=cli.project,
        )
        os.close(slave)
        self._unread = ""
        self.seen = ""
        """All that ever came."""
        self._erased = 0

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupts(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def sees(self, text: str) -> str:
        """Wait for a text; the answer is everything before it that was not seen yet."""
        end = time.monotonic() + PATIENCE
        while text not in self._unread:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{text!r} did not appear, but {self._unread!r}"
            try:
                data = os.read(self._master, 65536)
            except OSError:  # Linux reports the end of a pseudo-terminal like this
                data = b""
            assert data, f"{text!r} did not appear before the end, but {self._unread!r}"
            self._take(data)
        before, _, self._unread = self._unread.partition(text)
        return before

    def interrupts_typing(self) -> None:
        """Interrupt while something is typed, and wait until that is wiped away."""
        before, end = self._erased, time.monotonic() + PATIENCE
        self.interrupts()
        while self._erased == before:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, "what was typed is still there"
            self._take(os.read(self._master, 65536))

    def leaves(self) -> int:
        """Read to the end; the answer is the exit code."""
        end = time.monotonic() + PATIENCE
        while True:
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"it did not leave; last seen: {self._unread!r}"
            try:
                data = os.read(self._master, 65536)
            except OSError:
                break
            if not data:
                break
            self._take(data)
        return self.process.wait(PATIENCE)

    def _take(self, data: bytes) -> None:
        self._erased += data.count(b"\x1b[J")
        text = ESCAPE.sub("", data.decode(errors="replace"))
        self._unread += text
        self.seen += text

    @property
    def rest(self) -> str:
        """What came and was not waited for."""
        return self._unread

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
