"""Which process has a session, so that nobody else writes to it: found by what the system tells of its processes.

Four signs, from sure to weak: the process itself says so in a file of its agent; the session's id is among its
arguments; it has the session's file open; it runs where the session was that changed last there. The last one is a
guess: a program that was told to go on with the last session says nothing before it writes. A process is its number and
its start together: numbers are used again. A process is ended only when that is asked for by both.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ...model.discovery import DiscoveredSession, DiscoveredStatus
from ..running import HUB
from .store import Store

__all__ = ["HUB", "SLACK", "Holder", "Listed", "end_process", "find_holders", "told_holder"]

SLACK = 2.0
"""Seconds by which two clocks may disagree on when a process began."""
GRACE = 5.0
"""Seconds that a process has to end by itself once it is asked to."""
KILLED = 3.0
STEP = 0.02
WORDS = 8
"""Words of a command line among which its program is: options of what runs it come before."""
COPYING = frozenset({"--fork-session", "fork"})
"""Arguments with which a session is only read, to begin another one."""
SERVICES = frozenset({"daemon", "--managed-daemon"})
"""Arguments of a service that an agent leaves behind for all directories, as Codex does: the one that it was started
in says nothing."""
RUNNERS = re.compile(r"node(js)?|bun|deno|python[\d.]*|ruby|(ba|da|z)?sh|env|npx|bunx|uvx")
"""Programs that run another one, which is named after them. After any other its words are no programs: an editor that
has a file of an agent's name open is not that agent."""
_ENDINGS = (".exe", ".js", ".mjs", ".cjs", ".cmd")

Sign: TypeAlias = Literal["told", "argument", "file", "directory"]
_STRENGTH: tuple[Sign, ...] = ("told", "argument", "file", "directory")


class Holder(Struct, frozen=True, kw_only=True):
    """A process that has a session. `started` is when it began, in seconds; `status` what it says that it does; `hub`
    the hub that started it, by its mark; `is_ours`, that this very process did, where marks cannot be read."""

    pid: int
    started: float
    program: str
    sign: Sign
    status: DiscoveredStatus | None = None
    hub: str | None = None
    is_ours: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether it is more than a guess: in one directory several programs may work."""
        return self.sign != "directory"


class Listed(Struct, frozen=True):
    """A store and the sessions that it has."""

    store: Store
    sessions: Sequence[DiscoveredSession]


class Process(Struct, frozen=True, kw_only=True):
    """A process of an agent, as the system tells of it; `handle` asks for more, which costs more."""

    pid: int
    started: float
    words: tuple[str, ...]
    names: frozenset[str]
    handle: Any


Key: TypeAlias = tuple[str, str]


def find_holders(listed: Iterable[Listed]) -> dict[Key, Holder]:
    """The process of each session that has one, by agent and id of the session. It blocks, and never raises."""
    stores = list(listed)
    wanted = frozenset(name for each in stores for name in each.store.programs)
    running = {process.pid: process for process in _running(wanted)}
    found: dict[Key, Holder] = {}
    for each in stores:
        mine = {pid: process for pid, process in running.items() if process.names & frozenset(each.store.programs)}
        for session_id, holder in _of_store(each, mine):
            known = found.get((each.store.agent, session_id))
            if known is None or _rank(holder) < _rank(known):
                found[each.store.agent, session_id] = holder
    return found


def told_holder(pid: int, agent: str) -> Holder | None:
    """The process of which an adapter says that it has a session; None when there is none, or it is ours. It blocks."""
    process = _process(pid) if pid != os.getpid() else None
    return _holder(process, "told", (agent,)) if process is not None else None


def _rank(holder: Holder) -> tuple[int, bool, float, int]:
    # what a hub runs must not hide who else is there; of a launcher and what it launched the latter is who writes
    return _STRENGTH.index(holder.sign), holder.is_ours or holder.hub is not None, -holder.started, -holder.pid


def _of_store(listed: Listed, running: Mapping[int, Process]) -> Iterator[tuple[str, Holder]]:
    left = dict(running)
    for owner in listed.store.owners():
        process = left.get(owner.pid) or _process(owner.pid)
        # the file may come from where numbers mean other processes, as in a container that shares the disk
        is_its = process is not None and _is_of(process, listed.store.programs)
        if process is not None and is_its and process.started <= owner.since + SLACK:
            left.pop(owner.pid, None)
            yield owner.session_id, _holder(process, "told", listed.store.programs, owner.status)
    for process in left.values():  # also one whose word is not believed: a clock that was set looks like a new process
        if COPYING.isdisjoint(process.words):
            yield from _by_signs(process, listed)


def _is_of(process: Process, programs: Collection[str]) -> bool:
    """Whether its path, or that of the script that it runs, speaks of one of these programs at all."""
    return any(name in word.lower() for word in process.words[:WORDS] for name in programs)


def _by_signs(process: Process, listed: Listed) -> Iterator[tuple[str, Holder]]:
    """The sessions of a process that says nothing of itself, by the best sign that it gives."""
    for sign, sessions in (("argument", _named), ("file", _opened), ("directory", _worked_at)):
        named = sessions(process, listed)
        if named:
            for session_id in named:
                yield session_id, _holder(process, sign, listed.store.programs)  # type: ignore[arg-type]
            return


def _named(process: Process, listed: Listed) -> Collection[str]:
    words = {word.rpartition("=")[2] for word in process.words[1:]}
    return [session.id for session in listed.sessions if session.id in words]


def _opened(process: Process, listed: Listed) -> Collection[str]:
    paths = _asked(process.handle.open_files, ())
    return {session_id for file in paths if (session_id := listed.store.touched(Path(file.path))) is not None}


def _worked_at(process: Process, listed: Listed) -> Collection[str]:
    """The one session that changed last where the process works; of a process that a hub runs, if that was since it
    began: what a hub takes up it tells by a lease."""
    if not SERVICES.isdisjoint(process.words):
        return ()
    cwd = _asked(process.handle.cwd, "")
    there = [session for session in listed.sessions if cwd and session.project_path in (cwd, os.path.realpath(cwd))]
    latest = max(there, key=lambda session: seconds_of(session.last_activity), default=None)
    if latest is None:
        return ()
    is_of_hub = bool(_asked(process.handle.environ, {}).get(HUB))
    return () if is_of_hub and seconds_of(latest.last_activity) < process.started - SLACK else [latest.id]


def seconds_of(moment: str) -> float:
    try:
        return datetime.fromisoformat(moment).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _holder(process: Process, sign: Sign, programs: Collection[str], status: DiscoveredStatus | None = None) -> Holder:
    environment = _asked(process.handle.environ, None)
    unmarked = environment is None  # the system does not tell; then the family does
    return Holder(
        pid=process.pid,
        started=process.started,
        program=_program(process, programs),
        sign=sign,
        status=status,
        hub=None if unmarked else environment.get(HUB) or None,
        is_ours=unmarked and os.getpid() in (parent.pid for parent in _asked(process.handle.parents, ())),
    )


def _program(process: Process, programs: Collection[str]) -> str:
    """What its user calls it: the agent's program, not what runs that, nor a version that its path ends with."""
    first = Path(process.words[0]).name if process.words else ""
    if _name(first) in programs:
        return _shown(first)
    spoken = (name for name in programs if any(name in word.lower() for word in process.words[:WORDS]))
    return next(iter(sorted(process.names.intersection(programs))), None) or next(spoken, None) or _shown(first)


