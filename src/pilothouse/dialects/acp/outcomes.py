"""What a finished tool call did, read from what the agent said of it: output, files, git, the web.

Nothing is guessed. A fact that no agent told is left out: no exit code, no structured output; no diff, no counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ...acp import schema
from ...model.changes import content_of, diff_change, edit_changes, merged, patch_changes, report_changes
from ...model.records import (
    BranchCreated,
    BranchSwitched,
    CommandOutput,
    CommitMade,
    FileChange,
    FileDiff,
    GitOperation,
    PullRequestCreated,
    Pushed,
    SearchMatch,
    SearchResults,
    Stashed,
    ToolStructuredOutput,
    WebContent,
    WebFetched,
    WebOperation,
    WebResult,
    WebSearched,
)
from ...model.shell import Command, parse
from ...model.tools import command_text, file_paths, patch_text
from .call import Call
from .content import block_text

MATCHES = 200
"""Search hits kept in structured output; the text has them all."""
SUMMARY = 500
KILLED = -1
"""Exit code of a command that a signal ended and that therefore has none."""

_HIT = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+)[:|-]\s?(?P<content>.*)")
_NOTHING = re.compile(r"no (files|matches|results)( were)? found", re.IGNORECASE)
_OUTPUT_KEYS = ("output", "aggregated_output", "formatted_output", "stdout", "text", "content", "result", "message")
_EXIT_KEYS = ("exit", "exit_code", "exitCode", "returncode")


def output_text(content: Iterable[Any], raw_output: Any) -> str:
    """What the tool said, from its content or, failing that, its raw output."""
    text = block_text(content)
    return text or _said(raw_output)


def _said(raw: Any) -> str:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, list):
        return "\n".join(filter(None, map(_said, raw)))
    if isinstance(raw, Mapping):
        for key in ("error", *_OUTPUT_KEYS):
            said = _said(raw.get(key))
            if said:
                return said
        told = {key: value for key, value in raw.items() if key not in _EXIT_KEYS and value not in (None, "", [], {})}
        return msgspec.json.encode(told).decode() if told else ""
    return "" if raw is None else msgspec.json.encode(raw).decode()


def exit_code(raw_output: Any, meta: Any = None) -> int | None:
    """The exit code of a command, wherever the agent put it."""
    for place in _exit_places(raw_output, meta):
        for key in _EXIT_KEYS:
            code = place.get(key)
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def signal_name(raw_output: Any, meta: Any = None) -> str | None:
    """The signal that ended a command, wherever the agent put it."""
    told = (place.get("signal") for place in _exit_places(raw_output, meta))
    return next((signal for signal in told if isinstance(signal, str) and signal), None)


def _exit_places(raw_output: Any, meta: Any) -> list[Mapping[str, Any]]:
    places = [raw_output]
    if isinstance(raw_output, Mapping):
        places.append(raw_output.get("metadata"))
    if isinstance(meta, Mapping):
        places.append(meta.get("terminal_exit"))
    return [place for place in places if isinstance(place, Mapping)]


# -- files --------------------------------------------------------------------------------------------------------


_CREATED = re.compile(r"\b(?:created|new file)\b", re.IGNORECASE)


def file_changes(call: Call, output: str, workspace: str | None) -> list[FileChange]:
    """The files a finished call changed: by its diffs, by its patch, or by what it was told to write."""
    raw_input, raw_output = call.raw_input, call.raw_output
    diffs = [item for item in call.content if isinstance(item, schema.FileEditToolCallContent)]
    if diffs and call.kind == "delete":
        return merged(diff_change(item.path, item.old_text or item.new_text, None, workspace) for item in diffs)
    if diffs:
        return merged(diff_change(item.path, item.old_text, item.new_text, workspace) for item in diffs)
    metadata = raw_output.get("metadata") if isinstance(raw_output, Mapping) else None
    reported = report_changes(metadata)
    if reported:
        return reported
    text = patch_text(raw_input)
    if text is not None:
        return patch_changes(text)
    if call.kind == "delete":
        return [FileChange(path=path, change_type="deleted") for path in file_paths(raw_input)]
    if call.kind == "move" and isinstance(raw_input, Mapping):
        return _moved(raw_input)
    return _written(raw_input, metadata, output, workspace) if call.kind == "edit" else []


def _moved(raw: Mapping[str, Any]) -> list[FileChange]:
    for source, target in (("source", "destination"), ("from", "to"), ("old_path", "new_path"), ("oldPath", "newPath")):
        old, new = raw.get(source), raw.get(target)
        if isinstance(old, str) and isinstance(new, str):
            return [FileChange(path=old, change_type="deleted"), FileChange(path=new, change_type="created")]
    return []


def _written(raw: Any, metadata: Any, output: str, workspace: str | None) -> list[FileChange]:
    """A write or an edit whose agent sent no diff."""
    paths = file_paths(raw)
    edits = edit_changes(raw, workspace)
    if edits or not paths:
        return edits
    new = content_of(raw)
    existed = metadata.get("exists") if isinstance(metadata, Mapping) else None
    if new is not None and (existed is False or (existed is None and _CREATED.search(output[:200]))):
        return [diff_change(paths[0], None, new, workspace)]
    return [FileChange(path=paths[0], change_type="modified")]


# -- structured output --------------------------------------------------------------------------------------------


def structured_output(
    category: str,
    raw_input: Any,
    raw_output: Any,
    output: str,
    changes: list[FileChange],
    code: int | None,
    signal: str | None = None,
) -> ToolStructuredOutput | None:
    """The output as data, where the agent told enough of it."""
    if len(changes) == 1 and changes[0].diff is not None:
        change = changes[0]
        return FileDiff(path=change.path, diff=change.diff or "", change_type=change.change_type)
    if category == "terminal" and (code is not None or signal is not None):
        return _command_output(raw_output, output, code, signal)
    if isinstance(raw_input, Mapping):
        if category in ("search", "file_read") and isinstance(raw_input.get("pattern"), str):
            return SearchResults(results=_matches(output))
        url = raw_input.get("url")
        if category == "web" and isinstance(url, str):
            return WebContent(url=url, title=_title(raw_output), summary=output[:SUMMARY] or None)
    return None


def _command_output(raw: Any, output: str, code: int | None, signal: str | None) -> CommandOutput:
    stdout = raw.get("stdout") if isinstance(raw, Mapping) else None
    stderr = raw.get("stderr") if isinstance(raw, Mapping) else None
    return CommandOutput(
        exit_code=KILLED if code is None else code,
        stdout=stdout if isinstance(stdout, str) else output,
        stderr=stderr if isinstance(stderr, str) else "",
        signal=signal,
    )


def _matches(output: str) -> list[SearchMatch]:
    found: list[SearchMatch] = []
    for line in output.splitlines():
        text = line.strip()
        if not text or text.startswith("```") or _NOTHING.fullmatch(text.rstrip(".")):
            continue
        hit = _HIT.fullmatch(text)
        # a number of more digits than any file has lines is not a line number
        if hit and len(hit["line"]) < 10:
            found.append(SearchMatch(file=hit["file"], line=int(hit["line"]), content=hit["content"]))
        elif " " not in text:
            found.append(SearchMatch(file=text, line=0, content=""))
        if len(found) == MATCHES:
            break
    return found


def _title(raw: Any) -> str | None:
    title = raw.get("title") if isinstance(raw, Mapping) else None
    return title if isinstance(title, str) else None


# -- git ----------------------------------------------------------------------------------------------------------

_COMMIT = re.compile(r"^\[(?P<where>[^\]\n]*?) ?(?P<hash>[0-9a-f]{7,40})\] ?(?P<subject>.*)$", re.MULTILINE)
_SWITCHED = re.compile(r"^(?:Switched to|Already on|Your branch)", re.MULTILINE)
_FILES = re.compile(r"(\d{1,9}) files? changed")
_PULL_REQUEST = re.compile(r"https?://\S+/(?:pull|merge_requests)/(\d{1,9})")


def git_operations(raw_input: Any, output: str) -> list[GitOperation]:
    """What a shell command that ended well did to the repository and to its remotes."""
    command = command_text(raw_input)
    if command is None or ("git" not in command and "gh " not in command):
        return []
    told = Told(output)
    done = (_git(item, told) for item in parse(command).commands)
    return [operation for operation in done if operation is not None]


class Told:
    """What git answered; each commit it tells of is taken once, in order."""

    def __init__(self, output: str) -> None:
        self.output = output
        self._commits = _COMMIT.finditer(output)
        self._files = _FILES.finditer(output)

    def commit(self) -> tuple[str, str, int]:
        """Hash, subject and files of the next commit; empty where it did not say."""
        made, files = next(self._commits, None), next(self._files, None)
        return (made["hash"], made["subject"], int(files[1]) if files else 0) if made else ("", "", 0)


def _git(command: Command, told: Told) -> GitOperation | None:
    words = [word.text for word in command.words[1:]]
    if command.name == "gh" and words[:2] == ["pr", "create"]:
        return _pull_request(words, told)
    if command.name != "git":
        return None
    verb, rest = _subcommand(words)
    reader = _GIT.get(verb)
    if reader is None or any(word in _NOTHING_DONE for word in rest):
        return None
    return reader(rest, told, all(word.static for word in command.words))


_NOTHING_DONE = {"--dry-run", "-n", "--help", "-h", "--delete", "-d", "-D", "--prune"}


def _subcommand(words: list[str]) -> tuple[str, list[str]]:
    """Skip git's own options, two of which take a value as a word of its own."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in ("-c", "-C", "--git-dir", "--work-tree", "--namespace") else 1
    return (words[index], words[index + 1 :]) if index < len(words) else ("", [])


