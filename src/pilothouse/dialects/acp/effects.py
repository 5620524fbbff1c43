"""The effects of a tool call, as far as its agent shows them: the commands it runs and the files it changes.

An approval covers these effects (see `model.acts`), so they must be exactly those that the preview shows. Commands are
searched in the input first, then in the text that the call shows, then in its title: agents use all three.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

import msgspec

from ...acp.model import to_wire
from ...model import patches
from ...model.acts import (
    SHELLS,
    CommandAct,
    Effects,
    FileEdit,
    core_of_edit,
    normalize_text,
)
from ...model.changes import Replacement, content_of, find_replacements
from ...model.risk import Level, Reason, Risk, assess_command, assess_risk, worst
from ...model.tools import canonical_name, file_paths, patch_text
from ...model.tools.commands import (
    ShownCommand,
    find_commands,
    find_other_texts,
    find_settings,
    find_texts,
    is_file_member,
    is_remark,
    is_significant_value,
    parse_json_input,
    simplify_key,
)
from ...model.tools.names import known
from ..texts import shorten_middle
from .call import Call, diffs_in, known_input
from .content import block_text

NOT_SHOWN = "The agent did not show its command."
_EDITOR_VERBS = frozenset({"view", "create", "str_replace", "insert", "undo_edit", "write"})
_FENCE_START = re.compile(r"[ \t]*(`{3,}|~{3,})")
_STOPPERS = frozenset({"KillShell", "BashOutput"})  # tools for a shell that runs already
_PROMPT_LINE = re.compile(r"^[ \t]*\$[ \t]+(\S.*)$", re.MULTILINE)
_PROMPT = re.compile(r"^[ \t]*\$[ \t]+", re.MULTILINE)
_NAMED_LINE = re.compile(r"^[ \t]*(?:command|cmd)[ \t]*:[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)
# how Gemini CLI and Qwen Code describe a command next to its title: the directory, a remark, where it runs
_DESCRIBED = re.compile(
    r"^\[(?:current working directory|in) (?P<directory>[^\n]{1,1024}?)\]"
    r"(?: \((?P<remark>[^\n]{0,1024})\))?(?: \[background\])?$"
    r"|^\(background\)$",
    re.MULTILINE,
)
# titles under which agents run any command
_BARE_TITLES = re.compile(
    r"(?:run(?:ning)?|execut(?:e|ing))?(?: ?(?:a|the|shell|terminal|bash))* ?commands?", re.IGNORECASE
)
_PARTIAL = re.compile(r'"(?:command|cmd|script|commandLine|command_line)"\s*:\s*"((?:[^"\\]|\\.)*)')

_PATH_MEMBER = re.compile(r"(?:paths?|files?|filename|uri|source|src|destination|dest|from|to|target|notebook)$")
# members that hold a patch; `value` is an input that is only a text
_PATCHES = frozenset({"diff", "patch", "patchtext", "unifieddiff", "input", "value"})
_READING = frozenset({"read", "search", "fetch", "think"})
_LONGEST_PATH = 4096
_MAX_NAMED = 1000
_MAX_SHOWN = 100_000  # characters of a request that are kept to find the files that it names
_MAX_NESTING = 3
_MAX_COMPARED = 500  # edits of an input that are compared with the diffs
_MAX_SEARCHED = 100_000_000  # characters that are searched for the texts of an input

_encode = msgspec.json.Encoder(order="sorted").encode


class FoundCommands(NamedTuple):
    """The commands of a call, and where they were found. A rule can allow only those of the `input`.

    `prose` is the other text that the call shows. `texts` are other members of the input that may run, be read by the
    program or change how a command runs, as (name, text). They are shown and judged, but no approval covers them.
    """

    commands: list[ShownCommand]
    source: Literal["input", "content", "title", "none"]
    prose: str = ""
    texts: tuple[tuple[str, str], ...] = ()

    @property
    def lines(self) -> list[str]:
        """All that may run, for risk and rules."""
        texts = [text for _, text in self.texts]
        joined = [" ".join(texts)] if len(texts) > 1 else []  # a command may be cut into pieces
        return [*(format_command(command) for command in self.commands), *texts, *joined]


def format_command(command: ShownCommand) -> str:
    """A command with its environment variables, as shell text."""
    return " ".join([*(f"{shlex.quote(name)}={shlex.quote(value)}" for name, value in command.env), command.text])


def is_editor_verb(raw: object) -> bool:
    """Whether the `command` of an input is a verb of the text editor tool, not a command."""
    verb = raw.get("command") if isinstance(raw, dict) else None
    return isinstance(verb, str) and verb in _EDITOR_VERBS and bool(file_paths(raw))


def commands_of(call: Call) -> FoundCommands | None:
    """The commands of a call that runs some; None for any other call."""
    runs = (call.category == "terminal" or call.kind == "execute") and not _only_stops(call)
    given = [] if is_editor_verb(call.input) and not runs else find_commands(call.input)
    if not given and not runs:
        return None
    others = find_other_texts(call.input, given)
    is_edit = not runs and bool(edits_of(call))
    texts = tuple((name, text) for name, text in others if not (is_edit and is_file_member(name)))
    return _locate_commands(call, given, [text for _, text in texts])._replace(texts=texts)


def _only_stops(call: Call) -> bool:
    """Whether a call is of a tool for a shell that runs already, and shows nothing else that may run."""
    if canonical_name(call.name) not in _STOPPERS or find_other_texts(call.input, []):
        return False
    # after the request its content is output
    texts = [_read_description(block_text([item])).rest for item in call.content if call.status == "pending"]
    if any(True for _ in _commands_in_texts(texts)):
        return False
    title = call.title.strip()
    return title in ("", call.name) or known(title) is not None or _is_plain_prose(title)


def _locate_commands(call: Call, given: list[ShownCommand], others: list[str]) -> FoundCommands:
    """The commands of the input (`given`) and the content; else those of partial arguments, the title or the prose."""
    described = [_read_description(block_text([item])) for item in call.content]
    texts = [one.rest for one in described]
    directory = next((one.directory for one in described if one.directory), None)
    shown = list(dict.fromkeys(_commands_in_texts(texts)))
    lines = {command.line() for command in given}
    # arguments that were streamed as text may still be shown up to an earlier point
    streamed = {
        ShownCommand(_partial_command(text.strip())) for text in texts if parse_json_input(text.strip()) is None
    }
    old = {one for one in streamed if any(command.text.startswith(one.text) for command in given)}
    more = [command for command in shown if command.line() not in lines and command not in old]
    if given or more:
        commands = [*given, *more]
        prose = _new_prose(call, texts, commands, others)
        return FoundCommands(_place(commands, directory), "content" if more else "input", prose)
    prose = _join_prose([text.strip() for text in texts if text.strip()], texts)
    unread = _partial_command(call.raw_input)
    if unread:
        return FoundCommands(_place([ShownCommand(unread)], directory), "content", prose)
    title = call.title.strip().strip("`")
    tool = known(title)
    is_tool = (tool is not None and tool.category == "terminal") or title == call.name
    if title and not is_tool and not _BARE_TITLES.fullmatch(title):
        return FoundCommands(_place([ShownCommand(title)], directory), "title", prose)
    if prose:
        whole = "".join(texts).strip()
        pieces = [text.strip() for text in texts if text.strip()]
        found = dict.fromkeys(("\n".join(pieces), whole) if len(pieces) > 1 else pieces)
        return FoundCommands(_place(list(map(ShownCommand, found)), directory), "content")
    return FoundCommands([], "none")


class _Description(NamedTuple):
    """A text without the directory that Gemini CLI and Qwen Code put in front of it, and that directory."""

    directory: str | None
    rest: str


def _read_description(text: str) -> _Description:
    """Separate the directory, as Gemini CLI shows it, from a text. A remark next to it stays unless it is prose."""
    directory: str | None = None

    def take(found: re.Match[str]) -> str:
        nonlocal directory
        where, remark = found["directory"], found["remark"]
        if where and directory not in (None, where):
            return found[0]  # only one can be the command's
        directory = where or directory
        return "" if not remark or _is_plain_prose(remark) else remark

    rest = _DESCRIBED.sub(take, text)
    return _Description(directory, rest)


def _place(commands: list[ShownCommand], directory: str | None) -> list[ShownCommand]:
    """The commands, in a directory that only the content shows."""
    return [one if one.cwd or not directory else one._replace(cwd=directory) for one in commands]


def _is_plain_prose(text: str) -> bool:
    """Whether a text is sentences that no shell would run as something else than an unknown program."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return bool(lines) and all(_is_sentence(line) for line in lines)


