"""Who has a session: each sign is given by real processes, and none is taken from one that is gone or another one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from pilothouse.adapters.discovery.processes import (
    HUB,
    Holder,
    Listed,
    end_process,
    find_holders,
)
from pilothouse.adapters.discovery.store import Owner, Reader, Scan, Store, iso, listed
from pilothouse.model.discovery import DiscoveredSession

PROGRAM = "pilothouse-test-agent"
SAYING = "import sys; print('ready', flush=True); sys.stdin.read()"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SAYING}"
PARENT = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)']);"
    " print(child.pid, flush=True); sys.stdin.read()"
)


class Records(Store):
    agent = "records"
    programs = (PROGRAM,)

    def __init__(self, root: Path, *owners: Owner) -> None:
        self.root = root
        self._owners = owners

    @property
    def places(self) -> Sequence[Path]:
        return (self.root,)

    def scan(self) -> Scan:
        return Scan()

    def reader(self, session_id: str) -> Reader | None:
        return None

    def touched(self, path: Path) -> str | None:
        return path.stem if path.is_relative_to(self.root) else None

    def files(self, session_id: str) -> Sequence[Path]:
        return (self.root / f"{session_id}.jsonl",)

    def owners(self) -> Sequence[Owner]:
        return self._owners


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program under the name of an agent; it says a word and waits."""
    program = tmp_path / PROGRAM
    program.symlink_to(sys.executable)
    running: list[subprocess.Popen[bytes]] = []

    def begin(*words: str, code: str = SAYING, name: Path = program, **options: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [str(name), "-S", "-c", code, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **{"cwd": "/", "env": {}, **options},  # type: ignore[arg-type]
        )
        running.append(process)
        assert process.stdout is not None
        process.first = process.stdout.readline().strip()  # type: ignore[attr-defined]
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def session(session_id: str, cwd: str = "/nowhere", active: float = 0.0) -> DiscoveredSession:
    return listed("records", session_id, cwd, created_at=iso(active), last_activity=iso(active))


def holder(store: Store, *sessions: DiscoveredSession, of: str = "s-1") -> Holder | None:
    return find_holders([Listed(store, sessions)]).get(("records", of))


def test_the_word_of_the_process_itself_counts_first(tmp_path: Path, start: Start) -> None:
    process = start("--resume", "s-2")
    owner = Owner(session_id="s-1", pid=process.pid, since=time.time(), status="waiting")
    store = Records(tmp_path, owner)
    found = holder(store, session("s-1"), session("s-2"))
    assert found is not None
    assert (found.pid, found.sign, found.status, found.hub) == (process.pid, "told", "waiting", None)
    assert found.program == PROGRAM
    assert found.started == psutil.Process(process.pid).create_time()
    assert holder(store, session("s-1"), session("s-2"), of="s-2") is None  # it has gone on to another session


def test_a_process_that_began_later_or_is_gone_is_another_one(tmp_path: Path, start: Start) -> None:
    process = start()
    before = psutil.Process(process.pid).create_time() - 100
    assert holder(Records(tmp_path, Owner(session_id="s-1", pid=process.pid, since=before))) is None
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a signal takes its time
    owner = Owner(session_id="s-1", pid=process.pid, since=time.time())
    assert holder(Records(tmp_path, owner)) is None  # still there as a zombie, which writes nothing
    process.wait()
    assert holder(Records(tmp_path, owner)) is None


def test_a_process_whose_word_is_not_believed_gives_other_signs(tmp_path: Path, start: Start) -> None:
    process = start("--resume", "s-1", cwd=tmp_path)
    before = psutil.Process(process.pid).create_time() - 100  # as after a clock was set forward
    store = Records(tmp_path, Owner(session_id="s-1", pid=process.pid, since=before))
    found = holder(store, session("s-1"))
    assert found is not None
    assert (found.pid, found.sign) == (process.pid, "argument")


@pytest.mark.parametrize("words", [("--resume", "s-1"), ("--session-id=s-1",), ("resume", "s-1")])
def test_an_id_among_the_arguments_is_a_sign(tmp_path: Path, start: Start, words: tuple[str, ...]) -> None:
    process = start(*words)
    found = holder(Records(tmp_path), session("s-1"), session("s-12"))
    assert found is not None
    assert (found.pid, found.sign) == (process.pid, "argument")
    assert holder(Records(tmp_path), session("s-12"), of="s-12") is None


def test_who_only_copies_a_session_has_it_not(tmp_path: Path, start: Start) -> None:
    start("--resume", "s-1", "--fork-session")
    assert holder(Records(tmp_path), session("s-1")) is None


def test_other_programs_with_the_id_have_it_not(tmp_path: Path, start: Start) -> None:
    start("--resume", "s-1", name=Path(sys.executable))
    assert holder(Records(tmp_path), session("s-1")) is None


def test_an_open_file_is_a_sign(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "s-1.jsonl"
    process = start(code=f"file = open({str(path)!r}, 'w'); {SAYING}")
    found = holder(Records(tmp_path), session("s-1"))
    assert found is not None
    assert (found.pid, found.sign) == (process.pid, "file")


def test_a_process_that_only_works_where_the_session_was_is_a_guess_and_any_other_sign_is_none() -> None:
    told = {"pid": 1, "started": 1.0, "program": "p"}
    signs = {sign: Holder(sign=sign, **told).is_sure for sign in ("told", "argument", "file", "directory")}  # type: ignore[arg-type]
    assert signs == {"told": True, "argument": True, "file": True, "directory": False}


def test_a_process_may_have_the_last_session_of_its_directory_also_before_it_wrote_anything(
    tmp_path: Path, start: Start
) -> None:
    """As one that was told to go on with the last session."""
    before = time.time() - 100
    process = start("--continue", cwd=tmp_path)
    here, now = str(tmp_path), time.time()
    old, elsewhere = session("s-0", here, before), session("s-2", "/elsewhere", now)
    for sessions, latest in (([old, elsewhere], "s-0"), ([old, elsewhere, session("s-1", here, now)], "s-1")):
        found = find_holders([Listed(Records(tmp_path), sessions)])
        assert [(key[1], one.pid, one.sign) for key, one in found.items()] == [(latest, process.pid, "directory")]


@pytest.mark.parametrize(
    "words",
    [("app-server", "--listen", "unix://", "--managed-daemon"), ("app-server", "daemon", "pid-update-loop")],
)
def test_a_service_that_an_agent_left_behind_has_nothing_for_where_it_was_started(
    tmp_path: Path, start: Start, words: tuple[str, ...]
) -> None:
    start(*words, cwd=tmp_path)
    assert holder(Records(tmp_path), session("s-1", str(tmp_path), time.time() + 100)) is None


def test_what_a_hub_runs_is_no_guess_and_hides_nobody(tmp_path: Path, start: Start) -> None:
    before = session("s-1", str(tmp_path), time.time() - 100)
    start(cwd=tmp_path, env={HUB: "hub-7"})
    assert holder(Records(tmp_path), before) is None
    now = session("s-1", str(tmp_path), time.time())
    found = holder(Records(tmp_path), now)
    assert found is not None
    assert found.hub == "hub-7"
    other = start(cwd=tmp_path)
    start(cwd=tmp_path, env={HUB: "hub-7"})
    found = holder(Records(tmp_path), now)
    assert found is not None
    assert (found.pid, found.hub) == (other.pid, None)


def test_the_better_sign_wins_and_then_the_younger_process(tmp_path: Path, start: Start) -> None:
    weak = start(cwd=tmp_path)
    launcher = start("--resume", "s-1")
    launched = start("--resume", "s-1")
    found = holder(Records(tmp_path), session("s-1", str(tmp_path), time.time()))
    assert found is not None
    assert found.pid not in (weak.pid, launcher.pid)
    assert (found.pid, found.sign) == (launched.pid, "argument")


def test_the_mark_of_a_hub_is_seen_and_where_it_cannot_be_the_family_is(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start("--resume", "s-1", env={HUB: "hub-7"})
    found = holder(Records(tmp_path), session("s-1"))
    assert found is not None
    assert (found.hub, found.is_ours) == ("hub-7", False)

    def denied(self: psutil.Process) -> dict[str, str]:
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "environ", denied)
    found = holder(Records(tmp_path), session("s-1"))
    assert found is not None
    assert (found.hub, found.is_ours) == (None, True)


def test_a_process_is_ended_only_if_it_is_the_same(start: Start) -> None:
    process = start()
    started = psutil.Process(process.pid).create_time()
    end_process(process.pid, started - 10)
    assert process.poll() is None
    end_process(process.pid, started)
    assert process.wait() == -15
    end_process(process.pid, started)


def test_a_process_that_does_not_listen_is_killed(start: Start) -> None:
    process = start(code=STUBBORN)
    end_process(process.pid, psutil.Process(process.pid).create_time(), grace=0.2)
    assert process.wait() == -9


def test_what_a_process_started_ends_with_it(start: Start) -> None:
    process = start(code=PARENT)
    child = int(process.first)  # type: ignore[attr-defined]
    end_process(process.pid, psutil.Process(process.pid).create_time())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_what_a_process_detached_outlives_it(start: Start) -> None:
    process = start(code=PARENT.replace("])", "], start_new_session=True)"))
    child = psutil.Process(int(process.first))  # type: ignore[attr-defined]
    try:
        end_process(process.pid, psutil.Process(process.pid).create_time())
        assert process.wait() == -15
        assert child.is_running()
        assert child.status() != psutil.STATUS_ZOMBIE
    finally:
        child.kill()


def test_a_process_is_called_by_its_agent_and_not_by_its_version(tmp_path: Path, start: Start) -> None:
    place = tmp_path / PROGRAM.upper() / "versions"
    place.mkdir(parents=True)
    (place / "2.1.3").symlink_to(sys.executable)
    process = start(name=place / "2.1.3")
    found = holder(Records(tmp_path, Owner(session_id="s-1", pid=process.pid, since=time.time())))
    assert found is not None
    assert found.program == PROGRAM


def test_numbers_that_no_process_can_have_are_nobody() -> None:
    for pid in (-1, 0, 2**40):
        end_process(pid, 0.0)
    end_process(os.getpid(), 0.0)  # which began at another time


def test_a_program_that_only_works_on_a_file_of_the_agents_name_has_no_session(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.symlink_to(sys.executable)
    script = tmp_path / f"{PROGRAM}.js"
    script.write_text(SAYING)
    process = subprocess.Popen(
        [str(editor), str(script), "s-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert holder(Records(tmp_path), session("s-1", str(tmp_path), time.time())) is None
    finally:
        process.kill()
        process.communicate()


def test_a_script_is_found_behind_the_options_of_what_runs_it(tmp_path: Path) -> None:
    script = tmp_path / f"{PROGRAM}.js"
    script.write_text(SAYING)
    words = [sys.executable, "-S", "-B", str(script), "--resume", "s-1"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        found = holder(Records(tmp_path), session("s-1"))
        assert found is not None
        assert (found.pid, found.sign, found.program) == (process.pid, "argument", PROGRAM)
    finally:
        process.kill()
        process.communicate()


def test_a_process_of_another_program_is_none_whatever_a_file_says_of_its_number(tmp_path: Path, start: Start) -> None:
    other = start(name=Path(sys.executable))  # as where a file comes from a container, which counts on its own
    assert holder(Records(tmp_path, Owner(session_id="s-1", pid=other.pid, since=time.time()))) is None