def _operands(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]


def _value(words: list[str], *options: str) -> str | None:
    for index, word in enumerate(words):
        if word in options and index + 1 < len(words):
            return words[index + 1]
        for option in options:
            if option.startswith("--") and word.startswith(option + "="):
                return word[len(option) + 1 :]
    return None


def _commit(words: list[str], told: Told, static: bool) -> GitOperation:
    made, subject, files = told.commit()
    message = _value(words, "-m", "--message", "-am") if static else None
    return CommitMade(message=message or subject, hash=made, files_changed=files)


def _checkout(words: list[str], told: Told, static: bool) -> GitOperation | None:
    created = _value(words, "-b", "-B", "-c", "-C", "--create", "--orphan")
    operands = _operands(words)
    if created is not None:
        others = [word for word in operands if word != created]
        return BranchCreated(name=created, from_=others[0] if others else "HEAD")
    # files are restored by the same word; git says which it was
    return _switch(words, told, static) if "--" not in words and _SWITCHED.search(told.output) else None


def _switch(words: list[str], told: Told, static: bool) -> GitOperation | None:
    operands = _operands(words)
    if _value(words, "-c", "-C", "--create", "--orphan") is not None:
        return _checkout(words, told, static)
    return BranchSwitched(name=operands[0]) if len(operands) == 1 else None