def _is_sentence(line: str) -> bool:
    first = line.split(None, 1)[0]
    if not (line[0].isupper() or not line[0].isascii()) or first.lower() in _RUN_ANYWHERE:
        return False
    return _SHELL_SIGN.search(line) is None


# options, operators, substitutions and assignments
_SHELL_SIGN = re.compile(r"[|;<>`$\\{}]|&&|(?:^|\s)(?:--?\w|/\w|~/|\w+=)|&\s*$")
# some file systems ignore case
_RUN_ANYWHERE = frozenset({"rm", "dd", "reboot", "shutdown", "halt", "poweroff", "sudo", "mkfs", "bash", "sh", "eval"})


def _new_prose(call: Call, texts: list[str], commands: list[ShownCommand], others: list[str]) -> str:
    """The texts of a call that are not shown elsewhere: as a command, the title, a member, or a remark in plain prose.

    Only a whole text is a repetition, never a part of one.
    """
    known_texts = {call.title.strip(), *(text.strip() for text in others)}
    known_texts |= {text.strip() for one in commands for text in (one.text, one.cwd or "")}
    known_texts |= {
        value.strip()
        for key, value in call.input.items()
        if isinstance(value, str) and (_is_plain_prose(value) if commands else is_file_member(key))
        if commands or not is_remark(key) or _is_plain_prose(value)
    }
    known_texts |= {text.strip("`$ ") for text in known_texts}
    kept = []
    for text in texts:
        bare = "\n".join(line for line in text.split("\n") if not _FENCE_START.match(line)).strip()
        if bare and bare not in known_texts and bare.strip("`$ ") not in known_texts:
            kept.append(text.strip())
    # a command cannot go on after the end of a block
    return _join_prose(kept, [text for text in texts if kept and "\n```" not in text and text.strip() not in others])


