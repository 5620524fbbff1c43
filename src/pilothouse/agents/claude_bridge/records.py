"""The CLI's own record of its sessions: the list of them, and the conversation that each file holds.

Each session is a file of JSON lines below the CLI's directory, in a folder named after its workspace. The format is the
CLI's own and changes: unknown lines are skipped, an unreadable file counts as missing, and nothing is ever written. A
prompt becomes the user's `session/update`, everything else the line that the CLI would write now, so that a session
that is read looks like one that runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias
from uuid import UUID

import msgspec

from ...model.loose_json import items, mapping, shortened, text
from ...model.titles import without_insertions
from ...plain_files import Unreadable, opened
from .wire import decoded

CLEAR = "/clear"
"""No title for what was begun by it."""
ASKING = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that wait for the user."""

_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user[^\]\n]*\]\s*\Z")
_NOTIFICATION = re.compile(r"<task-notification>\s*<[a-z-]+>")
# What the CLI itself wrote is the whole of a text; the same tags among other words are what somebody wrote about them.
_MESSAGE = r"(?:<command-message>[^<]*</command-message>\s*)?"
_COMMAND = re.compile(rf"\s*{_MESSAGE}<command-name>([^<]*)</command-name>\s*{_MESSAGE}")
_REST = re.compile(r"\Z|<(?:command-args|command-contents|skill-format)>")
_REST_END = ("</command-args>", "</command-contents>", "</skill-format>")
_ARGUMENTS = re.compile(r"<command-args>(.*)</command-args>", re.DOTALL)
_SHELL = re.compile(r"\A\s*<bash-input>(.*?)</bash-input>\s*\Z", re.DOTALL)
_OUTPUT = re.compile(
    r"\s*<((?:local-command|bash)-std(?:out|err))>(.*?)</\1>\s*(?=\Z|<(?:local-command|bash)-std)", re.DOTALL
)
"""An end among what was printed is not the end of it."""
_PART = re.compile(r"<(task-id|tool-use-id|status|summary)>(.*?)</\1>", re.DOTALL)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")

Json = dict[str, Any]
Status: TypeAlias = Literal["running", "waiting", "idle"]


def is_id(name: str) -> bool:
    """Whether this is the id of a session; nothing else may become a part of a path."""
    try:
        return len(name) == 36 and str(UUID(name)) == name.lower()
    except ValueError:
        return False


def is_message(record: Json) -> bool:
    """Whether it is part of the main conversation: a message that the user saw."""
    if record.get("type") not in ("user", "assistant") or not isinstance(record.get("message"), dict):
        return False
    # spelt out, as it is asked several times of each record: those of a sub-agent, and those that the CLI wrote itself
    return not (record.get("isSidechain") or record.get("isMeta") or record.get("isCompactSummary"))


def told(record: Json) -> Iterator[Json]:
    """What a record says: prompts as `session/update`s of the user, the rest as lines of the CLI.

    An update has the key `sessionUpdate`, a line the key `type`.
    """
    message_id = text(record.get("uuid"))
    for each in _told(record) if not _is_request(record) else ():
        yield {**each, "messageId": message_id} if message_id and "sessionUpdate" in each else each


def told_by_subagent(record: Json, call_id: str) -> Iterator[Json]:
    """What a record of the sub-agent that a call has started says, as lines: its calls and their results.

    Its words are not told while it runs, either; what it was asked, and what it answered, is in the call.
    """
    message = mapping(record.get("message"))
    kind = {"assistant": "tool_use", "user": "tool_result"}.get(text(record.get("type")))
    blocks = [block for block in items(message.get("content")) if mapping(block).get("type") == kind]
    if blocks and not record.get("isMeta"):
        yield {
            "type": record["type"],
            "message": {**message, "content": blocks},
            "uuid": record.get("uuid"),
            "tool_use_result": record.get("toolUseResult"),
            "parent_tool_use_id": call_id,
            "agent_id": record.get("agentId"),
        }


def _is_request(record: Json) -> bool:
    """Whether a program asked the CLI for a model: recorded as if somebody had typed a command, which nobody has."""
    by_program = text(record.get("entrypoint")).startswith("sdk") and "turnAttributionKey" not in record
    if record.get("type") != "user" or not by_program:
        return False
    words = mapping(record.get("message")).get("content")
    if not isinstance(words, str):
        return False
    return (_command(words) or _output(words) or "").startswith(("/model ", "Set model to "))


