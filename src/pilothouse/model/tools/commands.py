"""Find the commands in a tool call's input, in every shape in which agents send them.

A command that is missed here is missing from rules, risk and preview. So every shape is searched: a string, an argument
list, a program with `args`, several `commands`, any of these nested in another object, and JSON in a string. Never
raises, whatever the input is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ..acts import SHELLS, CommandLine, command_from_text, command_from_words, join_words

COMMAND_KEYS = ("command", "cmd", "script", "commandLine", "command_line", "shell_command", "bash_command", "argv")
_ONE = frozenset(key.replace("_", "").lower() for key in COMMAND_KEYS)
_SEVERAL = frozenset({"commands", "cmds", "scripts", "shellcommands", "commandlines", "bashcommands"})
_PROGRAM = frozenset({"program", "executable"})
_ARGUMENTS = frozenset({"args", "arguments"})
# members that hold prose or the text of a file, which may say anything
_TEXTS = frozenset(
    {
        *("content", "contents", "filetext", "oldstring", "newstring", "oldstr", "newstr", "oldtext", "newtext"),
        *("text", "patch", "patchtext", "diff", "before", "after", "newsource"),
        *("description", "prompt", "message", "question"),
    }
)
# sent to the running program as they are
_PROGRAM_INPUT = frozenset({"stdin", "standardinput", "chars"})
# members that only describe the call
_REMARKS = frozenset(
    {
        *("description", "explanation", "reason", "justification", "status", "title", "summary"),
        *("purpose", "goal", "taskprogress", "intent", "thought", "risklevelreason"),
    }
)
_LIMIT = re.compile(r"time|limit|max|wait|interval|background|async|yield|size|bytes|tokens|count|ms$")
_AMOUNT = re.compile(
    r"\d{1,15}(?:\.\d{1,9})? ?(?:[mun]?s|secs?|seconds?|m|mins?|minutes?|h|hours?|[kmg]?i?b|bytes|%)?", re.IGNORECASE
)
# switches and settings with which a command may do more than it says
_RISKY = re.compile(r"sandbox|escalat|dangerous|privileg|unsafe|sudo|root|user|elevat")
# switched off, these may let a command do more than it says
_PROTECTION = re.compile(
    r"^(?!no|.*(?:disable|danger|bypass|skip|without)).*(?:sandbox|isolat|readonly|dryrun|restrict|confirm|protect)"
)
# identifiers that agents send next to a command; those of a machine or container are not among them
_IDS = frozenset(
    {
        *("id", "shellid", "bashid", "sessionid", "terminalid", "taskid", "processid", "pid", "callid", "toolcallid"),
        *("tooluseid", "requestid", "turnid", "threadid", "messageid", "conversationid", "runid", "invocationid"),
        *("approvalid", "itemid", "eventid"),
    }
)
_ID = re.compile(r"[\w:.-]{1,80}")
# settings with the values that change nothing about a command
_SETTINGS: dict[str, frozenset[str]] = {
    "mode": frozenset({"sync", "async", "detached", "background", "foreground"}),
    "sandboxpermissions": frozenset({"use_default"}),
    "type": frozenset({"exec", "execute", "bash", "shell", "terminal", "command", "local_shell", "function"}),
    "risklevel": frozenset({"low", "medium", "high"}),
    "securityrisk": frozenset({"low", "medium", "high", "unknown"}),
    "source": frozenset({"agent", "model", "assistant"}),
    "availabledecisions": frozenset({"approved", "approved_for_session", "denied", "abort", "accept", "decline"}),
}
# switches about how the agent waits for a command, or about asking for it; both values are harmless
_SWITCHES = frozenset(
    {
        *("login", "tty", "pty", "restart", "blocking", "detach", "fireandforget", "keepstdinopen", "interactive"),
        *("requiresapproval", "requireuserapproval", "safetoautorun", "notifyoncomplete", "stream"),
    }
)
# a POSIX shell, either by its name alone or in a directory of the system
_USUAL_SHELL = re.compile(r"(?:(?:/usr|/usr/local|/opt/homebrew)?/bin/)?(?:sh|bash|zsh|dash)")
# objects that hold the members of the call itself
_WRAPPERS = frozenset({"arguments", "args", "input", "params", "parameters", "toolinput", "rawinput", "value"})
# how Codex describes the command that it has parsed, next to it
_PARSED = frozenset({"name", "path", "query", "type"})
_PARSED_TYPES = frozenset({"read", "list_files", "search", "unknown"})
DIRECTORY_MEMBERS = frozenset({"cwd", "workdir", "workingdirectory", "workingdir", "directory", "dir", "dirpath"})
VARIABLE_MEMBERS = frozenset(
    {"env", "envvar", "envvars", "environment", "environmentvariable", "environmentvariables", "variables"}
)
_DEPTH = 40
"""Nesting that is searched for commands; `find_other_texts` has no limit."""
_JSON_LIMIT = 1_000_000


class ShownCommand(NamedTuple):
    """One command: its shell text, its words if they came as a list, and its directory and variables if given."""

    text: str
    words: tuple[str, ...] | None = None
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()

    def line(self, shells: Collection[str] = SHELLS) -> CommandLine:
        """The command in its normal form; for `shells` see `command_from_words`."""
        return command_from_words(self.words, shells) if self.words else command_from_text(self.text, shells)


def find_commands(raw: object) -> list[ShownCommand]:
    """Every command of an input, each once, in the order in which they come."""
    return list(dict.fromkeys(_commands(raw, _DEPTH)))


def find_other_texts(raw: object, commands: Iterable[ShownCommand]) -> list[tuple[str, str]]:
    """The members of an input that are neither part of its commands nor known to be harmless, as (member, text).

    They may run as well, or change how a command runs. A list of words is one text. Where nothing is known of the
    commands, only texts and risky switches count.
    """
    known = _KnownParts(commands)
    return list(dict.fromkeys((name, text) for name, text, is_inert in _list_members(raw, known) if not is_inert))


def find_settings(raw: object, commands: Iterable[ShownCommand]) -> list[tuple[str, str]]:
    """The texts of an input that are not part of its commands, harmless or not, without remarks."""
    found = _list_members(raw, _KnownParts(commands))
    return list(dict.fromkeys((name, text) for name, text, _ in found))


class _KnownParts:
    """The texts, words, directories and variables that some commands show."""

    def __init__(self, commands: Iterable[ShownCommand]) -> None:
        self.commands = list(commands)
        self.texts = {one.text for one in self.commands}
        self.lines = {one.line() for one in self.commands}
        self.words = {one.words for one in self.commands if one.words}
        self.directories = {one.cwd for one in self.commands if one.cwd}
        self.variables = {pair for one in self.commands for pair in one.env}

    def include(self, name: str, value: object) -> bool:
        """Whether a member is shown as part of a command. Only a whole value counts, never a part of a text."""
        if name in DIRECTORY_MEMBERS:
            return isinstance(value, str) and value in self.directories
        if name in VARIABLE_MEMBERS:
            return (pairs := _variables(value)) != () and set(pairs) <= self.variables
        words = _words(value)
        if name in _ARGUMENTS and words and any(one[-len(words) :] == words for one in self.words):
            return True
        if name in _ONE | _SEVERAL | _PROGRAM:
            if isinstance(value, str) and any(one[0] == value for one in self.words):
                return True
            if words and any(one[: len(words)] == words for one in self.words):
                return True
            if words and name in _SEVERAL and set(words) <= self.texts:
                return True
        if _RISKY.search(name):
            return False
        if isinstance(value, str):
            return value in self.texts or (value.strip() != "" and command_from_text(value) in self.lines)
        return bool(words) and command_from_words(words or ()) in self.lines

    def include_parsed(self, name: str, value: object) -> bool:
        """Whether a text repeats a word of a command, in an object that describes it."""
        if name not in _PARSED or not isinstance(value, str):
            return False
        words = {word for line in self.lines for word in line.words}
        return value in words | {word.rpartition("/")[2] for word in words} or value in _PARSED_TYPES


def _list_members(raw: object, known: _KnownParts) -> Iterator[tuple[str, str, bool]]:
    """The members of an input that are not part of its commands nor remarks: name, text, and whether they are inert."""
    parsed = parse_json_input(raw)
    raw = raw if parsed is None else parsed
    if not isinstance(raw, Mapping):
        return
    for key, value in raw.items():
        pieces = list(_list_pieces(key, value, known))
        yield from pieces
        texts = [text for _, text, is_inert in pieces if not is_inert]
        if len(texts) > 1:  # a command may be cut into pieces
            yield _name_of(key), " ".join(texts), False


def _list_pieces(key: object, value: object, known: _KnownParts) -> Iterator[tuple[str, str, bool]]:
    """The texts of one member. A member of an object that is not known to be the call itself is never inert."""
    stack: list[tuple[object, object, bool, bool]] = [(key, value, True, False)]
    while stack:
        key, value, is_own, is_parsed = stack.pop()
        name = simplify_key(key)
        if known.include(name, value) or (is_parsed and known.include_parsed(name, value)) or is_empty(value):
            continue
        if is_own and name in _REMARKS and isinstance(value, str):
            continue
        if is_own and _is_inert(name, value):
            if isinstance(value, str):  # a limit or a switch is not compared
                yield _name_of(key), value, True
            continue
        parsed = parse_json_input(value) if name not in _PROGRAM_INPUT else None
        value = value if parsed is None else parsed
        if isinstance(value, Mapping):
            has_command = any(simplify_key(inner) in _ONE for inner in value)
            is_call = has_command or (is_own and name in _WRAPPERS)
            stack += reversed([(inner, item, is_call, has_command) for inner, item in value.items()])
        elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
            stack += reversed([(key, item, False, False) for item in value])
        elif isinstance(value, str | list) or (known.commands and value is not False):
            yield _name_of(key), _text_of(value), False
        elif value is True and _RISKY.search(name):
            yield _name_of(key), "true", False
        elif value is False and _PROTECTION.search(name):
            yield _name_of(key), "false", False


def _name_of(key: object) -> str:
    return key if isinstance(key, str) else str(key)


def _text_of(value: object) -> str:
    if isinstance(value, list):
        return join_words(_words(value) or ())
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def is_empty(value: object) -> bool:
    """Whether a member is as good as missing. `0` is not: it may be the number of a user."""
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def _is_inert(name: str, value: object) -> bool:
    """Whether a member next to a command changes nothing about it: exactly these names with exactly these values."""
    if name in _PROGRAM_INPUT:
        return False
    if value is False or value == "false":
        return _PROTECTION.search(name) is None
    if name == "shell":
        return isinstance(value, str) and _USUAL_SHELL.fullmatch(value) is not None
    if name in _IDS:
        return isinstance(value, str | int) and not isinstance(value, bool) and _ID.fullmatch(str(value)) is not None
    if name in _SETTINGS:
        given = value if isinstance(value, list) else [value]
        return all(isinstance(one, str) and one.lower() in _SETTINGS[name] for one in given)
    if name in _SWITCHES:
        return value is True or value in ("true", "false")
    if _RISKY.search(name) or not _LIMIT.search(name):
        return False
    return isinstance(value, int | float) or (isinstance(value, str) and _AMOUNT.fullmatch(value) is not None)


def find_texts(raw: object) -> Iterator[tuple[str, str, int]]:
    """Every text of an input that is not a description, with the name of its member and its depth.

    JSON in a text is searched as well, unless the text goes to a running program as it is.
    """
    stack: list[tuple[str, object, int]] = [("", raw, 0)] if isinstance(raw, Mapping) else []
    while stack:
        name, value, depth = stack.pop()
        parsed = parse_json_input(value) if simplify_key(name) not in _PROGRAM_INPUT else None
        value = value if parsed is None else parsed
        if isinstance(value, Mapping):
            members = [(key if isinstance(key, str) else "", item, depth + 1) for key, item in value.items()]
            stack += reversed(members)
        elif isinstance(value, list):
            stack += reversed([(name, item, depth + 1) for item in value])
        elif isinstance(value, str) and value.strip() and simplify_key(name) not in _REMARKS:
            yield name, value, depth
        elif value is True and _RISKY.search(simplify_key(name)):
            yield name, "true", depth


def is_remark(key: object) -> bool:
    """Whether a member only describes the call."""
    return simplify_key(key) in _REMARKS


def is_act_member(key: object) -> bool:
    """Whether a member is compared as part of an act, or is a remark."""
    name = simplify_key(key)
    known = _ONE | _SEVERAL | _PROGRAM | _ARGUMENTS | DIRECTORY_MEMBERS | VARIABLE_MEMBERS | _REMARKS
    return name in known or is_file_member(key)


def is_significant_value(key: object, value: object) -> bool:
    """Whether a number or a switch may change what a call does; a limit of time or size does not."""
    if not isinstance(value, int | float) or value is False:
        return False
    return not is_file_member(key) and _LIMIT.search(simplify_key(key)) is None


def is_significant_member(key: object, value: object) -> bool:
    """Whether a member of an input may change what a call does: not a remark, a limit or nothing at all."""
    if value in (None, "", False, [], {}) or _is_remark_text(key, value):
        return False
    return not isinstance(value, int | float) or is_significant_value(key, value)


def list_other_members(raw: object) -> dict[str, Any]:
    """The members of an input that are neither its act nor a remark, a limit or an inert setting."""
    if not isinstance(raw, Mapping):
        return {}
    return {str(key): value for key, value in raw.items() if _is_other_member(key, value)}


def _is_other_member(key: object, value: object) -> bool:
    if is_empty(value) or _is_remark_text(key, value):
        return False
    name = simplify_key(key)
    if name in _REMARKS:
        return True
    if isinstance(value, Mapping) and name not in VARIABLE_MEMBERS and not find_commands({key: value}):
        return True  # whatever its name is, no command shows it
    return not is_act_member(key) and not _is_inert(name, value)


def _is_remark_text(key: object, value: object) -> bool:
    """Whether a member is a text that only describes the call."""
    return is_remark(key) and isinstance(value, str) and parse_json_input(value) is None


def is_program_input(key: object) -> bool:
    """Whether a member of an input is sent to the running program."""
    return simplify_key(key) in _PROGRAM_INPUT


def is_file_member(key: object) -> bool:
    """Whether a member of an input says how a file is changed, or is a remark."""
    name = simplify_key(key)
    is_text = name in _TEXTS or name in _REMARKS or name in ("edits", "changes", "replaceall", "instruction")
    return is_text or name.endswith(("path", "paths", "file", "files", "filename"))


def is_nested_command(raw: object) -> bool:
    """Whether a command may be anywhere but in a member of the input itself, which is where rules can check it."""
    if not isinstance(raw, Mapping):
        return isinstance(raw, list) or parse_json_input(raw) is not None
    return any(True for _ in _nested_commands(raw, _DEPTH)) or any(simplify_key(key) in _SEVERAL for key in raw)


def parse_json_input(value: object) -> Any:
    """The object or list that a string holds as JSON; None if it holds none."""
    if not isinstance(value, str) or len(value) > _JSON_LIMIT or not value.lstrip().startswith(("{", "[")):
        return None
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _commands(raw: object, depth: int) -> Iterator[ShownCommand]:
    if isinstance(raw, str):
        parsed = parse_json_input(raw)
        if parsed is not None:
            yield from _commands(parsed, depth - 1)
        elif raw.strip():
            yield ShownCommand(raw)
    elif isinstance(raw, list):
        words = _words(raw)
        if words is not None:
            yield ShownCommand(join_words(words), words)
        else:
            yield from _search(raw, depth - 1)
    else:
        yield from _search(raw, depth)


def _search(value: object, depth: int) -> Iterator[ShownCommand]:
    """The commands in an object, or in the objects of a list."""
    if depth <= 0:
        return
    if isinstance(value, Mapping):
        yield from _direct_commands(value)
        yield from _nested_commands(value, depth)
    elif isinstance(value, list):
        for item in value:
            yield from _search(parse_json_input(item) if isinstance(item, str) else item, depth - 1)


def _direct_commands(raw: Mapping[Any, Any]) -> Iterator[ShownCommand]:
    """The commands that an object has as its own members."""
    members = [(simplify_key(key), value) for key, value in raw.items()]
    cwd = next((value for key, value in members if key in DIRECTORY_MEMBERS and isinstance(value, str) and value), None)
    env = next((pairs for key, value in members if key in VARIABLE_MEMBERS and (pairs := _variables(value))), ())
    arguments = next((words for key, value in members if key in _ARGUMENTS and (words := _arguments(value))), None)
    for key, value in members:
        found = _read_command(value) if key in _ONE or (key in _PROGRAM and arguments is not None) else None
        if found is None:
            continue
        if arguments is not None:
            words = (*(found.words or (found.text,)), *arguments)
            found, arguments = ShownCommand(join_words(words), words), None
        yield found._replace(cwd=cwd, env=env)
    for key, value in members:
        if key not in _SEVERAL:
            continue
        for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]:
            found = _read_command(item)
            if found is not None:
                yield found._replace(cwd=cwd, env=env)


def _nested_commands(raw: Mapping[Any, Any], depth: int) -> Iterator[ShownCommand]:
    """The commands inside of an object's members: other objects, lists of objects, and JSON in strings."""
    for key, value in raw.items():
        name = simplify_key(key)
        if name in VARIABLE_MEMBERS or (name in _TEXTS and isinstance(value, str)):
            continue
        yield from _search(parse_json_input(value) if isinstance(value, str) else value, depth - 1)