def _join_prose(kept: list[str], raw: list[str]) -> str:
    """The texts that are left, then `raw` in one piece if that may be a command: several items may be parts of one."""
    whole = "".join(raw).strip()
    if kept and whole and whole not in kept and not _is_plain_prose(whole):
        kept = [*kept, _PROMPT.sub("", whole)]
    return "\n".join(kept)


def prose_of(call: Call) -> str:
    """The text that a call shows next to its diffs; empty without a diff, where the preview has the text."""
    if not edits_of(call) or commands_of(call) is not None:
        return ""
    return _new_prose(call, [_read_description(block_text([item])).rest for item in call.content], [], [])


def _commands_in_texts(texts: list[str]) -> Iterator[ShownCommand]:
    """The commands that are marked in the items of a call's content, or in several items together."""
    separate = [command for text in texts for command in _commands_in_text(text.strip())]
    joined: list[ShownCommand] = []
    if len(texts) > 1:
        joined += _commands_in_json("".join(texts).strip())
        joined += _commands_in_blocks("\n".join(texts))
    longer = sorted({one.text for one in joined})
    for one in separate:
        # a text is left out if it is only the beginning of a command that continues in the next item
        after = bisect_right(longer, one.text)
        if after == len(longer) or not longer[after].startswith(one.text):
            yield one
    yield from joined


def _commands_in_text(text: str) -> Iterator[ShownCommand]:
    """Commands that are marked in a text: JSON, a fenced block, a line after a prompt sign or a label."""
    found = list(_commands_in_json(text))
    return iter(found) if found else _commands_in_blocks(text)


