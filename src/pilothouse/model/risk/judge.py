"""One script's risk: every command, redirection and path of it, and their combination.

`Judge` collects reasons and never removes one, so a chain is at least as risky as each of its parts. The risk of single
programs is in `rules`; `Arguments` reads the options and values of a command for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ..shell import Command, Redirect, Script, Word
from .levels import Level, Reason
from .programs import (
    CHANGERS,
    CODE_VARIABLES,
    FETCHERS,
    HARMLESS_VALUES,
    HIDING,
    HIDING_BY_OPTION,
    INTERPRETERS,
    NAMED,
    QUERY,
    READERS,
    SHELL_NAMES,
    SILENT,
    Place,
    locate,
)


def has(command: Command, *options: str) -> bool:
    """Whether an option is given, also with a value attached by `=`."""
    return any(word.text in options or word.text.partition("=")[0] in options for word in command.arguments)


def letters(command: Command, wanted: str) -> bool:
    """Whether a short option with one of these letters is given, alone or in a cluster."""
    for word in command.arguments:
        text = word.text
        if len(text) > 1 and text[0] == "-" and text[1] != "-" and any(letter in wanted for letter in text[1:]):
            return True
    return False


def value(command: Command, *options: str) -> list[Word]:
    """The values of options: the next word, or what is attached by `=` or to a short option."""
    found: list[Word] = []
    words = command.arguments
    for index, word in enumerate(words):
        text = word.text
        if text in options:
            found.extend(words[index + 1 : index + 2])
            continue
        name, equals, rest = text.partition("=")
        if equals and name in options:
            found.append(Word(rest, word.static, word.glob, rest))
            continue
        if text[:2] == "--":
            # long options may be cut short as long as they are clear
            if len(name) > 3 and any(option.startswith(name) for option in options):
                found.extend([Word(rest, word.static, word.glob, rest)] if equals else words[index + 1 : index + 2])
        elif text[:1] == "-":
            for option in options:
                position = text.find(option[1], 1) if len(option) == 2 else -1
                if position > 0:
                    attached = text[position + 1 :]
                    found.extend(
                        [Word(attached, word.static, word.glob, attached)] if attached else words[index + 1 : index + 2]
                    )
    return found


def plain(command: Command) -> list[Word]:
    """The arguments that are not options."""
    return [word for word in command.arguments if not word.text.startswith("-")]


def subcommand(command: Command) -> str:
    """The first argument that is not an option."""
    return next((word.text for word in command.arguments if not word.text.startswith("-")), "")


PRIVILEGED = frozenset({"sudo", "doas", "pkexec", "su", "runuser", "gosu", "su-exec"})
_SYSTEM_WRAPPERS = frozenset({"nsenter", "unshare", "chroot", "setpriv"})
_ATTACHED = re.compile(r"-[A-Za-z]=?([/~$].*|\.\.?/.*)", re.DOTALL).fullmatch
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://").match
_LOCAL = re.compile(
    r"(?:https?://)?(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0|host\.docker\.internal)(?:[:/?]|$)"
).match
_NETWORK_DEVICE = re.compile(r"/dev/(?:tcp|udp)/").match
_QUERIES = frozenset({"drop", "truncate", "delete", "alter", "update", "insert"})
_RUNNERS = frozenset(
    {"pytest", "py.test", "tox", "nox", "jest", "vitest", "mocha", "ava", "playwright", "cypress", "rspec", "phpunit",
     "ctest", "bats", "behave", "ward", "karma", "mix", "sbt", "gradle", "gradlew", "mvn", "mvnw", "bazel", "rake",
     "ninja", "just", "task", "cmake", "scons", "meson"}
)  # fmt: skip
_MAX_SHOWN = 80
_MAX_WORD = 1000  # characters of a word that are read to show it
_TRIVIAL = frozenset({"--version", "-V", "--help", "-version"})
_DECODERS = frozenset({"base64", "base32", "basenc", "xxd", "openssl", "uudecode", "gpg", "rev", "tr"})
_ERROR_CODES = {
    "runs what it reads": "dynamic-shell",
    "only known when it runs": "dynamic-shell",
    "look like": "lookalike",
}

Rule = Callable[["Judge", Command], bool]
"""Adds reasons for a program; True when nothing general is left to say about it."""


class Judge:
    """Collects the reasons of one script."""

    __slots__ = ("base", "constants", "downloads", "network", "reasons", "rules", "script", "secrets", "workspace")

    def __init__(self, script: Script, workspace: str | None, rules: dict[str, Rule]) -> None:
        self.script = script
        self.workspace = workspace
        self.rules = rules
        self.reasons: list[Reason] = []
        # the directory the commands so far have moved to; empty while it is the workspace
        self.base = ""
        self.constants: dict[str, str] = {}
        self.downloads: set[str] = set()
        self.network = False
        self.secrets = False

    def add(self, code: str, text: str, level: Level | None = None) -> None:
        self.reasons.append(Reason(code, text, level))

    def run(self) -> list[Reason]:
        """All reasons of the script."""
        for command in self.script.commands:
            self.command(command)
        self.whole()
        return self.reasons

    # ---- one command ---------------------------------------------------------------------------------------------

    def command(self, command: Command) -> None:
        if command.wrappers:
            self.wrappers(command)
        if command.assignments:
            self.assignments(command)
        for item in command.redirects:
            self.redirect(item, command)
        if not command.words:
            return
        name = command.name
        rule = self.rules.get(name)
        if rule is not None and rule(self, command):
            return
        self.named(command, name)

    def named(self, command: Command, name: str) -> None:
        """What is known of a program by its name alone."""
        if name in SILENT:
            return
        if name in READERS:
            self.paths(command, self.read)
            return
        if len(command.words) == 2 and command.words[1].text in _TRIVIAL and "/" not in command.program:
            return
        found = NAMED.get(name) or NAMED.get(name.partition(".")[0]) or NAMED.get(name.lower())
        if found is not None:
            code, deed = found
            self.add(code, f"`{shown(command)}` {deed}")
            if code in {"sends-network", "raw-connection", "remote-command", "reads-network"}:
                self.network = self.network or not self.only_local(command)
            self.paths(command, self.write if code in {"destroys", "permissions"} else self.read)
        elif name in CHANGERS:
            self.add("changes-files", f"`{shown(command)}` creates or changes files")
            self.paths(command, self.write)
        else:
            self.program(command, name)
            self.paths(command, self.read)

    def program(self, command: Command, name: str) -> None:
        script = next((word.text for word in command.arguments if not word.text.startswith("-")), "")
        started = {command.program.rpartition("/")[2], script.rpartition("/")[2]} - {""}
        if self.downloads & started:
            self.add("fetch-and-run", f"`{shown(command)}` runs what was fetched just before")
        if QUERY(" ".join(word.text for word in command.words)) and name.lower() in _QUERIES:
            self.add("destructive-query", f"`{shown(command)}` changes or drops data")  # for a tool that takes SQL
        elif name in SHELL_NAMES or INTERPRETERS(name) or name in _RUNNERS:
            self.add("runs-code", f"`{shown(command)}` runs code")
        else:
            self.add("runs-program", f"`{shown(command)}` runs a program whose effects are not known")

    def wrappers(self, command: Command) -> None:
        for name in command.wrappers:
            if name in PRIVILEGED:
                self.add("privilege", f"`{shown(command)}` runs with other rights, by {name}")
            elif name in _SYSTEM_WRAPPERS:
                self.add("system", f"`{shown(command)}` runs inside {name}")
            elif _hides(name):
                self.add("hidden-command", f"`{shown(command)}` is run by way of {name}")
            elif name == "ssh":
                self.add("remote-command", f"`{shown(command)}` runs on another machine")
                self.network = True

    def assignments(self, command: Command) -> None:
        for name, value in command.assignments:
            if value.static:
                self.constants[name] = value.text
            else:
                self.constants.pop(name, None)
            base = name.rstrip("+").partition("[")[0]
            if base in {"PATH", "CDPATH", "MANPATH"}:
                self.add("changes-path", f"`{base}` is changed, so programs are looked for elsewhere")
            elif _runs_code(base) and not (value.static and value.text in HARMLESS_VALUES):
                self.add("environment-code", f"`{base}` can make other programs run code")

    def redirect(self, item: Redirect, command: Command) -> None:
        target = item.target
        if target is None or item.operator in {"<<", "<<-", "<<<"}:
            return
        if _NETWORK_DEVICE(target.text):
            self.network = True
            if (
                command.name in SHELL_NAMES
                or command.name in {"exec", ""}
                or any(name in SHELL_NAMES for name in command.wrappers)
            ):
                self.add("reverse-shell", f"`{shown(command)}` connects a shell to {target.text}")
            else:
                self.add("raw-connection", f"`{shown(command)}` opens a connection to {target.text}")
        elif item.writes:
            self.write(target, command)
        elif item.operator in {"<", "<>"}:
            self.read(target, command)

    # ---- paths ---------------------------------------------------------------------------------------------------

    def paths(self, command: Command, visit: Callable[[Word, Command], None]) -> None:
        """Visit every argument that may be a path."""
        for word in operands(command):
            visit(word, command)

    def place(self, word: Word) -> Iterator[Place | None]:
        """Where a word leads, from the workspace and from the current directory; None when nobody knows."""
        for text in candidates(self.resolved(word)):
            if text[:1] in {"$", "`", ""} and not _known(text):
                yield None
                continue
            yield locate(text, self.workspace)
            if self.base and text[:1] not in {"/", "~"}:
                yield locate(text, self.workspace, self.base)

    def resolved(self, word: Word) -> str:
        """The word's text with variables filled in that the script itself has set."""
        if word.static or not self.constants or "$" not in word.text:
            return word.text
        return _VARIABLE.sub(lambda match: self.constants.get(match[1] or match[2], match[0]), word.text)

    def read(self, word: Word, command: Command) -> None:
        for place in self.place(word):
            if place is None:
                self.add("unknown-path", f"`{shown(command)}` works on files that are only known when it runs")
            else:
                self.judge_read(place)

    def judge_read(self, place: Place) -> None:
        if place.harmless:
            return
        if place.secret:
            self.secrets = True
            self.add("secret-read", f"{place.path} may hold credentials")
        elif place.device:
            self.add("outside-read", f"{place.path} is a disk")
        elif place.system:
            self.add("reads-system", f"{place.path} is outside the workspace")
        elif not place.inside:
            self.add("outside-read", f"{place.path} is outside the workspace")

    def write(self, word: Word, command: Command) -> None:
        for place in self.place(word):
            if place is None:
                self.add("unknown-path", f"`{shown(command)}` changes files that are only known when it runs")
            else:
                self.judge_write(place)

    def judge_write(self, place: Place) -> None:
        if place.harmless:
            return
        path = place.path
        if place.device:
            self.add("device-write", f"{path} is a disk")
        elif place.accounts:
            self.add("account-write", f"{path} says who may log in or act as administrator")
        elif place.autorun:
            self.add("autorun-write", f"{path} is run or read by other programs on their own")
        elif place.secret:
            self.secrets = True
            self.add("secret-write", f"{path} may hold credentials")
        elif place.system:
            self.add("system-write", f"{path} belongs to the system")
        elif not place.inside:
            self.add("outside-write", f"{path} is outside the workspace")
        else:
            self.add("changes-files", f"{path} is created or changed")

    def only_local(self, command: Command) -> bool:
        """Whether every address a command names is on this machine."""
        addresses = [word.text for word in command.arguments if _SCHEME(word.text) or _LOCAL(word.text)]
        return bool(addresses) and all(_LOCAL(text) for text in addresses)

    # ---- the script as a whole -----------------------------------------------------------------------------------

    def whole(self) -> None:
        script = self.script
        if "fork-bomb" in script.features:
            self.add("fork-bomb", "a function starts itself again and again")
        if self.secrets and self.network:
            self.add("exfiltration", "the command reads credentials and uses the network")
        dynamic = "dynamic-code" in script.features
        if dynamic:
            self.dynamic()
        for error in script.errors:
            self.add(next((code for part, code in _ERROR_CODES.items() if part in error), "unreadable-shell"), error)

    def dynamic(self) -> None:
        """Code that is not in the script: where does it come from?"""
        for command in self.script.commands:
            name = command.name
            if name in FETCHERS:
                self.add("fetch-and-run", f"`{shown(command)}` fetches what is then run")
            elif name in _DECODERS and is_decoding(command):
                self.add("decode-and-run", f"`{shown(command)}` decodes what is then run")


