"""Why a request of an agent for a file or a terminal was refused, as one tree.

    Refusal
    ├── WorkspaceError           a file request; `path` is what the agent asked for
    │   ├── NoSuchFile           nothing is there
    │   ├── OutsideWorkspace     the path leads out of the session's directories
    │   ├── BadPath              no path at all: NUL, too long, a loop of links, a file used as a directory
    │   ├── NotAFile             a directory, device, pipe or socket, or a place such as /proc
    │   ├── BadContent           text that the file cannot hold
    │   ├── TooLarge             above the limit on file sizes
    │   ├── NotText              binary, or in an encoding that cannot be told
    │   ├── NotPermitted         the operating system says no to this user
    │   ├── ReadOnly             the file system takes no writes
    │   ├── StorageFull          no space or no quota left
    │   ├── Unstable             the path kept changing while it was opened
    │   ├── AlreadyThere         a new file was to be made, and there is one
    │   ├── Changed              the file is not the one that was to be replaced
    │   └── FileTrouble          whatever else the operating system reports
    └── TerminalError            a terminal request
        ├── UnknownTerminal      no terminal of that id
        ├── TooManyTerminals     release some first
        ├── ProgramNotFound      no such program
        ├── CannotStart          the program is there, but cannot be run
        └── TerminalsClosed      the session is ending

Each class carries the JSON-RPC code it is answered with; each message says what came and what to do about it.
"""

from __future__ import annotations

import errno
from typing import Any, ClassVar

from ...acp.errors import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RequestError

SHOWN = 300
"""Characters of an agent's own words that an error repeats."""


class Refusal(Exception):
    """Base of all of these; `data` goes along with the JSON-RPC error."""

    code: ClassVar[int] = INTERNAL_ERROR

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.data = data


class Forbidden(Refusal):
    """A rule or a person does not allow it; nothing has been done."""

    code = INVALID_PARAMS


class WorkspaceError(Refusal):
    """A file could not be read or written; nothing has been changed."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message, path=_clean(path))
        self.path = path


class NoSuchFile(WorkspaceError):
    code = RESOURCE_NOT_FOUND


class OutsideWorkspace(WorkspaceError):
    code = INVALID_PARAMS


class BadPath(WorkspaceError):
    code = INVALID_PARAMS


class NotAFile(WorkspaceError):
    code = INVALID_PARAMS


class BadContent(WorkspaceError):
    code = INVALID_PARAMS


class TooLarge(WorkspaceError):
    pass


class NotText(WorkspaceError):
    pass


class NotPermitted(WorkspaceError):
    pass


class ReadOnly(WorkspaceError):
    pass


class StorageFull(WorkspaceError):
    pass


class Unstable(WorkspaceError):
    pass


class AlreadyThere(WorkspaceError):
    pass


class Changed(WorkspaceError):
    pass


class FileTrouble(WorkspaceError):
    pass


class TerminalError(Refusal):
    """A terminal could not be made or found."""


class UnknownTerminal(TerminalError):
    code = RESOURCE_NOT_FOUND

    def __init__(self, terminal_id: str) -> None:
        super().__init__(
            f"no terminal {shown(terminal_id)}: it was never created here or has been released",
            terminalId=_clean(terminal_id),
        )


class TooManyTerminals(TerminalError):
    pass


class ProgramNotFound(TerminalError):
    code = INVALID_PARAMS


class CannotStart(TerminalError):
    code = INVALID_PARAMS


class TerminalsClosed(TerminalError):
    pass


def request_error(refusal: Refusal) -> RequestError:
    """The JSON-RPC error that an agent is answered with."""
    return RequestError(refusal.code, str(refusal), refusal.data or None)


def shown(text: str) -> str:
    """What an agent said, quoted, not longer than an error message should be."""
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}… ({len(text)} characters)"


_TROUBLES: dict[int, tuple[type[WorkspaceError], str]] = {
    # some agents look for this name to tell a file that is to be made from one that cannot be read
    errno.ENOENT: (NoSuchFile, "there is no such file (ENOENT)"),
    errno.ENOTDIR: (BadPath, "a part of the path is a file, not a directory"),
    errno.EISDIR: (NotAFile, "it is a directory; name a file in it"),
    errno.ENAMETOOLONG: (BadPath, "the name is too long for this file system; use a shorter one"),
    errno.ELOOP: (BadPath, "its symbolic links lead round in a loop; name the file itself"),
    errno.EINVAL: (BadPath, "this file system does not accept such a name"),
    errno.EILSEQ: (BadPath, "this file system does not accept such a name"),
    errno.EACCES: (NotPermitted, "permission denied; change the permissions of the file and its directory"),
    errno.EPERM: (NotPermitted, "not permitted, perhaps because the file is protected against changes"),
    errno.ETXTBSY: (NotPermitted, "it is a program that is running; stop it first"),
    errno.EROFS: (ReadOnly, "the file system is read-only; write to another place"),
    errno.ENOSPC: (StorageFull, "no space is left on the device, so the file is as it was; free some and try again"),
    errno.EDQUOT: (StorageFull, "the disk quota is used up, so the file is as it was; free some and try again"),
    errno.EFBIG: (StorageFull, "it would be larger than may be written here, so the file is as it was"),
    errno.EMFILE: (FileTrouble, "too many files are open; try again later"),
    errno.ENFILE: (FileTrouble, "too many files are open on this machine; try again later"),
}


def file_refusal(exc: OSError, path: str, verb: str) -> WorkspaceError:
    """What an error of the operating system means for whoever asked for `path`."""
    number = exc.errno if exc.errno is not None else 0
    kind, advice = _TROUBLES.get(number, (FileTrouble, f"the system says: {exc.strerror or exc}"))
    return kind(f"cannot {verb} {shown(path)}: {advice}", path=path)


def _clean(text: str) -> str:
    """Without halves of characters, which JSON cannot carry."""
    return text[:4096].encode("utf-8", "backslashreplace").decode()