def _commands_in_blocks(text: str) -> Iterator[ShownCommand]:
    """The commands of a text's fenced blocks, then those of prompt lines and labels outside of the blocks."""
    fenced, rest = _split_fences(text)
    for part in fenced:
        found = list(_commands_in_json(part))
        yield from found
        if not found and part.strip():
            yield ShownCommand(_PROMPT.sub("", part))
    for pattern in (_PROMPT_LINE, _NAMED_LINE):
        yield from (ShownCommand(line.strip().strip("`")) for line in pattern.findall(rest))


def _commands_in_json(text: str) -> Iterator[ShownCommand]:
    """The commands of JSON, which may be incomplete."""
    parsed = parse_json_input(text)
    if parsed is not None:
        yield from find_commands(parsed)
    elif partial := _partial_command(text):
        yield ShownCommand(partial)


def _split_fences(text: str) -> tuple[list[str], str]:
    """The bodies of the fenced blocks in a text, and the text outside of them."""
    bodies: list[str] = []
    rest: list[str] = []
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE_START.match(line)
        if fence and mark and line.strip() == fence:
            bodies.append("\n".join(block))
            fence, block = "", []
        elif fence:
            block.append(line)
        elif mark and "`" not in line[mark.end() :]:
            fence = mark[1]
        else:
            rest.append(line)
    if fence:  # not closed: not a block
        rest += block
    return bodies, "\n".join(rest)


def judged_input(call: Call) -> dict[str, Any]:
    """The input for the risk assessment, with every command, variable and other text that the call shows.

    Rules are matched with the input as it came: a title may be shortened or reworded.
    """
    known_fields = known_input(call)
    found = commands_of(call)
    if found is None:
        return known_fields
    has_variables = any(command.env for command in found.commands)
    if found.source in ("input", "none") and not found.texts and not has_variables:
        return known_fields
    shown = {"command": "\n".join(found.lines)}
    places = {command.cwd for command in found.commands if command.cwd}
    return {**known_fields, **({"cwd": places.pop()} if len(places) == 1 else {}), **shown}


_ONLY_TITLE = Reason("runs-program", "Only the title of the command is known, not the command.")


def risk_of(call: Call, workspace: str | None) -> Risk:
    """The risk of a call as far as it is known.

    A command known only by a title is never rated as harmless, and a title that is a sentence is no command.
    """
    risk = assess_risk(call.name, judged_input(call), workspace)
    reasons = [*risk.reasons, *_judge_acts(call, workspace)]
    if not has_only_title(call):
        return Risk(reasons)
    if _is_plain_prose(call.title.strip().strip("`")):
        return Risk([*reasons, Reason("hidden-command", NOT_SHOWN, "high")])
    return Risk([*reasons, _ONLY_TITLE])


def level_by_title(risk: Risk) -> Level:
    """The level of a risk if titles show the commands that run."""
    return worst(reason.level for reason in risk.reasons if reason is not _ONLY_TITLE)


def _judge_acts(call: Call, workspace: str | None) -> Iterator[Reason]:
    """Reasons from the commands, texts and edits of a call, whatever its tool is called: names are the agent's."""
    found = commands_of(call)
    if found is not None and not is_editor_verb(call.input):
        yield from assess_command("\n".join(found.lines), workspace).reasons
        if found.texts:
            names = ", ".join(dict.fromkeys(f"`{name}`" for name, _ in found.texts))
            yield Reason("unknown-tool", f"It is not known how the command uses {shorten_middle(names, 200)}.")
        yield from _judge_prose(found, workspace)
    root = workspace or ""
    paths = dict.fromkeys(absolute_path(edit.path, root) for edit in [*edits_of(call), *list_patched(call)])
    # those in the input of a file tool are assessed with it
    given = file_paths(known_input(call)) if call.category in ("file_write", "file_edit") else []
    known_paths = {absolute_path(path, root) for path in given}
    for path in paths:
        if path not in known_paths:
            yield from assess_risk("Edit", {"file_path": path}, workspace).reasons


