"""The files that an agent may read and write through its client: those of its session's directories.

Rules a change must not break:

- Nothing outside of the root and the additional directories is read or touched. A path is resolved with all its
  links and `..` first and must lie inside; then it is walked again from the root by handles that follow no link (see
  `safe_dirs`). What a race can still do: a directory that was inside when it was entered may be moved out while it is
  held; a read then sees what was inside, and a write notices it up to the moment of its rename (on Linux). On Windows
  a link that is swapped in between look and open is followed. A hard link cannot be told from the file: its content
  can be read; writing replaces the name inside and leaves the other alone. A mount inside counts as inside.
- Nothing blocks: no pipe, socket or device is opened, and none of /proc, /sys and /dev.
- A file is replaced as a whole or not at all. The new text goes to a temporary file next to it, to the disk, and then
  takes its name. Mode, owner (where permitted), access lists, encoding, byte order mark and CRLF line ends stay;
  set-user and set-group bits go, as on any write. A link inside that points inside is written through.

All of it blocks, so it runs in threads. A call that is cancelled may still complete: wholly, or without a trace.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from .refusals import (
    BadContent,
    BadPath,
    Changed,
    NotAFile,
    NotText,
    OutsideWorkspace,
    TooLarge,
    Unstable,
    file_refusal,
    shown,
)
from .safe_dirs import Descent, Folder, Moved
from .text_encoding import Form, cut_lines, decode, encode

FILE_LIMIT = 50 * 1000 * 1000
"""Bytes of a file that is read or written: one message must carry it, and a connection takes 64 MiB by default."""
DIFF_LIMIT = 1024 * 1024
"""Bytes of a text that is kept beside a write to show what changed."""
DEPTH = 128
"""Directories above a file inside; a write holds each one that it makes open until it is done."""
ATTEMPTS = 5
"""How often a path that changes under our hands is looked at again."""
PSEUDO = tuple(Path(place) for place in ("/proc", "/sys", "/dev")) if os.name == "posix" else ()
MEMORY = Path("/dev/shm")  # noqa: S108 - the one place below /dev that holds ordinary files
_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
_T = TypeVar("_T")


@dataclass(frozen=True)
class Written:
    """What a write did. The texts are there for a diff: None if too large, or if there was none or no text before."""

    path: Path
    created: bool
    old_text: str | None
    new_text: str | None


class Workspace:
    """A session's directory and what it may use besides. Nothing in `private`, the hub's own directory, is of it."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        additional: Iterable[str | os.PathLike[str]] = (),
        *,
        private: Path | None = None,
        file_limit: int = FILE_LIMIT,
        diff_limit: int = DIFF_LIMIT,
    ) -> None:
        # Resolved once: whoever can change the way to the root is not confined by it.
        self.root = Path(root).resolve()
        self.additional = tuple(Path(place).resolve() for place in additional)
        # a workspace inside of the private directory is somebody's deliberate choice, and has its files
        hidden = private.resolve() if private is not None else None
        self._private = None if hidden is None or hidden in self.root.parents else hidden
        self._file_limit = file_limit
        self._diff_limit = diff_limit

    async def read_text(
        self, path: str, line: int | None = None, limit: int | None = None, *, is_resolved: bool = False
    ) -> str:
        """A file's text, or `limit` lines of it from the 1-based `line` on. Raises WorkspaceError.

        `is_resolved`: the path came from `resolve`; Changed is raised if it leads to another file by now.
        """
        return await asyncio.to_thread(
            self._guard, path, "read", lambda: self._read(path, line, limit, is_resolved=is_resolved)
        )

    async def write_text(
        self,
        path: str,
        content: str,
        *,
        check: Callable[[str | None], bool] | None = None,
        before_effect: Callable[[], None] = lambda: None,
        is_resolved: bool = False,
    ) -> Written:
        """Replace a file's text or make the file, with the directories above it. Raises WorkspaceError.

        `check` gets the text that is about to be replaced (None: no file). If it returns false, or if the file is not
        text, nothing is written and Changed is raised. `before_effect` is called in a thread right before the file is
        replaced; if it raises, nothing is written. `is_resolved`: the path came from `resolve`; Changed is raised if it
        leads to another file by now.
        """
        write = partial(self._write, path, content, check, before_effect, is_resolved=is_resolved)
        return await asyncio.to_thread(self._guard, path, "write", write)

    async def directory(self, path: str | None = None) -> Path:
        """A directory inside, such as one to run a program in; the root by default. Raises WorkspaceError."""
        return await asyncio.to_thread(self._guard, path or ".", "use", lambda: self._directory(path or "."))

    def open_directory(self, directory: Path) -> Folder:
        """Open a resolved directory without following any link, to start a program in it. The caller closes it. Blocks.

        Raises WorkspaceError, Changed if the path leads to another directory now.
        """
        return self._guard(str(directory), "use", lambda: self._open_directory(directory))

    def _open_directory(self, directory: Path) -> Folder:
        root, target = self._locate(str(directory))
        _check_unmoved(target, str(directory))
        folder = Folder.open(root)
        for name in target.relative_to(root).parts:
            outer = folder
            try:
                folder = outer.enter(name)
            finally:
                outer.close()
        return folder

    def resolve(self, path: str) -> Path:
        """Where a path really leads, which must be inside; a relative one starts at the root. Blocks.

        What is there may change afterwards: this alone protects nothing that is opened by its name.
        Raises WorkspaceError.
        """
        return self._guard(path, "find", lambda: self._locate(path)[1])

    # -- steps, all in a thread --

    def _guard(self, path: str, verb: str, act: Callable[[], _T]) -> _T:
        for _ in range(ATTEMPTS):
            try:
                return act()
            except Moved:
                continue
            except OSError as exc:
                raise file_refusal(exc, path, verb) from exc
        raise Unstable(f"cannot {verb} {shown(path)}: its path keeps changing; try again when it is still", path=path)

    def _read(self, path: str, line: int | None, limit: int | None, *, is_resolved: bool) -> str:
        root, target = self._locate(path)
        if is_resolved:
            _check_unmoved(target, path)
        with Descent(root, above(root, target, path)) as folder:
            data, _ = self._content(folder, target.name, path, os.O_RDONLY)
        try:
            text, _ = decode(data)
        except ValueError as exc:
            raise NotText(f"cannot read {shown(path)} as text: {exc}", path=path) from exc
        return cut_lines(text, line, limit)

    def _write(
        self,
        path: str,
        content: str,
        check: Callable[[str | None], bool] | None,
        before_effect: Callable[[], None],
        *,
        is_resolved: bool,
    ) -> Written:
        self._check_size(len(content), path, "the new text")
        root, target = self._locate(path)
        if is_resolved:
            _check_unmoved(target, path)
        with Descent(root, above(root, target, path), make=True) as folder:
            try:
                old, before = self._content(folder, target.name, path, os.O_RDWR)
            except FileNotFoundError:
                old, before = b"", None
            old_text, form = _known(old)
            is_text = before is None or old_text is not None
            if check is not None and not (is_text and check(None if before is None else old_text)):
                raise Changed(f"{shown(path)} has changed in the meantime; read it again", path=path)
            data = _encoded(content, form, path)
            self._check_size(len(data), path, "the new text")
            replace_file(folder, root, target.name, data, before, before_effect=before_effect)
        return Written(
            path=target,
            created=before is None,
            old_text=old_text if before is not None and len(old) <= self._diff_limit else None,
            new_text=_known(data)[0] if len(data) <= self._diff_limit else None,
        )

    def _directory(self, path: str) -> Path:
        target = self.resolve(path)
        if not stat.S_ISDIR(target.stat().st_mode):
            raise BadPath(f"cannot use {shown(path)} as a directory: it is a file", path=path)
        return target

    def _locate(self, path: str) -> tuple[Path, Path]:
        """The directory of ours that a path leads into, and where it leads."""
        given = self._given(path)
        trouble: OSError | None = None
        try:
            target = Path(os.path.realpath(given, strict=True))
        except OSError as exc:
            trouble = exc
            target = Path(os.path.realpath(given))
        # Whether a path is ours comes first: what is wrong with those outside is nobody's business here.
        for place in (Path(os.path.normpath(given)), target):
            if _is_pseudo(place):
                raise NotAFile(f"{shown(path)} refused: it is no file but a view of the system's own state", path=path)
        roots = [root for root in (self.root, *self.additional) if target.is_relative_to(root)]
        if not roots:
            leads = "" if target == given else f", as it leads to {shown(str(target))}"
            ours = " or ".join(str(root) for root in (self.root, *self.additional))
            raise OutsideWorkspace(f"{shown(path)} refused{leads}: it must be inside of {ours}", path=path)
        if self._private is not None and target.is_relative_to(self._private):
            raise OutsideWorkspace(f"{shown(path)} refused: it is in the hub's own directory", path=path)
        if trouble is not None and not isinstance(trouble, FileNotFoundError):
            raise file_refusal(trouble, path, "find") from trouble
        return max(roots, key=lambda root: len(root.parts)), target

    def _given(self, path: str) -> Path:
        if not path:
            raise BadPath("an empty path; give the absolute path of a file", path=path)
        if path.startswith("file://"):
            raise BadPath(f"{shown(path)} refused: it is a URL; give the path of the file", path=path)
        if "\0" in path:
            raise BadPath(f"{shown(path)} refused: a path has no NUL characters in it", path=path)
        try:
            os.fsencode(path)
        except UnicodeEncodeError as exc:
            raise BadPath(f"{shown(path)} refused: it has halves of characters in it", path=path) from exc
        return self.root / path

    def _content(self, folder: Folder, name: str, path: str, flags: int) -> tuple[bytes, os.stat_result]:
        """The bytes of a plain file. Looked at before it is opened, since opening a device may do things."""
        check_kind(folder.look(name), path)
        descriptor = folder.open_file(name, flags)
        try:
            found = os.fstat(descriptor)
            check_kind(found, path)
            self._check_size(found.st_size, path, "it")
            data = _read_all(descriptor, self._file_limit + 1)
            self._check_size(len(data), path, "it")  # it may have grown
        finally:
            os.close(descriptor)
        return data, found

    def _check_size(self, size: int, path: str, what: str) -> None:
        if size > self._file_limit:
            raise TooLarge(
                f"{shown(path)} refused: {what} has {size:,} bytes, the limit is {self._file_limit:,}; "
                "use a program in a terminal to work on parts of it",
                path=path,
            )


