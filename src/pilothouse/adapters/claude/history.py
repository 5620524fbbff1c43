"""The CLI's own record of its sessions: which there are, and what was said in them, as the lines it would write now.

Each session is a file of JSON lines below the CLI's directory, in a folder named after its workspace. The format is the
CLI's own and changes: what is not known is skipped, and a file that cannot be read is a session that is not there.
Nothing is ever written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from .reading import items, mapping, shortened, text

__all__ = ["cli_home", "conversation", "find", "has_turns", "is_id", "listing"]

HEAD = 256 * 1024
"""Bytes of a file that are read to learn where its session was and what it is about."""
TAIL = 64 * 1024
"""Bytes at the end of a longer file that are read for the title that it was given last."""
TITLE = 100
CLEAR = "/clear"
"""No title for what was begun by it."""
FOLDER = 180
"""Characters of a workspace's path that are in the name of its folder for certain."""

_OTHER = re.compile(r"[^a-zA-Z0-9]")
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_INSERTED = re.compile(r"\s*<(system-reminder|local-command-caveat|command-message)>")
_UNSEEN = ("isSidechain", "isMeta", "isCompactSummary")
"""Messages of a sub-agent, and those that the CLI wrote to the model in the user's name."""

Json = dict[str, Any]


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
    return next(_records(path), None) is not None


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


def conversation(path: Path) -> Iterator[Json]:
    """What was said in a session: prompts as `session/update`s of the user, the rest as lines of the CLI.

    An update has the key `sessionUpdate`, a line the key `type`.
    """
    for record in _records(path):
        content = mapping(record["message"]).get("content")
        if record["type"] == "assistant" or _has_results(content):
            # without its `error`, so that what the CLI said of a failed call is told as the words that they were
            kept: Json = {key: record[key] for key in ("type", "message", "uuid") if key in record}
            yield {**kept, "tool_use_result": record.get("toolUseResult"), "parent_tool_use_id": None}
        else:
            yield from _prompt(content)


def _files(home: Path, pattern: str) -> Iterator[Path]:
    try:
        folders = sorted((home / "projects").iterdir())
    except OSError:
        return
    for folder in folders:
        yield from sorted(folder.glob(pattern))


def is_id(name: str) -> bool:
    """Whether this is the id of a session; nothing else may become a part of a path."""
    try:
        return str(UUID(name)) == name.lower()
    except ValueError:
        return False


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _lines(path: Path, limit: int = -1) -> Iterator[Json]:
    """The objects in a file, those that can be read."""
    try:
        with path.open("rb") as file:
            yield from _objects(file.read(limit).splitlines() if limit >= 0 else file)
    except OSError:
        return


def _objects(lines: Iterable[bytes]) -> Iterator[Json]:
    for line in lines:
        try:
            yield mapping(msgspec.json.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # cut off, or not of this format


def _tail(path: Path) -> Iterator[Json]:
    """The objects at the end of a long file: a title that was given later is there."""
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) <= HEAD:
                return
            file.seek(-min(TAIL, file.tell() - HEAD), os.SEEK_END)
            lines = file.read().splitlines()[1:]  # the first one has lost its beginning
    except OSError:
        return
    yield from _objects(lines)


def _records(path: Path, limit: int = -1) -> Iterator[Json]:
    """What the main conversation consists of: messages that a user saw."""
    for record in _lines(path, limit):
        is_message = record.get("type") in ("user", "assistant") and isinstance(record.get("message"), dict)
        if is_message and not any(record.get(key) for key in _UNSEEN):
            yield record


def _described(path: Path) -> Json | None:
    """Where a session was, and its title: the one it was given, else its first words."""
    cwd = title = words = ""
    for record in chain(_lines(path, HEAD), _tail(path)):
        cwd = cwd or text(record.get("cwd"))
        title = text(record.get("customTitle")) or title or text(record.get("aiTitle")) or text(record.get("summary"))
        is_prompt = record.get("type") == "user" and not record.get("isMeta") and not record.get("isSidechain")
        if is_prompt and words in ("", CLEAR):
            words = " ".join(_texts(_prompt(mapping(record.get("message")).get("content")))) or words
    if not cwd or not (title or words):
        return None
    return {"cwd": cwd, "title": shortened(title or words, TITLE)}


def _has_results(content: Any) -> bool:
    return any(mapping(block).get("type") == "tool_result" for block in items(content))


def _texts(updates: Iterable[Json]) -> Iterator[str]:
    return (text(update["content"].get("text")) for update in updates if "content" in update)


def _prompt(content: Any) -> Iterator[Json]:
    """A prompt, without what the CLI put into it."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else map(mapping, items(content))
    for block in blocks:
        told = _image(block) if block.get("type") == "image" else _words(text(block.get("text")))
        if told is not None and "type" in told and told["type"] == "user":
            yield told
        elif told is not None:
            yield {"sessionUpdate": "user_message_chunk", "content": told}


def _words(words: str) -> Json | None:
    if words.lstrip().startswith("<local-command-std"):
        return {"type": "user", "message": {"role": "user", "content": words}, "parent_tool_use_id": None}
    command = _COMMAND.search(words)
    if command is not None:
        given = _ARGUMENTS.search(words)
        words = f"{command[1].strip()} {given[1].strip() if given else ''}".strip()
    elif _INSERTED.match(words) or words.startswith("[Request interrupted by user"):
        return None
    return {"type": "text", "text": words} if words.strip() else None


def _image(block: Json) -> Json | None:
    source = mapping(block.get("source"))
    data, kind = text(source.get("data")), text(source.get("media_type"))
    return {"type": "image", "data": data, "mimeType": kind} if data and kind else None