def _judge_prose(found: FoundCommands, workspace: str | None) -> Iterator[Reason]:
    """Reasons from the text next to a command. A line that may be a command itself is judged as one."""
    prose = Risk() if found.source == "title" else assess_command(found.prose, workspace)
    yield from (one for one in prose.reasons if one.level == "critical" or one.code == "destroys")
    for line in found.prose.split("\n"):
        if line.strip() and not _is_plain_prose(line) and _FENCE_START.match(line) is None:
            judged = assess_command(line.strip().removeprefix("$ "), workspace)
            yield from (one for one in judged.reasons if one.level in ("high", "critical") and one.code not in _UNSURE)


# what most prose is, read as a command
_UNSURE = frozenset({"unreadable-shell", "lookalike", "dynamic-shell"})


def has_only_title(call: Call) -> bool:
    """Whether the command of a call is known by its title alone, which agents change at will."""
    found = commands_of(call)
    return found is not None and found.source == "title"


def _partial_command(raw: object) -> str:
    """The beginning of a command in arguments that are still being streamed as JSON."""
    if not isinstance(raw, str) or not raw.lstrip().startswith("{"):
        return ""
    found = _PARTIAL.search(raw)
    if found is None:
        return ""
    try:
        return str(msgspec.json.decode(f'"{found[1]}"'))
    except msgspec.DecodeError:
        return found[1]


# -- files --------------------------------------------------------------------------------------------------------


def edits_of(call: Call) -> list[FileEdit]:
    """The file changes that a call shows: by its diffs, else its patch, else its input, like the preview."""
    diffs = diffs_in(call.content)
    if diffs:
        gone = call.kind == "delete"
        keys = ("replace_all", "replaceAll")
        everywhere = isinstance(call.raw_input, dict) and any(call.raw_input.get(key) is True for key in keys)
        return [FileEdit(item.path, item.old_text, None if gone else item.new_text, everywhere) for item in diffs]
    if call.kind not in ("edit", "delete", "move") and call.category not in ("file_write", "file_edit"):
        return []
    return _input_edits(call)


def _input_edits(call: Call) -> list[FileEdit]:
    """The file changes that the input of a call shows."""
    raw = _file_input(call.raw_input)
    if is_editor_verb(raw) and raw["command"] == "view":
        return []
    given = raw.get("diff") if isinstance(raw, dict) else None
    patch = patch_text(raw) or (given if isinstance(given, str) else None)
    if patch is not None:
        return list(_patch_edits(patch))
    paths = file_paths(raw)
    if paths and isinstance(raw, dict) and call.kind != "delete":
        replacements, whole = find_replacements(raw), content_of(raw)
        if replacements:
            edits = [_replacing(one, paths[0]) for one in replacements]
            named = {edit.path for edit in edits}
            return [*edits, *(FileEdit(path, None, None) for path in paths if path not in named)]
        if whole is not None:
            return [FileEdit(paths[0], None, whole), *(FileEdit(path, None, None) for path in paths[1:])]
    # the files are known but not their new text: such an edit covers no write, but it can be denied
    paths = paths or [item.path for item in call.locations or []]
    return [FileEdit(path, None, None) for path in dict.fromkeys(paths)]


def _replacing(one: Replacement, path: str) -> FileEdit:
    if one.old is None:  # inserted at a place that is not known here
        return FileEdit(one.path or path, None, None)
    return FileEdit(one.path or path, one.old, one.new, one.replace_all)


def list_other_edits(call: Call) -> Iterator[FileEdit]:
    """The changes of the same files that a call's input describes in other ways than `edits_of` reads it.

    Each stands for itself. Real agents show one change in several ways; they should have one result.
    """
    if is_editor_verb(call.input) or "<<<<<<< SEARCH" in str(content_of(call.input)):
        return  # `content` holds search and replace blocks
    if call.kind == "delete" or not edits_of(call):
        return
    for edit in list_patched(call):
        if edit.new is not None:  # its context and its last line end may differ from those of the file
            core = core_of_edit(edit)
            yield core._replace(old=core.old or "", new=(core.new or "").rstrip("\n"))
    found = _file_input(call.raw_input)
    raw = found if isinstance(found, dict) else call.input
    paths = file_paths(raw) or list(dict.fromkeys(edit.path for edit in edits_of(call)))
    if (whole := content_of(raw)) is not None:
        yield FileEdit(paths[0], None, whole)
    yield from (_replacing(one, paths[0]) for one in find_replacements(raw) if one.old)