def _told(record: Json) -> Iterator[Json]:
    if is_message(record):
        content = record["message"].get("content")
        if record["type"] == "assistant" or _has_results(content):
            # without its `error`, so that what the CLI said of a failed call is told as the words that they were
            kept: Json = {key: record[key] for key in ("type", "message", "uuid") if key in record}
            yield {**kept, "tool_use_result": record.get("toolUseResult"), "parent_tool_use_id": None}
        if record["type"] == "user":
            yield from _prompt(content)  # also what was said beside results
    elif not record.get("isSidechain"):
        beside = _BESIDE.get((text(record.get("type")), _kind_of(record)))
        if beside is not None:
            yield from beside(record)


def _kind_of(record: Json) -> str:
    if record.get("isCompactSummary"):
        return "summary"
    return text(record.get("subtype")) or text(mapping(record.get("attachment")).get("type"))


def _boundary(record: Json) -> Iterator[Json]:
    metadata = mapping(record.get("compactMetadata"))
    known = {"trigger": metadata.get("trigger"), "pre_tokens": metadata.get("preTokens")}
    kept = {key: value for key, value in known.items() if value is not None}
    yield {"type": "system", "subtype": "compact_boundary", "compact_metadata": kept}


def _summary(record: Json) -> Iterator[Json]:
    yield {"type": "user", "message": record.get("message"), "isSynthetic": True}


def _queued(record: Json) -> Iterator[Json]:
    """A prompt that was typed while a turn ran, and taken into it."""
    attachment = record["attachment"]
    if text(attachment.get("commandMode")) in ("", "prompt") and not attachment.get("isMeta"):
        yield from _prompt(attachment.get("prompt"))


_BESIDE = {
    ("system", "local_command"): lambda record: _prompt(record.get("content")),
    ("system", "compact_boundary"): _boundary,
    ("user", "summary"): _summary,
    ("attachment", "queued_command"): _queued,
}


def _has_results(content: Any) -> bool:
    return any(mapping(block).get("type") == "tool_result" for block in items(content))


# -- prompts ------------------------------------------------------------------------------------------------------


