"""The four levels of risk, and every reason that can raise one.

- low: reads inside the workspace, or changes nothing.
- medium: changes the workspace, runs project code, installs packages, reads from the network or from system files.
- high: destroys, leaves the workspace, changes permissions or privileges, rewrites history, reads secrets, or is shell
  text that cannot be read with certainty.
- critical: cannot be undone and reaches beyond the project: whole disks and homes, code from elsewhere run unseen,
  secrets sent away, control handed to someone else.

The level of a call is the worst of its reasons, so another command in a chain can never lower it. `REASONS` is the
registry: a code that is not in it cannot be used, and the reference table in the documentation is made from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

Level = Literal["low", "medium", "high", "critical"]

LEVELS: Final[tuple[Level, ...]] = ("low", "medium", "high", "critical")
_RANK: Final[dict[str, int]] = {level: rank for rank, level in enumerate(LEVELS)}

REASONS: Final[dict[str, tuple[Level, str]]] = {
    "changes-files": ("medium", "Creates or changes files in the workspace or a temporary directory."),
    "runs-program": ("medium", "Runs a program that is not known to only read."),
    "runs-code": ("medium", "Runs code of the project: tests, builds, scripts, inline code."),
    "installs-packages": ("medium", "Installs, updates or runs packages from a registry."),
    "reads-network": ("medium", "Reads from the network."),
    "reads-system": ("medium", "Reads system files outside the workspace that any user may read."),
    "reads-environment": ("medium", "Prints environment variables, which often hold secrets."),
    "changes-repository": ("medium", "Changes the git repository or talks to its remote."),
    "moves-out": ("medium", "Makes a directory outside the workspace the current one."),
    "unknown-path": ("medium", "Works on files whose names are only known when it runs."),
    "unknown-tool": ("medium", "Calls a tool whose effects are not known."),
    "changes-path": ("medium", "Changes where programs are looked for."),
    "destroys": ("high", "Deletes or overwrites data."),
    "permissions": ("high", "Changes permissions or owners of files."),
    "privilege": ("high", "Runs with the rights of another user, or changes users and rights."),
    "processes": ("high", "Ends processes or services, or stops the machine."),
    "system": ("high", "Changes the system's configuration, network, devices or services."),
    "schedules": ("high", "Arranges for something to run later."),
    "outside-read": ("high", "Reads outside the workspace."),
    "outside-write": ("high", "Changes files outside the workspace."),
    "system-write": ("high", "Changes files that belong to the system."),
    "secret-read": ("high", "Reads keys, passwords or other credentials."),
    "secret-write": ("high", "Changes keys, passwords or other credentials."),
    "autorun-write": ("high", "Changes a file that other programs run by themselves: startup files, hooks, tasks."),
    "rewrites-history": ("high", "Rewrites or deletes history in git."),
    "discards-work": ("high", "Throws away uncommitted or stashed work."),
    "git-setting": ("high", "Changes git settings for other repositories, or settings that make git run programs."),
    "removes-packages": ("high", "Removes packages from the system."),
    "publishes": ("high", "Publishes packages, images or credentials."),
    "infrastructure": ("high", "Changes or removes infrastructure or services that run elsewhere."),
    "containers": ("high", "Removes containers, images or volumes, or gives a container access to the host."),
    "destructive-query": ("high", "Drops, empties or changes data in a database."),
    "sends-network": ("high", "Sends data over the network."),
    "raw-connection": ("high", "Opens a network connection by hand."),
    "remote-command": ("high", "Runs commands on another machine."),
    "hidden-command": ("high", "Runs a command through an option or a script of another program."),
    "inline-code": ("high", "Runs inline code that deletes files, starts programs or opens connections."),
    "environment-code": ("high", "Sets a variable through which other programs are made to run code."),
    "dynamic-shell": ("high", "Runs shell text or a program that is only known when it runs."),
    "unreadable-shell": ("high", "The shell text cannot be read with certainty."),
    "not-shown": ("high", "Part of what would change is not shown."),
    "mismatch": ("high", "The request does not match the current file, or contradicts itself."),
    "lookalike": ("high", "Holds characters that look like blanks, quotes or operators and are not."),
    "fetch-and-run": ("critical", "Runs code fetched from the network without anyone seeing it."),
    "decode-and-run": ("critical", "Runs code that is hidden by an encoding."),
    "fork-bomb": ("critical", "Starts itself over and over until the machine stops."),
    "device-write": ("critical", "Writes to a disk directly."),
    "destroys-system": ("critical", "Deletes or opens up a whole home directory, disk or system directory."),
    "account-write": ("critical", "Changes who may log in or act as administrator."),
    "exfiltration": ("critical", "Reads secrets and talks to the network in one go."),
    "reverse-shell": ("critical", "Gives someone else a shell on this machine."),
}


def worst(levels: Iterable[str]) -> Level:
    """The highest of some levels; `low` when there are none."""
    return LEVELS[max((_RANK.get(level, 0) for level in levels), default=0)]


class Reason(str):
    """Why a call is risky, as a sentence; `code` names the kind of reason and stays stable."""

    __slots__ = ("code", "level")
    code: str
    level: Level

    def __new__(cls, code: str, text: str, level: Level | None = None) -> Reason:
        self = super().__new__(cls, text)
        self.code = code
        default, _ = REASONS[code]
        self.level = level or default
        return self

    @property
    def text(self) -> str:
        """The sentence."""
        return str(self)

    def __repr__(self) -> str:
        return f"Reason({self.code!r}, {str(self)!r}, {self.level!r})"


class Risk(str):
    """The level of a call and its reasons, worst first; equal to the plain string of its level."""

    __slots__ = ("reasons",)
    reasons: tuple[Reason, ...]

    def __new__(cls, reasons: Iterable[Reason] = ()) -> Risk:
        # each code and sentence once; sorting is stable, so equal levels stay in the order of the commands
        unique = {(reason.code, str(reason)): reason for reason in reasons}
        ordered = tuple(sorted(unique.values(), key=lambda reason: -_RANK[reason.level]))
        self = super().__new__(cls, ordered[0].level if ordered else "low")
        self.reasons = ordered
        return self

    @property
    def level(self) -> Level:
        """`low`, `medium`, `high` or `critical`."""
        return LEVELS[_RANK[str(self)]]

    def __repr__(self) -> str:
        return f"Risk({str(self)!r}, {list(self.reasons)!r})"
