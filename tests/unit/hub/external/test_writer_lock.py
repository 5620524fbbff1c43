"""Leases: one hub has a session, a dead one's is taken, and what cannot be understood is somebody's."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from pilothouse.hub.errors import Held
from pilothouse.hub.external.writer_lock import Lease, Leases, NoLeases, leases_directory

HOLD = """
import sys
from pathlib import Path
from pilothouse.hub.external.writer_lock import Leases
Leases(Path(sys.argv[1]), sys.argv[2]).take("claude", "one", "ses_there")
print("taken", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def leases(tmp_path: Path) -> Leases:
    return Leases(tmp_path / "leases", tmp_path / "home")


def change(leases: Leases, **values: object) -> Path:
    """The lease of `one`, with other values in its process or in itself."""
    path = leases.path("claude", "one")
    lease = msgspec.json.decode(path.read_bytes())
    for name, value in values.items():
        (lease["process"] if name in lease["process"] else lease)[name] = value
    path.write_bytes(msgspec.json.encode(lease))
    return path


def test_a_lease_tells_whose_process_has_which_session(leases: Leases, tmp_path: Path) -> None:
    lease = leases.take("claude", "one", "ses_1")
    stored = msgspec.json.decode(leases.path("claude", "one").read_bytes(), type=Lease)
    assert stored == lease
    assert (lease.process.pid, lease.home) == (os.getpid(), str(tmp_path / "home"))
    assert lease.process.boot
    assert leases.holder("claude", "one") is None


def test_taking_it_again_is_no_harm_and_another_session_of_the_same_hub_is_refused(leases: Leases) -> None:
    leases.take("claude", "one", "ses_1")
    leases.take("claude", "one", "ses_1")
    with pytest.raises(Held):
        leases.take("claude", "one", "ses_2")
    leases.take("claude", "two", "ses_2")
    leases.take("codex", "one", "ses_3")


def test_a_hub_of_another_home_is_refused_until_it_is_given_back(leases: Leases, tmp_path: Path) -> None:
    other = Leases(leases.directory, tmp_path / "other")
    leases.take("claude", "one", "ses_1")
    with pytest.raises(Held, match="home") as refused:
        other.take("claude", "one", "ses_9")
    assert refused.value.details["choices"] == ["watch", "fork"]
    assert refused.value.details["pid"] == os.getpid()
    assert refused.value.details["since"]
    other.give_back("claude", "one", "ses_9")
    found = other.holder("claude", "one")
    assert found is not None
    assert found.session == "ses_1"
    leases.give_back("claude", "one", "ses_1")
    assert other.holder("claude", "one") is None
    other.take("claude", "one", "ses_9")


def test_a_process_that_runs_keeps_it_and_one_that_was_killed_does_not(leases: Leases, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(leases.directory), str(tmp_path / "other")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        with pytest.raises(Held) as refused:
            leases.take("claude", "one", "ses_1")
        assert refused.value.details["pid"] == process.pid
        process.kill()
        process.wait()
        assert leases.holder("claude", "one") is None
        assert leases.take("claude", "one", "ses_1").process.pid == os.getpid()


def test_a_lease_of_a_process_whose_id_was_given_away_again_is_taken(leases: Leases) -> None:
    leases.take("claude", "one", "ses_1")
    change(leases, started=1, session="ses_old")
    assert leases.holder("claude", "one") is None
    leases.take("claude", "one", "ses_1")


def test_a_lease_of_an_earlier_boot_is_taken(leases: Leases) -> None:
    leases.take("claude", "one", "ses_1")
    change(leases, boot="another", session="ses_old")
    leases.take("claude", "one", "ses_1")


@pytest.mark.parametrize("elsewhere", [{"boot": "another", "host": "another"}, {"namespace": "pid:[1]"}])
def test_a_lease_from_where_processes_cannot_be_seen_is_somebodys(leases: Leases, elsewhere: dict[str, str]) -> None:
    leases.take("claude", "one", "ses_1")
    path = change(leases, **elsewhere)
    for ask in (lambda: leases.take("claude", "one", "ses_1"), lambda: leases.holder("claude", "one")):
        with pytest.raises(Held) as refused:
            ask()
        assert str(path) in str(refused.value)
        assert refused.value.details["file"] == str(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"agent": "claude"}', b"\xff\xfe", b"\0" * 100])
def test_a_file_that_is_no_lease_is_refused_by_its_name(leases: Leases, content: bytes) -> None:
    leases.directory.mkdir()
    path = leases.path("claude", "one")
    path.write_bytes(content)
    for ask in (lambda: leases.take("claude", "one", "ses_1"), lambda: leases.holder("claude", "one")):
        with pytest.raises(Held, match="cannot be known") as refused:
            ask()
        assert str(path) in str(refused.value)
    leases.give_back("claude", "one", "ses_1")
    assert path.read_bytes() == content


def test_where_nothing_can_be_written_nobody_gets_a_lease(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Held, match="file"):
        Leases(tmp_path / "file" / "leases", tmp_path).take("claude", "one", "ses_1")


@pytest.mark.parametrize("what", ["file", "below a file", "link to nothing", "lock is a directory"])
def test_a_directory_that_cannot_be_used_is_named_and_nobody_is_said_to_have_nothing(tmp_path: Path, what: str) -> None:
    directory = tmp_path / "leases"
    named = directory
    if what == "file":
        directory.write_text("in the way")
    elif what == "below a file":
        directory.write_text("in the way")
        named = directory = directory / "more"
    elif what == "link to nothing":
        directory.symlink_to(tmp_path / "missing" / "place")
    else:
        (directory / ".lock").mkdir(parents=True)
    leases = Leases(directory, tmp_path / "home")
    for ask in (lambda: leases.holder("claude", "one"), lambda: leases.take("claude", "one", "ses_1")):
        with pytest.raises(NoLeases, match="cannot be known") as refused:
            ask()
        assert str(named) in str(refused.value)
        assert "see that it can be written" in str(refused.value)
        assert refused.value.details["choices"] == ["watch"]
    leases.give_back("claude", "one", "ses_1")


def test_a_directory_in_which_nothing_can_be_made_any_more_is_named(
    leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases.take("claude", "one", "ses_1")

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pilothouse.hub.external.writer_lock.tempfile.mkstemp", refuse)
    for ask in (lambda: leases.holder("claude", "two"), lambda: leases.take("claude", "two", "ses_1")):
        with pytest.raises(NoLeases, match="Permission denied"):
            ask()
    monkeypatch.undo()
    assert sorted(path.suffix for path in leases.directory.iterdir()) == ["", ".json"]


def test_of_many_who_find_a_dead_lease_at_once_one_gets_it(leases: Leases, tmp_path: Path) -> None:
    leases.take("claude", "one", "ses_1")
    change(leases, started=1)
    got: list[str] = []
    gate = threading.Barrier(8)

    def contend(name: str) -> None:
        own = Leases(leases.directory, tmp_path / name)
        gate.wait()
        try:
            own.take("claude", "one", name)
        except Held:
            return
        got.append(name)

    threads = [threading.Thread(target=contend, args=(f"hub{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1


def test_an_id_never_becomes_a_path(leases: Leases) -> None:
    for session_id in ("../../etc/passwd", "/", "", "a" * 10_000, "\ud800"):
        assert leases.path("claude", session_id).parent == leases.directory


def test_the_directory_is_the_users_own_unless_it_is_named(tmp_path: Path) -> None:
    assert leases_directory({"PILOTHOUSE_LEASES": str(tmp_path)}) == tmp_path
    assert leases_directory({}).name == "leases"
