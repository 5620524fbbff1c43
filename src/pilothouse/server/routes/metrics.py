"""Figures for Prometheus, in its text format: the hub, its log, what is connected, and this process."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response

from ... import __version__
from ...hub.hub import Hub
from ...model.session import STATUSES
from ..http.operations import Call, Operation
from ..state import Server

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PAGE = 1000
_STARTED = time.time()


class Family(NamedTuple):
    """One metric: its name, its kind, what it means, and its samples by their labels."""

    name: str
    kind: str
    meaning: str
    samples: list[tuple[Mapping[str, str], float]]


async def metrics(call: Call) -> Response:
    families = [*await _hub(call.server), *await asyncio.to_thread(_process)]
    return Response(render(families), media_type=MEDIA_TYPE)


def render(families: Iterable[Family]) -> str:
    """The text format, version 0.0.4."""
    lines: list[str] = []
    for family in families:
        lines += (f"# HELP {family.name} {_escaped(family.meaning)}", f"# TYPE {family.name} {family.kind}")
        for labels, value in family.samples:
            inner = ",".join(f'{name}="{_escaped(text, quote=True)}"' for name, text in labels.items())
            lines.append(f"{family.name}{{{inner}}} {value:.17g}" if inner else f"{family.name} {value:.17g}")
    return "\n".join([*lines, ""])


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _one(name: str, kind: str, meaning: str, value: float) -> Family:
    return Family(f"pilothouse_{name}", kind, meaning, [({}, value)])


async def _hub(server: Server) -> list[Family]:
    hub = server.hub
    statuses = await _statuses(hub)
    stored = hub.log.statistics()
    live = list(hub.live.values())
    by_status: list[tuple[Mapping[str, str], float]] = [({"status": one}, statuses[one]) for one in STATUSES]
    return [
        Family("pilothouse_build_info", "gauge", "Which Pilothouse this is.", [(_build(), 1)]),
        Family("pilothouse_sessions", "gauge", "Sessions that are not deleted, by status.", by_status),
        _one("sessions_live", "gauge", "Sessions in memory.", len(live)),
        _one("agents_running", "gauge", "Agent processes.", sum(one.agent_pid is not None for one in live)),
        _one("prompts_queued", "gauge", "Prompts that wait for a turn.", sum(len(one.queue) for one in live)),
        _one("approvals_pending", "gauge", "Approvals that wait for a person.", len(await hub.approvals())),
        _one("events_appended_total", "counter", "Events stored.", stored["events"]),
        _one("log_commits_total", "counter", "Commits of the log.", stored["commits"]),
        _one("log_batches_queued", "gauge", "Batches on their way to the disk.", stored["queued"]),
        _one("log_followers", "gauge", "Cursors that follow the log.", stored["followers"]),
        _one("log_tail_bytes", "gauge", "Bytes of events kept in memory for followers.", stored["tail_bytes"]),
        _one("connections", "gauge", "Streams and sockets that are open.", len(server.connections)),
        _one("connections_served_total", "counter", "Streams and sockets ever opened.", server.connections.served),
    ]


def _build() -> dict[str, str]:
    return {"version": __version__, "python": sys.version.partition(" ")[0], "platform": sys.platform}


async def _statuses(hub: Hub) -> Counter[str]:
    counts: Counter[str] = Counter()
    page = await hub.sessions(archived=None, limit=PAGE)
    counts.update(record.status for record in page.sessions)
    while page.next is not None:
        page = await hub.sessions(archived=None, limit=PAGE, before=page.next)
        counts.update(record.status for record in page.sessions)
    return counts


def _process() -> list[Family]:
    """Of this process, under the names that Prometheus has for them. What a system does not tell is left out."""
    times = os.times()
    found = [
        ("process_cpu_seconds_total", "counter", "CPU time used.", times.user + times.system),
        ("process_start_time_seconds", "gauge", "When this process began, by the epoch.", _STARTED),
    ]
    if (resident := _resident()) is not None:
        found.append(("process_resident_memory_bytes", "gauge", "Memory in use.", resident))
    if (blocks := sys.getallocatedblocks()) > 0:
        found.append(("python_allocated_blocks", "gauge", "Blocks of memory that Python has in use.", blocks))
    for place in ("/proc/self/fd", "/dev/fd"):
        try:
            found.append(("process_open_fds", "gauge", "Open file descriptors.", len(list(Path(place).iterdir()))))
            break
        except OSError:
            continue
    return [Family(name, kind, meaning, [({}, value)]) for name, kind, meaning, value in found]


def _resident() -> float | None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
        return None


OPERATIONS = (
    Operation(
        method="GET",
        path="/metrics",
        handler=metrics,
        answer=str,
        media_type="text/plain",
        summary="Figures for Prometheus",
        tag="hub",
    ),
)
