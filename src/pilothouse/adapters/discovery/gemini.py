"""The sessions of Gemini CLI: files of JSON lines in `tmp/PROJECT/chats`, and older ones that are a whole JSON object.

A file's name has only the beginning of the session's id, so the file must be read to know its session. The directory of
a project is in a file of its folder; the oldest folders are named after a hash of it. A record is a message, written
again whenever it grows (a call that ended, tokens), or sets fields of the session, all of its messages among them. So
each record is compared with what was already imported. Calls are recorded when they have ended; a refused one only by
the answer that the model was given.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...model.discovery import DiscoveredSession, DiscoveredStatus
from ...model.loose_json import count, items, mapping, text
from ...model.tools import canonical_name
from ...plain_files import Stamp, Unreadable, opened, stamp_of
from .calls import Calls, Growing, described, diff, notice, plan, said, text_content, thought
from .files import Glance, LineReader, LineStore, Translation, decoded
from .lines import LIMIT, Entry
from .store import Problem, Reader, Step, Update, iso, listed, moment

Json = dict[str, Any]

WINDOW = 1_048_576
"""Tokens that the models of this agent can be sent, by its own table."""
TITLE = 160
"""Characters of a description that is of the call; a longer one is of the tool."""
_UNTOLD = "The turn ended before the record told how the tool call ended."
_PUT_IN = ("<session_context>", "<hook_context>", "<state_snapshot>")
_WRAPPED = re.compile(r"\A<untrusted_context>\n(.*)\n</untrusted_context>\s*\Z", re.DOTALL)
_EXIT = re.compile(r"^Exit Code: (-?\d{1,9})$", re.MULTILINE)
_LABEL = "Output: "
_SEVERITIES = {"info": "info", "warning": "warning", "error": "error"}
_DONE = {"success": False, "error": True, "cancelled": True, "canceled": True}
"""Whether a call that ended went wrong, by its status."""


def messages_in(record: Json) -> list[Json]:
    """The messages that a record has: one, or all of the session."""
    if isinstance(record.get("type"), str) and isinstance(record.get("id"), str):
        return [record]
    found = items(mapping(record.get("$set")).get("messages")) or items(record.get("messages"))
    return [message for message in found if isinstance(message, dict)]


def message_text(message: Json) -> str:
    """The words of a message, for people where they have their own."""
    content = message.get("displayContent") or message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "".join(text(mapping(part).get("text")) for part in parts if not mapping(part).get("thought"))


def is_prompt(message: Json) -> bool:
    """Whether a message is the user's own."""
    words = message_text(message).strip()
    return message.get("type") == "user" and bool(words) and not words.startswith(_PUT_IN)


def status_after(record: Json, before: DiscoveredStatus | None) -> DiscoveredStatus | None:
    """What the agent does after a record. When it said something before it runs a tool, that looks like an answer."""
    if "messages" in mapping(record.get("$set")):
        return "idle"  # it is rewritten when a turn was given up
    message = next(iter(messages_in(record)), None)
    if message is None:
        return before
    kind = message.get("type")
    if kind == "user":
        return "running" if is_prompt(message) or _answers(message) else before
    if kind != "gemini":
        return before
    return "idle" if message_text(message).strip() else "running"


def _answers(message: Json) -> list[Json]:
    """The results of calls in a message to the model."""
    parts = (mapping(part) for part in items(message.get("content")))
    return [mapping(part["functionResponse"]) for part in parts if "functionResponse" in part]


def _pictures(message: Json) -> list[Json]:
    data = (mapping(mapping(part).get("inlineData")) for part in items(message.get("content")))
    known = ((text(each.get("mimeType")), text(each.get("data"))) for each in data)
    return [
        {"type": "image", "mimeType": kind, "data": each} for kind, each in known if kind.startswith("image/") and each
    ]


