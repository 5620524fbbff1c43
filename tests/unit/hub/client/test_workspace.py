"""Files through the client: only those inside, only plain ones, whole or not at all, in the form they had."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import errno
import os
import resource
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.hub.client import refusals, workspace
from pilothouse.hub.client import text_encoding as texts
from pilothouse.hub.client.refusals import (
    BadContent,
    BadPath,
    FileTrouble,
    NoSuchFile,
    NotAFile,
    NotPermitted,
    NotText,
    OutsideWorkspace,
    ReadOnly,
    StorageFull,
    TooLarge,
    Unstable,
    WorkspaceError,
    request_error,
)
from pilothouse.hub.client.safe_dirs import Folder, Moved
from pilothouse.hub.client.workspace import Workspace

SECRET = "what nobody inside may see"
RACE, FEWEST = 0.6, 20
"""Seconds that a race is run, and rounds that it has at least, however slow the machine is."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (place / "notes.txt").write_text("one\ntwo\nthree\n")
    return place


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret.txt").write_text(SECRET)
    return place


@pytest.fixture
def files(root: Path) -> Workspace:
    return Workspace(root)


def leftovers(root: Path) -> list[Path]:
    return list(root.rglob(".pilothouse-*"))


def untouched(outside: Path) -> bool:
    return [p.name for p in outside.iterdir()] == ["secret.txt"] and (outside / "secret.txt").read_text() == SECRET


async def refuses(files: Workspace, path: str, kind: type[WorkspaceError], *, write: bool = True) -> str:
    """Both ways are refused, without waiting for anything; the message of the last is given back."""
    async with asyncio.timeout(30):
        with pytest.raises(kind) as caught:
            await files.read_text(path)
        if write:
            with pytest.raises(kind) as caught:
                await files.write_text(path, "changed")
    error = request_error(caught.value)
    assert error.data["path"] == path[:4096]
    assert error.code == kind.code
    return str(caught.value)


# -- inside --


async def test_a_file_is_read_by_absolute_and_by_relative_path(files: Workspace, root: Path) -> None:
    assert await files.read_text(str(root / "notes.txt")) == "one\ntwo\nthree\n"
    assert await files.read_text("notes.txt") == "one\ntwo\nthree\n"
    assert await files.read_text("./sub/../notes.txt") == "one\ntwo\nthree\n"
    assert files.resolve("notes.txt") == root / "notes.txt"


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (None, None, "one\ntwo\nthree\n"),
        (1, None, "one\ntwo\nthree\n"),
        (0, 1, "one\n"),
        (2, 1, "two\n"),
        (2, None, "two\nthree\n"),
        (None, 2, "one\ntwo\n"),
        (3, 99, "three\n"),
        (4, None, ""),
        (99, 5, ""),
        (1, 0, ""),
        (-3, -1, ""),
        (2**64, None, ""),
        (1, 2**64, "one\ntwo\nthree\n"),
    ],
)
async def test_line_is_one_based_and_limit_counts_lines(
    files: Workspace, line: int | None, limit: int | None, expected: str
) -> None:
    assert await files.read_text("notes.txt", line=line, limit=limit) == expected


async def test_only_line_ends_end_a_line(files: Workspace, root: Path) -> None:
    (root / "odd.txt").write_bytes("a\x0cb\u2028c\r\nd\re\nf".encode())
    assert await files.read_text("odd.txt", 1, 1) == "a\x0cb\u2028c\r\n"
    assert await files.read_text("odd.txt", 2, 1) == "d\r"
    assert await files.read_text("odd.txt", 3, 9) == "e\nf"


async def test_a_write_makes_the_file_and_the_directories_above_it(files: Workspace, root: Path) -> None:
    written = await files.write_text(str(root / "a" / "b" / "new.txt"), "hello\n")
    assert (root / "a" / "b" / "new.txt").read_text() == "hello\n"
    assert (written.created, written.old_text, written.new_text) == (True, None, "hello\n")
    assert written.path == root / "a" / "b" / "new.txt"
    again = await files.write_text("a/b/new.txt", "bye\n")
    assert (again.created, again.old_text, again.new_text) == (False, "hello\n", "bye\n")
    assert leftovers(root) == []