def _branch(words: list[str], told: Told, static: bool) -> GitOperation | None:
    operands = _operands(words)
    if not operands or len(operands) != len(words):
        return None  # a listing, a deletion, a rename
    return BranchCreated(name=operands[0], from_=operands[1] if len(operands) > 1 else "HEAD")


def _push(words: list[str], told: Told, static: bool) -> GitOperation:
    operands = _operands(words)
    return Pushed(remote=operands[0] if operands else "origin", branch=operands[1] if len(operands) > 1 else "HEAD")


def _stash(words: list[str], told: Told, static: bool) -> GitOperation | None:
    action = next(iter(_operands(words)), "push")
    if action in ("push", "save"):
        return Stashed(action="push")
    return Stashed(action="pop") if action == "pop" else None


def _pull_request(words: list[str], told: Told) -> GitOperation | None:
    made = _PULL_REQUEST.search(told.output)
    if made is None:
        return None
    return PullRequestCreated(number=int(made[1]), title=_value(words, "-t", "--title") or "", url=made[0])


_GIT = {
    "commit": _commit,
    "checkout": _checkout,
    "switch": _switch,
    "branch": _branch,
    "push": _push,
    "stash": _stash,
}

# -- the web ------------------------------------------------------------------------------------------------------


def web_operation(raw_input: Any, raw_output: Any) -> WebOperation | None:
    """What a web tool that ended well searched or fetched."""
    if not isinstance(raw_input, Mapping):
        return None
    url, query = raw_input.get("url"), raw_input.get("query", raw_input.get("search_query"))
    if isinstance(url, str):
        status = raw_output.get("status", raw_output.get("statusCode")) if isinstance(raw_output, Mapping) else None
        known = isinstance(status, int) and not isinstance(status, bool)
        return WebFetched(url=url, title=_title(raw_output), status_code=status if known else None)
    return WebSearched(query=query, results=_web_results(raw_output)) if isinstance(query, str) else None


def _web_results(raw: Any) -> list[WebResult] | None:
    items = raw.get("results") if isinstance(raw, Mapping) else raw
    if not isinstance(items, list):
        return None
    found = [item for item in items if isinstance(item, Mapping) and isinstance(item.get("url"), str)]
    return [
        WebResult(
            title=str(item.get("title") or ""),
            url=str(item["url"]),
            snippet=str(item.get("snippet") or item.get("text") or ""),
        )
        for item in found
    ] or None