def _shown(name: str) -> str:
    """A name that somebody chose, as a message can have it."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:100])


# -- the system ---------------------------------------------------------------------------------------------------


def _psutil() -> Any:
    """Loaded when processes are looked for: most commands never do."""
    return import_module("psutil")


def end_process(pid: int, started: float, *, grace: float = GRACE) -> None:
    """End this very process and what runs below it in its terminal: it is asked to, and after a time it is killed. What
    it detached into a session of its own, such as a server that is to outlive it, is left alone. It blocks.

    That the process is gone already is no error. Raises OSError when it cannot be ended.
    """
    process = _process(pid)
    if process is None or abs(process.started - started) >= SLACK:
        return
    below = _asked(lambda: process.handle.children(recursive=True), ())
    family = [process.handle, *(child for child in below if _session_of(child.pid) == _session_of(pid))]
    left = _signalled(family[:1], "terminate", grace) + family[1:]
    left = _signalled(left, "terminate", min(grace, 1.0))  # what it left behind
    left = _signalled(left, "kill", KILLED)
    if any(each.pid == pid for each in left):
        raise OSError(f"process {pid} cannot be ended")


def _session_of(pid: int) -> int | None:
    """The session of the system, as a terminal has one, that a process belongs to; None where there are none."""
    if sys.platform == "win32":
        return None
    return int(_asked(lambda: os.getsid(pid), pid))


def _signalled(processes: list[Any], how: str, seconds: float) -> list[Any]:
    """Send a signal to processes; those that are still there after a time. Raises OSError when that is not allowed."""
    psutil = _psutil()
    for each in processes:
        try:
            getattr(each, how)()
        except psutil.NoSuchProcess:
            continue
        except psutil.Error as exc:
            raise OSError(f"process {each.pid} cannot be ended: {exc}") from exc
    deadline = time.monotonic() + seconds
    while (left := [each for each in processes if _runs(each)]) and time.monotonic() < deadline:
        time.sleep(STEP)
    return left


def _runs(handle: Any) -> bool:
    """Whether a process does anything: one that nobody has waited for yet does not."""
    running: bool = _asked(lambda: handle.is_running() and handle.status() != _psutil().STATUS_ZOMBIE, False)
    return running


def _running(wanted: Collection[str]) -> Iterator[Process]:
    for handle in _psutil().process_iter():
        process = _described(handle, wanted)
        if process is not None:
            yield process


def _process(pid: int) -> Process | None:
    try:
        return _described(_psutil().Process(pid))
    except (_psutil().Error, ValueError, OverflowError):
        return None


def _described(handle: Any, wanted: Collection[str] | None = None) -> Process | None:
    """A process that lives; with `wanted` only one of a program of that name. Ours is none."""
    try:
        words = tuple(handle.cmdline())
        names = _names(words)
        if wanted is not None and (names.isdisjoint(wanted) or handle.pid == os.getpid()):
            return None
        if handle.status() == _psutil().STATUS_ZOMBIE:
            return None
        return Process(pid=handle.pid, started=handle.create_time(), words=words, names=names, handle=handle)
    except (_psutil().Error, OSError):
        return None


def _names(words: Sequence[str]) -> frozenset[str]:
    """What a program may be called: by its own path, or by that of the script that it runs."""
    first = _name(words[0]) if words else ""
    if not RUNNERS.fullmatch(first) or "-c" in words[1:WORDS]:
        return frozenset({first})
    scripts = [word for word in words[1:WORDS] if not word.startswith("-")]
    return frozenset({first, *map(_name, scripts[:2])})


def _name(word: str) -> str:
    name = word.rstrip("/\\").replace("\\", "/").rpartition("/")[2].lower()
    return name.removesuffix(next((ending for ending in _ENDINGS if name.endswith(ending)), ""))


def _asked(question: Any, default: Any) -> Any:
    """What the system answers, or the default for what it does not tell us."""
    try:
        return question()
    except (_psutil().Error, OSError):
        return default