def _check_unmoved(target: Path, path: str) -> None:
    if str(target) != path:
        raise Changed(f"{shown(path)} refused: its path now leads to another file or directory", path=path)


def above(root: Path, target: Path, path: str) -> tuple[str, ...]:
    """The directories between a root and a file in it."""
    names = target.relative_to(root).parts
    if not names or path.endswith(("/", os.sep)):
        raise NotAFile(f"{shown(path)} is a directory; name a file in it", path=path)
    if len(names) > DEPTH:
        raise BadPath(f"{shown(path)} refused: it is more than {DEPTH} directories deep", path=path)
    return names[:-1]


def _is_pseudo(place: Path) -> bool:
    return any(place.is_relative_to(pseudo) for pseudo in PSEUDO) and not place.is_relative_to(MEMORY)


def check_kind(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "a device")
        raise NotAFile(f"{shown(path)} refused: it is {kind}, not a plain file", path=path)


def _known(data: bytes) -> tuple[str | None, Form]:
    """The text of a file about to be replaced; what is no text is replaced by UTF-8."""
    try:
        return decode(data)
    except ValueError:
        return None, Form()


def _encoded(content: str, form: Form, path: str) -> bytes:
    try:
        return encode(content, form)
    except UnicodeEncodeError as exc:
        raise BadContent(
            f"cannot write {shown(path)}: the file is in {form.name}, which has no {content[exc.start]!a} "
            f"(character {exc.start}); write without it{'' if form.is_unicode else ', or convert the file to UTF-8'}",
            path=path,
        ) from exc


