"""A record of sessions for tests of watching and adopting: that of the demo agent, and one that is written by hand.

`DemoStore` reads the files that the demo agent keeps, so what is found there can really be taken up by it. `finder`
makes a Finder of it that sees the processes which a test names, and no others of this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from pilothouse.adapters.discovery.finder import Finder
from pilothouse.adapters.discovery.processes import Holder, Listed
from pilothouse.adapters.discovery.store import Reader, Scan, Step, Store, iso
from pilothouse.model.discovery import DiscoveredSession

SMALL = 7
"""Updates of one step, so that a test sees several."""


class DemoReader(Reader):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._waiting: list[dict[str, Any]] = []

    def read(self) -> Step:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            entry = msgspec.json.decode(line)
            if "update" in entry:
                self._waiting.append(entry["update"])
        updates, self._waiting = self._waiting[:SMALL], self._waiting[SMALL:]
        last = updates[-1].get("sessionUpdate") if updates else None
        status = None if last is None else "running" if last == "user_message_chunk" else "idle"
        return Step(updates=updates, status=None if self._waiting else status)  # type: ignore[arg-type]

    def close(self) -> None:
        pass


class DemoStore(Store):
    """The sessions of demo agents in one directory."""

    agent = "demo"

    def __init__(self, place: Path, project: Path) -> None:
        self.place = place
        self.project = project

    @property
    def places(self) -> Sequence[Path]:
        return [self.place]

    def scan(self) -> Scan:
        found = []
        for path in sorted(self.place.glob("*.jsonl")):
            at = "2026-01-01T00:00:00Z"
            found.append(
                DiscoveredSession(
                    id=path.stem,
                    agent="demo",
                    project_path=str(self.project),
                    project_name=self.project.name,
                    created_at=at,
                    last_activity=iso(path.stat().st_mtime),
                    session_name="Found",
                    status="idle",
                    integration_method="file-watch",
                )
            )
        return Scan(sessions=found)

    def reader(self, session_id: str) -> Reader | None:
        path = self.place / f"{session_id}.jsonl"
        return DemoReader(path) if path.is_file() else None

    def touched(self, path: Path) -> str | None:
        return path.stem if path.suffix == ".jsonl" else None

    def files(self, session_id: str) -> Sequence[Path]:
        return [self.place / f"{session_id}.jsonl"]


class Holders:
    """Who has which session, as a test says it."""

    def __init__(self) -> None:
        self.by_id: dict[str, Holder] = {}
        self.failure: Exception | None = None

    def __call__(self, listed: Iterable[Listed]) -> dict[tuple[str, str], Holder]:
        if self.failure is not None:
            raise self.failure
        alive = {key: one for key, one in self.by_id.items() if psutil.pid_exists(one.pid) and _is_running(one.pid)}
        return {("demo", session_id): holder for session_id, holder in alive.items()}


def _is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def finder(place: Path, project: Path, holders: Holders | None = None, **options: Any) -> Finder:
    return Finder([DemoStore(place, project)], holders=holders or Holders(), **options)


def program(*, stubborn: bool = False) -> subprocess.Popen[bytes]:
    """A program that has a session, until it is ended; a stubborn one does not end by being told to."""
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " if stubborn else ""
    code = f"{deaf}import sys; print('up', flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


def holder_of(process: subprocess.Popen[bytes], **values: Any) -> Holder:
    started = psutil.Process(process.pid).create_time()
    return Holder(**{"pid": process.pid, "started": started, "program": "demo", "sign": "argument", **values})


def write_record(place: Path, session_id: str, project: Path, updates: Sequence[dict[str, Any]] = ()) -> Path:
    """A record as the demo agent keeps them."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{session_id}.jsonl"
    append(path, {"settings": {"cwd": str(project)}}, *({"update": update} for update in updates))
    return path


def append(path: Path, *entries: dict[str, Any]) -> None:
    with path.open("ab") as file:
        for entry in entries:
            file.write(msgspec.json.encode(entry) + b"\n")


def says(text: str, message_id: str | None = None, *, user: bool = False) -> dict[str, Any]:
    kind = "user_message_chunk" if user else "agent_message_chunk"
    named = {"messageId": message_id} if message_id else {}
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}, **named}


def demo_store() -> DemoStore:
    """As a package brings it, by an entry point; see `packaged`."""
    return DemoStore(Path(os.environ["DEMO_RECORDS"]), Path(os.environ["DEMO_PROJECT"]))


def packaged(directory: Path, place: Path, project: Path) -> dict[str, str]:
    """Variables with which a process has the demo agent's records among the stores, as if a package was installed."""
    info = directory / "demo_records-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo-records\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pilothouse.stores]\ndemo = tests.support.records:demo_store\n")
    root = Path(__file__).parents[2]
    return {"PYTHONPATH": f"{directory}:{root}", "DEMO_RECORDS": str(place), "DEMO_PROJECT": str(project)}
