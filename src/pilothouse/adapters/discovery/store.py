"""The contract of a store: the record that an agent keeps of its sessions, as a list and one session at a time.

A store belongs to one agent and is only ever read. Its methods block, so callers run them in a thread; none of them
raises for the content of a file. An unreadable file is a `Problem`, and the others are still listed. A session comes
out as ACP updates, so everything above is the same as for an agent that is run. Titles and last words are cleaned of
the text that programs insert between the user's words: only known tags, and only pairs of them.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...model.discovery import DiscoveredSession, DiscoveredStatus
from ...model.titles import excerpt, title

Update = dict[str, Any]


class Problem(Struct, frozen=True, kw_only=True):
    """Something that could not be read, and why. Where it lies tells it from others: each is told once."""

    path: str
    message: str


class Scan(Struct, frozen=True, kw_only=True):
    """Everything that a store has: the sessions, and what cannot be read, one problem for a path.

    The status of a session is what its record says, however old that is: whether somebody still runs it is not known
    here.
    """

    sessions: Sequence[DiscoveredSession] = ()
    problems: Sequence[Problem] = ()


class Step(Struct, frozen=True, kw_only=True):
    """What a session's record has more than at the last look.

    `updates` are those of `session/update`, as an agent would send them, prompts of the user among them
    (`user_message_chunk`). `times` says of each of them when it happened, in UTC with milliseconds, and nothing where
    the record does not tell; it may be left out as a whole. `status` is what the record says the agent does now.
    `restarted`: the record was rewritten or cut, and what is told from here on begins anew; what was told before still
    holds. `failed`: it could not be looked at this time, so this says nothing of where it ends.
    """

    updates: Sequence[Update] = ()
    times: Sequence[str] = ()
    status: DiscoveredStatus | None = None
    problems: Sequence[Problem] = ()
    restarted: bool = False
    failed: bool = False


class Owner(Struct, frozen=True, kw_only=True):
    """A process that says of itself that it has a session; whether it still lives is not known here.

    `since`, in seconds, is when it said so first: a process that began later is another one of the same number.
    """

    session_id: str
    pid: int
    since: float
    status: DiscoveredStatus | None = None


class Reader(ABC):
    """One session's record, read on from where the last look ended."""

    @abstractmethod
    def read(self) -> Step:
        """What is new; everything at the first call. A line that is not whole yet waits for its rest. A record that is
        large is told in several steps of bounded size: read again until a step has no updates and has not failed."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files. Again is no harm."""


class Store(ABC):
    """The sessions that one agent keeps."""

    agent: str
    """The name of the agent that would take up these sessions."""
    also: Collection[str] = ()
    """Names of other agents that keep their sessions here too, as they run the same program."""

    @property
    @abstractmethod
    def places(self) -> Sequence[Path]:
        """Directories and files that tell by a change of them, or below them, that sessions changed; they need not
        exist."""

    @abstractmethod
    def scan(self) -> Scan:
        """All sessions. What has not changed since the last scan is not read again, so thousands take no second."""

    @abstractmethod
    def reader(self, session_id: str) -> Reader | None:
        """The record of a session; None when there is none of that id. An id never becomes a path unchecked."""

    @abstractmethod
    def touched(self, path: Path) -> str | None:
        """The id of the session that a changed file belongs to, by its name alone; None when it tells nothing."""

    @abstractmethod
    def files(self, session_id: str) -> Sequence[Path]:
        """The files that whoever writes this session has open or changes; for finding that process."""

    def keep(self, folder: Path) -> None:
        """Keep below this directory what the next process would have to read again. One that is quick needs nothing."""
        return

    @property
    def programs(self) -> Collection[str]:
        """The names of the programs that write sessions here, without path and ending."""
        return (self.agent,)

    def owners(self) -> Sequence[Owner]:
        """What processes of the agent say of themselves; nothing for an agent whose processes tell nothing."""
        return ()


def iso(seconds: float) -> str:
    """A time as the lists of sessions have it. One that no clock shows is the beginning of time."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(told: Any) -> str:
    """A time that a record tells in ISO 8601, in the form of `iso`; nothing for what is none."""
    try:
        given = datetime.fromisoformat(told)
        return iso((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp())
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


def listed(
    agent: str,
    session_id: str,
    cwd: str,
    *,
    created_at: str,
    last_activity: str,
    name: str = "",
    said: str = "",
    model: str = "",
    status: DiscoveredStatus | None = None,
) -> DiscoveredSession:
    """A session for the list, from what its record says; `name` and `said` are cut and cleared here.

    A clock that was wrong must not keep a session in the first place: nothing happened later than now.
    """
    now = iso(time.time())
    return DiscoveredSession(
        id=session_id,
        agent=agent,
        project_path=cwd,
        project_name=re.split(r"[\\/]", cwd.rstrip("\\/"))[-1],
        created_at=min(created_at, now),
        last_activity=min(last_activity, now),
        last_message=excerpt(said) or None,
        session_name=title(name) or None,
        status=status,
        model=model or None,
        integration_method="file-watch",
    )