async def test_the_mode_stays_and_a_new_file_follows_the_umask(files: Workspace, root: Path) -> None:
    script = root / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o4751)
    await files.write_text("run.sh", "#!/bin/sh\nexit 1\n")
    assert stat.S_IMODE(script.stat().st_mode) == 0o751  # not set-user any more, as after any write
    private = root / "private"
    private.write_text("x")
    private.chmod(0o600)
    await files.write_text("private", "y")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    plain = root / "plain"
    plain.write_text("")
    await files.write_text("new", "y")
    assert stat.S_IMODE((root / "new").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


async def test_a_private_text_is_private_while_it_is_written(
    files: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "private").write_text("x")
    (root / "private").chmod(0o600)
    modes: list[int] = []
    real = workspace._fill

    def look(descriptor: int, data: bytes) -> None:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        real(descriptor, data)

    monkeypatch.setattr(workspace, "_fill", look)
    await files.write_text("private", "y")
    assert modes == [0o600]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to somebody else")
async def test_the_owner_stays(files: Workspace, root: Path) -> None:
    os.chown(root / "notes.txt", 12345, 23456)
    await files.write_text("notes.txt", "mine?\n")
    found = (root / "notes.txt").stat()
    assert (found.st_uid, found.st_gid) == (12345, 23456)


async def test_a_link_inside_that_points_inside_is_written_through(files: Workspace, root: Path) -> None:
    (root / "real").mkdir()
    (root / "link.txt").symlink_to("real/target.txt")  # not there yet
    await files.write_text("link.txt", "first")
    assert (root / "link.txt").is_symlink()
    assert (root / "real" / "target.txt").read_text() == "first"
    (root / "short").symlink_to(root / "real")
    written = await files.write_text("short/target.txt", "second")
    assert written.path == root / "real" / "target.txt"
    assert await files.read_text("link.txt") == "second"


async def test_additional_directories_are_inside_too(root: Path, outside: Path) -> None:
    files = Workspace(root, [outside])
    assert await files.read_text(str(outside / "secret.txt")) == SECRET
    (root / "link").symlink_to(outside / "secret.txt")
    await files.write_text("link", "seen")
    assert (outside / "secret.txt").read_text() == "seen"


async def test_a_root_that_is_a_link_is_where_it_leads(tmp_path: Path, root: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    files = Workspace(tmp_path / "alias")
    assert await files.read_text(str(tmp_path / "alias" / "notes.txt"), 1, 1) == "one\n"
    assert await files.read_text(str(root / "notes.txt"), 1, 1) == "one\n"


async def test_a_hard_link_is_replaced_and_its_other_name_left_alone(
    files: Workspace, root: Path, outside: Path
) -> None:
    os.link(outside / "secret.txt", root / "hard.txt")
    await files.write_text("hard.txt", "mine")
    assert untouched(outside)
    assert (root / "hard.txt").read_text() == "mine"


async def test_many_writes_at_once_leave_one_whole_text(files: Workspace, root: Path) -> None:
    bodies = [f"{n}\n" * 20_000 for n in range(8)]
    await asyncio.gather(*(files.write_text("shared.txt", body) for body in bodies))
    assert (root / "shared.txt").read_text() in bodies
    assert leftovers(root) == []


# -- escapes --


async def test_an_absolute_path_outside_is_refused(files: Workspace, root: Path, outside: Path) -> None:
    message = await refuses(files, str(outside / "secret.txt"), OutsideWorkspace)
    assert str(root) in message
    await refuses(files, "/etc/passwd", OutsideWorkspace)
    await refuses(files, str(outside / "new" / "file.txt"), OutsideWorkspace)
    assert untouched(outside)


async def test_dots_that_lead_out_are_refused(files: Workspace, root: Path, outside: Path) -> None:
    for path in ("../outside/secret.txt", f"{root}/../outside/secret.txt", "a/b/../../../outside/secret.txt", "../x"):
        await refuses(files, path, OutsideWorkspace)
    assert untouched(outside)


async def test_a_sibling_whose_name_begins_like_the_root_is_outside(files: Workspace, root: Path) -> None:
    sibling = root.with_name("work-too")
    sibling.mkdir()
    await refuses(files, str(sibling / "x"), OutsideWorkspace)


async def test_links_that_lead_out_are_refused(files: Workspace, root: Path, outside: Path) -> None:
    (root / "file").symlink_to(outside / "secret.txt")
    (root / "directory").symlink_to(outside)
    (root / "relative").symlink_to("../outside/secret.txt")
    (root / "dangling").symlink_to(outside / "not-there")
    (root / "first").symlink_to("second")
    (root / "second").symlink_to("directory")
    for path in ("file", "directory/secret.txt", "directory/new.txt", "relative", "dangling", "first/secret.txt"):
        message = await refuses(files, path, OutsideWorkspace)
        assert "outside" in message
    assert untouched(outside)


async def test_dots_after_a_link_count_from_where_the_link_leads(files: Workspace, root: Path, outside: Path) -> None:
    (outside / "deep").mkdir()
    (root / "link").symlink_to(outside / "deep")
    # by its letters this would be inside: link/../secret.txt
    await refuses(files, "link/../secret.txt", OutsideWorkspace)


async def test_a_loop_of_links_is_refused(files: Workspace, root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    assert "loop" in await refuses(files, "a", BadPath)
    await refuses(files, "a/file", BadPath)


async def test_views_of_the_system_are_refused_even_if_they_lead_inside(files: Workspace, root: Path) -> None:
    for path in (f"/proc/self/root{root}/notes.txt", "/proc/self/environ", "/dev/null", "/dev/fd/0", "/sys/kernel"):
        await refuses(files, path, NotAFile)
    whole = Workspace("/")
    for path in ("/proc/self/environ", "/proc/1/mem", "/dev/zero", "/proc/self/root/etc/passwd"):
        await refuses(whole, path, NotAFile)
    (root / "door").symlink_to("/proc/self/root")
    await refuses(files, "door/etc/passwd", OutsideWorkspace)
    (root / "environ").symlink_to("/proc/self/environ")
    await refuses(files, "environ", NotAFile)


async def test_what_is_no_plain_file_is_refused_without_waiting(files: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert "named pipe" in await refuses(files, "pipe", NotAFile)
    with contextlib.chdir(root), socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert "socket" in await refuses(files, "socket", NotAFile)
    (root / "directory").mkdir()
    assert "directory" in await refuses(files, "directory", NotAFile)
    await refuses(files, str(root), NotAFile)
    await refuses(files, "new/", NotAFile)
    assert not (root / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
async def test_a_device_inside_is_refused(files: Workspace, root: Path) -> None:
    try:
        os.mknod(root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this container does not let root make devices")
    assert "device" in await refuses(files, "zero", NotAFile)


def test_a_pipe_that_takes_the_place_of_a_file_after_the_look_does_not_block(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with Folder.open(root) as folder:
        descriptor = folder.open_file("pipe", os.O_RDONLY)  # would wait for a writer, if it waited
        assert not os.get_blocking(descriptor)
        os.close(descriptor)


@contextlib.contextmanager
def flipping(place: Path, *targets: Path) -> Iterator[threading.Event]:
    """A thread that makes `place` one link or directory after another, as fast as it can."""
    stop = threading.Event()

    def flip() -> None:
        spare = place.with_name("spare")
        while not stop.is_set():
            for target in targets:
                with contextlib.suppress(OSError):
                    spare.symlink_to(target)
                    spare.replace(place)
            with contextlib.suppress(OSError):
                place.unlink()
                place.mkdir()
                (place / "secret.txt").write_text("inside")
            with contextlib.suppress(OSError):
                shutil.rmtree(place)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(10)


async def test_a_directory_that_flips_between_inside_and_outside_never_leads_out(
    files: Workspace, root: Path, outside: Path
) -> None:
    (root / "real").mkdir()
    (root / "real" / "secret.txt").write_text("inside")
    seen: dict[str, int] = {}
    deadline = time.monotonic() + RACE
    with flipping(root / "way", root / "real", outside):
        while time.monotonic() < deadline:
            try:
                text = await files.read_text("way/secret.txt")
                assert text in ("inside", "written", "")
                await files.write_text("way/secret.txt", "written")
                seen["done"] = seen.get("done", 0) + 1
            except WorkspaceError as exc:
                seen[type(exc).__name__] = seen.get(type(exc).__name__, 0) + 1
    assert untouched(outside)
    assert sum(seen.values()) > 20, seen
    assert leftovers(outside) == []


async def test_a_file_that_flips_between_inside_and_outside_never_leads_out(
    files: Workspace, root: Path, outside: Path
) -> None:
    (root / "inside.txt").write_text("inside")
    deadline = time.monotonic() + RACE
    tries = 0
    with flipping(root / "name", root / "inside.txt", outside / "secret.txt"):
        while tries < FEWEST or time.monotonic() < deadline:
            tries += 1
            with contextlib.suppress(WorkspaceError):
                assert await files.read_text("name") != SECRET
            with contextlib.suppress(WorkspaceError):
                await files.write_text("name", "inside")
    assert untouched(outside)


async def test_a_link_swapped_in_after_the_check_is_met_and_not_followed(
    files: Workspace, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst moment, made certain: each time after the path was found to be fine."""
    (root / "way").mkdir()
    (root / "way" / "secret.txt").write_text("inside")
    real = Workspace._locate

    def late(self: Workspace, path: str) -> tuple[Path, Path]:
        found = real(self, path)
        shutil.rmtree(root / "way")
        (root / "way").symlink_to(outside)
        return found

    monkeypatch.setattr(Workspace, "_locate", late)
    monkeypatch.setattr(workspace, "ATTEMPTS", 1)
    with pytest.raises(Unstable):
        await files.read_text("way/secret.txt")
    (root / "way").unlink()
    (root / "way").mkdir()
    with pytest.raises(Unstable, match="try again"):
        await files.write_text("way/secret.txt", "x")
    assert untouched(outside)


async def test_a_swapped_link_is_resolved_anew_and_then_refused_as_outside(
    files: Workspace, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "name").write_text("inside")
    real = Folder.look

    def late(self: Folder, name: str) -> os.stat_result:
        if not (root / name).is_symlink():
            (root / name).unlink()
            (root / name).symlink_to(outside / "secret.txt")
        return real(self, name)

    monkeypatch.setattr(Folder, "look", late)
    with pytest.raises(OutsideWorkspace):
        await files.read_text("name")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only where the system tells what a handle is")
async def test_a_directory_moved_out_during_a_write_gets_nothing(
    files: Workspace, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "way").mkdir()
    real = workspace._sync

    def late(descriptor: int) -> None:
        real(descriptor)
        if (root / "way").exists() and not (outside / "moved").exists():
            (root / "way").rename(outside / "moved")

    monkeypatch.setattr(workspace, "_sync", late)
    written = await files.write_text("way/file.txt", "hello")
    assert list((outside / "moved").iterdir()) == []
    assert written.path.read_text() == "hello"  # in a directory of that name, made anew


# -- paths that are none --


async def test_paths_that_are_none_are_refused(files: Workspace, root: Path) -> None:
    assert "NUL" in await refuses(files, "a\0b", BadPath)
    assert "empty" in await refuses(files, "", BadPath)
    assert "too long" in await refuses(files, "x" * 300, BadPath)
    assert "a file, not a directory" in await refuses(files, "notes.txt/more", BadPath)
    assert "deep" in await refuses(files, "/".join("d" * 200), BadPath)
    message = await refuses(files, "y" * 5000, BadPath)
    assert len(message) < 600
    with pytest.raises(BadPath) as caught:
        await files.read_text("half \ud800")
    assert request_error(caught.value).data == {"path": "half \\ud800"}
    assert sorted(p.name for p in root.iterdir()) == ["notes.txt"]


async def test_what_is_not_there_is_not_found(files: Workspace) -> None:
    assert "no such file" in await refuses(files, "missing.txt", NoSuchFile, write=False)
    await refuses(files, "missing/file.txt", NoSuchFile, write=False)
    assert NoSuchFile.code == -32002


async def test_a_root_that_is_gone_is_not_found(files: Workspace, root: Path) -> None:
    shutil.rmtree(root)
    await refuses(files, "notes.txt", NoSuchFile)


async def test_a_directory_to_work_in_must_be_one_and_inside(files: Workspace, root: Path) -> None:
    (root / "sub").mkdir()
    assert await files.directory() == root
    assert await files.directory(str(root / "sub")) == root / "sub"
    with pytest.raises(BadPath):
        await files.directory("notes.txt")
    with pytest.raises(NoSuchFile):
        await files.directory("missing")
    with pytest.raises(OutsideWorkspace):
        await files.directory("..")


# -- sizes --


async def test_a_file_above_the_limit_is_refused_with_both_numbers(root: Path) -> None:
    files = Workspace(root, file_limit=1000)
    (root / "big").write_bytes(b"x" * 1001)
    message = await refuses(files, "big", TooLarge)
    assert "it has 1,001 bytes, the limit is 1,000" in message
    assert (root / "big").stat().st_size == 1001
    with pytest.raises(TooLarge, match="1,002 bytes"):
        await files.write_text("new", "é" * 501)
    assert not (root / "new").exists()
    (root / "big").write_bytes(b"x" * 1000)
    assert len(await files.read_text("big")) == 1000


async def test_a_huge_file_with_a_hole_is_refused_unread(files: Workspace, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert "1,099,511,627,776" in await refuses(files, "huge", TooLarge)


async def test_a_file_that_grows_while_it_is_read_is_cut_off(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "log").write_bytes(b"x" * 900)
    real = os.read

    def grow(descriptor: int, size: int) -> bytes:
        with (root / "log").open("ab") as file:
            file.write(b"y" * 900)
        return real(descriptor, min(size, 100))

    monkeypatch.setattr(os, "read", grow)
    with pytest.raises(TooLarge):
        await Workspace(root, file_limit=1000).read_text("log")


async def test_texts_too_large_for_a_diff_are_left_out(root: Path) -> None:
    files = Workspace(root, diff_limit=10)
    written = await files.write_text("notes.txt", "short")
    assert (written.old_text, written.new_text) == (None, "short")
    written = await files.write_text("notes.txt", "not so short")
    assert (written.old_text, written.new_text) == ("short", None)


# -- encodings and line ends --


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("grün ✓ 🎉\n".encode(), "grün ✓ 🎉\n"),
        (codecs.BOM_UTF8 + "grün\n".encode(), "grün\n"),
        (codecs.BOM_UTF16_LE + "grün 🎉\n".encode("utf-16-le"), "grün 🎉\n"),
        (codecs.BOM_UTF16_BE + "grün\n".encode("utf-16-be"), "grün\n"),
        (codecs.BOM_UTF32_LE + "grün\n".encode("utf-32-le"), "grün\n"),
        ("grün\n".encode("latin-1"), "grün\n"),
        ("„grün“ – 5 €\n".encode("cp1252"), "„grün“ – 5 €\n"),
        (b"caf\xe9 \x81\n", "café \x81\n"),
        (b"\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"),
    ],
)
async def test_a_file_written_back_as_read_has_the_same_bytes(
    files: Workspace, root: Path, data: bytes, text: str
) -> None:
    (root / "file").write_bytes(data)
    assert await files.read_text("file") == text
    await files.write_text("file", text)
    assert (root / "file").read_bytes() == data
    crlf = text.replace("\n", "\r\n")
    assert texts.decode(texts.encode(crlf, texts.decode(data)[1]))[0] == crlf


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01\0\0",
        b"text and then \0 more",
        "mostly grün ✓".encode() + b"\xff",
        codecs.BOM_UTF16_LE + b"odd",
        codecs.BOM_UTF8 + b"\xff\xff",
        b"\xff\xd8\xff\xe1\x03 no NUL, but no text",
    ],
)
async def test_what_is_no_text_is_refused_and_can_be_replaced_by_text(
    files: Workspace, root: Path, data: bytes
) -> None:
    (root / "file").write_bytes(data)
    with pytest.raises(NotText, match="as text: it is"):
        await files.read_text("file")
    written = await files.write_text("file", "grün")
    assert (written.created, written.old_text) == (False, None)
    assert (root / "file").read_bytes() == "grün".encode()


async def test_text_that_the_encoding_of_the_file_lacks_is_refused(files: Workspace, root: Path) -> None:
    (root / "old.txt").write_bytes("grün".encode("latin-1"))
    with pytest.raises(BadContent, match=r"Windows-1252.*u2192.*UTF-8"):
        await files.write_text("old.txt", "grün →")
    assert (root / "old.txt").read_bytes() == b"gr\xfcn"
    with pytest.raises(BadContent, match="ud800"):
        await files.write_text("deep/new.txt", "half \ud800")
    assert not (root / "deep").exists()  # nor the directory that was made for it


async def test_a_file_of_crlf_lines_stays_one(files: Workspace, root: Path) -> None:
    (root / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    assert await files.read_text("dos.txt") == "one\r\ntwo\r\n"
    written = await files.write_text("dos.txt", "one\n2\nthree\n")
    assert (root / "dos.txt").read_bytes() == b"one\r\n2\r\nthree\r\n"
    assert written.new_text == "one\r\n2\r\nthree\r\n"
    await files.write_text("dos.txt", "one\r\nmixed\n")
    assert (root / "dos.txt").read_bytes() == b"one\r\nmixed\r\n"
    (root / "mixed.txt").write_bytes(b"one\r\ntwo\n")
    await files.write_text("mixed.txt", "one\n")
    assert (root / "mixed.txt").read_bytes() == b"one\n"
    await files.write_text("notes.txt", "one\r\n")
    assert (root / "notes.txt").read_bytes() == b"one\r\n"


async def test_a_mark_comes_neither_twice_nor_by_itself(files: Workspace, root: Path) -> None:
    (root / "marked").write_bytes(codecs.BOM_UTF8 + b"old")
    await files.write_text("marked", "\ufeffnew")
    assert (root / "marked").read_bytes() == codecs.BOM_UTF8 + b"new"
    await files.write_text("notes.txt", "plain")
    assert (root / "notes.txt").read_bytes() == b"plain"


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.text(max_size=30).map(str.encode)))
def test_any_bytes_are_either_no_text_or_come_back_the_same(data: bytes) -> None:
    try:
        text, form = texts.decode(data)
    except ValueError:
        return
    if not text.startswith("\ufeff"):
        assert texts.encode(text, form) == data


# -- trouble with the storage --


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Root is bound by no permission bits; as somebody else it is."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def common() -> Iterator[Path]:
    """A place that others can get to, as the directories of pytest are not."""
    place = Path(tempfile.mkdtemp(prefix="pilothouse-test-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


async def test_a_directory_without_write_permission_is_a_clear_error(common: Path) -> None:
    (common / "file.txt").write_text("old")
    (common / "file.txt").chmod(0o666)
    common.chmod(0o555)
    with unprivileged():
        with pytest.raises(NotPermitted, match="permission denied; change"):
            await Workspace(common).write_text("new.txt", "x")
        with pytest.raises(NotPermitted):
            await Workspace(common).write_text("sub/new.txt", "x")
        with pytest.raises(NotPermitted):
            await Workspace(common).write_text("file.txt", "x")
    common.chmod(0o755)
    assert [p.name for p in common.iterdir()] == ["file.txt"]
    assert (common / "file.txt").read_text() == "old"


async def test_a_file_without_write_permission_is_not_replaced_behind_its_back(common: Path) -> None:
    (common / "file.txt").write_text("old")
    (common / "file.txt").chmod(0o444)
    (common / "hidden.txt").write_text("old")
    (common / "hidden.txt").chmod(0o000)
    common.chmod(0o777)
    with unprivileged():
        with pytest.raises(NotPermitted):
            await Workspace(common).write_text("file.txt", "x")
        with pytest.raises(NotPermitted):
            await Workspace(common).read_text("hidden.txt")
    assert (common / "file.txt").read_text() == "old"
    assert leftovers(common) == []


@contextlib.contextmanager
def small_disk(place: Path, *options: str) -> Iterator[bool]:
    """A file system of 64 KiB where this user may mount one."""
    command = ["mount", "-t", "tmpfs", "-o", ",".join(["size=64k", *options]), "tmpfs", str(place)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, timeout=10).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(place)], check=True, timeout=10)


async def test_a_full_disk_is_a_clear_error_and_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "small"
    place.mkdir()
    files = Workspace(place)
    with small_disk(place) as mounted:
        (place / "file.txt").write_text("old")
        if not mounted:

            def full(descriptor: int, data: bytes) -> int:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            monkeypatch.setattr(os, "write", full)
        with pytest.raises(StorageFull, match=r"no space is left.*free some") as caught:
            await files.write_text("file.txt", "x" * 200_000)
        assert request_error(caught.value).code == -32603
        with pytest.raises(StorageFull):
            await files.write_text("deep/down/new.txt", "x" * 200_000)
        assert (place / "file.txt").read_text() == "old"
        assert [p.name for p in place.rglob("*")] == ["file.txt"]
        if mounted:
            await files.write_text("file.txt", "there is room for this")


async def test_a_limit_on_file_sizes_is_a_clear_error_and_the_file_as_it_was(files: Workspace, root: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    try:
        with pytest.raises(StorageFull, match="as it was"):
            await files.write_text("notes.txt", "x" * 200_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (root / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert leftovers(root) == []


async def test_a_read_only_file_system_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "fixed"
    place.mkdir()
    with small_disk(place, "ro") as mounted:
        if not mounted:

            def fixed(self: Folder, mode: int) -> tuple[str, int]:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))

            monkeypatch.setattr(Folder, "open_new", fixed)
        with pytest.raises(ReadOnly, match="read-only; write to another place"):
            await Workspace(place).write_text("new.txt", "x")
        assert list(place.iterdir()) == []


@pytest.mark.parametrize("step", ["_fill", "_sync", "_dress"])
async def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(
    files: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(workspace, step, fail)
    with pytest.raises(FileTrouble, match="Input/output error"):
        await files.write_text("notes.txt", "new")
    assert (root / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert leftovers(root) == []


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EDQUOT, StorageFull),
        (errno.EPERM, NotPermitted),
        (errno.EMFILE, FileTrouble),
        (errno.ESTALE, FileTrouble),
    ],
)
def test_errors_of_the_system_have_a_meaning(number: int, kind: type[WorkspaceError]) -> None:
    found = refusals.file_refusal(OSError(number, os.strerror(number)), "some/path", "write")
    assert type(found) is kind
    assert str(found).startswith("cannot write 'some/path': ")
    assert request_error(found).to_error_obj()["data"] == {"path": "some/path"}


async def test_readers_see_the_old_text_or_the_new_and_nothing_between(files: Workspace, root: Path) -> None:
    old, new = "a" * 300_000, "b" * 300_000
    (root / "file").write_text(old)
    stop = threading.Event()
    seen: set[str] = set()

    def watch() -> None:
        while not stop.is_set():
            seen.add((root / "file").read_text())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for _ in range(10):
            await files.write_text("file", new)
            await files.write_text("file", old)
    finally:
        stop.set()
        thread.join(10)
    assert seen <= {old, new}


def test_no_handle_stays_open(root: Path, outside: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("only where the system tells what a process has open")
    files = Workspace(root)
    (root / "link").symlink_to(outside)

    async def work() -> None:
        for path in ("a/b/c/new.txt", "notes.txt", "notes.txt/x", "link/x", "missing/x"):
            with contextlib.suppress(WorkspaceError):
                await files.read_text(path)
            with contextlib.suppress(WorkspaceError):
                await files.write_text(path, "half \ud800" if path == "missing/x" else "x")

    asyncio.run(work())
    before = len(os.listdir("/proc/self/fd"))
    asyncio.run(work())
    assert len(os.listdir("/proc/self/fd")) == before
    assert not (root / "missing").exists()


def test_without_handles_each_step_looks_before_it_goes(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way that Windows goes."""
    monkeypatch.setattr("pilothouse.hub.client.safe_dirs.HANDLES", False)
    files = Workspace(root)

    async def work() -> None:
        written = await files.write_text("a/b/new.txt", "hello")
        assert written.created
        assert await files.read_text("a/b/new.txt") == "hello"
        (root / "link").symlink_to(outside)
        with pytest.raises(OutsideWorkspace):
            await files.read_text("link/secret.txt")
        with pytest.raises(NoSuchFile):
            await files.read_text("a/missing")

    asyncio.run(work())
    with Folder.open(root) as folder:
        with pytest.raises(Moved):
            folder.enter("link")
        with pytest.raises(NotADirectoryError):
            folder.enter("notes.txt")
    with pytest.raises(FileNotFoundError):
        Folder.open(root / "missing")
    assert untouched(outside)