def simplify_key(key: object) -> str:
    """The name of a member without case and separators."""
    return re.sub(r"[\W_]+", "", key).lower() if isinstance(key, str) else ""


def _read_command(value: object) -> ShownCommand | None:
    """A command as a string or an argument list; None for anything else."""
    if isinstance(value, str):
        return ShownCommand(value) if value.strip() else None
    words = _words(value)
    return None if words is None else ShownCommand(join_words(words), words)


def _words(value: object) -> tuple[str, ...] | None:
    """An argument list; None for anything that cannot be one."""
    if not isinstance(value, list) or not value or any(isinstance(word, Mapping | list) for word in value):
        return None
    return tuple(word if isinstance(word, str) else str(word) for word in value)


def _arguments(value: object) -> tuple[str, ...] | None:
    """The arguments of a program, as a list or as one text."""
    if not isinstance(value, str):
        return _words(value)
    if not value.strip() or parse_json_input(value) is not None:
        return None
    try:
        return tuple(shlex.split(value))
    except ValueError:  # quotes that are not closed
        return (value,)


def _variables(value: object) -> tuple[tuple[str, str], ...]:
    """Environment variables: an object, a list of `name` and `value`, of pairs or of `NAME=value`, or such a text."""
    pairs: list[tuple[str, str]] = []
    if isinstance(value, Mapping):
        pairs = [(str(name), item if isinstance(item, str) else str(item)) for name, item in value.items()]
    items: Any = _arguments(value) or () if isinstance(value, str) else value
    for item in items if isinstance(items, list | tuple) else ():
        if isinstance(item, Mapping) and isinstance(name := item.get("name", item.get("key")), str):
            pairs.append((name, str(item.get("value", ""))))
        elif isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
            pairs.append((item[0], str(item[1])))
        elif isinstance(item, str) and "=" in item:
            name, _, text = item.partition("=")
            pairs.append((name, text))
    return tuple(pairs)