def is_decoding(command: Command) -> bool:
    texts = [word.text for word in command.arguments]
    if command.name == "xxd":
        return any(text.startswith("-r") or text == "-revert" for text in texts)
    if command.name in {"rev", "tr", "uudecode"}:
        return True
    return any(re.fullmatch(r"-[a-zA-Z]*[dD]|--decode|--decrypt", text) for text in texts)


def shown(command: Command) -> str:
    """The command as text, cut to a readable length. Only as much of it is read."""
    parts: list[str] = []
    size = 0
    for word in command.words:
        part = " ".join((word.raw or word.text)[:_MAX_WORD].split())
        parts.append(part)
        size += len(part) + 1
        if size > _MAX_SHOWN + 1:
            break
    text = " ".join(" ".join(parts).split())
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def operands(command: Command) -> Iterable[Word]:
    """The arguments that may name files."""
    return command.arguments


def candidates(text: str, depth: int = 0) -> Iterator[str]:
    """The paths that one argument may hold: itself, or what stands behind `=`, `@`, an option letter or a colon."""
    if not text:
        yield ""
        return
    if len(text) > 4096 or "\n" in text:
        return
    first = text[0]
    if first == "-":
        attached = _ATTACHED(text)
        if attached:
            yield attached[1]
        elif "=" in text:
            yield from candidates(text.partition("=")[2], depth + 1)
        return
    if first == "@" and len(text) > 1:
        yield text[1:]
        return
    if "://" in text and _SCHEME(text):
        if text[:7].lower() == "file://":
            yield text[7:]
        return
    yield text
    if first == "{" and "," in text:
        yield from text.strip("{}").split(",")
    name, equals, value = text.partition("=")
    if equals and value and "/" not in name and depth < 4:
        yield from candidates(value, depth + 1)
    before, colon, after = text.partition(":")
    if colon and before and first in "/~$.":
        yield before
        if after[:1] in {"/", "~"}:
            yield after


def _hides(wrapper: str) -> bool:
    """Whether a command under this wrapper is one that a reader of the command line easily overlooks."""
    program, blank, option = wrapper.partition(" ")
    if not blank:
        return program in HIDING
    return program in HIDING_BY_OPTION and ("-" in option or option.isupper() or option == "alias")


def _runs_code(variable: str) -> bool:
    return variable in CODE_VARIABLES or variable.startswith(("GIT_CONFIG_", "BASH_FUNC_", "LD_", "DYLD_"))


def _known(text: str) -> bool:
    """Whether a path that begins with a variable is one whose place is known."""
    return text.startswith(("$HOME", "${HOME}", "$PWD", "${PWD}", "$TMPDIR", "${TMPDIR", "$TMP", "$TEMP"))