def _prompt(content: Any) -> Iterator[Json]:
    """A prompt, without what the CLI put into it; the output of a command in its place."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else map(mapping, items(content))
    for block in blocks:
        if block.get("type") == "tool_result":
            continue
        if block.get("type") == "image":
            shown = _image(block)
        else:
            words = text(block.get("text"))
            output = _output(words)
            if output is not None:
                if output:
                    yield {"type": "system", "subtype": "local_command_output", "content": output}
                continue
            if _NOTIFICATION.match(words):
                yield _task(words)
                continue
            typed = _typed(words)
            shown = {"type": "text", "text": typed} if typed.strip() else None
        if shown is not None:
            yield {"sessionUpdate": "user_message_chunk", "content": shown}


def _output(words: str) -> str | None:
    """What a command that the CLI ran itself has printed; None for any other words."""
    printed: list[str] = []
    at = 0
    while found := _OUTPUT.match(words, at):
        printed.append(found[2].strip())
        at = found.end()
    if not printed or at < len(words):
        return None
    return _STYLE.sub("", "\n".join(filter(None, printed)))


def _task(words: str) -> Json:
    """What the CLI tells its model of a task in the background, as it tells it to others."""
    parts = {found[1].replace("-", "_"): found[2].strip() for found in _PART.finditer(words)}
    return {"type": "system", "subtype": "task_notification", **parts}


def _command(words: str) -> str | None:
    """A command of the CLI, as it was typed; None for any other words."""
    found = _COMMAND.match(words)
    if found is None:
        return None
    rest = words[found.end() :].rstrip()
    if not _REST.match(rest) or (rest and not rest.endswith(_REST_END)):
        return None
    given = _ARGUMENTS.match(rest)
    return f"{found[1].strip()} {given[1].strip() if given else ''}".strip()


def _typed(words: str) -> str:
    """What the user typed."""
    command = _command(words)
    if command is not None:
        return command
    shell = _SHELL.match(words)
    if shell is not None:
        return f"! {shell[1].strip()}"
    return "" if _INTERRUPTED.match(words) else without_insertions(words)


def _image(block: Json) -> Json | None:
    source = mapping(block.get("source"))
    data, kind = text(source.get("data")), text(source.get("media_type"))
    return {"type": "image", "data": data, "mimeType": kind} if data and kind else None


# -- what many records say ----------------------------------------------------------------------------------------


class Activity:
    """What the agent does, by the records so far.

    The end of a turn is not always recorded: words of the model that have no stop reason may be the last ones.
    """

    def __init__(self) -> None:
        self.status: Status | None = None
        self.turn_ended = False
        """Whether the last record said that nothing more comes of its turn."""
        self._unanswered = True
        """Whether the model has not spoken since the last words of the user, which may be a command of the CLI."""

    def take(self, record: Json) -> None:
        status: Status | None = None
        if is_message(record):
            status = self._said(record) if record["type"] == "assistant" else self._heard(record)
        elif record.get("type") == "system" and record.get("subtype") == "turn_duration":
            status = "idle"
        self.turn_ended = status == "idle"
        self.status = status or self.status

    def _heard(self, record: Json) -> Status | None:
        content = record["message"].get("content")
        if _has_results(content):
            self._unanswered = False
            return "running"
        words = content if isinstance(content, str) else _texts(content)
        if _INTERRUPTED.match(words):
            return "idle"
        if _output(words) is not None:
            return "idle" if self._unanswered else None
        if words and not _typed(words).strip():
            return None
        self._unanswered = True
        return "running"

    def _said(self, record: Json) -> Status:
        message = record["message"]
        self._unanswered = False
        blocks = [mapping(block) for block in items(message.get("content"))]
        calls = {text(block.get("name")) for block in blocks if block.get("type") == "tool_use"}
        if calls:
            return "waiting" if calls & ASKING else "running"
        ended = text(message.get("stop_reason")) not in ("", "tool_use", "pause_turn")
        return "idle" if ended or record.get("isApiErrorMessage") else "running"


class Outline:
    """A session in a few words, from records at its beginning and its end."""

    def __init__(self, records: Iterable[Json] = ()) -> None:
        self.cwd = self.first = self.last = self.model = self.created = self.active = ""
        self.activity = Activity()
        self._titles: dict[str, str] = {}
        for record in records:
            self.take(record)

    @property
    def title(self) -> str:
        """The one it was given, else the one that was made for it, else its first words."""
        return next((self._titles[key] for key in _TITLES if key in self._titles), self.first)

    @property
    def given_title(self) -> str:
        """The title without the words of a prompt."""
        return next((self._titles[key] for key in _TITLES[:2] if key in self._titles), "")

    def take_title(self, record: Json) -> None:
        for key in _TITLES:
            if text(record.get(key)):
                self._titles[key] = record[key]

    def take(self, record: Json) -> None:
        self.take_title(record)
        self.cwd = self.cwd or text(record.get("cwd"))
        if not (is_message(record) or record.get("type") == "system"):
            return
        self.activity.take(record)
        if not record.get("isSidechain"):
            self.created = self.created or text(record.get("timestamp"))
            self.active = text(record.get("timestamp")) or self.active
            self._message(record)

    def _message(self, record: Json) -> None:
        message = mapping(record.get("message"))
        if record.get("type") == "assistant":
            model = text(message.get("model"))
            self.model = model if model and model != "<synthetic>" else self.model
            self.last = _texts(message.get("content")) or self.last
            return
        said = (update["content"] for update in told(record) if "content" in update and "sessionUpdate" in update)
        words = " ".join(text(block.get("text")) for block in said).strip()
        if record.get("type") == "user" and _command(_texts(message.get("content"))) is None:
            self.last = words or self.last
        if words and self.first in ("", CLEAR):
            self.first = words


_TITLES = ("customTitle", "aiTitle", "summary")


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks: Iterable[Mapping[str, Any]] = map(mapping, items(content))
    return "\n".join(text(block.get("text")) for block in blocks if block.get("type") == "text").strip()


HEAD = 256 * 1024
"""Bytes of a file that are read to learn where its session was and what it is about."""
LONGEST = 16 * 1024 * 1024
"""Bytes of the line in which the head ends that are read with it: a picture in the first prompt makes one long."""
TAIL = 64 * 1024
"""Bytes at the end of a longer file that are read for the title that it was given last."""
TITLE = 100
FOLDER = 180
"""Characters of a workspace's path that are in the name of its folder for certain."""

_OTHER = re.compile(r"[^a-zA-Z0-9]")


def cli_home(environ: Mapping[str, str] | None = None) -> Path:
    """The directory in which the CLI keeps everything."""
    environ = os.environ if environ is None else environ
    known = environ.get("CLAUDE_CONFIG_DIR")
    return Path(known) if known else Path(environ.get("HOME") or Path.home()) / ".claude"