def list_patched(call: Call) -> list[FileEdit]:
    """The changes of patches in the input of a call that shows other diffs: those are what the user sees."""
    if not diffs_in(call.content):
        return []
    texts = [text for name, text, _ in find_texts(call.input) if simplify_key(name) in _PATCHES]
    return [edit for text in texts for edit in _patch_edits(text)]


def _file_input(raw: Any) -> Any:
    """The part of an input that names a file: the input itself, or an object in it, even as JSON in a string."""
    raw = raw if (parsed := parse_json_input(raw)) is None else parsed
    for _ in range(_MAX_NESTING):
        if not isinstance(raw, dict) or file_paths(raw) or patch_text(raw):
            break
        inner = (raw.get(key) for key in ("input", "arguments", "args", "params", "parameters"))
        parts = [part if isinstance(part, dict) else parse_json_input(part) for part in inner]
        raw = next((part for part in parts if isinstance(part, dict)), None)
    return raw


@lru_cache(maxsize=8)  # one request is read many times
def _patch_edits(text: str) -> tuple[FileEdit, ...]:
    return tuple(_read_patch(text))


def _read_patch(text: str) -> Iterator[FileEdit]:
    for file in patches.parse_patch(text).files:
        if file.kind == "delete" or file.move_to:
            yield FileEdit(file.path, None, None)
            if file.move_to:
                yield FileEdit(file.move_to, None, None)
        elif file.kind == "add":
            added = [line for hunk in file.hunks for mark, line in hunk.lines if mark == "+"]
            yield FileEdit(file.path, None, "".join(line + "\n" for line in added))
        else:
            for hunk in file.hunks:
                old, new = ("\n".join(line for mark, line in hunk.lines if mark in marks) for marks in (" -", " +"))
                # without an old line only the place of the hunk says where its lines go
                yield FileEdit(file.path, old, new) if old else FileEdit(file.path, None, None)


# -- effects ------------------------------------------------------------------------------------------------------


def effects_of(call: Call, workspace: str | None, shells: tuple[str, ...] = SHELLS) -> Effects:
    """All effects that a call shows. Paths are absolute; links are not resolved here."""
    root = workspace or ""
    found = commands_of(call)
    # what is shown once is allowed once, even if the input says it in two ways
    lines = {format_line(one, root): one for one in reversed(found.commands)} if found is not None else {}
    commands = tuple(dict.fromkeys(_act(one, root, shells) for one in reversed(lines.values())))
    edits = tuple(edit._replace(path=absolute_path(edit.path, root)) for edit in edits_of(call))
    if not commands and not edits:
        return Effects(other=f"{canonical_name(call.name)} {_to_text(call.input)}")
    return Effects(commands, edits, "\n".join(_other_input(call, found, edits, root)))


def _other_input(call: Call, found: FoundCommands | None, edits: tuple[FileEdit, ...], root: str) -> Iterator[str]:
    """The parts of an input that its acts do not show, without numbers and descriptions."""
    if found is not None:
        yield from (f"{name}: {text}" for name, text in find_settings(call.input, found.commands))
    yield from sorted(f"{name}: {value}" for name, value in call.input.items() if is_significant_value(name, value))
    if any(edit.new is None for edit in edits):
        yield _to_text(call.input)
    elif edits:
        shown = _ShownTexts(text for edit in edits for text in (edit.old or "", edit.new or ""))
        paths = {edit.path for edit in edits}
        for name, text, depth in find_texts(call.input):
            is_shown = absolute_path(text, root) in paths or shown.contain(text)
            if not (is_file_member(name) and (is_shown or depth == 1)):
                yield f"{name}: {text}"
        yield from _list_hidden_edits(call, edits, root)