class Chat(Translation):
    """The updates of one session."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._texts = Growing()
        self._thoughts: dict[str, int] = {}
        self._stand_ins: set[str] = set()
        self._has_told = self._is_summed_up = False
        self._used = 0
        self.status: DiscoveredStatus | None = None

    def take(self, record: Json) -> Iterable[Update]:
        self.status = status_after(record, self.status)
        if isinstance(record.get("$rewindTo"), str):
            yield notice("info", "The user went back to an earlier message")
        title = text(mapping(record.get("$set")).get("summary"))
        if title:
            yield {"sessionUpdate": "session_info_update", "title": title}
        is_rewritten = "$set" in record and self._has_told
        for message in messages_in(record):
            message_id = text(message.get("id"))
            if is_rewritten and message_id not in self._texts:
                yield from self._summed_up(message_id)
            elif message_id not in self._stand_ins:
                yield from self._message(message)

    def _summed_up(self, message_id: str) -> Iterator[Update]:
        """A message that was put in the place of others, for the model."""
        is_known = message_id in self._stand_ins
        self._stand_ins.add(message_id)
        if not is_known and not self._is_summed_up:
            self._is_summed_up = True
            yield {"sessionUpdate": "compaction_update", "compactionId": message_id, "status": "completed"}

    def _message(self, message: Json) -> Iterator[Update]:
        kind, message_id = text(message.get("type")), text(message.get("id"))
        is_new = message_id not in self._texts
        self._texts.know(message_id)
        if kind == "user":
            if is_prompt(message):
                self._has_told, self._is_summed_up = True, False
                yield from self._calls.close(_UNTOLD) if is_new else ()
                yield from self._more("user", message_id, message_text(message))
                yield from (said("user", block, message_id) for block in _pictures(message) if is_new)
            for answer in _answers(message):
                yield from self._answered(answer)
        elif kind == "gemini":
            yield from self._thought(message_id, items(message.get("thoughts")))
            yield from self._more("agent", message_id, message_text(message))
            for call in items(message.get("toolCalls")):
                yield from self._called(mapping(call))
            yield from self._tokens(mapping(message.get("tokens")))
        elif kind in _SEVERITIES and is_new:
            yield notice(_SEVERITIES[kind], message_text(message) or kind)

    def _more(self, who: str, message_id: str, words: str) -> Iterator[Update]:
        """What a message says more than was told of it; the space at its end comes and goes."""
        rest, goes_on = self._texts.more(message_id, words.rstrip())
        if rest:
            yield said(who, rest, message_id if goes_on else "")

    def _thought(self, message_id: str, thoughts: list[Any]) -> Iterator[Update]:
        for told in map(mapping, thoughts[self._thoughts.get(message_id, 0) :]):
            subject, more = text(told.get("subject")), text(told.get("description"))
            words = "\n".join(part for part in (f"**{subject}**" if subject else "", more) if part)
            if words:
                yield thought(words, message_id)
        self._thoughts[message_id] = max(len(thoughts), self._thoughts.get(message_id, 0))

    def _tokens(self, tokens: Json) -> Iterator[Update]:
        used = count(tokens.get("total"))
        if used and used != self._used:
            self._used = used
            yield {"sessionUpdate": "usage_update", "used": used, "size": WINDOW}

    # -- calls --

    def _called(self, call: Json) -> Iterator[Update]:
        call_id, name = text(call.get("id")), text(call.get("name")) or "tool"
        if not call_id:
            return
        given = mapping(call.get("args"))
        if not self._calls.is_known(call_id):
            todos = plan(given) if canonical_name(name) == "TodoWrite" else None
            yield from [todos] if todos is not None else []
            title = text(call.get("description"))
            named = {"title": title} if title and len(title) <= TITLE and "\n" not in title else {}
            yield from self._calls.begin(call_id, name, given, **named)
        failed = _DONE.get(text(call.get("status")))
        if failed is not None:
            yield from self._ended(call_id, name, call, failed=failed)

    def _ended(self, call_id: str, name: str, call: Json, *, failed: bool) -> Iterator[Update]:
        display = call.get("resultDisplay")
        results = [mapping(mapping(part).get("functionResponse")) for part in items(call.get("result"))]
        words, code = _output(next(iter(results), {}))
        shown = [] if failed else _changes(mapping(display))
        if not shown:
            shown = text_content(words or text(display))
        raw = {"exit_code": code} if code is not None else None
        yield from self._calls.end(call_id, name, failed=failed or bool(code), content=shown, rawOutput=raw)

    def _answered(self, answer: Json) -> Iterator[Update]:
        """A call that has no record of its own."""
        call_id, name = text(answer.get("id")), text(answer.get("name"))
        if call_id and not self._calls.is_known(call_id):
            words, code = _output(answer)
            failed = "error" in mapping(answer.get("response")) or bool(code)
            yield from self._calls.end(
                call_id, name, failed=failed, **described(name, None), content=text_content(words)
            )


def _output(answer: Json) -> tuple[str, int | None]:
    """What a tool said, and the exit code if it was a command that failed."""
    response = mapping(answer.get("response"))
    words = text(response.get("error")) or text(response.get("output"))
    wrapped = _WRAPPED.match(words)
    if wrapped is None:
        return words, None
    code = _EXIT.search(wrapped[1])
    kept = [line for line in wrapped[1].split("\n") if not _is_about(line)]
    return "\n".join(kept).removeprefix(_LABEL), int(code[1]) if code else None


def _is_about(line: str) -> bool:
    return line.startswith(("Exit Code: ", "Process Group PGID: "))


def _changes(display: Json) -> list[Json]:
    path, new = text(display.get("filePath")) or text(display.get("fileName")), display.get("newContent")
    if not path or not isinstance(new, str):
        return []
    old = display.get("originalContent")
    is_new = display.get("isNewFile") is True or not isinstance(old, str)
    return [diff(path, None if is_new else text(old), new, "add" if is_new else "modify")]


SMALL = 64 * 1024
"""Bytes of the small files beside sessions."""


class GeminiStore(LineStore):
    """`home` is the agent's directory: `.gemini` in `GEMINI_CLI_HOME`, or in the user's home."""

    agent = "gemini"
    depth = 2

    def __init__(self, home: Path | None = None, environ: Mapping[str, str] = os.environ) -> None:
        super().__init__()
        known = environ.get("GEMINI_CLI_HOME") or environ.get("HOME")
        self._home = home or Path(known or Path.home()) / ".gemini"

    @property
    def places(self) -> Sequence[Path]:
        return [self._home / "tmp"]

    @property
    def programs(self) -> Collection[str]:
        return ("gemini", "gemini-cli")

    def session_of(self, name: str) -> str | None:
        """The beginning of the name: it is the same when a session was taken over from the older format."""
        stem, _, kind = name.partition(".")
        return stem if stem.startswith("session-") and kind in ("json", "jsonl") else None

    def translation(self, session_id: str) -> Translation:
        return Chat()

    def files(self, session_id: str) -> Sequence[Path]:
        found = self._paths(session_id)
        if not found or not all(map(os.path.exists, found)):
            self.scan()
            found = self._paths(session_id)
        return [Path(path) for path in found]

    def touched(self, path: Path) -> str | None:
        """Known once the file was listed."""
        entry = self._index.entries.get(str(path))
        return entry.session.id if entry is not None and entry.session is not None else None

    def reader(self, session_id: str) -> Reader | None:
        paths = self.files(session_id)
        if not paths:
            return None
        return WholeReader(paths[0]) if paths[0].suffix == ".json" else LineReader(paths[0], Chat)

    def _paths(self, session_id: str) -> list[str]:
        index = dict(self._index.entries)
        of_it = [
            (entry.stamp.mtime_ns, path)
            for path, entry in index.items()
            if entry.session is not None and entry.session.id == session_id
        ]
        return [path for _, path in sorted(of_it, reverse=True)]

    def _looked_into(self, path: str, session_id: str, stamp: Stamp) -> Entry:
        known = self._index.entries.get(path)
        if not path.endswith(".json") or (known is not None and known.is_of(stamp)):
            return super()._looked_into(path, session_id, stamp)
        try:
            records = [_whole(Path(path))]
        except Unreadable as exc:
            return Entry(stamp, session_id, problem=str(exc), again=True)
        glance = Glance(path=Path(path), session_id=session_id, changed=stamp.mtime_ns / 1e9, head=records)
        return Entry(stamp, session_id, self.describe(glance))

    def describe(self, glance: Glance) -> DiscoveredSession | None:
        metas = [record for record in glance.records if "sessionId" in record]
        meta: dict[str, Any] = {}
        for record in glance.records:
            meta |= {key: value for key, value in mapping(record.get("$set")).items() if key != "messages"}
        first = metas[0] if metas else {}
        session_id = text(first.get("sessionId"))
        messages = [message for record in glance.records for message in messages_in(record)]
        prompts = [message for message in messages if is_prompt(message)]
        answers = [message for message in messages if message.get("type") == "gemini"]
        if not session_id or first.get("kind") == "subagent" or not (prompts or answers):
            return None
        said = [words for message in answers if (words := message_text(message).strip())]
        status = None
        for record in glance.records:
            status = status_after(record, status)
        changed = iso(glance.changed)
        return listed(
            self.agent,
            session_id,
            self._project(glance.path.parent.parent, text(first.get("projectHash"))),
            created_at=moment(first.get("startTime")) or changed,
            last_activity=moment(meta.get("lastUpdated")) or moment(first.get("lastUpdated")) or changed,
            name=text(meta.get("summary"))
            or text(first.get("summary"))
            or (message_text(prompts[0]) if prompts else ""),
            said=said[-1] if said else "",
            model=next((model for message in reversed(answers) if (model := text(message.get("model")))), ""),
            status=status or "idle",
        )

    def _project(self, folder: Path, digest: str) -> str:
        """The directory of a project; nothing when nobody wrote it down."""
        root = _small(folder / ".project_root").decode(errors="replace").strip()
        if root:
            return root
        known = mapping(mapping(decoded(_small(self._home / "projects.json"))).get("projects"))
        for path, name in known.items():
            if name == folder.name or hashlib.sha256(path.encode(errors="replace")).hexdigest() == digest:
                return path
        return ""


class WholeReader(Reader):
    """A session that is one JSON object, written anew with every message.

    When it is taken up by a version that writes lines, all of it is written to another file, and goes on there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chat = Chat()
        self._stamp: Stamp | None = None
        self._failed: Stamp | None = None
        self._told: Stamp | None = None
        """What it was when it could not be read, the last time and when that was told."""
        self._newer: Reader | None = None

    def read(self) -> Step:
        lines = self._path.with_suffix(".jsonl")
        if self._newer is None and lines.exists():
            self._newer = LineReader(lines, lambda: self._chat)
        return self._newer.read() if self._newer is not None else self._look()

    def _look(self) -> Step:
        try:
            stamp = stamp_of(self._path.stat())
            if stamp == self._stamp:
                return Step(status=self._chat.status)
            record = _whole(self._path)
        except (OSError, Unreadable) as exc:
            return self._trouble(exc)
        self._stamp, self._failed = stamp, None
        updates = [update for message in items(record.get("messages")) for update in self._chat.take(mapping(message))]
        return Step(updates=updates, status=self._chat.status)

    def _trouble(self, exc: Exception) -> Step:
        """What cannot be read may be in the middle of being written: that is a problem when it stays so."""
        try:
            stamp = stamp_of(self._path.stat())
        except (OSError, Unreadable):
            stamp = Stamp(0, 0, 0, 0)
        before, self._failed = self._failed, stamp
        if before != stamp or stamp == self._told:
            return Step(status=self._chat.status, failed=True)
        self._told = stamp
        words = "it is gone" if isinstance(exc, FileNotFoundError) else str(exc)
        problems = [Problem(path=str(self._path), message=words)]
        return Step(status=self._chat.status, problems=problems, failed=True)

    def close(self) -> None:
        """Nothing is held open between looks."""


def _whole(path: Path) -> dict[str, Any]:
    with opened(path) as file:
        data = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise Unreadable(f"it is larger than {LIMIT:,} bytes")
    record = decoded(data)
    if record is None:
        raise Unreadable("it is no JSON object")
    return record


def _small(path: Path) -> bytes:
    try:
        with opened(path) as file:
            return file.read(SMALL)
    except Unreadable:
        return b""