def _read_all(descriptor: int, most: int) -> bytes:
    pieces = []
    while most > 0 and (data := os.read(descriptor, min(most, 1024 * 1024))):
        pieces.append(data)
        most -= len(data)
    return b"".join(pieces)


def replace_file(
    folder: Folder,
    root: Path,
    name: str,
    data: bytes,
    before: os.stat_result | None,
    *,
    is_new: bool = False,
    before_effect: Callable[[], None] = lambda: None,
) -> None:
    """Put a file in the place of another in one step; if any step fails, nothing has happened.

    With `is_new` nothing may be there: FileExistsError. `before_effect` is called right before that step.
    """
    # closed to others until it has the mode of what it replaces
    temporary, descriptor = folder.open_new(0o666 if before is None else 0o600)
    try:
        try:
            _fill(descriptor, data)
            if before is not None and os.name == "posix":
                _dress(descriptor, folder, name, before)
            _sync(descriptor)
        finally:
            os.close(descriptor)
        if not folder.is_within(root):
            raise Moved(name)
        before_effect()
        (folder.name_new if is_new else folder.replace)(temporary, name)
    except BaseException:
        folder.remove(temporary)
        raise
    folder.sync()


def _fill(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that knows no such thing
            raise


def _dress(descriptor: int, folder: Folder, name: str, before: os.stat_result) -> None:
    """Owner, access lists and mode of the file that is replaced, as far as this user may set them."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o1777)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, Moved):
            _copy_attributes(folder, name, descriptor)


def _copy_attributes(folder: Folder, name: str, descriptor: int) -> None:
    if sys.platform != "linux":
        return
    source = folder.open_file(name, os.O_RDONLY)
    try:
        for attribute in os.listxattr(source):
            if attribute.startswith("user.") or attribute == "system.posix_acl_access":
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
    finally:
        os.close(source)
