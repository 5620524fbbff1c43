"""How risky a tool call is, with reasons a person can read.

`assess_risk` takes any tool name in any agent's spelling and any input. Shell text is parsed, never searched: what
counts is a program in command position, behind whatever wrapper, not letters somewhere in a line. `levels` documents
what each level means and holds the registry of reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..shell import Script, parse
from ..tools import canonical_name, categorize_tool, command_text, file_paths
from .judge import Judge, candidates
from .levels import LEVELS, REASONS, Level, Reason, Risk, worst
from .programs import locate
from .rules import RULES, Rules

__all__ = ["LEVELS", "REASONS", "Level", "Reason", "Risk", "assess_command", "assess_risk", "worst"]

_RULES = Rules(RULES)
_SHELL_CATEGORIES = frozenset({"terminal", "git", "mcp", "other", "search"})
_HARMLESS = frozenset(
    {"TodoWrite", "TodoRead", "AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "SwitchMode", "Think", "BashOutput"}
)
_READS = re.compile(
    r"(?:get|list|read|search|find|fetch|query|describe|show|view|lookup|look_up|count|check|inspect|browse|explain|status"
    r"|retrieve|resolve|ls|head|stat|preview|think|help|ping|whoami|history|diff|log|summary|summarize)s?(?![a-z])"
)
_WRITES = re.compile(
    r"(?:write|create|update|delete|remove|set|put|post|send|push|add|edit|insert|execute|exec|run|eval|upload|deploy|merge"
    r"|close|drop|kill|install|publish|move|rename|copy|patch|apply|commit|clear|reset|start|stop|click|type|fill|submit|pay"
    r"|grant|revoke|share|invite|import|export|save|store|modify|change|replace|append|sql|shell|command|navigate)(?![a-z])"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_INTERNAL = re.compile(
    r"https?://(?:169\.254\.169\.254|metadata\.google\.internal|100\.100\.100\.200|\[fd00:ec2::254\])", re.IGNORECASE
)


def assess_risk(name: object, input: object = None, workspace: object = None) -> Risk:  # noqa: A002
    """The risk of a tool call; never raises, whatever the input holds."""
    root = _root(workspace)
    category = categorize_tool(name)
    tool = canonical_name(name)
    if tool in _HARMLESS:
        return Risk()
    command = command_text(input) if category in _SHELL_CATEGORIES else None
    if command is not None and not (category == "search" and tool == "Search"):
        return Risk(_command_reasons(command, root, tool, category, input))
    return Risk(_tool_reasons(tool, category, input, root))


def assess_command(text: str, workspace: str | None = None) -> Risk:
    """The risk of shell text."""
    return Risk(Judge(parse(text), _root(workspace), _RULES).run())


def _root(workspace: object) -> str | None:
    """The workspace as text; the root of a disk is no workspace, else nothing would ever be outside."""
    text = workspace if isinstance(workspace, str) else str(workspace) if workspace is not None else ""
    return text if text.strip("/\\. ") and not re.fullmatch(r"[A-Za-z]:[\\/]*", text) else None


def _command_reasons(command: str, root: str | None, tool: str, category: str, raw: object) -> Iterator[Reason]:
    yield from Judge(parse(command), root, _RULES).run()
    if category == "mcp" or (category == "other" and tool):
        yield Reason("unknown-tool", f"{_short(tool)} runs the command in a way that is not known")
    # a working directory given beside the command counts like a `cd`
    if isinstance(raw, Mapping):
        for key in ("cwd", "workdir", "working_directory", "workingDirectory", "dir", "directory"):
            place = raw.get(key)
            if isinstance(place, str) and place and not locate(place[:4096], root).inside:
                yield Reason("moves-out", f"{_short(place)} is outside the workspace")


def _tool_reasons(tool: str, category: str, raw: object, root: str | None) -> Iterator[Reason]:
    if category in {"file_write", "file_edit"} and not _only_views(raw):
        yield from _writes(tool, raw, root)
    elif category in {"file_read", "file_write", "file_edit", "search"}:
        yield from _reads(tool, raw, root)
    elif category == "web":
        yield from _web(raw, root)
    elif category == "terminal":
        if tool == "KillShell":
            yield Reason("runs-program", "a running shell is ended", "medium")
        elif isinstance(raw, Mapping) and raw and not raw.keys() & {"command", "cmd", "script"}:
            yield Reason("runs-program", "the call names no command that can be read")
    elif category == "git":
        yield Reason("changes-repository", f"{_short(tool)} may change the repository")
    elif category != "agent":
        yield from _unknown(tool, raw, root)


def _only_views(raw: object) -> bool:
    """Editors that take a command (`view`, `create`, …) under one tool name."""
    return isinstance(raw, Mapping) and raw.get("command") == "view"


def _writes(tool: str, raw: object, root: str | None) -> Iterator[Reason]:
    judge = _paths_judge(root)
    for path in file_paths(raw)[:1000]:
        judge.judge_write(locate(path[:4096], root))
    if tool == "Delete":
        judge.add("destroys", "files are deleted")
    if not judge.reasons:
        judge.add("changes-files", f"{_short(tool)} changes files")
    yield from judge.reasons


def _reads(tool: str, raw: object, root: str | None) -> Iterator[Reason]:
    judge = _paths_judge(root)
    paths = file_paths(raw)[:1000]
    if tool == "Glob" and isinstance(raw, Mapping) and isinstance(raw.get("pattern"), str):
        # a glob may lead out of the workspace as well as a path
        paths = [*paths, str(raw["pattern"])]
    for path in paths:
        judge.judge_read(locate(path[:4096], root))
    yield from judge.reasons


def _paths_judge(root: str | None) -> Judge:
    return Judge(Script(), root, _RULES)


def _web(raw: object, root: str | None) -> Iterator[Reason]:
    values = [value for value in raw.values() if isinstance(value, str)] if isinstance(raw, Mapping) else [raw]
    for value in values:
        if not isinstance(value, str):
            continue
        text = value.strip()
        if _INTERNAL.match(text):
            yield Reason("secret-read", f"{_short(text)} gives out the machine's credentials")
        elif text.lower().startswith("file:"):
            for path in candidates(text):
                yield Reason("outside-read", f"{_short(path)} is a file, not a web page")


def _unknown(tool: str, raw: object, root: str | None) -> Iterator[Reason]:
    """Tools nobody knows: medium, unless the name says that they only read."""
    last = _CAMEL.sub("_", tool.rpartition("__")[2] or tool).lower()
    reading = _READS.match(last) is not None and _WRITES.search(last) is None
    if not reading:
        yield Reason("unknown-tool", f"{_short(tool) or 'the tool'} is not known, so its effects are not, either")
    judge = _paths_judge(root)
    for path in file_paths(raw)[:1000]:
        if reading:
            judge.judge_read(locate(path[:4096], root))
        else:
            judge.judge_write(locate(path[:4096], root))
    yield from judge.reasons


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:119] + "…"