def _list_hidden_edits(call: Call, edits: tuple[FileEdit, ...], root: str) -> Iterator[str]:
    """The edits of an input that its diffs do not show."""
    given = _input_edits(call)
    if len(given) > _MAX_COMPARED:
        if set(_input_edits_at(given, root)) != set(edits):
            yield _to_text(call.input)
        return
    texts: dict[str, list[str]] = {}
    for one in edits:
        texts.setdefault(one.path, []).append(one.new or "")
    shown = {path: _ShownTexts(several) for path, several in texts.items()}
    for edit in given:
        path, core = absolute_path(edit.path, root), core_of_edit(edit)
        if core.new is not None and not (path in shown and shown[path].contain(core.new)):
            yield repr(core._replace(path=path))


def _input_edits_at(edits: list[FileEdit], root: str) -> Iterator[FileEdit]:
    return (edit._replace(path=absolute_path(edit.path, root)) for edit in edits)


class _ShownTexts:
    """Texts in which others are searched. After a bounded amount of work, parts of a text are not found any more."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = dict.fromkeys(map(normalize_text, texts))
        self._size = sum(map(len, self._texts))
        self._work = _MAX_SEARCHED

    def contain(self, text: str) -> bool:
        """Whether a text is one of these or a part of one."""
        text = normalize_text(text)
        if text in self._texts:
            return True
        self._work -= self._size
        return self._work >= 0 and any(text in one for one in self._texts)


def format_line(command: ShownCommand, where: str | None) -> str:
    """A command with its variables, and with its directory if that is not `where`."""
    moved = f"cd {shlex.quote(command.cwd)} && " if command.cwd and command.cwd != where else ""
    return moved + format_command(command)


class NamedFiles(NamedTuple):
    """The files that a request names. `paths` are absolute; `text` is all that it shows, `title` its first line.

    `is_cut`: it names more files than `paths` has.
    """

    paths: tuple[str, ...] = ()
    text: str = ""
    title: str = ""
    is_cut: bool = False


def find_named_files(call: Call, workspace: str | None) -> NamedFiles:
    """Every file that a call names, in its diffs, its input or its locations, even if it shows no change of it.

    A call that only reads names none in `paths`.
    """
    paths = list_named_paths(call, workspace)
    shown = [call.title, *(block_text([item]) for item in call.content), _to_text(_own_input(call)), *paths]
    is_cut = len(paths) > _MAX_NAMED
    return NamedFiles(paths, "\n".join(shown)[:_MAX_SHOWN], call.title or call.name, is_cut)


def list_named_paths(call: Call, workspace: str | None) -> tuple[str, ...]:
    """The absolute paths of the files that a call names, one more than counts; none for a call that only reads."""
    if call.kind in _READING and not edits_of(call):
        return ()
    named = [edit.path for edit in edits_of(call)] + file_paths(_own_input(call))
    named += [item.path for item in call.locations or []]
    texts = [(name, text) for name, text, _ in find_texts(call.input)]
    named += [text for name, text in texts if _PATH_MEMBER.search(simplify_key(name))]
    root = workspace or ""
    paths = (absolute_path(_decode_uri(path), root) for path in named if 0 < len(path) < _LONGEST_PATH)
    return tuple(dict.fromkeys(paths))[: _MAX_NAMED + 1]


def _own_input(call: Call) -> Any:
    return call.raw_input if (parsed := parse_json_input(call.raw_input)) is None else parsed


def _decode_uri(path: str) -> str:
    if not path.startswith("file:"):
        return path
    return unquote(re.sub(r"^file:(?://(?:localhost)?(?=/))?", "", path))


def _to_text(value: Any) -> str:
    try:
        return _encode(to_wire(value)).decode()
    except (TypeError, ValueError, RecursionError):
        return f"not comparable {id(value)}"


def _act(command: ShownCommand, root: str, shells: tuple[str, ...]) -> CommandAct:
    env = tuple(sorted(dict(command.env).items()))
    return CommandAct(command.line(shells), absolute_path(command.cwd or ".", root), env)


def absolute_path(path: str, root: str) -> str:
    """A path from `root`; `..` stays, because the part in front of it may be a link."""
    path = posixpath.join(root, path.removeprefix("file://"))
    return path if ".." in path.split("/") else posixpath.normpath(path)
