"""The records of a Gemini CLI session as updates.

A record is a message, which is written again whenever it has more (a call that ended, tokens), or sets fields of the
session, all of its messages among them. So what was told of a message or a call before is compared with what it says
now. Calls are recorded when they have ended; one that was refused only by the answer that the model was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...model.discovery import DiscoveredStatus
from ...model.tools import canonical_name
from ..claude.reading import count, items, mapping, text
from .calls import Calls, Growing, described, diff, notice, plan, said, text_content, thought
from .files import Translation
from .store import Update

__all__ = ["Chat", "is_prompt", "message_text", "messages_in", "status_after"]

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