def find(home: Path, session_id: str) -> Path | None:
    """The file of a session, whichever workspace it was in."""
    if not is_id(session_id):
        return None  # it becomes a part of a path
    return next(iter(_files(home, f"{session_id}.jsonl")), None)


def has_turns(path: Path) -> bool:
    """Whether anything was said in it: the CLI makes the file before, and takes up no session that is empty."""
    return any(map(is_message, _lines(path)))


def listing(home: Path, cwd: str | None = None, *, without: Collection[str] = ()) -> Iterator[Json]:
    """The sessions, the youngest first, each as the `SessionInfo` of a list. A file is read when its turn comes."""
    wanted = None if cwd is None else {cwd, os.path.realpath(cwd)}
    found = (path for path in _files(home, "*.jsonl") if is_id(path.stem) and path.stem not in without)
    paths = [path for path in found if _may_be_of(path, wanted)]
    for path in sorted(paths, key=_changed, reverse=True):
        told = _described(path)
        if told is not None and (wanted is None or told["cwd"] in wanted):
            stamp = datetime.fromtimestamp(_changed(path), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            yield {"sessionId": path.stem, **told, "updatedAt": stamp}


def _may_be_of(path: Path, wanted: set[str] | None) -> bool:
    """Whether a file is in the folder of a workspace; names that are long have an end of their own."""
    return wanted is None or any(path.parent.name.startswith(_OTHER.sub("-", cwd)[:FOLDER]) for cwd in wanted)


def records(path: Path) -> Iterator[Json]:
    """Everything that is recorded of a session, as far as it can be read."""
    return _lines(path)


class Subagents:
    """What the sub-agents of a session did: each has a file of its own beside the session's, and is told once."""

    def __init__(self, session: Path) -> None:
        self._folder = session.with_suffix("") / "subagents"
        self._told: set[str] = set()

    def __call__(self, call_id: str, agent_id: str) -> Iterator[Json]:
        """The records of the one with this id, or of the one that a call has started, where only that is known."""
        found = [path for path in self._files() if path.stem == f"agent-{agent_id}" or _caller(path) == call_id]
        for path in sorted(found, key=lambda path: path.stem != f"agent-{agent_id}")[:1]:
            self._told.add(path.name)
            yield from _lines(path)

    def _files(self) -> list[Path]:
        try:
            return [path for path in sorted(self._folder.glob("agent-*.jsonl")) if path.name not in self._told]
        except OSError:
            return []


def _caller(path: Path) -> str:
    """The call that has started a sub-agent; "" where an older CLI did not write that down."""
    told = next(_lines(path.with_suffix(".meta.json"), TAIL), {})
    return text(told.get("toolUseId"))


def _files(home: Path, pattern: str) -> Iterator[Path]:
    try:
        folders = sorted((home / "projects").iterdir())
    except OSError:
        return
    for folder in folders:
        yield from sorted(folder.glob(pattern))


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _lines(path: Path, limit: int | None = None) -> Iterator[Json]:
    """The objects in a file, those that can be read; with a limit, in the lines that begin before it."""
    try:
        with opened(path) as raw, BufferedReader(raw) as file:  # type: ignore[type-var]
            if limit is None:
                yield from _objects(file)
                return
            head = file.read(limit)
            rest = file.readline(LONGEST) if not head.endswith(b"\n") else b""
            yield from _objects((head + rest).splitlines())
    except Unreadable:
        return


def _objects(lines: Iterable[bytes]) -> Iterator[Json]:
    for line in lines:
        try:
            yield mapping(decoded(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # cut off, or not of this format


def _tail(path: Path) -> Iterator[Json]:
    """The objects at the end of a long file: a title that was given later is there."""
    try:
        with opened(path) as file:
            if file.seek(0, os.SEEK_END) <= HEAD:
                return
            file.seek(-min(TAIL, file.tell() - HEAD), os.SEEK_END)
            lines = file.read().splitlines()[1:]  # the first one has lost its beginning
    except Unreadable:
        return
    yield from _objects(lines)


def _described(path: Path) -> Json | None:
    """Where a session was, and its title."""
    outline = Outline(chain(_lines(path, HEAD), _tail(path)))
    if not outline.cwd or not outline.title:
        return None
    return {"cwd": outline.cwd, "title": shortened(outline.title, TITLE)}
